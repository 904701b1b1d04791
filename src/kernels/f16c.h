/* SPDX-License-Identifier: MIT */
/* A feature of x86-64 processors that the compiler's built-in query does not cover. */
#ifndef TNF_KERNELS_F16C_H
#define TNF_KERNELS_F16C_H

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

/* Every processor with AVX2 also converts halves, but a virtual machine may hide one of the two. */
static inline bool tnf_has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

#endif
