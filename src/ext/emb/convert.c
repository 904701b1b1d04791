/* SPDX-License-Identifier: MIT */
/* Changes vectors during a conversion, a few rows at a time while they are saved.
 *
 *   fastText model   row of a word             ─ fold ─>    mean of it and of its n-grams' rows
 *                    row of a word             <─ unfold ─  vector × norm × (n + 1) - their sum
 *   any              vector                    ─ normalize ─>   vector / length, and the length
 *                    vector × norm             <─ unnormalize ─ vector, and its norm
 *
 * Rows of buckets do not change. Lengths are stored while the rows are made. If they are needed
 * earlier, the rows are made for them.
 */
#include "ext/emb/convert.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/made_rows.h"
#include "base/pool.h"
#include "base/sized.h"
#include "base/str.h"
#include "base/unit.h"

#define BLOCK ((size_t)8 << 20) /* bytes of rows that are made at once */
#define TASK  128u              /* rows per task of a thread */

typedef struct converting {
    const tnf_emb *emb;
    const uint64_t *used; /* the buckets of the rows after the words; NULL: all, in order */
    tnf_emb_change how;
    tnf_ngram_rule rule; /* for folding, or for unfolding */
    size_t room;         /* rows in a block */
    tnf_made_rows made;  /* with norms of words, if these are normalised */
    float *spare;        /* room x dims, like made.rows */
    uint64_t all;        /* rows of the new matrix */
} converting;

/* ------------------------------------------------------------------------- a row */

/* Computes the word's own row from its vector. */
static tnf_status unfold_row(const converting *c, uint64_t row, tnf_row_list *list, float *dst,
                             float *sum, tnf_error *e)
{
    const tnf_emb *emb = c->emb;
    list->n = 0;
    TNF_TRY(tnf_emb_subword_rows(emb, &c->rule, tnf_emb_word(emb, row), list, e));
    if (list->n == 0)
        return TNF_OK;
    TNF_TRY(tnf_rows_sum(&emb->rows, list->rows, list->n, sum, e));
    for (size_t i = 0; i < emb->info.dims; i++)
        dst[i] = (float)((double)dst[i] * (double)(list->n + 1) - (double)sum[i]);
    return TNF_OK;
}

static tnf_status make_row(converting *c, uint64_t row, tnf_row_list *list, float *dst,
                           float *spare, tnf_error *e)
{
    const tnf_emb *emb = c->emb;
    if (row >= emb->info.words) {
        uint64_t bucket = row - emb->info.words;
        return tnf_rows_get(&emb->rows, emb->info.words + (c->used ? c->used[bucket] : bucket), dst,
                            e);
    }
    bool folds = c->how.fold != TNF_FOLD_NONE && emb->info.composed;
    bool scales = (c->how.unnormalize || c->how.unfold != TNF_FOLD_NONE) && emb->norms;
    TNF_TRY(folds ? tnf_fold_row(emb, &c->rule, row, list, dst, e)
                  : tnf_rows_get(&emb->rows, row, dst, e));
    for (size_t i = 0; scales && i < emb->info.dims; i++)
        dst[i] *= emb->norms[row];
    if (c->how.unfold != TNF_FOLD_NONE && !emb->info.composed)
        TNF_TRY(unfold_row(c, row, list, dst, spare, e));
    if (c->made.norms) {
        float length = tnf_unit_row(dst, emb->info.dims);
        c->made.norms[row] = emb->norms && !scales ? emb->norms[row] * length : length;
    }
    return TNF_OK;
}

static tnf_status make_some(void *ctx, size_t task, tnf_error *e)
{
    converting *c = ctx;
    size_t d = c->emb->info.dims, from = task * TASK,
           to = c->made.n - from < TASK ? c->made.n : from + TASK;
    tnf_row_list list;
    tnf_status status = TNF_OK;
    tnf_row_list_init(&list);
    for (size_t i = from; status == TNF_OK && i < to; i++)
        status = make_row(c, c->made.first + i, &list, c->made.rows + i * d, c->spare + i * d, e);
    tnf_row_list_free(&list, c->emb);
    return status;
}

static tnf_status make_block(void *ctx, uint64_t first, tnf_error *e)
{
    converting *c = ctx;
    unsigned threads = tnf_pool_threads(c->how.threads);
    c->made.first = first;
    c->made.n = c->all - first < c->room ? (size_t)(c->all - first) : c->room;
    tnf_status status = tnf_pool_run(threads, (c->made.n + TASK - 1) / TASK, make_some, c, e);
    if (status != TNF_OK)
        c->made.n = 0;
    else
        tnf_made_rows_done(&c->made);
    return status;
}

/* A tnf_fetch_fn for bytes of the new matrix. */
static tnf_status fetch_rows(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    converting *c = ctx;
    return tnf_made_rows_fetch(&c->made, c->emb->info.dims, make_block, c, offset, dst, n, e);
}

/* A tnf_fetch_fn for lengths. If the rows have not been made yet, they are made here. */
static tnf_status fetch_norms(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    converting *c = ctx;
    return tnf_made_norms_fetch(&c->made, make_block, c, offset, dst, n, e);
}

/* ----------------------------------------------------------------------- tensors */

/* Does the file have rows that belong to no n-gram of characters, or to an unknown one? They are
 * left out, but never silently: saving refuses the tensors that go with them (pruneidx, labels). */
static bool drops_rows(const tnf_emb *emb)
{
    return emb->pruned.there ||
           (emb->model && !emb->info.composed && tnf_find(emb->file, "labels") != NULL);
}

static bool changes_rows(const tnf_emb *emb, const tnf_emb_change *how)
{
    bool folds = emb->info.composed && how->fold != TNF_FOLD_NONE;
    bool takes_apart = !emb->info.composed && how->unfold != TNF_FOLD_NONE &&
                       (emb->norms || emb->info.subwords == TNF_SUBWORDS_FASTTEXT);
    bool cuts = drops_rows(emb) && how->fold != TNF_FOLD_NONE && emb->info.words < emb->info.rows;
    return folds || takes_apart || cuts || how->normalize || (how->unnormalize && emb->norms);
}

static tnf_status check_change(const tnf_emb *emb, const tnf_emb_change *how, tnf_error *e)
{
    bool folded = emb->info.composed && how->fold != TNF_FOLD_NONE;
    if (how->normalize && (how->unnormalize || how->unfold != TNF_FOLD_NONE))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "vectors cannot be both normalised and multiplied by their norms");
    if (emb->info.composed && !folded && (how->normalize || how->unnormalize))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "rows of a fastText model can be normalised only after they are folded "
                        "with their n-grams");
    if (emb->info.quantized && !folded)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the vectors are quantized; reconstruct them first");
    if (emb->rows.kind == TNF_ROWS_WIDE)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "vectors of %s cannot be changed; cast them to f32 first",
                        emb->rows.type->id);
    return TNF_OK;
}

static tnf_status new_converting(converting **out, tnf_emb *emb, const tnf_emb_change *how,
                                 tnf_error *e)
{
    size_t row = emb->info.dims * sizeof(float);
    uint64_t bytes;
    converting *c = tnf_arena_alloc(&emb->arena, sizeof *c);
    if (!c)
        return tnf_arena_fail(&emb->arena, "vectors", e);
    *c = (converting) { .emb = emb, .how = *how, .all = emb->rows.n };
    c->rule = tnf_fold_rule(emb, how->fold != TNF_FOLD_NONE ? how->fold : how->unfold);
    if (drops_rows(emb))
        c->all = emb->info.words;
    c->room = BLOCK / row ? BLOCK / row : 1;
    c->room = c->room < c->all ? c->room : (size_t)c->all + 1;
    if (!tnf_ckd_mul(&bytes, c->room, row))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the rows are too long: a row has %zu bytes",
                        row);
    c->made.rows = tnf_arena_raw(&emb->arena, bytes);
    c->spare = tnf_arena_raw(&emb->arena, bytes);
    if (how->normalize)
        c->made.norms = tnf_arena_array(&emb->arena, emb->info.words + 1, sizeof *c->made.norms);
    if (!c->made.rows || !c->spare || (how->normalize && !c->made.norms))
        return tnf_arena_fail(&emb->arena, "vectors", e);
    *out = c;
    return TNF_OK;
}

static tnf_status add_matrix(tnf_builder *builder, tnf_emb *emb, const tnf_emb_change *how,
                             converting **out, tnf_error *e)
{
    converting *c;
    const tnf_object *matrix = emb->info.embeddings;
    if (!changes_rows(emb, how))
        return tnf_builder_add_object(builder, matrix, NULL, e);
    TNF_TRY(check_change(emb, how, e));
    TNF_TRY(new_converting(&c, emb, how, e));
    *out = c;
    uint64_t shape[] = { c->all, emb->info.dims };
    return tnf_builder_add_stream_n(builder, matrix->name, tnf_type_of(TNF_F32), 2, shape,
                                    fetch_rows, c, e);
}

bool tnf_emb_convert_drops(const tnf_emb *emb, const tnf_emb_change *how, const tnf_object *o)
{
    bool folds = emb->model && how->fold != TNF_FOLD_NONE;
    if (emb->norms_object == o)
        return how->normalize || how->unnormalize || how->unfold != TNF_FOLD_NONE;
    /* these belong to a quantized matrix, which becomes a dense one */
    return folds && (tnf_str_is(o->name, "embeddings.norm_codes") ||
                     tnf_str_is(o->name, "embeddings.norm_codebook"));
}

/* A tnf_fetch_fn for an array of 64-bit integers that are all 1. */
static tnf_status fetch_ones(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint8_t *to = dst;
    (void)ctx;
    (void)e;
    for (size_t i = 0; i < n; i++)
        to[i] = (offset + i) % 8 == 0;
    return TNF_OK;
}

/* Adds counts of 1, since gensim does not load words with the count 0. */
static tnf_status add_counts(tnf_builder *builder, const tnf_emb *emb, const tnf_emb_change *how,
                             tnf_error *e)
{
    if (!tnf_becomes_model(emb, how) || emb->model || tnf_find(emb->file, "counts"))
        return TNF_OK;
    return tnf_builder_add_stream(builder, "counts", tnf_type_of(TNF_I64), 1, &emb->info.words,
                                  fetch_ones, NULL, e);
}

tnf_status tnf_emb_convert_picked(tnf_builder *builder, tnf_emb *emb, const uint64_t *used,
                                  uint64_t rows, tnf_error *e)
{
    const tnf_emb_change how = { .size = sizeof how, .fold = TNF_FOLD_FINALFUSION };
    uint64_t shape[] = { rows, emb->info.dims };
    converting *c;
    TNF_TRY(new_converting(&c, emb, &how, e));
    c->used = used;
    c->all = rows;
    return tnf_builder_add_stream(builder, "embeddings", tnf_type_of(TNF_F32), 2, shape, fetch_rows,
                                  c, e);
}

tnf_status tnf_emb_convert(tnf_builder *builder, tnf_emb *emb, const tnf_emb_change *change,
                           tnf_error *e)
{
    TNF_TRY(tnf_need(builder, "builder", e));
    TNF_TRY(tnf_need(emb, "emb", e));
    tnf_emb_change how;
    converting *c = NULL;
    const tnf_object *o;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_emb_change, &how, change, e));
    TNF_TRY(tnf_check_choice((unsigned)how.fold, TNF_FOLD_FINALFUSION, "fold", e));
    TNF_TRY(tnf_check_choice((unsigned)how.unfold, TNF_FOLD_FINALFUSION, "unfold", e));
    for (size_t i = 0; (o = tnf_at(emb->file, i)); i++) {
        if (o == emb->info.embeddings)
            TNF_TRY(add_matrix(builder, emb, &how, &c, e));
        else if (!tnf_emb_convert_drops(emb, &how, o))
            TNF_TRY(tnf_builder_add_object(builder, o, NULL, e));
    }
    if (c && c->made.norms)
        TNF_TRY(tnf_builder_add_stream(builder, "norms", tnf_type_of(TNF_F32), 1, &emb->info.words,
                                       fetch_norms, c, e));
    TNF_TRY(add_counts(builder, emb, &how, e));
    const tnf_info *info = tnf_file_info(emb->file);
    for (size_t i = 0; i < info->nextras; i++)
        TNF_TRY(tnf_builder_add_extra(builder, &info->extras[i], e));
    return tnf_emb_convert_attrs(builder, emb, &how, e);
}

const char *tnf_emb_convert_reason(const tnf_emb_info *info, const tnf_emb_change *how)
{
    if (info->composed && how->fold != TNF_FOLD_NONE)
        return how->normalize ? "rows of words are combined with their n-grams to vectors of "
                                "length 1"
                              : "rows of words are combined with their n-grams to vectors; "
                                "--fold=none keeps the rows";
    if (!info->composed && how->unfold != TNF_FOLD_NONE &&
        (info->subwords == TNF_SUBWORDS_FASTTEXT || info->has_norms))
        return "rows are multiplied by their norms, and n-grams are removed from the rows of "
               "words, as in fastText";
    if (how->normalize)
        return "vectors of words are divided by their lengths, which are kept as norms";
    return how->unnormalize && info->has_norms ? "vectors of words are multiplied by their norms"
                                               : NULL;
}
