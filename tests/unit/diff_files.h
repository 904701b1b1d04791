/* SPDX-License-Identifier: MIT */
/* Files in memory for the tests of comparing, and the reported differences. */
#ifndef TNF_UNIT_DIFF_FILES_H
#define TNF_UNIT_DIFF_FILES_H

#include "../support/little.h"
#include "../support/unit.h"
#include <tenfold/build.h>
#include <tenfold/diff.h>

#define MOST 16

/* ------------------------------------------------------------------ files */

/* A file in memory with the added tensors. */
struct made {
    tnf_builder *b;
    tnf_sink *sink;
    tnf_file *file;
};

static inline struct made begin_file(void)
{
    struct made m = { 0 };
    tnf_error e;
    assert_ok(tnf_builder_new(&m.b, NULL, &e));
    return m;
}

static inline void add_tensor(struct made *m, const char *name, const char *type, uint64_t n,
                              const void *data)
{
    tnf_error e;
    const tnf_type *t = tnf_type_named(type);
    data = little_bytes(t, data, n * t->bits / 8);
    assert_ok(tnf_builder_add(m->b, name, t, 1, &n, data, &e));
}

static inline void add_matrix(struct made *m, const char *name, const char *type, tnf_order order,
                              const uint64_t *shape, uint64_t bytes, const void *data)
{
    tnf_error e;
    tnf_part part = { .role = "data",
                      .type = tnf_type_named(type),
                      .memory = little_bytes(tnf_type_named(type), data, bytes),
                      .stored = bytes,
                      .nbytes = bytes,
                      .payload = TNF_MEMORY };
    tnf_object o = { .name = { name, strlen(name) },
                     .shape = shape,
                     .rank = 2,
                     .parts = &part,
                     .nparts = 1,
                     .layout = tnf_layout_by_id("dense"),
                     .order = (uint8_t)order };
    assert_ok(tnf_builder_add_object(m->b, &o, NULL, &e));
}

static inline void set_attribute(struct made *m, const char *tensor, const char *key,
                                 const char *json)
{
    tnf_error e;
    tnf_value v;
    assert_ok(tnf_builder_parse(&v, m->b, json, strlen(json), &e));
    assert_ok(tnf_builder_set(m->b, tensor, key, &v, &e));
}

static inline void finish_with(struct made *m, const char *format, const tnf_option *option,
                               const tnf_allocator *alloc)
{
    tnf_error e;
    tnf_source *source;
    tnf_save_options how = { .size = sizeof how, .format = format };
    tnf_open_options open = { .size = sizeof open };
    if (alloc)
        open.allocator = *alloc;
    how.options = option;
    how.noptions = option ? 1 : 0;
    assert_ok(tnf_sink_memory(&m->sink, &e));
    assert_ok(tnf_save_sink(m->b, m->sink, &how, &e));
    tnf_str bytes = tnf_sink_bytes(m->sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&m->file, source, &open, &e));
}

static inline void finish_file(struct made *m, const char *format)
{
    finish_with(m, format, NULL, NULL);
}

static inline void discard_file(struct made *m)
{
    tnf_close(m->file);
    tnf_sink_close(m->sink);
    tnf_builder_free(m->b);
}

/* The reported differences. */
struct told {
    size_t n;
    tnf_difference_kind kinds[MOST];
    char names[MOST][32], keys[MOST][64];
    tnf_value_difference values[MOST];
    bool a[MOST], b[MOST];
};

static inline void hear_difference(void *ctx, const tnf_difference *d)
{
    struct told *t = ctx;
    assert_true(t->n < MOST);
    const tnf_object *o = d->a ? d->a : d->b;
    t->kinds[t->n] = d->kind;
    snprintf(t->names[t->n], sizeof t->names[0], "%s", o ? o->name.p : "");
    snprintf(t->keys[t->n], sizeof t->keys[0], "%.*s", (int)d->key.n, d->key.p ? d->key.p : "");
    if (d->values)
        t->values[t->n] = *d->values;
    t->a[t->n] = d->a_value || d->a_part;
    t->b[t->n] = d->b_value || d->b_part;
    t->n++;
}

static inline tnf_diff_result compare_files(struct told *t, const struct made *a,
                                            const struct made *b, tnf_diff_options how)
{
    tnf_error e;
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    *t = (struct told) { 0 };
    how.size = sizeof how;
    how.difference = how.difference ? how.difference : hear_difference;
    how.ctx = how.ctx ? how.ctx : t;
    assert_ok(tnf_diff(&result, a->file, b->file, &how, &e));
    return result;
}

/* Two tensors "w" of these bytes. */
static inline tnf_diff_result compare_data(struct told *t, const char *a_type, const void *a,
                                           const char *b_type, const void *b, uint64_t n,
                                           tnf_diff_options how)
{
    struct made x = begin_file(), y = begin_file();
    add_tensor(&x, "w", a_type, n, a);
    add_tensor(&y, "w", b_type, n, b);
    finish_file(&x, "ztensor2");
    finish_file(&y, "ztensor2");
    tnf_diff_result r = compare_files(t, &x, &y, how);
    discard_file(&x);
    discard_file(&y);
    return r;
}

#endif
