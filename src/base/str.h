/* SPDX-License-Identifier: MIT */
/* Texts with a length: compared, read as numbers, taken from values, and as paths. */
#ifndef TNF_BASE_STR_H
#define TNF_BASE_STR_H

#include <string.h>
#include <tenfold/types.h>

/* Compares the bytes; a text that is the beginning of the other one comes first. */
static inline int tnf_str_compare(tnf_str a, tnf_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : a.n < b.n ? -1 : a.n > b.n;
}

/* The same for qsort() over tnf_str. */
static inline int tnf_str_order(const void *a, const void *b)
{
    return tnf_str_compare(*(const tnf_str *)a, *(const tnf_str *)b);
}

static inline bool tnf_str_is(tnf_str s, const char *literal)
{
    return s.n == strlen(literal) && (s.n == 0 || memcmp(s.p, literal, s.n) == 0);
}

static inline bool tnf_str_begins(tnf_str s, const char *literal)
{
    size_t n = strlen(literal);
    return s.n >= n && (n == 0 || memcmp(s.p, literal, n) == 0);
}

static inline bool tnf_str_ends(tnf_str s, const char *literal)
{
    size_t n = strlen(literal);
    return s.n >= n && (n == 0 || memcmp(s.p + s.n - n, literal, n) == 0);
}

/* A letter from A to Z becomes small. tolower() follows the locale: in a Turkish one, the small
 * letter of I is not i. */
static inline char tnf_lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Are n bytes the same but for the case of the letters A to Z? */
static inline bool tnf_str_alike(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tnf_lower_case(a[i]) != tnf_lower_case(b[i]))
            return false;
    return true;
}

/* Is it this word, in upper or lower case? */
static inline bool tnf_str_is_word(tnf_str s, const char *word)
{
    return s.n == strlen(word) && tnf_str_alike(s.p, word, s.n);
}

/* Reads a decimal number that is the whole text: false if there are other characters or none, or
 * if it exceeds 2^64. */
static inline bool tnf_str_uint(uint64_t *out, tnf_str s)
{
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint64_t digit = (uint64_t)(uint8_t)s.p[i] - '0';
        if (digit > 9 || *out > (UINT64_MAX - digit) / 10)
            return false;
        *out = 10 * *out + digit;
    }
    return s.n > 0;
}

/* Reads the decimal digits at *p, up to `end`, and moves *p behind them; it does not move if there
 * are none. UINT64_MAX: the number is not below it. */
static inline uint64_t tnf_take_digits(const char **p, const char *end)
{
    uint64_t n = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p) {
        uint64_t digit = (uint64_t)(**p - '0');
        n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : 10 * n + digit;
    }
    return n;
}

/* The last component of a path: what follows its last slash. */
static inline const char *tnf_path_end(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Does a path that comes from outside stay below a directory? It has no empty components, no "."
 * and
 * "..", no backslash and no NUL. */
static inline bool tnf_path_is_inside(tnf_str path)
{
    bool inside = path.n > 0 && !memchr(path.p, 0, path.n) && !memchr(path.p, '\\', path.n);
    for (size_t at = 0; inside && at <= path.n;) {
        const char *part = path.p + at, *slash = memchr(part, '/', path.n - at);
        size_t n = slash ? (size_t)(slash - part) : path.n - at;
        inside = n > 0 && !(n == 1 && part[0] == '.') &&
                 !(n == 2 && part[0] == '.' && part[1] == '.');
        at += n + 1;
    }
    return inside;
}

/* Is it a string value with this text? False for NULL. */
static inline bool tnf_value_is(const tnf_value *v, const char *literal)
{
    return v && v->kind == TNF_STRING && tnf_str_is((tnf_str) { v->as.s, v->n }, literal);
}

/* The text or the bytes of a value, such as a name that is not UTF-8. p is NULL only if the value
 * is something else, or NULL. */
static inline tnf_str tnf_value_chars(const tnf_value *v)
{
    bool is = v && (v->kind == TNF_STRING || v->kind == TNF_BYTES);
    return is ? (tnf_str) { v->as.s ? v->as.s : "", v->n } : (tnf_str) { NULL, 0 };
}

/* Is it one of the words of a list separated by spaces? False if it is empty, or contains a space
 * or a NUL. */
static inline bool tnf_str_listed(tnf_str s, const char *list)
{
    /* This runs for each of many names and formats, and most words differ in a letter or two. */
    for (const char *word = list; word && s.n; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (*word == *s.p && strncmp(word, s.p, s.n) == 0 && !memchr(s.p, 0, s.n) &&
            (word[s.n] == 0 || word[s.n] == ' '))
            return !memchr(s.p, ' ', s.n);
    }
    return false;
}

/* The position of a word in "a|b|c"; -1: it is not there. */
static inline int tnf_str_position(const char *words, const char *word)
{
    size_t n = strlen(word);
    int i = 0;
    for (const char *p = words; p; i++) {
        const char *bar = strchr(p, '|');
        if ((bar ? (size_t)(bar - p) : strlen(p)) == n && memcmp(p, word, n) == 0)
            return i;
        p = bar ? bar + 1 : NULL;
    }
    return -1;
}

#endif
