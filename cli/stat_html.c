/* SPDX-License-Identifier: MIT */
/* `tenfold stat --html`: one page that needs no other files, and forbids the browser to load any.
 * One script, allowed by its hash, sorts and filters the table. Without scripts the table has the
 * largest tensors only. The page is well-formed XML. Names come from untrusted files: control
 * characters are made visible, then markup is escaped. */
#include "stat_html.h"
#include "stat_page.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS     200u /* tensors in the table without a script */
#define COLOURS  8u
#define BINS     48u
#define HIST_H   26.0
#define METADATA 20000u /* bytes of metadata that are shown */

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

/* The text is first made safe for a terminal, which removes all bytes that are not characters. Then
 * it is cut to `most` columns, with dots; 0: not cut. */
void html_words(FILE *to, tnf_str s, size_t most)
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
    html_words(to, (tnf_str) { s, strlen(s) }, 0);
}

/* ------------------------------------------------------------------- sums */

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
        html_words(to, s->types[i].name, 0);
        fprintf(to, "</b> %s, %.1f %%, %" PRIu64 " tensor%s</li>\n", size,
                100 * stat_share(s->types[i].bytes, s->bytes), s->types[i].tensors,
                s->types[i].tensors == 1 ? "" : "s");
    }
    fputs("</ul>\n", to);
}

/* The metadata as `tenfold meta` shows it, in a collapsed section. */
static void put_metadata(const stat_html *h)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = h->in->info->attrs->n ? open_memstream(&text, &n) : NULL;
    if (!to)
        return;
    put_attrs(to, h->in->info->attrs, 0, true);
    if (fclose(to) == 0 && text) {
        size_t shown = shown_bytes(text, n, METADATA);
        fprintf(h->to, "<details><summary>Metadata (%zu)</summary><pre>", h->in->info->attrs->n);
        put_escaped(h->to, text, shown);
        fputs(shown < n ? "\n…</pre></details>\n" : "</pre></details>\n", h->to);
    }
    free(text);
}

/* ------------------------------------------------------------------ table */

static int larger_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* Chooses the least size of tensors in the table without scripts. */
static void choose_rows(stat_html *h, const stat_sums *sums)
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

static void put_head(const stat_html *h, const stat_sums *sums)
{
    char size[SIZE_TEXT];
    uint64_t parameters = 0;
    for (size_t i = 0; i < sums->ntypes; i++)
        parameters += sums->types[i].parameters;
    size_text(size, sums->bytes);
    fputs(stat_page_head, h->to);
    fputs("<title>", h->to);
    put_words_of(h->to, h->in->name);
    fputs("</title>\n", h->to);
    fputs(stat_page_style, h->to);
    fputs("<h1>", h->to);
    put_words_of(h->to, h->in->name);
    fprintf(h->to, "</h1>\n<p>%s%s%s · ", h->in->info->format, *h->in->info->version ? " " : "",
            h->in->info->version);
    put_grouped(h->to, sums->tensors);
    fprintf(h->to, " tensor%s · ", sums->tensors == 1 ? "" : "s");
    put_grouped(h->to, parameters);
    fprintf(h->to, " parameter%s · %s (", parameters == 1 ? "" : "s", size);
    put_grouped(h->to, sums->bytes);
    fputs(" bytes)</p>\n", h->to);
}

static void begin_html(void *ctx, const stat_sums *sums)
{
    stat_html *h = ctx;
    choose_rows(h, sums);
    put_head(h, sums);
    put_metadata(h);
    if (sums->bytes > 0) {
        put_types(h->to, sums);
        stat_map(h);
    }
    if (h->heat)
        stat_heat(h, tnf_find(h->in->file, h->heat));
    h->rows = open_memstream(&h->text, &h->n);
    h->data.to = open_memstream(&h->data_text, &h->data_n);
    if (h->data.to)
        json_open(&h->data, '[');
}

static unsigned height_of(const tnf_stat *s, size_t i, uint64_t most)
{
    unsigned height = (unsigned)(stat_share(s->bins[i], most) * 35 + 0.5);
    return height == 0 && s->bins[i] ? 1 : height;
}

static uint64_t highest_bin(const tnf_stat *s)
{
    uint64_t most = 1;
    for (size_t i = 0; i < s->nbins; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    return most;
}

/* The position of zero on the axis, in pixels; negative if zero is outside. */
static double zero_at(const tnf_value_counts *c)
{
    return c->min < 0 && c->max > 0 ? -c->min / (c->max - c->min) * 3 * BINS : -1;
}

static void put_histogram(FILE *to, const tnf_stat *s)
{
    const double ends[] = { s->counts->min, s->counts->max };
    uint64_t most = highest_bin(s);
    double zero = zero_at(s->counts);
    fprintf(to, "<svg class=\"hist\" width=\"%u\" height=\"%g\"><path d=\"", 3 * BINS, HIST_H);
    for (size_t i = 0; i < s->nbins; i++)
        if (s->bins[i])
            fprintf(to, "M%zu %gv-%.1fh2.5V%gz", 3 * i, HIST_H - 1,
                    height_of(s, i, most) * (HIST_H - 1) / 35, HIST_H - 1);
    fputs("\"/>", to);
    if (zero >= 0)
        fprintf(to, "<line class=\"zero\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%g\"/>", zero, zero,
                HIST_H);
    fputs("</svg><div class=\"axis\">", to);
    for (size_t i = 0; i < 2; i++) {
        char text[FIGURE_TEXT];
        stat_figure(text, ends[i]);
        fprintf(to, "<span>%s</span>", text);
    }
    fputs("</div>", to);
}

/* NaN and infinities are red, since they break a model. */
static void put_odd(FILE *to, const tnf_value_counts *c)
{
    fputs("<td class=\"odd\">", to);
    if (c->nan)
        fprintf(to, "<span class=\"bad\">%" PRIu64 " NaN</span> ", c->nan);
    if (c->inf)
        fprintf(to, "<span class=\"bad\">%" PRIu64 " infinite</span> ", c->inf);
    if (c->subnormal)
        fprintf(to, "%" PRIu64 " subnormal", c->subnormal);
    fputs("</td>", to);
}

static bool any_finite(const tnf_stat *s)
{
    return s->numbers && s->counts->elements > s->counts->nan + s->counts->inf;
}

static void put_figures(FILE *to, const tnf_stat *s)
{
    const tnf_value_counts *c = s->counts;
    const double figures[] = { c->min, c->max, c->mean, c->deviation };
    for (size_t i = 0; i < 4; i++) {
        char text[FIGURE_TEXT] = "";
        if (any_finite(s))
            stat_figure(text, figures[i]);
        fprintf(to, "<td class=\"n figure\">%s</td>", text);
    }
    fprintf(to, "<td class=\"n figure\">%.1f %%</td>", 100 * stat_share(c->zero, c->elements));
    put_odd(to, c);
    fputs("<td class=\"values\">", to);
    if (any_finite(s))
        put_histogram(to, s);
    fputs("</td>", to);
}

static void put_row(stat_html *h, const tnf_stat *s, const char *size)
{
    FILE *to = h->rows;
    char shape[SHAPE_TEXT];
    shape_text(shape, s->object);
    fputs("<tr><td class=\"name\">", to);
    html_words(to, s->object->name, 0);
    fputs("</td><td>", to);
    put_words_of(to, object_kind(s->object));
    fprintf(to, "</td><td class=\"shape\">%s</td><td class=\"n params\">", shape);
    put_grouped(to, object_parameters(s->object));
    fprintf(to, "</td><td class=\"n\">%s</td>", size);
    if (s->numbers && s->counts->elements > 0)
        put_figures(to, s);
    else
        fputs(
            "<td class=\"figure\"></td><td class=\"figure\"></td><td class=\"figure\"></td>"
            "<td class=\"figure\"></td><td class=\"figure\"></td><td class=\"odd\"></td><td></td>",
            to);
    fputs("</tr>\n", to);
}

/* ---------------------------------------------------------- for the script */

static void data_name(json *j, tnf_str name)
{
    char *text = NULL;
    size_t n = 0;
    FILE *safe = open_memstream(&text, &n);
    if (safe) {
        put_safe(safe, name.p, name.n, false);
        fclose(safe);
    }
    json_str(j, (tnf_str) { text ? text : "", n });
    free(text);
}

/* Writes the statistics, or the same number of nulls if there are none or no value is finite. */
static void data_figures(json *j, const tnf_stat *s)
{
    const tnf_value_counts *c = s->counts;
    const double figures[] = { c->min, c->max, c->mean, c->deviation };
    bool any = any_finite(s);
    for (size_t i = 0; i < 4; i++) {
        if (any)
            json_f64(j, figures[i]);
        else
            json_null(j);
    }
    if (s->numbers && c->elements)
        json_f32(j, (float)(100 * stat_share(c->zero, c->elements)));
    else
        json_null(j);
    json_uint(j, s->numbers ? c->nan : 0);
    json_uint(j, s->numbers ? c->inf : 0);
    json_uint(j, s->numbers ? c->subnormal : 0);
}

/* [name, type, shape, parameters, bytes, min, max, mean, std, zeros, NaN, infinite, subnormal, bins
 * as digits of base 36, size, position of zero] */
static void put_data(json *j, const tnf_stat *s, const char *size)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char shape[SHAPE_TEXT], bins[BINS + 1] = "";
    bool any = any_finite(s);
    uint64_t most = any ? highest_bin(s) : 1;
    for (size_t i = 0; any && i < s->nbins && i < BINS; i++)
        bins[i] = digits[height_of(s, i, most)];
    shape_text(shape, s->object);
    json_line(j);
    json_open(j, '[');
    data_name(j, s->object->name);
    json_text(j, object_kind(s->object));
    json_text(j, shape);
    json_uint(j, object_parameters(s->object));
    json_uint(j, object_bytes(s->object));
    data_figures(j, s);
    json_text(j, bins);
    json_text(j, size);
    if (any && zero_at(s->counts) >= 0)
        json_f32(j, (float)zero_at(s->counts));
    else
        json_null(j);
    json_close(j, ']');
}

static void tensor_html(void *ctx, const tnf_stat *s)
{
    stat_html *h = ctx;
    char size[SIZE_TEXT];
    uint64_t bytes = object_bytes(s->object);
    if (!h->rows || !h->data.to)
        return;
    size_text(size, bytes);
    put_data(&h->data, s, size);
    if (bytes < h->least || (bytes == h->least && h->room == 0))
        return;
    h->room -= bytes == h->least;
    put_row(h, s, size);
}

/* -------------------------------------------------------------------- page */

static void put_heads(FILE *to)
{
    static const struct {
        const char *title, *class;
        unsigned key;
    } heads[] = {
        { "name", "", 0 },         { "type", "", 1 },
        { "shape", "shape", 2 },   { "parameters", "n params", 3 },
        { "size", "n", 4 },        { "min", "n figure", 5 },
        { "max", "n figure", 6 },  { "mean", "n figure", 7 },
        { "std", "n figure", 8 },  { "zeros", "n figure", 9 },
        { "NaN, Inf", "odd", 10 },
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        fprintf(to, "<th class=\"%s\"><button type=\"button\" data-key=\"%u\">%s</button></th>",
                heads[i].class, heads[i].key, heads[i].title);
    fputs("<th>values</th>", to);
}

/* Writes JSON that is also well-formed XML. The characters < > & occur only in strings, where they
 * can be escaped. */
static void put_json(FILE *to, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '<' || p[i] == '>' || p[i] == '&')
            fprintf(to, "\\u%04x", (unsigned)p[i]);
        else
            putc_unlocked(p[i], to);
    }
}

static void put_table(const stat_html *h)
{
    fputs("<h2>Tensors</h2>\n<div id=\"tools\" hidden=\"hidden\"><input id=\"filter\" "
          "type=\"search\" placeholder=\"filter by name or type\" aria-label=\"filter\"/><span "
          "id=\"said\" aria-live=\"polite\"></span></div>\n<div class=\"scroll\"><table "
          "id=\"tensors\">\n<thead><tr>",
          h->to);
    put_heads(h->to);
    fputs("</tr></thead>\n<tbody id=\"rows\">\n", h->to);
    fwrite(h->text, 1, h->n, h->to);
    fputs("</tbody></table></div>\n<button id=\"end\" type=\"button\" hidden=\"hidden\">more"
          "</button>\n<noscript><p>Only the largest tensors are listed without scripts.</p>"
          "</noscript>\n<script type=\"application/json\" id=\"data\">",
          h->to);
    put_json(h->to, h->data_text, h->data_n);
    fprintf(h->to, "</script>\n<script>%s</script>\n", stat_page_script);
}

static void end_html(void *ctx)
{
    stat_html *h = ctx;
    bool good = h->rows && h->data.to;
    if (h->data.to)
        json_close(&h->data, ']');
    if (h->rows)
        fclose(h->rows);
    if (h->data.to)
        fclose(h->data.to);
    if (h->values && good && h->text && h->data_text)
        put_table(h);
    free(h->text);
    free(h->data_text);
    fprintf(h->to, "<p>tenfold %s</p>\n</body>\n</html>\n", tnf_version());
}

const stat_view stat_view_html = { begin_html, tensor_html, end_html, BINS };
