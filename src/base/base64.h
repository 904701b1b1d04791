/* SPDX-License-Identifier: MIT */
/* Digits of base64. */
#ifndef TNF_BASE_BASE64_H
#define TNF_BASE_BASE64_H

#include <string.h>

/* The value of a digit; -1 if it is not a digit. */
static inline int tnf_base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

#endif
