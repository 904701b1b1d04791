/* SPDX-License-Identifier: MIT */
/* Statistics of a tensor's values, as JSON and as text. */
#include "out.h"
#include <inttypes.h>

static bool is_integer(const tnf_object *o)
{
    tnf_number kind = o->parts[0].type->number;
    return kind == TNF_NUMBER_INT || kind == TNF_NUMBER_UINT || kind == TNF_NUMBER_BOOL;
}

void number_bound(char out[NUMBER_TEXT], const tnf_object *o, double x, uint64_t integer)
{
    if (!is_integer(o))
        number_f64(out, x);
    else if (o->parts[0].type->number == TNF_NUMBER_INT)
        snprintf(out, NUMBER_TEXT, "%" PRId64, (int64_t)integer);
    else
        snprintf(out, NUMBER_TEXT, "%" PRIu64, integer);
}

static void put_bound(json *j, const char *key, const tnf_object *o, double x, uint64_t integer)
{
    json_key(j, key);
    if (!is_integer(o))
        json_f64(j, x);
    else if (o->parts[0].type->number == TNF_NUMBER_INT)
        json_int(j, (int64_t)integer);
    else
        json_uint(j, integer);
}

void json_counts(json *j, const tnf_object *o, const tnf_value_counts *c)
{
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = { { "elements", c->elements },
                   { "nan", c->nan },
                   { "inf", c->inf },
                   { "zero", c->zero },
                   { "subnormal", c->subnormal } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_key(j, counts[i].key);
        json_uint(j, counts[i].n);
    }
    if (c->elements > c->nan + c->inf) {
        put_bound(j, "min", o, c->min, c->min_integer);
        put_bound(j, "max", o, c->max, c->max_integer);
        json_key(j, "mean");
        json_f64(j, c->mean);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const keys[] = { "min", "max", "mean" };
        json_key(j, keys[i]);
        json_null(j);
    }
}
