/* SPDX-License-Identifier: MIT */
/* Prefetches memory for loops that read it once from one end to the other.
 *
 *   [ being read, 8 KiB ][ page a | page b ]    one line of a, one of b, one of a …
 *
 * The CPU also prefetches by itself, but stops at the end of each page and waits there for the next
 * address. Reading two pages in turn hides that wait. A prefetch past the end is a no-op.
 */
#ifndef TNF_BASE_PREFETCH_H
#define TNF_BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#define TNF_PREFETCH 8192u

/* Call this for every 64th byte `at` of x. It is a macro because GCC removes a function that only
 * prefetches, as if it had no effect. */
#define TNF_PREFETCH_OF(x, at)                                                                     \
    do {                                                                                           \
        if ((at) % 128 == 0) {                                                                     \
            const uint8_t *next_ = (x) + (at) + TNF_PREFETCH - (at) % TNF_PREFETCH / 2;            \
            __builtin_prefetch(next_, 0, 2);                                                       \
            __builtin_prefetch(next_ + TNF_PREFETCH / 2, 0, 2);                                    \
        }                                                                                          \
    } while (0)

#endif
