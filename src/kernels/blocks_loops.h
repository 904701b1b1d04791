/* SPDX-License-Identifier: MIT */
/* All block types, written once and compiled for each instruction set: a file defines LOOPS, the
 * name of its table, and LOOPS_NAME, and includes this. Codes are assembled in vectors of 16 bytes
 * for every type; blocks_lanes.h has the steps in which instruction sets differ.
 */
#include "base/bytes.h"
#include "base/ieee.h"
#include "kernels/blocks.h"

#include <math.h>
#include <string.h>

/* Reads a scale: f16. */
static inline float half_at(const uint8_t *p)
{
    uint32_t h = tnf_le16(p), e = h & 0x7c00, bits = (h & 0x7fff) << 13;
    uint32_t sign = (h & 0x8000) << 16;
    if (e == 0) /* m * 2^-24 */
        return tnf_f32_of(sign | tnf_f32_bits((float)(int)(h & 0x3ff) * 0x1p-24f));
    return tnf_f32_of(sign | (bits + ((e == 0x7c00 ? 224u : 112u) << 23)));
}

/* Is the f16 infinite or NaN? */
static inline bool odd_half(const uint8_t *p)
{
    return (p[1] & 0x7c) == 0x7c;
}

/* Rounds to the nearest f16, ties to even. A NaN becomes a quiet NaN. */
static inline void put_half(uint8_t *p, float x)
{
    uint32_t bits = tnf_f32_bits(x), sign = bits >> 16 & 0x8000, h;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        h = 0x7e00;
    else if (bits >= 0x477ff000) /* 65520 */
        h = 0x7c00;
    else if (bits < 0x38800000) /* 2^-14: adding 0.5 leaves the bits of a subnormal */
        h = tnf_f32_bits(tnf_f32_of(bits) + 0.5f) - 0x3f000000;
    else
        h = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
    tnf_put_le16(p, (uint16_t)(sign | h));
}

/* Makes all NaNs equal: machines differ in the result of infinity times 0. */
static void settle_nans(float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(y[i]))
            y[i] = tnf_f32_of(0x7fc00000);
}

/* get_NAME() decodes one block. It returns true if the block may contain a NaN: a scale is not
 * finite. */
#define DECODER(name, elements, bytes)                                                             \
    static void decode_##name(float *out, const uint8_t *p, size_t n)                              \
    {                                                                                              \
        uint32_t mode = tnf_enter_ieee();                                                          \
        for (; n > 0; n--, out += (elements), p += (bytes))                                        \
            if (get_##name(out, p))                                                                \
                settle_nans(out, elements);                                                        \
        tnf_leave_ieee(mode);                                                                      \
    }

#define ENCODER(name, elements, bytes)                                                             \
    static void encode_##name(uint8_t *out, const float *x, size_t n)                              \
    {                                                                                              \
        uint32_t mode = tnf_enter_ieee();                                                          \
        for (; n > 0; n--, x += (elements), out += (bytes))                                        \
            put_##name(out, x);                                                                    \
        tnf_leave_ieee(mode);                                                                      \
    }

/* name, elements, bytes, in ggml's order of types */
#define READ_AND_WRITTEN(X)                                                                        \
    X(q4_0, 32, 18)                                                                                \
    X(q4_1, 32, 20)                                                                                \
    X(q5_0, 32, 22)                                                                                \
    X(q5_1, 32, 24)                                                                                \
    X(q8_0, 32, 34)                                                                                \
    X(tq1_0, 256, 54)                                                                              \
    X(tq2_0, 256, 66)                                                                              \
    X(mxfp4, 32, 17)                                                                               \
    X(nvfp4, 64, 36)                                                                               \
    X(q1_0, 128, 18)                                                                               \
    X(q2_0, 64, 18)
#define READ_ONLY(X)                                                                               \
    X(q8_1, 32, 36)                                                                                \
    X(q2_k, 256, 84)                                                                               \
    X(q3_k, 256, 110)                                                                              \
    X(q4_k, 256, 144)                                                                              \
    X(q5_k, 256, 176)                                                                              \
    X(q6_k, 256, 210)                                                                              \
    X(q8_k, 256, 292)                                                                              \
    X(iq2_xxs, 256, 66)                                                                            \
    X(iq2_xs, 256, 74)                                                                             \
    X(iq3_xxs, 256, 98)                                                                            \
    X(iq1_s, 256, 50)                                                                              \
    X(iq4_nl, 32, 18)                                                                              \
    X(iq3_s, 256, 110)                                                                             \
    X(iq2_s, 256, 82)                                                                              \
    X(iq4_xs, 256, 136)                                                                            \
    X(iq1_m, 256, 56)

#include "kernels/blocks_lanes.h"
/* clang-format off */
#include "kernels/blocks_grid.h"
#include "kernels/blocks_k.h"
#include "kernels/blocks_put.h"
#include "kernels/blocks_simple.h"
/* clang-format on */

READ_AND_WRITTEN(DECODER)
READ_ONLY(DECODER)
READ_AND_WRITTEN(ENCODER)

#define BOTH_WAYS(name, elements, bytes) { #name, elements, bytes, decode_##name, encode_##name },
#define ONE_WAY(name, elements, bytes)   { #name, elements, bytes, decode_##name, NULL },

static const tnf_block_type types[] = { READ_AND_WRITTEN(BOTH_WAYS) READ_ONLY(ONE_WAY) };

const tnf_block_set LOOPS = { LOOPS_NAME, types, sizeof types / sizeof *types };
