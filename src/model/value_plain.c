/* SPDX-License-Identifier: MIT */
/* Values from the caller's memory, and exact conversion of values to plain C types. */
#include <tenfold/value.h>

#include <math.h>
#include <string.h>

#define TWO_63 9223372036854775808.0
#define TWO_64 18446744073709551616.0

/* ------------------------------------------------------------------- make */

tnf_value tnf_value_int(int64_t i)
{
    return (tnf_value) { .kind = TNF_INT, .dtype = TNF_I64, .as.i = i };
}

tnf_value tnf_value_float(double f)
{
    return (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = f };
}

tnf_value tnf_value_text(const char *s, size_t n)
{
    return (tnf_value) { .kind = TNF_STRING, .n = n, .as.s = s };
}

tnf_value tnf_value_bytes(const void *bytes, size_t n)
{
    return (tnf_value) { .kind = TNF_BYTES, .n = n, .as.s = bytes };
}

tnf_value tnf_value_json(const char *json, size_t n)
{
    return (tnf_value) { .kind = TNF_JSON, .n = n, .as.s = json };
}

tnf_value tnf_value_array(const tnf_value *items, size_t n)
{
    return (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = items };
}

tnf_value tnf_value_map(const tnf_member *members, size_t n)
{
    return (tnf_value) { .kind = TNF_MAP, .n = n, .as.members = members };
}

tnf_member tnf_member_of(const char *key, tnf_value value)
{
    return (tnf_member) { .key = { key, key ? strlen(key) : 0 }, .value = value };
}

/* -------------------------------------------------------------------- get */

static double float_of(const tnf_value *v)
{
    return v->dtype == TNF_F32 ? (double)v->as.f32 : v->as.f64;
}

bool tnf_value_as_bool(bool *out, const tnf_value *v)
{
    if (!v || v->kind != TNF_BOOL)
        return false;
    *out = v->as.b;
    return true;
}

bool tnf_value_as_int(int64_t *out, const tnf_value *v)
{
    if (v && v->kind == TNF_INT) {
        *out = v->as.i;
        return true;
    }
    if (v && v->kind == TNF_UINT && v->as.u <= INT64_MAX) {
        *out = (int64_t)v->as.u;
        return true;
    }
    double f = v && v->kind == TNF_FLOAT ? float_of(v) : NAN;
    if (!(f >= -TWO_63 && f < TWO_63) || f != floor(f))
        return false;
    *out = (int64_t)f;
    return true;
}

bool tnf_value_as_uint(uint64_t *out, const tnf_value *v)
{
    if (v && v->kind == TNF_UINT) {
        *out = v->as.u;
        return true;
    }
    if (v && v->kind == TNF_INT && v->as.i >= 0) {
        *out = (uint64_t)v->as.i;
        return true;
    }
    double f = v && v->kind == TNF_FLOAT ? float_of(v) : NAN;
    if (!(f >= 0 && f < TWO_64) || f != floor(f))
        return false;
    *out = (uint64_t)f;
    return true;
}

bool tnf_value_as_float(double *out, const tnf_value *v)
{
    double f;
    if (v && v->kind == TNF_FLOAT) {
        *out = float_of(v);
        return true;
    }
    if (v && v->kind == TNF_INT) {
        f = (double)v->as.i;
        if (f >= TWO_63 || (int64_t)f != v->as.i)
            return false;
    } else if (v && v->kind == TNF_UINT) {
        f = (double)v->as.u;
        if (f >= TWO_64 || (uint64_t)f != v->as.u)
            return false;
    } else {
        return false;
    }
    *out = f;
    return true;
}

bool tnf_value_as_text(tnf_str *out, const tnf_value *v)
{
    if (!v || v->kind != TNF_STRING)
        return false;
    *out = (tnf_str) { v->as.s, v->n };
    return true;
}

const tnf_value *tnf_value_item(const tnf_value *array, size_t i)
{
    return array && array->kind == TNF_ARRAY && array->as.items && i < array->n
               ? &array->as.items[i]
               : NULL;
}
