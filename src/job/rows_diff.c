/* SPDX-License-Identifier: MIT */
/* Differences of tensors as rows. If several parts compare a tensor, each makes a piece, and finish
 * joins the pieces:
 *
 *   {"in":0,"index":3,"piece":{"sums":"…","unlike":true}}     sums: of tnf_diff_sums (pieces.c)
 */
#include "base/str.h"
#include "core/look/diff_partial.h"
#include "job/rows.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdlib.h>

_Static_assert(sizeof(tnf_diff_sums) % sizeof(uint64_t) == 0, "sums consist of words");

/* --------------------------------------------------------------------- rows */

static const char *const kinds[] = {
    [TNF_DIFF_ONLY_A] = "only_a",       [TNF_DIFF_ONLY_B] = "only_b", [TNF_DIFF_LAYOUT] = "layout",
    [TNF_DIFF_SHAPE] = "shape",         [TNF_DIFF_DTYPE] = "dtype",   [TNF_DIFF_PARTS] = "part",
    [TNF_DIFF_ORDER] = "order",         [TNF_DIFF_VALUES] = "values", [TNF_DIFF_EXTRA] = "extra",
    [TNF_DIFF_ATTRIBUTE] = "attribute",
};

static void put_difference(tnf_buf *b, const tnf_difference *d)
{
    const tnf_value_difference *v = d->values;
    const tnf_object *o = d->a ? d->a : d->b;
    tnf_row_key(b, "kind", kinds[d->kind]);
    if (o) {
        tnf_buf_puts(b, ",");
        tnf_row_name(b, "name", o->name);
    }
    if (d->key.n) {
        tnf_buf_puts(b, ",");
        tnf_row_name(b, d->kind == TNF_DIFF_ATTRIBUTE || d->kind == TNF_DIFF_EXTRA ? "key" : "part",
                     d->key);
    }
    if (!v)
        return;
    tnf_row_count(b, "elements", v->elements);
    tnf_row_count(b, "different", v->different);
    tnf_row_count(b, "nonfinite", v->nonfinite);
    tnf_row_count(b, "first", v->first);
    if (!v->numbers)
        return;
    tnf_row_number(b, "max_abs", v->max_abs);
    tnf_row_number(b, "max_rel", v->max_rel);
    tnf_row_number(b, "mean_abs", v->mean_abs);
    tnf_row_number(b, "nmse", v->nmse);
    tnf_row_number(b, "cosine", v->cosine);
}

static void on_difference(void *ctx, const tnf_difference *d)
{
    struct rows *r = ctx;
    size_t in = d->a ? 0 : d->b ? 1 : 2;
    if (in == 2 && r->part != 0)
        return;
    tnf_row_begin(r, in, in == 2 ? 0 : tnf_row_position(r, in, d->a ? d->a : d->b));
    put_difference(r->out, d);
    tnf_row_end(r);
}

static int by_name(const void *a, const void *b)
{
    const tnf_object *const *x = a, *const *y = b;
    return tnf_str_compare((*x)->name, (*y)->name);
}

static bool is_named(void *ctx, tnf_str name)
{
    const struct rows *r = ctx;
    const tnf_object one = { .name = name }, *key = &one;
    return r->nwanted && bsearch((const void *)&key, (const void *)r->wanted, r->nwanted,
                                 sizeof *r->wanted, by_name);
}

static tnf_diff_options options_of(const struct rows *r, const tnf_job_how *how)
{
    const tnf_job_options *o = &r->job->o;
    tnf_diff_options options = TNF_DIFF_INIT;
    options.select = is_named;
    options.difference = on_difference;
    options.progress = tnf_row_progress;
    options.threads = how ? how->threads : 1;
    options.numeric = o->numeric;
    options.rtol = o->rtol;
    options.atol = o->atol;
    return options;
}

static void put_counts(const struct rows *r, const tnf_diff_result *result)
{
    tnf_buf_puts(r->out, r->out->n > 1 ? ",\n" : "\n");
    tnf_buf_printf(r->out, "{\"tensors\":%" PRIu64, result->tensors);
    tnf_row_count(r->out, "close", result->close);
    tnf_row_count(r->out, "different", result->different);
    tnf_row_count(r->out, "only_a", result->only_a);
    tnf_row_count(r->out, "only_b", result->only_b);
    tnf_row_count(r->out, "attributes", r->part == 0 ? result->attributes : 0);
    tnf_row_count(r->out, "extras", r->part == 0 ? result->extras : 0);
    tnf_buf_puts(r->out, "}");
}

static tnf_status whole_rows(struct rows *r, const tnf_job_how *how, tnf_error *e)
{
    tnf_diff_options options = options_of(r, how);
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    if (r->nwanted == 0 && r->part != 0)
        return TNF_OK;
    options.ctx = r;
    options.ignore = r->part != 0 ? TNF_DIFF_IGNORE_EXTRAS : 0;
    TNF_TRY(tnf_diff(&result, r->job->inputs[0].file, r->job->inputs[1].file, &options, e));
    put_counts(r, &result);
    return TNF_OK;
}

/* ------------------------------------------------------------------- pieces */

static void on_piece(void *ctx, const tnf_object *a, const tnf_pairing *sums, bool unlike)
{
    struct rows *r = ctx;
    tnf_buf *b = r->out;
    tnf_buf_puts(b, b->n > 1 ? ",\n" : "\n");
    tnf_buf_printf(b, "{\"in\":0,\"index\":%" PRIu64 ",\"piece\":{\"sums\":\"",
                   tnf_row_position(r, 0, a));
    tnf_sums_put(b, sums);
    tnf_buf_printf(b, "\",\"unlike\":%s}}", unlike ? "true" : "false");
}

static tnf_status piece_rows(struct rows *r, const tnf_job_how *how, const tnf_diff_range *ranges,
                             size_t n, tnf_error *e)
{
    tnf_diff_options options = options_of(r, how);
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    tnf_diff_part some = { .ranges = ranges, .n = n, .piece = on_piece };
    options.ctx = r;
    return n ? tnf_diff_some(&result, r->job->inputs[0].file, r->job->inputs[1].file, &options,
                             &some, e)
             : TNF_OK;
}

tnf_status tnf_diff_rows(struct rows *r, const tnf_job_how *how, tnf_arena *arena, tnf_error *e)
{
    const tnf_file *second = r->job->inputs[1].file;
    size_t n = 0;
    tnf_diff_range *ranges = tnf_arena_array(arena, r->n + 1, sizeof *ranges);
    r->wanted = tnf_arena_array(arena, r->n + 1, sizeof *r->wanted);
    if (!r->wanted || !ranges)
        return tnf_arena_fail(arena, "the plan", e);
    for (size_t i = 0; i < r->n; i++) {
        const struct job_item *it = &r->items[i];
        const tnf_object *o = tnf_at(r->job->inputs[it->in].file, it->index);
        const tnf_object *b = it->whole ? NULL : tnf_find_n(second, o->name.p, o->name.n);
        if (b && it->in == 0)
            ranges[n++] = (tnf_diff_range) { it->index, (size_t)(b - tnf_at(second, 0)), it->first,
                                             it->n };
        else
            r->wanted[r->nwanted++] = o;
    }
    if (r->nwanted)
        qsort((void *)r->wanted, r->nwanted, sizeof *r->wanted, by_name);
    TNF_TRY(whole_rows(r, how, e));
    return piece_rows(r, how, ranges, n, e);
}

/* ------------------------------------------------------------------- joining */

/* The results of all parts for a tensor. */
struct joined {
    const tnf_object *a;
    tnf_diff_sums sums;
    bool unlike;
};

struct joining {
    struct rows rows; /* the first member, since functions above get it as context */
    struct joined *all;
    size_t n;
};

static bool take_piece(tnf_pairing *sums, bool *unlike, tnf_str text, tnf_arena *arena)
{
    tnf_json j;
    tnf_str hex = { "", 0 };
    bool here = false;
    tnf_json_init(&j, text.p, text.n, 0, arena, 8, NULL);
    if (tnf_json_enter(&j, '{'))
        for (tnf_str key; tnf_json_key(&j, &key);)
            (void)(tnf_str_is(key, "sums")     ? tnf_json_string(&j, &hex)
                   : tnf_str_is(key, "unlike") ? tnf_json_bool(&j, &here)
                                               : tnf_json_skip(&j, NULL));
    *unlike = *unlike || here;
    return tnf_json_end(&j) == TNF_OK && tnf_sums_take(sums, hex);
}

/* Joins the pieces of one tensor, which are the first of n. Returns their number. */
static size_t join_pieces(struct joined *out, const tnf_job *job, const struct row_piece *pieces,
                          size_t n, tnf_arena *arena)
{
    const tnf_file *file = job->inputs[0].file, *second = job->inputs[1].file;
    tnf_diff_sums room[TNF_PAIRING_NODES];
    tnf_pairing sums = tnf_diff_pairing(room);
    size_t i = 0;
    bool good = true;
    *out = (struct joined) { 0 };
    for (; i < n && pieces[i].index == pieces[0].index; i++)
        good = good && take_piece(&sums, &out->unlike, pieces[i].text, arena);
    const tnf_object *o = tnf_at(file, (size_t)pieces[0].index);
    const tnf_object *b = o ? tnf_find_n(second, o->name.p, o->name.n) : NULL;
    if (good && b && tnf_pairing_upto(&sums) == tnf_diff_cuts(o, b) &&
        tnf_pairing_end(&sums, &out->sums))
        out->a = o;
    return i;
}

static bool on_found(void *ctx, const tnf_object *a, tnf_diff_sums *sums, bool *unlike)
{
    const struct joining *j = ctx;
    for (size_t low = 0, high = j->n; low < high;) { /* in the order of the file */
        size_t middle = low + (high - low) / 2;
        if (j->all[middle].a == a) {
            *sums = j->all[middle].sums;
            *unlike = j->all[middle].unlike;
            return true;
        }
        if (j->all[middle].a < a)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

tnf_status tnf_diff_join(tnf_buf *out, tnf_job *job, const struct row_piece *pieces, size_t n,
                         tnf_arena *arena, tnf_error *e)
{
    struct joining j = { .rows = { .out = out, .job = job, .part = 1 } };
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    tnf_diff_part some = { .found = on_found };
    j.all = tnf_arena_array(arena, n + 1, sizeof *j.all);
    j.rows.wanted = tnf_arena_array(arena, n + 1, sizeof *j.rows.wanted);
    if (!j.all || !j.rows.wanted)
        return tnf_arena_fail(arena, "results", e);
    for (size_t i = 0; i < n; j.n++) {
        i += join_pieces(&j.all[j.n], job, pieces + i, n - i, arena);
        if (!j.all[j.n].a)
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "the results of the parts for a tensor are inconsistent");
        j.rows.wanted[j.rows.nwanted++] = j.all[j.n].a;
    }
    qsort((void *)j.rows.wanted, j.rows.nwanted, sizeof *j.rows.wanted, by_name);
    tnf_diff_options options = options_of(&j.rows, NULL);
    options.ctx = &j;
    tnf_buf_puts(out, "[");
    TNF_TRY(tnf_diff_some(&result, job->inputs[0].file, job->inputs[1].file, &options, &some, e));
    put_counts(&j.rows, &result);
    tnf_buf_puts(out, "]");
    return tnf_buf_status(out, "the results", e);
}
