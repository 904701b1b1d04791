/* SPDX-License-Identifier: MIT */
/* The inner loops of quantizing, for several instruction sets.
 *
 * All of them give the same bits: sums are taken in the order of the components, and every
 * multiplication is fused with its addition (the portable ones call fmaf()). So the trained result
 * depends neither on the machine nor on the number of threads.
 */
#ifndef TNF_KERNELS_KMEANS_H
#define TNF_KERNELS_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#define TNF_TILE     64u /* rows that are processed together */
#define TNF_GROUP    16u /* centroids that are processed together */
/* Rows of matrices in products have this many floats; the last ones are 0. */
#define TNF_PITCH(d) (((d) + 15) & ~(size_t)15)

/* The centroids of one piece of the rows, in the layout for kernels. */
typedef struct tnf_book {
    size_t width, k;         /* components; centroids */
    size_t padded;           /* k, or the next multiple of TNF_GROUP */
    const float *centroids;  /* [padded][width]; those from k on are 0 */
    const float *half;       /* [padded]: half the square of each length; infinite from k on */
    const float *transposed; /* [width][padded] */
} tnf_book;

/* A matrix product: out[r][c] is the sum over a of x[r][a] * y[a][c]. */
typedef struct tnf_product {
    const float *x, *y;
    float *out;
    size_t rows, depth, cols; /* cols: a multiple of 16 */
    size_t x_pitch, y_pitch, out_pitch;
} tnf_product;

typedef struct tnf_kmeans_kernels {
    const char *name;
    /* Finds the nearest centroid of each of TNF_TILE rows; of equally near ones the first.
     * Component i of row r is columns[i * stride + r]. The compared value is |c|^2 / 2 - x.c, which
     * is half the squared distance without the part that all centroids share. */
    void (*nearest)(const tnf_book *book, const float *columns, size_t stride, uint8_t *codes);
    void (*product)(const tnf_product *p);
} tnf_kmeans_kernels;

extern const tnf_kmeans_kernels tnf_kmeans_portable;
#if defined(__x86_64__)
extern const tnf_kmeans_kernels tnf_kmeans_avx2, tnf_kmeans_avx512;
#elif defined(__aarch64__)
extern const tnf_kmeans_kernels tnf_kmeans_neon;
#endif

/* The implementation that belongs to the query kernels of this name. */
const tnf_kmeans_kernels *tnf_kmeans_named(const char *name);

#endif
