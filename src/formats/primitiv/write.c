/* SPDX-License-Identifier: MIT */
/* Writes primitiv files with the same bytes as primitiv: integers always ce, floats always ca,
 * shortest heads, the parameters of a model in the order of their paths. In primitiv the order of
 * statistics and configs is arbitrary (it is that of a hash table), so theirs is kept.
 */
#include "formats/primitiv/primitiv.h"
#include "wire/msgpack.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* A statistic of the parameter being written. */
struct statistic {
    const tnf_object *object;
    tnf_str key;
    uint64_t place;
};

struct task {
    tnf_writer *w;
    prim_type type;
    uint32_t *first, *next;  /* per object: its first statistic; the next one of the same owner */
    struct statistic *stats; /* room for all of one parameter */
    size_t values;           /* tensors other than statistics */
    tnf_hash names;
    tnf_buf b, element;
};

/* ----------------------------------------------------------------- tensors */

static tnf_status flush_description(struct task *j, tnf_error *e)
{
    return tnf_put_buf(j->w, &j->b, "the description", e);
}

static void put_dims(tnf_buf *b, const uint64_t *dims, uint32_t n, uint64_t batch)
{
    while (n > 0 && dims[n - 1] == 1)
        n--;
    tnf_msgpack_put_array(b, n);
    for (uint32_t i = 0; i < n; i++)
        tnf_msgpack_put_u32(b, (uint32_t)dims[i]);
    tnf_msgpack_put_u32(b, (uint32_t)batch);
}

static tnf_status put_tensor(struct task *j, const tnf_object *o, tnf_error *e)
{
    put_dims(&j->b, o->shape, tnf_prim_dims_of(o), tnf_prim_batch_of(o));
    tnf_msgpack_put_bin_head(&j->b, o->parts[0].nbytes);
    TNF_TRY(flush_description(j, e));
    return tnf_put_data(j->w, &o->parts[0], e);
}

/* ------------------------------------------------------------- statistics */

static tnf_status add_names(struct task *j, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t previous;
        if (tnf_prim_is_stat(&c->objects[i]))
            continue;
        if (!tnf_hash_add(&j->names, i, false, &previous))
            return tnf_no_memory("names", e);
        j->values++;
    }
    return TNF_OK;
}

/* Groups statistics by their parameter. */
static tnf_status group_statistics(struct task *j, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    j->first = tnf_arena_array(j->w->scratch, c->n, sizeof *j->first);
    j->next = tnf_arena_array(j->w->scratch, c->n, sizeof *j->next);
    j->stats = tnf_arena_array(j->w->scratch, c->n, sizeof *j->stats);
    if (!j->first || !j->next || !j->stats)
        return tnf_arena_fail(j->w->scratch, "statistics", e);
    for (size_t i = 0; i < c->n; i++)
        j->first[i] = j->next[i] = NONE;
    TNF_TRY(add_names(j, e));
    for (size_t i = c->n; i-- > 0;) {
        const tnf_object *o = &c->objects[i];
        if (!tnf_prim_is_stat(o))
            continue;
        tnf_str name = tnf_prim_owner_of(o);
        uint32_t owner = name.p ? tnf_hash_find(&j->names, name.p, name.n) : TNF_HASH_NONE;
        if (owner == TNF_HASH_NONE)
            return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET,
                            "the parameter of the statistic %s is missing", TNF_QUOTED(o->name));
        j->next[i] = j->first[owner];
        j->first[owner] = (uint32_t)i;
    }
    return TNF_OK;
}

static int by_statistic_key(const void *a, const void *b)
{
    return tnf_str_compare(((const struct statistic *)a)->key, ((const struct statistic *)b)->key);
}

static int by_place(const void *a, const void *b)
{
    const struct statistic *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

/* Gathers the statistics of a parameter in the order of the file. */
static size_t gather_stats(struct task *j, uint32_t owner)
{
    size_t n = 0;
    bool placed = true;
    for (uint32_t i = j->first[owner]; i != NONE; i = j->next[i]) {
        const tnf_object *o = &j->w->catalog->objects[i];
        struct statistic *s = &j->stats[n++];
        *s = (struct statistic) {
            .object = o, .key = tnf_value_chars(tnf_value_get(o->attrs, "primitiv.stat"))
        };
        placed = placed && tnf_value_whole(&s->place, tnf_value_get(o->attrs, "primitiv.order"));
    }
    if (n > 1 && j->w->options[PRIM_OPTION_SORT].u)
        qsort(j->stats, n, sizeof *j->stats, by_statistic_key);
    else if (n > 1 && placed)
        qsort(j->stats, n, sizeof *j->stats, by_place);
    return n;
}

static tnf_status put_parameter(struct task *j, const tnf_object *o, tnf_error *e)
{
    TNF_TRY(put_tensor(j, o, e));
    size_t n = gather_stats(j, (uint32_t)(o - j->w->catalog->objects));
    tnf_msgpack_put_u32(&j->b, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        tnf_msgpack_put_str(&j->b, j->stats[i].key.p, j->stats[i].key.n);
        TNF_TRY(put_tensor(j, j->stats[i].object, e));
    }
    return flush_description(j, e);
}

/* ------------------------------------------------------------------ files */

static tnf_status put_path(struct task *j, tnf_str name, tnf_error *e)
{
    prim_path path = tnf_prim_path_of(name);
    int c;
    tnf_msgpack_put_array(&j->b, tnf_prim_path_elements(name));
    do {
        j->element.n = 0;
        while ((c = tnf_prim_path_next(&path)) >= 0)
            tnf_buf_u8(&j->element, (uint8_t)c);
        TNF_TRY(tnf_buf_status(&j->element, "the name", e));
        tnf_msgpack_put_str(&j->b, j->element.n ? (const char *)j->element.p : "", j->element.n);
    } while (c != PRIM_END);
    return TNF_OK;
}

static tnf_status put_model(struct task *j, tnf_error *e)
{
    const uint32_t *order = NULL;
    if (j->w->options[PRIM_OPTION_ORDER].u == PRIM_ORDER_PATH)
        TNF_TRY(tnf_sorted(j->w, &order, tnf_prim_path_compare, e));
    tnf_msgpack_put_u32(&j->b, (uint32_t)j->values);
    for (size_t i = 0; i < j->w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(j->w, order, i);
        if (tnf_prim_is_stat(o))
            continue;
        TNF_TRY(put_path(j, o->name, e));
        TNF_TRY(put_parameter(j, o, e));
    }
    return flush_description(j, e);
}

/* Finds the only tensor that is not a statistic. */
static tnf_status find_value(const struct task *j, const tnf_object **out, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    for (size_t i = 0; i < c->n; i++)
        if (!tnf_prim_is_stat(*out = &c->objects[i]))
            return TNF_OK;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there is no tensor for a file of the kind %s",
                    tnf_prim_type_names[j->type]);
}

static tnf_status put_shape(struct task *j, tnf_error *e)
{
    prim_dims shape;
    if (!tnf_prim_shape_of(&shape, tnf_catalog_attr(j->w->catalog, "primitiv.dims"),
                           tnf_catalog_attr(j->w->catalog, "primitiv.batch")))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "primitiv.dims is missing or invalid, so the shape cannot be written");
    put_dims(&j->b, shape.dims, shape.n, shape.batch);
    return flush_description(j, e);
}

/* -------------------------------------------------------------- optimizers */

static int by_config_key(const void *a, const void *b)
{
    return tnf_str_compare(((const prim_config *)a)->key, ((const prim_config *)b)->key);
}

/* tnf_prim_fits() has checked that the values are numbers. */
static void put_config(tnf_buf *b, const prim_config *c, bool floats)
{
    uint32_t u = 0;
    float f = 0;
    bool rounded;
    tnf_msgpack_put_str(b, c->key.p, c->key.n);
    if (floats && tnf_prim_config_f32(c->value, &f, &rounded))
        tnf_msgpack_put_f32(b, f);
    else if (tnf_prim_config_u32(c->value, &u))
        tnf_msgpack_put_u32(b, u);
}

static tnf_status put_configs(struct task *j, const char *key, bool floats, tnf_error *e)
{
    const prim_configs configs = tnf_prim_configs_of(tnf_catalog_attr(j->w->catalog, key));
    prim_config *all = tnf_arena_array(j->w->scratch, configs.n, sizeof *all);
    size_t n = 0;
    if (!all)
        return tnf_arena_fail(j->w->scratch, "configs", e);
    for (size_t i = 0; i < configs.n; i++)
        n += tnf_prim_config_at(&all[n], &configs, i);
    if (n > 1 && j->w->options[PRIM_OPTION_SORT].u)
        qsort(all, n, sizeof *all, by_config_key);
    tnf_msgpack_put_map(&j->b, n);
    for (size_t i = 0; i < n; i++)
        put_config(&j->b, &all[i], floats);
    return flush_description(j, e);
}

static tnf_status put_optimizer(struct task *j, tnf_error *e)
{
    TNF_TRY(put_configs(j, "primitiv.uint_configs", false, e));
    return put_configs(j, "primitiv.float_configs", true, e);
}

/* -------------------------------------------------------------------- all */

static tnf_status put_object(struct task *j, tnf_error *e)
{
    const tnf_object *value;
    switch (j->type) {
    case PRIM_SHAPE:
        return put_shape(j, e);
    case PRIM_TENSOR:
        TNF_TRY(find_value(j, &value, e));
        return put_tensor(j, value, e);
    case PRIM_PARAMETER:
        TNF_TRY(find_value(j, &value, e));
        return put_parameter(j, value, e);
    case PRIM_OPTIMIZER:
        return put_optimizer(j, e);
    default:
        return put_model(j, e);
    }
}

static tnf_status put_all(struct task *j, tnf_error *e)
{
    TNF_TRY(group_statistics(j, e));
    j->type = tnf_prim_type_for(j->w->catalog, j->w->options, NULL);
    tnf_msgpack_put_u32(&j->b, 0);
    tnf_msgpack_put_u32(&j->b, 1);
    tnf_msgpack_put_u32(&j->b, (uint32_t)j->type * 0x100);
    TNF_TRY(put_object(j, e));
    for (size_t i = 0; i < j->w->catalog->nextras; i++)
        if (tnf_str_is(j->w->catalog->extras[i].key, PRIM_TRAILING))
            TNF_TRY(tnf_put_data(j->w, &j->w->catalog->extras[i].bytes, e));
    return TNF_OK;
}

tnf_status tnf_prim_write(tnf_writer *w, tnf_error *e)
{
    struct task j = { .w = w };
    const tnf_allocator *a = &w->scratch->alloc;
    tnf_buf_init(&j.b, a, UINT32_MAX);
    tnf_buf_init(&j.element, a, UINT32_MAX);
    tnf_hash_init(&j.names, a, tnf_catalog_name_at, w->catalog);
    tnf_status status = put_all(&j, e);
    tnf_hash_free(&j.names);
    tnf_buf_free(&j.element);
    tnf_buf_free(&j.b);
    return status;
}
