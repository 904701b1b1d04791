/* SPDX-License-Identifier: MIT */
/* The state of the simulated CUDA driver. */
#ifndef TNF_TESTS_FAKE_STATE_H
#define TNF_TESTS_FAKE_STATE_H

#include "device/driver.h"
#include "fake_cuda.h"
#include "fake_kernels.h"

#include <pthread.h>

enum { BAD_VALUE = 1, BAD_CONTEXT = 201, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

struct cu_context_ {
    int device;
    long retained;
    bool lost;
};

struct range {
    struct range *next;
    uint8_t *p;
    size_t n;
    int device;
    struct block *block; /* the block that contains it; NULL: it has pages of its own */
};

/* Small allocations are next to each other, as in the real driver. */
struct block {
    uint8_t *p;
    size_t used, live;
};

struct cu_event_ {
    cu_context context;
    unsigned long recorded, reached;
};

enum op_kind { OP_COPY, OP_RECORD, OP_WAIT, OP_LAUNCH };

struct op {
    struct op *next;
    enum op_kind kind;
    cu_copy_2d copy;
    cu_event event;
    unsigned long mark;
    fake_kernel_fn *kernel;
    uint64_t arguments[FAKE_ARGUMENTS];
};

struct cu_stream_ {
    cu_context context;
    pthread_t thread;
    struct op *first, **last;
    long pending;
    bool ending;
    unsigned seed;
};

#endif
