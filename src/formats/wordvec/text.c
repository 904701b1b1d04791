/* SPDX-License-Identifier: MIT */
/* Vectors of words as text: with a first line that counts them (word2vec, fastText's .vec), or
 * without (GloVe).
 *
 *   2 3                          rows and columns; textdims only
 *   Berlin 0.1 -0.2 3            a word, and its numbers
 *   New York 1 0.25 -0.125       the last three fields are the numbers: words may contain blanks
 */
#include "formats/wordvec/wordvec.h"

#include <stdio.h>
#include <string.h>

#define SAMPLE ((uint64_t)1 << 20) /* sample for the number of columns */

enum { READ_UTF8, READ_STRICT, READ_DIMS };

/* --------------------------------------------------------------------- index */

/* Makes the state of a reader. An empty file has no state and no tensors. */
static tnf_status new_text(tnf_reader *r, wv_text **out, tnf_error *e)
{
    wv_text *t = tnf_arena_alloc(r->arena, sizeof *t);
    *out = NULL;
    r->version = "";
    if (!t)
        return tnf_arena_fail(r->arena, "the reader's state", e);
    if (r->source->size == 0) {
        tnf_warn(r, 0, "the file is empty");
        return TNF_OK;
    }
    t->utf8 = (wv_utf8)r->options[READ_UTF8].u;
    t->rules.strict = r->options[READ_STRICT].u != 0;
    r->state = *out = t;
    return TNF_OK;
}

/* Finds the separator from the first lines, and without a header the number of columns. */
static tnf_status sample_lines(tnf_reader *r, wv_text *t, tnf_error *e)
{
    uint64_t left = r->source->size - t->from;
    size_t n = (size_t)(left < SAMPLE ? left : SAMPLE);
    char *sample = tnf_arena_raw(r->scratch, n + 1);
    if (!sample)
        return tnf_arena_fail(r->scratch, "the first lines", e);
    TNF_TRY(n ? tnf_source_read(r->source, t->from, sample, n, e) : TNF_OK);
    uint64_t found = tnf_wv_find_dims(sample, n, n == left, &t->rules.separator);
    if (found == 0 && n < left) /* a line longer than the sample */
        found = tnf_wv_line_numbers(sample, n, &t->rules.separator);
    if (!t->rules.dims)
        t->rules.dims = found;
    if (t->rules.dims)
        t->spelling.may_be = tnf_wv_lines_numbers(&t->rules, sample, n, n == left);
    return TNF_OK;
}

static tnf_status add_all(tnf_reader *r, const wv_text *t, tnf_error *e)
{
    bool mend = t->utf8 == WV_UTF8_LOSSY;
    TNF_TRY(tnf_wv_spelling_set(r, &t->spelling, e));
    TNF_TRY(tnf_wv_add_words(r, &t->rows, mend, t->from, e));
    return tnf_wv_add_matrix(r, t->rows.n, t->rules.dims, t->from, e);
}

/* Salvage: a last line without a line feed may be truncated inside a number, unless it is the last
 * row by the first line. */
static void drop_torn(tnf_reader *r, wv_text *t, uint64_t rows)
{
    tnf_error torn = { .offset = TNF_NO_OFFSET };
    if (!r->salvage || !t->spelling.cut || t->rows.n == 0 || t->rows.n == rows)
        return;
    wv_row last = tnf_wv_rows_at(&t->rows, t->rows.n - 1);
    if (!tnf_lose(r,
                  tnf_fail(&torn, TNF_ETRUNCATED, last.at,
                           "the last line has no end, so its last number may be truncated"),
                  &torn))
        return;
    t->rows.n--;
    t->rows.words -= last.word;
    if (t->rows.n > 0)
        t->rows.last = tnf_wv_rows_at(&t->rows, t->rows.n - 1).at;
    t->spelling.cut = false;
}

static tnf_status index_text(tnf_reader *r, tnf_error *e)
{
    wv_text *t;
    TNF_TRY(new_text(r, &t, e));
    if (!t)
        return TNF_OK;
    t->rules.dims = r->options[READ_DIMS].u;
    TNF_TRY(sample_lines(r, t, e));
    if (t->rules.dims == 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "no line has numbers after its word");
    TNF_TRY(tnf_wv_scan(r, t, e));
    drop_torn(r, t, UINT64_MAX);
    if (t->rows.n == 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "there is no line with a word and numbers");
    return add_all(r, t, e);
}

/* Fails unless there are as many lines as the first one says. */
static tnf_status check_rows(tnf_reader *r, const wv_text *t, const wv_head *head, tnf_error *e)
{
    if (t->rows.n < head->rows)
        return tnf_stricter(
            r, e, TNF_ETRUNCATED, r->source->size,
            "the first line says %llu rows, but the file has only %llu (cut short?)",
            (unsigned long long)head->rows, (unsigned long long)t->rows.n);
    if (t->rows.n > head->rows)
        return tnf_stricter(r, e, TNF_EFORMAT, tnf_wv_rows_at(&t->rows, head->rows).at,
                            "the first line says %llu rows, but the file has %llu",
                            (unsigned long long)head->rows, (unsigned long long)t->rows.n);
    return TNF_OK;
}

static tnf_status check_head(tnf_reader *r, const wv_head *head, tnf_error *e)
{
    uint64_t left = r->source->size - head->length;
    if (head->rows && head->dims == 0)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the first line says that there are rows, but that they have no numbers");
    if (head->rows && head->dims > left / 2)
        return tnf_fail(e, TNF_ETRUNCATED, r->source->size,
                        "the first line says %llu numbers per row, but only %s",
                        (unsigned long long)head->dims, TNF_BYTES_FOLLOW(left));
    if (!head->plain)
        tnf_warn(r, 0, "the first line has unusual blanks, or leading zeros");
    return TNF_OK;
}

static tnf_status index_textdims(tnf_reader *r, tnf_error *e)
{
    wv_text *t;
    wv_head head;
    TNF_TRY(new_text(r, &t, e));
    if (!t)
        return TNF_OK;
    TNF_TRY(tnf_wv_head_read(r, &head, e));
    TNF_TRY(check_head(r, &head, e));
    t->from = head.length;
    /* Without rows no line can have a wrong length. */
    t->rules.dims = head.dims ? head.dims : 1;
    TNF_TRY(sample_lines(r, t, e));
    TNF_TRY(tnf_wv_scan(r, t, e));
    drop_torn(r, t, head.rows);
    TNF_TRY(check_rows(r, t, &head, e));
    t->rules.dims = t->rows.n ? t->rules.dims : head.dims;
    if (t->rows.n == 0)
        t->spelling.crlf = head.crlf;
    if (head.crlf != t->spelling.crlf)
        tnf_warn(r, 0, "the first line ends in %s, the others do not", head.crlf ? "CR LF" : "LF");
    return add_all(r, t, e);
}

/* --------------------------------------------------------------------- write */

/* A word must not contain a line end. */
static const char *rule_of_words(tnf_str word, const void *ctx)
{
    (void)ctx;
    return word.n && memchr(word.p, '\n', word.n) ? "a word contains a line end" : NULL;
}

static tnf_status drop_both(tnf_fit *fit, const wv_plan *plan, const char *why)
{
    fit->objects[plan->embeddings - fit->catalog->objects] = (tnf_verdict) { TNF_DROPPED, why };
    fit->objects[plan->vocab - fit->catalog->objects] = (tnf_verdict) { TNF_DROPPED, why };
    return TNF_OK;
}

static tnf_status fits_textdims(tnf_fit *fit, tnf_error *e)
{
    wv_plan plan;
    TNF_TRY(tnf_wv_fits(fit, rule_of_words, NULL, e));
    tnf_wv_plan_make(&plan, fit->catalog, fit->objects);
    if (plan.embeddings && plan.rows && plan.dims == 0)
        return drop_both(fit, &plan, "a line of text must have at least one number");
    return TNF_OK;
}

/* Could a reader find the number of columns from lines with these words? */
static tnf_status check_dims_clear(const wv_plan *plan, tnf_arena *arena, bool *out, tnf_error *e)
{
    wv_list words;
    const char *why;
    unsigned plain = 0, lines = 0;
    TNF_TRY(tnf_wv_list_load(&words, plan->vocab, arena, &why, e));
    for (; lines < words.count && lines < 256; lines++) {
        tnf_str word = wv_list_at(&words, lines);
        plain += tnf_wv_line_numbers(word.p, word.n, NULL) == 0;
    }
    *out = plain * 2 >= lines;
    return TNF_OK;
}

static tnf_status fits_text(tnf_fit *fit, tnf_error *e)
{
    wv_plan plan;
    bool clear;
    TNF_TRY(tnf_wv_fits(fit, rule_of_words, NULL, e));
    tnf_wv_plan_make(&plan, fit->catalog, fit->objects);
    if (!plan.embeddings)
        return TNF_OK;
    if (plan.rows == 0 || plan.dims == 0)
        return drop_both(fit, &plan,
                         "text without a first line cannot store zero rows, or rows without "
                         "numbers: use the format textdims");
    TNF_TRY(check_dims_clear(&plan, fit->scratch, &clear, e));
    return clear ? TNF_OK
                 : drop_both(fit, &plan,
                             "most words end in numbers, so readers could not find the number of "
                             "columns: use the format textdims, which stores it");
}

static tnf_status write_rows(tnf_writer *w, const wv_plan *plan, tnf_error *e)
{
    wv_list words;
    const char *why;
    if (!plan->embeddings)
        return TNF_OK;
    TNF_TRY(tnf_wv_list_load(&words, plan->vocab, w->scratch, &why, e));
    if (why)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the words: %s", why);
    return tnf_wv_print(w, plan->embeddings, plan->rows, &words, e);
}

static tnf_status write_text(tnf_writer *w, tnf_error *e)
{
    wv_plan plan;
    tnf_wv_plan_make(&plan, w->catalog, NULL);
    return write_rows(w, &plan, e);
}

static tnf_status write_textdims(tnf_writer *w, tnf_error *e)
{
    wv_plan plan;
    char line[64];
    tnf_wv_plan_make(&plan, w->catalog, NULL);
    if (!plan.embeddings)
        return TNF_OK; /* everything was dropped */
    int n = snprintf(line, sizeof line, "%llu %llu%s\n", (unsigned long long)plan.rows,
                     (unsigned long long)plan.dims, tnf_wv_spelling_wanted(w).crlf ? "\r" : "");
    TNF_TRY(tnf_put(w, line, (size_t)n, e));
    return write_rows(w, &plan, e);
}

/* --------------------------------------------------------------- descriptors */

static int probe_text(const tnf_probe *p)
{
    return tnf_wv_probe_text(p, WV_TEXT);
}

static int probe_textdims(const tnf_probe *p)
{
    return tnf_wv_probe_text(p, WV_TEXTDIMS);
}

static const tnf_option_info read_options[] = {
    WV_UTF8_OPTION,
    { "strict", TNF_OPTION_BOOL, NULL, "no",
      "the first field is the word, as in finalfusion: no blanks in words, no empty lines" },
    { "dims", TNF_OPTION_UINT, NULL, "0", "numbers in each line; 0: as many as most lines have" },
    { 0 },
};

static const tnf_option_info read_options_dims[] = {
    WV_UTF8_OPTION,
    { "strict", TNF_OPTION_BOOL, NULL, "no",
      "the first field is the word, as in finalfusion: no blanks in words, no empty lines" },
    { 0 },
};

#define CAN                                                                                        \
    .types = "f32 u64 u8", .layouts = "dense strings/1", .attrs = TNF_HOLDS_NONE,                  \
    .file_attrs = WV_SPELLING, .spelling = WV_SPELLING, .folds = TNF_FOLD_FASTTEXT

const tnf_format tnf_format_text = {
    .name = "text",
    .title = "vectors as text (GloVe)",
    .extensions = "glove",
    .family = "text",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { CAN, .fits = fits_text },
    .read_options = read_options,
    .write_options = tnf_wv_print_options,
    .probe = probe_text,
    .index = index_text,
    .decode = tnf_wv_decode_text,
    .write = TNF_WRITES(write_text),
};

const tnf_format tnf_format_textdims = {
    .name = "textdims",
    .title = "vectors as text, counted (word2vec, fastText)",
    .extensions = "vec",
    .family = "text",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { CAN, .fits = fits_textdims },
    .read_options = read_options_dims,
    .write_options = tnf_wv_print_options,
    .probe = probe_textdims,
    .index = index_textdims,
    .decode = tnf_wv_decode_text,
    .write = TNF_WRITES(write_textdims),
};
