/* SPDX-License-Identifier: MIT */
/* Lists of numbers: sorting, and search in a non-decreasing one, such as the beginnings of pieces:
 * which piece contains a position? */
#ifndef TNF_BASE_RISING_H
#define TNF_BASE_RISING_H

#include <stddef.h>
#include <stdint.h>

/* For qsort() and bsearch() over uint64_t. */
static inline int tnf_u64_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The index of the last of n numbers that is not above x; 0 if all are above. The numbers are
 * `stride` bytes apart, like members of an array of structs. */
static inline size_t tnf_rising_find(const uint64_t *numbers, size_t stride, size_t n, uint64_t x)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        const uint64_t *number = (const void *)((const char *)numbers + middle * stride);
        if (*number <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The index of the first of n numbers that is not below x; n if all are below. */
static inline size_t tnf_rising_first(const uint64_t *numbers, size_t stride, size_t n, uint64_t x)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const uint64_t *number = (const void *)((const char *)numbers + middle * stride);
        if (*number < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
