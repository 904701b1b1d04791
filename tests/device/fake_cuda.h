/* SPDX-License-Identifier: MIT */
/* How a test steers the driver that stands in for CUDA's. */
#ifndef TNF_TESTS_FAKE_CUDA_H
#define TNF_TESTS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_cuda {
    /* to be set */
    size_t memory;     /* bytes of each device */
    unsigned delay_us; /* a copy waits up to so long before it looks at its source */
    long fail_call;    /* the call of this number fails, counted from now; -1: none does */
    int fail_with;     /* by this result */
    long fail_copy;    /* the copy of this number fails while it runs, for good; -1: none does */
    int no_modules;    /* no kernel can be loaded */
    /* to be looked at */
    long calls, copies;
    long live_memory, live_pins, live_streams, live_events, live_contexts, live_modules;
    size_t used;     /* bytes of all devices */
    long violations; /* of the driver's rules */
    char first[160]; /* which one came first */
} fake_cuda;

/* Both are exported as data and function of the fake driver. */
typedef fake_cuda *fake_cuda_state_fn(void);
typedef void fake_cuda_reset_fn(void); /* counts from 0 again; what lives stays counted */

#endif
