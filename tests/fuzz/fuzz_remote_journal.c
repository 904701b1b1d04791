/* SPDX-License-Identifier: MIT */
/* The journal of an interrupted download: the input is NAME.part.journal. The first byte selects
 * the length of the file: that of NAME.part, or one more block ('l'), which is missing. A block is
 * accepted only if the journal has its digest. */
#include "base/digest.h"
#include "base/hex.h"
#include "fuzz.h"
#include "remote/journal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHORT 5u

static char folder[256], target[264];

static void put_file(const char *end, const void *bytes, size_t n)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s%s", target, end);
    FILE *f = fopen(path, "wb");
    FUZZ_REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "cannot write %s", path);
}

static void make_target(void)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%.200s/fuzz-journal-XXXXXX", base ? base : "/tmp");
    FUZZ_REQUIRE(mkdtemp(folder), "no temporary folder");
    (void)snprintf(target, sizeof target, "%s/f", folder);
}

static void remove_target(void)
{
    (void)rmdir(folder);
}

/* Is the digest of the short block in the text? */
static int has_digest(const void *text, size_t n)
{
    tnf_digester d;
    uint8_t digest[TNF_DIGEST_MAX];
    char hex[65];
    FUZZ_REQUIRE(tnf_digest_begin(&d, "sha256"), "no memory");
    tnf_digest_update(&d, "short", SHORT);
    tnf_digest_end(&d, digest);
    *tnf_hex_put(hex, digest, 32) = 0;
    return memmem(text, n, hex, 64) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tnf_journal j;
    tnf_pin pin = { .set = true, .etag = "\"v\"", .modified = "Sun, 06 Nov 1994 08:49:37 GMT" };
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_error e;
    if (size == 0)
        return 0;
    if (!target[0]) {
        make_target();
        (void)atexit(remove_target);
    }
    bool longer = data[0] == 'l';
    pin.total = (longer ? TNF_BLOCK : 0) + SHORT;
    put_file(".part", "short", SHORT);
    put_file(".part.journal", data + 1, size - 1);
    FUZZ_REQUIRE(tnf_journal_open(&j, target, &pin, &alloc, &e) == TNF_OK, "%s", e.message);
    FUZZ_REQUIRE(j.blocks == 1u + longer, "%llu blocks", (unsigned long long)j.blocks);
    FUZZ_REQUIRE(!j.have[0] || (!longer && has_digest(data + 1, size - 1)), "a block of nothing");
    FUZZ_REQUIRE(!longer || (!j.have[1] && !j.have[2]), "a block that is not there");
    tnf_journal_close(&j, false);
    return 0;
}
