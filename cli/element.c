/* SPDX-License-Identifier: MIT */
/* Elements as text. A double holds every type exactly, except integers of 64 and 128 bits, which
 * the library converts to text. */
#include "array.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

bool type_readable(const tnf_type *type)
{
    double number[2];
    static const unsigned char zeros[16];
    return type->number != TNF_NUMBER_OPAQUE && type->bits > 0 && type->bits <= 128 &&
           tnf_type_decode(number, type, zeros, 0, 1);
}

void elements_begin(element_run *e, const tnf_type *type, const void *packed, size_t n)
{
    e->type = type;
    e->packed = packed;
    e->n = n;
    e->from = e->to = 0;
    e->times = NULL;
}

/* The number(s) of element i. */
static const double *decoded_numbers(element_run *e, size_t i)
{
    if (i < e->from || i >= e->to) {
        e->from = i;
        e->to = e->n - i < DECODED ? e->n : i + DECODED;
        tnf_type_decode(e->numbers, e->type, e->packed, i, e->to - i);
    }
    return e->numbers + (i - e->from) * (e->type->number == TNF_NUMBER_COMPLEX ? 2 : 1);
}

static bool is_wide_integer(const tnf_type *type)
{
    return (type->number == TNF_NUMBER_INT || type->number == TNF_NUMBER_UINT) && type->bits >= 64;
}

/* Are a float's digits enough to restore the number? Narrower types are printed exactly, with the
 * digits of a double. */
static bool is_single(const tnf_type *type)
{
    return type->storage == TNF_F32;
}

static void json_float(json *j, const tnf_type *type, double d)
{
    if (is_single(type))
        json_f32(j, (float)d);
    else
        json_f64(j, d);
}

void elements_of(element_run *e, const view *v, const void *packed, size_t n)
{
    uint32_t axes;
    elements_begin(e, v->type, packed, n);
    if (tnf_has_element_text(&axes, &v->object) && axes == 0)
        e->times = &v->object;
}

/* The text of a time; returns 0 if the element is not a time. */
static size_t time_text(const element_run *e, size_t i, char out[ELEMENT_TEXT])
{
    size_t width = e->type->bits / 8;
    size_t n = e->times
                   ? tnf_element_text(out, ELEMENT_TEXT, e->times, e->packed + i * width, width)
                   : SIZE_MAX;
    return n < ELEMENT_TEXT ? n : 0;
}

void element_json(element_run *e, size_t i, json *j)
{
    char text[ELEMENT_TEXT];
    if (time_text(e, i, text)) {
        json_text(j, text);
        return;
    }
    if (is_wide_integer(e->type)) {
        tnf_type_integer(text, sizeof text, e->type, e->packed, i);
        json_digits(j, text);
        return;
    }
    const double *d = decoded_numbers(e, i);
    switch (e->type->number) {
    case TNF_NUMBER_INT:
    case TNF_NUMBER_UINT:
        json_int(j, (int64_t)*d);
        break;
    case TNF_NUMBER_BOOL:
        json_bool(j, *d != 0);
        break;
    case TNF_NUMBER_COMPLEX:
        json_open(j, '[');
        json_float(j, e->type, d[0]);
        json_float(j, e->type, d[1]);
        json_close(j, ']');
        break;
    default:
        json_float(j, e->type, *d);
    }
}

/* Text shows no more digits than the type has. */
static int float_text(char out[NUMBER_TEXT], const tnf_type *type, double d)
{
    if (is_single(type))
        return number_f32(out, (float)d);
    if (type->storage == TNF_F64 || isnan(d))
        return number_f64(out, d);
    int n = snprintf(out, NUMBER_TEXT - 3, "%.*g", type->storage == TNF_F16 ? 5 : 4, d);
    if (!strpbrk(out, ".enif"))
        n += snprintf(out + n, 3, ".0");
    return n;
}

int element_text(element_run *e, size_t i, char out[ELEMENT_TEXT])
{
    size_t length = time_text(e, i, out);
    if (length)
        return (int)length;
    if (is_wide_integer(e->type))
        return (int)tnf_type_integer(out, ELEMENT_TEXT, e->type, e->packed, i);
    const double *d = decoded_numbers(e, i);
    char re[NUMBER_TEXT], im[NUMBER_TEXT];
    switch (e->type->number) {
    case TNF_NUMBER_INT:
    case TNF_NUMBER_UINT:
        return snprintf(out, ELEMENT_TEXT, "%" PRId64, (int64_t)*d);
    case TNF_NUMBER_BOOL:
        return snprintf(out, ELEMENT_TEXT, "%s", *d != 0 ? "true" : "false");
    case TNF_NUMBER_COMPLEX:
        float_text(re, e->type, d[0]);
        float_text(im, e->type, d[1]);
        return snprintf(out, ELEMENT_TEXT, "%s%s%sj", re, *im == '-' ? "" : "+", im);
    default:
        return float_text(out, e->type, *d);
    }
}
