/* SPDX-License-Identifier: MIT */
/* kmeans.h for any machine, and the choice of an implementation. */
#include "kernels/kmeans.h"

#include <math.h>
#include <string.h>

static uint8_t nearest_of_row(const tnf_book *b, const float *row, size_t stride)
{
    float least = INFINITY;
    uint8_t found = 0;
    for (size_t c = 0; c < b->k; c++) {
        float score = b->half[c];
        for (size_t i = 0; i < b->width; i++)
            score = fmaf(-row[i * stride], b->centroids[c * b->width + i], score);
        if (score < least) {
            least = score;
            found = (uint8_t)c;
        }
    }
    return found;
}

static void nearest_centres(const tnf_book *b, const float *columns, size_t stride, uint8_t *codes)
{
    for (size_t r = 0; r < TNF_TILE; r++)
        codes[r] = nearest_of_row(b, columns + r, stride);
}

static void multiply_rows(const tnf_product *p)
{
    for (size_t r = 0; r < p->rows; r++) {
        float *out = p->out + r * p->out_pitch;
        memset(out, 0, p->cols * sizeof *out);
        for (size_t a = 0; a < p->depth; a++)
            for (size_t c = 0; c < p->cols; c++)
                out[c] = fmaf(p->x[r * p->x_pitch + a], p->y[a * p->y_pitch + c], out[c]);
    }
}

const tnf_kmeans_kernels tnf_kmeans_portable = { "portable", nearest_centres, multiply_rows };

const tnf_kmeans_kernels *tnf_kmeans_named(const char *name)
{
#if defined(__x86_64__)
    if (strncmp(name, "avx512", 6) == 0)
        return &tnf_kmeans_avx512;
    if (strcmp(name, "avx2") == 0)
        return &tnf_kmeans_avx2;
#elif defined(__aarch64__)
    if (strcmp(name, "neon") == 0)
        return &tnf_kmeans_neon;
#endif
    (void)name;
    return &tnf_kmeans_portable;
}
