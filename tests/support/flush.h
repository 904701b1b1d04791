/* SPDX-License-Identifier: MIT */
/* A thread that treats subnormal numbers as 0, as programs with -ffast-math do. */
#ifndef TNF_SUPPORT_FLUSH_H
#define TNF_SUPPORT_FLUSH_H

#include "base/ieee.h"

#include <stdbool.h>

#if defined(__SSE2__)
#define FLUSH_BITS 0x8040u
#elif defined(__aarch64__)
#define FLUSH_BITS 0x01000000u
#else
#define FLUSH_BITS 0u
#endif

/* Returns the mode before. */
static inline uint32_t flush_begin(void)
{
    uint32_t mode = TNF_MODE_GET();
    TNF_MODE_SET(mode | FLUSH_BITS);
    return mode;
}

/* Returns true if the mode was still that of flush_begin(), or if this processor has none. */
static inline bool flush_end(uint32_t before)
{
    bool kept = (TNF_MODE_GET() & FLUSH_BITS) == FLUSH_BITS;
    TNF_MODE_SET(before);
    return kept;
}

#endif
