/* SPDX-License-Identifier: MIT */
/* The body of the kernels in kmeans.h. Before including it, define:
 *
 *   LANES             floats in a vector
 *   VECTORS           vectors of rows that are processed together; TNF_TILE is a multiple of both
 *   PRODUCT_ROWS, PRODUCT_VECTORS    of a tile of a matrix product
 *   vec, marks        vectors of floats, and of numbers of groups
 *   load, store, splat, no_marks, store_marks
 *   plus_product(s, a, b) = s + a * b, minus_product(s, a, b) = s - a * b, rounded once
 *   lesser(a, b)
 *   keep_least(&least, &at, a, group)      where a < least: least becomes a, and at the group
 *   first_equal(a, b) the first lane in which a and b are equal, or -1
 *
 * Rows are in lanes, and centroids are processed one after the other. Recording the nearest
 * centroid would cost more than the distance in two dimensions. So only its group of sixteen is
 * recorded, and at the end that group is computed once more, with its centroids in lanes.
 */
#include <math.h>

#define INLINE static inline __attribute__((always_inline))
#define SPAN   (VECTORS * LANES)

/* The least value over a group of centroids for SPAN rows. */
INLINE void least_of_group(const tnf_book *b, size_t width, const float *columns, size_t stride,
                           size_t first, vec *least)
{
    TNF_UNROLL for (size_t v = 0; v < VECTORS; v++) least[v] = splat(INFINITY);
    for (size_t c = first; c < first + TNF_GROUP; c++) {
        const float *centroid = b->centroids + c * width;
        vec score[VECTORS];
        TNF_UNROLL for (size_t v = 0; v < VECTORS; v++) score[v] = splat(b->half[c]);
        for (size_t i = 0; i < width; i++) {
            vec one = splat(centroid[i]);
            TNF_UNROLL for (size_t v = 0; v < VECTORS; v++)
                score[v] = minus_product(score[v], load(columns + i * stride + v * LANES), one);
        }
        TNF_UNROLL for (size_t v = 0; v < VECTORS; v++) least[v] = lesser(score[v], least[v]);
    }
}

/* The index in the group: the same computation gives the same bits. */
INLINE unsigned place_in_group(const tnf_book *b, size_t width, const float *row, size_t stride,
                               size_t first, float least)
{
    for (size_t part = 0; part < TNF_GROUP; part += LANES) {
        vec score = load(b->half + first + part);
        for (size_t i = 0; i < width; i++)
            score = minus_product(score, splat(row[i * stride]),
                                  load(b->transposed + i * b->padded + first + part));
        int found = first_equal(score, splat(least));
        if (found >= 0)
            return (unsigned)(part + (size_t)found);
    }
    return 0;
}

INLINE void nearest_of_span(const tnf_book *b, size_t width, const float *columns, size_t stride,
                            uint8_t *codes)
{
    vec least[VECTORS], of_group[VECTORS];
    marks at[VECTORS];
    float scores[SPAN];
    int32_t groups[SPAN];
    TNF_UNROLL for (size_t v = 0; v < VECTORS; v++)
    {
        least[v] = splat(INFINITY);
        at[v] = no_marks();
    }
    for (size_t first = 0; first < b->padded; first += TNF_GROUP) {
        least_of_group(b, width, columns, stride, first, of_group);
        TNF_UNROLL for (size_t v = 0; v < VECTORS; v++)
            keep_least(&least[v], &at[v], of_group[v], (int32_t)first);
    }
    TNF_UNROLL for (size_t v = 0; v < VECTORS; v++)
    {
        store(scores + v * LANES, least[v]);
        store_marks(groups + v * LANES, at[v]);
    }
    for (size_t r = 0; r < SPAN; r++) {
        unsigned place = place_in_group(b, width, columns + r, stride, (size_t)groups[r],
                                        scores[r]);
        codes[r] = (uint8_t)((unsigned)groups[r] + place);
    }
}

INLINE void nearest_of_tile(const tnf_book *b, size_t width, const float *columns, size_t stride,
                            uint8_t *codes)
{
    for (size_t r = 0; r < TNF_TILE; r += SPAN)
        nearest_of_span(b, width, columns + r, stride, codes + r);
}

/* A function for each common width, so that loops over the components are unrolled. */
static void nearest_centres(const tnf_book *b, const float *columns, size_t stride, uint8_t *codes)
{
    switch (b->width) {
    case 1:
        nearest_of_tile(b, 1, columns, stride, codes);
        break;
    case 2:
        nearest_of_tile(b, 2, columns, stride, codes);
        break;
    case 3:
        nearest_of_tile(b, 3, columns, stride, codes);
        break;
    case 4:
        nearest_of_tile(b, 4, columns, stride, codes);
        break;
    default:
        nearest_of_tile(b, b->width, columns, stride, codes);
    }
}

/* nr rows by nv vectors of columns; both are constants in the callers. */
INLINE void product_tile(const tnf_product *p, size_t r, size_t nr, size_t c, size_t nv)
{
    vec sums[PRODUCT_ROWS][PRODUCT_VECTORS], y[PRODUCT_VECTORS];
    TNF_UNROLL for (size_t i = 0; i < nr; i++) TNF_UNROLL for (size_t v = 0; v < nv; v++)
        sums[i][v] = splat(0);
    for (size_t a = 0; a < p->depth; a++) {
        TNF_UNROLL for (size_t v = 0; v < nv; v++)
            y[v] = load(p->y + a * p->y_pitch + c + v * LANES);
        TNF_UNROLL for (size_t i = 0; i < nr; i++)
        {
            vec x = splat(p->x[(r + i) * p->x_pitch + a]);
            TNF_UNROLL for (size_t v = 0; v < nv; v++)
                sums[i][v] = plus_product(sums[i][v], x, y[v]);
        }
    }
    TNF_UNROLL for (size_t i = 0; i < nr; i++) TNF_UNROLL for (size_t v = 0; v < nv; v++)
        store(p->out + (r + i) * p->out_pitch + c + v * LANES, sums[i][v]);
}

INLINE void product_columns(const tnf_product *p, size_t c, size_t nv)
{
    size_t r = 0;
    for (; r + PRODUCT_ROWS <= p->rows; r += PRODUCT_ROWS)
        product_tile(p, r, PRODUCT_ROWS, c, nv);
    for (; r < p->rows; r++)
        product_tile(p, r, 1, c, nv);
}

static void multiply_rows(const tnf_product *p)
{
    size_t c = 0;
    for (; c + PRODUCT_VECTORS * LANES <= p->cols; c += PRODUCT_VECTORS * LANES)
        product_columns(p, c, PRODUCT_VECTORS);
    for (; c < p->cols; c += LANES)
        product_columns(p, c, 1);
}
