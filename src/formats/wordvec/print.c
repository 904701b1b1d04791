/* SPDX-License-Identifier: MIT */
/* Prints words and numbers as text. A batch of elements is gathered, divided into tasks, printed by
 * several threads into separate buffers, and written in order.
 *
 *   word SP number SP number … LF
 *
 * Batches consist of elements, not of rows, so rows may have any length.
 */
#include "base/decimal.h"
#include "base/pool.h"
#include "formats/wordvec/wordvec.h"

#include <stdio.h>
#include <string.h>

#define BATCH  131072u /* elements */
#define TASK   8192u
#define TASKS  (BATCH / TASK)
#define NUMBER 64u /* most bytes of a number with its separator and line end */
#define INDEX  24u /* most bytes of the number of a row */

struct printed {
    uint64_t first, n; /* elements */
    char *out;
    size_t length;
};

struct printing {
    tnf_writer *w;
    const wv_list *words; /* NULL: rows begin with their numbers */
    wv_spelling s;
    uint64_t dims, elements; /* of a row; of all rows */
    uint64_t first, n;       /* the batch */
    uint8_t *batch;
    char *out;
    size_t room;
    struct printed tasks[TASKS];
};

const tnf_option_info tnf_wv_print_options[] = {
    { "separator", TNF_OPTION_CHOICE, "auto|space|tab", "auto",
      "separator of fields; auto: as in the source, else a space" },
    { "newline", TNF_OPTION_CHOICE, "auto|lf|crlf", "auto",
      "the end of each line; auto: as in the source, else LF" },
    { "trailing", TNF_OPTION_CHOICE, "auto|no|yes", "auto",
      "a separator after the last number, as fastText writes it; auto: as in the source, else no" },
    { "numbers", TNF_OPTION_CHOICE, "auto|plain|python|c", "auto",
      "how numbers are written: plain (1, 0.00001), as in Python (1.0, 1e-05) or in C (1, 1e-05); "
      "auto: as in the source, else plain" },
    { 0 },
};

wv_spelling tnf_wv_spelling_wanted(const tnf_writer *w)
{
    wv_spelling s = tnf_wv_spelling_get(w->catalog);
    const tnf_option_value *o = w->options;
    if (o[WV_OPTION_SEPARATOR].u)
        s.separator = o[WV_OPTION_SEPARATOR].u == 1 ? ' ' : '\t';
    if (o[WV_OPTION_NEWLINE].u)
        s.crlf = o[WV_OPTION_NEWLINE].u == 2;
    if (o[WV_OPTION_TRAILING].u)
        s.trailing = o[WV_OPTION_TRAILING].u == 2;
    if (o[WV_OPTION_NUMBERS].u)
        s.numbers = (wv_numbers)(o[WV_OPTION_NUMBERS].u - 1);
    return s;
}

/* ----------------------------------------------------------------------- task */

static char *begin_row(const struct printing *x, uint64_t row, char *p)
{
    if (x->words) {
        tnf_str word = wv_list_at(x->words, row);
        memcpy(p, word.p, word.n);
        p += word.n;
    } else {
        p += snprintf(p, INDEX, "%llu", (unsigned long long)row);
    }
    *p++ = x->s.separator;
    return p;
}

static char *end_row(const struct printing *x, uint64_t row, char *p)
{
    if (x->s.trailing)
        *p++ = x->s.separator;
    if (x->s.cut && (row + 1) * x->dims == x->elements)
        return p;
    if (x->s.crlf)
        *p++ = '\r';
    *p++ = '\n';
    return p;
}

static tnf_status print_task(void *ctx, size_t i, tnf_error *e)
{
    (void)e;
    struct printing *x = ctx;
    struct printed *task = &x->tasks[i];
    char *p = task->out;
    uint64_t row = task->first / x->dims, column = task->first % x->dims;
    const uint8_t *from = x->batch + (task->first - x->first) * 4;
    for (uint64_t k = 0; k < task->n; k++, from += 4) {
        uint32_t bits = tnf_le32(from);
        float value;
        if (column == 0)
            p = begin_row(x, row, p);
        memcpy(&value, &bits, sizeof value);
        p += tnf_wv_number_text(x->s.numbers, p, value);
        if (++column < x->dims) {
            *p++ = x->s.separator;
        } else {
            p = end_row(x, row++, p);
            column = 0;
        }
    }
    task->length = (size_t)(p - task->out);
    return TNF_OK;
}

/* --------------------------------------------------------------------- batch */

/* The most bytes that a task may need. */
static uint64_t task_bound(const struct printing *x, uint64_t first, uint64_t n)
{
    uint64_t from = (first + x->dims - 1) / x->dims, to = (first + n + x->dims - 1) / x->dims;
    uint64_t words = (to - from) * INDEX;
    if (x->words)
        words += tnf_le64(x->words->offsets + 8 * to) - tnf_le64(x->words->offsets + 8 * from);
    return n * NUMBER + words;
}

static tnf_status reserve_text(struct printing *x, uint64_t wanted, tnf_error *e)
{
    if (wanted <= x->room)
        return TNF_OK;
    char *more = wanted <= SIZE_MAX / 2
                     ? tnf_realloc(&x->w->scratch->alloc, x->out, x->room, (size_t)wanted)
                     : NULL;
    if (!more)
        return tnf_no_memory("lines of text", e);
    x->out = more;
    x->room = (size_t)wanted;
    return TNF_OK;
}

static tnf_status flush_rows(struct printing *x, tnf_error *e)
{
    size_t tasks = (size_t)((x->n + TASK - 1) / TASK);
    uint64_t total = 0;
    TNF_TRY(reserve_text(x, task_bound(x, x->first, x->n) + tasks * INDEX, e));
    for (size_t i = 0; i < tasks; i++) {
        uint64_t n = x->n - i * TASK < TASK ? x->n - i * TASK : TASK;
        x->tasks[i] = (struct printed) { .first = x->first + i * TASK,
                                         .n = n,
                                         .out = x->out + total };
        total += task_bound(x, x->tasks[i].first, n);
    }
    TNF_TRY(tnf_pool_run(tasks > 1 ? tnf_pool_threads(0) : 1, tasks, print_task, x, e));
    for (size_t i = 0; i < tasks; i++)
        TNF_TRY(tnf_put(x->w, x->tasks[i].out, x->tasks[i].length, e));
    x->first += x->n;
    x->n = 0;
    return TNF_OK;
}

/* Takes blocks of complete elements: every block except the last is a multiple of four bytes. */
static tnf_status print_elements(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct printing *x = ctx;
    const uint8_t *p = bytes;
    while (n >= 4 && x->first + x->n < x->elements) {
        uint64_t left = x->elements - x->first - x->n, some = n / 4;
        some = some < BATCH - x->n ? some : BATCH - x->n;
        some = some < left ? some : left;
        memcpy(x->batch + x->n * 4, p, (size_t)some * 4);
        x->n += some;
        p += some * 4;
        n -= (size_t)some * 4;
        if (x->n == BATCH)
            TNF_TRY(flush_rows(x, e));
    }
    return x->first + x->n < x->elements ? TNF_OK : TNF_ECANCELLED; /* all rows are printed */
}

static tnf_status print_all(struct printing *x, const tnf_part *data, tnf_error *e)
{
    tnf_error stopped;
    tnf_status status = tnf_scan(data, print_elements, x, &stopped);
    if (status != TNF_OK && x->first + x->n < x->elements) {
        if (e)
            *e = stopped;
        return status;
    }
    return x->n ? flush_rows(x, e) : TNF_OK;
}

tnf_status tnf_wv_print(tnf_writer *w, const tnf_object *matrix, uint64_t rows,
                        const wv_list *words, tnf_error *e)
{
    struct printing x = { .w = w,
                          .words = words,
                          .s = tnf_wv_spelling_wanted(w),
                          .dims = matrix->shape[1],
                          .elements = rows * matrix->shape[1] };
    if (x.elements == 0)
        return TNF_OK;
    const tnf_allocator *alloc = &w->scratch->alloc;
    x.batch = tnf_alloc(alloc, (size_t)BATCH * 4);
    tnf_status status = x.batch ? print_all(&x, &matrix->parts[0], e) : tnf_no_memory("numbers", e);
    tnf_free(alloc, x.out, x.room);
    tnf_free(alloc, x.batch, (size_t)BATCH * 4);
    return status;
}
