/* SPDX-License-Identifier: MIT */
/* Casts for any machine; every aarch64 has vectors. */
#include "kernels/cast.h"

#if defined(__aarch64__)
#include <arm_neon.h>

/* NaNs become quiet and keep the upper bits of their payload, as everywhere. */
#define CAST_OWN_HALVES
static size_t halves_to_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float16x4_t h = vreinterpret_f16_u8(vld1_u8(in + 2 * i));
        vst1q_u8(out + 4 * i, vreinterpretq_u8_f32(vcvt_f32_f16(h)));
    }
    return i;
}

static size_t halves_of_f32(uint8_t *out, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t f = vreinterpretq_f32_u8(vld1q_u8(in + 4 * i));
        vst1_u8(out + 2 * i, vreinterpret_u8_f16(vcvt_f16_f32(f)));
    }
    return i;
}
#endif

#define LOOPS      tnf_casts_portable
#define LOOPS_NAME "portable"
#include "kernels/cast_loops.h"
