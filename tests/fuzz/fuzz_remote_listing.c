/* SPDX-License-Identifier: MIT */
/* Listings of directories from servers: XML of a bucket ('b') or of a container of Azure ('a'),
 * JSON of a repository ('t'), and the header that names the next page ('n'). The first byte selects
 * the kind. */
#include "fuzz.h"
#include "remote/answer.h"
#include "remote/listing.h"
#include <stdlib.h>
#include <string.h>

struct seen {
    size_t names, room;
};

static tnf_status take_name(void *ctx, const char *name, uint64_t size, tnf_error *e)
{
    struct seen *seen = ctx;
    (void)size, (void)e;
    FUZZ_REQUIRE(*name, "a name of nothing");
    FUZZ_REQUIRE(strlen(name) <= seen->room, "a name longer than all of the text");
    seen->names++;
    return TNF_OK;
}

static void check_page(char kind, const char *text, size_t n)
{
    static tnf_page p;
    struct seen seen = { 0, n };
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_error e;
    p = (tnf_page) { .prefix = "a/", .take = take_name, .ctx = &seen };
    tnf_status status = kind == 'b'   ? tnf_page_bucket(&p, text, n, &e)
                        : kind == 'a' ? tnf_page_blobs(&p, text, n, &e)
                                      : tnf_page_tree(&p, text, n, &alloc, &e);
    FUZZ_REQUIRE(status == TNF_OK || e.message[0], "a failure without a sentence");
    FUZZ_REQUIRE(seen.names <= n, "more names than bytes");
    FUZZ_REQUIRE(memchr(p.token, 0, sizeof p.token), "a token without an end");
}

static void check_link(const char *text, size_t n)
{
    static tnf_answer a;
    static const char name[] = "Link: ";
    char *line = malloc(n + sizeof name);
    if (!line)
        return;
    memcpy(line, name, sizeof name - 1);
    memcpy(line + sizeof name - 1, text, n);
    tnf_answer_begin(&a);
    tnf_answer_line(&a, line, n + sizeof name - 1);
    FUZZ_REQUIRE(a.more || !a.next[0], "a next page that there is not");
    FUZZ_REQUIRE(!strpbrk(a.next, "\r\n"), "a line end in a URL");
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (size == 0 || !text) {
        free(text);
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    if (data[0] == 'n')
        check_link(text, size - 1);
    else
        check_page((char)data[0], text, size - 1);
    free(text);
    return 0;
}
