/* SPDX-License-Identifier: MIT */
/* Decides what a primitiv file can hold: each tensor alone, then all in relation. Every loss is
 * found here, before a byte is written; the writer relies on it.
 */
#include "formats/primitiv/primitiv.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ single tensors */

tnf_fate tnf_prim_takes(const tnf_object *o, const char **reason)
{
    const tnf_value *stat = tnf_value_get(o->attrs, "primitiv.stat");
    const tnf_value *batch = tnf_value_get(o->attrs, "primitiv.batch");
    uint32_t n = tnf_prim_dims_of(o);
    uint64_t b;
    *reason = "the format supports only column-major order";
    if (o->rank > 1 && o->order != TNF_ORDER_F)
        return TNF_DROPPED;
    *reason = "the format allows at most 8 dimensions";
    if (n > PRIM_MAX_DIMS)
        return TNF_DROPPED;
    *reason = "the format cannot store empty tensors";
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->shape[i] == 0)
            return TNF_DROPPED;
    *reason = "the format cannot store tensors of 4 GiB or more";
    if (o->parts[0].nbytes > UINT32_MAX)
        return TNF_DROPPED;
    *reason = "its primitiv.stat is not the key of a statistic";
    if (stat && !tnf_value_chars(stat).p)
        return TNF_DROPPED;
    *reason = "its primitiv.batch is not its last dimension";
    if (batch && (!tnf_value_whole(&b, batch) || b != tnf_prim_batch_of(o)))
        return TNF_DROPPED;
    *reason = "trailing dimensions of 1 are dropped";
    if (n > 0 && o->shape[n - 1] == 1)
        return TNF_TRANSFORMED;
    *reason = "";
    return TNF_NATIVE;
}

/* ---------------------------------------------------------------- the type */

/* The content to be written. */
struct content {
    size_t values, stats;
    bool configs, shape;
    const tnf_object *value; /* the first */
    tnf_str said;            /* primitiv.type */
};

static struct content content_of(const tnf_catalog *c, const tnf_fit *fit)
{
    struct content k = { .said = tnf_value_chars(tnf_catalog_attr(c, "primitiv.type")) };
    k.configs = tnf_catalog_attr(c, "primitiv.uint_configs") ||
                tnf_catalog_attr(c, "primitiv.float_configs");
    k.shape = tnf_catalog_attr(c, "primitiv.dims") || tnf_catalog_attr(c, "primitiv.batch");
    for (size_t i = c->n; i-- > 0;) {
        if (fit && fit->objects[i].fate == TNF_DROPPED)
            continue;
        if (tnf_prim_is_stat(&c->objects[i])) {
            k.stats++;
        } else {
            k.values++;
            k.value = &c->objects[i];
        }
    }
    return k;
}

static bool holds_type(const struct content *k, prim_type type)
{
    if ((k->configs && type != PRIM_OPTIMIZER) || (k->shape && type != PRIM_SHAPE))
        return false;
    switch (type) {
    case PRIM_TENSOR:
        return k->values == 1 && k->stats == 0 && tnf_str_is(k->value->name, PRIM_VALUE);
    case PRIM_PARAMETER:
        return k->values == 1 && tnf_str_is(k->value->name, PRIM_VALUE);
    case PRIM_MODEL:
        return true;
    default:
        return k->values == 0 && k->stats == 0;
    }
}

prim_type tnf_prim_type_for(const tnf_catalog *c, const tnf_option_value *options,
                            const tnf_fit *fit)
{
    const struct content k = content_of(c, fit);
    if (options[PRIM_OPTION_TYPE].u != PRIM_TYPE_AUTO)
        return (prim_type)(options[PRIM_OPTION_TYPE].u - 1);
    for (unsigned t = 0; t < PRIM_TYPES; t++)
        if (tnf_str_is(k.said, tnf_prim_type_names[t]) && holds_type(&k, (prim_type)t))
            return (prim_type)t;
    if (k.configs && holds_type(&k, PRIM_OPTIMIZER))
        return PRIM_OPTIMIZER;
    return k.shape && holds_type(&k, PRIM_SHAPE) ? PRIM_SHAPE : PRIM_MODEL;
}

/* -------------------------------------------------------------- attributes */

static tnf_verdict fit_configs(const tnf_value *map, bool floats)
{
    const prim_configs all = tnf_prim_configs_of(map);
    bool ok = all.from != NULL, changed = false;
    for (size_t i = 0; ok && i < all.n; i++) {
        prim_config c;
        uint32_t u;
        float f;
        bool rounded = false;
        ok = tnf_prim_config_at(&c, &all, i) && (floats ? tnf_prim_config_f32(c.value, &f, &rounded)
                                                        : tnf_prim_config_u32(c.value, &u));
        changed = changed || rounded;
    }
    if (!ok)
        return (tnf_verdict) { TNF_DROPPED, floats
                                                ? "it is not a map of text to numbers"
                                                : "it is not a map of text to whole numbers of 32 "
                                                  "bits" };
    return changed ? (tnf_verdict) { TNF_TRANSFORMED, "numbers are rounded to 32 bits" }
                   : (tnf_verdict) { TNF_NATIVE, "" };
}

static bool is_type_name(const tnf_value *v)
{
    for (unsigned t = 0; t < PRIM_TYPES; t++)
        if (tnf_str_is(tnf_value_chars(v), tnf_prim_type_names[t]))
            return true;
    return false;
}

static tnf_verdict fit_attr(const tnf_catalog *c, const tnf_member *m, prim_type type)
{
    static const tnf_verdict fine = { TNF_NATIVE, "" };
    bool uints = tnf_str_is(m->key, "primitiv.uint_configs");
    if (uints || tnf_str_is(m->key, "primitiv.float_configs"))
        return type == PRIM_OPTIMIZER
                   ? fit_configs(&m->value, !uints)
                   : (tnf_verdict) { TNF_DROPPED, "only an optimizer has configs" };
    if (tnf_str_is(m->key, "primitiv.dims") || tnf_str_is(m->key, "primitiv.batch")) {
        prim_dims shape;
        if (type != PRIM_SHAPE)
            return (tnf_verdict) { TNF_DROPPED,
                                   "only a file of the kind shape has dimensions of its own" };
        return tnf_prim_shape_of(&shape, tnf_catalog_attr(c, "primitiv.dims"),
                                 tnf_catalog_attr(c, "primitiv.batch"))
                   ? fine
                   : (tnf_verdict) { TNF_DROPPED, "it is not a shape: up to 8 dimensions of 1 or "
                                                  "more" };
    }
    if (tnf_str_is(m->key, "primitiv.type") && !is_type_name(&m->value))
        return (tnf_verdict) { TNF_DROPPED, "unknown kind of file" };
    return fine;
}

/* ----------------------------------------------------------------- tensors */

static void drop_object(tnf_fit *fit, size_t i, const char *why)
{
    fit->objects[i] = (tnf_verdict) { TNF_DROPPED, why };
}

/* Judges a tensor that is not a statistic. *taken: the file's only place for a tensor is in use. */
static void fit_value(tnf_fit *fit, size_t i, prim_type type, bool *taken)
{
    const tnf_object *o = &fit->catalog->objects[i];
    if (type == PRIM_SHAPE || type == PRIM_OPTIMIZER)
        drop_object(fit, i, "a file of this kind has no tensors");
    else if (type != PRIM_TENSOR && tnf_prim_batch_of(o) > 1)
        drop_object(fit, i, "a parameter cannot have a batch");
    else if (type != PRIM_MODEL && *taken)
        drop_object(fit, i, "a file of this kind has only one tensor");
    else if (type != PRIM_MODEL && !tnf_str_is(o->name, PRIM_VALUE))
        fit->objects[i] = (tnf_verdict) { TNF_TRANSFORMED,
                                          "a file of this kind does not store its name" };
    *taken = *taken || fit->objects[i].fate != TNF_DROPPED;
}

/* Judges a statistic, after all values were judged. */
static void fit_stat(tnf_fit *fit, size_t i, prim_type type)
{
    const tnf_catalog *c = fit->catalog;
    tnf_str name = tnf_prim_owner_of(&c->objects[i]);
    const tnf_object *owner = name.p ? tnf_catalog_find(c, name.p, name.n) : NULL;
    const tnf_verdict *found = owner ? &fit->objects[owner - c->objects] : NULL;
    if (type != PRIM_PARAMETER && type != PRIM_MODEL)
        drop_object(fit, i, "a file of this kind has no statistics");
    else if (!found || found->fate == TNF_DROPPED || tnf_prim_is_stat(owner))
        drop_object(fit, i, "its parameter is missing");
    else if (type == PRIM_PARAMETER && !tnf_str_is(name, PRIM_VALUE))
        fit->objects[i] = (tnf_verdict) { TNF_TRANSFORMED,
                                          "a file of this kind does not store its name" };
}

static int by_owner_and_key(const void *a, const void *b)
{
    const tnf_object *x = *(const tnf_object *const *)a, *y = *(const tnf_object *const *)b;
    int c = tnf_str_compare(tnf_prim_owner_of(x), tnf_prim_owner_of(y));
    if (c == 0)
        c = tnf_str_compare(tnf_value_chars(tnf_value_get(x->attrs, "primitiv.stat")),
                            tnf_value_chars(tnf_value_get(y->attrs, "primitiv.stat")));
    return c ? c : x < y ? -1 : x > y;
}

/* If a parameter has several statistics with the same key, only the first would be read. */
static tnf_status fit_keys(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    const tnf_object **stats = tnf_arena_array(fit->scratch, c->n, sizeof *stats);
    size_t n = 0;
    if (!stats)
        return tnf_arena_fail(fit->scratch, "statistics", e);
    for (size_t i = 0; i < c->n; i++)
        if (tnf_prim_is_stat(&c->objects[i]) && fit->objects[i].fate != TNF_DROPPED)
            stats[n++] = &c->objects[i];
    if (n > 1)
        qsort(stats, n, sizeof *stats, by_owner_and_key);
    for (size_t i = 1; i < n; i++)
        if (tnf_str_compare(tnf_prim_owner_of(stats[i]), tnf_prim_owner_of(stats[i - 1])) == 0 &&
            tnf_str_compare(tnf_value_chars(tnf_value_get(stats[i]->attrs, "primitiv.stat")),
                            tnf_value_chars(tnf_value_get(stats[i - 1]->attrs, "primitiv.stat"))) ==
                0)
            drop_object(fit, (size_t)(stats[i] - c->objects),
                        "another statistic of the parameter has the same key");
    return TNF_OK;
}

tnf_status tnf_prim_fits(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    prim_type type = tnf_prim_type_for(c, fit->options, fit);
    bool taken = false;
    for (size_t i = 0; i < c->attrs.n; i++)
        fit->attrs[i] = fit_attr(c, &c->attrs.members[i], type);
    for (size_t i = 0; i < c->n; i++)
        if (fit->objects[i].fate != TNF_DROPPED && !tnf_prim_is_stat(&c->objects[i]))
            fit_value(fit, i, type, &taken);
    for (size_t i = 0; i < c->n; i++)
        if (fit->objects[i].fate != TNF_DROPPED && tnf_prim_is_stat(&c->objects[i]))
            fit_stat(fit, i, type);
    return fit_keys(fit, e);
}
