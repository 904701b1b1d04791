/* SPDX-License-Identifier: MIT */
/* Splits lines of text into the word and the numbers after it.
 *
 *   New York 0.1 0.2 0.3       three columns: the last three fields are numbers, the rest is the
 *   └─word─┘                   word, whatever it contains; one separator is between them
 *
 * So words may contain blanks, consist of blanks, or be empty. Most lines have as many separators
 * as columns, never two in a row. Counting finds such lines, eight bytes at a time. Other lines are
 * split from their end.
 */
#include "base/decimal.h"
#include "formats/wordvec/wordvec.h"

#include <string.h>

#define ONES   0x0101010101010101u
#define LOW7   0x7f7f7f7f7f7f7f7fu
#define LINES  256u /* lines that decide the number of columns, and the spelling of */
#define FIELDS 64u  /* this many of their numbers */

/* ----------------------------------------------------------------- counting */

struct blanks {
    size_t separators, others, pairs; /* pairs: a separator directly after another */
};

/* Sets the top bit of each byte that equals the corresponding one of `pattern`. */
static uint64_t equal_bytes(uint64_t x, uint64_t pattern)
{
    x ^= pattern;
    return ~(((x & LOW7) + LOW7) | x | LOW7);
}

static struct blanks count_blanks(const char *p, size_t n, char separator)
{
    struct blanks b = { 0 };
    uint64_t want = ONES * (uint8_t)separator, other = ONES * (separator == ' ' ? '\t' : ' ');
    uint64_t before = 0; /* lowest top bit: the last byte was a separator */
    for (size_t i = 0; i < n; i += 8) {
        uint8_t rest[8] = { 0 };
        if (n - i < 8)
            memcpy(rest, p + i, n - i);
        uint64_t x = tnf_le64(n - i < 8 ? (const void *)rest : p + i);
        uint64_t found = equal_bytes(x, want);
        b.separators += (size_t)__builtin_popcountll(found);
        b.others += (size_t)__builtin_popcountll(equal_bytes(x, other));
        b.pairs += (found & (found << 8 | before)) != 0;
        before = found >> 56;
    }
    return b;
}

/* ------------------------------------------------------------ from the right */

/* The start of the field that ends at n. */
static size_t field_start(const char *p, size_t n)
{
    while (n > 0 && !wv_is_blank(p[n - 1]))
        n--;
    return n;
}

static size_t without_blanks(const char *p, size_t n)
{
    while (n > 0 && wv_is_blank(p[n - 1]))
        n--;
    return n;
}

static wv_line read_from_end(const wv_rules *rules, const char *p, size_t n)
{
    wv_line line = { 0 };
    size_t end = without_blanks(p, n);
    line.trailing = end < n;
    line.odd = n - end > 1 || (end < n && p[end] != rules->separator);
    for (;;) {
        size_t at = field_start(p, end);
        if (at == 0) { /* the first field is a word, not a number */
            line.wrong = line.fields ? "fewer" : "no";
            return line;
        }
        line.fields++;
        if (line.fields == rules->dims) {
            line.word = at - 1;
            line.odd = line.odd || p[at - 1] != rules->separator;
            line.blank_end = line.word > 0 && wv_is_blank(p[line.word - 1]);
            return line;
        }
        end = without_blanks(p, at);
        line.odd = line.odd || at - end > 1 || p[at - 1] != rules->separator;
    }
}

/* ------------------------------------------------------------------- strict */

static bool is_space(char c)
{
    return wv_is_blank(c) || c == '\f' || c == '\r';
}

/* As in finalfusion: the first field is the word, all others are numbers. */
static wv_line read_strict(const wv_rules *rules, const char *p, size_t n)
{
    wv_line line = { 0 };
    size_t at = 0, fields = 0;
    while (at < n) {
        size_t from = at;
        while (at < n && is_space(p[at]))
            at++;
        line.odd = line.odd || at - from != (fields > 0) || (fields && p[from] != rules->separator);
        if (at == n)
            break;
        if (fields++ == 0)
            line.skip = at;
        while (at < n && !is_space(p[at]))
            at++;
        if (fields == 1)
            line.word = at - line.skip;
    }
    line.trailing = n > 0 && is_space(p[n - 1]);
    line.fields = fields ? fields - 1 : 0;
    if (fields == 0 || line.fields != rules->dims)
        line.wrong = "not as many";
    return line;
}

wv_line tnf_wv_line_read(const wv_rules *rules, const char *p, size_t n)
{
    if (rules->strict)
        return read_strict(rules, p, n);
    struct blanks b = count_blanks(p, n, rules->separator);
    bool trailing = n > 0 && p[n - 1] == rules->separator;
    if (b.pairs || b.others || b.separators - trailing != rules->dims)
        return read_from_end(rules, p, n);
    const char *end = memchr(p, rules->separator, n);
    return (wv_line) { .word = (size_t)(end - p), .trailing = trailing };
}

/* ------------------------------------------------------------------ guessing */

static bool is_number(const char *p, size_t n)
{
    float value;
    return tnf_f32_scan(p, p + n, &value) == p + n;
}

uint64_t tnf_wv_line_numbers(const char *p, size_t n, char *separator)
{
    uint64_t count = 0;
    for (size_t end = without_blanks(p, n); end > 0;) {
        size_t at = field_start(p, end);
        if (at == 0 || !is_number(p + at, end - at))
            break;
        if (count++ == 0 && separator)
            *separator = p[at - 1];
        end = without_blanks(p, at);
    }
    return count;
}

bool tnf_wv_line_fits(const char *p, size_t n, uint64_t dims)
{
    return tnf_wv_line_numbers(p, n, NULL) >= dims;
}

size_t tnf_wv_number_text(wv_numbers how, char out[TNF_F32_TEXT], float value)
{
    return how == WV_PYTHON ? tnf_f32_repr(out, value)
           : how == WV_C    ? tnf_f32_c(out, value)
                            : tnf_f32_text(out, value);
}

/* Removes the spellings from *may_be that do not match all fields of a line. */
static void compare_spelling(const char *p, size_t n, unsigned *may_be)
{
    for (unsigned fields = 0; n > 0 && fields < FIELDS && *may_be; fields++) {
        char text[TNF_F32_TEXT];
        float value;
        for (; n > 0 && wv_is_blank(*p); n--)
            p++;
        const char *end = tnf_f32_scan(p, p + n, &value);
        size_t length = end ? (size_t)(end - p) : 0;
        if (!end) {
            *may_be = n == 0 ? *may_be : 0;
            return;
        }
        for (unsigned how = 0; how < WV_NUMBERS; how++)
            if (tnf_wv_number_text((wv_numbers)how, text, value) != length ||
                memcmp(text, p, length) != 0)
                *may_be &= ~(1u << how);
        p += length;
        n -= length;
    }
}

unsigned tnf_wv_lines_numbers(const wv_rules *rules, const char *p, size_t n, bool whole)
{
    unsigned may_be = (1u << WV_NUMBERS) - 1;
    tnf_str text;
    for (unsigned i = 0; i < LINES && may_be && tnf_wv_next_line(&text, &p, &n, whole || i == 0);
         i++) {
        wv_line line = tnf_wv_line_read(rules, text.p, text.n);
        size_t from = line.skip + line.word;
        if (!line.wrong)
            compare_spelling(text.p + from, text.n - from, &may_be);
    }
    return may_be;
}

/* Votes of lines for a number of columns. */
struct votes {
    uint64_t dims[16];
    unsigned count[16], n;
};

static void count_vote(struct votes *v, uint64_t dims)
{
    unsigned i = 0;
    while (i < v->n && v->dims[i] != dims)
        i++;
    if (i == v->n && v->n < 16)
        v->dims[v->n++] = dims;
    if (i < v->n)
        v->count[i]++;
}

/* The number with the most votes. In a tie the smallest wins, since a word may look like a
 * number. */
static uint64_t find_winner(const struct votes *v)
{
    unsigned best = 0;
    for (unsigned i = 1; i < v->n; i++)
        if (v->count[i] > v->count[best] ||
            (v->count[i] == v->count[best] && v->dims[i] < v->dims[best]))
            best = i;
    return v->n ? v->dims[best] : 0;
}

bool tnf_wv_next_line(tnf_str *line, const char **p, size_t *n, bool whole)
{
    const char *end = *n ? memchr(*p, '\n', *n) : NULL;
    if (*n == 0 || (!end && !whole))
        return false;
    size_t length = end ? (size_t)(end - *p) : *n, skip = end ? length + 1 : *n;
    *line = (tnf_str) { *p, length - (length > 0 && (*p)[length - 1] == '\r') };
    *p += skip;
    *n -= skip;
    return true;
}

uint64_t tnf_wv_find_dims(const char *p, size_t n, bool whole, char *separator)
{
    struct votes v = { .n = 0 };
    *separator = ' ';
    tnf_str line;
    for (unsigned i = 0; i < LINES && tnf_wv_next_line(&line, &p, &n, whole); i++) {
        uint64_t dims = tnf_wv_line_numbers(line.p, line.n, v.n ? NULL : separator);
        if (dims)
            count_vote(&v, dims);
    }
    return find_winner(&v);
}
