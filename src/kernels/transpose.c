/* SPDX-License-Identifier: MIT */
/* Transposing a matrix, tile by tile.
 *
 *        src                  tile (on the stack)          dst
 *   r0  ████████              c0  ████████            c0  ████████
 *   r1  ████████     ──>      c1  ████████    ──>     c1  ████████
 *
 * A row of a tile is one cache line, which is read completely and written completely. So matrices
 * whose rows are a power of two apart, which all use the same few places of the cache, cost no more
 * than others. For a large matrix, lines are written past the cache, because they are not read
 * again soon. Tiles are processed block by block, so that the pages of a block stay in the TLB.
 */
#include "kernels/transpose.h"

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE  64u               /* bytes of a cache line */
#define BLOCK 2048u             /* bytes of a block's row */
#define LARGE ((size_t)1 << 20) /* from this size on, bytes are written past the cache */

typedef struct wide {
    uint64_t half[2];
} wide;

struct block {
    const void *src;
    void *dst;
    size_t src_stride, dst_stride, rows, cols;
    bool past_cache;
};

/* out[c][r] = src[r][c], rows and cols at most `side`. */
#define TILE(name, type)                                                                           \
    static void name(type *out, size_t side, const type *src, size_t stride, size_t rows,          \
                     size_t cols)                                                                  \
    {                                                                                              \
        for (size_t r = 0; r < rows; r++)                                                          \
            for (size_t c = 0; c < cols; c++)                                                      \
                out[c * side + r] = src[r * stride + c];                                           \
    }

/* Writes one row of a tile. */
static void put_line(void *dst, const void *line, size_t n, bool past_cache)
{
#ifdef __SSE2__
    if (past_cache && n == LINE && (uintptr_t)dst % LINE == 0) { /* a partial line costs two */
        const __m128i *from = line;
        __m128i *to = dst;
        for (size_t i = 0; i < LINE / 16; i++)
            _mm_stream_si128(to + i, _mm_loadu_si128(from + i));
        return;
    }
#endif
    (void)past_cache;
    memcpy(dst, line, n);
}

/* Transposes a block, tile by tile. */
#define BLOCK_OF(name, tile, type)                                                                 \
    static void name(const struct block *b)                                                        \
    {                                                                                              \
        enum { side = LINE / sizeof(type) };                                                       \
        type between[side * side];                                                                 \
        const type *src = b->src;                                                                  \
        type *dst = b->dst;                                                                        \
        for (size_t r = 0; r < b->rows; r += side)                                                 \
            for (size_t c = 0; c < b->cols; c += side) {                                           \
                size_t nr = b->rows - r < side ? b->rows - r : side;                               \
                size_t nc = b->cols - c < side ? b->cols - c : side;                               \
                for (size_t i = 0; i < nr && c + 2 * side <= b->cols; i++)                         \
                    __builtin_prefetch(src + (r + i) * b->src_stride + c + side);                  \
                tile(between, side, src + r * b->src_stride + c, b->src_stride, nr, nc);           \
                for (size_t i = 0; i < nc; i++)                                                    \
                    put_line(dst + (c + i) * b->dst_stride + r, between + i * side,                \
                             nr * sizeof(type), b->past_cache);                                    \
            }                                                                                      \
    }

/* Writes one row of a panel. Complete lines may be written past the cache; a partial line would
 * cost two. */
static void put_row(uint8_t *dst, const uint8_t *row, size_t n, bool past_cache)
{
#ifdef __SSE2__
    size_t head = (0 - (uintptr_t)dst) % LINE;
    if (past_cache && n >= head + LINE) {
        memcpy(dst, row, head);
        for (dst += head, row += head, n -= head; n >= LINE; dst += LINE, row += LINE, n -= LINE)
            for (size_t i = 0; i < LINE; i += 16)
                _mm_stream_si128((__m128i *)(void *)(dst + i),
                                 _mm_loadu_si128((const __m128i *)(const void *)(row + i)));
    }
#endif
    (void)past_cache;
    memcpy(dst, row, n);
}

/* The same if the rows of dst do not begin at cache lines. It works panel by panel: as many columns
 * as fit in a line, with all rows of the block, are gathered first and then written completely. */
#define PANELS_OF(name, tile, type)                                                                \
    static void name(const struct block *b)                                                        \
    {                                                                                              \
        enum { side = LINE / sizeof(type), wide_row = (BLOCK + LINE) / sizeof(type) };             \
        type panel[side * wide_row];                                                               \
        const type *src = b->src;                                                                  \
        type *dst = b->dst;                                                                        \
        for (size_t c = 0; c < b->cols; c += side) {                                               \
            size_t nc = b->cols - c < side ? b->cols - c : side;                                   \
            for (size_t r = 0; r < b->rows; r += side) {                                           \
                size_t nr = b->rows - r < side ? b->rows - r : side;                               \
                for (size_t i = 0; i < nr && c + 2 * side <= b->cols; i++)                         \
                    __builtin_prefetch(src + (r + i) * b->src_stride + c + side);                  \
                tile(panel + r, wide_row, src + r * b->src_stride + c, b->src_stride, nr, nc);     \
            }                                                                                      \
            for (size_t i = 0; i < nc; i++)                                                        \
                put_row((uint8_t *)(dst + (c + i) * b->dst_stride),                                \
                        (const uint8_t *)(panel + i * wide_row), b->rows * sizeof(type),           \
                        b->past_cache);                                                            \
        }                                                                                          \
    }

TILE(tile_1, uint8_t)
TILE(tile_2, uint16_t)
TILE(tile_8, uint64_t)
TILE(tile_16, wide)

#ifdef __SSE2__
/* Transposes four by four in registers: for the element size of nearly all tensors. */
static void four_by_four(uint32_t *out, size_t side, const uint32_t *src, size_t stride)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)src);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + stride));
    __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(src + 2 * stride));
    __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(src + 3 * stride));
    __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d);
    __m128i ab2 = _mm_unpackhi_epi32(a, b), cd2 = _mm_unpackhi_epi32(c, d);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_unpacklo_epi64(ab, cd));
    _mm_storeu_si128((__m128i *)(void *)(out + side), _mm_unpackhi_epi64(ab, cd));
    _mm_storeu_si128((__m128i *)(void *)(out + 2 * side), _mm_unpacklo_epi64(ab2, cd2));
    _mm_storeu_si128((__m128i *)(void *)(out + 3 * side), _mm_unpackhi_epi64(ab2, cd2));
}

TILE(edge_4, uint32_t)

static void tile_4(uint32_t *out, size_t side, const uint32_t *src, size_t stride, size_t rows,
                   size_t cols)
{
    enum { whole = LINE / sizeof *out };
    if (rows != whole || cols != whole) {
        edge_4(out, side, src, stride, rows, cols);
        return;
    }
    for (size_t r = 0; r < whole; r += 4)
        for (size_t c = 0; c < whole; c += 4)
            four_by_four(out + c * side + r, side, src + r * stride + c, stride);
}
#else
TILE(tile_4, uint32_t)
#endif

BLOCK_OF(block_1, tile_1, uint8_t)
BLOCK_OF(block_2, tile_2, uint16_t)
BLOCK_OF(block_4, tile_4, uint32_t)
BLOCK_OF(block_8, tile_8, uint64_t)
BLOCK_OF(block_16, tile_16, wide)
PANELS_OF(panels_1, tile_1, uint8_t)
PANELS_OF(panels_2, tile_2, uint16_t)
PANELS_OF(panels_4, tile_4, uint32_t)
PANELS_OF(panels_8, tile_8, uint64_t)
PANELS_OF(panels_16, tile_16, wide)

/* The number of rows before the first that begins at a cache line in each row of dst. */
static size_t rows_to_line(const void *dst, size_t dst_stride, size_t width)
{
    return dst_stride * width % LINE ? 0 : (0 - (uintptr_t)dst) % LINE / width;
}

bool tnf_transpose(void *dst, size_t dst_stride, const void *src, size_t src_stride, size_t rows,
                   size_t cols, size_t width)
{
    static void (*const aligned[])(const struct block *) = {
        [1] = block_1, [2] = block_2, [4] = block_4, [8] = block_8, [16] = block_16,
    };
    static void (*const others[])(const struct block *) = {
        [1] = panels_1, [2] = panels_2, [4] = panels_4, [8] = panels_8, [16] = panels_16,
    };
    if (width >= sizeof aligned / sizeof aligned[0] || !aligned[width])
        return false;
    bool past_cache = rows * cols >= LARGE / width;
    bool odd = past_cache && dst_stride * width % LINE != 0;
    size_t side = BLOCK / width, first = rows_to_line(dst, dst_stride, width);
    for (size_t r = 0, n; r < rows; r += n) {
        n = r == 0 && first ? first : side;
        for (size_t c = 0; c < cols; c += side) {
            struct block b = {
                .src = (const uint8_t *)src + (r * src_stride + c) * width,
                .dst = (uint8_t *)dst + (c * dst_stride + r) * width,
                .src_stride = src_stride,
                .dst_stride = dst_stride,
                .rows = rows - r < n ? rows - r : n,
                .cols = cols - c < side ? cols - c : side,
                .past_cache = past_cache,
            };
            (odd ? others : aligned)[width](&b);
        }
    }
#ifdef __SSE2__
    _mm_sfence(); /* makes lines written past the cache visible to other threads */
#endif
    return true;
}
