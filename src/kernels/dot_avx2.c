/* SPDX-License-Identifier: MIT */
/* Kernels for AVX2 with FMA: two registers hold the sixteen partial sums of a pair. A tile of three
 * queries by four rows reads its rows twice, first for the lower eight sums of all pairs and then
 * for the upper. So twelve of the sixteen registers hold sums, and loaded values are used often.
 */
#include "kernels/dot.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define ROWS   4
#define TILE   3  /* queries */
#define HALF   8u /* half of the sums, which fit in a register */

enum { DOT, DISTANCE };

/* Partial sums 0 to 7 and 8 to 15. */
typedef struct lanes {
    __m256 low, high;
} lanes;

INLINE float fold_sums(lanes s)
{
    __m256 eight = _mm256_add_ps(s.low, s.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE lanes load_lanes(const float *p)
{
    return (lanes) { _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

/* n floats, fewer than sixteen, padded with zeros. */
INLINE lanes load_rest(const float *p, size_t n)
{
    static const int32_t masks[2 * TNF_LANES] = { -1, -1, -1, -1, -1, -1, -1, -1,
                                                  -1, -1, -1, -1, -1, -1, -1, -1 };
    const __m256i *mask = (const __m256i *)(const void *)(masks + TNF_LANES - n);
    return (lanes) { _mm256_maskload_ps(p, _mm256_loadu_si256(mask)),
                     _mm256_maskload_ps(p + 8, _mm256_loadu_si256(mask + 1)) };
}

INLINE lanes add_step(lanes row, lanes query, lanes sum)
{
    return (lanes) { _mm256_fmadd_ps(row.low, query.low, sum.low),
                     _mm256_fmadd_ps(row.high, query.high, sum.high) };
}

/* The first n floats, at most eight, padded with zeros. */
INLINE __m256 load_some(const float *p, size_t n)
{
    static const int32_t masks[2 * HALF] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    const __m256i *mask = (const __m256i *)(const void *)(masks + HALF - n);
    return n == HALF ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, _mm256_loadu_si256(mask));
}

/* One step of half a tile, at element i; n elements remain there. */
INLINE void half_step(int what, const float *rows, int nr, size_t d, const float *queries, int nq,
                      size_t i, size_t n, __m256 sums[TILE][ROWS])
{
    __m256 piece[ROWS];
    TNF_UNROLL for (int r = 0; r < nr; r++) piece[r] = load_some(rows + (size_t)r * d + i, n);
    TNF_UNROLL for (int q = 0; q < nq; q++)
    {
        __m256 query = _mm256_load_ps(queries + (size_t)q * TNF_PADDED(d) + i);
        TNF_UNROLL for (int r = 0; r < nr; r++)
        {
            __m256 a = what == DISTANCE ? _mm256_sub_ps(piece[r], query) : piece[r];
            sums[q][r] = _mm256_fmadd_ps(a, what == DISTANCE ? a : query, sums[q][r]);
        }
    }
}

/* The eight partial sums of each pair from element `from` (0 or 8) on. */
INLINE void sum_half(int what, const float *rows, int nr, size_t d, const float *queries, int nq,
                     size_t from, __m256 sums[TILE][ROWS])
{
    size_t i = from;
    TNF_UNROLL for (int q = 0; q < nq; q++) TNF_UNROLL for (int r = 0; r < nr; r++)
        sums[q][r] = _mm256_setzero_ps();
    for (; i + HALF <= d; i += TNF_LANES)
        half_step(what, rows, nr, d, queries, nq, i, HALF, sums);
    if (i < d)
        half_step(what, rows, nr, d, queries, nq, i, d - i, sums);
}

/* The sums of four vectors, by the tree of dot.h:
 *
 *   a0..a7 b0..b7   ->   a4 b4 (sums of halves)   ->   a2 c2 b2 d2   ->   + 1
 */
INLINE __m128 fold_four(__m256 a, __m256 b, __m256 c, __m256 d)
{
    __m256 ab = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20),
                              _mm256_permute2f128_ps(a, b, 0x31));
    __m256 cd = _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20),
                              _mm256_permute2f128_ps(c, d, 0x31));
    __m256d x = _mm256_castps_pd(ab), y = _mm256_castps_pd(cd);
    __m256 two = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)),
                               _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
    two = _mm256_add_ps(two, _mm256_permute_ps(two, 0xb1));
    __m128 ac = _mm256_castps256_ps128(two), bd = _mm256_extractf128_ps(two, 1);
    return _mm_movelh_ps(_mm_unpacklo_ps(ac, bd), _mm_unpackhi_ps(ac, bd));
}

/* nq queries by nr rows, one or four; both are constants in the callers. */
INLINE void score_tile(int what, const float *rows, int nr, size_t d, const float *queries, int nq,
                       float *scores, size_t stride)
{
    __m256 low[TILE][ROWS], high[TILE][ROWS];
    sum_half(what, rows, nr, d, queries, nq, 0, low);
    sum_half(what, rows, nr, d, queries, nq, HALF, high);
    TNF_UNROLL for (int q = 0; q < nq; q++)
    {
        if (nr == 1)
            scores[(size_t)q * stride] = fold_sums((lanes) { low[q][0], high[q][0] });
        else
            _mm_storeu_ps(scores + (size_t)q * stride,
                          fold_four(_mm256_add_ps(low[q][0], high[q][0]),
                                    _mm256_add_ps(low[q][1], high[q][1]),
                                    _mm256_add_ps(low[q][2], high[q][2]),
                                    _mm256_add_ps(low[q][3], high[q][3])));
    }
}

INLINE void score_tiles(int what, const float *rows, size_t nrows, size_t d, const float *queries,
                        int nq, float *scores, size_t stride)
{
    size_t r = 0;
    for (; r + ROWS <= nrows; r += ROWS)
        score_tile(what, rows + r * d, ROWS, d, queries, nq, scores + r, stride);
    for (; r < nrows; r++)
        score_tile(what, rows + r * d, 1, d, queries, nq, scores + r, stride);
}

INLINE void score_pairs(int what, const float *rows, size_t nrows, size_t d, const float *queries,
                        size_t nq, float *scores, size_t stride)
{
    size_t pitch = TNF_PADDED(d), q = 0;
    for (; q + TILE <= nq && nq - q != 4; q += TILE)
        score_tiles(what, rows, nrows, d, queries + q * pitch, TILE, scores + q * stride, stride);
    for (; q + 2 <= nq; q += 2) /* two and two are faster than three and one */
        score_tiles(what, rows, nrows, d, queries + q * pitch, 2, scores + q * stride, stride);
    if (q < nq)
        score_tiles(what, rows, nrows, d, queries + q * pitch, 1, scores + q * stride, stride);
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

static void square_rows(const float *rows, size_t nrows, size_t d, float *out)
{
    for (size_t r = 0; r < nrows; r++) {
        lanes sum = { _mm256_setzero_ps(), _mm256_setzero_ps() };
        const float *row = rows + r * d;
        for (size_t i = 0; i < d; i += TNF_LANES) {
            lanes piece = i + TNF_LANES <= d ? load_lanes(row + i) : load_rest(row + i, d - i);
            sum = add_step(piece, piece, sum);
        }
        out[r] = fold_sums(sum);
    }
}

static void dot_squares(const float *rows, size_t nrows, size_t d, const float *query,
                        float *scores, float *out)
{
    for (size_t r = 0; r < nrows; r++) {
        lanes sum = { _mm256_setzero_ps(), _mm256_setzero_ps() }, square = sum;
        const float *row = rows + r * d;
        for (size_t i = 0; i < d; i += TNF_LANES) {
            lanes piece = i + TNF_LANES <= d ? load_lanes(row + i) : load_rest(row + i, d - i);
            _mm_prefetch((const char *)(row + 4 * d + i), _MM_HINT_T0);
            sum = add_step(piece, load_lanes(query + i), sum);
            square = add_step(piece, piece, square);
        }
        scores[r] = fold_sums(sum);
        out[r] = fold_sums(square);
    }
}

/* ------------------------------------------------------------------ codes */

#define BLOCK 128 /* rows whose partial sums are kept while a few tables go over them */

INLINE __m256 gather_entries(const float *tables, __m128i codes, __m256i places)
{
    return _mm256_i32gather_ps(tables, _mm256_add_epi32(_mm256_cvtepu8_epi32(codes), places), 4);
}

/* Adds the tables of sixteen pieces to the sums of the rows. The tables have 16 KiB together, so
 * they stay in the first-level cache. */
INLINE void add_tables(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                       lanes *sums)
{
    const __m256i places = _mm256_set_epi32(7 * 256, 6 * 256, 5 * 256, 4 * 256, 3 * 256, 2 * 256,
                                            256, 0);
    for (size_t r = 0; r < nrows; r++) {
        __m128i bytes = _mm_loadu_si128((const void *)(codes + r * m_count));
        sums[r].low = _mm256_add_ps(sums[r].low, gather_entries(tables, bytes, places));
        sums[r].high = _mm256_add_ps(
            sums[r].high, gather_entries(tables + 8 * TNF_CODES, _mm_srli_si128(bytes, 8), places));
    }
}

/* The same for the last n pieces, fewer than sixteen. */
static void add_last(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                     size_t n, lanes *sums)
{
    for (size_t r = 0; r < nrows; r++) {
        float found[TNF_LANES] = { 0 };
        for (size_t m = 0; m < n; m++)
            found[m] = tables[m * TNF_CODES + codes[r * m_count + m]];
        lanes more = load_lanes(found);
        sums[r].low = _mm256_add_ps(sums[r].low, more.low);
        sums[r].high = _mm256_add_ps(sums[r].high, more.high);
    }
}

static void code_sums(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                      float *out)
{
    lanes sums[BLOCK];
    for (size_t from = 0; from < nrows; from += BLOCK) {
        size_t n = nrows - from < BLOCK ? nrows - from : BLOCK, m = 0;
        const uint8_t *block = codes + from * m_count;
        for (size_t r = 0; r < n; r++)
            sums[r] = (lanes) { _mm256_setzero_ps(), _mm256_setzero_ps() };
        for (; m + TNF_LANES <= m_count; m += TNF_LANES)
            add_tables(block + m, n, m_count, tables + m * TNF_CODES, sums);
        if (m < m_count)
            add_last(block + m, n, m_count, tables + m * TNF_CODES, m_count - m, sums);
        for (size_t r = 0; r < n; r++)
            out[from + r] = fold_sums(sums[r]);
    }
}

/* ----------------------------------------------------------------- halves */

/* n halves, fewer than eight, padded with zeros. */
INLINE __m128i rest_of(const uint8_t *halves, size_t n)
{
    uint16_t whole[8] = { 0 };
    memcpy(whole, halves, n * sizeof *whole);
    return _mm_loadu_si128((const void *)whole);
}

INLINE __m256 from_eight(int bf16, __m128i halves)
{
    return bf16 ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))
                : _mm256_cvtph_ps(halves);
}

INLINE void from_halves(int bf16, const uint8_t *halves, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i,
                         from_eight(bf16, _mm_loadu_si128((const void *)(halves + 2 * i))));
    if (i < n) {
        float last[8];
        _mm256_storeu_ps(last, from_eight(bf16, rest_of(halves + 2 * i, n - i)));
        memcpy(out + i, last, (n - i) * sizeof *out);
    }
}

static void from_f16(const void *halves, size_t n, float *out)
{
    from_halves(0, halves, n, out);
}

static void from_bf16(const void *halves, size_t n, float *out)
{
    from_halves(1, halves, n, out);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const tnf_kernels tnf_kernels_avx2 = {
    .name = "avx2",
    .dot = dot_rows,
    .distance = distance_rows,
    .squares = square_rows,
    .dot_squares = dot_squares,
    .code_sums = code_sums,
    .from_f16 = from_f16,
    .from_bf16 = from_bf16,
};
#else
typedef int tnf_no_avx2;
#endif
