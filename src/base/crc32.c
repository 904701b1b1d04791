/* SPDX-License-Identifier: MIT */
/* CRC-32, reflected, polynomial 0xedb88320. A CRC is the remainder of a polynomial, so n bytes
 * more in front of others multiply theirs by x^(8n): CRCs are put together and taken apart without
 * the bytes. */
#include "base/crc32.h"

#ifdef TENFOLD_ZLIB
#include <zlib.h>
#endif

#define POLYNOMIAL 0xedb88320u
#define ONE        0x80000000u /* x^0: the lowest power is the highest bit */
#define X8         0x00800000u /* x^8 */

uint32_t tnf_crc32_small(uint32_t crc, const void *bytes, size_t n)
{
    static const uint32_t halves[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ halves[crc & 15];
        crc = crc >> 4 ^ halves[crc & 15];
    }
    return ~crc;
}

uint32_t tnf_crc32(uint32_t crc, const void *bytes, size_t n)
{
#ifdef TENFOLD_ZLIB
    return n ? (uint32_t)crc32_z(crc, bytes, n) : crc;
#else
    return tnf_crc32_small(crc, bytes, n);
#endif
}

/* a times b, modulo the polynomial. */
static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = ONE; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* As if n bytes followed. */
static uint32_t shift(uint32_t crc, uint64_t n)
{
    uint32_t power = ONE;
    for (uint32_t square = X8; n; n >>= 1, square = times(square, square))
        if (n & 1)
            power = times(square, power);
    return times(power, crc);
}

uint32_t tnf_crc32_behind(uint32_t whole, uint32_t front, uint64_t n)
{
    return whole ^ shift(front, n);
}

uint32_t tnf_crc32_join(uint32_t front, uint32_t back, uint64_t n)
{
    return back ^ shift(front, n);
}
