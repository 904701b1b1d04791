/* SPDX-License-Identifier: MIT */
/* The block types for AVX2. */
#include "kernels/blocks.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define LOOPS      tnf_blocks_avx2
#define LOOPS_NAME "avx2"
#include "kernels/blocks_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
