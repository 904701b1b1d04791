/* SPDX-License-Identifier: MIT */
/* The pulling JSON reader (exactly RFC 8259): one pass, no tree, exact offsets.
 *
 *   start ─────────── p ─────────── end      where() = base + (p - start)
 *
 * The header of a large model is tens of megabytes of names and small numbers. So plain strings are
 * scanned eight bytes at a time and returned without a copy; only escapes cost a copy. Nesting is a
 * counter and does not use the C stack.
 */
#include "wire/json.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Above any sensible limit. It bounds the bit stack of tnf_json_skip() and the recursion of
 * trees. */
#define DEEPEST 512u

void tnf_json_init(tnf_json *j, const void *text, size_t n, uint64_t base, tnf_arena *arena,
                   unsigned max_depth, tnf_error *e)
{
    const uint8_t *start = n ? text : (const void *)"";
    *j = (tnf_json) { .start = start,
                      .p = start,
                      .end = start + n,
                      .base = base,
                      .arena = arena,
                      .max_depth = max_depth < DEEPEST ? max_depth : DEEPEST,
                      .e = e };
}

/* ----------------------------------------------------------------- errors */

static uint64_t position_of(const tnf_json *j, const uint8_t *p)
{
    return j->base + (uint64_t)(p - j->start);
}

uint64_t tnf_json_where(const tnf_json *j)
{
    return position_of(j, j->p);
}

uint64_t tnf_json_next_key_at(const tnf_json *j)
{
    const uint8_t *p = j->p;
    while (p < j->end && (*p <= ' ' || *p == ','))
        p++;
    return position_of(j, p);
}

bool tnf_json_fail(tnf_json *j, tnf_status status, uint64_t offset, const char *format, ...)
{
    if (j->status != TNF_OK)
        return false;
    char message[sizeof j->e->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    j->status = tnf_fail(j->e, status, offset == TNF_NO_OFFSET ? tnf_json_where(j) : offset, "%s",
                         message);
    return false;
}

/* Fails because `wanted` is not at p, and says what is there instead. */
static bool fail_unexpected(tnf_json *j, const uint8_t *p, const char *wanted)
{
    uint64_t at = position_of(j, p);
    if (p == j->end)
        return tnf_json_fail(j, TNF_ETRUNCATED, at, "the JSON text ends where %s should be",
                             wanted);
    if (*p > 0x20 && *p < 0x7f)
        return tnf_json_fail(j, TNF_EFORMAT, at, "the JSON text has '%c' where %s should be", *p,
                             wanted);
    return tnf_json_fail(j, TNF_EFORMAT, at, "the JSON text has byte 0x%02x where %s should be", *p,
                         wanted);
}

static bool fail_bad(tnf_json *j, const uint8_t *p, const char *what)
{
    return tnf_json_fail(j, TNF_EFORMAT, position_of(j, p), "%s", what);
}

/* ---------------------------------------------------------------- tokens */

static void skip_space(tnf_json *j)
{
    const uint8_t *p = j->p;
    while (p < j->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    j->p = p;
}

/* Finds the start of a value that begins with c, after white space. */
static bool at_value(tnf_json *j, char c, const char *wanted)
{
    if (j->status != TNF_OK)
        return false;
    skip_space(j);
    if (j->p < j->end && *j->p == (uint8_t)c)
        return true;
    return fail_unexpected(j, j->p, wanted);
}

char tnf_json_peek(tnf_json *j)
{
    if (j->status != TNF_OK)
        return 0;
    skip_space(j);
    if (j->p == j->end)
        return 0;
    uint8_t c = *j->p;
    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    if (c == '"' || c == '{' || c == '[' || c == 't' || c == 'f' || c == 'n')
        return (char)c;
    fail_unexpected(j, j->p, "a value");
    return 0;
}

bool tnf_json_enter(tnf_json *j, char opener)
{
    if (!at_value(j, opener, opener == '{' ? "an object" : "an array"))
        return false;
    if (j->depth >= j->max_depth)
        return tnf_json_fail(j, TNF_ELIMIT, TNF_NO_OFFSET,
                             "the JSON text is nested deeper than %u levels", j->max_depth);
    j->p++;
    j->depth++;
    j->first = true;
    return true;
}

/* True before the next member or element; false after the closing bracket, which is consumed. */
static bool next_item(tnf_json *j, uint8_t closer)
{
    if (j->status != TNF_OK)
        return false;
    skip_space(j);
    if (j->p < j->end && *j->p == closer) {
        j->p++;
        j->depth--;
        j->first = false;
        return false;
    }
    if (!j->first) {
        if (j->p == j->end || *j->p != ',')
            return fail_unexpected(j, j->p, closer == '}' ? "',' or '}'" : "',' or ']'");
        j->p++;
        skip_space(j);
        if (j->p < j->end && *j->p == closer)
            return fail_bad(j, j->p, "the JSON text has a comma before a closing bracket");
    }
    j->first = false;
    return true;
}

bool tnf_json_item(tnf_json *j)
{
    return next_item(j, ']');
}

/* --------------------------------------------------------------- strings */

#define ALL(byte) (0x0101010101010101u * (uint64_t)(byte))

/* Sets the high bit of each byte that is a quote, a backslash, a control character or beyond ASCII.
 * Only the lowest such bit is reliable, since subtractions borrow upwards. */
static inline uint64_t special_bytes(uint64_t v)
{
    uint64_t quote = v ^ ALL('"'), backslash = v ^ ALL('\\');
    return (v | (v - ALL(0x20)) | (quote - ALL(1)) | (backslash - ALL(1))) & ALL(0x80);
}

/* The first byte from p on that is not plain. */
static inline const uint8_t *plain_end(const uint8_t *p, const uint8_t *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t found = special_bytes(tnf_le64(p));
#if defined(__GNUC__)
        if (found)
            return p + __builtin_ctzll(found) / 8;
#else
        if (found)
            break;
#endif
    }
    while (p < end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* Value of four hexadecimal digits at p, or -1. */
static int four_digits(const uint8_t *p, const uint8_t *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = tnf_hex_digit((char)p[i]);
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

/* Decodes \uXXXX, or a surrogate pair of them, at *p (the backslash). Moves *p past it; writes
 * UTF-8 to out. */
static bool unicode_escape(tnf_json *j, const uint8_t **p, const uint8_t *end, uint8_t *out,
                           size_t *n)
{
    const uint8_t *at = *p;
    int high = four_digits(at + 2, end), low = -1;
    if (high < 0)
        return fail_bad(j, at, "the JSON text has \\u without four hexadecimal digits");
    *p = at + 6;
    if (high >= 0xdc00 && high <= 0xdfff)
        return fail_bad(j, at, "the JSON text has the second half of a surrogate pair alone");
    if (high < 0xd800 || high > 0xdbff) {
        *n = tnf_utf8_put((char *)out, (uint32_t)high);
        return true;
    }
    if (end - *p >= 2 && (*p)[0] == '\\' && (*p)[1] == 'u')
        low = four_digits(*p + 2, end);
    if (low < 0xdc00 || low > 0xdfff)
        return fail_bad(j, at, "the JSON text has the first half of a surrogate pair alone");
    *p += 6;
    *n = tnf_utf8_put((char *)out,
                      0x10000u + ((uint32_t)high - 0xd800u) * 0x400u + (uint32_t)low - 0xdc00u);
    return true;
}

/* Decodes the text between the quotes into dst; if dst is NULL, only checks it. An escape is never
 * shorter than its result, so dst is never larger than the text. */
static bool unescape_text(tnf_json *j, const uint8_t *p, const uint8_t *end, uint8_t *dst,
                          size_t *n)
{
    static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    size_t total = 0;
    while (p < end) {
        const uint8_t *run = p;
        p = memchr(p, '\\', (size_t)(end - p));
        p = p ? p : end;
        if (dst && p > run)
            memcpy(dst + total, run, (size_t)(p - run));
        total += (size_t)(p - run);
        if (p == end)
            break;
        uint8_t code[4];
        size_t ncode = 1;
        const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
        if (letter) {
            code[0] = (uint8_t)meaning[letter - letters];
            p += 2;
        } else if (p[1] != 'u') {
            return fail_bad(j, p, "the JSON text has an unknown escape in a string");
        } else if (!unicode_escape(j, &p, end, code, &ncode)) {
            return false;
        }
        if (dst)
            memcpy(dst + total, code, ncode);
        total += ncode;
    }
    *n = total;
    return true;
}

/* Reads a string that contains a byte that is not plain; j->p is at its quote, p at that byte. */
static bool string_slow(tnf_json *j, const uint8_t *p, tnf_str *out)
{
    const uint8_t *start = j->p + 1;
    bool escapes = false, high = false;
    for (; p < j->end && *p != '"'; p = plain_end(p, j->end)) {
        if (*p < 0x20)
            return fail_bad(j, p, "the JSON text has a bare control character in a string");
        high |= *p >= 0x80;
        escapes |= *p == '\\';
        p += *p == '\\' && j->end - p > 1 ? 2 : 1;
    }
    if (p >= j->end)
        return tnf_json_fail(j, TNF_ETRUNCATED, position_of(j, j->end),
                             "the JSON text ends inside a string");
    size_t n = (size_t)(p - start), wrong;
    if (high && !tnf_utf8_valid(&wrong, (const char *)start, n))
        return fail_bad(j, start + wrong, "the JSON text has a string that is not UTF-8");
    char *copy = NULL;
    if (escapes && out && !(copy = tnf_arena_str(j->arena, start, n))) {
        j->status = tnf_arena_fail(j->arena, "a string", j->e);
        return false;
    }
    if (escapes && !unescape_text(j, start, p, (uint8_t *)copy, &n))
        return false;
    if (copy)
        copy[n] = 0;
    if (out)
        *out = (tnf_str) { copy ? copy : (const char *)start, n };
    j->p = p + 1;
    return true;
}

/* Reads a string at j->p, after white space; out may be NULL. */
static bool read_string(tnf_json *j, tnf_str *out, const char *wanted)
{
    if (!at_value(j, '"', wanted))
        return false;
    const uint8_t *start = j->p + 1, *p = plain_end(start, j->end);
    if (p == j->end || *p != '"')
        return string_slow(j, p, out);
    if (out)
        *out = (tnf_str) { (const char *)start, (size_t)(p - start) };
    j->p = p + 1;
    return true;
}

bool tnf_json_string(tnf_json *j, tnf_str *out)
{
    return read_string(j, out, "a string");
}

/* key may be NULL: the key is then only checked. */
bool tnf_json_key(tnf_json *j, tnf_str *key)
{
    if (!next_item(j, '}') || !read_string(j, key, "a key in quotes") || !at_value(j, ':', "':'"))
        return false;
    j->p++;
    return true;
}

/* --------------------------------------------------------------- scalars */

static bool is_digit(const tnf_json *j, const uint8_t *p)
{
    return p < j->end && *p >= '0' && *p <= '9';
}

static const uint8_t *digits_end(const tnf_json *j, const uint8_t *p)
{
    while (is_digit(j, p))
        p++;
    return p;
}

bool tnf_json_u64(tnf_json *j, uint64_t *out)
{
    if (j->status != TNF_OK)
        return false;
    skip_space(j);
    const uint8_t *start = j->p, *p = start;
    uint64_t v = 0;
    for (; is_digit(j, p); p++) {
        uint64_t digit = *p - (uint64_t)'0';
        if (p - start >= 19 && v > (UINT64_MAX - digit) / 10) /* 19 digits always fit */
            return fail_bad(j, start, "the JSON text has a number beyond 64 bits");
        v = v * 10 + digit;
    }
    if (p == start)
        return fail_unexpected(j, p, "a whole number");
    if (*start == '0' && p - start > 1)
        return fail_bad(j, start, "the JSON text has a number that begins with 0");
    if (p < j->end && (*p == '.' || *p == 'e' || *p == 'E'))
        return fail_bad(
            j, start,
            "the JSON text has a number with a point or an exponent where a whole number "
            "should be");
    j->p = p;
    *out = v;
    return true;
}

/* Checks the grammar of a number and skips it. */
static bool skip_number(tnf_json *j)
{
    const uint8_t *p = j->p + (*j->p == '-');
    if (!is_digit(j, p))
        return fail_unexpected(j, p, "a digit");
    if (*p == '0' && is_digit(j, p + 1))
        return fail_bad(j, p, "the JSON text has a number that begins with 0");
    p = digits_end(j, p);
    if (p < j->end && *p == '.') {
        if (!is_digit(j, ++p))
            return fail_unexpected(j, p, "a digit");
        p = digits_end(j, p);
    }
    if (p < j->end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < j->end && (*p == '+' || *p == '-');
        if (!is_digit(j, p))
            return fail_unexpected(j, p, "a digit");
        p = digits_end(j, p);
    }
    j->p = p;
    return true;
}

static bool take_word(tnf_json *j, const char *text)
{
    const uint8_t *p = j->p;
    for (; *text; text++, p++)
        if (p == j->end || *p != (uint8_t)*text)
            return fail_unexpected(j, p, "the rest of true, false or null");
    j->p = p;
    return true;
}

bool tnf_json_bool(tnf_json *j, bool *out)
{
    char c = tnf_json_peek(j);
    if (j->status != TNF_OK)
        return false;
    if (c != 't' && c != 'f')
        return fail_unexpected(j, j->p, "true or false");
    *out = c == 't';
    return take_word(j, *out ? "true" : "false");
}

static bool skip_scalar(tnf_json *j, char c)
{
    switch (c) {
    case '"':
        return read_string(j, NULL, "a string");
    case '0':
        return skip_number(j);
    case 't':
        return take_word(j, "true");
    case 'f':
        return take_word(j, "false");
    case 'n':
        return take_word(j, "null");
    default:
        return fail_unexpected(j, j->p, "a value");
    }
}

/* Moves to the next value of the containers opened since `outer`; closes those that end before
 * it. */
static bool next_value(tnf_json *j, unsigned outer, const uint64_t *objects)
{
    while (j->depth > outer) {
        unsigned level = j->depth - outer - 1;
        bool object = objects[level / 64] >> level % 64 & 1;
        if (object ? tnf_json_key(j, NULL) : tnf_json_item(j))
            return true;
        if (j->status != TNF_OK)
            return false;
    }
    return false;
}

bool tnf_json_skip(tnf_json *j, tnf_str *out)
{
    uint64_t objects[DEEPEST / 64] = { 0 }; /* a bit for each level: is it an object? */
    const unsigned outer = j->depth;
    char c = tnf_json_peek(j);
    const uint8_t *start = j->p;
    for (;; c = tnf_json_peek(j)) {
        unsigned level = j->depth - outer;
        if (c == '{' || c == '[') {
            if (level >= DEEPEST || !tnf_json_enter(j, c))
                return tnf_json_fail(j, TNF_ELIMIT, TNF_NO_OFFSET,
                                     "the JSON text is nested too deeply");
            uint64_t bit = (uint64_t)1 << level % 64;
            objects[level / 64] &= ~bit;
            objects[level / 64] |= c == '{' ? bit : 0;
        } else if (!skip_scalar(j, c)) {
            return false;
        }
        if (!next_value(j, outer, objects))
            break;
    }
    if (out)
        *out = (tnf_str) { (const char *)start, (size_t)(j->p - start) };
    return j->status == TNF_OK;
}

tnf_status tnf_json_end(tnf_json *j)
{
    if (j->status == TNF_OK) {
        skip_space(j);
        if (j->p < j->end)
            fail_unexpected(j, j->p, "its end");
    }
    return j->status;
}
