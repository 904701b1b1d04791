/* SPDX-License-Identifier: MIT */
/* How a test controls the simulated CUDA driver. */
#ifndef TNF_TESTS_FAKE_CUDA_H
#define TNF_TESTS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_cuda {
    /* the test sets these */
    size_t memory;     /* bytes of each device */
    unsigned delay_us; /* a copy waits up to so long before it looks at its source */
    long fail_call;    /* the call with this number, from now, fails; -1: none */
    int fail_with;     /* with this result */
    long fail_copy;    /* the copy with this number fails while it runs, permanently; -1: none */
    int no_modules;    /* no kernel can be loaded */
    /* the test reads these */
    long calls, copies;
    long live_memory, live_pins, live_streams, live_events, live_contexts, live_modules;
    size_t used;     /* bytes in use on all devices */
    long violations; /* of the rules of the driver */
    char first[160]; /* the first violation */
} fake_cuda;

/* Both are exported as data and function of the fake driver. */
typedef fake_cuda *fake_cuda_state_fn(void);
typedef void fake_cuda_reset_fn(void); /* restarts the counts; keeps those of live things */

#endif
