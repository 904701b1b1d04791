/* SPDX-License-Identifier: MIT */
/* Hexadecimal digits. */
#ifndef TNF_BASE_HEX_H
#define TNF_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a digit, upper or lower case; -1 if it is not a digit. */
static inline int tnf_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Writes two lower-case digits per byte, without a NUL. Returns the end of the text. */
static inline char *tnf_hex_put(char *out, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        *out++ = "0123456789abcdef"[p[i] >> 4];
        *out++ = "0123456789abcdef"[p[i] & 15];
    }
    return out;
}

/* A byte as %XX, with upper-case digits; no terminator. */
static inline void tnf_hex_percent(char out[3], char byte)
{
    out[0] = '%';
    out[1] = "0123456789ABCDEF"[(uint8_t)byte >> 4];
    out[2] = "0123456789ABCDEF"[byte & 15];
}

/* Reads n bytes of two digits each; a NUL is not needed. False if one is not a digit. */
static inline bool tnf_hex_take(void *out, const char *digits, size_t n)
{
    uint8_t *p = out;
    for (size_t i = 0; i < n; i++) {
        int high = tnf_hex_digit(digits[2 * i]), low = tnf_hex_digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        p[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

#endif
