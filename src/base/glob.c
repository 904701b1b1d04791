/* SPDX-License-Identifier: MIT */
/* Patterns over names. A star only ever needs the last one to be tried again, so matching takes
 * time in proportion to pattern times name at worst, and no stack. */
#include "base/utf8.h"

#include <string.h>

/* A character of either; a byte that is no UTF-8 stands for itself, out of the way of others. */
static uint32_t next_character(const char *p, size_t n, size_t *length)
{
    uint32_t c;
    *length = tnf_utf8_next(&c, p, n);
    if (*length > 0)
        return c;
    *length = 1;
    return 0x80000000u | (unsigned char)*p;
}

/* Does [..] at g, which ends at `end`, hold c? *length: how long it is, 0 if it has no end. */
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

/* Does one element of the pattern take the character? *length: of that element. */
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
    if (!glob)
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
