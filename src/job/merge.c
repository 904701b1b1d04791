/* SPDX-License-Identifier: MIT */
/* Merges the results of all parts: sorts rows, adds numbers, keeps the best answers. */
#include "base/decimal.h"
#include "base/str.h"
#include "job/rows.h"
#include "wire/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct row {
    uint64_t in, index, seen; /* seen: its position among all rows, if the rest is equal */
    tnf_str text;
    bool piece; /* of a tensor that several parts worked on */
};

struct sums {
    uint64_t checked, undigested;
};

static const char *const counted[] = { "tensors", "close",      "different", "only_a",
                                       "only_b",  "attributes", "extras" };
#define COUNTED (sizeof counted / sizeof *counted)

struct hit {
    tnf_str word, text; /* text: unchanged from the part */
    uint64_t row;
    double score;
};

struct answer {
    struct hit *hits;
    size_t n, room;
    bool found;
};

struct merging {
    tnf_job *job;
    tnf_arena *arena;
    struct row *rows;
    size_t n, room;
    struct sums *sums; /* of each input */
    uint64_t counts[COUNTED];
    struct answer *answers; /* of each query */
    tnf_status status;
    tnf_error *e;
};

static void no_memory(struct merging *m)
{
    if (m->status == TNF_OK)
        m->status = tnf_arena_fail(m->arena, "results", m->e);
}

/* ------------------------------------------------------------------- reading */

static void add_hit(struct merging *m, struct answer *a, const struct hit *hit)
{
    struct hit *hits = tnf_arena_grow(m->arena, a->hits, a->n, &a->room, sizeof *hits, 16);
    if (!hits) {
        no_memory(m);
        return;
    }
    a->hits = hits;
    hits[a->n++] = *hit;
}

static bool take_score(tnf_json *j, double *out)
{
    tnf_str text;
    if (!tnf_json_skip(j, &text))
        return false;
    if (text.n > 0 && text.p[0] == '"') {
        *out = text.n > 2 && text.p[1] == 'N' ? (double)NAN
               : text.p[1] == '-'             ? (double)-INFINITY
                                              : (double)INFINITY;
        return true;
    }
    return tnf_f64_parse(out, text.p, text.n) ||
           tnf_json_fail(j, TNF_EFORMAT, tnf_json_where(j), "the score is not a number");
}

static void take_hit(struct merging *m, tnf_json *j, struct answer *a)
{
    struct hit hit = { .word = { "", 0 } };
    const uint8_t *from = j->p;
    if (!tnf_json_enter(j, '{'))
        return;
    for (tnf_str key; tnf_json_key(j, &key);)
        (void)(tnf_str_is(key, "row")     ? tnf_json_u64(j, &hit.row)
               : tnf_str_is(key, "score") ? take_score(j, &hit.score)
               : tnf_str_is(key, "word")  ? tnf_row_take_text(j, &hit.word)
                                          : tnf_json_skip(j, NULL));
    hit.text = (tnf_str) { (const char *)from, (size_t)(j->p - from) };
    if (j->status == TNF_OK)
        add_hit(m, a, &hit);
}

static void take_hits(struct merging *m, tnf_json *j, uint64_t query)
{
    struct answer *a = query < m->job->o.nqueries ? &m->answers[query] : NULL;
    if (!a || !tnf_json_enter(j, '[')) {
        (void)tnf_json_skip(j, NULL);
        return;
    }
    while (tnf_json_item(j))
        take_hit(m, j, a);
}

static void add_number(struct merging *m, tnf_json *j, tnf_str key, uint64_t in)
{
    uint64_t v = 0;
    if (!tnf_json_u64(j, &v))
        return;
    if (in < m->job->o.ninputs && tnf_str_is(key, "checked"))
        m->sums[in].checked += v;
    else if (in < m->job->o.ninputs && tnf_str_is(key, "undigested"))
        m->sums[in].undigested += v;
    for (size_t i = 0; i < COUNTED; i++)
        if (tnf_str_is(key, counted[i]))
            m->counts[i] += v;
}

static void take_row(struct merging *m, tnf_json *j)
{
    struct row row = { .seen = m->n };
    uint64_t query = 0;
    bool found = false;
    if (!tnf_json_enter(j, '{'))
        return;
    for (tnf_str key; tnf_json_key(j, &key);) {
        if (tnf_str_is(key, "hits")) {
            take_hits(m, j, query);
        } else if (tnf_str_is(key, "in") || tnf_str_is(key, "index") || tnf_str_is(key, "query")) {
            (void)tnf_json_u64(j, tnf_str_is(key, "in")      ? &row.in
                                  : tnf_str_is(key, "index") ? &row.index
                                                             : &query);
        } else if (tnf_str_is(key, "row") || tnf_str_is(key, "piece")) {
            row.piece = tnf_str_is(key, "piece");
            (void)tnf_json_skip(j, &row.text);
        } else if (tnf_str_is(key, "found")) {
            (void)tnf_json_bool(j, &found);
        } else {
            add_number(m, j, key, row.in);
        }
    }
    if (found && query < m->job->o.nqueries)
        m->answers[query].found = true;
    if (!row.text.p || m->status != TNF_OK)
        return;
    m->rows = tnf_arena_grow(m->arena, m->rows, m->n, &m->room, sizeof *m->rows, 64);
    if (m->rows)
        m->rows[m->n++] = row;
    else
        no_memory(m);
}

static tnf_status take_rows(struct merging *m, tnf_str text, tnf_error *e)
{
    tnf_json j;
    tnf_json_init(&j, text.p, text.n, 0, m->arena, 64, e);
    if (tnf_json_enter(&j, '['))
        while (tnf_json_item(&j) && m->status == TNF_OK)
            take_row(m, &j);
    tnf_status status = m->status == TNF_OK ? tnf_json_end(&j) : m->status;
    return status;
}

/* ------------------------------------------------------------------- ordering */

static int by_place(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->in != y->in)
        return x->in < y->in ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->seen < y->seen ? -1 : x->seen > y->seen;
}

/* The order of the search: by score, NaN last, then by word, then by row. */
static int best_first(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score))
        return isnan(x->score) ? 1 : -1;
    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    int c = tnf_str_compare(x->word, y->word);
    return c ? c : x->row < y->row ? -1 : x->row > y->row;
}

/* --------------------------------------------------------------------- joining */

/* Joins the pieces of one tensor from several parts into one row. If a part could not read its
 * piece, the row is the first error. */
static tnf_status join_rows(struct merging *m, size_t first, size_t n, struct row *out,
                            tnf_error *e)
{
    tnf_str *pieces = tnf_arena_array(m->arena, n, sizeof *pieces);
    if (!pieces)
        return tnf_arena_fail(m->arena, "results", e);
    *out = m->rows[first];
    for (size_t i = 0; i < n; i++) {
        if (!m->rows[first + i].piece) {
            *out = m->rows[first + i];
            return TNF_OK;
        }
        pieces[i] = m->rows[first + i].text;
    }
    out->piece = false;
    if (out->in >= m->job->o.ninputs || out->index > SIZE_MAX / 2)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "a receipt does not match the plan");
    return tnf_stat_join(&out->text, m->job, (size_t)out->in, (size_t)out->index, pieces, n,
                         m->arena, e);
}

static tnf_status join_stats(struct merging *m, tnf_error *e)
{
    size_t to = 0;
    for (size_t i = 0, n; i < m->n; i += n) {
        for (n = 1; i + n < m->n && m->rows[i + n].in == m->rows[i].in &&
                    m->rows[i + n].index == m->rows[i].index;)
            n++;
        struct row joined;
        TNF_TRY(join_rows(m, i, n, &joined, e));
        m->rows[to++] = joined;
    }
    m->n = to;
    return TNF_OK;
}

static void sort_rows(struct merging *m)
{
    if (m->n)
        qsort(m->rows, m->n, sizeof *m->rows, by_place);
}

/* Replaces pieces by the rows that result from them. */
static tnf_status join_diffs(struct merging *m, tnf_buf *text, tnf_error *e)
{
    struct row_piece *pieces = tnf_arena_array(m->arena, m->n + 1, sizeof *pieces);
    size_t to = 0, n = 0;
    if (!pieces)
        return tnf_arena_fail(m->arena, "results", e);
    for (size_t i = 0; i < m->n; i++)
        if (m->rows[i].piece)
            pieces[n++] = (struct row_piece) { m->rows[i].index, m->rows[i].text };
        else
            m->rows[to++] = m->rows[i];
    m->n = to;
    if (n == 0)
        return TNF_OK;
    TNF_TRY(tnf_diff_join(text, m->job, pieces, n, m->arena, e));
    TNF_TRY(take_rows(m, (tnf_str) { (const char *)text->p, text->n }, e));
    sort_rows(m);
    return TNF_OK;
}

/* ------------------------------------------------------------------ reporting */

static void put_file(tnf_buf *b, const struct merging *m, size_t in, size_t *at)
{
    const tnf_job *job = m->job;
    const char *path = job->inputs[in].shown;
    size_t first = *at;
    while (*at < m->n && m->rows[*at].in == in)
        ++*at;
    tnf_buf_puts(b, in ? ",\n{\"file\":" : "\n{\"file\":");
    tnf_row_text(b, (tnf_str) { path, strlen(path) });
    if (job->kind == TNF_JOB_VERIFY)
        tnf_buf_printf(b, ",\"ok\":%s,\"checked\":%" PRIu64 ",\"undigested\":%" PRIu64,
                       *at == first ? "true" : "false", m->sums[in].checked,
                       m->sums[in].undigested);
    tnf_buf_puts(b, job->kind == TNF_JOB_VERIFY ? ",\"problems\":[" : ",\"tensors\":[");
    for (size_t i = first; i < *at; i++) {
        tnf_buf_puts(b, i > first ? ",\n" : "\n");
        tnf_buf_put(b, m->rows[i].text.p, m->rows[i].text.n);
    }
    tnf_buf_puts(b, "]}");
}

static void put_files(tnf_buf *b, const struct merging *m)
{
    size_t at = 0;
    if (m->job->kind == TNF_JOB_VERIFY)
        tnf_buf_printf(b, ",\"ok\":%s", m->n == 0 ? "true" : "false");
    tnf_buf_puts(b, ",\"files\":[");
    for (size_t in = 0; in < m->job->o.ninputs; in++)
        put_file(b, m, in, &at);
    tnf_buf_puts(b, "]");
}

static void put_differences(tnf_buf *b, const struct merging *m)
{
    bool same = true;
    for (size_t i = 0; i < COUNTED; i++)
        same = same && (i < 2 || m->counts[i] == 0);
    tnf_buf_printf(b, ",\"same\":%s", same ? "true" : "false");
    for (size_t i = 0; i < COUNTED; i++)
        tnf_buf_printf(b, ",\"%s\":%" PRIu64, counted[i], m->counts[i]);
    tnf_buf_puts(b, ",\"differences\":[");
    for (size_t i = 0; i < m->n; i++) {
        tnf_buf_puts(b, i ? ",\n" : "\n");
        tnf_buf_put(b, m->rows[i].text.p, m->rows[i].text.n);
    }
    tnf_buf_puts(b, "]");
}

static void put_answers(tnf_buf *b, const struct merging *m)
{
    tnf_buf_puts(b, ",\"queries\":[");
    for (size_t q = 0; q < m->job->o.nqueries; q++) {
        const struct answer *a = &m->answers[q];
        const char *word = m->job->o.queries[q];
        tnf_buf_puts(b, q ? ",\n{\"word\":" : "\n{\"word\":");
        tnf_row_text(b, (tnf_str) { word, strlen(word) });
        tnf_buf_printf(b, ",\"found\":%s,\"hits\":[", a->found ? "true" : "false");
        if (a->n)
            qsort(a->hits, a->n, sizeof *a->hits, best_first);
        for (size_t i = 0; i < a->n && i < m->job->o.k; i++) {
            tnf_buf_puts(b, i ? "," : "");
            tnf_buf_put(b, a->hits[i].text.p, a->hits[i].text.n);
        }
        tnf_buf_puts(b, "]}");
    }
    tnf_buf_puts(b, "]");
}

static tnf_status merge_receipts(tnf_buf *out, struct merging *m,
                                 const struct job_receipt *receipts, tnf_buf *joined, tnf_error *e)
{
    tnf_job *job = m->job;
    for (uint64_t i = 0; i < job->o.parts; i++)
        TNF_TRY(take_rows(m, receipts[i].rows, e));
    sort_rows(m);
    if (job->kind == TNF_JOB_STAT)
        TNF_TRY(join_stats(m, e));
    if (job->kind == TNF_JOB_DIFF)
        TNF_TRY(join_diffs(m, joined, e));
    if (job->kind == TNF_JOB_DIFF)
        put_differences(out, m);
    else if (job->kind == TNF_JOB_SIMILAR)
        put_answers(out, m);
    else
        put_files(out, m);
    return tnf_buf_status(out, "the results", e);
}

tnf_status tnf_job_merge(tnf_buf *out, tnf_job *job, const struct job_receipt *receipts,
                         tnf_arena *arena, tnf_error *e)
{
    struct merging m = { .job = job, .arena = arena, .e = e };
    tnf_buf joined; /* freed after the rows that point into it are written */
    m.sums = tnf_arena_array(arena, job->o.ninputs, sizeof *m.sums);
    m.answers = tnf_arena_array(arena, job->o.nqueries + 1, sizeof *m.answers);
    if (!m.sums || !m.answers)
        return tnf_arena_fail(arena, "results", e);
    tnf_text_begin(&joined, UINT64_MAX);
    tnf_status status = merge_receipts(out, &m, receipts, &joined, e);
    tnf_buf_free(&joined);
    return status;
}
