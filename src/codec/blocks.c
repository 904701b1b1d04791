/* SPDX-License-Identifier: MIT */
/* Blocks that are decompressed into a reused buffer. */
#include "codec/blocks.h"

/* Sets b->n to n; the bytes are undefined. */
static tnf_status resize_buf(tnf_buf *b, size_t n, tnf_error *e)
{
    static const uint8_t zeros[256];
    b->n = b->n > n ? n : b->n;
    while (b->n < n && b->status == TNF_OK)
        tnf_buf_put(b, zeros, n - b->n < sizeof zeros ? n - b->n : sizeof zeros);
    return tnf_buf_status(b, "decompressed bytes", e);
}

/* Converts the offset of an error from the compressed bytes to the file. */
static tnf_status place_error(tnf_status status, uint64_t at, tnf_error *e)
{
    if (status != TNF_OK && e && e->offset != TNF_NO_OFFSET)
        e->offset += at;
    return status;
}

tnf_status tnf_block_unpack(tnf_buf *b, tnf_block_decode *decode, const tnf_block *block, size_t n,
                            tnf_error *e)
{
    TNF_TRY(resize_buf(b, n, e));
    return place_error(decode(block->p, block->n, b->p, n, e), block->at, e);
}

tnf_status tnf_snappy_unpack(tnf_buf *b, const tnf_block *block, uint64_t max, tnf_error *e)
{
    uint64_t n = 0;
    TNF_TRY(place_error(tnf_snappy_size(block->p, block->n, &n, e), block->at, e));
    if (n > max)
        return tnf_fail(e, TNF_ELIMIT, block->at,
                        "a compressed block gives %llu bytes; at most %llu are allowed",
                        (unsigned long long)n, (unsigned long long)max);
    return tnf_block_unpack(b, tnf_snappy_decode, block, (size_t)n, e);
}
