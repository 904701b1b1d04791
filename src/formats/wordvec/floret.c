/* SPDX-License-Identifier: MIT */
/* floret (spaCy): vectors of hash buckets, as text.
 *
 *   10 300 2 3 2 2166136261 < >         buckets columns min_n max_n hashes seed begin end
 *   0 0.1 -0.2 …                        the number of a bucket, which programs ignore, and its
 *   1 …                                 vector
 *
 * The catalog is that of a finalfusion file with a floret vocabulary: `embeddings`, and attributes
 * for the subwords.
 */
#include "formats/wordvec/wordvec.h"

#include <stdio.h>
#include <string.h>

#define ATTR(name) "finalfusion." name
/* Attributes of the first line. */
#define ATTRS                                                                                      \
    "finalfusion.vocab finalfusion.min_n finalfusion.max_n finalfusion.buckets "                   \
    "finalfusion.hashes finalfusion.seed finalfusion.bow finalfusion.eow"
#define MAX_LINE   4096u
#define MAX_HASHES 4u
#define LOOK       ((size_t)64 << 10) /* sample for the spelling of lines */

/* --------------------------------------------------------------------- first */

/* Reads digits up to a space and moves *at to its end. */
static bool read_number(const char **at, const char *end, uint64_t max, uint64_t *out)
{
    bool fits = tnf_wv_number(at, end, out) && *at < end && **at == ' ' && *out <= max;
    ++*at;
    return fits;
}

const char *tnf_wv_floret_parse(wv_floret *out, const char *p, size_t n)
{
    static const char wrong[] = "the first line is not \"buckets columns min_n max_n hashes seed "
                                "begin end\"";
    const char *end = memchr(p, '\n', n < MAX_LINE ? n : MAX_LINE);
    *out = (wv_floret) { 0 };
    if (!end)
        return wrong;
    out->length = (size_t)(end - p) + 1;
    out->crlf = end > p && end[-1] == '\r';
    end -= out->crlf;
    if (!read_number(&p, end, UINT64_MAX, &out->buckets) ||
        !read_number(&p, end, UINT64_MAX, &out->dims) ||
        !read_number(&p, end, UINT32_MAX, &out->min_n) ||
        !read_number(&p, end, UINT32_MAX, &out->max_n) ||
        !read_number(&p, end, UINT32_MAX, &out->hashes) ||
        !read_number(&p, end, UINT32_MAX, &out->seed))
        return wrong;
    const char *blank = memchr(p, ' ', (size_t)(end - p));
    if (!blank)
        return wrong;
    out->bow = (tnf_str) { p, (size_t)(blank - p) };
    out->eow = (tnf_str) { blank + 1, (size_t)(end - blank - 1) };
    return NULL;
}

static tnf_status check_head(const wv_floret *f, uint64_t left, tnf_error *e)
{
    if (f->buckets == 0 || f->dims == 0)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the first line says %llu buckets of %llu numbers; both must be at least 1",
                        (unsigned long long)f->buckets, (unsigned long long)f->dims);
    if (f->min_n == 0 || f->min_n > f->max_n)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the first line says n-grams of %llu to %llu "
                        "characters, which is not a valid range",
                        (unsigned long long)f->min_n, (unsigned long long)f->max_n);
    if (f->hashes < 1 || f->hashes > MAX_HASHES)
        return tnf_fail(
            e, TNF_EFORMAT, 0,
            "the first line says that a word has %llu hashes; the number must be 1 to 4",
            (unsigned long long)f->hashes);
    if (f->dims > left / 2)
        return tnf_fail(e, TNF_ETRUNCATED, f->length + left,
                        "the first line says %llu numbers per row, but only %s",
                        (unsigned long long)f->dims, TNF_BYTES_FOLLOW(left));
    return TNF_OK;
}

/* --------------------------------------------------------------------- index */

static tnf_status set_uint(tnf_reader *r, const char *key, uint64_t value, tnf_error *e)
{
    return tnf_set_attr(r, key, tnf_value_uint(value), e);
}

static tnf_status set_marker(tnf_reader *r, const char *key, tnf_str text, tnf_error *e)
{
    tnf_value value;
    TNF_TRY(tnf_text_value(r, &value, text, e));
    return tnf_set_attr(r, key, value, e);
}

static tnf_status set_attrs(tnf_reader *r, const wv_floret *f, tnf_error *e)
{
    TNF_TRY(tnf_set_attr(r, ATTR("vocab"), tnf_value_string("floret"), e));
    TNF_TRY(set_uint(r, ATTR("min_n"), f->min_n, e));
    TNF_TRY(set_uint(r, ATTR("max_n"), f->max_n, e));
    TNF_TRY(set_uint(r, ATTR("buckets"), f->buckets, e));
    TNF_TRY(set_uint(r, ATTR("hashes"), f->hashes, e));
    TNF_TRY(set_uint(r, ATTR("seed"), f->seed, e));
    TNF_TRY(set_marker(r, ATTR("bow"), f->bow, e));
    TNF_TRY(set_marker(r, ATTR("eow"), f->eow, e));
    return set_uint(r, ATTR("words"), 0, e);
}

static tnf_status check_rows(const tnf_reader *r, const wv_text *t, const wv_floret *f,
                             tnf_error *e)
{
    if (t->rows.n < f->buckets)
        return tnf_fail(e, TNF_ETRUNCATED, r->source->size,
                        "the first line says %llu buckets, but the file has only %llu (cut short?)",
                        (unsigned long long)f->buckets, (unsigned long long)t->rows.n);
    if (t->rows.n > f->buckets)
        return tnf_fail(e, TNF_EFORMAT, tnf_wv_rows_at(&t->rows, f->buckets).at,
                        "the first line says %llu buckets, but %llu follow",
                        (unsigned long long)f->buckets, (unsigned long long)t->rows.n);
    return TNF_OK;
}

static tnf_status index_rows(tnf_reader *r, const wv_floret *f, tnf_error *e)
{
    wv_text *t = tnf_arena_alloc(r->arena, sizeof *t);
    uint64_t left = r->source->size - f->length;
    size_t n = left < LOOK ? (size_t)left : LOOK;
    char *lines = tnf_arena_raw(r->scratch, n + 1), separator = ' ';
    if (!t || !lines)
        return tnf_arena_fail(!t ? r->arena : r->scratch, "the reader's state", e);
    TNF_TRY(tnf_source_read(r->source, f->length, lines, n, e));
    tnf_wv_find_dims(lines, n, true, &separator);
    *t = (wv_text) { .rules = { .dims = f->dims, .separator = separator },
                     .from = f->length,
                     .check_index = true };
    t->spelling.may_be = tnf_wv_lines_numbers(&t->rules, lines, n, n == left);
    r->state = t;
    TNF_TRY(tnf_wv_scan(r, t, e));
    TNF_TRY(check_rows(r, t, f, e));
    if (f->crlf != t->spelling.crlf)
        tnf_warn(r, 0, "the first line ends in %s, the others do not", f->crlf ? "CR LF" : "LF");
    TNF_TRY(tnf_wv_spelling_set(r, &t->spelling, e));
    return tnf_wv_add_matrix(r, f->buckets, f->dims, f->length, e);
}

static tnf_status index_floret(tnf_reader *r, tnf_error *e)
{
    uint64_t size = r->source->size;
    tnf_cur c;
    wv_floret f;
    r->version = "";
    if (size == 0) {
        tnf_warn(r, 0, "the file is empty");
        return TNF_OK;
    }
    TNF_TRY(tnf_read_range(r, "first line", 0, size < MAX_LINE ? size : MAX_LINE, MAX_LINE, &c, e));
    const char *why = tnf_wv_floret_parse(&f, (const char *)c.p, tnf_left(&c));
    if (why)
        return tnf_fail(e, TNF_EFORMAT, 0, "%s", why);
    TNF_TRY(check_head(&f, size - f.length, e));
    TNF_TRY(index_rows(r, &f, e));
    return set_attrs(r, &f, e);
}

/* --------------------------------------------------------------------- write */

static bool get_uint(const tnf_value *attrs, const char *key, uint64_t max, uint64_t *out)
{
    const tnf_value *v = tnf_value_get(attrs, key);
    *out = 0;
    return tnf_value_whole(out, v) && *out <= max;
}

/* The marker must not contain `forbidden`, which would end it in the first line. */
static bool get_marker(const tnf_value *attrs, const char *key, char forbidden, tnf_str *out)
{
    *out = tnf_value_chars(tnf_value_get(attrs, key));
    return out->p && out->n < MAX_LINE / 4 && !memchr(out->p, '\n', out->n) &&
           !memchr(out->p, forbidden, out->n);
}

static bool is_floret(const tnf_value *attrs)
{
    return tnf_value_is(tnf_value_get(attrs, ATTR("vocab")), "floret");
}

/* Makes the first line for a catalog; returns the reason if this is impossible. */
static const char *plan_head(wv_floret *out, const tnf_catalog *c, const tnf_object **matrix,
                             const tnf_verdict *objects)
{
    const tnf_value attrs = tnf_attrs_value(&c->attrs);
    *out = (wv_floret) { 0 };
    *matrix = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (tnf_str_is(c->objects[i].name, WV_EMBEDDINGS) &&
            (!objects || objects[i].fate != TNF_DROPPED))
            *matrix = &c->objects[i];
    if (!*matrix)
        return "there are no `embeddings`";
    if ((*matrix)->layout != &tnf_layout_dense || (*matrix)->rank != 2 ||
        (*matrix)->parts[0].type != tnf_type_of(TNF_F32))
        return "buckets must be a dense matrix of f32";
    if (!is_floret(&attrs))
        return "finalfusion.vocab is not floret";
    if (!get_uint(&attrs, ATTR("min_n"), UINT32_MAX, &out->min_n) || out->min_n == 0 ||
        !get_uint(&attrs, ATTR("max_n"), UINT32_MAX, &out->max_n) || out->min_n > out->max_n ||
        !get_uint(&attrs, ATTR("hashes"), MAX_HASHES, &out->hashes) || out->hashes == 0 ||
        !get_uint(&attrs, ATTR("seed"), UINT32_MAX, &out->seed) ||
        !get_marker(&attrs, ATTR("bow"), ' ', &out->bow) ||
        !get_marker(&attrs, ATTR("eow"), '\r', &out->eow))
        return "the attributes of its subwords (finalfusion.min_n …) are missing, or do not fit "
               "into a line";
    out->buckets = (*matrix)->shape[0];
    out->dims = (*matrix)->shape[1];
    return out->buckets && out->dims ? NULL : "there are no buckets, or no numbers";
}

static tnf_status fits_floret(tnf_fit *fit, tnf_error *e)
{
    const tnf_object *matrix;
    wv_floret f;
    const char *why = plan_head(&f, fit->catalog, &matrix, fit->objects);
    (void)e;
    for (size_t i = 0; i < fit->catalog->n; i++)
        if (fit->objects[i].fate != TNF_DROPPED && (why || &fit->catalog->objects[i] != matrix))
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED,
                                              why && &fit->catalog->objects[i] == matrix
                                                  ? why
                                                  : "floret can store only `embeddings`" };
    for (size_t i = 0; why && i < fit->catalog->attrs.n; i++)
        if (tnf_str_listed(fit->catalog->attrs.members[i].key, ATTRS))
            fit->attrs[i] = (tnf_verdict) { TNF_DROPPED,
                                            "it describes a tensor that is not written" };
    return TNF_OK;
}

static tnf_status write_floret(tnf_writer *w, tnf_error *e)
{
    const tnf_object *matrix;
    wv_floret f;
    char line[160];
    if (plan_head(&f, w->catalog, &matrix, NULL))
        return TNF_OK; /* everything was dropped */
    int n = snprintf(line, sizeof line, "%llu %llu %llu %llu %llu %llu ",
                     (unsigned long long)f.buckets, (unsigned long long)f.dims,
                     (unsigned long long)f.min_n, (unsigned long long)f.max_n,
                     (unsigned long long)f.hashes, (unsigned long long)f.seed);
    TNF_TRY(tnf_put(w, line, (size_t)n, e));
    TNF_TRY(tnf_put(w, f.bow.p, f.bow.n, e));
    TNF_TRY(tnf_put(w, " ", 1, e));
    TNF_TRY(tnf_put(w, f.eow.p, f.eow.n, e));
    TNF_TRY(tnf_wv_spelling_wanted(w).crlf ? tnf_put(w, "\r\n", 2, e) : tnf_put(w, "\n", 1, e));
    return tnf_wv_print(w, matrix, f.buckets, NULL, e);
}

static int probe_floret(const tnf_probe *p)
{
    return tnf_wv_probe_text(p, WV_FLORET);
}

const tnf_format tnf_format_floret = {
    .name = "floret",
    .title = "floret's buckets as text (spaCy)",
    .extensions = "floret",
    .family = "floret",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = "f32",
             .layouts = "dense",
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = ATTRS " " WV_SPELLING,
             .spelling = WV_SPELLING,
             .fits = fits_floret },
    .write_options = tnf_wv_print_options,
    .probe = probe_floret,
    .index = index_floret,
    .decode = tnf_wv_decode_text,
    .write = TNF_WRITES(write_floret),
};
