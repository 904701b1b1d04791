/* SPDX-License-Identifier: MIT */
/* Search in a non-decreasing list of numbers, such as the beginnings of pieces: which piece
 * contains a position? */
#ifndef TNF_BASE_RISING_H
#define TNF_BASE_RISING_H

#include <stddef.h>
#include <stdint.h>

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

#endif
