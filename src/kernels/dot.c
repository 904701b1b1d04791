/* SPDX-License-Identifier: MIT */
/* The choice of kernels for this machine, and the portable ones. */
#include "kernels/dot.h"

#include "base/bytes.h"
#include "base/half.h"
#include "kernels/f16c.h"

#include <stdbool.h>
#include <string.h>

static float fold_lanes(float s[TNF_LANES])
{
    for (size_t half = TNF_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            s[i] += s[i + half];
    return s[0];
}

static float dot_one(const float *a, const float *b, size_t d)
{
    float s[TNF_LANES] = { 0 };
    size_t i = 0;
    for (; i + TNF_LANES <= d; i += TNF_LANES)
        for (size_t l = 0; l < TNF_LANES; l++)
            s[l] += a[i + l] * b[i + l];
    for (size_t l = 0; i + l < d; l++)
        s[l] += a[i + l] * b[i + l];
    return fold_lanes(s);
}

static float distance_one(const float *a, const float *b, size_t d)
{
    float s[TNF_LANES] = { 0 };
    size_t i = 0;
    for (; i + TNF_LANES <= d; i += TNF_LANES)
        for (size_t l = 0; l < TNF_LANES; l++)
            s[l] += (a[i + l] - b[i + l]) * (a[i + l] - b[i + l]);
    for (size_t l = 0; i + l < d; l++)
        s[l] += (a[i + l] - b[i + l]) * (a[i + l] - b[i + l]);
    return fold_lanes(s);
}

static void dot_rows(const float *rows, size_t nrows, size_t d, const float *queries, size_t nq,
                     float *scores, size_t stride)
{
    for (size_t q = 0; q < nq; q++)
        for (size_t r = 0; r < nrows; r++)
            scores[q * stride + r] = dot_one(rows + r * d, queries + q * TNF_PADDED(d), d);
}

static void distance_rows(const float *rows, size_t nrows, size_t d, const float *queries,
                          size_t nq, float *scores, size_t stride)
{
    for (size_t q = 0; q < nq; q++)
        for (size_t r = 0; r < nrows; r++)
            scores[q * stride + r] = distance_one(rows + r * d, queries + q * TNF_PADDED(d), d);
}

static void square_rows(const float *rows, size_t nrows, size_t d, float *out)
{
    for (size_t r = 0; r < nrows; r++)
        out[r] = dot_one(rows + r * d, rows + r * d, d);
}

static void dot_squares(const float *rows, size_t nrows, size_t d, const float *query,
                        float *scores, float *out)
{
    dot_rows(rows, nrows, d, query, 1, scores, nrows);
    square_rows(rows, nrows, d, out);
}

static void code_sums(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                      float *out)
{
    for (size_t r = 0; r < nrows; r++) {
        float s[TNF_LANES] = { 0 };
        const uint8_t *row = codes + r * m_count;
        for (size_t m = 0; m < m_count; m++)
            s[m % TNF_LANES] += tables[m * TNF_CODES + row[m]];
        out[r] = fold_lanes(s);
    }
}

static void from_f16(const void *halves, size_t n, float *out)
{
    const uint8_t *p = halves;
    for (size_t i = 0; i < n; i++)
        out[i] = tnf_f16_to_f32(tnf_le16(p + 2 * i));
}

static void from_bf16(const void *halves, size_t n, float *out)
{
    const uint8_t *p = halves;
    for (size_t i = 0; i < n; i++)
        out[i] = tnf_bf16_to_f32(tnf_le16(p + 2 * i));
}

const tnf_kernels tnf_kernels_portable = {
    .name = "portable",
    .dot = dot_rows,
    .distance = distance_rows,
    .squares = square_rows,
    .dot_squares = dot_squares,
    .code_sums = code_sums,
    .from_f16 = from_f16,
    .from_bf16 = from_bf16,
};

/* --------------------------------------------------------------- choosing */

#if defined(__x86_64__)
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && tnf_has_f16c();
}
#endif

const tnf_kernels *tnf_kernels_at(size_t i)
{
    const tnf_kernels *found[5];
    size_t n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (has_avx512() && has_avx2() && __builtin_cpu_supports("avx512vbmi"))
        found[n++] = &tnf_kernels_avx512vbmi;
    if (has_avx512() && has_avx2())
        found[n++] = &tnf_kernels_avx512;
    if (has_avx2())
        found[n++] = &tnf_kernels_avx2;
#elif defined(__aarch64__)
    found[n++] = &tnf_kernels_neon;
#endif
    found[n++] = &tnf_kernels_portable;
    return i < n ? found[i] : NULL;
}

const tnf_kernels *tnf_kernels_named(const char *name)
{
    const tnf_kernels *k;
    for (size_t i = 0; (k = tnf_kernels_at(i)); i++)
        if (!name || strcmp(k->name, name) == 0)
            return k;
    return NULL;
}
