/* SPDX-License-Identifier: MIT */
/* Little- and big-endian loads and stores at any alignment. Numbers in files, and in memory that is
 * lent or returned to the caller, are little-endian on every machine. Code that computes with them
 * in place reverses them first on a big-endian machine. */
#ifndef TNF_BASE_BYTES_H
#define TNF_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TNF_BIG_ENDIAN_HOST 1
#else
#define TNF_BIG_ENDIAN_HOST 0
#endif

/* The bits of a float, and the float of bits. */
static inline uint32_t tnf_f32_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float tnf_f32_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint64_t tnf_f64_bits(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static inline double tnf_f64_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static inline uint16_t tnf_le16(const void *at)
{
    const uint8_t *p = at;
    return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t tnf_le32(const void *at)
{
    const uint8_t *p = at;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t tnf_le64(const void *at)
{
    const uint8_t *p = at;
    return (uint64_t)tnf_le32(p) | (uint64_t)tnf_le32(p + 4) << 32;
}

static inline void tnf_put_le16(void *at, uint16_t v)
{
    uint8_t *p = at;
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void tnf_put_le32(void *at, uint32_t v)
{
    uint8_t *p = at;
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline void tnf_put_le64(void *at, uint64_t v)
{
    uint8_t *p = at;
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Reverses the bytes of each number of `width` bytes, in place, in n bytes. */
static inline void tnf_reverse(void *at, uint64_t n, size_t width)
{
    uint8_t *p = at;
    if (width < 2)
        return;
    for (; n >= width; n -= width, p += width)
        for (size_t k = 0; k < width / 2; k++) {
            uint8_t low = p[k];
            p[k] = p[width - 1 - k];
            p[width - 1 - k] = low;
        }
}

/* Converts n numbers of `width` bytes from a file's byte order to the machine's, or back, in
 * place. */
static inline void tnf_swap_le(void *at, uint64_t n, size_t width)
{
    if (TNF_BIG_ENDIAN_HOST)
        tnf_reverse(at, n * width, width);
}

/* Copies n bytes of the machine's numbers, from byte `from` on, in a file's byte order. */
static inline void tnf_copy_le(void *dst, const void *numbers, size_t width, size_t from, size_t n)
{
    const uint8_t *p = numbers;
    uint8_t *to = dst;
    if (!TNF_BIG_ENDIAN_HOST) {
        memcpy(dst, p + from, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t within = (from + i) % width;
        to[i] = p[from + i - within + (width - 1 - within)];
    }
}

static inline uint16_t tnf_be16(const void *at)
{
    const uint8_t *p = at;
    return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t tnf_be32(const void *at)
{
    const uint8_t *p = at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline uint64_t tnf_be64(const void *at)
{
    const uint8_t *p = at;
    return (uint64_t)tnf_be32(p) << 32 | tnf_be32(p + 4);
}

#endif
