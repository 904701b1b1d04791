/* SPDX-License-Identifier: MIT */
/* The loops of tally.h for AVX2. */
#include "kernels/tally.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define LOOPS      tnf_tally_avx2
#define LOOPS_NAME "avx2"
#include "kernels/tally_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
