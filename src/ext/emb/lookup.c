/* SPDX-License-Identifier: MIT */
/* Finds rows by words and words by rows; computes the vector of a word, also from its subwords. */
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/ieee.h"
#include "ext/emb/view.h"

#include <math.h>
#include <string.h>

uint64_t tnf_emb_find(const tnf_emb *emb, tnf_str word)
{
    uint32_t row = emb && (word.p || word.n == 0) ? tnf_words_find(&emb->words, word) : TNF_NO_WORD;
    return row == TNF_NO_WORD ? TNF_NO_ROW : row;
}

tnf_status tnf_emb_need_words(const tnf_str *words, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need_array(words, n, "words", e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_need_str(words[i], "words", e));
    return TNF_OK;
}

tnf_str tnf_emb_word(const tnf_emb *emb, uint64_t row)
{
    if (!emb || !emb->info.has_words || row >= emb->info.words)
        return (tnf_str) { NULL, 0 };
    return tnf_words_at(&emb->words, row);
}

uint64_t tnf_emb_first(const tnf_emb *emb, uint64_t row)
{
    if (emb->info.duplicates == 0)
        return row;
    uint64_t first = tnf_emb_find(emb, tnf_emb_word(emb, row));
    return first == TNF_NO_ROW ? row : first;
}

int tnf_emb_compare(const void *ctx, uint64_t a, uint64_t b)
{
    const tnf_emb *emb = ctx;
    tnf_str x = tnf_emb_word(emb, a), y = tnf_emb_word(emb, b);
    size_t n = x.n < y.n ? x.n : y.n;
    int order = n ? memcmp(x.p, y.p, n) : 0;
    return order != 0 ? order : x.n < y.n ? -1 : x.n > y.n;
}

/* ------------------------------------------------------------------- subwords */

static tnf_status explicit_row(const tnf_emb *emb, tnf_str ngram, uint64_t *out, tnf_error *e)
{
    uint32_t i = tnf_words_find(&emb->grams, ngram);
    *out = TNF_NO_ROW;
    if (i == TNF_NO_WORD)
        return TNF_OK;
    uint64_t row = i;
    if (emb->gram_rows.p)
        row = tnf_le64((const uint8_t *)emb->gram_rows.p + 8 * (size_t)i);
    if (row >= emb->info.buckets)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the n-gram %s has the row %llu, but n-grams have only %llu rows",
                        TNF_QUOTED(ngram), (unsigned long long)row,
                        (unsigned long long)emb->info.buckets);
    *out = emb->info.words + row;
    return TNF_OK;
}

struct taking {
    const tnf_emb *emb;
    tnf_emb_take_fn take;
    void *ctx;
};

static tnf_status give_ngram(const struct taking *t, tnf_str ngram, uint64_t row, tnf_error *e)
{
    tnf_status status;
    TNF_CALL(status, e, t->take, t->ctx, ngram, row);
    return status;
}

static tnf_status take_floret(const struct taking *t, const tnf_ngram *g, tnf_error *e)
{
    uint64_t h[2];
    tnf_ngram_hash_murmur3(h, g->bytes.p, g->bytes.n, t->emb->seed);
    for (uint32_t i = 0; i < t->emb->hashes; i++) {
        uint64_t word = h[i / 2] >> (i % 2 ? 32 : 0) & UINT32_MAX;
        TNF_TRY(give_ngram(t, g->bytes, t->emb->info.words + word % t->emb->info.buckets, e));
    }
    return TNF_OK;
}

static tnf_status take_ngram(void *ctx, const tnf_ngram *g, tnf_error *e)
{
    const struct taking *t = ctx;
    const tnf_emb_info *info = &t->emb->info;
    uint64_t row;
    switch (info->subwords) {
    case TNF_SUBWORDS_BUCKET:
        row = info->words + tnf_ngram_hash_points(g->points, g->count) % info->buckets;
        break;
    case TNF_SUBWORDS_FASTTEXT:
        row = tnf_fasttext_row(t->emb,
                               tnf_ngram_hash_fasttext(g->bytes.p, g->bytes.n) % info->buckets);
        break;
    case TNF_SUBWORDS_EXPLICIT:
        TNF_TRY(explicit_row(t->emb, g->bytes, &row, e));
        break;
    default:
        return take_floret(t, g, e);
    }
    return give_ngram(t, g->bytes, row, e);
}

tnf_status tnf_emb_ngrams_by(const tnf_emb *emb, const tnf_ngram_rule *rule, tnf_str word,
                             tnf_emb_take_fn take, void *ctx, tnf_error *e)
{
    struct taking t = { emb, take, ctx };
    if (emb->info.subwords == TNF_SUBWORDS_NONE)
        return TNF_OK;
    return tnf_ngrams_each(rule, word, &emb->alloc, take_ngram, &t, e);
}

tnf_status tnf_emb_ngrams(const tnf_emb *emb, tnf_str word, tnf_emb_take_fn take, void *ctx,
                          tnf_error *e)
{
    TNF_TRY(tnf_need(emb, "emb", e));
    TNF_TRY(tnf_need(take, "take", e));
    return tnf_emb_ngrams_by(emb, &emb->rule, word, take, ctx, e);
}

void tnf_row_list_init(tnf_row_list *l)
{
    l->rows = l->few;
    l->n = 0;
    l->room = sizeof l->few / sizeof *l->few;
}

void tnf_row_list_free(tnf_row_list *l, const tnf_emb *emb)
{
    if (l->rows != l->few)
        tnf_free(&emb->alloc, l->rows, l->room * sizeof *l->rows);
}

static tnf_status grow_list(tnf_row_list *l, const tnf_emb *emb, tnf_error *e)
{
    size_t room = 2 * l->room; /* a word has at most 4 * TNF_MAX_NGRAMS rows */
    uint64_t *rows = tnf_alloc(&emb->alloc, room * sizeof *rows);
    if (!rows)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu subwords", room);
    memcpy(rows, l->rows, l->n * sizeof *rows);
    tnf_row_list_free(l, emb);
    l->rows = rows;
    l->room = room;
    return TNF_OK;
}

struct listing {
    const tnf_emb *emb;
    tnf_row_list *list;
};

tnf_status tnf_row_list_add(tnf_row_list *l, const tnf_emb *emb, uint64_t row, tnf_error *e)
{
    if (l->n == l->room)
        TNF_TRY(grow_list(l, emb, e));
    l->rows[l->n++] = row;
    return TNF_OK;
}

static tnf_status note_row(void *ctx, tnf_str ngram, uint64_t row, tnf_error *e)
{
    const struct listing *x = ctx;
    (void)ngram;
    return row == TNF_NO_ROW ? TNF_OK : tnf_row_list_add(x->list, x->emb, row, e);
}

tnf_status tnf_emb_subword_rows(const tnf_emb *emb, const tnf_ngram_rule *rule, tnf_str word,
                                tnf_row_list *out, tnf_error *e)
{
    struct listing x = { emb, out };
    return tnf_emb_ngrams_by(emb, rule ? rule : &emb->rule, word, note_row, &x, e);
}

/* -------------------------------------------------------------------- vectors */

tnf_status tnf_emb_row(float *dst, const tnf_emb *emb, uint64_t row, tnf_error *e)
{
    TNF_TRY(tnf_need(emb, "emb", e));
    uint32_t mode = tnf_enter_ieee();
    tnf_status status = tnf_rows_get(&emb->copied, row, dst, e);
    tnf_leave_ieee(mode);
    return status;
}

/* The length, in double precision if squares of floats would underflow or overflow. */
static float careful_length(const float *vector, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += (double)vector[i] * vector[i];
    return (float)sqrt(sum);
}

float tnf_emb_normalise(const tnf_emb *emb, float *vector)
{
    size_t d = emb->info.dims;
    float square, length;
    emb->kernels->squares(vector, 1, d, &square);
    length = square > 1e-30F && square < 1e30F ? sqrtf(square) : careful_length(vector, d);
    if (length != 0)
        for (size_t i = 0; i < d; i++)
            vector[i] /= length;
    return length;
}

static tnf_status make_unknown(const tnf_emb *emb, tnf_str word, float *dst, tnf_emb_found *found,
                               tnf_error *e)
{
    tnf_row_list list;
    tnf_row_list_init(&list);
    tnf_status status = tnf_emb_subword_rows(emb, NULL, word, &list, e);
    if (status == TNF_OK && list.n > 0)
        status = tnf_rows_sum(&emb->copied, list.rows, list.n, dst, e);
    if (status == TNF_OK && list.n > 0) {
        found->found = true;
        found->norm = 1;
        if (emb->info.composed)
            tnf_fold_mean(dst, emb->info.dims, list.n);
        else
            found->norm = tnf_emb_normalise(emb, dst);
    }
    tnf_row_list_free(&list, emb);
    return status;
}

static tnf_status known_word(const tnf_emb *emb, uint64_t row, float *dst, tnf_error *e)
{
    tnf_row_list list;
    if (!emb->info.composed)
        return tnf_rows_get(&emb->copied, row, dst, e);
    tnf_row_list_init(&list);
    tnf_status status = tnf_fold_copied(emb, row, &list, dst, e);
    tnf_row_list_free(&list, emb);
    return status;
}

static tnf_status vector_of(const tnf_emb *emb, tnf_str word, float *dst, tnf_emb_found *found,
                            tnf_error *e)
{
    *found = (tnf_emb_found) { .row = tnf_emb_find(emb, word) };
    if (found->row == TNF_NO_ROW) {
        memset(dst, 0, emb->info.dims * sizeof *dst);
        return make_unknown(emb, word, dst, found, e);
    }
    found->known = found->found = true;
    found->norm = emb->norms ? emb->norms[found->row] : 1;
    return known_word(emb, found->row, dst, e);
}

tnf_status tnf_emb_vectors(float *dst, tnf_emb_found *found, const tnf_emb *emb,
                           const tnf_str *words, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need(emb, "emb", e));
    TNF_TRY(tnf_emb_need_words(words, n, e));
    uint32_t mode = tnf_enter_ieee();
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < n && status == TNF_OK; i++) {
        tnf_emb_found ignored;
        status = vector_of(emb, words[i], dst + i * emb->info.dims, found ? &found[i] : &ignored,
                           e);
    }
    tnf_leave_ieee(mode);
    return status;
}
