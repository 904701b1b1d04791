/* SPDX-License-Identifier: MIT */
/* The fixture of each test of a syntax: an arena whose memory is counted, a buffer to write to, an
 * error, and the reader that the program names before it includes this. */
#ifndef TNF_UNIT_WIRE_FIXTURE_H
#define TNF_UNIT_WIRE_FIXTURE_H

#include "wire_bytes.h"

typedef struct fixture {
    struct memory_log log;
    tnf_allocator alloc;
    tnf_arena arena;
    tnf_buf b;
    tnf_error e;
    uint8_t *bytes; /* what the reader reads */
#ifdef READER
    READER r;
#endif
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->alloc = memory_allocator(&f->log);
    tnf_arena_init(&f->arena, &f->alloc, 64u << 20);
    tnf_buf_init(&f->b, &f->alloc, 64u << 20);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tnf_arena_free(&f->arena);
    tnf_buf_free(&f->b);
    assert_int_equal(f->log.blocks, 0);
    assert_int_equal(f->log.wrong_sizes, 0);
    free(f->bytes);
    free(f);
    return 0;
}

#endif
