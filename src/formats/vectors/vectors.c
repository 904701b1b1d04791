/* SPDX-License-Identifier: MIT */
#include "formats/vectors/vectors.h"

#include <string.h>

const vec_kind *tnf_vec_by_extension(const vec_kind *kinds, const char *ext)
{
    size_t n = strlen(ext);
    for (const vec_kind *k = kinds; k->name; k++) {
        bool same = strcmp(k->name, ext) == 0;
        bool one = strlen(k->name) == n + 1 && n > 3 && strncmp(k->name, ext, n) == 0; /* .fvec */
        if (k->known && (same || (one && k->name[n] == 's')))
            return k;
    }
    return NULL;
}

bool tnf_vec_extension(const char *ext)
{
    return tnf_list_has("fvecs ivecs bvecs fvec ivec bvec fbin u8bin i8bin ibin f16bin hbin bin",
                        ext);
}

const vec_kind *tnf_vec_by_type(const vec_kind *kinds, const char *type)
{
    for (const vec_kind *k = kinds; k->name; k++)
        if (strcmp(k->type, type) == 0)
            return k;
    return NULL;
}

bool tnf_vec_is_pair(const tnf_object *ids, const tnf_object *d)
{
    return tnf_str_is(ids->name, VEC_NAME) && tnf_str_is(d->name, VEC_DISTANCES) &&
           ids->rank == 2 && d->rank == 2 && ids->nparts == 1 && d->nparts == 1 &&
           ids->parts->type == tnf_type_of(TNF_I32) && d->parts->type == tnf_type_of(TNF_F32) &&
           memcmp(ids->shape, d->shape, 2 * sizeof *d->shape) == 0 && ids->shape[0] > 0 &&
           ids->shape[1] > 0;
}

static tnf_verdict judge_tensor(const tnf_object *o, const tnf_fit *fit, const vec_rules *rules,
                                const char *type)
{
    const vec_kind *told = tnf_vec_by_type(rules->kinds, type);
    bool one = o->rank == 1;
    if (!told)
        told = tnf_vec_by_extension(rules->kinds, fit->extension);
    if (o->rank != 1 && o->rank != 2)
        return (tnf_verdict) { TNF_DROPPED, "the format holds a matrix, a vector in each row" };
    const vec_kind *own = tnf_vec_by_type(rules->kinds, o->parts->type->id);
    if (!told && !(own && own->known))
        return (tnf_verdict) { TNF_DROPPED, "no extension has this type: use -o type=…" };
    if (!rules->empty && (o->shape[0] == 0 || o->shape[o->rank - 1] == 0))
        return (tnf_verdict) { TNF_DROPPED, "the format cannot hold an empty matrix" };
    if (o->shape[o->rank - 1] == 0 && (o->rank == 1 || o->shape[0] > 0))
        return (tnf_verdict) { TNF_DROPPED, "the format cannot hold vectors without elements" };
    if (told && strcmp(told->type, o->parts->type->id) != 0)
        return (tnf_verdict) { TNF_DROPPED, rules->other };
    if (!told && !rules->guessed(o))
        return (tnf_verdict) { TNF_TRANSFORMED, rules->untold };
    if (one)
        return (tnf_verdict) { TNF_TRANSFORMED, "a single vector becomes a matrix of one row" };
    if (!tnf_str_is(o->name, VEC_NAME))
        return (tnf_verdict) { TNF_TRANSFORMED,
                               "the format stores no name: the tensor is read back as " VEC_NAME };
    return (tnf_verdict) { TNF_NATIVE, "" };
}

/* Chooses the tensor to write: `vectors`, or else the first possible one. SIZE_MAX: none. */
static size_t choose_one(const tnf_fit *fit, const vec_rules *rules, const char *type)
{
    const tnf_catalog *c = fit->catalog;
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (fit->objects[i].fate == TNF_DROPPED || tnf_is_filler(o) ||
            judge_tensor(o, fit, rules, type).fate == TNF_DROPPED)
            continue;
        if (tnf_str_is(o->name, VEC_NAME))
            return i;
        found = found == SIZE_MAX ? i : found;
    }
    return found;
}

/* Finds the distances that go with the ids of ground truth. SIZE_MAX: none. */
static size_t find_pair(const tnf_fit *fit, size_t taken)
{
    const tnf_catalog *c = fit->catalog;
    for (size_t i = 0; taken != SIZE_MAX && i < c->n; i++)
        if (fit->objects[i].fate != TNF_DROPPED &&
            tnf_vec_is_pair(&c->objects[taken], &c->objects[i]))
            return i;
    return SIZE_MAX;
}

tnf_status tnf_vec_fits(tnf_fit *fit, const vec_rules *rules, const char *type)
{
    const tnf_catalog *c = fit->catalog;
    size_t taken = choose_one(fit, rules, type);
    size_t pair = rules->pairs ? find_pair(fit, taken) : SIZE_MAX;
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (fit->objects[i].fate == TNF_DROPPED || tnf_is_filler(o))
            continue;
        tnf_verdict v = judge_tensor(o, fit, rules, type);
        if (pair != SIZE_MAX && (i == taken || i == pair))
            v = (tnf_verdict) { TNF_NATIVE, "" };
        else if (i != taken && v.fate != TNF_DROPPED)
            v = (tnf_verdict) { TNF_DROPPED, rules->lone };
        if (v.fate > fit->objects[i].fate)
            fit->objects[i] = v;
    }
    return TNF_OK;
}
