/* SPDX-License-Identifier: MIT */
/* Layouts of ggml's blocks: gguf.<type>/1, as zTensor's profile calls them.
 *
 *   data   u8: consecutive blocks, row by row; a block never crosses the end of a row
 *
 *   shape [2, 64] of q8_0 (32 elements in 34 bytes)     row 0: block block   row 1: block block
 *
 * The shape is that of the values. Fields of blocks are little-endian.
 */
#include "base/ckd.h"
#include "model/dtype.h"
#include "model/layout_rules.h"

#include <inttypes.h>

static tnf_status check_blocks(const tnf_object *o, tnf_error *e)
{
    const tnf_layout *layout = o->layout;
    const tnf_part *data = tnf_object_part(o, "data");
    uint64_t elements, bytes, row = o->rank ? o->shape[o->rank - 1] : 1;
    TNF_TRY(tnf_layout_elements(&elements, o, e));
    TNF_TRY(tnf_part_must_be(o, data, tnf_type_of(TNF_U8), e));
    if (row % layout->block_elements != 0)
        return tnf_layout_fail(o, e,
                               "rows of %" PRIu64
                               " elements do not consist of whole blocks of %u, as %s requires",
                               row, layout->block_elements, layout->id);
    if (!tnf_ckd_mul(&bytes, elements / layout->block_elements, layout->block_bytes))
        return tnf_layout_fail(o, e, "its blocks take more than 2^64 bytes");
    if (bytes != data->nbytes)
        return tnf_layout_fail(
            o, e, "%" PRIu64 " blocks of %u bytes are %" PRIu64 " bytes, not %" PRIu64,
            elements / layout->block_elements, layout->block_bytes, bytes, data->nbytes);
    return TNF_OK;
}

static const tnf_layout_part parts[] = { { .role = "data" }, { NULL, false } };

#define B(word, capitals, elements, bytes)                                                         \
    {                                                                                              \
        .id = "gguf." word "/1", .name = (capitals), .block = (word),                              \
        .block_elements = (elements), .block_bytes = (bytes), .parts = parts,                      \
        .check = check_blocks                                                                      \
    }

static const tnf_layout blocks[] = {
    B("q4_0", "Q4_0", 32, 18),        B("q4_1", "Q4_1", 32, 20),
    B("q5_0", "Q5_0", 32, 22),        B("q5_1", "Q5_1", 32, 24),
    B("q8_0", "Q8_0", 32, 34),        B("q8_1", "Q8_1", 32, 36),
    B("q2_k", "Q2_K", 256, 84),       B("q3_k", "Q3_K", 256, 110),
    B("q4_k", "Q4_K", 256, 144),      B("q5_k", "Q5_K", 256, 176),
    B("q6_k", "Q6_K", 256, 210),      B("q8_k", "Q8_K", 256, 292),
    B("iq2_xxs", "IQ2_XXS", 256, 66), B("iq2_xs", "IQ2_XS", 256, 74),
    B("iq3_xxs", "IQ3_XXS", 256, 98), B("iq1_s", "IQ1_S", 256, 50),
    B("iq4_nl", "IQ4_NL", 32, 18),    B("iq3_s", "IQ3_S", 256, 110),
    B("iq2_s", "IQ2_S", 256, 82),     B("iq4_xs", "IQ4_XS", 256, 136),
    B("iq1_m", "IQ1_M", 256, 56),     B("tq1_0", "TQ1_0", 256, 54),
    B("tq2_0", "TQ2_0", 256, 66),     B("mxfp4", "MXFP4", 32, 17),
    B("nvfp4", "NVFP4", 64, 36),      B("q1_0", "Q1_0", 128, 18),
    B("q2_0", "Q2_0", 64, 18),
};

#undef B

const tnf_layout *tnf_layout_block_at(size_t i)
{
    return i < sizeof blocks / sizeof *blocks ? &blocks[i] : NULL;
}
