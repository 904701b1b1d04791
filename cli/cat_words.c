/* SPDX-License-Identifier: MIT */
/* Tensors whose elements are texts of a fixed width: the last dimension holds their characters, and
 * the library decodes them. They are shown like tensors of strings. */
#include "array.h"
#include <stdlib.h>
#include <string.h>

#define LINES_SHOWN 1000u
#define LINES_EDGE  20u

bool is_words(const view *v)
{
    uint32_t axes, last = v->object.rank - 1;
    if (v->object.rank == 0 || !tnf_has_element_text(&axes, &v->object) || axes != 1)
        return false;
    const tnf_slice *s = &v->slices[last];
    return !s->drop && s->step == 1 && s->count > 0 && s->count == v->object.shape[last] &&
           s->count <= BLOCK_BYTES / 4;
}

/* Collects the bytes of a word, since a block may end inside a word. */
typedef struct words {
    const view *view;
    size_t width, have; /* bytes of a word, and bytes of this word so far */
    unsigned char *bytes;
    char *text;
    size_t room;
    json *j; /* NULL: write lines to `to` */
    FILE *to;
    uint64_t columns, at; /* of a table; columns 0: no table */
} words;

static tnf_status words_begin(words *w, const view *v, tnf_error *error)
{
    size_t chars = (size_t)v->shape[v->rank - 1];
    w->view = v;
    w->width = chars * (v->type->bits / 8);
    w->room = 4 * chars + 1;
    w->bytes = malloc(w->width);
    w->text = malloc(w->room);
    return w->bytes && w->text ? TNF_OK : cat_fail(error, TNF_ENOMEM, "out of memory");
}

static void words_end(words *w)
{
    free(w->bytes);
    free(w->text);
}

static void put_word(words *w)
{
    size_t n = tnf_element_text(w->text, w->room, &w->view->object, w->bytes, w->width);
    tnf_str text = { w->text, n < w->room ? n : 0 };
    if (w->j) {
        json_str(w->j, text);
        return;
    }
    if (w->columns) {
        csv_cell(w->to, text);
        w->at = w->at + 1 < w->columns ? w->at + 1 : 0;
        putc_unlocked(w->at ? ',' : '\n', w->to);
        return;
    }
    put_name(w->to, text);
    putc_unlocked('\n', w->to);
}

static void take_bytes(words *w, const unsigned char *p, size_t n)
{
    while (n > 0) {
        size_t some = n < w->width - w->have ? n : w->width - w->have;
        memcpy(w->bytes + w->have, p, some);
        w->have += some;
        p += some;
        n -= some;
        if (w->have < w->width)
            break;
        put_word(w);
        w->have = 0;
    }
}

static tnf_status all_words(words *w, tnf_error *error)
{
    blocks b;
    tnf_status status = blocks_begin(&b, w->view, error);
    while (status == TNF_OK && (status = blocks_next(&b, error)) == TNF_OK && b.elements > 0)
        take_bytes(w, b.bytes, b.n);
    blocks_end(&b);
    return status;
}

/* Prints the words from..to in C order. Each one is read separately. */
static tnf_status some_words(words *w, uint64_t from, uint64_t to, tnf_error *error)
{
    const view *v = w->view;
    tnf_status status = TNF_OK;
    uint64_t *position = calloc(v->rank, sizeof *position);
    if (!position)
        return cat_fail(error, TNF_ENOMEM, "out of memory");
    for (; status == TNF_OK && from < to; from++) {
        uint64_t left = from;
        for (uint32_t d = v->rank - 1; d-- > 0; left /= v->shape[d])
            position[d] = left % v->shape[d];
        status = view_row(v, position, v->shape[v->rank - 1], w->bytes, w->width, error);
        if (status == TNF_OK)
            put_word(w);
    }
    free(position);
    return status;
}

tnf_status json_texts(json *j, const view *v, tnf_error *error)
{
    words w = { .j = j };
    tnf_status status = words_begin(&w, v, error);
    if (status == TNF_OK)
        status = all_words(&w, error);
    words_end(&w);
    return status;
}

tnf_status csv_words(FILE *to, const view *v, tnf_error *error)
{
    words w = { .to = to, .columns = v->rank == 3 ? v->shape[1] : 1 };
    tnf_status status = words_begin(&w, v, error);
    if (status == TNF_OK)
        status = all_words(&w, error);
    words_end(&w);
    return status;
}

tnf_status put_words(FILE *to, const view *v, bool all, tnf_error *error)
{
    words w = { .to = to };
    uint64_t n = v->elements / v->shape[v->rank - 1];
    tnf_status status = words_begin(&w, v, error);
    if (status == TNF_OK && (all || n <= LINES_SHOWN)) {
        status = all_words(&w, error);
    } else if (status == TNF_OK) {
        status = some_words(&w, 0, LINES_EDGE, error);
        fputs("...\n", to);
        if (status == TNF_OK)
            status = some_words(&w, n - LINES_EDGE, n, error);
    }
    words_end(&w);
    return status;
}
