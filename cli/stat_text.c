/* SPDX-License-Identifier: MIT */
/* The text output of `tenfold stat`: bars for sizes, and a line for each tensor. */
#include "stat.h"
#include <inttypes.h>
#include <string.h>

#define BAR     24u
#define GROUPS  40u /* shown */
#define COLUMNS 16u /* of a histogram */

static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
static const char *const heights[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char ascii_heights[] = " .:-=+*#@";

/* The bytes of a bar: each column is a character of up to three bytes. */
#define BAR_TEXT (3 * BAR + 1)

/* A bar of at most BAR columns; a share above 0 is always visible. */
static void bar_text(const stat_text *t, double share, char out[BAR_TEXT])
{
    unsigned steps = t->ascii ? 1 : 8, n = (unsigned)(share * BAR * steps + 0.5);
    n = n == 0 && share > 0 ? 1 : n;
    size_t at = 0;
    *out = '\0';
    for (unsigned i = 0; i < n / steps && i < BAR; i++)
        at += (size_t)snprintf(out + at, BAR_TEXT - at, "%s", t->ascii ? "#" : "█");
    if (!t->ascii && n / steps < BAR)
        snprintf(out + at, BAR_TEXT - at, "%s", eighths[n % steps]);
}

static void sum_row(const stat_text *t, text_table *to, const stat_sum *s, uint64_t total)
{
    char bar[BAR_TEXT], text[48];
    double share = stat_share(s->bytes, total);
    table_str(to, s->name);
    bar_text(t, share, bar);
    table_text(to, bar);
    snprintf(text, sizeof text, "%.1f %%", 100 * share);
    table_text(to, text);
    table_size(to, s->bytes);
    snprintf(text, sizeof text, "%" PRIu64 " tensor%s", s->tensors, s->tensors == 1 ? "" : "s");
    table_text(to, text);
    table_row_end(to);
}

static void put_sums(const stat_text *t, const char *title, const stat_sum *sums, size_t n,
                     uint64_t total)
{
    static const table_column columns[] = {
        { "", false, true, 0, 24 }, { "", false, false, 3, 0 }, { "", true, false, 1, 0 },
        { "", true, false, 2, 0 },  { "", false, false, 4, 0 },
    };
    text_table to;
    printf("\n%s%s%s\n", paint_code(t->cli, PAINT_BOLD), title, paint_code(t->cli, PAINT_OFF));
    table_begin(&to, t->cli, columns, sizeof columns / sizeof *columns, 2);
    do
        for (size_t i = 0; i < n && i < GROUPS; i++)
            sum_row(t, &to, &sums[i], total);
    while (table_again(&to));
    if (n > GROUPS)
        printf("  and %zu more\n", n - GROUPS);
}

/* Everything but the statistics is known before any value is read; for these the widest texts are
 * used. */
static void measure_columns(stat_text *t)
{
    static const table_column columns[] = {
        { "name", false, true, 0, 24 },      { "type", false, false, 6, 0 },
        { "shape", false, true, 8, 0 },      { "min", true, false, 2, 0 },
        { "max", true, false, 1, 0 },        { "mean", true, false, 3, 0 },
        { "std", true, false, 4, 0 },        { "zeros", true, false, 5, 0 },
        { "histogram", false, false, 7, 0 },
    };
    static const char *const widest[] = { "-1.234e+38", "-1.234e+38", "-1.234e+38",
                                          "-1.234e+38", "100.0 %",    "----------------" };
    const tnf_object *o;
    table_begin(&t->table, t->cli, columns, sizeof columns / sizeof *columns, 2);
    for (size_t i = 0; (o = tnf_at(t->in->file, i)); i++) {
        char shape[SHAPE_TEXT];
        table_str(&t->table, o->name);
        table_text(&t->table, object_kind(o));
        shape_text(shape, o);
        table_text(&t->table, shape);
        for (size_t k = 0; k < sizeof widest / sizeof *widest; k++)
            table_text(&t->table, widest[k]);
        table_row_end(&t->table);
    }
    table_again(&t->table);
}

static void begin_text(void *ctx, const stat_sums *sums)
{
    stat_text *t = ctx;
    char size[SIZE_TEXT];
    size_text(size, sums->bytes);
    char text[200];
    snprintf(text, sizeof text, "%s, %" PRIu64 " tensor%s, %s", t->in->info->format, sums->tensors,
             sums->tensors == 1 ? "" : "s", size);
    size_t column = put_safe(stdout, t->in->name, strlen(t->in->name), false);
    putchar(':');
    put_filled(stdout, text, 0, column + 1);
    if (sums->tensors == 0)
        return;
    put_sums(t, "Types", sums->types, sums->ntypes, sums->bytes);
    put_sums(t, "Layers", sums->groups, sums->ngroups, sums->bytes);
    if (!t->values)
        return;
    printf("\n%sTensors%s\n", paint_code(t->cli, PAINT_BOLD), paint_code(t->cli, PAINT_OFF));
    measure_columns(t);
}

static void histogram_text(const stat_text *t, const tnf_stat *s, char out[3 * COLUMNS + 1])
{
    uint64_t most = 0;
    size_t end = 0;
    *out = '\0';
    for (size_t i = 0; i < s->nbins; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    for (size_t i = 0; i < s->nbins && i < COLUMNS; i++) {
        unsigned height = (unsigned)(stat_share(s->bins[i], most) * 8 + 0.5);
        height = height == 0 && s->bins[i] ? 1 : height;
        strncat(out, t->ascii ? ascii_heights + height : heights[height], t->ascii ? 1 : 3);
        end = height ? strlen(out) : end;
    }
    out[end] = '\0';
}

/* Notes a count of unusual values, if there are any. */
static void put_odd(stat_text *t, uint64_t n, const char *what, paint p)
{
    char text[48];
    snprintf(text, sizeof text, "%" PRIu64 " %s", n, what);
    if (n)
        table_note(&t->table, p, text);
}

static void put_figures(stat_text *t, const tnf_stat *s)
{
    const tnf_value_counts *c = s->counts;
    const double figures[] = { c->min, c->max, c->mean, c->deviation };
    bool any = c->elements > c->nan + c->inf;
    char text[3 * COLUMNS + 1];
    for (size_t i = 0; i < 4; i++) {
        char figure[FIGURE_TEXT] = "-";
        if (any)
            stat_figure(figure, figures[i]);
        table_text(&t->table, figure);
    }
    snprintf(text, sizeof text, "%.1f %%", 100 * stat_share(c->zero, c->elements));
    table_text(&t->table, text);
    *text = '\0';
    if (any)
        histogram_text(t, s, text);
    table_text(&t->table, text);
    put_odd(t, c->nan, "NaN", PAINT_RED);
    put_odd(t, c->inf, "infinite", PAINT_RED);
    put_odd(t, c->subnormal, "subnormal", PAINT_OFF);
}

static void tensor_text(void *ctx, const tnf_stat *s)
{
    stat_text *t = ctx;
    char shape[SHAPE_TEXT];
    table_str(&t->table, s->object->name);
    table_text(&t->table, object_kind(s->object));
    shape_text(shape, s->object);
    table_text(&t->table, shape);
    if (s->numbers && s->counts->elements > 0)
        put_figures(t, s);
    table_row_end(&t->table);
}

static void end_text(void *ctx)
{
    (void)ctx;
}

const stat_view stat_view_text = { begin_text, tensor_text, end_text, COLUMNS };
