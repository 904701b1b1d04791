/* SPDX-License-Identifier: MIT */
/* Compares models: does a file contain everything of another? Names, shapes, types, bytes,
 * attributes. */
#ifndef TNF_SUPPORT_MODEL_H
#define TNF_SUPPORT_MODEL_H

#include "core/core.h"
#include "open.h"

static inline void model_check_parts(const tnf_part *p, const tnf_part *q, const char *name)
{
    tnf_status s, t;
    if (!CHECK(q != NULL, "'%s': part %s is gone", name, p->role))
        return;
    CHECK(strcmp(p->type->id, q->type->id) == 0, "'%s': type %s became %s", name, p->type->id,
          q->type->id);
    if (!CHECK(p->nbytes == q->nbytes, "'%s': %llu bytes became %llu", name,
               (unsigned long long)p->nbytes, (unsigned long long)q->nbytes))
        return;
    if (p->flags & q->flags & TNF_PART_UNREADABLE) /* a shape without bytes in both */
        return;
    uint8_t *x = read_part(p, &s), *y = read_part(q, &t);
    CHECK(x && y && memcmp(x, y, (size_t)p->nbytes) == 0, "'%s': other bytes (%s, %s)", name,
          tnf_status_name(s), tnf_status_name(t));
    free(x);
    free(y);
}

/* Is the text map of one family, "p.metadata", inside that of another, "q.metadata"? Formats with
 * such a map take over each other's pairs. */
static inline bool model_has_pairs(const tnf_member *m, const tnf_value *b)
{
    static const char end[] = ".metadata";
    size_t n = sizeof end - 1;
    for (size_t i = 0; i < b->n; i++) {
        const tnf_member *x = &b->as.members[i];
        if (m->key.n < n || x->key.n < n || memcmp(m->key.p + m->key.n - n, end, n) != 0 ||
            memcmp(x->key.p + x->key.n - n, end, n) != 0 || m->value.kind != TNF_MAP)
            continue;
        size_t found = 0;
        for (size_t k = 0; k < m->value.n; k++) {
            const tnf_member *pair = &m->value.as.members[k];
            const tnf_value *v = tnf_value_get_n(&x->value, pair->key.p, pair->key.n);
            found += v && tnf_value_equal(v, &pair->value);
        }
        return found == m->value.n;
    }
    return false;
}

/* Does `b` have all attributes of `a`, except those that readers derive? */
static inline void model_check_attrs(const tnf_value *a, const tnf_value *b, const char *name)
{
    for (size_t i = 0; a && i < a->n; i++) {
        const tnf_member *m = &a->as.members[i];
        const tnf_value *other = tnf_value_get_n(b, m->key.p, m->key.n);
        if (tnf_registry_derives(m) || tnf_registry_spells(m) || (!other && model_has_pairs(m, b)))
            continue;
        if (CHECK(other != NULL, "%s: attribute '%s' is gone", name, m->key.p))
            CHECK(tnf_value_equal(&m->value, other), "%s: attribute '%s' changed", name, m->key.p);
    }
}

/* All elements, row by row, for any order in the file. */
static inline uint8_t *model_rows(const tnf_object *o)
{
    tnf_error error;
    tnf_slice *all = calloc(o->rank + 1u, sizeof *all);
    uint8_t *bytes = malloc((size_t)o->parts->nbytes + 1);
    MUST(all && bytes);
    for (uint32_t d = 0; d < o->rank; d++)
        all[d] = (tnf_slice) { 0, 1, o->shape[d], false };
    CHECK(tnf_read_slice(bytes, (size_t)o->parts->nbytes, o, all, &error) == TNF_OK, "%s",
          error.message);
    free(all);
    return bytes;
}

/* The order may differ if a format has only one; the values must not. */
static inline void model_check_values(const tnf_object *a, const tnf_object *b)
{
    if (!CHECK(a->nparts == 1 && b->nparts == 1 && a->parts->nbytes == b->parts->nbytes,
               "'%s': another size", a->name.p))
        return;
    uint8_t *x = model_rows(a), *y = model_rows(b);
    CHECK(memcmp(x, y, (size_t)a->parts->nbytes) == 0, "'%s': other values", a->name.p);
    free(x);
    free(y);
}

static inline void model_check_objects(const tnf_object *a, const tnf_object *b)
{
    const char *name = a->name.p;
    if (!CHECK(b != NULL, "'%s' is gone", name))
        return;
    CHECK(a->rank == b->rank &&
              (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0),
          "'%s': another shape", name);
    CHECK(strcmp(tnf_layout_id(a->layout), tnf_layout_id(b->layout)) == 0, "'%s': layout %s", name,
          tnf_layout_id(b->layout));
    if (a->order != b->order)
        model_check_values(a, b);
    else if (CHECK(a->nparts == b->nparts, "'%s': %u parts", name, b->nparts))
        for (uint16_t p = 0; p < a->nparts; p++)
            model_check_parts(&a->parts[p], tnf_object_part(b, a->parts[p].role), name);
    model_check_attrs(a->attrs, b->attrs, name);
}

/* A single number for everything. */
static inline void model_check_hash(const tnf_file *a, const tnf_file *b)
{
    uint8_t x[32], y[32];
    tnf_error error;
    tnf_hash_options one = { .size = sizeof one, .threads = 1 };
    tnf_status s = tnf_content_hash(x, a, &one, &error), t = tnf_content_hash(y, b, &one, &error);
    CHECK(s == t, "%s and %s: %s", tnf_status_name(s), tnf_status_name(t), error.message);
    if (s == TNF_OK && t == TNF_OK)
        CHECK(memcmp(x, y, sizeof x) == 0, "another content hash");
}

/* Counts those that the file stores, without derived ones. */
static inline size_t model_tensors(const tnf_file *file)
{
    size_t n = 0;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)) != NULL; i++)
        n += !tnf_is_filler(o);
    return n;
}

/* Is everything of `a` in `b`, and has `b` no other tensors? */
static inline void model_check(const tnf_file *a, const tnf_file *b, bool attrs)
{
    const tnf_info *x = tnf_file_info(a), *y = tnf_file_info(b);
    size_t before = model_tensors(a), after = model_tensors(b);
    CHECK(before == after, "%zu tensors became %zu", before, after);
    for (size_t i = 0; i < x->objects; i++) {
        const tnf_object *o = tnf_at(a, i);
        if (tnf_is_filler(o))
            continue;
        bool hidden = tnf_find_n(a, o->name.p, o->name.n) !=
                      o; /* by another tensor with its name */
        model_check_objects(o, hidden ? tnf_at(b, i) : tnf_find_n(b, o->name.p, o->name.n));
    }
    if (attrs)
        model_check_attrs(x->attrs, y->attrs, "the file");
}

#endif
