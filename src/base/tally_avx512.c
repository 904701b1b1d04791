/* SPDX-License-Identifier: MIT */
/* The loops of tally.h for AVX-512. */
#include "base/tally.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))),        \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif

#define LOOPS      tnf_tally_avx512
#define LOOPS_NAME "avx512"
#include "base/tally_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
