/* SPDX-License-Identifier: MIT */
/* `tenfold stat --html`: one page that needs nothing else, neither scripts nor anything from
 * elsewhere, and says so to the browser. It is well-formed XML. Names are a stranger's: control
 * characters are made visible, then markup is escaped. */
#include "stat.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS    2000u /* tensors in the table: the largest ones */
#define BOXES   400u  /* of the treemap */
#define COLOURS 8u
#define WIDE    1000.0
#define HIGH    420.0
#define BINS    48u
#define LETTER  7.2 /* how wide one is, about */
#define HIST_H  26.0

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";

static const char style[] =
    "<style>\n"
    ":root{--bg:#fff;--fg:#1c2126;--dim:#5d6770;--line:#dfe4e8;--soft:#f4f6f8;--bad:#b3261e;"
    "--c0:#4269d0;--c1:#d48806;--c2:#2e8b57;--c3:#c1504f;--c4:#7a5fc0;--c5:#2b8fa3;--c6:#a0703c;"
    "--c7:#7d8791}\n"
    "@media (prefers-color-scheme:dark){:root{--bg:#14181c;--fg:#e4e8ec;--dim:#98a2ab;"
    "--line:#2c343b;--soft:#1c2227;--bad:#ff8a80;--c0:#6f92ee;--c1:#e0a03c;--c2:#5cb585;"
    "--c3:#e07a78;--c4:#a48ee2;--c5:#57b3c6;--c6:#c4946a;--c7:#98a2ab}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1320px;padding:28px 24px 60px;"
    "background:var(--bg);color:var(--fg);font:14px/1.45 system-ui,sans-serif}\n"
    "h1{font-size:22px;margin:0;overflow-wrap:anywhere}h2{font-size:15px;margin:32px 0 10px}"
    "p{margin:4px 0;color:var(--dim)}\n"
    ".bar{display:flex;height:22px;border-radius:4px;overflow:hidden;background:var(--soft)}"
    ".legend{display:flex;flex-wrap:wrap;gap:4px 22px;margin:10px 0 0;padding:0;list-style:none;"
    "color:var(--dim)}.legend b{color:var(--fg);font-weight:600}"
    ".legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:7px}\n"
    "svg{display:block}.map{width:100%;height:auto;border-radius:4px}"
    ".map rect{stroke:var(--bg);stroke-width:1.2}.map text{fill:#fff;font-size:12px;"
    "pointer-events:none}.map .size{opacity:.8;font-size:11px}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13px}"
    "th{text-align:left;font-weight:600;color:var(--dim);position:sticky;top:0;"
    "background:var(--bg)}th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);"
    "white-space:nowrap}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    "td.name{white-space:normal;overflow-wrap:anywhere;min-width:180px;"
    "font-family:ui-monospace,monospace;font-size:12.5px}td.bad{color:var(--bad)}"
    ".hist path{fill:var(--c0)}.hist line{stroke:var(--line)}"
    ".f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}"
    ".f4{fill:var(--c4)}.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}"
    ".b0{background:var(--c0)}.b1{background:var(--c1)}.b2{background:var(--c2)}"
    ".b3{background:var(--c3)}.b4{background:var(--c4)}.b5{background:var(--c5)}"
    ".b6{background:var(--c6)}.b7{background:var(--c7)}\n"
    "</style>\n</head>\n<body>\n";

/* ------------------------------------------------------------------- text */

static void put_escaped(FILE *to, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (p[i]) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        case '\'':
            fputs("&#39;", to);
            break;
        default:
            putc_unlocked(p[i], to);
        }
}

/* The text is first made safe for a terminal, which removes all bytes that are not characters.
 * It is cut to `most` columns, with dots; 0: not cut. */
static void put_words(FILE *to, tnf_str s, size_t most)
{
    char *text = NULL;
    size_t n = 0;
    FILE *safe = open_memstream(&text, &n);
    if (!safe)
        return;
    put_safe(safe, s.p, s.n, false);
    if (fclose(safe) != 0 || !text)
        return;
    size_t cut = n, columns = 0;
    for (size_t i = 0; most && i < n; i++) {
        bool starts = (text[i] & 0xc0) != 0x80;
        if (starts && ++columns > most - 1 && cut == n)
            cut = i;
    }
    bool dots = most && columns > most;
    put_escaped(to, text, dots ? cut : n);
    if (dots)
        fputs("…", to);
    free(text);
}

static void put_words_of(FILE *to, const char *s)
{
    put_words(to, (tnf_str) { s, strlen(s) }, 0);
}

/* ------------------------------------------------------------------- sums */

/* The colour of a type: its place among the types, the largest first. */
static unsigned colour(const stat_sums *s, const char *type)
{
    for (unsigned i = 0; i < s->ntypes; i++)
        if (strlen(type) == s->types[i].name.n && !strncmp(type, s->types[i].name.p, strlen(type)))
            return i < COLOURS ? i : COLOURS - 1;
    return COLOURS - 1;
}

static void put_types(FILE *to, const stat_sums *s)
{
    fputs("<h2>Types</h2>\n<div class=\"bar\">", to);
    for (unsigned i = 0; i < s->ntypes; i++)
        fprintf(to, "<div class=\"b%u\" style=\"width:%.3f%%\"></div>",
                i < COLOURS ? i : COLOURS - 1, 100 * stat_share(s->types[i].bytes, s->bytes));
    fputs("</div>\n<ul class=\"legend\">\n", to);
    for (unsigned i = 0; i < s->ntypes; i++) {
        char size[SIZE_TEXT];
        size_text(size, s->types[i].bytes);
        fprintf(to, "<li><i class=\"b%u\"></i><b>", i < COLOURS ? i : COLOURS - 1);
        put_words(to, s->types[i].name, 0);
        fprintf(to, "</b> %s, %.1f %%, %" PRIu64 " tensor%s</li>\n", size,
                100 * stat_share(s->types[i].bytes, s->bytes), s->types[i].tensors,
                s->types[i].tensors == 1 ? "" : "s");
    }
    fputs("</ul>\n", to);
}

static int larger_first(const void *a, const void *b)
{
    const stat_sum *x = *(const stat_sum *const *)a, *y = *(const stat_sum *const *)b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : x < y ? -1 : x > y;
}

static void put_box(FILE *to, const stat_sums *all, const stat_sum *s, const stat_box *b)
{
    char size[SIZE_TEXT];
    size_text(size, s->bytes);
    fprintf(to,
            "<g><rect class=\"f%u\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
            colour(all, s->type), b->x, b->y, b->w, b->h);
    put_words(to, s->name, 0);
    fprintf(to, ": %s, %" PRIu64 " tensor%s</title></rect>", size, s->tensors,
            s->tensors == 1 ? "" : "s");
    size_t letters = (size_t)((b->w - 12) / LETTER);
    if (b->w > 12 + 5 * LETTER && b->h > 20) {
        fprintf(to, "<text x=\"%.1f\" y=\"%.1f\">", b->x + 6, b->y + 16);
        put_words(to, s->name, letters);
        fputs("</text>", to);
        if (b->h > 36)
            fprintf(to, "<text class=\"size\" x=\"%.1f\" y=\"%.1f\">%s</text>", b->x + 6, b->y + 31,
                    size);
    }
    fputs("</g>\n", to);
}

/* Boxes for the largest, and one for all that would be too small to see. */
static void put_map(FILE *to, const stat_sums *s)
{
    const stat_sum **order = calloc(s->ngroups + 1, sizeof *order);
    size_t n = s->ngroups < BOXES ? s->ngroups : BOXES;
    double *weights = calloc(n + 2, sizeof *weights);
    stat_box *boxes = calloc(n + 2, sizeof *boxes);
    stat_sum rest = { .name = { "all others", 10 }, .type = "" };
    for (size_t i = 0; order && i < s->ngroups; i++)
        order[i] = &s->groups[i];
    if (order && weights && boxes) {
        qsort(order, s->ngroups, sizeof *order, larger_first);
        for (size_t i = 0; i < s->ngroups; i++) {
            if (i < n)
                weights[i] = (double)order[i]->bytes;
            rest.bytes += i < n ? 0 : order[i]->bytes;
            rest.tensors += i < n ? 0 : order[i]->tensors;
        }
        weights[n] = (double)rest.bytes;
        stat_treemap(boxes, weights, n + 1, (stat_box) { 0, 0, WIDE, HIGH });
        fprintf(to, "<h2>Layers</h2>\n<svg class=\"map\" viewBox=\"0 0 %g %g\">\n", WIDE, HIGH);
        for (size_t i = 0; i <= n; i++)
            if (boxes[i].w > 0 && boxes[i].h > 0)
                put_box(to, s, i < n ? order[i] : &rest, &boxes[i]);
        fputs("</svg>\n<p>Areas are bytes, colours the type that most of them have.</p>\n", to);
    }
    free(order);
    free(weights);
    free(boxes);
}

/* ------------------------------------------------------------------ table */

static int larger_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* Of which size on tensors are in the table. */
static void choose(stat_html *h, const stat_sums *sums)
{
    const tnf_object *o;
    size_t n = 0;
    h->room = ROWS;
    if (sums->tensors <= ROWS)
        return;
    uint64_t *sizes = calloc(h->in->info->objects, sizeof *sizes);
    for (size_t i = 0; sizes && (o = tnf_at(h->in->file, i)); i++)
        sizes[n++] = object_bytes(o);
    if (sizes) {
        qsort(sizes, n, sizeof *sizes, larger_size);
        h->least = sizes[ROWS - 1];
        for (size_t i = 0; sizes[i] > h->least; i++)
            h->room--;
    }
    free(sizes);
}

static void begin_html(void *ctx, const stat_sums *sums)
{
    stat_html *h = ctx;
    char size[SIZE_TEXT];
    size_text(size, sums->bytes);
    choose(h, sums);
    fputs(head, h->to);
    fputs("<title>", h->to);
    put_words_of(h->to, h->in->name);
    fputs("</title>\n", h->to);
    fputs(style, h->to);
    fputs("<h1>", h->to);
    put_words_of(h->to, h->in->name);
    fprintf(h->to, "</h1>\n<p>%s%s%s · %" PRIu64 " tensor%s · %s (", h->in->info->format,
            *h->in->info->version ? " " : "", h->in->info->version, sums->tensors,
            sums->tensors == 1 ? "" : "s", size);
    put_grouped(h->to, sums->bytes);
    fputs(" bytes)</p>\n", h->to);
    if (sums->bytes > 0) {
        put_types(h->to, sums);
        put_map(h->to, sums);
    }
    if (h->values)
        fputs("<h2>Tensors</h2>\n<div class=\"scroll\"><table>\n<tr><th>name</th><th>type</th>"
              "<th>shape</th><th class=\"n\">size</th><th class=\"n\">min</th>"
              "<th class=\"n\">max</th><th class=\"n\">mean</th><th class=\"n\">std</th>"
              "<th class=\"n\">zeros</th><th></th><th>values</th></tr>\n",
              h->to);
}

static void put_histogram(FILE *to, const tnf_stat *s)
{
    uint64_t most = 1;
    for (size_t i = 0; i < s->nbins; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    fprintf(to, "<svg class=\"hist\" width=\"%u\" height=\"%g\"><path d=\"", 3 * BINS, HIST_H);
    for (size_t i = 0; i < s->nbins; i++) {
        double height = stat_share(s->bins[i], most) * (HIST_H - 1);
        if (s->bins[i])
            fprintf(to, "M%zu %gv-%.2fh2.5v%.2fz", 3 * i, HIST_H - 1, height < 1 ? 1 : height,
                    height < 1 ? 1 : height);
    }
    fprintf(to, "\"/><line x1=\"0\" y1=\"%g\" x2=\"%u\" y2=\"%g\"/></svg>", HIST_H - 0.5, 3 * BINS,
            HIST_H - 0.5);
}

static void put_odd(FILE *to, const tnf_value_counts *c)
{
    const struct {
        uint64_t n;
        const char *what;
    } odd[] = { { c->nan, "NaN" }, { c->inf, "infinite" }, { c->subnormal, "subnormal" } };
    const char *comma = "";
    fputs("<td class=\"bad\">", to);
    for (size_t i = 0; i < 3; i++)
        if (odd[i].n) {
            fprintf(to, "%s%" PRIu64 " %s", comma, odd[i].n, odd[i].what);
            comma = ", ";
        }
    fputs("</td>", to);
}

static void put_figures(FILE *to, const tnf_stat *s)
{
    const tnf_value_counts *c = s->counts;
    const double figures[] = { c->min, c->max, c->mean, c->deviation };
    bool any = c->elements > c->nan + c->inf;
    for (size_t i = 0; i < 4; i++) {
        char text[FIGURE_TEXT] = "";
        if (any)
            stat_figure(text, figures[i]);
        fprintf(to, "<td class=\"n\">%s</td>", text);
    }
    fprintf(to, "<td class=\"n\">%.1f %%</td>", 100 * stat_share(c->zero, c->elements));
    put_odd(to, c);
    fputs("<td>", to);
    if (any)
        put_histogram(to, s);
    fputs("</td>", to);
}

static void tensor_html(void *ctx, const tnf_stat *s)
{
    stat_html *h = ctx;
    char size[SIZE_TEXT];
    uint64_t bytes = object_bytes(s->object);
    if (bytes < h->least || (bytes == h->least && h->room == 0)) {
        h->left_out++;
        return;
    }
    h->room -= bytes == h->least;
    size_text(size, bytes);
    fputs("<tr><td class=\"name\">", h->to);
    put_words(h->to, s->object->name, 0);
    fputs("</td><td>", h->to);
    put_words_of(h->to, object_kind(s->object));
    fputs("</td><td>", h->to);
    stat_shape(h->to, s->object);
    fprintf(h->to, "</td><td class=\"n\">%s</td>", size);
    if (s->numbers && s->counts->elements > 0)
        put_figures(h->to, s);
    else
        fputs("<td></td><td></td><td></td><td></td><td></td><td></td><td></td>", h->to);
    fputs("</tr>\n", h->to);
}

static void end_html(void *ctx)
{
    stat_html *h = ctx;
    if (h->values)
        fputs("</table></div>\n", h->to);
    if (h->left_out)
        fprintf(h->to, "<p>%" PRIu64 " smaller tensors are not listed.</p>\n", h->left_out);
    fprintf(h->to, "<p>tenfold %s</p>\n</body>\n</html>\n", tnf_version());
}

const stat_view stat_view_html = { begin_html, tensor_html, end_html, BINS };
