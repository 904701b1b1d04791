/* SPDX-License-Identifier: MIT */
/* Tensors in memory for the tests of layouts. Include after cmocka.h. */
#ifndef TNF_TESTS_LAYOUT_OBJECTS_H
#define TNF_TESTS_LAYOUT_OBJECTS_H

#include "../support/little.h"
#include "model/dtype.h"
#include "model/layout.h"

#include <string.h>

#define COUNT(array)              (sizeof(array) / sizeof(array)[0])
#define SHAPE(...)                (const uint64_t[]) { __VA_ARGS__ }, COUNT(((const uint64_t[]) { __VA_ARGS__ }))

/* A part over an array; `type` is an id. It claims to be at byte 1000 of its file. */
#define PART(role_, type_, array) PART_OF(role_, type_, array, sizeof(array))
#define PART_OF(role_, type_, bytes, n)                                                            \
    {                                                                                              \
        .role = (role_), .type = tnf_type_named(type_), .memory = (bytes), .nbytes = (n),          \
        .stored = (n), .offset = 1000, .payload = TNF_AT                                           \
    }

static inline tnf_object tensor_of(const char *layout, const uint64_t *shape, size_t rank,
                                   const tnf_part *parts, size_t nparts)
{
    return (tnf_object) {
        .name = { "w", 1 },
        .layout = tnf_layout_named(layout, strlen(layout)),
        .shape = shape,
        .rank = (uint32_t)rank,
        .parts = parts,
        .nparts = (uint16_t)nparts,
    };
}

/* Checks that no read goes beyond the part, or is larger than a validator's buffer. */
static inline tnf_status read_memory(void *dst, size_t n, const tnf_part *part, uint64_t offset,
                                     tnf_error *e)
{
    (void)e;
    assert_in_range(n, 1, 65536);
    assert_true(offset <= part->nbytes && n <= part->nbytes - offset);
    for (size_t i = 0; i < n; i++) { /* arrays have the machine's byte order */
        uint64_t at = LITTLE_IS_NATIVE ? offset + i : (offset + i) ^ (little_width(part->type) - 1);
        ((uint8_t *)dst)[i] = ((const uint8_t *)part->memory)[at];
    }
    return TNF_OK;
}

static inline tnf_status read_nothing(void *dst, size_t n, const tnf_part *part, uint64_t offset,
                                      tnf_error *e)
{
    (void)part, (void)offset, (void)dst, (void)n, (void)e;
    return TNF_EIO;
}

static inline void expect_message(tnf_status status, const tnf_error *e, const char *message,
                                  uint64_t offset)
{
    if (!message) {
        if (status != TNF_OK)
            fail_msg("refused: %s", e->message);
        return;
    }
    if (status != TNF_EFORMAT || !strstr(e->message, message) || strncmp(e->message, "'w': ", 5))
        fail_msg("wanted '%s', got %s: %s", message, tnf_status_name(status),
                 status ? e->message : "");
    assert_int_equal(e->offset, offset);
}

/* The expected message of tnf_layout_check(): NULL for none, else a part of it. */
static inline void check_is(const tnf_object *object, const char *message)
{
    tnf_error e;
    expect_message(tnf_layout_check(object, &e), &e, message, TNF_NO_OFFSET);
    assert_int_equal(tnf_layout_check(object, NULL), message ? TNF_EFORMAT : TNF_OK);
}

/* The same for the data, with the expected offset. */
static inline void data_is(const tnf_object *object, const char *message, uint64_t offset)
{
    tnf_error e;
    check_is(object, NULL);
    expect_message(object->layout->check_data(object, read_memory, &e), &e, message, offset);
}

#endif
