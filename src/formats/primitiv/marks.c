/* SPDX-License-Identifier: MIT */
/* Reads the attributes of tensors and files: see marks.h. */
#include "formats/primitiv/marks.h"
#include "model/value.h"

#include <string.h>

bool tnf_prim_is_stat(const tnf_object *o)
{
    return tnf_value_chars(tnf_value_get(o->attrs, "primitiv.stat")).p != NULL;
}

uint64_t tnf_prim_batch_of(const tnf_object *o)
{
    uint64_t batch;
    bool has = tnf_value_whole(&batch, tnf_value_get(o->attrs, "primitiv.batch")) && batch > 1;
    return has && o->rank > 0 && o->shape[o->rank - 1] == batch ? batch : 1;
}

uint32_t tnf_prim_dims_of(const tnf_object *o)
{
    return o->rank - (tnf_prim_batch_of(o) > 1);
}

tnf_str tnf_prim_owner_of(const tnf_object *o)
{
    tnf_str of = tnf_value_chars(tnf_value_get(o->attrs, "primitiv.of"));
    tnf_str key = tnf_value_chars(tnf_value_get(o->attrs, "primitiv.stat"));
    if (of.p)
        return of;
    if (!key.p || o->name.n <= key.n || memcmp(o->name.p + o->name.n - key.n, key.p, key.n) != 0 ||
        o->name.p[o->name.n - key.n - 1] != '@')
        return (tnf_str) { 0 };
    return (tnf_str) { o->name.p, o->name.n - key.n - 1 };
}

/* ------------------------------------------------------------------ configs */

prim_configs tnf_prim_configs_of(const tnf_value *map)
{
    const tnf_value *pairs = tnf_value_get(map, "$pairs");
    bool other = pairs && pairs->kind == TNF_ARRAY && map->n == 1;
    if (!map || (map->kind != TNF_MAP && !other))
        return (prim_configs) { 0 };
    return (prim_configs) { other ? pairs : map, other ? pairs->n : map->n };
}

bool tnf_prim_config_at(prim_config *out, const prim_configs *all, size_t i)
{
    if (all->from->kind == TNF_MAP) {
        *out = (prim_config) { all->from->as.members[i].key, &all->from->as.members[i].value };
        return true;
    }
    const tnf_value *pair = &all->from->as.items[i];
    if (pair->kind != TNF_ARRAY || pair->n != 2)
        return false;
    *out = (prim_config) { tnf_value_chars(&pair->as.items[0]), &pair->as.items[1] };
    return out->key.p != NULL;
}

bool tnf_prim_config_u32(const tnf_value *v, uint32_t *out)
{
    uint64_t u;
    if (!tnf_value_whole(&u, v) || u > UINT32_MAX)
        return false;
    *out = (uint32_t)u;
    return true;
}

bool tnf_prim_config_f32(const tnf_value *v, float *out, bool *rounded)
{
    *rounded = false;
    if (v->kind == TNF_FLOAT && v->dtype == TNF_F32) {
        *out = v->as.f32;
        return true;
    }
    if (v->kind == TNF_FLOAT) {
        *out = (float)v->as.f64;
        *rounded = (double)*out != v->as.f64;
    } else if (v->kind == TNF_INT) {
        *out = (float)v->as.i;
        *rounded = !(*out < 0x1p63f) || (int64_t)*out != v->as.i;
    } else if (v->kind == TNF_UINT) {
        *out = (float)v->as.u;
        *rounded = !(*out < 0x1p64f) || (uint64_t)*out != v->as.u;
    }
    return v->kind == TNF_FLOAT || v->kind == TNF_INT || v->kind == TNF_UINT;
}

bool tnf_prim_shape_of(prim_dims *out, const tnf_value *dims, const tnf_value *batch)
{
    *out = (prim_dims) { .batch = 1 };
    if (!dims || dims->kind != TNF_ARRAY || dims->n > PRIM_MAX_DIMS ||
        (batch && !tnf_value_whole(&out->batch, batch)) || out->batch == 0 ||
        out->batch > UINT32_MAX)
        return false;
    out->n = (uint32_t)dims->n;
    for (uint32_t i = 0; i < out->n; i++)
        if (!tnf_value_whole(&out->dims[i], &dims->as.items[i]) || out->dims[i] == 0 ||
            out->dims[i] > UINT32_MAX)
            return false;
    return true;
}
