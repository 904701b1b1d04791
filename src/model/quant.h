/* SPDX-License-Identifier: MIT */
/* The parameters of quantized layouts, from the attributes of a tensor. */
#ifndef TNF_MODEL_QUANT_H
#define TNF_MODEL_QUANT_H

#include <tenfold/types.h>

enum { TNF_ZERO_NONE, TNF_ZERO_IMPLIED, TNF_ZERO_TENSOR };
enum { TNF_ZEROS_PACKED, TNF_ZEROS_PLAIN };
enum { TNF_SCALE_F32, TNF_SCALE_F16, TNF_SCALE_E8M0 };

/* quant_group/1 */
typedef struct tnf_quant {
    uint64_t bits, group_size, axis, per_word;
    unsigned word; /* 0 to 3: u8 to u64 */
    bool msb_first;
    unsigned scale_form, zero_form, zero_packing;
    int64_t zero;     /* TNF_ZERO_IMPLIED */
    bool scale_a_row; /* no groups: one scale for each index of the axis, not for each element */
} tnf_quant;

/* TNF_EFORMAT if the tensor breaks the rules of its layout. */
tnf_status tnf_quant_of(tnf_quant *out, const tnf_object *object, tnf_error *e);

/* mx/1 */
typedef struct tnf_mx {
    uint64_t block_size, axis;
} tnf_mx;

tnf_status tnf_mx_of(tnf_mx *out, const tnf_object *object, tnf_error *e);

#endif
