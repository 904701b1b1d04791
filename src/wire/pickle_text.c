/* SPDX-License-Identifier: MIT */
/* Values that pickles of protocol 0 contain as lines of text, and numbers of any length. */
#include "wire/pickle.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Python's own limit: the conversion of digits takes quadratic time. */
#define MAX_DIGITS 4300u
#define DIGITS     9u /* that fit in 32 bits */

static tnf_status bad_line(const tnf_pickle_line *line, const char *what)
{
    return tnf_fail(line->e, TNF_EFORMAT, line->at, "the pickle cannot be read: %s is not %s",
                    TNF_QUOTED(line->text), what);
}

/* --------------------------------------------------------------- integers */

void tnf_pickle_int_bytes(tnf_pickle_node *out, const uint8_t *bytes, size_t n)
{
    uint8_t fill = n && bytes[n - 1] & 0x80 ? 0xff : 0;
    size_t used = n;
    while (used > 8 && bytes[used - 1] == fill && (bytes[used - 2] & 0x80) == (fill & 0x80))
        used--;
    if (used > 8) {
        out->kind = TNF_PICKLE_BIG;
        out->as.s = (const char *)bytes;
        out->n = used;
        return;
    }
    uint8_t all[8];
    memset(all, fill, sizeof all);
    if (used)
        memcpy(all, bytes, used);
    out->kind = TNF_PICKLE_INT;
    out->as.i = (int64_t)tnf_le64(all);
}

/* limbs = limbs × factor + more; returns the new number of limbs. */
static size_t times_plus(uint32_t *limbs, size_t n, uint32_t factor, uint32_t more)
{
    uint64_t carry = more;
    for (size_t i = 0; i < n; i++) {
        carry += (uint64_t)limbs[i] * factor;
        limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        limbs[n++] = (uint32_t)carry;
    return n;
}

/* Converts digits to limbs of 32 bits, lowest first; false if there is another character. It takes
 * nine digits at a time to reduce the quadratic cost. */
static bool read_digits(uint32_t *limbs, size_t *n, tnf_str s)
{
    *n = 0;
    for (size_t i = 0; i < s.n;) {
        uint32_t piece = 0, factor = 1;
        for (unsigned k = 0; k < DIGITS && i < s.n; k++, i++) {
            unsigned digit = (unsigned)(uint8_t)s.p[i] - '0';
            if (digit > 9)
                return false;
            piece = piece * 10 + digit;
            factor *= 10;
        }
        *n = times_plus(limbs, *n, factor, piece);
    }
    return s.n > 0;
}

static void negate_bytes(uint8_t *bytes, size_t n)
{
    unsigned carry = 1;
    for (size_t i = 0; i < n; i++) {
        carry += (uint8_t)~bytes[i];
        bytes[i] = (uint8_t)carry;
        carry >>= 8;
    }
}

tnf_status tnf_pickle_integer(tnf_pickle_node *out, const tnf_pickle_line *line)
{
    tnf_str s = line->text;
    while (s.n && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == ' '))
        s.n--;
    if (s.n && s.p[s.n - 1] == 'L')
        s.n--;
    bool minus = s.n && s.p[0] == '-';
    if (s.n && (s.p[0] == '-' || s.p[0] == '+')) {
        s.p++;
        s.n--;
    }
    if (s.n > MAX_DIGITS)
        return tnf_fail(line->e, TNF_ELIMIT, line->at,
                        "the pickle has an integer of %zu digits; the limit is %u", s.n,
                        MAX_DIGITS);
    uint32_t limbs[MAX_DIGITS / DIGITS + 2];
    size_t count, n;
    if (!read_digits(limbs, &count, s))
        return bad_line(line, "an integer");
    n = 4 * count + 8; /* room for the sign, too */
    uint8_t *bytes = tnf_arena_alloc(line->arena, n);
    if (!bytes)
        return tnf_arena_fail(line->arena, "a pickle", line->e);
    for (size_t i = 0; i < count; i++)
        tnf_put_le32(bytes + 4 * i, limbs[i]);
    if (minus)
        negate_bytes(bytes, n);
    tnf_pickle_int_bytes(out, bytes, n);
    return TNF_OK;
}

/* limbs = limbs / 10^9; returns the remainder. */
static uint32_t take_piece(uint32_t *limbs, size_t *n)
{
    uint64_t rest = 0;
    for (size_t i = *n; i-- > 0;) {
        rest = rest << 32 | limbs[i];
        limbs[i] = (uint32_t)(rest / 1000000000u);
        rest %= 1000000000u;
    }
    while (*n && limbs[*n - 1] == 0)
        --*n;
    return (uint32_t)rest;
}

bool tnf_pickle_big_text(tnf_str *out, const tnf_pickle_node *big, tnf_arena *arena)
{
    size_t room = (big->n + 3) / 4, n = room, most = big->n * 5 / 2 + 12, at = most;
    uint8_t *bytes = tnf_arena_alloc(arena, 4 * (uint64_t)room);
    uint32_t *left = tnf_arena_array(arena, room, sizeof *left);
    char *text = tnf_arena_raw(arena, most + 1);
    if (!bytes || !left || !text)
        return false;
    memcpy(bytes, big->as.s, big->n);
    bool minus = bytes[big->n - 1] & 0x80;
    if (minus)
        negate_bytes(bytes, big->n);
    for (size_t i = 0; i < room; i++)
        left[i] = tnf_le32(bytes + 4 * i);
    text[at] = 0;
    while (n) {
        uint32_t piece = take_piece(left, &n);
        for (unsigned k = 0; k < DIGITS && (n || piece); k++, piece /= 10)
            text[--at] = (char)('0' + piece % 10);
    }
    if (minus)
        text[--at] = '-';
    *out = (tnf_str) { text + at, most - at };
    return true;
}

/* ----------------------------------------------------------------- floats */

tnf_status tnf_pickle_decimal(double *out, const tnf_pickle_line *line)
{
    char text[400], plain[400 + TNF_NUMBER_MORE], *end; /* more digits than any double needs */
    size_t n = line->text.n;
    while (n && (line->text.p[n - 1] == '\r' || line->text.p[n - 1] == ' '))
        n--;
    if (n == 0 || n >= sizeof text || memchr(line->text.p, 0, n) || memchr(line->text.p, 'x', n) ||
        memchr(line->text.p, 'X', n) || line->text.p[0] == ' ')
        return bad_line(line, "a float");
    memcpy(text, line->text.p, n);
    text[n] = 0;
    if (text[n - 1] == 'L')
        text[--n] = 0;
    bool number = tnf_number_plain(plain, text, n);
    if (!number && strpbrk(text, "0123456789,.")) /* anything but "inf" and "nan" */
        return bad_line(line, "a float");
    *out = strtod(number ? plain : text, &end);
    return end == text || *end ? bad_line(line, "a float") : TNF_OK;
}

/* ------------------------------------------------------------------- text */

bool tnf_pickle_text_valid(const char *p, size_t n)
{
    for (size_t bad; !tnf_utf8_valid(&bad, p, n);) {
        const uint8_t *at = (const uint8_t *)p + bad;
        if (n - bad < 3 || at[0] != 0xed || at[1] < 0xa0 || at[1] > 0xbf || (at[2] & 0xc0) != 0x80)
            return false;
        p += bad + 3;
        n -= bad + 3;
    }
    return true;
}

/* The number of n hex digits at p, or -1. */
static int64_t hex_number(const char *p, size_t left, size_t n)
{
    int64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = i < left ? tnf_hex_digit(p[i]) : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Decodes one escape of a str of Python 2, after its backslash. Returns the number of bytes it
 * took; 0: invalid. */
static size_t unescape_one(char *out, size_t *made, const char *p, size_t left)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    const char *simple = left ? memchr(from, p[0], sizeof from - 1) : NULL;
    size_t n = 0;
    unsigned value = 0;
    *made = 1;
    if (simple) {
        out[0] = to[simple - from];
        return 1;
    }
    if (left && p[0] == 'x') {
        int64_t hex = hex_number(p + 1, left - 1, 2);
        out[0] = (char)hex;
        return hex < 0 ? 0 : 3;
    }
    for (; n < 3 && n < left && p[n] >= '0' && p[n] <= '7'; n++)
        value = value * 8 + (unsigned)(p[n] - '0');
    out[0] = (char)value;
    if (n)
        return n;
    out[0] = '\\'; /* an unknown escape means itself */
    return left ? (*made = 2, out[1] = p[0], 1) : 0;
}

tnf_status tnf_pickle_quoted(tnf_pickle_node *out, const tnf_pickle_line *line)
{
    tnf_str s = line->text;
    while (s.n && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == ' '))
        s.n--;
    if (s.n < 2 || (s.p[0] != '\'' && s.p[0] != '"') || s.p[s.n - 1] != s.p[0])
        return bad_line(line, "a string in quotes");
    s.p++;
    s.n -= 2;
    char *text = tnf_arena_raw(line->arena, s.n + 1);
    size_t n = 0, made;
    if (!text)
        return tnf_arena_fail(line->arena, "a pickle", line->e);
    for (size_t i = 0; i < s.n;) {
        if (s.p[i] != '\\') {
            text[n++] = s.p[i++];
            continue;
        }
        size_t took = unescape_one(text + n, &made, s.p + i + 1, s.n - i - 1);
        if (!took)
            return bad_line(line, "a string with complete escapes");
        n += made;
        i += 1 + took;
    }
    text[n] = 0;
    out->kind = tnf_utf8_valid(NULL, text, n) ? TNF_PICKLE_TEXT : TNF_PICKLE_BYTES;
    out->python2 = true;
    out->as.s = text;
    out->n = n;
    return TNF_OK;
}

/* raw-unicode-escape: \uXXXX, \UXXXXXXXX, all other bytes are latin-1. */
tnf_status tnf_pickle_unicode(tnf_pickle_node *out, const tnf_pickle_line *line)
{
    tnf_str s = line->text;
    char *text = tnf_arena_raw(line->arena, 2 * (uint64_t)s.n + 1);
    size_t n = 0;
    if (!text)
        return tnf_arena_fail(line->arena, "a pickle", line->e);
    for (size_t i = 0; i < s.n;) {
        bool escaped = s.p[i] == '\\' && i + 1 < s.n && (s.p[i + 1] | 32) == 'u';
        size_t digits = !escaped ? 0 : s.p[i + 1] == 'u' ? 4 : 8;
        int64_t c = escaped ? hex_number(s.p + i + 2, s.n - i - 2, digits) : (uint8_t)s.p[i];
        if (c < 0 || c > 0x10ffff)
            return bad_line(line, "text with complete escapes");
        n += tnf_utf8_put(text + n, (uint32_t)c);
        i += escaped ? 2 + digits : 1;
    }
    text[n] = 0;
    out->kind = TNF_PICKLE_TEXT;
    out->as.s = text;
    out->n = n;
    return TNF_OK;
}
