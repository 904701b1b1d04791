/* SPDX-License-Identifier: MIT */
/* Blocks of quantized numbers, as ggml's types have them: to floats and back.
 *
 * A block is a fixed number of elements under common scales. What each holds is drawn in
 * blocks_simple.h, blocks_k.h and blocks_grid.h. All arithmetic is that of IEEE floats, each
 * operation rounded once in the order written there, so the floats are the same on every machine;
 * every NaN, which only a scale can make, is 7fc00000.
 *
 * Blocks are bytes as in files, little-endian, at any alignment, and any bytes are a block. Floats
 * have the byte order of the machine.
 */
#ifndef TNF_KERNELS_BLOCKS_H
#define TNF_KERNELS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tnf_block_type {
    const char *name;         /* "q4_k" */
    uint16_t elements, bytes; /* of a block */
    /* n blocks; `out` is aligned as floats are. */
    void (*decode)(float *out, const uint8_t *blocks, size_t n);
    /* NULL: it is only decoded. Floats that are not finite give some block, see below. */
    void (*encode)(uint8_t *out, const float *in, size_t n);
} tnf_block_type;

/* By its name of n bytes, or NULL. */
const tnf_block_type *tnf_block_type_named(const char *name, size_t n);
/* The i-th; NULL past the last. */
const tnf_block_type *tnf_block_type_at(size_t i);

/* How many of n blocks of floats, from the first on, can be encoded: all numbers are finite, and
 * so is the range from the least to the greatest where the type stores it (q4_1, q5_1). */
size_t tnf_block_encodable(const tnf_block_type *type, const float *in, size_t n);

/* How many of n blocks that were made of these floats, from the first on, are read as finite
 * numbers again: none in which a scale was too large for an f16 and became infinite. */
size_t tnf_block_finite(const tnf_block_type *type, const float *in, const uint8_t *blocks,
                        size_t n);

/* ------------------------------------------------------ for blocks_*.c only */

/* The same types for one instruction set, in the same order. */
typedef struct tnf_block_set {
    const char *name;
    const tnf_block_type *types;
    size_t n;
} tnf_block_set;

/* The i-th that this machine can run, the best first; NULL past the last. */
const tnf_block_set *tnf_block_set_at(size_t i);

extern const tnf_block_set tnf_blocks_portable;
#if defined(__x86_64__)
extern const tnf_block_set tnf_blocks_avx2;
#endif

#endif
