/* SPDX-License-Identifier: MIT */
/* kmeans.h for 64-bit ARM. */
#include "kernels/kmeans.h"

#if defined(__aarch64__)
#include "kernels/dot.h"
#include <arm_neon.h>

#define LANES                  4u
#define VECTORS                8u
#define PRODUCT_ROWS           6u
#define PRODUCT_VECTORS        4u
#define load(p)                vld1q_f32(p)
#define store(p, v)            vst1q_f32(p, v)
#define splat(x)               vdupq_n_f32(x)
#define no_marks()             vdupq_n_s32(0)
#define store_marks(p, v)      vst1q_s32(p, v)

#define plus_product(s, a, b)  vfmaq_f32(s, a, b)
#define minus_product(s, a, b) vfmsq_f32(s, a, b)
#define lesser(a, b)           vminq_f32(a, b)

typedef float32x4_t vec;
typedef int32x4_t marks;

static inline void keep_least(vec *least, marks *at, vec a, int32_t group)
{
    uint32x4_t less = vcltq_f32(a, *least);
    *least = vminq_f32(a, *least);
    *at = vbslq_s32(less, vdupq_n_s32(group), *at);
}

static inline int first_equal(vec a, vec b)
{
    uint16x4_t equal = vmovn_u32(vceqq_f32(a, b));
    uint64_t bits = vget_lane_u64(vreinterpret_u64_u16(equal), 0);
    return bits ? __builtin_ctzll(bits) / 16 : -1;
}

#include "kernels/kmeans_lanes.h"

const tnf_kmeans_kernels tnf_kmeans_neon = { "neon", nearest_centres, multiply_rows };
#else
typedef int tnf_no_kmeans_neon;
#endif
