/* SPDX-License-Identifier: MIT */
/* Prints arrays as numpy does: nested brackets, one row per line, a blank line between tables.
 * Large arrays show only their edges. */
#include "array.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_MOST 1000u
#define EDGE       3u
#define LINE_WIDTH 79u /* if the output is not a terminal */

/* The position of the printer within the brackets. */
typedef struct printer {
    FILE *to;
    const view *view;
    uint64_t *index; /* of the next element */
    uint64_t *head;  /* elements shown at the beginning of each dimension, before the gap */
    uint64_t *tail;  /* elements shown at its end, after the gap */
    size_t width;    /* elements are padded to it */
    size_t column;
    size_t line; /* columns of a line */
} printer;

static bool has_gap(const printer *p, uint32_t d)
{
    return p->head[d] < p->view->shape[d];
}

/* Before an element: opens the brackets that begin here, or separates it from the previous one. */
static void put_lead(printer *p)
{
    uint32_t rank = p->view->rank, opened = 0;
    while (opened < rank && p->index[rank - 1 - opened] == 0)
        opened++;
    if (opened < rank && opened > 0) { /* not the first element of all */
        for (uint32_t i = 0; i < opened; i++)
            putc_unlocked('\n', p->to);
        put_spaces(p->to, rank - opened);
    }
    for (uint32_t i = 0; i < opened; i++)
        putc_unlocked('[', p->to);
    if (opened > 0)
        p->column = rank;
}

/* Prints dots for the middle of dimension d, which is left out. */
static void put_gap(printer *p, uint32_t d)
{
    uint32_t rank = p->view->rank;
    if (d + 1 == rank) {
        fputs(" ...", p->to);
        p->column += 4;
        return;
    }
    for (uint32_t i = 0; i < rank - d - 1; i++)
        putc_unlocked('\n', p->to);
    put_spaces(p->to, d + (size_t)1);
    fputs("...", p->to);
}

static void put_element(printer *p, const char *text, size_t n)
{
    uint32_t rank = p->view->rank;
    size_t width = n > p->width ? n : p->width;
    bool first = rank == 0 || p->index[rank - 1] == 0;
    put_lead(p);
    if (!first && p->column + 1 + width > p->line) {
        putc_unlocked('\n', p->to);
        put_spaces(p->to, rank);
        p->column = rank;
    } else if (!first) {
        putc_unlocked(' ', p->to);
        p->column++;
    }
    put_spaces(p->to, width - n);
    fwrite(text, 1, n, p->to);
    p->column += width;
}

/* After an element: advances to the next index, closes brackets that end here and marks gaps. */
static void next_index(printer *p)
{
    for (uint32_t d = p->view->rank; d-- > 0;) {
        uint64_t n = p->view->shape[d];
        if (++p->index[d] < n) {
            if (has_gap(p, d) && p->index[d] == p->head[d]) {
                put_gap(p, d);
                p->index[d] = n - p->tail[d];
            }
            return;
        }
        putc_unlocked(']', p->to);
        p->index[d] = 0;
    }
}

/* Decides how much of each dimension is shown: at most SHOWN_MOST elements altogether. */
static bool choose_edges(printer *p)
{
    uint32_t rank = p->view->rank;
    for (uint64_t edge = EDGE; edge > 0; edge--) {
        uint64_t shown = 1;
        for (uint32_t d = 0; d < rank && shown <= SHOWN_MOST; d++) {
            uint64_t n = p->view->shape[d];
            bool cut = n > 2 * edge;
            p->head[d] = cut ? edge : n;
            p->tail[d] = cut ? edge : 0;
            shown *= p->head[d] + p->tail[d];
        }
        if (shown <= SHOWN_MOST)
            return true;
    }
    return false;
}

static tnf_status stream_all(printer *p, tnf_error *error)
{
    blocks b;
    element_run e;
    tnf_status status = blocks_begin(&b, p->view, error);
    while (status == TNF_OK && (status = blocks_next(&b, error)) == TNF_OK && b.elements > 0) {
        elements_of(&e, p->view, b.bytes, b.elements);
        for (size_t i = 0; i < b.elements; i++) {
            char text[ELEMENT_TEXT];
            int n = element_text(&e, i, text);
            put_element(p, text, (size_t)n);
            next_index(p);
        }
    }
    blocks_end(&b);
    return status;
}

typedef struct texts {
    char (*items)[ELEMENT_TEXT];
    size_t n;
} texts;

static tnf_status read_run(const view *v, const uint64_t *index, uint64_t count, texts *t,
                           tnf_error *error)
{
    unsigned char bytes[SHOWN_MOST * 16];
    element_run e;
    tnf_status status = view_row(v, index, count, bytes, sizeof bytes, error);
    if (status != TNF_OK)
        return status;
    elements_of(&e, v, bytes, (size_t)count);
    for (size_t i = 0; i < count; i++)
        element_text(&e, i, t->items[t->n++]);
    return TNF_OK;
}

/* Collects the shown elements in order: the beginning and the end of each shown row. */
static tnf_status collect_texts(const printer *p, texts *t, tnf_error *error)
{
    const view *v = p->view;
    if (v->rank == 0)
        return read_run(v, p->index, 1, t, error);
    uint32_t last = v->rank - 1;
    for (;;) {
        tnf_status status;
        p->index[last] = 0;
        if ((status = read_run(v, p->index, p->head[last], t, error)) != TNF_OK)
            return status;
        p->index[last] = v->shape[last] - p->tail[last];
        if (p->tail[last] > 0 &&
            (status = read_run(v, p->index, p->tail[last], t, error)) != TNF_OK)
            return status;
        p->index[last] = 0;
        uint32_t d = last;
        while (d-- > 0) {
            if (++p->index[d] == p->head[d] && p->head[d] < v->shape[d])
                p->index[d] = v->shape[d] - p->tail[d];
            if (p->index[d] < v->shape[d])
                break;
            p->index[d] = 0;
        }
        if (d == UINT32_MAX)
            return TNF_OK;
    }
}

static tnf_status put_aligned(printer *p, tnf_error *error)
{
    texts t = { calloc(SHOWN_MOST, ELEMENT_TEXT), 0 };
    if (!t.items)
        return cat_fail(error, TNF_ENOMEM, "out of memory");
    tnf_status status = collect_texts(p, &t, error);
    for (size_t i = 0; i < t.n; i++)
        if (strlen(t.items[i]) > p->width)
            p->width = strlen(t.items[i]);
    for (size_t i = 0; status == TNF_OK && i < t.n; i++) {
        put_element(p, t.items[i], strlen(t.items[i]));
        next_index(p);
    }
    free(t.items);
    return status;
}

static void show_everything(printer *p)
{
    for (uint32_t d = 0; d < p->view->rank; d++) {
        p->head[d] = p->view->shape[d];
        p->tail[d] = 0;
    }
}

tnf_status put_array(FILE *to, const view *v, bool all, tnf_error *error)
{
    if (v->elements == 0) {
        fputs("[]\n", to);
        return TNF_OK;
    }
    uint64_t *numbers = calloc(3 * ((size_t)v->rank + 1), sizeof *numbers);
    if (!numbers)
        return cat_fail(error, TNF_ENOMEM, "out of memory");
    printer p = {
        .to = to,
        .view = v,
        .index = numbers,
        .head = numbers + v->rank + 1,
        .tail = numbers + 2 * ((size_t)v->rank + 1),
    };
    size_t terminal = terminal_width(STDOUT_FILENO);
    p.line = terminal ? terminal : LINE_WIDTH;
    tnf_status status;
    bool few = v->elements <= SHOWN_MOST;
    show_everything(&p);
    if (all && !few)
        status = stream_all(&p, error);
    else if (few || choose_edges(&p))
        status = put_aligned(&p, error);
    else
        status = cat_fail(error, TNF_EINVAL,
                          "too many dimensions for a summary; use a slice, or --all");
    putc_unlocked('\n', to);
    free(numbers);
    return status;
}
