/* SPDX-License-Identifier: MIT */
/* Reads primitiv files, except for the payloads.
 *
 * If a path occurs several times, primitiv uses the last parameter; if a key of statistics or
 * configs does, it uses the first. So everything is gathered before any of it is listed.
 */
#include "formats/primitiv/scan.h"
#include "wire/tree.h"

#include <stdio.h>
#include <string.h>

struct tensor {
    prim_shape shape;
    uint64_t at, offset, length; /* at: of its shape; offset, length: of its payload */
};

struct statistic {
    struct statistic *next;
    tnf_str key;
    struct tensor t;
};

struct param {
    struct param *next;
    tnf_str name; /* the path as a name */
    struct tensor value;
    struct statistic *stats;
    uint64_t at;
    bool sorted; /* all statistics are sorted by key */
};

/* ---------------------------------------------------------------- objects */

/* The required size of the payload, in 64 bits; primitiv itself computes with 32 bits. */
static bool payload_bytes(uint64_t *out, const prim_shape *shape)
{
    *out = 4;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (!tnf_ckd_mul(out, *out, shape->dims[i]))
            return false;
    return tnf_ckd_mul(out, *out, shape->batch);
}

/* "[2,3]x1", in primitiv's notation. */
static const char *shape_text(char *out, size_t size, const prim_shape *shape)
{
    size_t n = (size_t)snprintf(out, size, "[");
    for (uint32_t i = 0; i < shape->rank; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%lu", i ? "," : "",
                              (unsigned long)shape->dims[i]);
    snprintf(out + n, size - n, "]x%lu", (unsigned long)shape->batch);
    return out;
}

static tnf_status read_tensor(prim_scan *s, struct tensor *t, tnf_error *e)
{
    char text[8 * 11 + 16];
    uint64_t need;
    t->at = s->at;
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_shape, &t->shape, e));
    uint64_t bin = s->at;
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_bin_head, &t->length, e));
    if (!payload_bytes(&need, &t->shape))
        return tnf_fail(e, TNF_EFORMAT, t->at, "a tensor of shape %s has more than 2^64 bytes",
                        shape_text(text, sizeof text, &t->shape));
    if (t->length != need)
        return tnf_fail(e, TNF_EFORMAT, bin, "a tensor has %llu bytes, but its shape %s needs %llu",
                        (unsigned long long)t->length, shape_text(text, sizeof text, &t->shape),
                        (unsigned long long)need);
    uint64_t here = s->r->source->size - s->at;
    if (t->length > here)
        return tnf_fail(e, TNF_ETRUNCATED, s->r->source->size,
                        "the file ends inside a tensor: %s missing (cut short?)",
                        TNF_BYTES_ARE(t->length - here));
    t->offset = s->at;
    s->at += t->length;
    return TNF_OK;
}

/* Copies a string out of the window into memory that persists. */
static tnf_status keep_bytes(prim_scan *s, tnf_str *out, const void *p, size_t n, tnf_error *e)
{
    *out = (tnf_str) { tnf_arena_str(s->r->scratch, p, n), n };
    return out->p ? TNF_OK : tnf_arena_fail(s->r->scratch, "names", e);
}

static tnf_status read_stats(prim_scan *s, struct param *p, tnf_error *e)
{
    uint32_t n;
    tnf_keys keys;
    struct statistic **end = &p->stats, *last = NULL;
    tnf_keys_init(&keys, s->r->scratch);
    p->sorted = true;
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_u32, &n, e));
    for (uint32_t i = 0; i < n; i++) {
        tnf_str key;
        bool twice;
        uint64_t at = s->at;
        struct statistic *stat = tnf_arena_alloc(s->r->scratch, sizeof *stat);
        if (!stat)
            return tnf_arena_fail(s->r->scratch, "statistics", e);
        TNF_TRY(tnf_prim_pull(s, tnf_prim_take_str, &key, e));
        TNF_TRY(keep_bytes(s, &stat->key, key.p, key.n, e));
        TNF_TRY(read_tensor(s, &stat->t, e));
        TNF_TRY(tnf_keys_add(&keys, stat->key, &twice, e));
        if (twice) {
            tnf_warn(s->r, at, "the statistic %s occurs twice; the first one is used",
                     TNF_QUOTED(stat->key));
            continue;
        }
        p->sorted = p->sorted && (!last || tnf_str_compare(last->key, stat->key) < 0);
        *end = last = stat;
        end = &stat->next;
    }
    return TNF_OK;
}

static tnf_status read_parameter(prim_scan *s, struct param *p, tnf_error *e)
{
    TNF_TRY(read_tensor(s, &p->value, e));
    if (p->value.shape.batch != 1)
        return tnf_fail(e, TNF_EFORMAT, p->value.at, "a parameter has a batch of %lu instead of 1",
                        (unsigned long)p->value.shape.batch);
    return read_stats(s, p, e);
}

/* ---------------------------------------------------------------- listing */

/* The elements of a path, from its name. */
static tnf_status path_value(tnf_value *out, prim_scan *s, tnf_str name, tnf_error *e)
{
    tnf_arena *a = s->r->arena;
    uint64_t n = tnf_prim_path_elements(name);
    tnf_value *items = tnf_arena_array(a, n, sizeof *items);
    if (!items)
        return tnf_arena_fail(a, "attributes", e);
    prim_path path = tnf_prim_path_of(name);
    for (uint64_t i = 0; i < n; i++) {
        s->name.n = 0;
        for (int c; (c = tnf_prim_path_next(&path)) >= 0;)
            tnf_buf_u8(&s->name, (uint8_t)c);
        TNF_TRY(tnf_buf_status(&s->name, "the name", e));
        tnf_str element = { s->name.n ? (const char *)s->name.p : "", s->name.n };
        TNF_TRY(tnf_text_value(s->r, &items[i], element, e));
    }
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = (size_t)n, .as.items = items };
    return TNF_OK;
}

static tnf_value u32_value(uint32_t v)
{
    return (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U32, .as.u = v };
}

/* The attributes of a tensor while they are collected. */
struct marks {
    tnf_member members[5];
    size_t n;
};

static void add_mark(struct marks *m, const char *literal, tnf_value value)
{
    m->members[m->n++] = (tnf_member) { { literal, strlen(literal) }, value };
}

static tnf_status list_tensor(prim_scan *s, tnf_str name, const struct tensor *t, struct marks *m,
                              tnf_error *e)
{
    uint64_t shape[PRIM_MAX_DIMS + 1];
    uint32_t rank = t->shape.rank;
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = t->shape.dims[i];
    if (t->shape.batch > 1) {
        shape[rank++] = t->shape.batch;
        add_mark(m, "primitiv.batch", u32_value(t->shape.batch));
    }
    tnf_value *map = NULL;
    if (m->n > 0) {
        map = tnf_arena_alloc(s->r->arena, sizeof *map + m->n * sizeof m->members[0]);
        if (!map)
            return tnf_arena_fail(s->r->arena, "attributes", e);
        *map = (tnf_value) { .kind = TNF_MAP, .n = m->n, .as.members = (tnf_member *)(map + 1) };
        memcpy(map + 1, m->members, m->n * sizeof m->members[0]);
    }
    const tnf_dense d = { .name = name,
                          .type = tnf_type_of(TNF_F32),
                          .shape = shape,
                          .rank = rank,
                          .offset = t->offset,
                          .length = t->length,
                          .attrs = map,
                          .at = t->at,
                          .order = TNF_ORDER_F };
    return tnf_add_dense(s->r, &d, e);
}

/* "w@m". If another tensor has this name, a number is appended and *renamed is set. */
static tnf_status stat_name(prim_scan *s, tnf_str *out, const struct param *p,
                            const struct statistic *stat, tnf_keys *names, bool *renamed,
                            tnf_error *e)
{
    bool taken = true;
    s->name.n = 0;
    tnf_buf_put(&s->name, p->name.p, p->name.n);
    tnf_buf_u8(&s->name, '@');
    tnf_buf_put(&s->name, stat->key.p, stat->key.n);
    for (*renamed = false;; *renamed = true) {
        TNF_TRY(tnf_buf_status(&s->name, "the name", e));
        TNF_TRY(keep_bytes(s, out, s->name.p, s->name.n, e));
        TNF_TRY(tnf_keys_add(names, *out, &taken, e));
        if (!taken)
            return TNF_OK;
        tnf_buf_printf(&s->name, "@%zu", s->r->catalog->n);
    }
}

/* A parameter and its statistics; path is NULL outside a model. */
static tnf_status list_parameter(prim_scan *s, const struct param *p, const tnf_value *path,
                                 tnf_keys *names, tnf_error *e)
{
    struct marks m = { .n = 0 };
    uint32_t place = 0;
    if (path)
        add_mark(&m, "primitiv.path", *path);
    TNF_TRY(list_tensor(s, p->name, &p->value, &m, e));
    for (const struct statistic *stat = p->stats; stat; stat = stat->next) {
        tnf_str name;
        tnf_value value;
        bool renamed;
        m.n = 0;
        TNF_TRY(stat_name(s, &name, p, stat, names, &renamed, e));
        if (path)
            add_mark(&m, "primitiv.path", *path);
        TNF_TRY(tnf_text_value(s->r, &value, stat->key, e));
        add_mark(&m, "primitiv.stat", value);
        if (!p->sorted) /* sorting tensors by name would lose this order */
            add_mark(&m, "primitiv.order", u32_value(place++));
        if (renamed) {
            TNF_TRY(tnf_text_value(s->r, &value, p->name, e));
            add_mark(&m, "primitiv.of", value);
        }
        TNF_TRY(list_tensor(s, name, &stat->t, &m, e));
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------ files */

static tnf_status index_shape(prim_scan *s, tnf_error *e)
{
    prim_shape shape;
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_shape, &shape, e));
    tnf_value *dims = tnf_arena_array(s->r->arena, shape.rank, sizeof *dims);
    if (!dims)
        return tnf_arena_fail(s->r->arena, "attributes", e);
    for (uint32_t i = 0; i < shape.rank; i++)
        dims[i] = u32_value(shape.dims[i]);
    tnf_value array = { .kind = TNF_ARRAY, .n = shape.rank, .as.items = dims };
    TNF_TRY(tnf_set_attr(s->r, "primitiv.dims", array, e));
    return tnf_set_attr(s->r, "primitiv.batch", u32_value(shape.batch), e);
}

static tnf_status index_tensor(prim_scan *s, tnf_error *e)
{
    struct tensor t;
    struct marks m = { .n = 0 };
    TNF_TRY(read_tensor(s, &t, e));
    return list_tensor(s, (tnf_str) { PRIM_VALUE, sizeof PRIM_VALUE - 1 }, &t, &m, e);
}

static tnf_status index_parameter(prim_scan *s, tnf_error *e)
{
    tnf_keys names;
    struct param p = { .name = { PRIM_VALUE, sizeof PRIM_VALUE - 1 } };
    tnf_keys_init(&names, s->r->scratch);
    TNF_TRY(read_parameter(s, &p, e));
    return list_parameter(s, &p, NULL, &names, e);
}

/* A parameter of a model, after its path. */
static tnf_status read_entry(prim_scan *s, struct param *p, tnf_error *e)
{
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_path, NULL, e));
    TNF_TRY(tnf_buf_status(&s->name, "the name", e));
    TNF_TRY(keep_bytes(s, &p->name, s->name.n ? (const void *)s->name.p : "", s->name.n, e));
    return read_parameter(s, p, e);
}

/* Reads all parameters; the list begins with the last. */
static tnf_status read_model(prim_scan *s, struct param **out, tnf_error *e)
{
    uint32_t n;
    *out = NULL;
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_u32, &n, e));
    tnf_trace(s->r, s->at, "%lu parameters", (unsigned long)n);
    for (uint32_t i = 0; i < n; i++) {
        struct param *p = tnf_arena_alloc(s->r->scratch, sizeof *p);
        if (!p)
            return tnf_arena_fail(s->r->scratch, "parameters", e);
        p->at = s->at;
        tnf_status status = read_entry(s, p, e);
        if (status != TNF_OK && i > 0 && tnf_lose(s->r, status, e)) {
            s->torn = true;
            return TNF_OK;
        }
        TNF_TRY(status);
        p->next = *out;
        *out = p;
    }
    return TNF_OK;
}

static tnf_status index_model(prim_scan *s, tnf_error *e)
{
    tnf_keys names;
    struct param *backwards, *all = NULL;
    tnf_keys_init(&names, s->r->scratch);
    TNF_TRY(read_model(s, &backwards, e));
    while (backwards) {
        struct param *p = backwards;
        bool twice;
        backwards = p->next;
        TNF_TRY(tnf_keys_add(&names, p->name, &twice, e));
        if (twice) {
            tnf_warn(s->r, p->at, "the parameter %s occurs twice; the later one is used",
                     TNF_QUOTED(p->name));
            continue;
        }
        p->next = all;
        all = p;
    }
    for (; all; all = all->next) {
        tnf_value path;
        TNF_TRY(path_value(&path, s, all->name, e));
        TNF_TRY(list_parameter(s, all, &path, &names, e));
    }
    return TNF_OK;
}

/* Reads one map of an optimizer onto the tree's stack. *odd: a key is not UTF-8. */
static tnf_status read_pairs(prim_scan *s, tnf_tree *tree, bool floats, bool *odd, tnf_error *e)
{
    uint64_t n;
    tnf_keys keys;
    tnf_keys_init(&keys, s->r->scratch);
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_map, &n, e));
    for (uint64_t i = 0; i < n; i++) {
        tnf_str key;
        bool twice;
        uint64_t at = s->at;
        uint32_t u = 0;
        tnf_value k, v = { .kind = TNF_FLOAT, .dtype = TNF_F32 };
        TNF_TRY(tnf_prim_pull(s, tnf_prim_take_str, &key, e));
        TNF_TRY(tnf_text_value(s->r, &k, key, e));
        TNF_TRY(floats ? tnf_prim_pull(s, tnf_prim_take_f32, &v.as.f32, e)
                       : tnf_prim_pull(s, tnf_prim_take_u32, &u, e));
        TNF_TRY(tnf_keys_add(&keys, (tnf_str) { k.as.s, k.n }, &twice, e));
        if (twice) {
            tnf_warn(s->r, at, "the key %s occurs twice; the first one is used",
                     TNF_QUOTED(((tnf_str) { k.as.s, k.n })));
            continue;
        }
        if (!floats)
            v = u32_value(u);
        *odd = *odd || k.kind != TNF_STRING;
        TNF_TRY(tnf_tree_push(tree, &k, e));
        TNF_TRY(tnf_tree_push(tree, &v, e));
    }
    return TNF_OK;
}

static tnf_status read_configs(prim_scan *s, tnf_tree *tree, bool floats, tnf_error *e)
{
    tnf_value map, pairs;
    bool odd = false;
    size_t mark_of_map = tnf_tree_mark(tree);
    TNF_TRY(read_pairs(s, tree, floats, &odd, e));
    if (odd) {
        TNF_TRY(tnf_tree_pairs(tree, mark_of_map, &pairs, e));
        TNF_TRY(tnf_tree_wrap(tree, "$pairs", &pairs, &map, e));
    } else {
        TNF_TRY(tnf_tree_map(tree, mark_of_map, &map, e));
    }
    return tnf_set_attr(s->r, floats ? "primitiv.float_configs" : "primitiv.uint_configs", map, e);
}

static tnf_status index_optimizer(prim_scan *s, tnf_error *e)
{
    tnf_tree tree;
    tnf_tree_init(&tree, s->r->arena);
    tnf_status status = read_configs(s, &tree, false, e);
    if (status == TNF_OK)
        status = read_configs(s, &tree, true, e);
    tnf_tree_free(&tree);
    return status;
}

static tnf_status read_header(prim_scan *s, prim_type *type, tnf_error *e)
{
    uint32_t major, minor, code;
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_u32, &major, e));
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_u32, &minor, e));
    if (major != 0 || minor != 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, 0, "version %lu.%lu is not supported; 0.1 is",
                        (unsigned long)major, (unsigned long)minor);
    uint64_t at = s->at;
    TNF_TRY(tnf_prim_pull(s, tnf_prim_take_u32, &code, e));
    if (code % 0x100 != 0 || code / 0x100 >= PRIM_TYPES)
        return tnf_fail(e, TNF_EUNSUPPORTED, at,
                        "unknown data type 0x%lx; 0, 0x100, 0x200, 0x300 and 0x400 are supported",
                        (unsigned long)code);
    *type = (prim_type)(code / 0x100);
    s->r->version = "0.1";
    return TNF_OK;
}

static tnf_status index_all(prim_scan *s, tnf_error *e)
{
    static tnf_status (*const index[PRIM_TYPES])(prim_scan *, tnf_error *) = {
        index_shape, index_tensor, index_parameter, index_model, index_optimizer
    };
    prim_type type;
    TNF_TRY(read_header(s, &type, e));
    const char *name = tnf_prim_type_names[type];
    tnf_trace(s->r, s->at, "a %s", name);
    TNF_TRY(tnf_set_attr(s->r, "primitiv.type", tnf_value_string(name), e));
    TNF_TRY(index[type](s, e));
    if (s->odd_at != TNF_NO_OFFSET)
        tnf_warn(s->r, s->odd_at,
                 "an integer is not written as 0xce and four bytes: primitiv refuses the file");
    uint64_t rest = s->r->source->size - s->at;
    if (rest == 0 || s->torn)
        return TNF_OK;
    tnf_warn(s->r, s->at, "%s the %s", TNF_BYTES_FOLLOW(rest), name);
    return tnf_add_extra(s->r, PRIM_TRAILING, s->at, rest, e);
}

tnf_status tnf_prim_index(tnf_reader *r, tnf_error *e)
{
    prim_scan s = { .r = r, .odd_at = TNF_NO_OFFSET };
    tnf_buf_init(&s.name, &r->arena->alloc, r->limits.header_bytes);
    tnf_status status = index_all(&s, e);
    tnf_buf_free(&s.name);
    return status;
}
