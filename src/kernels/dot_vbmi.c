/* SPDX-License-Identifier: MIT */
/* Sums of table entries of one byte, for AVX-512 with VBMI: a table of 256 bytes fits in four
 * registers, and two permutations look up 64 codes at once.
 *
 *   codes   row 0   c00 c01 c02 …        64 rows by 16 pieces are transposed, so that a
 *           row 1   c10 c11 c12 …        register has the codes of one piece for 64 rows
 *           …
 */
#include "kernels/dot.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")
#endif
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define ROWS   64u
#define PIECES 16u

/* Rows i, i + 16, i + 32 and i + 48, sixteen pieces each. Masked broadcast loads need no shuffle;
 * shuffles are the bottleneck later. */
INLINE __m512i load_four(const uint8_t *codes, size_t i, size_t stride)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(codes + i * stride)));
    for (unsigned k = 1; k < 4; k++)
        v = _mm512_mask_broadcast_i32x4(
            v, (__mmask16)(0xfu << 4 * k),
            _mm_loadu_si128((const void *)(codes + (i + (size_t)16 * k) * stride)));
    return v;
}

/* The same for the last pieces of a row: bytes after them are not read. */
INLINE __m512i load_some(const uint8_t *codes, size_t i, size_t stride, __mmask16 some)
{
    __m512i v = _mm512_setzero_si512();
    TNF_UNROLL for (unsigned k = 0; k < 4; k++) v = _mm512_mask_broadcast_i32x4(
        v, (__mmask16)(0xfu << 4 * k),
        _mm_maskz_loadu_epi8(some, codes + (i + (size_t)16 * k) * stride));
    return v;
}

/* Transposes sixteen registers of 4 x 16 bytes, each 16 x 16 block separately. */
INLINE void transpose_tile(__m512i v[PIECES])
{
    __m512i a[PIECES], b[PIECES];
    TNF_UNROLL for (int i = 0; i < 8; i++)
    {
        a[2 * i] = _mm512_unpacklo_epi8(v[i], v[i + 8]);
        a[2 * i + 1] = _mm512_unpackhi_epi8(v[i], v[i + 8]);
    }
    TNF_UNROLL for (int i = 0; i < 8; i++)
    {
        b[2 * i] = _mm512_unpacklo_epi8(a[i], a[i + 8]);
        b[2 * i + 1] = _mm512_unpackhi_epi8(a[i], a[i + 8]);
    }
    TNF_UNROLL for (int i = 0; i < 8; i++)
    {
        a[2 * i] = _mm512_unpacklo_epi8(b[i], b[i + 8]);
        a[2 * i + 1] = _mm512_unpackhi_epi8(b[i], b[i + 8]);
    }
    TNF_UNROLL for (int i = 0; i < 8; i++)
    {
        v[2 * i] = _mm512_unpacklo_epi8(a[i], a[i + 8]);
        v[2 * i + 1] = _mm512_unpackhi_epi8(a[i], a[i + 8]);
    }
}

/* The entries of 64 codes in a table of 256 bytes. */
INLINE __m512i look_up(__m512i codes, const uint8_t *table)
{
    __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes,
                                           _mm512_loadu_si512(table + 64));
    __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), codes,
                                            _mm512_loadu_si512(table + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), low, high);
}

/* Adds the entries of sixteen pieces of 64 rows to the sums of the even rows and of the odd ones,
 * 16 bits each. */
INLINE void add_sixteen(const uint8_t *codes, size_t m_count, const uint8_t *tables,
                        __m512i sums[2])
{
    const __m512i low_bytes = _mm512_set1_epi16(0xff);
    __m512i v[PIECES];
    TNF_UNROLL for (size_t i = 0; i < PIECES; i++) v[i] = load_four(codes, i, m_count);
    transpose_tile(v);
    TNF_UNROLL for (size_t i = 0; i < PIECES; i++)
    {
        __m512i found = look_up(v[i], tables + i * TNF_CODES);
        sums[0] = _mm512_add_epi16(sums[0], _mm512_and_si512(found, low_bytes));
        sums[1] = _mm512_add_epi16(sums[1], _mm512_srli_epi16(found, 8));
    }
}

/* The same for the last n pieces. */
INLINE void add_last(const uint8_t *codes, size_t m_count, size_t n, const uint8_t *tables,
                     __m512i sums[2])
{
    const __m512i low_bytes = _mm512_set1_epi16(0xff);
    __m512i v[PIECES];
    for (size_t i = 0; i < PIECES; i++)
        v[i] = load_some(codes, i, m_count, (__mmask16)((1u << n) - 1));
    transpose_tile(v);
    for (size_t i = 0; i < n; i++) {
        __m512i found = look_up(v[i], tables + i * TNF_CODES);
        sums[0] = _mm512_add_epi16(sums[0], _mm512_and_si512(found, low_bytes));
        sums[1] = _mm512_add_epi16(sums[1], _mm512_srli_epi16(found, 8));
    }
}

/* Restores the order of the rows. */
INLINE void store_sums(const __m512i sums[2], uint16_t *out)
{
    __m512i low = _mm512_unpacklo_epi16(sums[0], sums[1]);
    __m512i high = _mm512_unpackhi_epi16(sums[0], sums[1]);
    for (int lane = 0; lane < 4; lane++) {
        __m512i index = _mm512_setr_epi64(2 * lane, 2 * lane + 1, 8 + 2 * lane, 9 + 2 * lane, 0, 0,
                                          0, 0);
        _mm256_storeu_si256((void *)(out + 16 * lane),
                            _mm512_castsi512_si256(_mm512_permutex2var_epi64(low, index, high)));
    }
}

static void sum_64_rows(const uint8_t *codes, size_t m_count, const uint8_t *tables, uint16_t *out)
{
    __m512i sums[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    size_t m = 0;
    for (; m + PIECES <= m_count; m += PIECES) {
        for (size_t i = 0; i < PIECES; i++) /* prefetches the same part of the next rows */
            _mm_prefetch((const char *)codes + ROWS * (m_count + m + i), _MM_HINT_T0);
        add_sixteen(codes + m, m_count, tables + m * TNF_CODES, sums);
    }
    if (m < m_count)
        add_last(codes + m, m_count, m_count - m, tables + m * TNF_CODES, sums);
    store_sums(sums, out);
}

void tnf_byte_sums_vbmi(const uint8_t *codes, size_t nrows, size_t m_count, const uint8_t *tables,
                        uint16_t *out)
{
    size_t r = 0;
    for (; r + ROWS <= nrows; r += ROWS)
        sum_64_rows(codes + r * m_count, m_count, tables, out + r);
    for (; r < nrows; r++) {
        unsigned sum = 0;
        for (size_t m = 0; m < m_count; m++)
            sum += tables[m * TNF_CODES + codes[r * m_count + m]];
        out[r] = (uint16_t)sum;
    }
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int tnf_no_vbmi;
#endif
