/* SPDX-License-Identifier: MIT */
/* Jobs whose result is not a file: verify, stat (rows_stat.c), diff (rows_diff.c), similar.
 *
 * Each part makes JSON rows, which name their tensor. Merged, they are in the order in which the
 * plain function reports them. Part 0 also reports results that belong to a file, not to one of its
 * tensors.
 *
 *   {"in":0,"index":3,"row":{…}}         of a tensor; of the file: "index":18446744073709551615
 *   {"in":0,"checked":…,"undigested":…}  numbers that are added
 */
#include "job/rows.h"
#include "base/base64.h"
#include "base/decimal.h"
#include "base/str.h"
#include "core/look/partial.h"
#include "wire/json.h"
#include <tenfold/emb.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- texts */

void tnf_row_begin(struct rows *r, uint64_t in, uint64_t index)
{
    tnf_buf_puts(r->out, r->out->n > 1 ? ",\n" : "\n");
    tnf_buf_printf(r->out, "{\"in\":%" PRIu64 ",\"index\":%" PRIu64 ",\"row\":{", in, index);
}

void tnf_row_end(struct rows *r)
{
    tnf_buf_puts(r->out, "}}");
}

void tnf_row_key(tnf_buf *b, const char *key, const char *text)
{
    tnf_buf_printf(b, "\"%s\":", key);
    if (text)
        tnf_row_text(b, (tnf_str) { text, strlen(text) });
    else
        tnf_buf_puts(b, "null");
}

void tnf_row_name(tnf_buf *b, const char *key, tnf_str name)
{
    tnf_buf_printf(b, "\"%s\":", key);
    tnf_row_text(b, name);
}

void tnf_row_text(tnf_buf *b, tnf_str text)
{
    char four[4];
    if (tnf_utf8_valid(NULL, text.p, text.n)) {
        tnf_json_put_string(b, text.p, text.n);
        return;
    }
    tnf_buf_puts(b, "{\"$bytes\":\"");
    for (size_t i = 0; i < text.n; i += 3) {
        tnf_base64_four(four, (const uint8_t *)text.p + i, text.n - i);
        tnf_buf_put(b, four, sizeof four);
    }
    tnf_buf_puts(b, "\"}");
}

static bool take_bytes(tnf_json *j, tnf_str *out)
{
    tnf_str text;
    uint64_t at = tnf_json_where(j);
    if (!tnf_json_string(j, &text))
        return false;
    uint8_t *bytes = tnf_arena_array(j->arena, text.n / 4 * 3 + 3, 1);
    if (!bytes)
        return tnf_json_fail(j, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a name");
    if (!tnf_base64_take(bytes, &out->n, text.p, text.n))
        return tnf_json_fail(j, TNF_EFORMAT, at, "$bytes is not base64");
    out->p = (const char *)bytes;
    return true;
}

bool tnf_row_take_text(tnf_json *j, tnf_str *out)
{
    if (tnf_json_peek(j) != '{')
        return tnf_json_string(j, out);
    *out = (tnf_str) { "", 0 };
    if (tnf_json_enter(j, '{'))
        for (tnf_str key; tnf_json_key(j, &key);)
            (void)(tnf_str_is(key, "$bytes") ? take_bytes(j, out) : tnf_json_skip(j, NULL));
    return j->status == TNF_OK;
}

void tnf_row_number(tnf_buf *b, const char *key, double x)
{
    char text[TNF_F64_TEXT];
    tnf_buf_printf(b, ",\"%s\":", key);
    if (isfinite(x))
        tnf_buf_puts(b, tnf_f64_text(text, x));
    else
        tnf_buf_puts(b, isnan(x) ? "\"NaN\"" : x > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

void tnf_row_count(tnf_buf *b, const char *key, uint64_t n)
{
    tnf_buf_printf(b, ",\"%s\":%" PRIu64, key, n);
}

/* -------------------------------------------------------------------- wanted */

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const tnf_object *const *)a,
              y = (uintptr_t) * (const tnf_object *const *)b;
    return x < y ? -1 : x > y;
}

static tnf_status choose_rows(struct rows *r, tnf_arena *arena, tnf_error *e)
{
    r->wanted = tnf_arena_array(arena, r->n + 1, sizeof *r->wanted);
    if (!r->wanted)
        return tnf_arena_fail(arena, "the plan", e);
    r->nwanted = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].in == r->in)
            r->wanted[r->nwanted++] = tnf_at(r->job->inputs[r->in].file, r->items[i].index);
    if (r->nwanted)
        qsort((void *)r->wanted, r->nwanted, sizeof *r->wanted, by_address);
    return TNF_OK;
}

static bool is_wanted(void *ctx, const tnf_object *o)
{
    const struct rows *r = ctx;
    return r->nwanted && bsearch((const void *)&o, (const void *)r->wanted, r->nwanted,
                                 sizeof *r->wanted, by_address);
}

bool tnf_row_progress(void *ctx, uint64_t done, uint64_t total)
{
    const struct rows *r = ctx;
    return !r->how || !r->how->progress || r->how->progress(r->how->ctx, done, total);
}

uint64_t tnf_row_position(const struct rows *r, size_t in, const tnf_object *o)
{
    return o ? (uint64_t)(o - tnf_at(r->job->inputs[in].file, 0)) : TNF_ROW_WHOLE;
}

/* -------------------------------------------------------------------- verify */

static void on_problem(void *ctx, const tnf_problem *p)
{
    struct rows *r = ctx;
    tnf_row_begin(r, r->in, tnf_row_position(r, r->in, p->object));
    tnf_row_key(r->out, "code", p->rule ? p->rule : tnf_status_name(p->code));
    if (p->offset == TNF_NO_OFFSET)
        tnf_buf_puts(r->out, ",\"offset\":null");
    else
        tnf_row_count(r->out, "offset", p->offset);
    tnf_buf_puts(r->out, ",");
    if (p->tensor.n)
        tnf_row_name(r->out, "tensor", p->tensor);
    else
        tnf_buf_puts(r->out, "\"tensor\":null");
    tnf_buf_puts(r->out, ",");
    tnf_row_key(r->out, "message", p->message);
    tnf_row_end(r);
}

static tnf_status verify_rows(struct rows *r, const tnf_job_how *how, tnf_error *e)
{
    tnf_verify_options options = TNF_VERIFY_INIT;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_some some = { is_wanted, r, r->part == 0 };
    options.problem = on_problem;
    options.progress = tnf_row_progress;
    options.ctx = r;
    options.threads = how->threads;
    if (r->nwanted == 0 && !some.whole)
        return TNF_OK;
    TNF_TRY(tnf_verify_some(&result, r->job->inputs[r->in].file, &options, &some, e));
    tnf_buf_puts(r->out, r->out->n > 1 ? ",\n" : "\n");
    tnf_buf_printf(r->out, "{\"in\":%zu,\"checked\":%" PRIu64 ",\"undigested\":%" PRIu64 "}", r->in,
                   result.checked, result.undigested);
    return TNF_OK;
}

/* ------------------------------------------------------------------- similar */

static void put_hits(struct rows *r, size_t query, bool found, const tnf_emb_hit *hits, size_t n)
{
    tnf_buf *b = r->out;
    tnf_buf_puts(b, b->n > 1 ? ",\n" : "\n");
    tnf_buf_printf(b, "{\"query\":%zu,\"found\":%s,\"hits\":[", query, found ? "true" : "false");
    for (size_t i = 0; i < n; i++) {
        tnf_buf_puts(b, i ? ",{" : "{");
        tnf_row_name(b, "word", hits[i].word.p ? hits[i].word : (tnf_str) { "", 0 });
        tnf_row_count(b, "row", hits[i].row);
        tnf_row_number(b, "score", hits[i].score);
        tnf_buf_puts(b, "}");
    }
    tnf_buf_puts(b, "]}");
}

static tnf_status search_rows(struct rows *r, const tnf_emb *emb, const tnf_job_how *how,
                              tnf_arena *arena, tnf_error *e)
{
    const tnf_job_options *o = &r->job->o;
    size_t n = o->nqueries, k = o->k < SIZE_MAX ? (size_t)o->k : SIZE_MAX;
    tnf_emb_query query = TNF_EMB_QUERY_INIT;
    tnf_str *words = tnf_arena_array(arena, n, sizeof *words);
    tnf_emb_found *found = tnf_arena_array(arena, n, sizeof *found);
    size_t *counts = tnf_arena_array(arena, n, sizeof *counts);
    tnf_emb_hit *hits = k < SIZE_MAX / n ? tnf_arena_array(arena, n * k, sizeof *hits) : NULL;
    if (!words || !found || !counts || !hits)
        return tnf_arena_fail(arena, "answers", e);
    for (size_t i = 0; i < n; i++)
        words[i] = (tnf_str) { o->queries[i], strlen(o->queries[i]) };
    query.k = k;
    query.threads = how->threads;
    query.from = r->items[0].first;
    query.among = r->items[0].first + r->items[0].n;
    TNF_TRY(tnf_emb_similar(hits, counts, found, emb, words, n, &query, e));
    for (size_t i = 0; i < n; i++)
        put_hits(r, i, found[i].found, hits + i * k, counts[i]);
    return TNF_OK;
}

static tnf_status similar_rows(struct rows *r, const tnf_job_how *how, tnf_arena *arena,
                               tnf_error *e)
{
    tnf_emb *emb;
    if (r->n == 0 || r->items[0].n == 0)
        return TNF_OK;
    if (!tnf_row_progress(r, 0, r->items[0].bytes))
        return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
    TNF_TRY(tnf_emb_open(&emb, r->job->inputs[0].file, NULL, e));
    tnf_status status = search_rows(r, emb, how, arena, e);
    tnf_emb_close(emb);
    return status;
}

tnf_status tnf_job_rows(tnf_buf *out, tnf_job *job, uint64_t part, const tnf_job_how *how,
                        tnf_error *e)
{
    struct rows r = { .out = out, .job = job, .part = part, .how = how };
    size_t first, end;
    tnf_arena arena;
    tnf_status status = TNF_OK;
    tnf_job_items(job, part, &first, &end);
    r.items = &job->items[first];
    r.n = end - first;
    tnf_scratch_begin(&arena);
    tnf_buf_puts(out, "[");
    if (job->kind == TNF_JOB_DIFF)
        status = tnf_diff_rows(&r, how, &arena, e);
    else if (job->kind == TNF_JOB_SIMILAR)
        status = similar_rows(&r, how, &arena, e);
    for (; job->kind <= TNF_JOB_STAT && r.in < job->o.ninputs && status == TNF_OK; r.in++) {
        status = choose_rows(&r, &arena, e);
        if (status == TNF_OK)
            status = job->kind == TNF_JOB_STAT ? tnf_stat_rows(&r, how, &arena, e)
                                               : verify_rows(&r, how, e);
    }
    tnf_buf_puts(out, "]");
    tnf_arena_free(&arena);
    return status == TNF_OK ? tnf_buf_status(out, "the results", e) : status;
}
