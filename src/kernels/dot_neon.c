/* SPDX-License-Identifier: MIT */
/* Kernels for 64-bit ARM: four registers hold the sixteen partial sums of a pair. */
#include "kernels/dot.h"

#if defined(__aarch64__)
#include "base/half.h"

#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define ROWS   4

enum { DOT, DISTANCE };

typedef struct lanes {
    float32x4_t v[4];
} lanes;

INLINE float fold_sums(lanes s)
{
    float32x4_t low = vaddq_f32(s.v[0], s.v[2]), high = vaddq_f32(s.v[1], s.v[3]);
    float32x4_t four = vaddq_f32(low, high);
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

INLINE lanes zero_lanes(void)
{
    return (lanes) { { vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) } };
}

INLINE lanes load_lanes(const float *p)
{
    return (lanes) { { vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) } };
}

/* n floats, fewer than sixteen, padded with zeros. */
INLINE lanes load_rest(const float *p, size_t n)
{
    float whole[TNF_LANES] = { 0 };
    memcpy(whole, p, n * sizeof *p);
    return load_lanes(whole);
}

INLINE lanes add_step(int what, lanes row, lanes query, lanes sum)
{
    TNF_UNROLL for (int i = 0; i < 4; i++)
    {
        float32x4_t a = row.v[i], b = query.v[i];
        if (what == DISTANCE)
            a = b = vsubq_f32(a, b);
        sum.v[i] = vfmaq_f32(sum.v[i], a, b);
    }
    return sum;
}

/* One query by nr rows; nr is a constant in the callers. */
INLINE void score_tile(int what, const float *rows, int nr, size_t d, const float *query,
                       float *scores)
{
    lanes sums[ROWS];
    TNF_UNROLL for (int r = 0; r < nr; r++) sums[r] = zero_lanes();
    for (size_t i = 0; i < d; i += TNF_LANES) {
        lanes piece = load_lanes(query + i);
        TNF_UNROLL for (int r = 0; r < nr; r++)
        {
            const float *at = rows + (size_t)r * d + i;
            sums[r] = add_step(what, i + TNF_LANES <= d ? load_lanes(at) : load_rest(at, d - i),
                               piece, sums[r]);
        }
    }
    TNF_UNROLL for (int r = 0; r < nr; r++) scores[r] = fold_sums(sums[r]);
}

INLINE void score_pairs(int what, const float *rows, size_t nrows, size_t d, const float *queries,
                        size_t nq, float *scores, size_t stride)
{
    for (size_t q = 0; q < nq; q++) {
        const float *query = queries + q * TNF_PADDED(d);
        size_t r = 0;
        for (; r + ROWS <= nrows; r += ROWS)
            score_tile(what, rows + r * d, ROWS, d, query, scores + q * stride + r);
        for (; r < nrows; r++)
            score_tile(what, rows + r * d, 1, d, query, scores + q * stride + r);
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

static void square_rows(const float *rows, size_t nrows, size_t d, float *out)
{
    for (size_t r = 0; r < nrows; r++) {
        lanes sum = zero_lanes();
        const float *row = rows + r * d;
        for (size_t i = 0; i < d; i += TNF_LANES) {
            lanes piece = i + TNF_LANES <= d ? load_lanes(row + i) : load_rest(row + i, d - i);
            sum = add_step(DOT, piece, piece, sum);
        }
        out[r] = fold_sums(sum);
    }
}

static void dot_squares(const float *rows, size_t nrows, size_t d, const float *query,
                        float *scores, float *out)
{
    for (size_t r = 0; r < nrows; r += ROWS) {
        size_t n = nrows - r < ROWS ? nrows - r : ROWS;
        dot_rows(rows + r * d, n, d, query, 1, scores + r, n);
        square_rows(rows + r * d, n, d, out + r);
    }
}

static void code_sums(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                      float *out)
{
    tnf_kernels_portable.code_sums(codes, nrows, m_count, tables, out);
}

static void from_f16(const void *halves, size_t n, float *out)
{
    const uint8_t *p = halves;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint16_t four[4];
        memcpy(four, p + 2 * i, sizeof four);
        vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(four))));
    }
    tnf_kernels_portable.from_f16(p + 2 * i, n - i, out + i);
}

static void from_bf16(const void *halves, size_t n, float *out)
{
    const uint8_t *p = halves;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint16_t four[4];
        memcpy(four, p + 2 * i, sizeof four);
        vst1q_f32(out + i, vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(four), 16)));
    }
    tnf_kernels_portable.from_bf16(p + 2 * i, n - i, out + i);
}

const tnf_kernels tnf_kernels_neon = {
    .name = "neon",
    .dot = dot_rows,
    .distance = distance_rows,
    .squares = square_rows,
    .dot_squares = dot_squares,
    .code_sums = code_sums,
    .from_f16 = from_f16,
    .from_bf16 = from_bf16,
};
#else
typedef int tnf_no_neon;
#endif
