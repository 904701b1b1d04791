/* SPDX-License-Identifier: MIT */
/* Texts with a length, compared. */
#ifndef TNF_BASE_STR_H
#define TNF_BASE_STR_H

#include <string.h>
#include <tenfold/types.h>

/* By the bytes; of two that begin alike the shorter first. */
static inline int tnf_str_compare(tnf_str a, tnf_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : a.n < b.n ? -1 : a.n > b.n;
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

#endif
