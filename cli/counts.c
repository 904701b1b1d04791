/* SPDX-License-Identifier: MIT */
/* Statistics of a tensor's values, as JSON and as text. */
#include "out.h"

static bool is_integer(const tnf_object *o)
{
    tnf_number kind = o->parts[0].type->number;
    return kind == TNF_NUMBER_INT || kind == TNF_NUMBER_UINT || kind == TNF_NUMBER_BOOL;
}

/* Both halves of an integer of 128 bits, as which any integer can be shown. */
static void whole_text(char out[TNF_INTEGER_TEXT], bool is_signed, uint64_t low, uint64_t upper)
{
    unsigned char number[16];
    for (unsigned i = 0; i < 8; i++) {
        number[i] = (unsigned char)(low >> 8 * i);
        number[8 + i] = (unsigned char)(upper >> 8 * i);
    }
    tnf_type_integer(out, TNF_INTEGER_TEXT, tnf_type_named(is_signed ? "i128" : "u128"), number, 0);
}

void number_range(char min[TNF_INTEGER_TEXT], char max[TNF_INTEGER_TEXT], const tnf_object *o,
                  const tnf_value_counts *c)
{
    bool is_signed = o->parts[0].type->number == TNF_NUMBER_INT;
    if (is_integer(o)) {
        whole_text(min, is_signed, c->min_integer, c->min_upper);
        whole_text(max, is_signed, c->max_integer, c->max_upper);
    } else {
        number_f64(min, c->min);
        number_f64(max, c->max);
    }
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
        char min[TNF_INTEGER_TEXT], max[TNF_INTEGER_TEXT];
        number_range(min, max, o, c);
        json_key(j, "min");
        json_digits(j, min);
        json_key(j, "max");
        json_digits(j, max);
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
