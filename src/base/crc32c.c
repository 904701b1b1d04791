/* SPDX-License-Identifier: MIT */
/* CRC-32C: polynomial 0x1EDC6F41, reflected (0x82F63B78), ones before and after.
 *
 * x86-64 has an instruction for it since SSE4.2, which is detected at run time. The few CPUs
 * without it work by half bytes, so that a program for x86-64 does not carry the tables of the
 * others. All other machines take eight bytes at once through eight tables ("slicing").
 */
#include "base/crc32c.h"

#include "base/bytes.h"
#include "base/crc_table.h"
#include "base/prefetch.h"

static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
          0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
          0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
          0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
          0x34019664),
};

uint32_t tnf_crc32c_portable(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    crc = ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t low = tnf_le32(p) ^ crc, high = tnf_le32(p + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; n > 0; p++, n--)
        crc = tables[0][(crc ^ *p) & 0xff] ^ crc >> 8;
    return ~crc;
}

/* One table entry per half byte: every sixteenth one of the first table. */
uint32_t tnf_crc32c_small(uint32_t crc, const void *bytes, size_t n)
{
    static const uint32_t halves[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    crc = ~crc;
    for (const uint8_t *p = bytes; n > 0; p++, n--) {
        crc ^= *p;
        crc = halves[crc & 15] ^ crc >> 4;
        crc = halves[crc & 15] ^ crc >> 4;
    }
    return ~crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include "base/cpuid.h"
#include <immintrin.h>

#define LANE 2048u /* bytes of each of three parallel sums */

__attribute__((target("sse4.2"))) static uint64_t by_instruction(uint64_t sum, const uint8_t *p,
                                                                 size_t n)
{
    for (; n >= 8; p += 8, n -= 8)
        sum = _mm_crc32_u64(sum, tnf_le64(p));
    for (; n > 0; p++, n--)
        sum = _mm_crc32_u8((uint32_t)sum, *p);
    return sum;
}

/* The sum after a run of zeros: its product with x^(8 * zeros). The exponent of `power` is 33 less:
 * a product of reflected numbers lacks one bit, and the instruction adds 32. */
__attribute__((target("sse4.2,pclmul"))) static uint64_t after_zeros(uint64_t sum, uint32_t power)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum),
                                           _mm_cvtsi32_si128((int)power), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* The instruction takes three cycles, but one can begin in each cycle: three sums in parallel.
 *
 *   [ first  ][ second ][ third  ]    first after 2 * LANE zeros ^ second after LANE zeros ^ third
 */
__attribute__((target("sse4.2,pclmul"))) static uint64_t by_three(uint64_t sum, const uint8_t *p,
                                                                  size_t n)
{
    const uint32_t after_one = 0xa51b6135,
                   after_two = 0x82f89c77; /* x^(8 * LANE - 33), x^(16 * LANE - 33) */
    for (; n >= 3 * LANE; p += 3 * LANE, n -= 3 * LANE) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < LANE; i += 8) {
            if (i % 64 == 0) {
                __builtin_prefetch(p + TNF_PREFETCH + i, 0, 2);
                __builtin_prefetch(p + TNF_PREFETCH + LANE + i, 0, 2);
                __builtin_prefetch(p + TNF_PREFETCH + 2 * LANE + i, 0, 2);
            }
            sum = _mm_crc32_u64(sum, tnf_le64(p + i));
            second = _mm_crc32_u64(second, tnf_le64(p + LANE + i));
            third = _mm_crc32_u64(third, tnf_le64(p + 2 * LANE + i));
        }
        sum = after_zeros(sum, after_two) ^ after_zeros(second, after_one) ^ third;
    }
    return by_instruction(sum, p, n);
}

uint32_t tnf_crc32c(uint32_t crc, const void *bytes, size_t n)
{
    unsigned features = tnf_cpu_features();
    if (!(features & bit_SSE4_2))
        return tnf_crc32c_small(crc, bytes, n);
    uint64_t sum = (uint32_t)~crc;
    return ~(uint32_t)(features & bit_PCLMUL ? by_three(sum, bytes, n)
                                             : by_instruction(sum, bytes, n));
}
#else
uint32_t tnf_crc32c(uint32_t crc, const void *bytes, size_t n)
{
    return tnf_crc32c_portable(crc, bytes, n);
}
#endif
