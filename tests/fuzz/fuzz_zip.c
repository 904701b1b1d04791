/* SPDX-License-Identifier: MIT */
/* The zip reader on any bytes: members are inside the file, and no two share a byte. */
#include "base/bytes.h"
#include "fuzz.h"
#include "wire/zip.h"
#include <string.h>

struct input {
    const uint8_t *p;
    size_t n;
};

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const struct input *in = ctx;
    (void)e;
    FUZZ_REQUIRE(offset <= in->n && n <= in->n - offset, "%zu bytes at %llu of %zu", n,
                 (unsigned long long)offset, in->n);
    memcpy(dst, in->p + offset, n);
    return TNF_OK;
}

static tnf_status let_pass(void *ctx, tnf_status status, uint64_t at, const char *text,
                           tnf_error *e)
{
    (void)ctx, (void)status, (void)at, (void)text, (void)e;
    return TNF_OK;
}

static void read_all(struct input *in, bool lenient)
{
    tnf_error error;
    tnf_arena arena;
    tnf_zip z;
    uint64_t data, sum = 0;
    tnf_allocator allocator = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &allocator, (uint64_t)64 << 20);
    tnf_zip_from from = { .fetch = fetch_bytes,
                          .ctx = in,
                          .size = in->n,
                          .arena = &arena,
                          .max_directory = 1 << 20,
                          .max_members = 1 << 16,
                          .odd = lenient ? let_pass : NULL };
    tnf_status status = tnf_zip_read(&z, &from, &error);
    for (size_t i = 0; status == TNF_OK && i < z.n; i++) {
        const tnf_zip_member *m = &z.members[i];
        if (tnf_zip_locate(&data, &from, m, &error) != TNF_OK)
            continue;
        FUZZ_REQUIRE(data >= m->header + 30 && data + m->stored <= m->limit &&
                         m->limit <= z.directory && z.directory <= in->n,
                     "a member lies outside of its place");
        sum += m->limit - m->header;
    }
    FUZZ_REQUIRE(status != TNF_OK || sum <= in->n, "members share bytes");
    tnf_arena_free(&arena);
}

/* Without the directory: members are contiguous, and only the last may end beyond the file. */
static void walk_all(struct input *in)
{
    tnf_error error;
    tnf_arena arena;
    tnf_zip z;
    uint64_t data, end = 0;
    tnf_allocator allocator = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &allocator, (uint64_t)64 << 20);
    tnf_zip_from from = { .fetch = fetch_bytes,
                          .ctx = in,
                          .size = in->n,
                          .arena = &arena,
                          .max_members = 1 << 16,
                          .odd = let_pass };
    tnf_status status = tnf_zip_walk(&z, &from, &error);
    for (size_t i = 0; status == TNF_OK && i < z.n; i++) {
        const tnf_zip_member *m = &z.members[i];
        FUZZ_REQUIRE(m->header == end && end <= in->n, "a member begins at another place");
        FUZZ_REQUIRE(tnf_zip_locate(&data, &from, m, &error) == TNF_OK &&
                         data + m->stored == m->limit,
                     "a member is not where it was");
        end = m->limit;
    }
    tnf_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    read_all(&in, false);
    read_all(&in, true);
    walk_all(&in);
    return 0;
}
