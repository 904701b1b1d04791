/* SPDX-License-Identifier: MIT */
/* Digits of base64, and texts of them. */
#ifndef TNF_BASE_BASE64_H
#define TNF_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The value of a digit; -1 if it is not a digit. */
static inline int tnf_base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Writes four digits for the first bytes of p: three, or all n of them. */
static inline void tnf_base64_four(char out[4], const uint8_t *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
    out[0] = digits[bits >> 18];
    out[1] = digits[bits >> 12 & 63];
    out[2] = n > 1 ? digits[bits >> 6 & 63] : '=';
    out[3] = n > 2 ? digits[bits & 63] : '=';
}

/* Decodes a text with or without padding into at most n / 4 * 3 + 3 bytes; returns false if it is
 * not base64. */
static inline bool tnf_base64_take(uint8_t *out, size_t *made, const char *text, size_t n)
{
    uint32_t bits = 0;
    size_t end = n;
    *made = 0;
    while (end > 0 && n - end < 2 && text[end - 1] == '=')
        end--;
    for (size_t i = 0; i < end; i++) {
        int digit = tnf_base64_digit(text[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 > 0)
            out[(*made)++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    return end % 4 != 1;
}

#endif
