/* SPDX-License-Identifier: MIT */
/* The protobuf reader on any bytes: fields are contiguous, contents are inside their message, and
 * failures have an offset. */
#include "fuzz.h"
#include "wire/protobuf.h"
#include <string.h>

struct bytes_in {
    const uint8_t *p;
    size_t n;
};

static tnf_status fetch_bytes(void *ctx, uint64_t at, void *dst, size_t n, tnf_error *e)
{
    const struct bytes_in *b = ctx;
    (void)e;
    FUZZ_REQUIRE(at <= b->n && n <= b->n - at, "bytes outside are asked for");
    memcpy(dst, b->p + at, n);
    return TNF_OK;
}

static void walk_fields(tnf_protobuf m, unsigned depth)
{
    tnf_protobuf_field f;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    uint64_t v;
    while (tnf_protobuf_more(&m)) {
        uint64_t was = m.pos;
        tnf_status status = tnf_protobuf_next(&m, &f, &e);
        if (status != TNF_OK) {
            FUZZ_REQUIRE(e.offset <= m.in->size, "no offset");
            return;
        }
        FUZZ_REQUIRE(f.at == was && f.offset > was && f.offset + f.n == m.pos && m.pos <= m.end,
                     "a wrong place");
        if (f.type != TNF_PROTOBUF_LENGTH)
            continue;
        tnf_protobuf packed = tnf_protobuf_inside(&m, &f);
        while (tnf_protobuf_more(&packed) && tnf_protobuf_varint(&packed, &v, &e) == TNF_OK)
            FUZZ_REQUIRE(packed.pos <= packed.end, "a number runs past its field");
        if (depth < 8)
            walk_fields(tnf_protobuf_inside(&m, &f), depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t window[TNF_PROTOBUF_WINDOW];
    tnf_protobuf_in in;
    struct bytes_in from = { data, size };
    if (size > 65536)
        return 0;
    tnf_protobuf_init(&in, fetch_bytes, &from, size, window, sizeof window);
    walk_fields(tnf_protobuf_all(&in), 0);
    return 0;
}
