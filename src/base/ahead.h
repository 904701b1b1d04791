/* SPDX-License-Identifier: MIT */
/* Memory asked for before it is needed, for loops that read it once from one end to the other.
 *
 *   [ being read, 8 KiB ][ page a | page b ]    one line of a, one of b, one of a …
 *
 * The CPU fetches ahead by itself, but stops at the end of each page and waits there for the next
 * address; two pages in turn hide that. Past the end of what is read nothing happens.
 */
#ifndef TNF_BASE_AHEAD_H
#define TNF_BASE_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#define TNF_AHEAD 8192u

/* To be called for every 64th byte `at` of x. A macro: GCC takes a function that does nothing else
 * for one that does nothing, and leaves it out. */
#define TNF_AHEAD_OF(x, at)                                                                        \
    do {                                                                                           \
        if ((at) % 128 == 0) {                                                                     \
            const uint8_t *ahead_ = (x) + (at) + TNF_AHEAD - (at) % TNF_AHEAD / 2;                 \
            __builtin_prefetch(ahead_, 0, 2);                                                      \
            __builtin_prefetch(ahead_ + TNF_AHEAD / 2, 0, 2);                                      \
        }                                                                                          \
    } while (0)

#endif
