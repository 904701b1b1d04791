/* SPDX-License-Identifier: MIT */
/* Which kind of text a file begins as: vectors of words with or without a first line that counts
 * them, buckets of floret, or none of these.
 *
 * Text has no signature. Every whole line of the first 4 KiB must have the same number of numbers
 * at its end; without a name that says so there must be two at least, and all of it must be UTF-8
 * without control characters.
 */
#include "formats/wordvec/wordvec.h"

#include <string.h>

#define ENOUGH 8u /* numbers in a line whose end cannot be seen */

static bool is_named_so(const char *ext)
{
    return tnf_list_has("txt vec glove dims nodims floret tsv", ext) && *ext;
}

/* No control characters but those that end and separate. */
static bool is_printed(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 0x20 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] == 0x7f)
            return false;
    return true;
}

/* UTF-8, but for a character that the edge of what can be seen has cut. */
static bool is_utf8(const uint8_t *p, size_t n, bool whole)
{
    size_t bad;
    return tnf_utf8_valid((const char *)p, n, &bad) || (!whole && n - bad < 4);
}

struct lines {
    unsigned right, wrong;
};

/* Whole lines that have that many numbers at their end, and others. */
static struct lines count_lines(const char *p, size_t n, bool whole, uint64_t dims)
{
    struct lines l = { 0 };
    while (n > 0) {
        const char *end = memchr(p, '\n', n);
        if (!end && !whole)
            break;
        size_t length = end ? (size_t)(end - p) : n, skip = end ? length + 1 : n;
        length -= length > 0 && p[length - 1] == '\r';
        bool empty = true;
        for (size_t i = 0; i < length && empty; i++)
            empty = wv_is_blank(p[i]);
        if (!empty && tnf_wv_line_fits(p, length, dims))
            l.right++;
        else if (!empty)
            l.wrong++;
        p += skip;
        n -= skip;
    }
    return l;
}

/* A line longer than what can be seen of it: many numbers, and nothing else, behind a word. */
static bool is_long_line(const char *p, size_t n, uint64_t dims)
{
    while (n > 0 && !wv_is_blank(p[n - 1])) /* the last field may be cut */
        n--;
    uint64_t count = tnf_wv_line_numbers(p, n, NULL);
    return count >= ENOUGH && count <= dims && n > 0;
}

/* Do rows of that many numbers follow? *sure: all that can be seen are so. */
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

/* A .vec file whose first line counts is one even if nothing else is right, and so is a .floret
 * file that would else be taken for plain text: it can be told why. */
wv_kind tnf_wv_kind_of(const tnf_probe *p, int *score)
{
    const char *text = (const char *)p->head;
    bool named = is_named_so(p->ext), whole = p->nhead == p->size, sure = true;
    uint64_t dims = 0;
    wv_head head;
    wv_floret floret;
    wv_kind kind = WV_NONE;
    *score = TNF_PROBE_NO;
    bool printed = is_printed(p->head, p->nhead);
    if (p->nhead == 0 || (!printed && !named) || memchr(text, 0, p->nhead))
        return WV_NONE;
    if (!tnf_wv_floret_parse(&floret, text, p->nhead) &&
        rows_follow(p, floret.length, floret.dims, &sure)) {
        kind = WV_FLORET;
    } else if (!tnf_wv_head_parse(&head, text, p->nhead) &&
               (rows_follow(p, head.length, head.dims, &sure) ||
                (head.rows == 0 && head.length == p->size) || strcmp(p->ext, "vec") == 0)) {
        kind = WV_TEXTDIMS;
        sure = sure && ((head.dims > 0 && head.length < p->size) || head.rows == 0);
    } else {
        char separator;
        dims = tnf_wv_find_dims(text, p->nhead, whole, &separator);
        dims = dims || whole ? dims : UINT64_MAX; /* a line longer than this */
        kind = dims && rows_follow(p, 0, dims, &sure) ? WV_TEXT : WV_NONE;
        sure = sure && dims > 1;
        if (kind == WV_TEXT && strcmp(p->ext, "floret") == 0)
            kind = WV_FLORET;
    }
    sure = sure && printed && is_utf8(p->head, p->nhead, whole);
    if (kind != WV_NONE)
        *score = named && sure   ? TNF_PROBE_STRUCTURE
                 : named || sure ? TNF_PROBE_PLAUSIBLE
                                 : TNF_PROBE_NO;
    return *score ? kind : WV_NONE;
}

int tnf_wv_probe_text(const tnf_probe *p, wv_kind kind)
{
    int score;
    return tnf_wv_kind_of(p, &score) == kind ? score : TNF_PROBE_NO;
}
