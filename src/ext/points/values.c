/* SPDX-License-Identifier: MIT */
/* Vectors of spaces whose coordinates are not numbers: one after the other,
 *
 *   STRING   length:varuint32 UTF-8[length]
 *   JSON     length:varuint32 MessagePack[length]      no bytes: null
 */
#include "base/utf8.h"
#include "codec/blocks.h"
#include "codec/codec.h"
#include "ext/points/points.h"
#include "wire/msgpack.h"

#include <string.h>

#define DECODED_MOST ((uint64_t)256 << 20) /* of a vector in gzip or snappy */

bool tnf_points_worded(const tnf_vs_meta *m)
{
    return m->resolution == TNF_VS_STRING || m->resolution == TNF_VS_JSON;
}

/* ----------------------------------------------------------------- reading */

/* Takes the bytes of the next coordinate. */
static tnf_status next_word(const tnf_points *p, tnf_cur *c, tnf_str *out, tnf_error *e)
{
    uint64_t n = 0, at = tnf_where(c);
    TNF_TRY(tnf_vs_varint(c, 32, p->options.varint_msb, "the length of a coordinate", &n, e));
    if (n > tnf_left(c))
        return tnf_fail(e, TNF_EFORMAT, at, "a coordinate has %llu bytes, but only %s",
                        (unsigned long long)n, TNF_BYTES_FOLLOW(tnf_left(c)));
    *out = (tnf_str) { n ? tnf_bytes(c, n) : (const void *)"", (size_t)n };
    if (p->meta.resolution == TNF_VS_STRING && !tnf_utf8_valid(NULL, out->p, out->n))
        return tnf_fail(e, TNF_EFORMAT, at, "a coordinate is not UTF-8");
    return TNF_OK;
}

static tnf_status begin_words(const tnf_points *p, tnf_cur *c, tnf_error *e)
{
    if (p->meta.elements <= tnf_left(c))
        return TNF_OK;
    return tnf_fail(e, TNF_EFORMAT, tnf_where(c),
                    "a vector of %zu bytes cannot hold the %llu coordinates of the space",
                    tnf_left(c), (unsigned long long)p->meta.elements);
}

static tnf_status end_words(const tnf_cur *c, tnf_error *e)
{
    if (tnf_left(c) == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EFORMAT, tnf_where(c), "%zu bytes follow the coordinates of a point",
                    tnf_left(c));
}

tnf_status tnf_points_check_words(const tnf_points *p, const void *bytes, size_t n, uint64_t at,
                                  tnf_error *e)
{
    tnf_cur c = tnf_cur_over(n ? bytes : "", n, at);
    TNF_TRY(begin_words(p, &c, e));
    for (uint64_t i = 0; i < p->meta.elements; i++) {
        tnf_str word;
        TNF_TRY(next_word(p, &c, &word, e));
        if (p->meta.resolution == TNF_VS_JSON && word.n)
            TNF_TRY(tnf_vs_check_app(word.p, word.n, tnf_where(&c) - word.n, e));
    }
    return end_words(&c, e);
}

static tnf_status word_value(tnf_points *p, tnf_str word, tnf_value *out, tnf_error *e)
{
    tnf_msgpack r;
    *out = (tnf_value) { .kind = TNF_NULL };
    if (p->meta.resolution == TNF_VS_STRING) {
        *out = (tnf_value) { .kind = TNF_STRING, .n = word.n };
        out->as.s = tnf_arena_str(&p->words, word.p, word.n);
        return out->as.s ? TNF_OK : tnf_arena_fail(&p->words, "a string", e);
    }
    if (word.n == 0)
        return TNF_OK;
    tnf_msgpack_init(&r, word.p, word.n, 0, &p->words, TNF_VS_DEPTH, e);
    return tnf_msgpack_value(&r, out) ? tnf_msgpack_end(&r) : r.status;
}

static tnf_status list_words(tnf_points *p, const tnf_point *point, tnf_value *list, tnf_error *e)
{
    tnf_cur c = tnf_cur_over(point->vector_n ? point->vector : "", point->vector_n, 0);
    TNF_TRY(begin_words(p, &c, e));
    tnf_value *items = tnf_arena_array(&p->words, p->meta.elements, sizeof *items);
    if (!items)
        return tnf_arena_fail(&p->words, "coordinates", e);
    for (uint64_t i = 0; i < p->meta.elements; i++) {
        tnf_str word;
        TNF_TRY(next_word(p, &c, &word, e));
        TNF_TRY(word_value(p, word, &items[i], e));
    }
    *list = tnf_value_array(items, (size_t)p->meta.elements);
    return end_words(&c, e);
}

tnf_status tnf_points_values(const tnf_value **out, tnf_points *p, const tnf_point *point,
                             tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_need(point, "point", e));
    TNF_TRY(tnf_need_array(point->vector, point->vector_n, "vector", e));
    tnf_points_clear(p, &p->words);
    if (!p->has_meta || !tnf_points_worded(&p->meta))
        return TNF_OK;
    tnf_value *list = tnf_arena_alloc(&p->words, sizeof *list);
    if (!list)
        return tnf_arena_fail(&p->words, "coordinates", e);
    TNF_TRY(list_words(p, point, list, e));
    *out = list;
    return TNF_OK;
}

static tnf_status read_stored(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    memcpy(dst, (const uint8_t *)ctx + offset, n);
    return TNF_OK;
}

tnf_status tnf_points_words_size(const tnf_points *p, const tnf_vs_point *v, const void *stored,
                                 uint64_t *out, tnf_error *e)
{
    unsigned code = v->vector_option & TNF_VS_CODE;
    if (code > TNF_VS_SNAPPY)
        return tnf_fail(e, TNF_EUNSUPPORTED, v->vector_at - TNF_VS_VECTOR,
                        "unsupported vector compression %u", code);
    tnf_error why;
    tnf_encoded from = { read_stored, (void *)(uintptr_t)stored, v->vector_n, 0 };
    tnf_status status = code == TNF_VS_GZIP ? tnf_codec_measure(out, TNF_CODEC_GZIP, &from,
                                                                DECODED_MOST, &p->alloc, &why)
                                            : tnf_snappy_size(stored, v->vector_n, out, &why);
    if (status == TNF_OK && *out > DECODED_MOST)
        return tnf_fail(e, TNF_ELIMIT, v->vector_at, "a vector decodes to more than 256 MiB");
    return status == TNF_OK || status == TNF_ENOMEM
               ? status
               : tnf_fail(e, status, v->vector_at, "a vector is damaged: %.150s", why.message);
}

/* ----------------------------------------------------------------- writing */

tnf_status tnf_points_put_word(tnf_points *p, tnf_buf *b, const tnf_value *v, tnf_error *e)
{
    bool text = p->meta.resolution == TNF_VS_STRING;
    tnf_buf packed;
    if (text && (v->kind != TNF_STRING || (v->n && !v->as.s) || !tnf_utf8_valid(NULL, v->as.s, v->n)))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "every coordinate of the space must be a string of UTF-8");
    tnf_buf_init(&packed, &p->alloc, UINT32_MAX);
    tnf_status status = text ? TNF_OK : tnf_points_pack_value(p, &packed, v, e);
    const void *bytes = text ? (const void *)v->as.s : packed.p;
    size_t n = text ? v->n : packed.n;
    uint8_t length[10];
    if (status == TNF_OK) {
        tnf_buf_put(b, length, tnf_vs_put_varint(length, n, p->options.varint_msb));
        if (n)
            tnf_buf_put(b, bytes, n);
        status = tnf_buf_status(b, "the coordinates of a point", e);
    }
    tnf_buf_free(&packed);
    return status;
}

tnf_status tnf_points_put_words(tnf_points *p, tnf_buf *b, const tnf_value *values, tnf_error *e)
{
    if (values->kind != TNF_ARRAY || values->n != p->meta.elements || !values->as.items)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the coordinates must be an array of %llu values",
                        (unsigned long long)p->meta.elements);
    for (size_t i = 0; i < values->n; i++)
        TNF_TRY(tnf_points_put_word(p, b, &values->as.items[i], e));
    return TNF_OK;
}
