/* SPDX-License-Identifier: MIT */
/* The features of an x86-64 CPU; only for compilers that have <cpuid.h>. */
#ifndef TNF_BASE_CPUID_H
#define TNF_BASE_CPUID_H

#include <cpuid.h>
#include <stdatomic.h>

/* The bits of leaf 1 in ECX. The result is kept, since CPUID takes microseconds in a virtual
 * machine. __builtin_cpu_supports() would do the same, with five kilobytes for all other CPUs. */
static inline unsigned tnf_cpu_features(void)
{
    static atomic_uint known; /* 0: unknown yet; today's CPUs all have some of these bits */
    unsigned a, b, features = atomic_load_explicit(&known, memory_order_relaxed), d;
    if (features == 0 && __get_cpuid(1, &a, &b, &features, &d))
        atomic_store_explicit(&known, features, memory_order_relaxed);
    return features;
}

#endif
