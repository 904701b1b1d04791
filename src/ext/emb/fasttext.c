/* SPDX-License-Identifier: MIT */
/* Unchanged fastText models: a matrix with the trained rows of words and of buckets.
 *
 *   vector of a word = mean of its row and of the rows of its n-grams
 *   row of an n-gram = words + hash % buckets; in a pruned model, as a table says, or none
 *
 * A file is such a model if it has fastText's arguments, unless finalfusion.vocab says that its
 * rows are already vectors. Rows that are marked as raw are not vectors.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/str.h"
#include "ext/emb/view.h"

#include <stdlib.h>
#include <string.h>

/* Returns 0 if the attribute is missing, or is not a valid number. */
static uint64_t number_attr(const tnf_file *file, const char *key)
{
    const tnf_value *v = tnf_file_attr(file, key);
    bool fits = v && (v->kind == TNF_UINT || (v->kind == TNF_INT && v->as.i >= 0));
    return fits && v->as.u <= INT32_MAX ? v->as.u : 0;
}

static bool has_arguments(const tnf_file *file)
{
    const tnf_value *attrs = tnf_file_info(file)->attrs;
    for (size_t i = 0; i < attrs->n; i++)
        if (tnf_str_begins(attrs->as.members[i].key, "fasttext."))
            return true;
    return false;
}

bool tnf_emb_is_model(const tnf_file *file)
{
    return has_arguments(file) && (!tnf_file_attr(file, "finalfusion.vocab") ||
                                   tnf_value_is(tnf_file_attr(file, "fasttext.rows"), "raw"));
}

bool tnf_emb_has_vectors(const tnf_file *file)
{
    return !tnf_emb_is_model(file) || tnf_file_attr(file, "finalfusion.vocab");
}

/* ---------------------------------------------------------------------- pruned */

static int by_bucket(const void *a, const void *b)
{
    uint32_t x = ((const uint32_t *)a)[0], y = ((const uint32_t *)b)[0];
    return x < y ? -1 : x > y;
}

static tnf_status open_pruned(tnf_emb *emb, const tnf_object *o, tnf_error *e)
{
    tnf_lent lent;
    const tnf_part *data = tnf_object_part(o, "data");
    if (!data || o->rank != 2 || o->shape[1] != 2 || data->type != tnf_type_of(TNF_I32))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "'pruneidx' is not a list of pairs of i32");
    uint64_t n = o->shape[0];
    if (n > emb->info.buckets || 8 * n > emb->memory)
        return tnf_fail(
            e, TNF_ELIMIT, TNF_NO_OFFSET,
            "%llu buckets after pruning are too many for this model or for the limit 'memory'",
            (unsigned long long)n);
    emb->pruned.pairs = tnf_alloc(&emb->alloc, 8 * (size_t)n + 8);
    if (!emb->pruned.pairs)
        return tnf_no_memory("the remaining buckets", e);
    emb->memory -= 8 * n;
    emb->pruned.n = (size_t)n;
    emb->pruned.there = true;
    tnf_part bytes = *data;
    bytes.type = tnf_type_of(TNF_U8); /* the pairs may be unaligned */
    tnf_status status = tnf_lent_read(&lent, &bytes, &emb->alloc, &emb->memory, e);
    for (size_t i = 0; status == TNF_OK && i < n; i++) {
        emb->pruned.pairs[i][0] = tnf_le32((const uint8_t *)lent.p + 8 * i);
        emb->pruned.pairs[i][1] = tnf_le32((const uint8_t *)lent.p + 8 * i + 4);
        if (emb->pruned.pairs[i][1] >= n)
            status = tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "'pruneidx' names row %u of %zu",
                              emb->pruned.pairs[i][1], emb->pruned.n);
    }
    tnf_lent_free(&lent, &emb->alloc);
    if (status == TNF_OK)
        qsort(emb->pruned.pairs, emb->pruned.n, sizeof *emb->pruned.pairs, by_bucket);
    return status;
}

uint64_t tnf_fasttext_row(const tnf_emb *emb, uint64_t bucket)
{
    const tnf_pruned *p = &emb->pruned;
    if (!p->there)
        return emb->info.words + bucket;
    uint32_t key[2] = { (uint32_t)bucket, 0 };
    const uint32_t *found = p->n ? bsearch(key, p->pairs, p->n, sizeof *p->pairs, by_bucket) : NULL;
    return found ? emb->info.words + found[1] : TNF_NO_ROW;
}

/* ------------------------------------------------------------------------ open */

tnf_status tnf_fasttext_open(tnf_emb *emb, tnf_error *e)
{
    tnf_emb_info *i = &emb->info;
    uint64_t min_n = number_attr(emb->file, "fasttext.minn"),
             max_n = number_attr(emb->file, "fasttext.maxn");
    const tnf_object *pruned = tnf_find(emb->file, "pruneidx");
    if (number_attr(emb->file, "fasttext.version") == 11 &&
        tnf_value_is(tnf_file_attr(emb->file, "fasttext.model"), "supervised"))
        max_n = 0; /* such models have no n-grams, although they may have a max_n */
    uint64_t buckets = number_attr(emb->file, "fasttext.bucket");
    min_n = min_n ? min_n : 1;
    if (min_n > max_n || buckets == 0)
        return TNF_OK;
    i->subwords = TNF_SUBWORDS_FASTTEXT;
    i->min_n = (uint32_t)min_n;
    i->max_n = (uint32_t)max_n;
    i->buckets = buckets;
    i->composed = true;
    if (pruned)
        TNF_TRY(open_pruned(emb, pruned, e));
    uint64_t more = pruned ? emb->pruned.n : i->buckets;
    if (more > i->rows - i->words)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the numbers of words (%llu) and of buckets (%llu) are together larger "
                        "than the number of rows (%llu)",
                        (unsigned long long)i->words, (unsigned long long)more,
                        (unsigned long long)i->rows);
    if (emb->rows.kind == TNF_ROWS_WIDE)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the rows of a fastText model must be f32, not %s", emb->rows.type->id);
    emb->rule = tnf_fold_rule(emb, TNF_FOLD_FASTTEXT);
    return TNF_OK;
}

void tnf_fasttext_close(tnf_emb *emb)
{
    tnf_rows *folded = atomic_load(&emb->folded);
    tnf_free(&emb->alloc, emb->pruned.pairs, 8 * emb->pruned.n + 8);
    if (folded)
        tnf_rows_free(folded);
    tnf_free(&emb->alloc, folded, sizeof *folded);
}
