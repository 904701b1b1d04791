/* SPDX-License-Identifier: MIT */
/* Opens a view: finds the tensors for the matrix, the words, the norms and the n-grams of a file,
 * and checks that they fit together.
 *
 *   row   0 … words-1    words … rows-1
 *         of words       of subwords
 */
#include "ext/emb/view.h"

#include "base/ckd.h"
#include "base/error.h"
#include "base/ieee.h"
#include "base/sized.h"
#include "base/str.h"

#include <string.h>

#define GROWTH 4u

/* ---------------------------------------------------------------------- roles */

static bool has_role(const tnf_object *o, const char *role)
{
    return tnf_value_is(tnf_value_get(o->attrs, "tenfold.role"), role);
}

static bool is_strings(const tnf_object *o)
{
    return o->layout && strcmp(tnf_layout_id(o->layout), "strings/1") == 0;
}

/* Finds a tensor by its role attribute, else by the first of two names that exists. */
static const tnf_object *by_role(const tnf_file *file, const char *role, const char *other,
                                 bool strings)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++)
        if (has_role(o, role) && is_strings(o) == strings)
            return o;
    o = tnf_find(file, role);
    if (!o || is_strings(o) != strings)
        o = other ? tnf_find(file, other) : NULL;
    return o && is_strings(o) == strings ? o : NULL;
}

/* In a file with a single matrix, the name does not matter. */
static const tnf_object *only_matrix(const tnf_file *file)
{
    const tnf_object *o, *found = NULL;
    for (size_t i = 0; (o = tnf_at(file, i)); i++)
        if (o->rank == 2 && !is_strings(o)) {
            if (found)
                return NULL;
            found = o;
        }
    return found;
}

/* `bytes` is the length of the name, or 0. */
static tnf_status by_name(const tnf_object **out, const tnf_file *file, const char *name,
                          size_t bytes, tnf_error *e)
{
    const tnf_str whole = { name, bytes ? bytes : strlen(name) };
    *out = tnf_find_n(file, whole.p, whole.n);
    if (*out)
        return TNF_OK;
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no tensor %s", TNF_QUOTED(whole));
}

static tnf_status find_objects(tnf_emb *emb, const tnf_emb_options *o, tnf_error *e)
{
    emb->info.embeddings = by_role(emb->file, "embeddings", "points", false);
    if (!emb->info.embeddings && !tnf_find(emb->file, "embeddings.quantized"))
        emb->info.embeddings = only_matrix(emb->file);
    if (o->embeddings)
        TNF_TRY(by_name(&emb->info.embeddings, emb->file, o->embeddings, o->embeddings_bytes, e));
    emb->info.vocab = by_role(emb->file, "vocab", "appdata", true);
    if (!emb->info.vocab)
        emb->info.vocab = by_role(emb->file, "appdata", NULL, true);
    if (o->vocab)
        TNF_TRY(by_name(&emb->info.vocab, emb->file, o->vocab, o->vocab_bytes, e));
    if (!emb->info.embeddings && tnf_find(emb->file, "embeddings.quantized"))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the last piece of the quantized fastText model is shorter than the "
                        "others, so its vectors cannot be computed");
    if (!emb->info.embeddings)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        "no tensor has the name 'embeddings' or 'points', and there is not "
                        "exactly one matrix: give the name of the matrix of vectors");
    if (emb->info.vocab && !is_strings(emb->info.vocab))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is not a tensor of strings",
                        TNF_QUOTED(emb->info.vocab->name));
    return TNF_OK;
}

/* ------------------------------------------------------------------- subwords */

static bool get_uint(const tnf_file *file, const char *key, uint64_t max, uint64_t *out)
{
    const tnf_value *v = tnf_file_attr(file, key);
    if (v && v->kind == TNF_UINT)
        *out = v->as.u;
    else if (v && v->kind == TNF_INT && v->as.i >= 0)
        *out = (uint64_t)v->as.i;
    else
        return false;
    return *out <= max;
}

static tnf_str get_text(const tnf_file *file, const char *key, const char *fallback)
{
    tnf_str text = tnf_value_chars(tnf_file_attr(file, key));
    return text.p ? text : (tnf_str) { fallback, strlen(fallback) };
}

static tnf_subwords kind_of(const tnf_file *file)
{
    static const char *const names[] = { "none", "bucket", "fasttext", "explicit", "floret" };
    tnf_str kind = get_text(file, "finalfusion.vocab", "simple");
    for (unsigned i = 1; i < sizeof names / sizeof *names; i++)
        if (tnf_str_is(kind, names[i]))
            return (tnf_subwords)i;
    return TNF_SUBWORDS_NONE;
}

static tnf_status bad_attrs(tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                    "the attributes of the subwords (finalfusion.min_n, max_n, buckets …) are "
                    "missing or invalid");
}

static tnf_status open_floret(tnf_emb *emb, tnf_error *e)
{
    uint64_t hashes, seed;
    if (!get_uint(emb->file, "finalfusion.hashes", TNF_MAX_HASHES, &hashes) || hashes == 0 ||
        !get_uint(emb->file, "finalfusion.seed", UINT32_MAX, &seed))
        return bad_attrs(e);
    emb->hashes = (uint32_t)hashes;
    emb->seed = (uint32_t)seed;
    emb->rule.whole = true;
    emb->rule.begin = get_text(emb->file, "finalfusion.bow", "<");
    emb->rule.end = get_text(emb->file, "finalfusion.eow", ">");
    return TNF_OK;
}

/* Opens the n-grams of an explicit list. Their rows are in a tensor, or are numbered in order. */
static tnf_status open_ngrams(tnf_emb *emb, const tnf_emb_options *o, tnf_error *e)
{
    const tnf_object *grams = by_role(emb->file, "ngrams", NULL, true);
    const tnf_object *rows = tnf_find(emb->file, "ngrams.index");
    if (!grams)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the list of n-grams is missing");
    TNF_TRY(tnf_words_open(&emb->grams, grams, &emb->alloc, emb->memory, e));
    TNF_TRY(tnf_words_index(&emb->grams, o->threads, emb->memory, e));
    if (!rows)
        return TNF_OK;
    const tnf_part *data = tnf_object_part(rows, "data");
    if (!data || data->type != tnf_type_of(TNF_U64) || data->nbytes / 8 != emb->grams.s.count)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "'ngrams.index' does not have one u64 for each n-gram");
    emb->gram_rows_count = data->nbytes / 8;
    return tnf_lent_read(&emb->gram_rows, data, &emb->alloc, &emb->memory, e);
}

static tnf_status open_subwords(tnf_emb *emb, const tnf_emb_options *o, tnf_error *e)
{
    tnf_emb_info *i = &emb->info;
    uint64_t min_n, max_n;
    emb->model = tnf_emb_is_model(emb->file);
    if (emb->model)
        return tnf_fasttext_open(emb, e);
    i->subwords = kind_of(emb->file);
    if (i->subwords == TNF_SUBWORDS_NONE)
        return TNF_OK;
    if (!get_uint(emb->file, "finalfusion.min_n", UINT32_MAX, &min_n) || min_n == 0 ||
        !get_uint(emb->file, "finalfusion.max_n", UINT32_MAX, &max_n) || max_n < min_n)
        return bad_attrs(e);
    i->min_n = (uint32_t)min_n;
    i->max_n = (uint32_t)max_n;
    emb->rule = (tnf_ngram_rule) {
        .min_n = i->min_n, .max_n = i->max_n, .begin = { "<", 1 }, .end = { ">", 1 }
    };
    if (i->subwords == TNF_SUBWORDS_EXPLICIT) {
        i->buckets = i->rows - i->words;
        return open_ngrams(emb, o, e);
    }
    if (!get_uint(emb->file, "finalfusion.buckets", UINT64_MAX, &i->buckets) || i->buckets == 0)
        return bad_attrs(e);
    if (i->buckets > i->rows - i->words)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the numbers of words (%llu) and of buckets (%llu) are together larger "
                        "than the number of rows (%llu)",
                        (unsigned long long)i->words, (unsigned long long)i->buckets,
                        (unsigned long long)i->rows);
    return i->subwords == TNF_SUBWORDS_FLORET ? open_floret(emb, e) : TNF_OK;
}

/* ----------------------------------------------------------------------- open */

static tnf_status open_words(tnf_emb *emb, const tnf_emb_options *o, tnf_error *e)
{
    tnf_emb_info *i = &emb->info;
    if (!i->vocab)
        return TNF_OK;
    TNF_TRY(tnf_words_open(&emb->words, i->vocab, &emb->alloc, emb->memory, e));
    i->words = emb->words.s.count;
    i->has_words = true;
    if (i->words > i->rows)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the number of words, %llu, is larger than the number of rows, %llu",
                        (unsigned long long)i->words, (unsigned long long)i->rows);
    if (o->no_index)
        return TNF_OK;
    TNF_TRY(tnf_words_index(&emb->words, o->threads, emb->memory, e));
    i->duplicates = emb->words.duplicates;
    i->first_duplicate = emb->words.first_duplicate;
    return TNF_OK;
}

/* Norms are few and may have any type, so they are converted to floats. */
static tnf_status open_norms(tnf_emb *emb, tnf_error *e)
{
    const tnf_object *o = by_role(emb->file, "norms", NULL, false);
    const tnf_part *data = o ? tnf_object_part(o, "data") : NULL;
    tnf_lent lent;
    if (!data || o->rank != 1 || data->type->number != TNF_NUMBER_FLOAT || data->type->bits == 0)
        return TNF_OK;
    if (o->shape[0] < emb->info.words)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the number of norms, %llu, is smaller than the number of words, %llu",
                        (unsigned long long)o->shape[0], (unsigned long long)emb->info.words);
    size_t n = (size_t)emb->info.words;
    if (n > emb->memory / sizeof(float))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "no room for %zu norms within the limit of memory: raise the limit "
                        "'memory' if you trust the file",
                        n);
    emb->memory -= n * sizeof(float);
    emb->norms = tnf_alloc(&emb->alloc, (n + 1) * sizeof(float));
    if (!emb->norms)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu norms", n);
    emb->norms_count = n;
    emb->norms_object = o;
    tnf_status status = tnf_lent_read(&lent, data, &emb->alloc, &emb->memory, e);
    for (size_t i = 0; status == TNF_OK && i < n; i++) {
        double norm = 0;
        tnf_type_decode(&norm, data->type, lent.p, i, 1);
        emb->norms[i] = (float)norm;
    }
    tnf_lent_free(&lent, &emb->alloc);
    emb->info.has_norms = true;
    return status;
}

/* If the options name the matrix of a later group, the view is of this group alone, which has the
 * names of an ordinary file. */
static tnf_status take_group(tnf_emb *emb, tnf_emb_options *o, tnf_error *e)
{
    tnf_open_options how = TNF_OPEN_INIT;
    if (!o->embeddings || o->vocab)
        return TNF_OK;
    const tnf_str name = { o->embeddings,
                           o->embeddings_bytes ? o->embeddings_bytes : strlen(o->embeddings) };
    how.allocator = emb->alloc;
    how.limits.memory = tnf_file_info(emb->file)->memory;
    TNF_TRY(tnf_group_open(&emb->group, emb->file, name, &how, e));
    if (!emb->group.file)
        return TNF_OK;
    emb->file = emb->group.file;
    o->embeddings = NULL;
    return TNF_OK;
}

static tnf_status set_up(tnf_emb *emb, tnf_emb_options *o, tnf_error *e)
{
    emb->kernels = tnf_kernels_named(o->kernel);
    if (!emb->kernels)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "there is no kernel '%s', or this processor does not support it",
                        o->kernel);
    emb->info.kernel = emb->kernels->name;
    TNF_TRY(take_group(emb, o, e));
    TNF_TRY(find_objects(emb, o, e));
    TNF_TRY(tnf_rows_open(&emb->rows, emb->info.embeddings, emb->kernels, &emb->alloc, &emb->memory,
                          e));
    emb->copied = emb->rows;
    emb->copied.reads = true;
    emb->info.rows = emb->rows.n;
    emb->info.dims = emb->rows.d;
    emb->info.quantized = emb->rows.kind == TNF_ROWS_PQ;
    TNF_TRY(open_words(emb, o, e));
    TNF_TRY(open_subwords(emb, o, e));
    return open_norms(emb, e);
}

/* The limit of the file, or in proportion to its size: text and quantized rows need more memory,
 * but at most by this factor. */
static uint64_t default_memory(const tnf_info *info)
{
    uint64_t more = info->size > UINT64_MAX / GROWTH ? UINT64_MAX : info->size * GROWTH;
    return info->memory > more ? info->memory : more;
}

tnf_status tnf_emb_open(tnf_emb **out, const tnf_file *file, const tnf_emb_options *options,
                        tnf_error *e)
{
    tnf_emb_options o;
    *out = NULL;
    TNF_TRY(tnf_need(file, "file", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_emb_options, &o, options, e));
    tnf_allocator alloc = tnf_allocator_or_default(&o.allocator);
    tnf_emb *emb = tnf_alloc0(&alloc, sizeof *emb);
    if (!emb)
        return tnf_no_memory("a view of embeddings", e);
    emb->file = file;
    emb->alloc = alloc;
    emb->memory = o.memory ? o.memory : default_memory(tnf_file_info(file));
    emb->words.alloc = emb->grams.alloc = emb->rows.alloc = alloc;
    tnf_arena_init(&emb->arena, &alloc, emb->memory);
    const uint32_t mode = tnf_enter_ieee(); /* norms are rounded to floats */
    tnf_status status = set_up(emb, &o, e);
    tnf_leave_ieee(mode);
    if (status != TNF_OK) {
        tnf_emb_close(emb);
        return status;
    }
    *out = emb;
    return TNF_OK;
}

tnf_status tnf_emb_open_path(tnf_emb **out, const char *path, const tnf_open_options *how,
                             const tnf_emb_options *options, tnf_error *e)
{
    tnf_file *file;
    *out = NULL;
    TNF_TRY(tnf_open(&file, path, how, e));
    tnf_status status = tnf_emb_open(out, file, options, e);
    if (status == TNF_OK)
        (*out)->owned = file;
    else
        tnf_close(file);
    return status;
}

void tnf_emb_close(tnf_emb *emb)
{
    if (!emb)
        return;
    tnf_rows_free(&emb->rows);
    tnf_words_free(&emb->words);
    tnf_words_free(&emb->grams);
    tnf_lent_free(&emb->gram_rows, &emb->alloc);
    tnf_fasttext_close(emb);
    tnf_free(&emb->alloc, emb->norms, (emb->norms_count + 1) * sizeof(float));
    tnf_free(&emb->alloc, atomic_load(&emb->scales), (size_t)emb->rows.n * sizeof(float) + 1);
    tnf_arena_free(&emb->arena);
    tnf_group_close(&emb->group);
    tnf_close(emb->owned);
    tnf_allocator alloc = emb->alloc;
    tnf_free(&alloc, emb, sizeof *emb);
}

const tnf_emb_info *tnf_emb_describe(const tnf_emb *emb)
{
    return emb ? &emb->info : NULL;
}
