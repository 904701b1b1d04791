/* SPDX-License-Identifier: MIT */
/* Draws the values of one tensor as a picture: rows from top to bottom, the last dimension from
 * left to right. Each cell shows the mean of its values. Negative and positive means have different
 * colours, which are deeper for larger values. A cell with a NaN or an infinity is red. */
#include "array.h"
#include "stat_html.h"
#include <math.h>
#include <stdlib.h>

#define ACROSS 96u
#define DOWN   64u
#define CELL   10u

typedef struct heat {
    uint64_t rows, columns; /* of the tensor */
    size_t down, across;    /* of the picture */
    double sums[DOWN * ACROSS];
    uint64_t counts[DOWN * ACROSS];
    bool bad[DOWN * ACROSS];
} heat;

static void take_value(heat *h, uint64_t at, double x)
{
    uint64_t y = at / h->columns, x_at = at % h->columns;
    size_t row = (size_t)((double)y / (double)h->rows * (double)h->down);
    size_t column = (size_t)((double)x_at / (double)h->columns * (double)h->across);
    size_t cell = (row < h->down ? row : h->down - 1) * ACROSS +
                  (column < h->across ? column : h->across - 1);
    if (isfinite(x)) {
        h->sums[cell] += x;
        h->counts[cell]++;
    } else {
        h->bad[cell] = true;
    }
}

static tnf_status take_all(heat *h, const view *v, tnf_error *error)
{
    blocks b;
    uint64_t at = 0;
    tnf_status status = blocks_begin(&b, v, error);
    while (status == TNF_OK && (status = blocks_next(&b, error)) == TNF_OK && b.elements > 0)
        for (size_t i = 0; i < b.elements; i++, at++) {
            double numbers[2] = { 0 };
            if (!tnf_type_decode(numbers, v->type, b.bytes, i, 1))
                break;
            take_value(h, at, numbers[0]);
        }
    blocks_end(&b);
    return status;
}

static void put_cells(FILE *to, const heat *h)
{
    double most = 0;
    for (size_t i = 0; i < DOWN * ACROSS; i++) {
        double x = h->counts[i] ? fabs(h->sums[i] / (double)h->counts[i]) : 0;
        most = x > most ? x : most;
    }
    fprintf(to, "<svg class=\"heat\" width=\"%zu\" height=\"%zu\" viewBox=\"0 0 %zu %zu\">\n",
            h->across * CELL, h->down * CELL, h->across * CELL, h->down * CELL);
    for (size_t row = 0; row < h->down; row++)
        for (size_t column = 0; column < h->across; column++) {
            size_t i = row * ACROSS + column;
            double x = h->counts[i] ? h->sums[i] / (double)h->counts[i] : 0;
            if (!h->bad[i] && x == 0)
                continue;
            fprintf(to, "<rect class=\"%s\" x=\"%zu\" y=\"%zu\" width=\"%u\" height=\"%u\"",
                    h->bad[i] ? "nan"
                    : x < 0   ? "neg"
                              : "pos",
                    column * CELL, row * CELL, CELL, CELL);
            fprintf(to, " fill-opacity=\"%.2f\"/>\n", h->bad[i] ? 1 : fabs(x) / most);
        }
    fprintf(to, "</svg>\n<p>The deepest colour is a cell with a mean value of %.4g.</p>\n", most);
}

void stat_heat(const stat_html *page, const tnf_object *o)
{
    view v = { 0 };
    tnf_error error;
    heat *h = calloc(1, sizeof *h);
    tnf_status status = h && is_dense(o) ? view_object(&v, o, &error) : TNF_EINVAL;
    if (status == TNF_OK && v.elements > 0 && type_readable(v.type)) {
        h->columns = v.rank ? v.shape[v.rank - 1] : 1;
        h->rows = v.elements / h->columns;
        h->down = h->rows < DOWN ? (size_t)h->rows : DOWN;
        h->across = h->columns < ACROSS ? (size_t)h->columns : ACROSS;
        if (take_all(h, &v, &error) == TNF_OK) {
            fputs("<h2>", page->to);
            html_words(page->to, o->name, 0);
            fputs("</h2>\n", page->to);
            put_cells(page->to, h);
        }
    }
    view_free(&v);
    free(h);
}
