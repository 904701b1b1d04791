/* SPDX-License-Identifier: MIT */
/* Doubles to smaller floats. */
#ifndef TNF_KERNELS_NARROW_H
#define TNF_KERNELS_NARROW_H

#include <stdbool.h>
#include <stdint.h>

/* A float of a sign, an exponent and `mantissa` bits. */
typedef struct tnf_narrow {
    const char *id; /* of its type: "f16" */
    uint8_t bytes, mantissa;
    int16_t bias;
    uint32_t largest;  /* finite, without its sign */
    uint32_t nan;      /* quiet; its mantissa's other bits hold a payload if there is infinity */
    bool has_infinity; /* it follows the largest; else what is too large becomes the largest */
    bool has_minus_zero;
} tnf_narrow;

/* By the id of its type, or NULL: f32 f16 bf16 f8_e4m3fn f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz. */
const tnf_narrow *tnf_narrow_of(const char *id);
/* The nearest, of two equally near the even one. */
uint32_t tnf_narrow_bits(const tnf_narrow *to, double x);

#endif
