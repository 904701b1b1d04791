/* SPDX-License-Identifier: MIT */
/* Doubles as text, independent of the locale. A program may set one in which the decimal point is
 * a comma, or several bytes; printf() and strtod() then follow it. */
#include "base/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tnf_number_point(char *number)
{
    char *p = number + (*number == '-');
    size_t whole = strspn(p, "0123456789");
    p += whole;
    size_t n = strcspn(p, "0123456789e");
    if (whole && n) {
        *p = '.';
        memmove(p + 1, p + n, strlen(p + n) + 1);
    }
}

const char *tnf_f64_text(char out[TNF_F64_TEXT], double value)
{
    snprintf(out, TNF_F64_TEXT, "%.17g", value);
    tnf_number_point(out);
    return out;
}

/* Reads an exponent without its "e": digits with an optional sign. */
static bool read_exponent(long *out, const char *p, const char *end)
{
    bool minus = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (p == end)
        return false;
    for (*out = 0; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        if (*out < 1000000) /* infinite or 0 in any case */
            *out = 10 * *out + (*p - '0');
    }
    *out = minus ? -*out : *out;
    return true;
}

bool tnf_number_plain(char *out, const char *text, size_t n)
{
    const char *p = text, *end = text + n;
    long exponent = 0, after = 0;
    bool point = false, digits = false;
    if (p < end && (*p == '-' || *p == '+'))
        *out++ = *p++;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        bool digit = *p >= '0' && *p <= '9';
        if (digit ? false : *p != '.' || point)
            return false;
        point = point || !digit;
        digits = digits || digit;
        after += point && digit;
        if (digit)
            *out++ = *p;
    }
    if (!digits || (p < end && !read_exponent(&exponent, p + 1, end)))
        return false;
    snprintf(out, TNF_NUMBER_MORE, "e%ld", exponent - after);
    return true;
}

bool tnf_f64_parse(double *out, const char *text, size_t n)
{
    char plain[TNF_F64_TEXT + TNF_NUMBER_MORE];
    size_t minus = n > 0 && *text == '-';
    if (n - minus == 3 &&
        (memcmp(text + minus, "inf", 3) == 0 || memcmp(text + minus, "nan", 3) == 0)) {
        memcpy(plain, text, n);
        plain[n] = 0;
    } else if (n > TNF_F64_TEXT || !tnf_number_plain(plain, text, n)) {
        return false;
    }
    *out = strtod(plain, NULL);
    return true;
}
