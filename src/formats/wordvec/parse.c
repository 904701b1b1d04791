/* SPDX-License-Identifier: MIT */
/* Parses the numbers of a text on demand: rows are found in the table, read, and parsed by several
 * threads. A row is always parsed from its beginning, so reading a piece of it costs as much as
 * everything before the piece. */
#include "base/decimal.h"
#include "base/pool.h"
#include "formats/wordvec/wordvec.h"

#include <string.h>

#define BATCH ((uint64_t)4 << 20)  /* bytes of text read at once, or one row */
#define TASK  ((uint64_t)64 << 10) /* bytes of text per task of a thread, or one row */

/* The requested elements first … first + n - 1 of the matrix, in complete rows or not. */
struct want {
    uint64_t first, n;
    uint8_t *dst;
};

/* Consecutive rows; their text is read into `text`. */
struct task {
    uint64_t row, rows;
    char *text;
};

struct parsing {
    const tnf_reader *r;
    const wv_text *t;
    struct want want;
    struct task *tasks;
};

/* ----------------------------------------------------------------------- row */

static bool is_end(const wv_rules *rules, char c)
{
    return wv_is_blank(c) || c == '\n' || c == '\r' || (rules->strict && c == '\f');
}

static tnf_status no_number(const char *p, const char *end, const wv_row *row, uint64_t at,
                            tnf_error *e)
{
    size_t n = 0;
    while (p + n < end && p[n] != ' ' && p[n] != '\t' && p[n] != '\n' && n < 64)
        n++;
    return tnf_fail(e, TNF_EFORMAT, at, "row %llu: %s is not a number", (unsigned long long)row->i,
                    TNF_QUOTED(((tnf_str) { p, n })));
}

/* Parses columns from … to - 1 of a row. The columns before are parsed, too. */
static tnf_status parse_row(const wv_rules *rules, const wv_row *row, const char *text,
                            uint64_t from, uint64_t to, uint8_t *dst, tnf_error *e)
{
    const char *p = text + row->word, *end = text + (row->end - row->at);
    for (uint64_t column = 0; column < to; column++) {
        float value;
        while (p < end && *p != '\n' && is_end(rules, *p))
            p++;
        const char *next = tnf_f32_scan(p, end, &value);
        if (!next || (next < end && !is_end(rules, *next)))
            return no_number(p, end, row, row->at + (uint64_t)(p - text), e);
        p = next;
        if (column < from)
            continue;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        tnf_put_le32(dst, bits);
        dst += 4;
    }
    return TNF_OK;
}

static tnf_status parse_task(void *ctx, size_t i, tnf_error *e)
{
    const struct parsing *x = ctx;
    const struct task *task = &x->tasks[i];
    const struct want *want = &x->want;
    uint64_t dims = x->t->rules.dims;
    wv_row row = tnf_wv_rows_at(&x->t->rows, task->row);
    uint64_t base = row.at, bytes = tnf_wv_rows_at(&x->t->rows, task->row + task->rows).at - base;
    TNF_TRY(tnf_source_read(x->r->source, base, task->text, (size_t)bytes, e));
    for (uint64_t k = 0; k < task->rows; k++, tnf_wv_rows_next(&x->t->rows, &row)) {
        uint64_t first = row.i * dims; /* no overflow: the matrix has less than 2^64 bytes */
        uint64_t from = want->first > first ? want->first - first : 0;
        uint64_t left = want->first + want->n - first, to = left < dims ? left : dims;
        uint8_t *dst = want->dst + (first + from - want->first) * 4;
        TNF_TRY(parse_row(&x->t->rules, &row, task->text + (row.at - base), from, to, dst, e));
    }
    return TNF_OK;
}

/* --------------------------------------------------------------------- batch */

/* The number of rows from `row` on that fill a task or a batch of `worth` bytes, at least one. */
static uint64_t rows_worth(const wv_rows *rows, uint64_t row, uint64_t stop, uint64_t worth)
{
    wv_row k = tnf_wv_rows_at(rows, row);
    uint64_t base = k.at;
    do
        tnf_wv_rows_next(rows, &k);
    while (k.i < stop && k.end - base <= worth);
    return k.i - row;
}

/* Divides a batch into tasks and runs them. */
static tnf_status do_batch(struct parsing *x, uint64_t row, uint64_t rows, char *text, tnf_error *e)
{
    struct task tasks[BATCH / TASK * 2 + 2];
    size_t n = 0, most = sizeof tasks / sizeof *tasks;
    const wv_rows *table = &x->t->rows;
    uint64_t base = tnf_wv_rows_at(table, row).at, stop = row + rows;
    for (; row < stop; n++) {
        uint64_t take = n + 1 < most ? rows_worth(table, row, stop, TASK) : stop - row;
        tasks[n] = (struct task) { row, take, text + (tnf_wv_rows_at(table, row).at - base) };
        row += take;
    }
    x->tasks = tasks;
    return tnf_pool_run(n > 1 ? tnf_pool_threads(0) : 1, n, parse_task, x, e);
}

static tnf_status parse_elements(struct parsing *x, tnf_error *e)
{
    const wv_rows *table = &x->t->rows;
    uint64_t row = x->want.first / x->t->rules.dims;
    uint64_t stop = (x->want.first + x->want.n - 1) / x->t->rules.dims + 1, room = 0;
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    char *text = NULL;
    tnf_status status = TNF_OK;
    while (row < stop && status == TNF_OK) {
        uint64_t rows = rows_worth(table, row, stop, BATCH);
        uint64_t bytes = tnf_wv_rows_at(table, row + rows).at - tnf_wv_rows_at(table, row).at;
        if (bytes > room) {
            tnf_free(&alloc, text, (size_t)room);
            text = bytes <= SIZE_MAX ? tnf_alloc(&alloc, (size_t)bytes) : NULL;
            room = text ? bytes : 0;
        }
        status = text ? do_batch(x, row, rows, text, e) : tnf_no_memory("lines of text", e);
        row += rows;
    }
    tnf_free(&alloc, text, (size_t)room);
    return status;
}

/* ---------------------------------------------------------------------- bytes */

static tnf_status decode_piece(tnf_reader *r, uint64_t first, uint64_t n, uint8_t *dst,
                               tnf_error *e)
{
    struct parsing x = { .r = r, .t = r->state, .want = { first, n, dst } };
    return parse_elements(&x, e);
}

/* Decodes some bytes of one element. */
static tnf_status decode_edge(tnf_reader *r, uint64_t element, size_t skip, uint8_t *dst, size_t n,
                              tnf_error *e)
{
    uint8_t whole[4];
    TNF_TRY(decode_piece(r, element, 1, whole, e));
    memcpy(dst, whole + skip, n);
    return TNF_OK;
}

tnf_status tnf_wv_decode_text(tnf_reader *r, uint64_t key, uint64_t offset, void *out, size_t n,
                              tnf_error *e)
{
    const wv_text *t = r->state;
    uint8_t *dst = out;
    if (key != WV_MATRIX)
        return tnf_wv_decode_words(r, &t->rows, key, offset, dst, n, e);
    size_t skip = (size_t)(offset % 4);
    if (skip) {
        size_t some = n < 4 - skip ? n : 4 - skip;
        TNF_TRY(decode_edge(r, offset / 4, skip, dst, some, e));
        offset += some;
        dst += some;
        n -= some;
    }
    if (n >= 4)
        TNF_TRY(decode_piece(r, offset / 4, n / 4, dst, e));
    if (n % 4)
        TNF_TRY(decode_edge(r, (offset + n) / 4, 0, dst + n / 4 * 4, n % 4, e));
    return TNF_OK;
}
