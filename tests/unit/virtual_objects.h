/* SPDX-License-Identifier: MIT */
/* Tensors in memory, and the expected contents of virtual ones made from them. */
#ifndef TNF_TESTS_VIRTUAL_OBJECTS_H
#define TNF_TESTS_VIRTUAL_OBJECTS_H

#include "../support/unit.h"

#include "base/bytes.h"
#include "layout_objects.h"
#include <tenfold/virtual.h>

static tnf_error e;

/* Attributes as a value. */
#define ATTRS(...)                                                                                 \
    (tnf_value)                                                                                    \
    {                                                                                              \
        .kind = TNF_MAP, .n = COUNT(((tnf_member[]) { __VA_ARGS__ })),                             \
        .as.members = (tnf_member[])                                                               \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define KEY(k)                                                                                     \
    {                                                                                              \
        k, sizeof k - 1                                                                            \
    }
#define UINT(k, x)                                                                                 \
    {                                                                                              \
        KEY(k),                                                                                    \
        {                                                                                          \
            .kind = TNF_UINT, .dtype = TNF_U64, .as.u = (x)                                        \
        }                                                                                          \
    }
#define TEXT(k, x)                                                                                 \
    {                                                                                              \
        KEY(k),                                                                                    \
        {                                                                                          \
            .kind = TNF_STRING, .n = sizeof x - 1, .as.s = x                                       \
        }                                                                                          \
    }
#define INSIDE(k, m)                                                                               \
    {                                                                                              \
        KEY(k), m                                                                                  \
    }

/* A dense tensor whose bytes have the order of a file. */
static inline tnf_object dense_object(tnf_part *part, const char *type, const void *bytes, size_t n,
                                      const uint64_t *shape, uint32_t rank, tnf_order order)
{
    *part = (tnf_part) { .role = "data",
                         .type = tnf_type_named(type),
                         .memory = bytes,
                         .nbytes = n,
                         .stored = n,
                         .payload = TNF_MEMORY };
    tnf_object o = { .name = { "w", 1 },
                     .layout = &tnf_layout_dense,
                     .shape = shape,
                     .rank = rank,
                     .parts = part,
                     .nparts = 1,
                     .order = (uint8_t)order };
    return o;
}

static inline tnf_virtual *make_virtual(const tnf_object *o, const tnf_virtual_how *how)
{
    tnf_virtual *v;
    assert_ok(tnf_virtual_new(&v, &o, 1, how, &e));
    return v;
}

/* The tensor has exactly these bytes, read at once and in all kinds of pieces. */
static inline void assert_holds(const tnf_object *o, const void *expected, size_t n)
{
    uint8_t *got = malloc(n + 1);
    assert_int_equal(o->nparts, 1);
    assert_int_equal(o->parts->nbytes, n);
    assert_ok(tnf_read(got, n, o, &e));
    assert_memory_equal(got, expected, n);
    uint32_t random = 7;
    for (int i = 0; i < 60 && n > 0; i++) {
        random = random * 1664525u + 1013904223u;
        size_t from = random % n, length = (random >> 8) % (n - from) + 1;
        memset(got, 0xa5, n + 1);
        assert_ok(tnf_read_part(got, length, o->parts, from, &e));
        assert_memory_equal(got, (const uint8_t *)expected + from, length);
        assert_int_equal(got[length], 0xa5);
    }
    free(got);
}

static inline float float_at(const uint8_t *p, size_t i)
{
    uint32_t bits = tnf_le32(p + 4 * i);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline void floats_are(const tnf_object *o, const float *expected, size_t n)
{
    uint8_t *bytes = malloc(4 * n + 1);
    assert_ptr_equal(o->parts->type, tnf_type_of(TNF_F32));
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &expected[i], sizeof bits);
        tnf_put_le32(bytes + 4 * i, bits);
    }
    assert_holds(o, bytes, 4 * n);
    free(bytes);
}

#endif
