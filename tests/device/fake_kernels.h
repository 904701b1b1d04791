/* SPDX-License-Identifier: MIT */
/* The kernels of the library as C functions, for the simulated CUDA driver. */
#ifndef TNF_TESTS_FAKE_KERNELS_H
#define TNF_TESTS_FAKE_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FAKE_ARGUMENTS 9

typedef void fake_kernel_fn(const uint64_t *arguments);

typedef struct fake_kernel {
    const char *name;
    fake_kernel_fn *run;
} fake_kernel;

#define KERNELS_AS_C
#define __global
#define ulong  uint64_t
#define uint   uint32_t
#define ushort uint16_t

typedef const uint8_t *bytes_in;
typedef uint8_t *bytes_out;

/* A single thread does the work of all. */
#define FIRST 0
#define STEP  1
#define KERNEL(name, ...)                                                                          \
    static void name##_body(ulong src, ulong dst, ulong n, ulong to, __VA_ARGS__);                 \
    static void name##_run(const uint64_t *a)                                                      \
    {                                                                                              \
        name##_body(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);                         \
    }                                                                                              \
    static void name##_body(ulong src, ulong dst, ulong n, ulong to, __VA_ARGS__)

static inline float as_number(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A GPU computes only one NaN, which differs from that of the host. */
static inline uint32_t as_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x == x ? bits : 0x7fffffffu;
}

/* clang-format off */
#include "device/numbers.cl"
#include "device/casts.cl"
#include "device/parts.cl"
#include "device/blocks.cl"
#include "device/blocks_k.cl"
/* clang-format on */

#define FAKE(name)                                                                                 \
    {                                                                                              \
#name, name##_run                                                                          \
    }

static inline const fake_kernel *fake_kernel_named(const char *name)
{
    static const fake_kernel all[] = {
        FAKE(tnf_f32),     FAKE(tnf_f16),     FAKE(tnf_bf16),    FAKE(tnf_e4m3),
        FAKE(tnf_e5m2),    FAKE(tnf_mx_e2m1), FAKE(tnf_mx_e2m3), FAKE(tnf_mx_e3m2),
        FAKE(tnf_mx_e4m3), FAKE(tnf_mx_e5m2), FAKE(tnf_mx_i8),   FAKE(tnf_codes_2),
        FAKE(tnf_codes_4), FAKE(tnf_codes_8), FAKE(tnf_q4_0),    FAKE(tnf_q4_1),
        FAKE(tnf_q5_0),    FAKE(tnf_q5_1),    FAKE(tnf_q8_0),    FAKE(tnf_q2_k),
        FAKE(tnf_q3_k),    FAKE(tnf_q4_k),    FAKE(tnf_q5_k),    FAKE(tnf_q6_k),
        FAKE(tnf_iq4_nl),  FAKE(tnf_iq4_xs),  FAKE(tnf_mxfp4),   FAKE(tnf_nvfp4),
        FAKE(tnf_scatter),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

#endif
