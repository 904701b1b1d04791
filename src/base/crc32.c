/* SPDX-License-Identifier: MIT */
/* CRC-32, reflected, polynomial 0xedb88320, ones before and after. A CRC is the remainder of a
 * polynomial: n bytes that follow others multiply the remainder of those by x^(8n). So CRCs can be
 * joined and split without the bytes.
 *
 * The same rule makes it fast. On x86-64 with PCLMULQDQ, which is detected at run time, the loop
 * carries four blocks of 16 bytes. It multiplies each to the position of the next 64 bytes and adds
 * it to them, which keeps the remainder:
 *
 *   bytes   [ a ][ b ][ c ][ d ]│[ a'][ b'][ c'][ d']│…
 *             └── times x^512 ──────^
 *
 * At the end 16 bytes with the same CRC remain, and a few more. ARMv8 has an instruction for this
 * polynomial, which is used if the compiler targets it. All other CPUs take 16 bytes at once
 * through 16 tables ("slicing").
 */
#include "base/crc32.h"

#include "base/bytes.h"
#include "base/crc_table.h"
#include "base/prefetch.h"

#include <stdbool.h>

#define POLYNOMIAL 0xedb88320u
#define ONE        0x80000000u /* x^0: the lowest power is the highest bit */

/* ------------------------------------------------------------------ tables */

static const uint32_t tables[16][256] = {
    TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190,
          0xedb88320),
    TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05,
          0x3b83984b),
    TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0,
          0xe1351b80),
    TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d,
          0xed59b63b),
    TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849,
          0xb1e6b092),
    TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c,
          0x1eb014d8),
    TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579,
          0x8816eaf2),
    TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed,
          0x533b85da),
    TABLE(0x177b1443, 0x2ef62886, 0x5dec510c, 0xbbd8a218, 0xacc04271, 0x82f182a3, 0xde920307,
          0x6655004f),
    TABLE(0xefc26b3e, 0x04f5d03d, 0x09eba07a, 0x13d740f4, 0x27ae81e8, 0x4f5d03d0, 0x9eba07a0,
          0xe6050901),
    TABLE(0xc18edfc0, 0x586cb9c1, 0xb0d97382, 0xbac3e145, 0xaef6c4cb, 0x869c8fd7, 0xd64819ef,
          0x77e1359f),
    TABLE(0x9ba54c6f, 0xec3b9e9f, 0x03063b7f, 0x060c76fe, 0x0c18edfc, 0x1831dbf8, 0x3063b7f0,
          0x60c76fe0),
    TABLE(0xdd96d985, 0x605cb54b, 0xc0b96a96, 0x5a03d36d, 0xb407a6da, 0xb37e4bf5, 0xbd8d91ab,
          0xa06a2517),
    TABLE(0x9d0fe176, 0xe16ec4ad, 0x19ac8f1b, 0x33591e36, 0x66b23c6c, 0xcd6478d8, 0x41b9f7f1,
          0x8373efe2),
    TABLE(0xb9fbdbe8, 0xa886b191, 0x8a7c6563, 0xcf89cc87, 0x44629f4f, 0x88c53e9e, 0xcafb7b7d,
          0x4e87f0bb),
    TABLE(0xae689191, 0x87a02563, 0xd4314c87, 0x73139f4f, 0xe6273e9e, 0x173f7b7d, 0x2e7ef6fa,
          0x5cfdedf4),
};

static inline uint32_t fold_word(uint32_t v, size_t behind)
{
    return tables[behind + 3][v & 0xff] ^ tables[behind + 2][v >> 8 & 0xff] ^
           tables[behind + 1][v >> 16 & 0xff] ^ tables[behind][v >> 24];
}

/* Without the ones before and after. */
static uint32_t by_tables(uint32_t sum, const uint8_t *p, size_t n)
{
    for (; n >= 16; p += 16, n -= 16)
        sum = fold_word(tnf_le32(p) ^ sum, 12) ^ fold_word(tnf_le32(p + 4), 8) ^
              fold_word(tnf_le32(p + 8), 4) ^ fold_word(tnf_le32(p + 12), 0);
    for (; n > 0; p++, n--)
        sum = tables[0][(sum ^ *p) & 0xff] ^ sum >> 8;
    return sum;
}

uint32_t tnf_crc32_portable(uint32_t crc, const void *bytes, size_t n)
{
    return ~by_tables(~crc, bytes, n);
}

/* ------------------------------------------------------------ instructions */

#if defined(__x86_64__) && defined(__GNUC__)
#include "base/cpuid.h"
#include <immintrin.h>

#define BLOCK 16u
#define FOLD  __attribute__((target("sse2,pclmul"))) static inline

FOLD __m128i load_block(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Moves `sum` ahead by the distance that `powers` gives, and adds it to the bytes there. Each half
 * is multiplied by its own power; the products have less than 128 bits. */
FOLD __m128i fold_ahead(__m128i sum, __m128i there, __m128i powers)
{
    __m128i low = _mm_clmulepi64_si128(sum, powers, 0x00),
            high = _mm_clmulepi64_si128(sum, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

/* n is at least 64. Powers are x^(bits + 32) for the lower half, which comes first in the bytes,
 * and x^(bits - 32) for the upper one, modulo the polynomial and reflected. They are shifted up by
 * one bit, since a product of reflected numbers lacks one. */
__attribute__((target("sse2,pclmul"))) static uint32_t by_folding(uint32_t sum, const uint8_t *p,
                                                                  size_t n)
{
    const __m128i by_512_bits = _mm_set_epi64x(0x1c6e41596, 0x154442bd4),
                  by_128_bits = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    uint8_t last[BLOCK];
    __m128i a = _mm_xor_si128(load_block(p), _mm_cvtsi32_si128((int)sum)),
            b = load_block(p + BLOCK), c = load_block(p + 2 * BLOCK), d = load_block(p + 3 * BLOCK);
    const uint8_t *start = p;
    for (p += 4 * BLOCK, n -= 4 * BLOCK; n >= 4 * BLOCK; p += 4 * BLOCK, n -= 4 * BLOCK) {
        TNF_PREFETCH_OF(start, (size_t)(p - start));
        a = fold_ahead(a, load_block(p), by_512_bits);
        b = fold_ahead(b, load_block(p + BLOCK), by_512_bits);
        c = fold_ahead(c, load_block(p + 2 * BLOCK), by_512_bits);
        d = fold_ahead(d, load_block(p + 3 * BLOCK), by_512_bits);
    }
    a = fold_ahead(fold_ahead(fold_ahead(a, b, by_128_bits), c, by_128_bits), d, by_128_bits);
    for (; n >= BLOCK; p += BLOCK, n -= BLOCK)
        a = fold_ahead(a, load_block(p), by_128_bits);
    _mm_storeu_si128((__m128i *)(void *)last, a);
    return by_tables(by_tables(0, last, sizeof last), p, n);
}

uint32_t tnf_crc32(uint32_t crc, const void *bytes, size_t n)
{
    return n >= 4 * BLOCK && (tnf_cpu_features() & bit_PCLMUL) ? ~by_folding(~crc, bytes, n)
                                                               : tnf_crc32_portable(crc, bytes, n);
}
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

#define LANE 2048u /* bytes of each of three parallel sums, which hide the latency */

static uint32_t multiply_mod(uint32_t a, uint32_t b);

static uint32_t by_instruction(uint32_t sum, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8)
        sum = __crc32d(sum, tnf_le64(p));
    for (; n > 0; p++, n--)
        sum = __crc32b(sum, *p);
    return sum;
}

uint32_t tnf_crc32(uint32_t crc, const void *bytes, size_t n)
{
    const uint32_t after_one = 0x4d47bae0, after_two = 0x09fe548f; /* x^(8 * LANE), x^(16 * LANE) */
    const uint8_t *p = bytes;
    uint32_t sum = ~crc;
    for (; n >= 3 * LANE; p += 3 * LANE, n -= 3 * LANE) {
        uint32_t second = 0, third = 0;
        for (size_t i = 0; i < LANE; i += 8) {
            sum = __crc32d(sum, tnf_le64(p + i));
            second = __crc32d(second, tnf_le64(p + LANE + i));
            third = __crc32d(third, tnf_le64(p + 2 * LANE + i));
        }
        sum = multiply_mod(after_two, sum) ^ multiply_mod(after_one, second) ^ third;
    }
    return ~by_instruction(sum, p, n);
}
#else
uint32_t tnf_crc32(uint32_t crc, const void *bytes, size_t n)
{
    return tnf_crc32_portable(crc, bytes, n);
}
#endif

/* ------------------------------------------------------- join and split */

/* a times b, modulo the polynomial. */
static uint32_t multiply_mod(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = ONE; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* x^8, its square, the square of that, and so on; the 32nd would be x^8 again. */
static const uint32_t squares[32] = {
    0x00800000, 0x00008000, 0xedb88320, 0xb1e6b092, 0xa06a2517, 0xed627dae, 0x88d14467, 0xd7bbfe6a,
    0xec447f11, 0x8e7ea170, 0x6427800e, 0x4d47bae0, 0x09fe548f, 0x83852d0f, 0x30362f1a, 0x7b5a9cc3,
    0x31fec169, 0x9fec022a, 0x6c8dedc4, 0x15d6874d, 0x5fde7a4e, 0xbad90e37, 0x2e4e5eef, 0x4eaba214,
    0xa8a472c0, 0x429a969e, 0x148d302a, 0xc40ba6d0, 0xc4e22c3c, 0x40000000, 0x20000000, 0x08000000,
};

/* The contribution of a CRC to the CRC of its bytes and n more. */
static uint32_t shift_crc(uint32_t crc, uint64_t n)
{
    for (unsigned i = 0; n; n >>= 1, i++)
        if (n & 1)
            crc = multiply_mod(squares[i % 32], crc);
    return crc;
}

uint32_t tnf_crc32_behind(uint32_t whole, uint32_t front, uint64_t n)
{
    return whole ^ shift_crc(front, n);
}

uint32_t tnf_crc32_join(uint32_t front, uint32_t back, uint64_t n)
{
    return back ^ shift_crc(front, n);
}
