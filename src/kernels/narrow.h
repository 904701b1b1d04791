/* SPDX-License-Identifier: MIT */
/* Doubles to smaller floats. */
#ifndef TNF_KERNELS_NARROW_H
#define TNF_KERNELS_NARROW_H

#include <stdbool.h>
#include <stdint.h>

/* A type of float with a sign, an exponent and `mantissa` bits. */
typedef struct tnf_narrow {
    const char *id; /* of its type: "f16" */
    uint8_t bytes, mantissa;
    int16_t bias;
    uint32_t largest;  /* the largest finite number, without its sign */
    uint32_t nan;      /* quiet; if there is infinity, its other mantissa bits hold a payload */
    bool has_infinity; /* follows `largest`; without it a number too large becomes `largest` */
    bool has_minus_zero;
} tnf_narrow;

/* A type by its id, or NULL: f32 f16 bf16 f8_e4m3fn f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz. */
const tnf_narrow *tnf_narrow_of(const char *id);
/* Rounds to the nearest number, ties to even. */
uint32_t tnf_narrow_bits(const tnf_narrow *to, double x);

#endif
