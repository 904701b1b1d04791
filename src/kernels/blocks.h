/* SPDX-License-Identifier: MIT */
/* Blocks of quantized numbers in the formats of ggml: conversion to floats and back.
 *
 * A block is a fixed number of elements with common scales; blocks_simple.h, blocks_k.h and
 * blocks_grid.h show its fields. All arithmetic is that of IEEE floats, and each operation is
 * rounded once, in the order written there. So the floats are the same on every machine. A NaN,
 * which only a scale can cause, is always 7fc00000.
 *
 * Blocks are bytes as in files, little-endian, at any alignment; any bytes are a valid block.
 * Floats have the byte order of the machine.
 */
#ifndef TNF_KERNELS_BLOCKS_H
#define TNF_KERNELS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tnf_block_type {
    const char *name;         /* "q4_k" */
    uint16_t elements, bytes; /* of a block */
    /* Decodes n blocks; `out` is aligned for floats. */
    void (*decode)(float *out, const uint8_t *blocks, size_t n);
    /* NULL: decoding only. Floats that are not finite give an unspecified block, see below. */
    void (*encode)(uint8_t *out, const float *in, size_t n);
} tnf_block_type;

/* A type by its name of n bytes, or NULL. */
const tnf_block_type *tnf_block_type_named(const char *name, size_t n);
/* The i-th type; NULL past the last. */
const tnf_block_type *tnf_block_type_at(size_t i);

/* How many of n blocks of floats, from the first on, can be encoded: all numbers are finite, and so
 * is the range from the least to the greatest, if the type stores it (q4_1, q5_1). */
size_t tnf_block_encodable(const tnf_block_type *type, const float *in, size_t n);

/* How many of n blocks that were encoded from these floats, from the first on, decode to finite
 * numbers again: no scale was too large for an f16 and became infinite. */
size_t tnf_block_finite(const tnf_block_type *type, const float *in, const uint8_t *blocks,
                        size_t n);

/* ------------------------------------------------------ for blocks_*.c only */

/* The same types for one instruction set, in the same order. */
typedef struct tnf_block_set {
    const char *name;
    const tnf_block_type *types;
    size_t n;
} tnf_block_set;

/* The i-th set that this machine can run, the fastest first; NULL past the last. */
const tnf_block_set *tnf_block_set_at(size_t i);

extern const tnf_block_set tnf_blocks_portable;
#if defined(__x86_64__)
extern const tnf_block_set tnf_blocks_avx2;
#endif

#endif
