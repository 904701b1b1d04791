/* SPDX-License-Identifier: MIT */
/* UTF-8 as in RFC 3629 (Unicode's table of well-formed byte sequences):
 *
 *   00..7F
 *   C2..DF  80..BF
 *   E0      A0..BF  80..BF            (less would be overlong)
 *   E1..EF  80..BF  80..BF            (but ED 80..9F: the rest are surrogates)
 *   F0      90..BF  80..BF  80..BF    (less would be overlong)
 *   F1..F4  80..BF  80..BF  80..BF    (but F4 80..8F: the rest is beyond U+10FFFF)
 *
 * Names are nearly always ASCII and a file may have a hundred thousand of them, so ASCII is checked
 * word by word.
 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#define HIGH_BITS 0x8080808080808080u

/* A lower bound for the number of ASCII bytes from p on; exact if all bytes are ASCII. */
static size_t ascii_run(const uint8_t *p, size_t n)
{
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        uint64_t w[4];
        memcpy(w, p + i, sizeof w);
        if ((w[0] | w[1] | w[2] | w[3]) & HIGH_BITS)
            break;
    }
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof w);
        if (w & HIGH_BITS)
            break;
    }
    while (i < n && p[i] < 0x80)
        i++;
    return i;
}

static bool byte_between(uint8_t byte, uint8_t low, uint8_t high)
{
    return byte >= low && byte <= high;
}

/* The length of the well-formed sequence of two to four bytes at p, or 0. */
static size_t sequence_length(const uint8_t *p, size_t left)
{
    uint8_t lead = p[0];
    size_t n = byte_between(lead, 0xc2, 0xdf)   ? 2
               : byte_between(lead, 0xe0, 0xef) ? 3
               : byte_between(lead, 0xf0, 0xf4) ? 4
                                                : 0;
    if (n == 0 || n > left)
        return 0;
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (!byte_between(p[1], low, high))
        return 0;
    for (size_t i = 2; i < n; i++)
        if (!byte_between(p[i], 0x80, 0xbf))
            return 0;
    return n;
}

size_t tnf_utf8_next(uint32_t *code_point, const char *p, size_t n)
{
    const uint8_t *b = (const uint8_t *)p;
    size_t length = n == 0 || !p ? 0 : b[0] < 0x80 ? 1 : sequence_length(b, n);
    if (length == 0)
        return 0;
    uint32_t c = length == 1 ? b[0] : b[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        c = c << 6 | (b[i] & 0x3fu);
    *code_point = c;
    return length;
}

bool tnf_utf8_valid(size_t *bad_at, const char *p, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)p;
    for (size_t i = 0; i < n;) {
        size_t step = 0; /* also for NULL, which is not valid text of n bytes */
        if (bytes)
            step = bytes[i] < 0x80 ? ascii_run(bytes + i, n - i)
                                   : sequence_length(bytes + i, n - i);
        if (step == 0) {
            if (bad_at)
                *bad_at = i;
            return false;
        }
        i += step;
    }
    return true;
}

bool tnf_ascii(const char *p, size_t n)
{
    return ascii_run((const uint8_t *)p, n) == n;
}

size_t tnf_utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | c); /* c0, e0, f0 */
    return n;
}
