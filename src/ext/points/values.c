/* SPDX-License-Identifier: MIT */
/* Vectors of spaces whose coordinates are not numbers: one after the other,
 *
 *   STRING   length:varuint32 UTF-8[length]
 *   JSON     length:varuint32 MessagePack[length]      no bytes: null
 */
#include "base/utf8.h"
#include "ext/points/points.h"
#include "wire/msgpack.h"

/* ----------------------------------------------------------------- reading */

/* Takes the bytes of the next coordinate. */
static tnf_status next_word(const tnf_points *p, tnf_cur *c, tnf_str *out, tnf_error *e)
{
    uint64_t at = tnf_where(c);
    TNF_TRY(tnf_vs_text_next(c, &p->meta, p->options.varint_msb, out, e));
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
    if (!p->has_meta || !tnf_vs_has_texts(&p->meta))
        return TNF_OK;
    tnf_value *list = tnf_arena_alloc(&p->words, sizeof *list);
    if (!list)
        return tnf_arena_fail(&p->words, "coordinates", e);
    TNF_TRY(list_words(p, point, list, e));
    *out = list;
    return TNF_OK;
}

/* ----------------------------------------------------------------- writing */

tnf_status tnf_points_put_word(tnf_points *p, tnf_buf *b, const tnf_value *v, tnf_error *e)
{
    bool text = p->meta.resolution == TNF_VS_STRING;
    tnf_buf packed;
    if (text &&
        (v->kind != TNF_STRING || (v->n && !v->as.s) || !tnf_utf8_valid(NULL, v->as.s, v->n)))
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
