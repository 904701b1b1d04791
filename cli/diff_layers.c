/* SPDX-License-Identifier: MIT */
/* Sums of differences by layer, which fit on a screen even for a model of a thousand tensors. */
#include "diff_layers.h"
#include "grow.h"
#include "stat.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>

#define BEHIND (SIZE_MAX / 2) /* the place of a difference: after all tensors */

/* A tensor, or one of its differences. */
typedef struct diff_entry {
    tnf_str layer;
    size_t place;
    const tnf_object *object;
    bool tensor, different, only_a, only_b;
    double max_abs, max_rel;
} diff_entry;

typedef struct layer {
    tnf_str name;
    size_t place;
    uint64_t tensors, different, only_a, only_b;
    double max_abs, max_rel;
} layer;

static bool add_entry(diff_layers *l, const diff_entry *e)
{
    diff_entry *more = grow_array(l->entries, l->n, &l->room, sizeof *more, 256);
    if (!more)
        return false;
    l->entries = more;
    l->entries[l->n++] = *e;
    return true;
}

bool diff_layers_add(diff_layers *l, const tnf_difference *d)
{
    const tnf_object *o = d->a ? d->a : d->b;
    if (!o || d->kind == TNF_DIFF_ORDER)
        return true;
    diff_entry e = { .layer = stat_prefix(o->name, 0), .place = BEHIND + l->n, .object = o };
    e.only_a = d->kind == TNF_DIFF_ONLY_A;
    e.only_b = e.tensor = d->kind == TNF_DIFF_ONLY_B;
    e.different = !e.only_a && !e.only_b;
    if (d->kind == TNF_DIFF_VALUES && d->values->numbers) {
        e.max_abs = d->values->max_abs;
        e.max_rel = d->values->max_rel;
    }
    return add_entry(l, &e);
}

static bool add_tensors(diff_layers *l, const tnf_file *a)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(a, i)); i++)
        if (!add_entry(
                l, &(diff_entry) { .layer = stat_prefix(o->name, 0), .place = i, .tensor = true }))
            return false;
    return true;
}

static int by_layer(const void *a, const void *b)
{
    const diff_entry *x = a, *y = b;
    int c = compare_texts(x->layer, y->layer);
    return c ? c : (x->place > y->place) - (x->place < y->place);
}

static int by_place(const void *a, const void *b)
{
    const layer *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* The entries of one tensor are adjacent, so a tensor counts as different once. */
static void take_entry(layer *to, const diff_entry *e, const tnf_object **last)
{
    to->tensors += e->tensor;
    to->only_a += e->only_a;
    to->only_b += e->only_b;
    to->different += e->different && e->object != *last;
    *last = e->different ? e->object : *last;
    to->max_abs = e->max_abs > to->max_abs ? e->max_abs : to->max_abs;
    to->max_rel = e->max_rel > to->max_rel ? e->max_rel : to->max_rel;
}

static layer *sum_layers(diff_layers *l, size_t *n)
{
    layer *all = calloc(l->n + 1, sizeof *all);
    const tnf_object *last = NULL;
    *n = 0;
    if (!all)
        return NULL;
    qsort(l->entries, l->n, sizeof *l->entries, by_layer);
    for (size_t i = 0; i < l->n; i++) {
        const diff_entry *e = &l->entries[i];
        if (*n == 0 || all[*n - 1].name.n != e->layer.n ||
            memcmp(all[*n - 1].name.p, e->layer.p, e->layer.n) != 0)
            all[(*n)++] = (layer) { .name = e->layer, .place = e->place };
        take_entry(&all[*n - 1], e, &last);
    }
    qsort(all, *n, sizeof *all, by_place);
    return all;
}

static void as_json(json *j, const layer *all, size_t n)
{
    json_open(j, '[');
    for (size_t i = 0; i < n; i++) {
        json_line(j);
        json_open(j, '{');
        json_key(j, "layer");
        json_str(j, all[i].name);
        const uint64_t counts[] = { all[i].tensors, all[i].different, all[i].only_a,
                                    all[i].only_b };
        static const char *const names[] = { "tensors", "different", "only_a", "only_b" };
        for (size_t k = 0; k < 4; k++) {
            json_key(j, names[k]);
            json_uint(j, counts[k]);
        }
        json_key(j, "max_abs");
        json_f64(j, all[i].max_abs);
        json_key(j, "max_rel");
        json_f64(j, all[i].max_rel);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void figure_cell(text_table *t, double x)
{
    char text[FIGURE_TEXT] = "";
    if (x != 0)
        stat_figure(text, x);
    table_text(t, text);
}

static void as_table(const cli_state *cli, const layer *all, size_t n)
{
    static const table_column columns[] = {
        { "LAYER", false, true, 0, 24 },    { "TENSORS", true, false, 4, 0 },
        { "DIFFERENT", true, false, 0, 0 }, { "ONLY A", true, false, 2, 0 },
        { "ONLY B", true, false, 3, 0 },    { "MAX ABS", true, false, 1, 0 },
        { "MAX REL", true, false, 5, 0 },
    };
    text_table t;
    table_begin(&t, cli, columns, sizeof columns / sizeof *columns, 0);
    do
        for (size_t i = 0; i < n; i++) {
            table_str(&t, all[i].name);
            table_number(&t, all[i].tensors);
            table_number(&t, all[i].different);
            table_number(&t, all[i].only_a);
            table_number(&t, all[i].only_b);
            figure_cell(&t, all[i].max_abs);
            figure_cell(&t, all[i].max_rel);
            table_row_end(&t);
        }
    while (table_again(&t));
}

bool diff_layers_print(diff_layers *l, const cli_state *cli, const tnf_file *a, json *j)
{
    size_t n;
    layer *all = add_tensors(l, a) ? sum_layers(l, &n) : NULL;
    if (!all)
        return false;
    if (j)
        as_json(j, all, n);
    else if (n > 0)
        as_table(cli, all, n);
    free(all);
    return true;
}

void diff_layers_free(diff_layers *l)
{
    free(l->entries);
    *l = (diff_layers) { 0 };
}
