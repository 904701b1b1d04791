/* SPDX-License-Identifier: MIT */
/* Kernels for AVX-512 (F, BW, DQ, VL): one register holds the sixteen partial sums of a pair.
 *
 * A tile is some queries by four rows. With six queries, 24 sums and the four pieces of rows that
 * they share stay in the 32 registers, so each loaded piece is used six times.
 */
#include "kernels/dot.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))),        \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define ROWS   4
#define TILE   6 /* queries */

enum { DOT, DISTANCE };

/* The sums of four vectors, by the tree of dot.h; lane 4 i of the result is that of vector i.
 *
 *   a0..a15 b0..b15   ->   a8 b8 (sums of halves)   ->   a4 b4 c4 d4   ->   + 2   ->   + 1
 */
INLINE __m128 fold_four(__m512 a, __m512 b, __m512 c, __m512 d)
{
    __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    __m512 all = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88),
                               _mm512_shuffle_f32x4(ab, cd, 0xdd));
    all = _mm512_add_ps(all, _mm512_permute_ps(all, 0x4e));
    all = _mm512_add_ps(all, _mm512_permute_ps(all, 0xb1));
    return _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, all));
}

INLINE __m512 add_step(int what, __m512 row, __m512 query, __m512 sum)
{
    if (what == DOT)
        return _mm512_fmadd_ps(row, query, sum);
    __m512 difference = _mm512_sub_ps(row, query);
    return _mm512_fmadd_ps(difference, difference, sum);
}

/* Sixteen elements of a row from i on, padded with zeros after the last. */
INLINE __m512 load_row(const float *row, size_t i, size_t d)
{
    if (i + TNF_LANES <= d)
        return _mm512_loadu_ps(row + i);
    return _mm512_maskz_loadu_ps((__mmask16)((1u << (d - i)) - 1), row + i);
}

/* One step of a tile. A single query is limited by memory, so the next rows are prefetched. */
INLINE void tile_step(int what, const float *rows, size_t i, size_t d, const float *queries, int nq,
                      __m512 sums[TILE][ROWS], __m512 *squares)
{
    __m512 piece[ROWS];
    TNF_UNROLL for (int r = 0; r < ROWS; r++)
    {
        piece[r] = load_row(rows + (size_t)r * d, i, d);
        if (nq == 1)
            _mm_prefetch((const char *)(rows + ((size_t)r + ROWS) * d + i), _MM_HINT_T0);
        if (squares)
            squares[r] = _mm512_fmadd_ps(piece[r], piece[r], squares[r]);
    }
    TNF_UNROLL for (int q = 0; q < nq; q++)
    {
        __m512 query = _mm512_load_ps(queries + (size_t)q * TNF_PADDED(d) + i);
        TNF_UNROLL for (int r = 0; r < ROWS; r++)
            sums[q][r] = add_step(what, piece[r], query, sums[q][r]);
    }
}

/* nq queries by ROWS rows, and the rows' sums of squares if `out` is not NULL. Both nq and whether
 * `out` is NULL are constants in the callers. */
INLINE void score_tile(int what, const float *rows, size_t d, const float *queries, int nq,
                       float *scores, size_t stride, float *out)
{
    size_t i = 0;
    __m512 sums[TILE][ROWS], squares[ROWS];
    TNF_UNROLL for (int r = 0; r < ROWS; r++)
    {
        squares[r] = _mm512_setzero_ps();
        TNF_UNROLL for (int q = 0; q < nq; q++) sums[q][r] = _mm512_setzero_ps();
    }
    for (; i + TNF_LANES <= d; i += TNF_LANES)
        tile_step(what, rows, i, d, queries, nq, sums, out ? squares : NULL);
    if (i < d)
        tile_step(what, rows, i, d, queries, nq, sums, out ? squares : NULL);
    TNF_UNROLL for (int q = 0; q < nq; q++) _mm_storeu_ps(
        scores + (size_t)q * stride, fold_four(sums[q][0], sums[q][1], sums[q][2], sums[q][3]));
    if (out)
        _mm_storeu_ps(out, fold_four(squares[0], squares[1], squares[2], squares[3]));
}

/* The same for a single remaining row. */
INLINE float score_pair(int what, const float *row, size_t d, const float *query)
{
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < d; i += TNF_LANES)
        sum = add_step(what, load_row(row, i, d), _mm512_load_ps(query + i), sum);
    return _mm_cvtss_f32(fold_four(sum, sum, sum, sum));
}

INLINE void score_pairs(int what, const float *rows, size_t nrows, size_t d, const float *queries,
                        size_t nq, float *scores, size_t stride)
{
    size_t pitch = TNF_PADDED(d), q = 0;
    for (; q < nq; q += TILE) {
        const float *some = queries + q * pitch;
        float *to = scores + q * stride;
        size_t left = nq - q, r = 0;
        for (; r + ROWS <= nrows; r += ROWS) {
            const float *four = rows + r * d;
            if (left >= 6)
                score_tile(what, four, d, some, 6, to + r, stride, NULL);
            else if (left == 5)
                score_tile(what, four, d, some, 5, to + r, stride, NULL);
            else if (left == 4)
                score_tile(what, four, d, some, 4, to + r, stride, NULL);
            else if (left == 3)
                score_tile(what, four, d, some, 3, to + r, stride, NULL);
            else if (left == 2)
                score_tile(what, four, d, some, 2, to + r, stride, NULL);
            else
                score_tile(what, four, d, some, 1, to + r, stride, NULL);
        }
        for (; r < nrows; r++)
            for (size_t k = 0; k < left && k < TILE; k++)
                to[k * stride + r] = score_pair(what, rows + r * d, d, some + k * pitch);
    }
}

static void dot_rows(const float *rows, size_t nrows, size_t d, const float *queries, size_t nq,
                     float *scores, size_t stride)
{
    score_pairs(DOT, rows, nrows, d, queries, nq, scores, stride);
}

static void distance_rows(const float *rows, size_t nrows, size_t d, const float *queries,
                          size_t nq, float *scores, size_t stride)
{
    score_pairs(DISTANCE, rows, nrows, d, queries, nq, scores, stride);
}

INLINE __m512 square_sums(const float *row, size_t d)
{
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < d; i += TNF_LANES) {
        __m512 piece = load_row(row, i, d);
        sum = _mm512_fmadd_ps(piece, piece, sum);
    }
    return sum;
}

static void square_rows(const float *rows, size_t nrows, size_t d, float *out)
{
    size_t r = 0;
    for (; r + ROWS <= nrows; r += ROWS) {
        const float *four = rows + r * d;
        _mm_storeu_ps(out + r,
                      fold_four(square_sums(four, d), square_sums(four + d, d),
                                square_sums(four + 2 * d, d), square_sums(four + 3 * d, d)));
    }
    for (; r < nrows; r++) {
        __m512 sum = square_sums(rows + r * d, d);
        out[r] = _mm_cvtss_f32(fold_four(sum, sum, sum, sum));
    }
}

static void dot_squares(const float *rows, size_t nrows, size_t d, const float *query,
                        float *scores, float *out)
{
    size_t r = 0;
    for (; r + ROWS <= nrows; r += ROWS)
        score_tile(DOT, rows + r * d, d, query, 1, scores + r, nrows, out + r);
    for (; r < nrows; r++)
        scores[r] = score_pair(DOT, rows + r * d, d, query);
    r = nrows - nrows % ROWS;
    square_rows(rows + r * d, nrows - r, d, out + r);
}

/* ---------------------------------------------------------------- codes */

#define BLOCK 128 /* rows whose partial sums are kept while a few tables go over them */

/* Adds the tables of sixteen pieces (or of those that `some` selects) to the sums of the rows. The
 * tables have 16 KiB together, so they stay in the first-level cache. */
INLINE void add_tables(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                       __mmask16 some, __m512 *sums)
{
    const __m512i places = _mm512_mullo_epi32(
        _mm512_set1_epi32(TNF_CODES),
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    for (size_t r = 0; r < nrows; r++) {
        __m128i bytes = _mm_maskz_loadu_epi8(some, codes + r * m_count);
        __m512i at = _mm512_add_epi32(_mm512_cvtepu8_epi32(bytes), places);
        __m512 found = some == 0xffff
                           ? _mm512_i32gather_ps(at, tables, 4)
                           : _mm512_mask_i32gather_ps(_mm512_setzero_ps(), some, at, tables, 4);
        sums[r] = _mm512_add_ps(sums[r], found);
    }
}

static void code_sums(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                      float *out)
{
    __m512 sums[BLOCK + ROWS];
    for (size_t from = 0; from < nrows; from += BLOCK) {
        size_t n = nrows - from < BLOCK ? nrows - from : BLOCK, m = 0;
        const uint8_t *block = codes + from * m_count;
        for (size_t r = 0; r < n + ROWS; r++)
            sums[r] = _mm512_setzero_ps();
        for (; m + TNF_LANES <= m_count; m += TNF_LANES)
            add_tables(block + m, n, m_count, tables + m * TNF_CODES, 0xffff, sums);
        if (m < m_count)
            add_tables(block + m, n, m_count, tables + m * TNF_CODES,
                       (__mmask16)((1u << (m_count - m)) - 1), sums);
        for (size_t r = 0; r < n; r += ROWS) {
            float four[ROWS];
            _mm_storeu_ps(four, fold_four(sums[r], sums[r + 1], sums[r + 2], sums[r + 3]));
            for (size_t k = 0; k < ROWS && r + k < n; k++)
                out[from + r + k] = four[k];
        }
    }
}

/* --------------------------------------------------------------- halves */

static void from_f16(const void *halves, size_t n, float *out)
{
    const uint16_t *p = halves;
    size_t i = 0;
    for (; i + TNF_LANES <= n; i += TNF_LANES)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p + i))));
    if (i < n) {
        __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
        _mm512_mask_storeu_ps(out + i, rest,
                              _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(rest, p + i)));
    }
}

INLINE __m512 widen_halves(__m256i halves)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

static void from_bf16(const void *halves, size_t n, float *out)
{
    const uint16_t *p = halves;
    size_t i = 0;
    for (; i + TNF_LANES <= n; i += TNF_LANES)
        _mm512_storeu_ps(out + i, widen_halves(_mm256_loadu_si256((const void *)(p + i))));
    if (i < n) {
        __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
        _mm512_mask_storeu_ps(out + i, rest, widen_halves(_mm256_maskz_loadu_epi16(rest, p + i)));
    }
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#define COMMON                                                                                     \
    .dot = dot_rows, .distance = distance_rows, .squares = square_rows,                            \
    .dot_squares = dot_squares, .code_sums = code_sums, .from_f16 = from_f16,                      \
    .from_bf16 = from_bf16

const tnf_kernels tnf_kernels_avx512 = { .name = "avx512", COMMON };
const tnf_kernels tnf_kernels_avx512vbmi = { .name = "avx512vbmi",
                                             COMMON,
                                             .byte_sums = tnf_byte_sums_vbmi };
#else
typedef int tnf_no_avx512;
#endif
