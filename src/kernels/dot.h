/* SPDX-License-Identifier: MIT */
/* The inner loops of queries, for several instruction sets, one of which is chosen at run time.
 *
 * Sums of products are computed in the same way everywhere: sixteen partial sums, where element i
 * goes to sum i % 16, are halved pairwise (s[i] += s[i + 8], + 4, + 2, + 1). So a score depends
 * neither on the number of queries that share a pass nor on the number of threads. All kernels that
 * fuse multiplication and addition give the same bits; the portable one rounds twice and differs by
 * a few ulps.
 */
#ifndef TNF_KERNELS_DOT_H
#define TNF_KERNELS_DOT_H

#include <stddef.h>
#include <stdint.h>

#define TNF_LANES     16u
/* Queries are stored in rows of this many floats, the last ones 0, aligned to 64 bytes. */
#define TNF_PADDED(d) (((d) + (TNF_LANES - 1)) & ~(size_t)(TNF_LANES - 1))
/* A table of a quantized scan has an entry for every code that fits in a byte. */
#define TNF_CODES     256u

/* rows: nrows x d floats, of any alignment; queries: nq x TNF_PADDED(d) floats.
 * scores[q * stride + r] is the result for query q and row r. */
typedef void tnf_pair_kernel(const float *rows, size_t nrows, size_t d, const float *queries,
                             size_t nq, float *scores, size_t stride);

typedef struct tnf_kernels {
    const char *name;
    tnf_pair_kernel *dot;      /* sums of products */
    tnf_pair_kernel *distance; /* sums of squared differences */
    /* out[r] is the sum of squares of row r. */
    void (*squares)(const float *rows, size_t nrows, size_t d, float *out);
    /* Both at once for a single query, which is limited by memory: each row is loaded once. */
    void (*dot_squares)(const float *rows, size_t nrows, size_t d, const float *query,
                        float *scores, float *out);
    /* out[r] is the sum over m of tables[m * 256 + codes[r * m_count + m]]; element m of row r goes
     * to partial sum m % 16. */
    void (*code_sums)(const uint8_t *codes, size_t nrows, size_t m_count, const float *tables,
                      float *out);
    /* The same with tables of bytes, for at most 256 pieces; NULL if that is not faster. */
    void (*byte_sums)(const uint8_t *codes, size_t nrows, size_t m_count, const uint8_t *tables,
                      uint16_t *out);
    void (*from_f16)(const void *halves, size_t n, float *out);
    void (*from_bf16)(const void *halves, size_t n, float *out);
} tnf_kernels;

extern const tnf_kernels tnf_kernels_portable;
#if defined(__x86_64__)
extern const tnf_kernels tnf_kernels_avx2, tnf_kernels_avx512, tnf_kernels_avx512vbmi;
void tnf_byte_sums_vbmi(const uint8_t *codes, size_t nrows, size_t m_count, const uint8_t *tables,
                        uint16_t *out);
#elif defined(__aarch64__)
extern const tnf_kernels tnf_kernels_neon;
#endif

/* The i-th that this machine can run, the fastest first; NULL past the last. */
const tnf_kernels *tnf_kernels_at(size_t i);
/* The kernels of that name; NULL selects the fastest. NULL if there are none of that name. */
const tnf_kernels *tnf_kernels_named(const char *name);

/* For the kernel files: unrolls loops with a small constant count. */
#if defined(__clang__)
#define TNF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TNF_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
