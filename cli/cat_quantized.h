/* SPDX-License-Identifier: MIT */
/* A quantized tensor as the dense tensor that it represents. */
#ifndef TENFOLD_CLI_CAT_QUANTIZED_H
#define TENFOLD_CLI_CAT_QUANTIZED_H

#include <tenfold/virtual.h>

typedef struct quantized {
    tnf_virtual *values;
    const tnf_object *object; /* dense, of the same name and shape */
} quantized;

bool is_quantized(const tnf_object *object);
/* The caller closes it even after an error. */
tnf_status quantized_open(quantized *q, const tnf_object *object, tnf_error *error);
void quantized_close(quantized *q);

#endif
