/* SPDX-License-Identifier: MIT */
/* UTF-8 from bytes that may be invalid. A byte that cannot begin or continue a character becomes
 * one U+FFFD, together with the bytes before it that began a character (Unicode 15, section 3.9,
 * "substitution of maximal subparts"). */
#include "base/lossy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The length that a lead byte announces, 0 if it is not one; and the range of the second byte
 * (table 3-7). */
static size_t length_of(uint8_t b, uint8_t *low, uint8_t *high)
{
    *low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
    *high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    return b < 0x80 ? 1 : b < 0xc2 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 0;
}

/* The number of bytes of a character, or of the longest beginning of one. */
static size_t piece_length(const uint8_t *p, size_t n, bool *whole)
{
    uint8_t low, high;
    size_t length = length_of(p[0], &low, &high), k = 1;
    for (; k < length && k < n && p[k] >= low && p[k] <= high; k++) {
        low = 0x80;
        high = 0xbf;
    }
    *whole = k == length;
    return k;
}

size_t tnf_utf8_mend(char *out, const char *p, size_t n)
{
    char *to = out;
    bool whole;
    while (n > 0) {
        size_t k = piece_length((const uint8_t *)p, n, &whole), put = whole ? k : 3;
        memcpy(to, whole ? p : "\xef\xbf\xbd", put);
        to += put;
        p += k;
        n -= k;
    }
    return (size_t)(to - out);
}
