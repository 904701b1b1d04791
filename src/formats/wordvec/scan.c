/* SPDX-License-Identifier: MIT */
/* Scans a text once when it is opened: the start of each line, the length of its word, and whether
 * the number of fields is right. Numbers are not parsed.
 *
 *   window   ░line░line░line░│░line░line░line░│░line…      carried over to the next window
 *            piece, thread 1    piece, thread 2
 */
#include "base/pool.h"
#include "formats/wordvec/wordvec.h"

#include <stdio.h>
#include <string.h>

#define PIECE      ((size_t)1 << 20)
#define MAX_PIECES 8u
#define MAX_WINDOW ((uint64_t)1 << 32) /* limit for very long lines */

struct found {
    uint32_t at, word; /* relative to the piece's first byte */
};

/* Counts of lines with a property of spelling, per piece. */
struct tally {
    uint64_t crlf, trailing, odd, empty, blank_end, misnumbered, damaged;
    uint64_t odd_at, empty_at, blank_at, misnumbered_at, damaged_at; /* offsets of the first ones */
};

struct piece {
    const wv_text *t;
    bool salvage;        /* invalid lines are skipped, except the last */
    uint64_t longest;    /* longest allowed line */
    const char *p, *end; /* complete lines */
    uint64_t base;       /* of p in the file */
    struct found *rows;
    size_t n, lines;
    struct tally tally;
    wv_utf8_count utf8;
    wv_line wrong; /* set if an invalid line follows the first `lines` */
    uint64_t wrong_at;
    uint64_t too_long; /* its length, if this is the fault */
};

static void note_line(uint64_t *count, uint64_t *first, bool is, uint64_t at)
{
    if (is && (*count)++ == 0)
        *first = at;
}

static bool is_empty(const wv_text *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!wv_is_blank(p[i]))
            return false;
    return !t->rules.strict;
}

/* Returns false if the line is invalid. */
static bool take_line(struct piece *c, const char *p, size_t n)
{
    uint64_t at = c->base + (uint64_t)(p - c->p);
    bool cr = n > 0 && p[n - 1] == '\r';
    n -= cr;
    if (n > c->longest) {
        c->wrong.wrong = "long";
        c->wrong_at = at;
        c->too_long = n;
        return false;
    }
    if (is_empty(c->t, p, n)) {
        note_line(&c->tally.empty, &c->tally.empty_at, true, at);
        return true;
    }
    wv_line line = tnf_wv_line_read(&c->t->rules, p, n);
    if (line.wrong && c->salvage && memchr(p, '\n', (size_t)(c->end - p))) {
        note_line(&c->tally.damaged, &c->tally.damaged_at, true, at);
        return true;
    }
    if (line.wrong) {
        c->wrong = line;
        c->wrong_at = at;
        return false;
    }
    c->tally.crlf += cr;
    c->tally.trailing += line.trailing;
    note_line(&c->tally.odd, &c->tally.odd_at, line.odd, at);
    note_line(&c->tally.blank_end, &c->tally.blank_at, line.blank_end, at);
    if (!c->t->check_index)
        tnf_wv_utf8_check(&c->utf8, p + line.skip, line.word, at + line.skip);
    c->rows[c->n++] = (struct found) { (uint32_t)((size_t)(p - c->p) + line.skip),
                                       (uint32_t)line.word };
    return true;
}

static tnf_status scan_piece(void *ctx, size_t i, tnf_error *e)
{
    struct piece *c = (struct piece *)ctx + i;
    (void)e;
    for (const char *p = c->p; p < c->end; c->lines++) {
        const char *end = memchr(p, '\n', (size_t)(c->end - p));
        size_t n = (size_t)((end ? end : c->end) - p);
        if (!take_line(c, p, n))
            return TNF_OK;
        p += n + (end != NULL);
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------- window */

struct scanning {
    tnf_reader *r;
    wv_text *t;
    char *window;
    size_t room, n;
    uint64_t at; /* of the window in the file */
    unsigned threads;
    struct piece pieces[MAX_PIECES];
    struct found *found;
    size_t found_room; /* for each piece */
    uint64_t lines;
    uint64_t end; /* end of the last line */
    struct tally tally;
    wv_utf8_count utf8;
};

/* The least size of a line: a separator and a digit for each column, and its end. */
static size_t shortest_line(const wv_text *t)
{
    return t->rules.dims > PIECE ? PIECE : 2 * (size_t)t->rules.dims + 1;
}

static tnf_status reserve_window(struct scanning *s, size_t room, tnf_error *e)
{
    tnf_arena *a = s->r->scratch;
    char *window = tnf_arena_raw(a, room);
    if (!window)
        return tnf_arena_fail(a, "a window of lines", e);
    if (s->n)
        memcpy(window, s->window, s->n);
    s->window = window;
    s->room = room;
    s->found_room = room / shortest_line(s->t) + 2;
    s->found = tnf_arena_raw(a, s->found_room * s->threads * sizeof *s->found);
    return s->found ? TNF_OK : tnf_arena_fail(a, "a window of lines", e);
}

/* The end of the last complete line. The last line of the file need not have an end. */
static size_t whole_lines(const struct scanning *s)
{
    size_t n = s->n;
    if (s->at + n == s->r->source->size)
        return n;
    while (n > 0 && s->window[n - 1] != '\n')
        n--;
    return n;
}

/* Divides complete lines into as many pieces as there are threads. */
static size_t cut_window(struct scanning *s, size_t n)
{
    size_t count = 0, from = 0;
    for (unsigned i = 0; i < s->threads && from < n; i++) {
        size_t to = n / s->threads * (i + 1);
        const char *end = i + 1 < s->threads && to > from ? memchr(s->window + to, '\n', n - to)
                                                          : NULL;
        to = end ? (size_t)(end - s->window) + 1 : n;
        s->pieces[count] = (struct piece) { .t = s->t,
                                            .salvage = s->r->salvage,
                                            .longest = s->r->limits.header_bytes,
                                            .p = s->window + from,
                                            .end = s->window + to,
                                            .base = s->at + from,
                                            .rows = s->found + count * s->found_room };
        count++;
        from = to;
    }
    return count;
}

static void merge_notes(uint64_t *count, uint64_t *first, uint64_t more, uint64_t more_first)
{
    if (*count == 0)
        *first = more_first;
    *count += more;
}

static tnf_status wrong_line(struct scanning *s, const struct piece *c, tnf_error *e)
{
    unsigned long long line = s->lines + c->lines + 1 + (s->t->from > 0);
    uint64_t dims = s->t->rules.dims;
    const char *p = c->p + (c->wrong_at - c->base);
    if (c->too_long)
        return tnf_fail(e, TNF_ELIMIT, c->wrong_at,
                        "line %llu has %llu bytes; at most %llu are allowed: raise the limit "
                        "'header_bytes' if you trust the file",
                        line, (unsigned long long)c->too_long,
                        (unsigned long long)s->r->limits.header_bytes);
    if (c->wrong_at + (uint64_t)(c->end - p) == s->r->source->size &&
        !memchr(p, '\n', (size_t)(c->end - p)))
        return tnf_fail(e, TNF_ETRUNCATED, s->r->source->size,
                        "the file ends inside line %llu, which has %llu of %llu numbers (cut "
                        "short?); %llu rows are complete",
                        line, (unsigned long long)c->wrong.fields, (unsigned long long)dims,
                        (unsigned long long)s->t->rows.n);
    if (s->t->rules.strict && c->wrong.fields == 0 && c->wrong.word == 0)
        return tnf_fail(e, TNF_EFORMAT, c->wrong_at, "line %llu is empty", line);
    return tnf_fail(e, TNF_EFORMAT, c->wrong_at,
                    "line %llu has %llu number%s after its word instead of %llu", line,
                    (unsigned long long)c->wrong.fields, c->wrong.fields == 1 ? "" : "s",
                    (unsigned long long)dims);
}

/* Is the word the number of its row? */
static bool is_index(const char *p, size_t n, uint64_t row)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)row);
    return n == (size_t)length && memcmp(p, text, n) == 0;
}

static tnf_status take_piece(struct scanning *s, const struct piece *c, tnf_error *e)
{
    struct tally *a = &s->tally;
    const struct tally *b = &c->tally;
    for (size_t i = 0; i < c->n; i++) {
        const struct found *f = &c->rows[i];
        if (s->t->check_index && memchr(c->p + f->at, s->t->rules.separator, f->word))
            return tnf_fail(e, TNF_EFORMAT, c->base + f->at,
                            "row %llu has more numbers than the %llu of the first line",
                            (unsigned long long)s->t->rows.n, (unsigned long long)s->t->rules.dims);
        if (s->t->check_index)
            note_line(&a->misnumbered, &a->misnumbered_at,
                      !is_index(c->p + f->at, f->word, s->t->rows.n), c->base + f->at);
        TNF_TRY(tnf_wv_rows_add(&s->t->rows, c->base + f->at, f->word, e));
    }
    if (c->wrong.wrong) {
        tnf_status status = wrong_line(s, c, e);
        if (status != TNF_ETRUNCATED || !tnf_lose(s->r, status, e))
            return status;
        s->end = c->wrong_at; /* salvage: only the lines before it remain */
    }
    s->lines += c->lines;
    a->crlf += b->crlf;
    a->trailing += b->trailing;
    merge_notes(&a->odd, &a->odd_at, b->odd, b->odd_at);
    merge_notes(&a->empty, &a->empty_at, b->empty, b->empty_at);
    merge_notes(&a->damaged, &a->damaged_at, b->damaged, b->damaged_at);
    merge_notes(&a->blank_end, &a->blank_at, b->blank_end, b->blank_at);
    tnf_wv_utf8_sum(&s->utf8, &c->utf8);
    return TNF_OK;
}

static tnf_status fill_window(struct scanning *s, tnf_error *e)
{
    uint64_t left = s->r->source->size - s->at - s->n;
    size_t some = left < s->room - s->n ? (size_t)left : s->room - s->n;
    TNF_TRY(tnf_source_read(s->r->source, s->at + s->n, s->window + s->n, some, e));
    s->n += some;
    return TNF_OK;
}

static tnf_status scan_windows(struct scanning *s, tnf_error *e)
{
    while (s->at + s->n < s->r->source->size || s->n > 0) {
        TNF_TRY(fill_window(s, e));
        size_t n = whole_lines(s);
        if (n == 0) {
            if (s->room >= MAX_WINDOW / 2 || s->room > s->r->limits.header_bytes)
                return tnf_fail(e, TNF_ELIMIT, s->at,
                                "a line has more than %zu bytes; at most %llu are allowed: raise "
                                "the limit 'header_bytes' if you trust the file",
                                s->room, (unsigned long long)s->r->limits.header_bytes);
            TNF_TRY(reserve_window(s, 2 * s->room, e));
            continue;
        }
        size_t count = cut_window(s, n);
        TNF_TRY(tnf_pool_run((unsigned)count, count, scan_piece, s->pieces, e));
        for (size_t i = 0; i < count; i++)
            TNF_TRY(take_piece(s, &s->pieces[i], e));
        if (s->at + n == s->r->source->size)
            s->t->spelling.cut = s->window[n - 1] != '\n' && s->end == s->at + n;
        memmove(s->window, s->window + n, s->n - n);
        s->at += n;
        s->n -= n;
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------ spelling */

static void lose_damaged(const struct scanning *s)
{
    const struct tally *a = &s->tally;
    tnf_error lost;
    if (a->damaged)
        (void)tnf_lose(s->r,
                       tnf_fail(&lost, TNF_EFORMAT, a->damaged_at,
                                "%llu line%s not have %llu numbers after a word; the first is here",
                                (unsigned long long)a->damaged, a->damaged > 1 ? "s do" : " does",
                                (unsigned long long)s->t->rules.dims),
                       &lost);
}

/* A spelling of all lines is kept. A spelling of only some lines causes a warning. */
static void settle_spelling(struct scanning *s)
{
    const struct tally *a = &s->tally;
    wv_text *t = s->t;
    uint64_t rows = t->rows.n;
    t->spelling.separator = t->rules.separator;
    t->spelling.crlf = rows && a->crlf + (t->spelling.cut && a->crlf) == rows;
    t->spelling.trailing = rows && a->trailing == rows;
    if (a->crlf && !t->spelling.crlf)
        tnf_warn(s->r, t->from, "%llu of %llu lines end in CR LF, the others in LF",
                 (unsigned long long)a->crlf, (unsigned long long)rows);
    if (a->trailing && !t->spelling.trailing)
        tnf_warn(s->r, t->from, "%llu of %llu lines have a blank after the last number",
                 (unsigned long long)a->trailing, (unsigned long long)rows);
    if (a->odd)
        tnf_warn(
            s->r, a->odd_at,
            "%llu line%s several or mixed blanks between numbers, which are read as one separator",
            (unsigned long long)a->odd, a->odd > 1 ? "s have" : " has");
    if (a->empty)
        tnf_warn(s->r, a->empty_at, "%llu empty line%s skipped", (unsigned long long)a->empty,
                 a->empty > 1 ? "s are" : " is");
    if (a->misnumbered)
        tnf_warn(s->r, a->misnumbered_at,
                 "%llu line%s not begin with the number of %s row, which is ignored",
                 (unsigned long long)a->misnumbered, a->misnumbered > 1 ? "s do" : " does",
                 a->misnumbered > 1 ? "their" : "its");
    if (a->blank_end)
        tnf_warn(s->r, a->blank_at,
                 "%llu word%s in a blank, which is read as part of %s; with strict=yes the blank "
                 "would be a separator",
                 (unsigned long long)a->blank_end, a->blank_end > 1 ? "s end" : " ends",
                 a->blank_end > 1 ? "them" : "it");
}

tnf_status tnf_wv_scan(tnf_reader *r, wv_text *t, tnf_error *e)
{
    struct scanning s = {
        .r = r, .t = t, .at = t->from, .end = r->source->size, .threads = tnf_pool_threads(0)
    };
    uint64_t left = r->source->size - t->from;
    s.threads = s.threads < MAX_PIECES ? s.threads : MAX_PIECES;
    if (left < PIECE / 4)
        s.threads = 1; /* too small for more threads */
    tnf_wv_rows_init(&t->rows, r->arena);
    size_t room = PIECE * s.threads;
    if (left)
        TNF_TRY(reserve_window(&s, left < room ? (size_t)left : room, e));
    TNF_TRY(scan_windows(&s, e));
    lose_damaged(&s);
    TNF_TRY(tnf_wv_rows_end(&t->rows, s.end, e));
    TNF_TRY(tnf_wv_utf8_judge(r, &s.utf8, t->utf8, e));
    settle_spelling(&s);
    return TNF_OK;
}
