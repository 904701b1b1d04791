/* SPDX-License-Identifier: MIT */
/* VS files for the tests of points/: making, filling and reading them. */
#ifndef TNF_UNIT_POINTS_FILES_H
#define TNF_UNIT_POINTS_FILES_H

#include "../support/files.h"
#include "../support/little.h"
#include "../support/unit.h"
#include "ext/points/points.h"

#define DIM 3u

static inline const char *vs_path(void)
{
    static char path[300];
    static unsigned count;
    snprintf(path, sizeof path, "%s/%u.vsdb", files_temp(), count++);
    return path;
}

static inline tnf_space vs_space(void)
{
    static const uint64_t dims[] = { DIM };
    return (tnf_space) {
        .size = sizeof(tnf_space), .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
}

static inline tnf_points_options vs_options(bool write)
{
    return (tnf_points_options) { .size = sizeof(tnf_points_options),
                                  .write = write,
                                  .sync = TNF_POINTS_NO_SYNC };
}

static inline tnf_points *vs_create(const char *path)
{
    tnf_error e;
    tnf_points *p;
    tnf_space space = vs_space();
    tnf_points_options o = vs_options(true);
    assert_ok(tnf_points_create(&p, path, &space, &o, &e));
    return p;
}

static inline tnf_points *vs_open(const char *path, bool write)
{
    tnf_error e;
    tnf_points *p;
    tnf_points_options o = vs_options(write);
    assert_ok(tnf_points_open(&p, path, &o, &e));
    return p;
}

/* Point number i: its application data is the integer i, its vector i, i + 0.5, -i. */
static inline tnf_point_id vs_add(tnf_points *p, unsigned i)
{
    tnf_error e;
    tnf_point_id id = { 0 };
    float v[DIM] = { (float)i, (float)i + 0.5f, -(float)i };
    tnf_value number = tnf_value_uint(i);
    tnf_point point = { .value = &number, .vector = to_little(v, 4, DIM), .vector_n = sizeof v };
    assert_ok(tnf_points_append(&id, p, &point, 1, &e));
    return id;
}

struct vs_seen {
    tnf_points *p;
    size_t n;
    uint64_t numbers[64];
    tnf_point_id ids[64];
};

static inline tnf_status vs_take(void *ctx, const tnf_point *point, tnf_error *e)
{
    struct vs_seen *s = ctx;
    const tnf_value *v = NULL;
    tnf_status status = tnf_points_value(&v, s->p, point, e);
    if (status != TNF_OK)
        return status;
    assert_true(s->n < 64 && point->vector_n == DIM * sizeof(float));
    s->numbers[s->n] = v ? v->as.u : UINT64_MAX;
    s->ids[s->n++] = point->id;
    if (v) {
        float i = (float)v->as.u, want[DIM] = { i, i + 0.5f, -i };
        assert_memory_equal(point->vector, to_little(want, 4, DIM), sizeof want);
    }
    return TNF_OK;
}

/* The numbers of the points, in order. */
static inline struct vs_seen vs_list(tnf_points *p)
{
    tnf_error e;
    struct vs_seen s = { .p = p };
    assert_ok(tnf_points_each(p, vs_take, &s, &e));
    return s;
}

static inline void vs_expect(tnf_points *p, const char *numbers)
{
    char text[400] = "";
    struct vs_seen s = vs_list(p);
    for (size_t i = 0; i < s.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%llu", i ? " " : "",
                 (unsigned long long)s.numbers[i]);
    assert_string_equal(text, numbers);
}

#endif
