/* SPDX-License-Identifier: MIT */
/* The values of a quantized tensor, for printing. They are computed when they are read. */
#include "cat_quantized.h"
#include <string.h>

bool is_quantized(const tnf_object *object)
{
    return strcmp(tnf_layout_id(object->layout), "dense") != 0 &&
           tnf_layout_has_values(object->layout);
}

tnf_status quantized_open(quantized *q, const tnf_object *object, tnf_error *error)
{
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    *q = (quantized) { 0 };
    tnf_status status = tnf_virtual_new(&q->values, &object, 1, &how, error);
    if (status == TNF_OK)
        q->object = tnf_virtual_object(q->values);
    return status;
}

void quantized_close(quantized *q)
{
    tnf_virtual_free(q->values);
}
