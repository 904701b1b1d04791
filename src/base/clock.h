/* SPDX-License-Identifier: MIT */
/* The clock that never goes back. */
#ifndef TNF_BASE_CLOCK_H
#define TNF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some point in the past. */
static inline uint64_t tnf_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
