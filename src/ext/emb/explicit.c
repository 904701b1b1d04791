/* SPDX-License-Identifier: MIT */
/* Converts buckets to explicit n-grams: every n-gram of every word gets a place in a list, with the
 * row of its bucket. Buckets that no word uses are removed.
 *
 *   rows     words … | bucket 0 | bucket 1 | …        words … | used first | used next | …
 *   n-grams  hashed to a bucket                       "<te" 0, "tes" 1, "est" 0 …
 *
 * N-grams are in the order of the words, and rows are numbered in the order of their first use, so
 * the result is always the same.
 */
#include "ext/emb/change.h"
#include "ext/emb/convert.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"

#include <string.h>

typedef struct listing {
    tnf_emb *emb;
    tnf_hash seen;
    tnf_buf bytes, offsets; /* of the n-grams; offsets are little-endian u64, one more than n */
    tnf_buf index;          /* u64: the new row of each n-gram, counted after the words */
    tnf_buf used;           /* u64: the old row of each new row, counted after the words */
    uint32_t *renumbered;   /* by bucket: its new number + 1; 0: unused */
    uint64_t n, nused;
} listing;

static uint64_t number_at(const tnf_buf *b, uint64_t i)
{
    return tnf_le64(b->p + 8 * i);
}

static tnf_str ngram_at(const void *ctx, uint32_t i)
{
    const listing *l = ctx;
    uint64_t from = number_at(&l->offsets, i);
    return (tnf_str) { (const char *)l->bytes.p + from,
                       (size_t)(number_at(&l->offsets, (uint64_t)i + 1) - from) };
}

static tnf_status check_buffers(const listing *l, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(&l->bytes, "the n-grams", e));
    TNF_TRY(tnf_buf_status(&l->offsets, "the list of n-grams", e));
    TNF_TRY(tnf_buf_status(&l->index, "the rows of n-grams", e));
    return tnf_buf_status(&l->used, "the rows of n-grams", e);
}

/* Appends the n-gram first, since the table reads names by number; a duplicate is removed again. */
static tnf_status note_ngram(void *ctx, tnf_str ngram, uint64_t row, tnf_error *e)
{
    listing *l = ctx;
    uint32_t previous;
    if (row == TNF_NO_ROW) /* its bucket was pruned */
        return TNF_OK;
    if (l->n >= TNF_HASH_NONE - 1)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the words have too many different n-grams: a list holds at most %u",
                        TNF_HASH_NONE - 1);
    tnf_buf_put(&l->bytes, ngram.p, ngram.n);
    tnf_buf_u64(&l->offsets, l->bytes.n);
    TNF_TRY(check_buffers(l, e));
    if (!tnf_hash_add(&l->seen, (uint32_t)l->n, false, &previous))
        return tnf_no_memory("a table of n-grams", e);
    if (previous != TNF_HASH_NONE) {
        l->bytes.n -= ngram.n;
        l->offsets.n -= sizeof(uint64_t);
        return TNF_OK;
    }
    uint64_t bucket = row - l->emb->info.words;
    if (l->renumbered[bucket] == 0) {
        l->renumbered[bucket] = (uint32_t)++l->nused;
        tnf_buf_u64(&l->used, bucket);
    }
    tnf_buf_u64(&l->index, l->renumbered[bucket] - 1);
    l->n++;
    return check_buffers(l, e);
}

static tnf_status list_all(listing *l, tnf_error *e)
{
    tnf_emb *emb = l->emb;
    uint64_t size;
    if (emb->info.buckets >= UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the file has %llu buckets, but at most %u can be made explicit",
                        (unsigned long long)emb->info.buckets, UINT32_MAX - 1);
    if (!tnf_ckd_mul(&size, emb->info.buckets, sizeof *l->renumbered) || size > emb->memory)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the table of buckets needs %llu bytes of memory, but only %llu are left; "
                        "raise the limit 'memory' if you trust the file",
                        (unsigned long long)size, (unsigned long long)emb->memory);
    l->renumbered = tnf_alloc0(&emb->alloc, (size_t)size);
    if (!l->renumbered)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %llu buckets",
                        (unsigned long long)emb->info.buckets);
    tnf_buf_u64(&l->offsets, 0);
    TNF_TRY(check_buffers(l, e));
    tnf_ngram_rule rule = emb->rule;
    if (emb->info.composed) /* finalfusion's tools look up n-grams by this rule */
        rule = tnf_fold_rule(emb, TNF_FOLD_FINALFUSION);
    for (uint64_t i = 0; i < emb->info.words; i++)
        TNF_TRY(tnf_emb_ngrams_by(emb, &rule, tnf_emb_word(emb, i), note_ngram, l, e));
    return TNF_OK;
}

/* ------------------------------------------------------------------------- the rows */

/* The old row of the i-th new row. */
static uint64_t old_row(const tnf_emb *emb, const uint64_t *used, uint64_t i)
{
    return i < emb->info.words ? i : emb->info.words + used[i - emb->info.words];
}

typedef struct choosing {
    const tnf_emb *emb;
    const uint64_t *used;
    uint64_t row_bytes;
} choosing;

/* A tnf_fetch_fn for bytes of the remaining rows. */
static tnf_status fetch_rows(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const choosing *c = ctx;
    uint8_t *to = dst;
    (void)e;
    while (n > 0) {
        uint64_t row = offset / c->row_bytes, within = offset % c->row_bytes;
        uint64_t there = c->row_bytes - within;
        size_t now = there < n ? (size_t)there : n;
        const uint8_t *from = (const uint8_t *)c->emb->rows.data.p +
                              old_row(c->emb, c->used, row) * c->row_bytes + within;
        memcpy(to, from, now);
        to += now;
        offset += now;
        n -= now;
    }
    return TNF_OK;
}

static tnf_status add_dense(tnf_builder *builder, tnf_emb *emb, const uint64_t *used, uint64_t rows,
                            tnf_error *e)
{
    uint64_t shape[] = { rows, emb->info.dims };
    const tnf_type *type = emb->rows.type;
    choosing *c = tnf_arena_alloc(&emb->arena, sizeof *c);
    if (!c)
        return tnf_arena_fail(&emb->arena, "rows", e);
    if (type->bits % 8 != 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "rows of %s cannot be selected",
                        type->id);
    *c = (choosing) { emb, used, (uint64_t)emb->info.dims * (type->bits / 8) };
    return tnf_builder_add_stream(builder, "embeddings", type, 2, shape, fetch_rows, c, e);
}

/* Codes and norms have few bytes per row, so they are selected in memory. */
static tnf_status add_quantized(tnf_builder *builder, tnf_emb *emb, const uint64_t *used,
                                uint64_t rows, tnf_error *e)
{
    const tnf_rows *r = &emb->rows;
    const float *norms = r->norms.p;
    uint64_t shape[] = { rows, r->d };
    uint8_t *codes = tnf_arena_array(&emb->arena, rows, r->m);
    float *picked = norms ? tnf_arena_array(&emb->arena, rows, sizeof *picked) : NULL;
    if (rows && (!codes || (norms && !picked)))
        return tnf_arena_fail(&emb->arena, "codes", e);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t old = old_row(emb, used, i);
        memcpy(codes + i * r->m, (const uint8_t *)r->codes.p + old * r->m, r->m);
        if (picked)
            picked[i] = norms[old];
    }
    if (picked)
        tnf_swap_le(picked, rows, sizeof *picked);
    const tnf_object *before = emb->info.embeddings;
    tnf_part parts[4];
    uint16_t n = 0;
    for (uint16_t i = 0; i < before->nparts && n < 4; i++) {
        tnf_part p = before->parts[i];
        bool is_codes = strcmp(p.role, "codes") == 0, is_norms = strcmp(p.role, "norms") == 0;
        if (is_codes || is_norms) {
            uint64_t bytes = is_codes ? rows * r->m : rows * sizeof(float);
            p = (tnf_part) { .role = p.role,
                             .type = p.type,
                             .payload = TNF_MEMORY,
                             .memory = is_codes ? (const void *)codes : (const void *)picked,
                             .stored = bytes,
                             .nbytes = bytes };
        }
        parts[n++] = p;
    }
    tnf_object o = { .name = { "embeddings", strlen("embeddings") },
                     .shape = shape,
                     .rank = 2,
                     .layout = before->layout,
                     .parts = parts,
                     .nparts = n };
    return tnf_builder_add_object(builder, &o, NULL, e);
}

/* --------------------------------------------------------------------------- result */

/* Moves a buffer to the view's arena, since the builder keeps pointers to it. */
static void *keep_buffer(tnf_emb *emb, const tnf_buf *b)
{
    void *p = tnf_arena_raw(&emb->arena, b->n + 8);
    if (p && b->n > 0)
        memcpy(p, b->p, b->n);
    return p;
}

static tnf_status add_numbers(tnf_builder *builder, const listing *l, tnf_error *e)
{
    const struct {
        const char *key;
        uint64_t value;
    } all[] = { { "finalfusion.min_n", l->emb->info.min_n },
                { "finalfusion.max_n", l->emb->info.max_n },
                { "finalfusion.buckets", l->nused } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tnf_value v = tnf_value_uint(all[i].value);
        TNF_TRY(tnf_builder_set(builder, NULL, all[i].key, &v, e));
    }
    return tnf_emb_set_text(builder, "finalfusion.vocab", "explicit", e);
}

static tnf_status add_all(tnf_builder *builder, listing *l, tnf_error *e)
{
    tnf_emb *emb = l->emb;
    uint64_t rows = emb->info.words + l->nused, *used = keep_buffer(emb, &l->used);
    uint64_t *offsets = keep_buffer(emb, &l->offsets), *index = keep_buffer(emb, &l->index);
    void *bytes = keep_buffer(emb, &l->bytes);
    if (!used || !offsets || !index || !bytes)
        return tnf_arena_fail(&emb->arena, "n-grams", e);
    tnf_swap_le(used, l->nused, sizeof *used); /* the other buffers stay little-endian */
    TNF_TRY(tnf_builder_add_object(builder, emb->info.vocab, "vocab", e));
    TNF_TRY(tnf_emb_add_strings(builder, "ngrams", offsets, l->n, bytes, e));
    TNF_TRY(tnf_builder_add(builder, "ngrams.index", tnf_type_of(TNF_U64), 1, &l->n, index, e));
    TNF_TRY(emb->info.composed    ? tnf_emb_convert_picked(builder, emb, used, rows, e)
            : emb->info.quantized ? add_quantized(builder, emb, used, rows, e)
                                  : add_dense(builder, emb, used, rows, e));
    if (emb->norms_object)
        TNF_TRY(tnf_builder_add_object(builder, emb->norms_object, "norms", e));
    TNF_TRY(tnf_emb_keep_bare(builder, emb, e));
    return add_numbers(builder, l, e);
}

tnf_status tnf_emb_explicit(tnf_builder *builder, tnf_emb *emb, tnf_error *e)
{
    TNF_TRY(tnf_need(builder, "builder", e));
    TNF_TRY(tnf_need(emb, "emb", e));
    listing l = { .emb = emb };
    if (emb->info.subwords != TNF_SUBWORDS_BUCKET && emb->info.subwords != TNF_SUBWORDS_FASTTEXT)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "only subwords in buckets (bucket or fasttext) can be made explicit");
    if (!emb->info.vocab)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the file has no words");
    tnf_hash_init(&l.seen, &emb->alloc, ngram_at, &l);
    tnf_buf *buffers[] = { &l.bytes, &l.offsets, &l.index, &l.used };
    for (size_t i = 0; i < 4; i++)
        tnf_buf_init(buffers[i], &emb->alloc, emb->memory);
    tnf_status status = list_all(&l, e);
    if (status == TNF_OK)
        status = add_all(builder, &l, e);
    for (size_t i = 0; i < 4; i++)
        tnf_buf_free(buffers[i]);
    tnf_hash_free(&l.seen);
    if (l.renumbered)
        tnf_free(&emb->alloc, l.renumbered, (size_t)emb->info.buckets * sizeof *l.renumbered);
    return status;
}
