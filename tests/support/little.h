/* SPDX-License-Identifier: MIT */
/* Converts between the bytes of tensors, which are little-endian, and numbers in tests, which have
 * the machine's order. On little-endian machines nothing is copied or changed. */
#ifndef TNF_SUPPORT_LITTLE_H
#define TNF_SUPPORT_LITTLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/types.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_IS_NATIVE 1
#else
#define LITTLE_IS_NATIVE 0
#endif

/* Reverses the bytes of n numbers of `width` bytes in place: from a file's order to the machine's,
 * or back.
 */
static inline void from_little(void *numbers, size_t width, size_t n)
{
    uint8_t *p = numbers;
    for (size_t i = 0; !LITTLE_IS_NATIVE && i < n; i++, p += width)
        for (size_t a = 0, b = width - 1; a < b; a++, b--) {
            uint8_t kept = p[a];
            p[a] = p[b];
            p[b] = kept;
        }
}

/* The numbers in a file's order. A copy is never freed: the test ends soon. */
static inline const void *to_little(const void *numbers, size_t width, size_t n)
{
    if (LITTLE_IS_NATIVE || width < 2 || !numbers)
        return numbers;
    void *copy = malloc(width * n + 1);
    if (!copy)
        abort();
    memcpy(copy, numbers, width * n);
    from_little(copy, width, n);
    return copy;
}

/* The number of bytes that are reversed together: half of a complex number; 1 for types of less
 * than a byte.
 */
static inline size_t little_width(const tnf_type *type)
{
    size_t width = type->bits / 8 / (type->number == TNF_NUMBER_COMPLEX ? 2 : 1);
    return width ? width : 1;
}

static inline const void *little_bytes(const tnf_type *type, const void *numbers, uint64_t bytes)
{
    size_t width = little_width(type);
    return to_little(numbers, width, (size_t)bytes / width);
}

#endif
