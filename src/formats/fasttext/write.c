/* SPDX-License-Identifier: MIT */
/* The writer writes the same bytes as fastText. Values that the catalog lacks are written as
 * finalfusion's library writes them: counts of 0 and no output. The missing output is an empty
 * matrix, which fastText and gensim load. */
#include "formats/fasttext/ft.h"

#include <string.h>

#define WINDOW ((size_t)64 << 10)

/* -------------------------------------------------------------------- fields */

static tnf_status put_i32(tnf_writer *w, int32_t v, tnf_error *e)
{
    return tnf_put_u32(w, (uint32_t)v, e);
}

static uint64_t count_of(const tnf_object *o)
{
    return o ? o->shape[0] : 0;
}

static tnf_status put_head(tnf_writer *w, const ft_plan *p, tnf_error *e)
{
    uint64_t t;
    memcpy(&t, &p->t, sizeof t);
    TNF_TRY(tnf_put_u32(w, FT_MAGIC, e));
    TNF_TRY(tnf_put_u32(w, p->version, e));
    for (int i = 0; i < FT_ARGS; i++)
        TNF_TRY(put_i32(w, p->args[i], e));
    TNF_TRY(tnf_put_u64(w, t, e));
    uint32_t words = (uint32_t)count_of(p->vocab), labels = (uint32_t)count_of(p->labels);
    TNF_TRY(tnf_put_u32(w, words + labels, e));
    TNF_TRY(tnf_put_u32(w, words, e));
    TNF_TRY(tnf_put_u32(w, labels, e));
    TNF_TRY(tnf_put_u64(w, (uint64_t)p->tokens, e));
    return tnf_put_u64(w, p->pruneidx ? p->pruneidx->shape[0] : UINT64_MAX, e);
}

/* ---------------------------------------------------------------- dictionary */

/* A part read front to back, a window at a time. */
struct reading {
    const tnf_part *part; /* NULL: zeros */
    uint8_t *p;
    size_t n;
    uint64_t at; /* of the window */
};

/* Up to n bytes at `at`: as many as the window has, at least one (at least 8 if n and `at` are
 * multiples of 8). */
static tnf_status read_some(struct reading *r, uint64_t at, uint64_t n, const uint8_t **out,
                            size_t *some, tnf_error *e)
{
    if (at < r->at || at - r->at >= r->n) {
        uint64_t left = r->part->nbytes - at;
        r->n = left < WINDOW ? (size_t)left : WINDOW;
        r->at = at;
        TNF_TRY(tnf_read_part(r->p, r->n, r->part, at, e));
    }
    size_t there = r->n - (size_t)(at - r->at);
    *some = n < there ? (size_t)n : there;
    *out = r->p + (at - r->at);
    return TNF_OK;
}

struct listing {
    tnf_writer *w;
    struct reading offsets, bytes, counts;
    uint8_t *out;
    size_t n;
};

static tnf_status flush_listing(struct listing *l, tnf_error *e)
{
    size_t n = l->n;
    l->n = 0;
    return n ? tnf_put(l->w, l->out, n, e) : TNF_OK;
}

static tnf_status collect_bytes(struct listing *l, const void *p, size_t n, tnf_error *e)
{
    if (n > WINDOW - l->n)
        TNF_TRY(flush_listing(l, e));
    memcpy(l->out + l->n, p, n);
    l->n += n;
    return TNF_OK;
}

static tnf_status number_at(struct reading *r, uint64_t i, uint64_t *out, tnf_error *e)
{
    const uint8_t *p;
    size_t some;
    *out = 0;
    if (!r->part)
        return TNF_OK;
    TNF_TRY(read_some(r, 8 * i, 8, &p, &some, e));
    *out = tnf_le64(p);
    return TNF_OK;
}

static tnf_status put_entry(struct listing *l, uint64_t from, uint64_t to, uint64_t count,
                            uint8_t type, tnf_error *e)
{
    uint8_t end[FT_ENTRY] = { 0 };
    if (from > to || to > l->bytes.part->nbytes)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the offsets of words are not in ascending order");
    while (from < to) {
        const uint8_t *p;
        size_t some;
        TNF_TRY(read_some(&l->bytes, from, to - from, &p, &some, e));
        TNF_TRY(collect_bytes(l, p, some, e));
        from += some;
    }
    tnf_put_le64(end + 1, count);
    end[9] = type;
    return collect_bytes(l, end, sizeof end, e);
}

static tnf_status put_list(struct listing *l, const tnf_object *strings, const tnf_object *counts,
                           uint8_t type, tnf_error *e)
{
    uint64_t from, to, count;
    if (!strings)
        return TNF_OK;
    l->offsets = (struct reading) { tnf_object_part(strings, "offsets"), l->offsets.p, 0, 0 };
    l->bytes = (struct reading) { tnf_object_part(strings, "bytes"), l->bytes.p, 0, 0 };
    l->counts = (struct reading) { counts ? &counts->parts[0] : NULL, l->counts.p, 0, 0 };
    TNF_TRY(number_at(&l->offsets, 0, &from, e));
    for (uint64_t i = 0; i < strings->shape[0]; i++, from = to) {
        TNF_TRY(number_at(&l->offsets, i + 1, &to, e));
        TNF_TRY(number_at(&l->counts, i, &count, e));
        TNF_TRY(put_entry(l, from, to, count, type, e));
    }
    return flush_listing(l, e);
}

static tnf_status put_dictionary(tnf_writer *w, const ft_plan *p, tnf_error *e)
{
    struct listing l = { .w = w };
    uint8_t *room = tnf_arena_raw(w->scratch, 4 * WINDOW);
    if (!room)
        return tnf_arena_fail(w->scratch, "the dictionary", e);
    l.offsets.p = room;
    l.bytes.p = room + WINDOW;
    l.counts.p = room + 2 * WINDOW;
    l.out = room + 3 * WINDOW;
    TNF_TRY(put_list(&l, p->vocab, p->counts, 0, e));
    TNF_TRY(put_list(&l, p->labels, p->label_counts, 1, e));
    return p->pruneidx ? tnf_put_data(w, &p->pruneidx->parts[0], e) : TNF_OK;
}

/* ------------------------------------------------------------------ matrices */

static tnf_status put_quantizer(tnf_writer *w, uint64_t columns, uint64_t pieces, tnf_error *e)
{
    uint32_t each = (uint32_t)(columns / pieces);
    TNF_TRY(tnf_put_u32(w, (uint32_t)columns, e));
    TNF_TRY(tnf_put_u32(w, (uint32_t)pieces, e));
    TNF_TRY(tnf_put_u32(w, each, e));
    return tnf_put_u32(w, each, e);
}

static tnf_status put_quantized(tnf_writer *w, const ft_matrix *m, tnf_error *e)
{
    const tnf_object *o = m->object;
    const tnf_part *codes = tnf_object_part(o, "codes");
    TNF_TRY(tnf_put_u8(w, m->norm_codes != NULL, e));
    TNF_TRY(tnf_put_u64(w, o->shape[0], e));
    TNF_TRY(tnf_put_u64(w, o->shape[1], e));
    TNF_TRY(tnf_put_u32(w, (uint32_t)codes->nbytes, e));
    TNF_TRY(tnf_put_data(w, codes, e));
    TNF_TRY(put_quantizer(w, o->shape[1], codes->nbytes / o->shape[0], e));
    TNF_TRY(tnf_put_data(w, tnf_object_part(o, "codebooks"), e));
    if (!m->norm_codes)
        return TNF_OK;
    TNF_TRY(tnf_put_data(w, &m->norm_codes->parts[0], e));
    TNF_TRY(put_quantizer(w, 1, 1, e));
    return tnf_put_data(w, &m->norm_book->parts[0], e);
}

static tnf_status put_matrix(tnf_writer *w, const ft_matrix *m, tnf_error *e)
{
    TNF_TRY(tnf_put_u8(w, ft_is_quantized(m), e));
    if (m->opaque)
        return tnf_put_data(w, &m->opaque->parts[0], e);
    if (ft_is_quantized(m))
        return put_quantized(w, m, e);
    TNF_TRY(tnf_put_u64(w, m->rows, e));
    TNF_TRY(tnf_put_u64(w, m->columns, e));
    return m->object ? tnf_put_data(w, &m->object->parts[0], e) : TNF_OK;
}

tnf_status tnf_ft_write(tnf_writer *w, tnf_error *e)
{
    ft_plan p;
    const tnf_catalog *c = w->catalog;
    TNF_TRY(tnf_ft_plan_make(&p, c, NULL, e));
    if (!p.input.object && !p.input.opaque) /* everything was dropped: write no buckets either */
        p.args[FT_BUCKET] = p.args[FT_MINN] = p.args[FT_MAXN] = 0;
    TNF_TRY(put_head(w, &p, e));
    TNF_TRY(put_dictionary(w, &p, e));
    TNF_TRY(put_matrix(w, &p.input, e));
    if (!p.output.object) /* empty, but gensim checks its number of columns */
        p.output.columns = p.output.opaque ? p.output.columns : p.input.columns;
    if (!p.ends_early)
        TNF_TRY(put_matrix(w, &p.output, e));
    for (size_t i = 0; i < c->nextras; i++)
        TNF_TRY(tnf_put_data(w, &c->extras[i].bytes, e));
    return TNF_OK;
}
