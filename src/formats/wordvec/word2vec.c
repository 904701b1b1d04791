/* SPDX-License-Identifier: MIT */
/* word2vec's binary files (Mikolov's word2vec -binary 1, gensim, GoogleNews).
 *
 *   "300 100\n"                        rows and columns, as text
 *   word 20 f32[columns] [0a]          a word up to a space, its vector, mostly a newline
 *
 * A word begins after the previous vector and at most one newline, and ends at the next space. It
 * is not trimmed, since other blanks at its ends belong to the word (GoogleNews has such words),
 * and it is not always UTF-8. Opening scans the file once to find the ends of words, and keeps the
 * words in memory.
 */
#include "formats/wordvec/wordvec.h"

#include <stdio.h>
#include <string.h>

#define NEWLINE  "word2vec.newline"
#define TRAILING "word2vec.trailing"
#define WINDOW   ((size_t)256 << 10) /* small enough to stay in the CPU's cache */
#define LONG_ROW ((size_t)64 << 10)  /* of longer rows only few bytes are read */
#define FEW      ((size_t)4096)
#define KEEP     4 /* words may take a quarter of a handle's limit of memory */
#define RANGES   128u

enum { READ_UTF8 };
enum { WRITE_NEWLINE };

/* The bytes after vectors, in the order of the option's choices without `auto`. */
enum newline { LF, NONE, BETWEEN, CRLF };
static const char *const newlines[] = { "lf", "none", "between", "crlf" };

struct state {
    wv_rows rows;
    uint64_t dims;
};

/* -------------------------------------------------------------------- window */

struct scanning {
    tnf_reader *r;
    wv_head head;
    uint8_t *window;
    size_t room, n;
    uint64_t at;        /* of the window */
    uint64_t vector;    /* bytes */
    uint64_t behind[3]; /* counts of vectors followed by nothing, LF, CR LF; without the last one */
    unsigned last;      /* the same for the last vector */
    wv_utf8_count utf8;
    wv_rows *rows;
};

/* Fills the window from `at`, up to the end of the file. */
static tnf_status fill_window(struct scanning *s, uint64_t at, tnf_error *e)
{
    uint64_t left = s->r->source->size - at;
    s->at = at;
    s->n = left < s->room ? (size_t)left : s->room;
    return tnf_source_read(s->r->source, at, s->window, s->n, e);
}

/* Reads the byte at `at` through the window; *out is negative at the end of the file. */
static tnf_status byte_at(struct scanning *s, uint64_t at, int *out, tnf_error *e)
{
    *out = -1;
    if (at >= s->r->source->size)
        return TNF_OK;
    if (at < s->at || at - s->at >= s->n)
        TNF_TRY(fill_window(s, at, e));
    *out = s->window[at - s->at];
    return TNF_OK;
}

static tnf_status cut_short(const struct scanning *s, const char *where, uint64_t missing,
                            tnf_error *e)
{
    return tnf_fail(e, TNF_ETRUNCATED, s->r->source->size,
                    "the file ends inside %s row %llu of %llu: at least %s missing", where,
                    (unsigned long long)s->rows->n + 1, (unsigned long long)s->head.rows,
                    TNF_BYTES_ARE(missing));
}

/* Reads a word longer than the window completely, to check whether it is UTF-8. */
static tnf_status check_long(struct scanning *s, uint64_t at, uint64_t n, tnf_error *e)
{
    char *word = tnf_arena_raw(s->r->scratch, n);
    if (!word)
        return tnf_arena_fail(s->r->scratch, "a word", e);
    TNF_TRY(tnf_source_read(s->r->source, at, word, (size_t)n, e));
    tnf_wv_utf8_check(&s->utf8, word, (size_t)n, at);
    return TNF_OK;
}

/* Are all bytes of a word in the window? */
static bool in_window(const struct scanning *s, uint64_t at, uint64_t n)
{
    return at >= s->at && at - s->at <= s->n && n <= s->n - (at - s->at);
}

/* Finds the length of the word at `at` and checks it. */
static tnf_status find_word(struct scanning *s, uint64_t at, uint64_t *n, tnf_error *e)
{
    uint64_t size = s->r->source->size, end = at;
    const uint8_t *space = NULL;
    if (at < s->at || at - s->at >= s->n)
        TNF_TRY(fill_window(s, at, e));
    size_t from = (size_t)(at - s->at);
    space = s->n > from ? memchr(s->window + from, ' ', s->n - from) : NULL;
    end = space ? s->at + (uint64_t)(space - s->window) : at;
    while (!space && end < size) {
        TNF_TRY(fill_window(s, end, e));
        space = memchr(s->window, ' ', s->n);
        end += space ? (uint64_t)(space - s->window) : s->n;
    }
    *n = end - at;
    if (!space)
        return cut_short(s, "the word of", s->vector + 1, e);
    if (!in_window(s, at, *n))
        return check_long(s, at, *n, e);
    tnf_wv_utf8_check(&s->utf8, (const char *)s->window + (at - s->at), (size_t)*n, at);
    return TNF_OK;
}

/* ---------------------------------------------------------------------- scan */

/* Reads the newline after a vector, if any, and moves *at to its end. */
static tnf_status skip_newline(struct scanning *s, uint64_t *at, unsigned *what, tnf_error *e)
{
    int c, d = -1;
    TNF_TRY(byte_at(s, *at, &c, e));
    if (c == '\r')
        TNF_TRY(byte_at(s, *at + 1, &d, e));
    *what = c == '\n' ? 1 : c == '\r' && d == '\n' ? 2 : 0;
    *at += *what;
    return TNF_OK;
}

/* Scans row i. *at is the end of the previous vector, and then of its own. */
static tnf_status scan_row(struct scanning *s, uint64_t i, uint64_t *at, tnf_error *e)
{
    uint64_t size = s->r->source->size, word = 0, begin = *at;
    unsigned what = 0;
    if (i > 0)
        TNF_TRY(skip_newline(s, &begin, &what, e));
    if (begin == size)
        return cut_short(s, "the word of", s->vector + 1, e);
    TNF_TRY(find_word(s, begin, &word, e));
    uint64_t vector = begin + word + 1;
    if (s->vector > size - vector)
        return cut_short(s, "the vector of", s->vector - (size - vector), e);
    TNF_TRY(tnf_wv_rows_add(s->rows, begin, word, e));
    if (in_window(s, begin, word))
        tnf_wv_rows_keep(s->rows, (const char *)s->window + (begin - s->at), (size_t)word);
    s->behind[what] += i > 0;
    *at = vector + s->vector;
    return TNF_OK;
}

static tnf_status scan_rows(struct scanning *s, uint64_t *at, tnf_error *e)
{
    bool torn = false;
    for (uint64_t i = 0; i < s->head.rows; i++) {
        tnf_status status = scan_row(s, i, at, e);
        torn = status == TNF_ETRUNCATED && i > 0 && tnf_lose(s->r, status, e);
        if (torn)
            s->head.rows = i; /* salvage: only the complete rows remain */
        else
            TNF_TRY(status);
    }
    TNF_TRY(tnf_wv_rows_keep_all(s->rows, e));
    TNF_TRY(tnf_wv_rows_end(s->rows, *at, e));
    TNF_TRY(skip_newline(s, at, &s->last, e));
    if (torn)
        *at = s->r->source->size;
    return TNF_OK;
}

static tnf_status start_scan(struct scanning *s, tnf_error *e)
{
    tnf_reader *r = s->r;
    TNF_TRY(tnf_wv_head_read(r, &s->head, e));
    if (!tnf_ckd_mul(&s->vector, s->head.dims, 4) || s->vector > UINT32_MAX)
        return tnf_fail(
            e, TNF_ELIMIT, 0,
            "the first line says %llu numbers per row; only fewer than 2^30 are supported",
            (unsigned long long)s->head.dims);
    if (!s->head.plain || s->head.crlf)
        tnf_warn(r, 0, "the first line has unusual blanks, or leading zeros");
    uint64_t left = r->source->size - s->head.length;
    s->room = s->vector > LONG_ROW ? FEW : WINDOW;
    s->room = left < s->room ? (size_t)left + 1 : s->room;
    s->window = tnf_arena_raw(r->scratch, s->room);
    return s->window ? TNF_OK : tnf_arena_fail(r->scratch, "a window", e);
}

/* Sets the attribute for newlines, if all vectors agree. */
static tnf_status set_newline(const struct scanning *s, tnf_error *e)
{
    uint64_t between = s->head.rows ? s->head.rows - 1 : 0;
    enum newline how = LF;
    bool agree = true;
    if (s->head.rows == 0)
        return TNF_OK;
    if (s->behind[1] == between && s->last != 2)
        how = s->last == 1 ? LF : between ? BETWEEN : NONE;
    else if (s->behind[0] == between && s->last == 0)
        how = NONE;
    else if (s->behind[2] == between && s->last == 2)
        how = CRLF;
    else
        agree = false;
    if (!agree)
        tnf_warn(s->r, s->head.length, "newlines follow only some vectors");
    return how == LF ? TNF_OK : tnf_set_attr(s->r, NEWLINE, tnf_value_string(newlines[how]), e);
}

static tnf_status scan_file(struct scanning *s, tnf_error *e)
{
    tnf_reader *r = s->r;
    uint64_t at, size = r->source->size;
    TNF_TRY(start_scan(s, e));
    uint64_t most = r->limits.memory / KEEP; /* words cannot have more bytes than the file */
    TNF_TRY(tnf_wv_rows_keep_begin(s->rows, r->scratch, most < size ? most : size, e));
    at = s->head.length;
    TNF_TRY(scan_rows(s, &at, e));
    if (s->head.rows == 0)
        at = s->head.length; /* without rows there is no newline */
    TNF_TRY(set_newline(s, e));
    if (at == size)
        return TNF_OK;
    TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, at, "%s the %s of the first line",
                         TNF_BYTES_FOLLOW(size - at), TNF_COUNTED(s->head.rows, "row", "rows")));
    return tnf_add_extra(r, TRAILING, at, size - at, e);
}

static tnf_status index_word2vec(tnf_reader *r, tnf_error *e)
{
    struct state *state = tnf_arena_alloc(r->arena, sizeof *state);
    wv_utf8 utf8 = (wv_utf8)r->options[READ_UTF8].u;
    if (!state)
        return tnf_arena_fail(r->arena, "the reader's state", e);
    struct scanning s = { .r = r, .rows = &state->rows };
    tnf_wv_rows_init(&state->rows, r->arena);
    r->state = state;
    r->version = "";
    if (r->source->size == 0) {
        tnf_warn(r, 0, "the file is empty");
        return TNF_OK;
    }
    TNF_TRY(scan_file(&s, e));
    TNF_TRY(tnf_wv_utf8_judge(r, &s.utf8, utf8, e));
    state->dims = s.head.dims;
    TNF_TRY(tnf_wv_add_words(r, &state->rows, utf8 == WV_UTF8_LOSSY && s.utf8.words > 0, 0, e));
    return tnf_wv_add_matrix(r, state->rows.n, state->dims, 0, e);
}

/* -------------------------------------------------------------------- decode */

static tnf_status decode_word2vec(tnf_reader *r, uint64_t key, uint64_t offset, void *out, size_t n,
                                  tnf_error *e)
{
    const struct state *state = r->state;
    uint8_t *dst = out;
    if (key != WV_MATRIX)
        return tnf_wv_decode_words(r, &state->rows, key, offset, dst, n, e);
    uint64_t width = state->dims * 4, skip = offset % width;
    wv_row row = tnf_wv_rows_at(&state->rows, offset / width);
    while (n > 0) {
        tnf_range ranges[RANGES];
        size_t count = 0;
        for (; count < RANGES && n > 0; count++, skip = 0, tnf_wv_rows_next(&state->rows, &row)) {
            size_t some = width - skip < n ? (size_t)(width - skip) : n;
            ranges[count] = (tnf_range) { .offset = row.at + row.word + 1 + skip,
                                          .dst = dst,
                                          .n = some };
            dst += some;
            n -= some;
        }
        TNF_TRY(tnf_source_read_many(r->source, ranges, count, e));
    }
    return TNF_OK;
}

/* --------------------------------------------------------------------- write */

static enum newline newline_wanted(const tnf_catalog *c, const tnf_option_value *options)
{
    const tnf_value attrs = tnf_attrs_value(&c->attrs);
    const tnf_value *v = tnf_value_get(&attrs, NEWLINE);
    if (options[WRITE_NEWLINE].u)
        return (enum newline)(options[WRITE_NEWLINE].u - 1);
    for (unsigned i = 0; i < 4; i++)
        if (tnf_value_is(v, newlines[i]))
            return (enum newline)i;
    return LF;
}

/* Refuses words that would be read differently. */
static const char *rule_of_words(tnf_str word, const void *ctx)
{
    enum newline how = *(const enum newline *)ctx;
    if (word.n && memchr(word.p, ' ', word.n))
        return "a word contains a space, which ends words in word2vec's files";
    bool lf = word.n && word.p[0] == '\n', crlf = word.n > 1 && memcmp(word.p, "\r\n", 2) == 0;
    return how == NONE && (lf || crlf) ? "a word begins with a newline, which newline=none does "
                                         "not allow"
                                       : NULL;
}

static tnf_status fits_word2vec(tnf_fit *fit, tnf_error *e)
{
    enum newline how = newline_wanted(fit->catalog, fit->options);
    wv_plan plan;
    TNF_TRY(tnf_wv_fits(fit, rule_of_words, &how, e));
    tnf_wv_plan_make(&plan, fit->catalog, fit->objects);
    if (plan.embeddings && plan.dims > UINT32_MAX / 4) {
        const char *why = "a vector can have at most 2^30 numbers";
        fit->objects[plan.embeddings - fit->catalog->objects] = (tnf_verdict) { TNF_DROPPED, why };
        fit->objects[plan.vocab - fit->catalog->objects] = (tnf_verdict) { TNF_DROPPED, why };
    }
    return TNF_OK;
}

struct putting {
    tnf_writer *w;
    wv_list words;
    wv_plan plan;
    enum newline how;
    uint64_t row, left; /* the current row, and its bytes still to come */
};

/* Ends the current row and begins the next. */
static tnf_status put_between(struct putting *p, tnf_error *e)
{
    tnf_str word = wv_list_at(&p->words, p->row);
    bool first = p->row == 0;
    if (!first && p->how != NONE)
        TNF_TRY(p->how == CRLF ? tnf_put(p->w, "\r\n", 2, e) : tnf_put(p->w, "\n", 1, e));
    TNF_TRY(tnf_put(p->w, word.p, word.n, e));
    p->row++;
    p->left = p->plan.dims * 4;
    return tnf_put(p->w, " ", 1, e);
}

static tnf_status put_block(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct putting *p = ctx;
    const uint8_t *from = bytes;
    while (n > 0) {
        if (p->left == 0 && p->row == p->plan.rows)
            return TNF_ECANCELLED; /* further rows do not belong to words */
        if (p->left == 0)
            TNF_TRY(put_between(p, e));
        size_t some = p->left < n ? (size_t)p->left : n;
        TNF_TRY(tnf_put(p->w, from, some, e));
        p->left -= some;
        from += some;
        n -= some;
    }
    return TNF_OK;
}

static tnf_status put_rows(struct putting *p, tnf_error *e)
{
    tnf_error stopped;
    tnf_status status = tnf_scan(&p->plan.embeddings->parts[0], put_block, p, &stopped);
    if (status != TNF_OK && (p->left > 0 || p->row < p->plan.rows || status != TNF_ECANCELLED)) {
        if (e)
            *e = stopped;
        return status;
    }
    while (p->row < p->plan.rows) /* rows without numbers */
        TNF_TRY(put_between(p, e));
    if (p->row == 0 || p->how == NONE || p->how == BETWEEN)
        return TNF_OK;
    return p->how == CRLF ? tnf_put(p->w, "\r\n", 2, e) : tnf_put(p->w, "\n", 1, e);
}

static tnf_status put_trailing(tnf_writer *w, tnf_error *e)
{
    for (size_t i = 0; i < w->catalog->nextras; i++)
        TNF_TRY(tnf_put_data(w, &w->catalog->extras[i].bytes, e));
    return TNF_OK;
}

static tnf_status write_word2vec(tnf_writer *w, tnf_error *e)
{
    struct putting p = { .w = w, .how = newline_wanted(w->catalog, w->options) };
    char line[64];
    const char *why = NULL;
    tnf_wv_plan_make(&p.plan, w->catalog, NULL);
    if (!p.plan.embeddings)
        return put_trailing(w, e); /* everything was dropped */
    int n = snprintf(line, sizeof line, "%llu %llu\n", (unsigned long long)p.plan.rows,
                     (unsigned long long)p.plan.dims);
    TNF_TRY(tnf_put(w, line, (size_t)n, e));
    TNF_TRY(tnf_wv_list_load(&p.words, p.plan.vocab, w->scratch, &why, e));
    if (why)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the words: %s", why);
    TNF_TRY(put_rows(&p, e));
    return put_trailing(w, e);
}

/* --------------------------------------------------------------------- probe */

/* Is there a word without control characters, followed by a space, at `at` in the probe? */
static bool is_word(const tnf_probe *p, size_t at, size_t *space)
{
    size_t i = at;
    while (i < p->nhead && p->head[i] != ' ' && p->head[i] >= 0x20)
        i++;
    *space = i;
    return i < p->nhead && p->head[i] == ' ';
}

static bool is_binary(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 0x20 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] >= 0x7f)
            return true;
    return false;
}

static int probe_word2vec(const tnf_probe *p)
{
    bool named = *p->ext && tnf_list_has("bin w2v", p->ext);
    int score;
    wv_head head;
    size_t space;
    uint64_t least, vector;
    if (tnf_wv_head_parse(&head, (const char *)p->head, p->nhead))
        return TNF_PROBE_NO;
    if (head.rows == 0 && head.length == p->size)
        return named ? TNF_PROBE_PLAUSIBLE + 1 : TNF_PROBE_NO; /* textdims is plausible, too */
    if (tnf_wv_kind_of(p, &score) == WV_TEXTDIMS || !tnf_ckd_mul(&vector, head.dims, 4))
        return TNF_PROBE_NO;
    if (!is_word(p, head.length, &space)) /* unusual, but no other format has this extension */
        return strcmp(p->ext, "w2v") == 0 ? TNF_PROBE_PLAUSIBLE : TNF_PROBE_NO;
    uint64_t here = p->nhead - space - 1, see = here < vector ? here : vector;
    if (!is_binary(p->head + space + 1, (size_t)see))
        return named ? TNF_PROBE_PLAUSIBLE : TNF_PROBE_NO;
    if (see == vector && here > vector + 1) { /* the next word is visible, too */
        size_t next = space + 1 + (size_t)vector, skip = p->head[next] == '\n';
        if (head.rows > 1 && !is_word(p, next + skip, &space) && space < p->nhead)
            return named ? TNF_PROBE_PLAUSIBLE : TNF_PROBE_NO;
    }
    bool fits = tnf_ckd_add(&least, vector, 1) && tnf_ckd_mul(&least, least, head.rows) &&
                least <= p->size - head.length;
    return fits ? TNF_PROBE_STRUCTURE : TNF_PROBE_PLAUSIBLE;
}

static const tnf_option_info read_options[] = { WV_UTF8_OPTION, { 0 } };

static const tnf_option_info write_options[] = {
    { "newline", TNF_OPTION_CHOICE, "auto|lf|none|between|crlf", "auto",
      "what follows each vector; auto: as in the source, else LF; between: LF, but none after the "
      "last" },
    { 0 },
};

const tnf_format tnf_format_word2vec = {
    .name = "word2vec",
    .title = "word2vec's binary vectors",
    .extensions = "w2v bin",
    .family = "word2vec",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = "f32 u64 u8",
             .layouts = "dense strings/1",
             .extras = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = NEWLINE,
             .spelling = NEWLINE,
             .folds = TNF_FOLD_FASTTEXT,
             .fits = fits_word2vec },
    .read_options = read_options,
    .write_options = write_options,
    .probe = probe_word2vec,
    .index = index_word2vec,
    .decode = decode_word2vec,
    .write = TNF_WRITES(write_word2vec),
};
