/* SPDX-License-Identifier: MIT */
/* Patterns for names. After a mismatch only the last star needs another try. So the time is at most
 * proportional to pattern times name, and no stack is needed. */
#include "base/utf8.h"

#include <string.h>

/* A character of the pattern or the name. A byte that is not UTF-8 gets a value that no character
 * has. */
static uint32_t next_character(const char *p, size_t n, size_t *length)
{
    uint32_t c;
    *length = tnf_utf8_next(&c, p, n);
    if (*length > 0)
        return c;
    *length = 1;
    return 0x80000000u | (unsigned char)*p;
}

/* Does the class [..] at the beginning of g, which has n bytes, contain c? *length: of the class, 0
 * if it is not closed. */
static bool in_class(const char *g, size_t n, uint32_t c, size_t *length)
{
    size_t at = 1, step;
    bool negated = n > 1 && (g[1] == '!' || g[1] == '^'), held = false;
    at += negated;
    for (size_t first = at; at < n && (g[at] != ']' || at == first); at += step) {
        uint32_t low = next_character(g + at, n - at, &step), high = low;
        if (at + step + 1 < n && g[at + step] == '-' && g[at + step + 1] != ']') {
            size_t more;
            high = next_character(g + at + step + 1, n - at - step - 1, &more);
            step += 1 + more;
        }
        held = held || (c >= low && c <= high);
    }
    *length = at < n ? at + 1 : 0;
    return held != negated;
}

/* Does one element of the pattern match the character? *length: of that element. */
static bool takes_character(const char *g, size_t n, uint32_t c, size_t *length)
{
    if (n == 0)
        return false;
    if (*g == '?') {
        *length = 1;
        return true;
    }
    if (*g == '[') {
        bool held = in_class(g, n, c, length);
        if (*length > 0)
            return held;
    }
    size_t skip = *g == '\\' && n > 1;
    bool same = next_character(g + skip, n - skip, length) == c;
    *length += skip;
    return same;
}

bool tnf_glob_match(const char *glob, tnf_str name)
{
    if (!glob || (!name.p && name.n))
        return false;
    size_t ng = strlen(glob), g = 0, s = 0, star = SIZE_MAX, retry = 0;
    while (s < name.n) {
        size_t step, length;
        uint32_t c = next_character(name.p + s, name.n - s, &step);
        if (g < ng && glob[g] == '*') {
            star = ++g;
            retry = s;
        } else if (takes_character(glob + g, ng - g, c, &length)) {
            g += length;
            s += step;
        } else if (star != SIZE_MAX) {
            next_character(name.p + retry, name.n - retry, &step);
            s = retry += step;
            g = star;
        } else {
            return false;
        }
    }
    while (g < ng && glob[g] == '*')
        g++;
    return g == ng;
}
