/* SPDX-License-Identifier: MIT */
/* `tenfold stat` in a terminal: bars of what takes room, a line for each tensor. */
#include "stat.h"
#include <inttypes.h>
#include <string.h>

#define BAR         24u
#define GROUPS      40u /* shown */
#define NAME_WIDEST 56u
#define COLUMNS     16u /* of a histogram */

static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
static const char *const heights[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char ascii_heights[] = " .:-=+*#@";

/* A length of at most BAR columns; what is not nothing shows. */
static void put_bar(const stat_text *t, double share)
{
    unsigned steps = t->ascii ? 1 : 8, n = (unsigned)(share * BAR * steps + 0.5);
    n = n == 0 && share > 0 ? 1 : n;
    for (unsigned i = 0; i < n / steps; i++)
        fputs(t->ascii ? "#" : "█", stdout);
    fputs(t->ascii ? "" : eighths[n % steps], stdout);
    put_spaces(stdout, BAR - n / steps - (n % steps != 0));
}

static void put_sum(const stat_text *t, const stat_sum *s, size_t width, uint64_t most,
                    uint64_t total)
{
    char size[SIZE_TEXT];
    size_text(size, s->bytes);
    fputs("  ", stdout);
    size_t n = put_name(stdout, s->name);
    put_spaces(stdout, width > n ? width - n : 0);
    fputs("  ", stdout);
    put_bar(t, stat_share(s->bytes, most));
    printf(" %5.1f %%  %10s  %" PRIu64 " tensor%s\n", 100 * stat_share(s->bytes, total), size,
           s->tensors, s->tensors == 1 ? "" : "s");
}

static void put_sums(const stat_text *t, const char *title, const stat_sum *sums, size_t n,
                     uint64_t total)
{
    uint64_t most = 0;
    size_t width = 0;
    for (size_t i = 0; i < n && i < GROUPS; i++) {
        size_t here = put_name(NULL, sums[i].name);
        most = sums[i].bytes > most ? sums[i].bytes : most;
        width = here > width && here <= NAME_WIDEST ? here : width;
    }
    printf("\n%s%s%s\n", painted(t->cli, PAINT_BOLD), title, painted(t->cli, PAINT_OFF));
    for (size_t i = 0; i < n && i < GROUPS; i++)
        put_sum(t, &sums[i], width, most, total);
    if (n > GROUPS)
        printf("  and %zu more\n", n - GROUPS);
}

static void measure_columns(stat_text *t)
{
    const tnf_object *o;
    t->name = t->type = t->shape = 5;
    for (size_t i = 0; (o = tnf_at(t->in->file, i)); i++) {
        size_t name = put_name(NULL, o->name), shape = stat_shape(NULL, o);
        t->name = name > t->name && name <= NAME_WIDEST ? name : t->name;
        size_t type = strlen(object_kind(o));
        t->type = type > t->type && type <= 16 ? type : t->type;
        t->shape = shape > t->shape && shape <= 24 ? shape : t->shape;
    }
}

static void begin_text(void *ctx, const stat_sums *sums)
{
    stat_text *t = ctx;
    char size[SIZE_TEXT];
    size_text(size, sums->bytes);
    put_safe(stdout, t->in->name, strlen(t->in->name), false);
    printf(": %s, %" PRIu64 " tensor%s, %s\n", t->in->info->format, sums->tensors,
           sums->tensors == 1 ? "" : "s", size);
    if (sums->tensors == 0)
        return;
    put_sums(t, "Types", sums->types, sums->ntypes, sums->bytes);
    put_sums(t, "Layers", sums->groups, sums->ngroups, sums->bytes);
    if (!t->values)
        return;
    measure_columns(t);
    printf("\n%sTensors%s\n  %-*s  %-*s  %-*s  %10s  %10s  %10s  %10s  %7s  %s\n",
           painted(t->cli, PAINT_BOLD), painted(t->cli, PAINT_OFF), (int)t->name, "name",
           (int)t->type, "type", (int)t->shape, "shape", "min", "max", "mean", "std", "zeros",
           "histogram");
}

/* Gives how many spaces would be at its end. */
static size_t put_histogram(const stat_text *t, const tnf_stat *s)
{
    uint64_t most = 0;
    size_t spaces = 0;
    for (size_t i = 0; i < s->nbins; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    for (size_t i = 0; i < s->nbins; i++) {
        unsigned height = (unsigned)(stat_share(s->bins[i], most) * 8 + 0.5);
        height = height == 0 && s->bins[i] ? 1 : height;
        if (height == 0) {
            spaces++;
            continue;
        }
        put_spaces(stdout, spaces);
        spaces = 0;
        if (t->ascii)
            putchar(ascii_heights[height]);
        else
            fputs(heights[height], stdout);
    }
    return spaces;
}

/* What should not be there. */
static void put_odd(const stat_text *t, uint64_t n, const char *what)
{
    if (n)
        printf("  %s%" PRIu64 " %s%s", painted(t->cli, PAINT_RED), n, what,
               painted(t->cli, PAINT_OFF));
}

static void put_figures(const stat_text *t, const tnf_stat *s)
{
    const tnf_value_counts *c = s->counts;
    const double figures[] = { c->min, c->max, c->mean, c->deviation };
    bool any = c->elements > c->nan + c->inf;
    for (size_t i = 0; i < 4; i++) {
        char text[FIGURE_TEXT] = "-";
        if (any)
            stat_figure(text, figures[i]);
        printf("  %10s", text);
    }
    printf("  %5.1f %%  ", 100 * stat_share(c->zero, c->elements));
    size_t spaces = any ? put_histogram(t, s) : COLUMNS;
    if (c->nan || c->inf || c->subnormal)
        put_spaces(stdout, spaces);
    put_odd(t, c->nan, "NaN");
    put_odd(t, c->inf, "infinite");
    put_odd(t, c->subnormal, "subnormal");
}

static void tensor_text(void *ctx, const tnf_stat *s)
{
    const stat_text *t = ctx;
    fputs("  ", stdout);
    size_t n = put_name(stdout, s->object->name);
    put_spaces(stdout, t->name > n ? t->name - n : 0);
    printf("  %-*s  ", (int)t->type, object_kind(s->object));
    n = stat_shape(stdout, s->object);
    if (s->numbers && s->counts->elements > 0) {
        put_spaces(stdout, t->shape > n ? t->shape - n : 0);
        put_figures(t, s);
    }
    putchar('\n');
}

static void end_text(void *ctx)
{
    (void)ctx;
}

const stat_view stat_view_text = { begin_text, tensor_text, end_text, COLUMNS };
