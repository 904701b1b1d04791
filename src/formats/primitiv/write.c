/* SPDX-License-Identifier: MIT */
/* Writing primitiv files, to the byte as primitiv writes them: integers always ce, floats always
 * ca, heads as short as can be, the parameters of a model in the order of their paths. The order of
 * statistics and configs means nothing there (it is that of a hash table): they stay as they are.
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

struct job {
    tnf_writer *w;
    prim_type type;
    uint32_t *first, *next;  /* per object: its first statistic; the next one of the same owner */
    struct statistic *stats; /* room for all of one parameter */
    size_t values;           /* tensors that are no statistic */
    tnf_hash names;
    tnf_buf b, element;
};

/* ------------------------------------------------------------- attributes */

static const tnf_value *file_attr(const tnf_writer *w, const char *key)
{
    const tnf_value all = tnf_attrs_value(&w->catalog->attrs);
    return tnf_value_get(&all, key);
}

/* Text or bytes; p is NULL if it is neither. */
static tnf_str text_of(const tnf_value *v)
{
    bool text = v && (v->kind == TNF_STRING || v->kind == TNF_BYTES);
    return text ? (tnf_str) { v->as.s, v->n } : (tnf_str) { 0 };
}

static bool number_of(const tnf_value *v, uint64_t *out)
{
    if (!v || (v->kind != TNF_UINT && (v->kind != TNF_INT || v->as.i < 0)))
        return false;
    *out = v->as.u;
    return true;
}

static bool is_stat(const tnf_object *o)
{
    return text_of(tnf_value_get(o->attrs, "primitiv.stat")).p != NULL;
}

/* Above 1 only if the last axis is the batch. */
static uint64_t batch_of(const tnf_object *o)
{
    uint64_t batch;
    bool has = number_of(tnf_value_get(o->attrs, "primitiv.batch"), &batch) && batch > 1;
    return has && o->rank > 0 && o->shape[o->rank - 1] == batch ? batch : 1;
}

static uint32_t dims_of(const tnf_object *o)
{
    return o->rank - (batch_of(o) > 1);
}

tnf_fate prim_takes(const tnf_object *o, const char **reason)
{
    uint32_t n = dims_of(o);
    *reason = "the format is column-major only";
    if (o->rank > 1 && o->order != TNF_ORDER_F)
        return TNF_DROPPED;
    *reason = "the format has no more than 8 dimensions";
    if (n > PRIM_MAX_DIMS)
        return TNF_DROPPED;
    *reason = "the format has no empty tensors";
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->shape[i] == 0)
            return TNF_DROPPED;
    *reason = "the format has no tensors of 4 GiB or more";
    if (o->parts[0].nbytes > UINT32_MAX)
        return TNF_DROPPED;
    *reason = "dimensions of 1 at the end fall away";
    if (n > 0 && o->shape[n - 1] == 1)
        return TNF_TRANSFORMED;
    *reason = "";
    return TNF_NATIVE;
}

/* ----------------------------------------------------------------- tensors */

static tnf_status flush(struct job *j, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(&j->b, "description", e));
    TNF_TRY(tnf_put(j->w, j->b.p, j->b.n, e));
    j->b.n = 0;
    return TNF_OK;
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

static tnf_status put_tensor(struct job *j, const tnf_object *o, tnf_error *e)
{
    put_dims(&j->b, o->shape, dims_of(o), batch_of(o));
    tnf_msgpack_put_bin_head(&j->b, o->parts[0].nbytes);
    TNF_TRY(flush(j, e));
    return tnf_put_data(j->w, &o->parts[0], e);
}

/* ------------------------------------------------------------- statistics */

static tnf_str name_at(const void *ctx, uint32_t position)
{
    return ((const tnf_catalog *)ctx)->objects[position].name;
}

/* The name of the parameter that a statistic belongs to: "w" for "w@m". */
static tnf_str owner_name(const tnf_object *o)
{
    tnf_str of = text_of(tnf_value_get(o->attrs, "primitiv.of"));
    tnf_str key = text_of(tnf_value_get(o->attrs, "primitiv.stat"));
    if (of.p)
        return of;
    if (!key.p || o->name.n <= key.n || memcmp(o->name.p + o->name.n - key.n, key.p, key.n) != 0 ||
        o->name.p[o->name.n - key.n - 1] != '@')
        return (tnf_str) { 0 };
    return (tnf_str) { o->name.p, o->name.n - key.n - 1 };
}

static tnf_status add_names(struct job *j, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t previous;
        if (is_stat(&c->objects[i]))
            continue;
        if (!tnf_hash_add(&j->names, i, false, &previous))
            return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for names");
        j->values++;
    }
    return TNF_OK;
}

/* Which statistics are whose. */
static tnf_status group(struct job *j, tnf_error *e)
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
        if (!is_stat(o))
            continue;
        tnf_str name = owner_name(o);
        uint32_t owner = name.p ? tnf_hash_find(&j->names, name.p, name.n) : TNF_HASH_NONE;
        if (owner == TNF_HASH_NONE)
            return tnf_fail(e, TNF_ELOSSY, TNF_NO_OFFSET,
                            "the statistic %s is there without its parameter, and primitiv has no "
                            "place for that",
                            TNF_QUOTED(o->name));
        j->next[i] = j->first[owner];
        j->first[owner] = (uint32_t)i;
    }
    return TNF_OK;
}

static int compare_keys(tnf_str a, tnf_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : a.n < b.n ? -1 : a.n > b.n;
}

static int by_key(const void *a, const void *b)
{
    return compare_keys(((const struct statistic *)a)->key, ((const struct statistic *)b)->key);
}

static int by_place(const void *a, const void *b)
{
    const struct statistic *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

/* Those of one parameter, in the order in which they are to stand. */
static size_t gather_stats(struct job *j, uint32_t owner)
{
    size_t n = 0;
    bool placed = true;
    for (uint32_t i = j->first[owner]; i != NONE; i = j->next[i]) {
        const tnf_object *o = &j->w->catalog->objects[i];
        struct statistic *s = &j->stats[n++];
        *s = (struct statistic) { .object = o,
                                  .key = text_of(tnf_value_get(o->attrs, "primitiv.stat")) };
        placed = placed && number_of(tnf_value_get(o->attrs, "primitiv.order"), &s->place);
    }
    if (n > 1 && j->w->options[PRIM_OPTION_SORT].u)
        qsort(j->stats, n, sizeof *j->stats, by_key);
    else if (n > 1 && placed)
        qsort(j->stats, n, sizeof *j->stats, by_place);
    return n;
}

static tnf_status put_parameter(struct job *j, const tnf_object *o, tnf_error *e)
{
    if (batch_of(o) > 1)
        return tnf_fail(e, TNF_ELOSSY, TNF_NO_OFFSET,
                        "%s has a batch of %llu, and a parameter has none", TNF_QUOTED(o->name),
                        (unsigned long long)batch_of(o));
    TNF_TRY(put_tensor(j, o, e));
    size_t n = gather_stats(j, (uint32_t)(o - j->w->catalog->objects));
    tnf_msgpack_put_u32(&j->b, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        tnf_msgpack_put_str(&j->b, j->stats[i].key.p, j->stats[i].key.n);
        TNF_TRY(put_tensor(j, j->stats[i].object, e));
    }
    return flush(j, e);
}

/* ------------------------------------------------------------------ files */

static tnf_status put_path(struct job *j, tnf_str name, tnf_error *e)
{
    prim_path path = prim_path_of(name);
    int c;
    tnf_msgpack_put_array(&j->b, prim_path_elements(name));
    do {
        j->element.n = 0;
        while ((c = prim_path_next(&path)) >= 0)
            tnf_buf_u8(&j->element, (uint8_t)c);
        TNF_TRY(tnf_buf_status(&j->element, "name", e));
        tnf_msgpack_put_str(&j->b, j->element.n ? (const char *)j->element.p : "", j->element.n);
    } while (c != PRIM_END);
    return TNF_OK;
}

static tnf_status put_model(struct job *j, tnf_error *e)
{
    const uint32_t *order = NULL;
    if (j->w->options[PRIM_OPTION_ORDER].u == PRIM_ORDER_PATH)
        TNF_TRY(tnf_sorted(j->w, &order, prim_path_compare, e));
    tnf_msgpack_put_u32(&j->b, (uint32_t)j->values);
    for (size_t i = 0; i < j->w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(j->w, order, i);
        if (is_stat(o))
            continue;
        TNF_TRY(put_path(j, o->name, e));
        TNF_TRY(put_parameter(j, o, e));
    }
    return flush(j, e);
}

/* The only tensor that is no statistic. */
static const tnf_object *the_value(const struct job *j)
{
    const tnf_object *o = j->w->catalog->objects;
    while (is_stat(o))
        o++;
    return o;
}

static tnf_status put_shape(struct job *j, tnf_error *e)
{
    const tnf_value *dims = file_attr(j->w, "primitiv.dims");
    uint64_t shape[PRIM_MAX_DIMS], batch = 1;
    const tnf_value *b = file_attr(j->w, "primitiv.batch");
    bool ok = dims && dims->kind == TNF_ARRAY && dims->n <= PRIM_MAX_DIMS &&
              (!b || number_of(b, &batch)) && batch > 0 && batch <= UINT32_MAX;
    for (size_t i = 0; ok && i < dims->n; i++)
        ok = number_of(&dims->as.items[i], &shape[i]) && shape[i] > 0 && shape[i] <= UINT32_MAX;
    if (!ok)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "primitiv.dims and primitiv.batch are no shape: up to 8 dimensions of 1 "
                        "or more");
    put_dims(&j->b, shape, (uint32_t)dims->n, batch);
    return flush(j, e);
}

/* -------------------------------------------------------------- optimizers */

struct config {
    tnf_str key;
    const tnf_value *value;
};

static int by_config_key(const void *a, const void *b)
{
    return compare_keys(((const struct config *)a)->key, ((const struct config *)b)->key);
}

/* The i-th pair of a map, or of its other form, {"$pairs": [[key, value], …]}. */
static bool config_at(struct config *out, const tnf_value *map, size_t i)
{
    if (map->kind == TNF_MAP) {
        *out = (struct config) { map->as.members[i].key, &map->as.members[i].value };
        return true;
    }
    const tnf_value *pair = &map->as.items[i];
    if (pair->kind != TNF_ARRAY || pair->n != 2)
        return false;
    *out = (struct config) { text_of(&pair->as.items[0]), &pair->as.items[1] };
    return out->key.p != NULL;
}

static bool put_config(tnf_buf *b, const struct config *c, bool floats)
{
    const tnf_value *v = c->value;
    uint64_t u;
    tnf_msgpack_put_str(b, c->key.p, c->key.n);
    if (!floats) {
        if (!number_of(v, &u) || u > UINT32_MAX)
            return false;
        tnf_msgpack_put_u32(b, (uint32_t)u);
        return true;
    }
    if (v->kind == TNF_FLOAT) /* a double is rounded: it is what somebody typed */
        tnf_msgpack_put_f32(b, v->dtype == TNF_F32 ? v->as.f32 : (float)v->as.f64);
    else if (v->kind == TNF_INT)
        tnf_msgpack_put_f32(b, (float)v->as.i);
    else if (v->kind == TNF_UINT)
        tnf_msgpack_put_f32(b, (float)v->as.u);
    return v->kind == TNF_FLOAT || v->kind == TNF_INT || v->kind == TNF_UINT;
}

static tnf_status put_configs(struct job *j, const char *key, bool floats, tnf_error *e)
{
    static const tnf_value none = { .kind = TNF_MAP };
    const tnf_value *map = file_attr(j->w, key), *pairs = tnf_value_get(map, "$pairs");
    map = !map ? &none : pairs && pairs->kind == TNF_ARRAY && map->n == 1 ? pairs : map;
    bool ok = map->kind == TNF_MAP || map == pairs;
    size_t n = ok ? map->n : 0;
    struct config *all = tnf_arena_array(j->w->scratch, n, sizeof *all);
    if (!all)
        return tnf_arena_fail(j->w->scratch, "configs", e);
    for (size_t i = 0; ok && i < n; i++)
        ok = config_at(&all[i], map, i);
    if (ok && n > 1 && j->w->options[PRIM_OPTION_SORT].u)
        qsort(all, n, sizeof *all, by_config_key);
    tnf_msgpack_put_map(&j->b, n);
    for (size_t i = 0; ok && i < n; i++)
        ok = put_config(&j->b, &all[i], floats);
    if (!ok)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is no map of text to %s", key,
                        floats ? "numbers" : "whole numbers of 32 bits");
    return flush(j, e);
}

static tnf_status put_optimizer(struct job *j, tnf_error *e)
{
    TNF_TRY(put_configs(j, "primitiv.uint_configs", false, e));
    return put_configs(j, "primitiv.float_configs", true, e);
}

/* ------------------------------------------------------------------- type */

/* Why a file of that type cannot hold it, or NULL. */
static const char *misfit(const struct job *j, prim_type type)
{
    const tnf_writer *w = j->w;
    bool configs = file_attr(w, "primitiv.uint_configs") || file_attr(w, "primitiv.float_configs");
    bool shape = file_attr(w, "primitiv.dims") || file_attr(w, "primitiv.batch");
    if (type != PRIM_OPTIMIZER && configs)
        return "there are configs, which only an optimizer has";
    if (type != PRIM_SHAPE && shape)
        return "there is a shape without a tensor";
    if ((type == PRIM_SHAPE || type == PRIM_OPTIMIZER) && w->catalog->n > 0)
        return "there are tensors";
    if ((type == PRIM_TENSOR || type == PRIM_PARAMETER) && j->values != 1)
        return "it holds one tensor, and there are others or none";
    if (type == PRIM_TENSOR && w->catalog->n > 1)
        return "there are statistics";
    return NULL;
}

/* As the source was, if that is still what it is; without a word on it, by what there is. */
static prim_type type_by_content(const struct job *j)
{
    tnf_str said = text_of(file_attr(j->w, "primitiv.type"));
    for (unsigned t = 0; said.p && t < PRIM_TYPES; t++) {
        bool nameless = t == PRIM_TENSOR || t == PRIM_PARAMETER;
        if (strlen(prim_type_names[t]) != said.n || memcmp(prim_type_names[t], said.p, said.n) != 0)
            continue;
        if (!misfit(j, (prim_type)t) &&
            (!nameless || strcmp(the_value(j)->name.p, PRIM_VALUE) == 0))
            return (prim_type)t;
    }
    if (!misfit(j, PRIM_OPTIMIZER) && misfit(j, PRIM_MODEL))
        return PRIM_OPTIMIZER;
    return !misfit(j, PRIM_SHAPE) && misfit(j, PRIM_MODEL) ? PRIM_SHAPE : PRIM_MODEL;
}

static tnf_status choose_type(struct job *j, tnf_error *e)
{
    uint64_t asked = j->w->options[PRIM_OPTION_TYPE].u;
    j->type = asked == PRIM_TYPE_AUTO ? type_by_content(j) : (prim_type)(asked - 1);
    const char *why = misfit(j, j->type);
    if (why)
        return tnf_fail(e, TNF_ELOSSY, TNF_NO_OFFSET, "this does not make a primitiv %s: %s",
                        prim_type_names[j->type], why);
    return TNF_OK;
}

static tnf_status put_object(struct job *j, tnf_error *e)
{
    switch (j->type) {
    case PRIM_SHAPE:
        return put_shape(j, e);
    case PRIM_TENSOR:
        return put_tensor(j, the_value(j), e);
    case PRIM_PARAMETER:
        return put_parameter(j, the_value(j), e);
    case PRIM_OPTIMIZER:
        return put_optimizer(j, e);
    default:
        return put_model(j, e);
    }
}

static tnf_status put_all(struct job *j, tnf_error *e)
{
    TNF_TRY(group(j, e));
    TNF_TRY(choose_type(j, e));
    tnf_msgpack_put_u32(&j->b, 0);
    tnf_msgpack_put_u32(&j->b, 1);
    tnf_msgpack_put_u32(&j->b, (uint32_t)j->type * 0x100);
    TNF_TRY(put_object(j, e));
    for (size_t i = 0; i < j->w->catalog->nextras; i++)
        if (strcmp(j->w->catalog->extras[i].key.p, PRIM_TRAILING) == 0)
            TNF_TRY(tnf_put_data(j->w, &j->w->catalog->extras[i].bytes, e));
    return TNF_OK;
}

tnf_status prim_write(tnf_writer *w, tnf_error *e)
{
    struct job j = { .w = w };
    const tnf_allocator *a = &w->scratch->alloc;
    tnf_buf_init(&j.b, a, UINT32_MAX);
    tnf_buf_init(&j.element, a, UINT32_MAX);
    tnf_hash_init(&j.names, a, name_at, w->catalog);
    tnf_status status = put_all(&j, e);
    tnf_hash_free(&j.names);
    tnf_buf_free(&j.element);
    tnf_buf_free(&j.b);
    return status;
}
