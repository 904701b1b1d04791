/* SPDX-License-Identifier: MIT */
/* Recognises the kind of a text by its beginning: vectors of words with or without a first line
 * that counts them, buckets of floret, or none of these.
 *
 * Text has no signature. Every complete line of the first 4 KiB must have the same number of
 * numbers at its end. Without a known extension there must be at least two such lines, and all
 * bytes must be UTF-8 without control characters.
 */
#include "formats/wordvec/wordvec.h"

#include <string.h>

#define ENOUGH 8u /* numbers in a line whose end cannot be seen */

static bool is_named_so(const char *ext)
{
    return tnf_list_has("txt vec glove dims nodims floret tsv", ext) && *ext;
}

/* Are there no control characters except line ends and separators? */
static bool is_printed(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 0x20 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] == 0x7f)
            return false;
    return true;
}

/* Is it UTF-8? The last character may be truncated at the end of the probe. */
static bool is_utf8(const uint8_t *p, size_t n, bool whole)
{
    size_t bad;
    return tnf_utf8_valid(&bad, (const char *)p, n) || (!whole && n - bad < 4);
}

struct lines {
    unsigned right, wrong;
};

/* Counts complete lines with this many numbers at their end, and other lines. */
static struct lines count_lines(const char *p, size_t n, bool whole, uint64_t dims)
{
    struct lines l = { 0 };
    for (tnf_str line; tnf_wv_next_line(&line, &p, &n, whole);) {
        bool empty = true;
        for (size_t i = 0; i < line.n && empty; i++)
            empty = wv_is_blank(line.p[i]);
        if (!empty && tnf_wv_line_fits(line.p, line.n, dims))
            l.right++;
        else if (!empty)
            l.wrong++;
    }
    return l;
}

/* Is it the beginning of a line longer than the probe: a word, then only numbers, many of them? */
static bool is_long_line(const char *p, size_t n, uint64_t dims)
{
    while (n > 0 && !wv_is_blank(p[n - 1])) /* the last field may be truncated */
        n--;
    uint64_t count = tnf_wv_line_numbers(p, n, NULL);
    return count >= ENOUGH && count <= dims && n > 0;
}

/* Do rows of this many numbers follow? *sure: all visible rows have them. */
static bool rows_follow(const tnf_probe *p, size_t from, uint64_t dims, bool *sure)
{
    const char *text = (const char *)p->head + from;
    size_t n = p->nhead - from;
    bool whole = p->nhead == p->size;
    struct lines l = count_lines(text, n, whole, dims);
    *sure = l.wrong == 0;
    if (l.right + l.wrong == 0)
        return !whole && is_long_line(text, n, dims);
    return l.right > l.wrong;
}

static bool looks_like_floret(const tnf_probe *p, bool *sure)
{
    wv_floret head;
    return !tnf_wv_floret_parse(&head, (const char *)p->head, p->nhead) &&
           rows_follow(p, head.length, head.dims, sure);
}

/* A .vec file whose first line counts rows and numbers is accepted even if its rows are invalid:
 * the reader then reports the fault. */
static bool looks_like_textdims(const tnf_probe *p, bool *sure)
{
    wv_head head;
    if (tnf_wv_head_parse(&head, (const char *)p->head, p->nhead))
        return false;
    bool rows = rows_follow(p, head.length, head.dims, sure);
    bool empty = head.rows == 0 && head.length == p->size;
    if (!rows && !empty && strcmp(p->ext, "vec") != 0)
        return false;
    *sure = *sure && ((head.dims > 0 && head.length < p->size) || head.rows == 0);
    return true;
}

static bool looks_like_text(const tnf_probe *p, bool *sure)
{
    bool whole = p->nhead == p->size;
    char separator;
    uint64_t dims = tnf_wv_find_dims((const char *)p->head, p->nhead, whole, &separator);
    if (dims == 0 && !whole)
        dims = UINT64_MAX; /* the line is longer than the probe */
    if (dims == 0 || !rows_follow(p, 0, dims, sure))
        return false;
    *sure = *sure && dims > 1;
    return true;
}

/* A .floret file with an invalid first line is accepted, so that its reader reports the fault. */
static wv_kind guess_kind(const tnf_probe *p, bool *sure)
{
    if (looks_like_floret(p, sure))
        return WV_FLORET;
    if (looks_like_textdims(p, sure))
        return WV_TEXTDIMS;
    if (looks_like_text(p, sure))
        return strcmp(p->ext, "floret") == 0 ? WV_FLORET : WV_TEXT;
    return WV_NONE;
}

wv_kind tnf_wv_kind_of(const tnf_probe *p, int *score)
{
    bool named = is_named_so(p->ext), printed = is_printed(p->head, p->nhead), sure = true;
    *score = TNF_PROBE_NO;
    if (p->nhead == 0 || (!printed && !named) || memchr(p->head, 0, p->nhead))
        return WV_NONE;
    wv_kind kind = guess_kind(p, &sure);
    sure = sure && printed && is_utf8(p->head, p->nhead, p->nhead == p->size);
    if (kind == WV_NONE || (!named && !sure))
        return WV_NONE;
    *score = named && sure ? TNF_PROBE_STRUCTURE : TNF_PROBE_PLAUSIBLE;
    return kind;
}

int tnf_wv_probe_text(const tnf_probe *p, wv_kind kind)
{
    int score;
    return tnf_wv_kind_of(p, &score) == kind ? score : TNF_PROBE_NO;
}
