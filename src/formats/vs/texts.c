/* SPDX-License-Identifier: MIT */
#include "formats/vs/texts.h"

#include "base/error.h"
#include "codec/blocks.h"

static tnf_status too_large(const tnf_vs_point *p, tnf_error *e)
{
    return tnf_fail(e, TNF_ELIMIT, p->vector_at,
                    "a vector of texts has more than 16 MiB, or 32 times its compressed bytes");
}

static uint64_t most_decoded(uint64_t stored)
{
    uint64_t most = 32 * stored + 4096;
    return most < TNF_VS_TEXTS_MOST ? most : TNF_VS_TEXTS_MOST;
}

bool tnf_vs_texts_fit(uint64_t stored, uint64_t decoded, uint64_t texts)
{
    return stored <= TNF_VS_TEXTS_MOST && decoded <= most_decoded(stored) &&
           texts <= 2 * stored + 64;
}

static tnf_status unpack_gzip(tnf_buf *spare, const tnf_vs_point *p, const tnf_block *block,
                              tnf_error *e)
{
    if (block->n < 18) /* the smallest member */
        return tnf_fail(e, TNF_EFORMAT, block->at, "corrupt gzip: a vector is too short");
    uint64_t n = tnf_le32((const uint8_t *)block->p + block->n - 4); /* of the last member */
    if (n > most_decoded(p->vector_n))
        return too_large(p, e);
    return tnf_block_unpack(spare, tnf_gzip_decode, block, (size_t)n, e);
}

tnf_status tnf_vs_texts_unpack(tnf_buf *spare, const tnf_vs_point *p, const void *stored,
                               tnf_cur *out, tnf_error *e)
{
    unsigned code = p->vector_option & TNF_VS_CODE;
    if (p->vector_n > TNF_VS_TEXTS_MOST)
        return too_large(p, e);
    *out = tnf_cur_over(stored, p->vector_n, p->vector_at);
    if (code == TNF_VS_RAW)
        return TNF_OK;
    const tnf_block block = { stored, p->vector_n, p->vector_at };
    if (code == TNF_VS_GZIP)
        TNF_TRY(unpack_gzip(spare, p, &block, e));
    else if (code == TNF_VS_SNAPPY)
        TNF_TRY(tnf_snappy_unpack(spare, &block, most_decoded(p->vector_n), e));
    else
        return tnf_fail(e, TNF_EUNSUPPORTED, p->vector_at - TNF_VS_VECTOR,
                        "unsupported vector compression %u", code);
    *out = tnf_cur_over(spare->n ? spare->p : stored, spare->n, p->vector_at);
    return TNF_OK;
}

tnf_status tnf_vs_texts(tnf_vs_chain *c, const tnf_vs_point *p, tnf_buf *spare, tnf_cur *out,
                        tnf_error *e)
{
    const uint8_t *stored = NULL;
    if (p->vector_n > TNF_VS_TEXTS_MOST)
        return too_large(p, e);
    TNF_TRY(tnf_vs_chain_bytes(c, p->vector_at, p->vector_n, &stored, e));
    return tnf_vs_texts_unpack(spare, p, stored, out, e);
}

tnf_status tnf_vs_text_next(tnf_cur *c, const tnf_vs_meta *m, bool msb, tnf_str *out, tnf_error *e)
{
    uint64_t n = 0, at = tnf_where(c);
    TNF_TRY(tnf_vs_varint(c, 32, msb, "the length of a text", &n, e));
    if (n > tnf_left(c))
        return tnf_fail(e, TNF_EFORMAT, at, "a text has %llu bytes, but only %s",
                        (unsigned long long)n, TNF_BYTES_FOLLOW(tnf_left(c)));
    *out = (tnf_str) { n ? tnf_bytes(c, n) : (const void *)"", (size_t)n };
    if (n == 0 || m->resolution != TNF_VS_JSON)
        return TNF_OK;
    return tnf_vs_check_app(out->p, out->n, tnf_where(c) - n, e);
}
