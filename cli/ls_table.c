/* SPDX-License-Identifier: MIT */
/* The text output of `tenfold ls`: a table and a total; also the orders of lists. */
#include "ls.h"
#include "table.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, DTYPE, SHAPE, PARAMS, SIZE, ENCODING, OFFSET, STORED, DIGEST };

static const table_column columns[] = {
    [NAME] = { "NAME", false, true, 0, 26 },    [DTYPE] = { "DTYPE", false, false, 1, 0 },
    [SHAPE] = { "SHAPE", false, false, 4, 0 },  [PARAMS] = { "PARAMS", true, false, 6, 0 },
    [SIZE] = { "SIZE", true, false, 3, 0 },     [ENCODING] = { "ENCODING", false, false, 7, 0 },
    [OFFSET] = { "OFFSET", true, false, 5, 0 }, [STORED] = { "STORED", true, false, 8, 0 },
    [DIGEST] = { "DIGEST", false, true, 9, 0 },
};

static const table_column sum_columns[] = {
    { "PREFIX", false, true, 0, 26 },
    { "TENSORS", true, false, 2, 0 },
    { "PARAMS", true, false, 3, 0 },
    { "SIZE", true, false, 1, 0 },
};

/* ----------------------------------------------------------------- orders */

static uint64_t first_offset(const tnf_object *o)
{
    uint64_t least = UINT64_MAX;
    for (uint16_t i = 0; i < o->nparts; i++)
        if ((o->parts[i].payload == TNF_AT || o->parts[i].payload == TNF_ENCODED) &&
            o->parts[i].offset < least)
            least = o->parts[i].offset;
    return least;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static const char *kind_of(const tnf_object *o)
{
    return object_unknown(o) ? "" : object_kind(o);
}

static int by_file(const void *a, const void *b)
{
    return compare_numbers(((const ls_item *)a)->place, ((const ls_item *)b)->place);
}

static int by_name(const void *a, const void *b)
{
    const ls_item *x = a, *y = b;
    return compare_texts(x->object->name, y->object->name);
}

static int by_size(const void *a, const void *b)
{
    const ls_item *x = a, *y = b;
    int c = compare_numbers(object_bytes(y->object), object_bytes(x->object));
    return c ? c : by_file(a, b);
}

static int by_offset(const void *a, const void *b)
{
    const ls_item *x = a, *y = b;
    int c = compare_numbers(first_offset(x->object), first_offset(y->object));
    return c ? c : by_file(a, b);
}

static int by_dtype(const void *a, const void *b)
{
    const ls_item *x = a, *y = b;
    int c = strcmp(kind_of(x->object), kind_of(y->object));
    return c ? c : by_file(a, b);
}

void ls_sort(listing *l, const ls_options *how)
{
    static int (*const orders[])(const void *, const void *) = { by_file, by_name, by_size,
                                                                 by_offset, by_dtype };
    if (how->sort != LS_FILE)
        qsort(l->items, l->n, sizeof *l->items, orders[how->sort]);
    for (size_t i = 0; how->reverse && i < l->n / 2; i++) {
        ls_item other = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = other;
    }
}

static int sums_by_name(const void *a, const void *b)
{
    return compare_texts(((const stat_sum *)a)->name, ((const stat_sum *)b)->name);
}

static int sums_by_size(const void *a, const void *b)
{
    const stat_sum *x = a, *y = b;
    int c = compare_numbers(y->bytes, x->bytes);
    return c ? c : compare_texts(x->name, y->name);
}

static int sums_by_dtype(const void *a, const void *b)
{
    const stat_sum *x = a, *y = b;
    int c = strcmp(x->type, y->type);
    return c ? c : compare_texts(x->name, y->name);
}

/* Sums are made in the order of the file, which is also used for the key "offset". */
void ls_sort_sums(stat_sums *sums, const ls_options *how)
{
    stat_sum *all = sums->groups;
    size_t n = sums->ngroups;
    if (how->sort == LS_NAME)
        qsort(all, n, sizeof *all, sums_by_name);
    else if (how->sort == LS_SIZE)
        qsort(all, n, sizeof *all, sums_by_size);
    else if (how->sort == LS_DTYPE)
        qsort(all, n, sizeof *all, sums_by_dtype);
    for (size_t i = 0; how->reverse && i < n / 2; i++) {
        stat_sum other = all[i];
        all[i] = all[n - 1 - i];
        all[n - 1 - i] = other;
    }
}

/* ------------------------------------------------------------------ lines */

static void shape_cell(text_table *t, const tnf_object *o)
{
    char text[SHAPE_TEXT];
    shape_text(text, o);
    table_text(t, text);
}

static void storage_cells(text_table *t, const tnf_part *p)
{
    char number[24] = "-", digest[LS_DIGEST] = "";
    ls_digest(digest, p);
    if (p->payload == TNF_AT || p->payload == TNF_ENCODED)
        snprintf(number, sizeof number, "%" PRIu64, p->offset);
    table_text(t, ls_encoding(p));
    table_text(t, number);
    snprintf(number, sizeof number, "%" PRIu64, p->stored);
    table_text(t, number);
    table_text(t, digest);
}

static void part_row(text_table *t, const tnf_part *p)
{
    char role[80];
    snprintf(role, sizeof role, "  #%.70s", p->role);
    table_text(t, role);
    table_text(t, p->type->id);
    table_text(t, "");
    table_text(t, "");
    table_size(t, p->nbytes);
    storage_cells(t, p);
    table_row_end(t);
}

/* Unknown values are shown as a dash. */
static void tensor_cells(text_table *t, const tnf_object *o)
{
    table_str(t, o->name);
    if (object_unknown(o)) {
        for (size_t i = DTYPE; i <= SIZE; i++)
            table_text(t, "-");
        return;
    }
    table_text(t, object_kind(o));
    shape_cell(t, o);
    table_number(t, object_parameters(o));
    table_size(t, object_bytes(o));
}

static void tensor_rows(text_table *t, const tnf_object *o, bool details)
{
    const char *file = tnf_missing_file(o);
    tensor_cells(t, o);
    if (details && o->nparts == 1)
        storage_cells(t, &o->parts[0]);
    if (file) {
        char text[600];
        snprintf(text, sizeof text, "missing: %.500s", file);
        table_note(t, PAINT_RED, text);
    } else if (tnf_why_unreadable(o)) {
        char text[300];
        const char *why = tnf_why_unreadable(o);
        snprintf(text, sizeof text, "unreadable%s%.250s", *why ? ": " : "", why);
        table_note(t, PAINT_RED, text);
    }
    if (details && o->order == TNF_ORDER_F)
        table_note(t, PAINT_OFF, "order F");
    table_row_end(t);
    for (uint16_t i = 0; details && o->nparts > 1 && i < o->nparts; i++)
        part_row(t, &o->parts[i]);
}

/* "13 tensors, 24 parameters, 119 B" */
static void total_line(const char *before, const ls_total *total)
{
    char size[SIZE_TEXT], tensors[GROUPED_TEXT], parameters[GROUPED_TEXT], text[256];
    size_text(size, total->bytes);
    grouped_text(tensors, total->tensors);
    grouped_text(parameters, total->parameters);
    snprintf(text, sizeof text, "%s%s tensor%s, %s parameter%s, %s", before, tensors,
             total->tensors == 1 ? "" : "s", parameters, total->parameters == 1 ? "" : "s", size);
    put_filled(stdout, text, 0, 0);
}

static void add_total(ls_total *to, const ls_total *one)
{
    to->tensors += one->tensors;
    to->parameters += one->parameters;
    to->bytes += one->bytes;
}

void ls_print(const cli_state *cli, const listing *l, const ls_options *how, ls_total *total)
{
    text_table t;
    ls_total here = { .tensors = l->n };
    if (l->n == 0) {
        total_line("", &here);
        return;
    }
    table_begin(&t, cli, columns, how->details ? DIGEST + 1 : SIZE + 1, 0);
    do
        for (size_t i = 0; i < l->n; i++)
            tensor_rows(&t, l->items[i].object, how->details);
    while (table_again(&t));
    for (size_t i = 0; i < l->n; i++)
        if (!object_unknown(l->items[i].object)) {
            here.parameters += object_parameters(l->items[i].object);
            here.bytes += object_bytes(l->items[i].object);
        }
    total_line("", &here);
    add_total(total, &here);
}

void ls_print_sums(const cli_state *cli, const stat_sums *sums, ls_total *total)
{
    text_table t;
    ls_total here = { 0 };
    if (sums->ngroups == 0) {
        total_line("", &here);
        return;
    }
    table_begin(&t, cli, sum_columns, sizeof sum_columns / sizeof *sum_columns, 0);
    do
        for (size_t i = 0; i < sums->ngroups; i++) {
            const stat_sum *s = &sums->groups[i];
            table_str(&t, s->name);
            table_number(&t, s->tensors);
            table_number(&t, s->parameters);
            table_size(&t, s->bytes);
            table_row_end(&t);
        }
    while (table_again(&t));
    for (size_t i = 0; i < sums->ngroups; i++) {
        here.tensors += sums->groups[i].tensors;
        here.parameters += sums->groups[i].parameters;
        here.bytes += sums->groups[i].bytes;
    }
    total_line("", &here);
    add_total(total, &here);
}

void ls_print_total(const ls_total *total, size_t files)
{
    char before[48];
    snprintf(before, sizeof before, "%zu files: ", files);
    putchar('\n');
    total_line(before, total);
}
