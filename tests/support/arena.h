/* SPDX-License-Identifier: MIT */
/* An arena for each test of a file. */
#ifndef TEST_SUPPORT_ARENA_H
#define TEST_SUPPORT_ARENA_H

#include "base/arena.h"
#include "unit.h"

static tnf_arena arena;

static int arena_set_up(void **state)
{
    (void)state;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &a, UINT64_MAX);
    return 0;
}

static int arena_tear_down(void **state)
{
    (void)state;
    tnf_arena_free(&arena);
    return 0;
}

#endif
