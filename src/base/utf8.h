/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_UTF8_H
#define TNF_BASE_UTF8_H

#include <tenfold/types.h> /* tnf_utf8_valid(), tnf_utf8_next() */

/* A letter of ASCII in lower case, and anything else as it is. */
static inline char tnf_lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool tnf_ascii(const char *p, size_t n);
/* The bytes of a code point, up to U+10FFFF, surrogates too; 1 to 4 of them. Gives how many. */
size_t tnf_utf8_put(char *out, uint32_t c);

#endif
