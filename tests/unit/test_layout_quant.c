/* SPDX-License-Identifier: MIT */
/* quant_group/1, mx/1 and pq/1. The sizes are those of the equations in the zTensor profiles, and
 * of the finalfusion file that its fact sheet explains. */
#include "model/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "layout_objects.h"

#define KEY(k) .key = { (k), sizeof(k) - 1 }
#define U(k, v)                                                                                    \
    {                                                                                              \
        KEY(k), .value = {.kind = TNF_UINT, .dtype = TNF_U64, .as.u = (v) }                        \
    }
#define I(k, v)                                                                                    \
    {                                                                                              \
        KEY(k), .value = {.kind = TNF_INT, .dtype = TNF_I64, .as.i = (v) }                         \
    }
#define S(k, v)                                                                                    \
    {                                                                                              \
        KEY(k), .value = {.kind = TNF_STRING, .n = sizeof(v) - 1, .as.s = (v) }                    \
    }
#define M(k, list)                                                                                 \
    {                                                                                              \
        KEY(k), .value = {.kind = TNF_MAP, .n = COUNT(list), .as.members = (list) }                \
    }

/* ------------------------------------------------------------ quant_group */

/* 4-bit codes in u32, groups of 8 along axis 0, of shape [16, 6], with plain zeros. */
typedef struct quantised {
    tnf_member packing[3], zero_point[2], members[6];
    tnf_value attrs;
    tnf_part parts[3];
    tnf_object object;
} quantised;

static void fill_quantised(quantised *q)
{
    const tnf_member packing[] = { S("word", "u32"), S("order", "lsb_first"), U("per_word", 8) };
    const tnf_member zero_point[] = { S("form", "tensor"), S("packing", "plain") };
    memcpy(q->packing, packing, sizeof packing);
    memcpy(q->zero_point, zero_point, sizeof zero_point);
    const tnf_member members[] = { U("bits", 4),
                                   I("group_size", 8),
                                   U("axis", 0),
                                   M("packing", q->packing),
                                   S("scale_form", "f16_factors"),
                                   M("zero_point", q->zero_point) };
    memcpy(q->members, members, sizeof members);
    q->attrs = (tnf_value) { .kind = TNF_MAP, .n = 6, .as.members = q->members };
    q->parts[0] = (tnf_part)PART_OF("data", "u32", NULL, 48);   /* 96 / 8 words of 4 bytes */
    q->parts[1] = (tnf_part)PART_OF("scales", "f16", NULL, 24); /* 2 groups x 6 lanes */
    q->parts[2] = (tnf_part)PART_OF("zeros", "u8", NULL, 12);
    static const uint64_t shape[2] = { 16, 6 };
    q->object = tensor_of("quant_group/1", shape, 2, q->parts, 3);
    q->object.attrs = &q->attrs;
}

static void quant_group_sizes(void **state)
{
    (void)state;
    quantised q;
    fill_quantised(&q);
    check_is(&q.object, NULL);
    assert_null(q.object.layout->check_data);
    q.parts[0].type = tnf_type_of(TNF_I32); /* the signed twin of the word */
    check_is(&q.object, NULL);
    q.parts[0].type = tnf_type_of(TNF_U64);
    check_is(&q.object, "the part 'data' is u64, but codes are in words of 32 bits");
    q.parts[0].type = tnf_type_of(TNF_F32);
    check_is(&q.object, "the part 'data' is f32, but codes are in words of 32 bits");
    fill_quantised(&q);
    q.parts[0].nbytes = 44;
    check_is(&q.object, "the part 'data' has 44 bytes, but 12 elements of u32 take 48");
    fill_quantised(&q);
    q.parts[1].nbytes = 26;
    check_is(&q.object, "the part 'scales' has 26 bytes, but 12 elements of f16 take 24");
    fill_quantised(&q);
    q.parts[2].nbytes = 13;
    check_is(&q.object, "the part 'zeros' has 13 bytes, but 12 elements of u8 take 12");
    fill_quantised(&q);
    q.object.shape = (const uint64_t[]) { 8, 3 };
    q.parts[0].nbytes = 12;
    q.parts[1].nbytes = 6;
    q.parts[2].nbytes = 3;
    check_is(&q.object, NULL);
    q.object.shape = (const uint64_t[]) { 0, 3 };
    q.parts[0].nbytes = q.parts[1].nbytes = q.parts[2].nbytes = 0;
    check_is(&q.object, NULL);
    q.object.shape = (const uint64_t[]) { (uint64_t)1 << 40, (uint64_t)1 << 40 };
    check_is(&q.object, "more than 2^64 elements");
}

static void quant_group_zeros(void **state)
{
    (void)state;
    quantised q;
    fill_quantised(&q);
    q.zero_point[1] = (tnf_member)S("packing", "same_as_data");
    check_is(&q.object, "the part 'zeros' is u8, but codes are in words of 32 bits");
    q.parts[2].type = tnf_type_of(TNF_U32);
    check_is(&q.object, "12 codes do not fill words of 8");
    q.object.shape = (const uint64_t[]) { 16, 4 };
    q.parts[0].nbytes = 32;
    q.parts[1].nbytes = 16;
    q.parts[2].nbytes = 4;
    check_is(&q.object, NULL);

    fill_quantised(&q);
    q.zero_point[0] = (tnf_member)S("form", "none");
    check_is(&q.object, "the part 'zeros' is there, but zero points are 'none'");
    q.object.nparts = 2;
    check_is(&q.object, NULL);
    q.zero_point[0] = (tnf_member)S("form", "tensor");
    check_is(&q.object, "the part 'zeros' is missing, but zero points are 'tensor'");
    q.zero_point[0] = (tnf_member)S("form", "implied");
    check_is(&q.object, "the attribute 'value' is missing");
    q.zero_point[1] = (tnf_member)S("value", "8");
    check_is(&q.object, "the attribute 'value' is not a whole number");
    q.zero_point[1] = (tnf_member)I("value", -8);
    check_is(&q.object, NULL);
    q.zero_point[0] = (tnf_member)S("form", "some");
    check_is(&q.object, "the attribute 'form' is 'some'");
}

static void quant_group_scales(void **state)
{
    (void)state;
    quantised q;
    fill_quantised(&q);
    q.members[4] = (tnf_member)S("scale_form", "f32_factors");
    check_is(&q.object, NULL); /* f16 on disk, read as f32 */
    q.parts[1].type = tnf_type_of(TNF_I16);
    check_is(&q.object, "the part 'scales' is i16, which is not a float");
    q.members[4] = (tnf_member)S("scale_form", "e8m0_exponent");
    check_is(&q.object, "the part 'scales' is i16, but must be f8_e8m0");
    q.parts[1].type = tnf_type_named("f8_e8m0");
    q.parts[1].nbytes = 12;
    check_is(&q.object, NULL);
    q.members[4] = (tnf_member)S("scale_form", "e8m0");
    check_is(&q.object, "the attribute 'scale_form' is 'e8m0'");
}

/* Symmetric int8, with one scale for each channel: by the words of the profile, or by its
 * formula. */
static void quant_group_per_channel(void **state)
{
    (void)state;
    quantised q;
    fill_quantised(&q);
    q.members[0] = (tnf_member)U("bits", 8);
    q.members[1] = (tnf_member)U("group_size", 0);
    q.packing[0] = (tnf_member)S("word", "u8");
    q.packing[2] = (tnf_member)U("per_word", 1);
    q.zero_point[0] = (tnf_member)S("form", "none");
    q.object.nparts = 2;
    q.parts[0] = (tnf_part)PART_OF("data", "i8", NULL, 96);
    q.parts[1] = (tnf_part)PART_OF("scales", "f32", NULL, 16 * 4);
    check_is(&q.object, NULL);
    q.parts[1].nbytes = 96 * 4;
    check_is(&q.object, NULL);
    q.parts[1].nbytes = 6 * 4;
    check_is(&q.object, "the part 'scales' has 24 bytes");
}

static void quant_group_parameters(void **state)
{
    (void)state;
    quantised q;
    for (unsigned i = 0; i < 6; i++) { /* each attribute is required */
        static const char *const keys[] = { "bits",    "group_size", "axis",
                                            "packing", "scale_form", "zero_point" };
        char message[64];
        fill_quantised(&q);
        q.members[i].key.n--;
        snprintf(message, sizeof message, "the attribute '%s' is missing", keys[i]);
        check_is(&q.object, message);
    }
    fill_quantised(&q);
    q.members[2] = (tnf_member)U("axis", 2);
    check_is(&q.object, "there is no axis 2, only 2 dimensions");
    q.members[2] = (tnf_member)I("axis", -1);
    check_is(&q.object, "the attribute 'axis' is not a whole number");
    q.members[2] = (tnf_member)U("axis", 1);
    check_is(&q.object, "groups of 8 do not tile the 6 elements of axis 1");
    fill_quantised(&q);
    q.members[3] = (tnf_member)S("packing", "8_per_i32");
    check_is(&q.object, "the attribute 'packing' is not a map");
    fill_quantised(&q);
    q.packing[0] = (tnf_member)S("word", "i32");
    check_is(&q.object, "the attribute 'word' is 'i32'");
    q.packing[0] = (tnf_member)U("word", 32);
    check_is(&q.object, "the attribute 'word' is not a string");
    fill_quantised(&q);
    q.packing[1] = (tnf_member)S("order", "lsb");
    check_is(&q.object, "the attribute 'order' is 'lsb'");
    q.object.attrs = NULL;
    check_is(&q.object, "the attribute 'bits' is missing");
}

static void quant_group_bits(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits < 20; bits++) {
        quantised q;
        fill_quantised(&q);
        q.members[0] = (tnf_member)U("bits", bits);
        q.packing[2] = (tnf_member)U("per_word", bits ? 32 / bits : 0);
        q.parts[0].nbytes = 96 * bits / 8;
        check_is(&q.object, bits == 2 || bits == 4 || bits == 8 ? NULL : "bits in words of 32");
        q.packing[2] = (tnf_member)U("per_word", bits ? 32 / bits + 1 : 1);
        check_is(&q.object, bits == 2 || bits == 4 || bits == 8 ? "do not fill a word of 32"
                                                                : "bits in words of 32");
    }
}

/* --------------------------------------------------------------------- mx */

static void mx_rules(void **state)
{
    (void)state;
    tnf_member members[] = { U("block_size", 32), S("scale_form", "e8m0_exponent"), U("axis", 0) };
    tnf_value attrs = { .kind = TNF_MAP, .n = 2, .as.members = members };
    tnf_part parts[] = { PART_OF("data", "f4_e2m1", NULL, 96),
                         PART_OF("scales", "f8_e8m0", NULL, 6) };
    tnf_object o = tensor_of("mx/1", SHAPE(3, 64), parts, 2);
    o.attrs = &attrs;
    data_is(&o, NULL, 0);
    attrs.n = 3;
    check_is(&o, "groups of 32 do not tile the 3 elements of axis 0");
    members[2].value.as.u = 2;
    check_is(&o, "there is no axis 2");
    members[2].value.as.u = 1;
    check_is(&o, NULL);
    attrs.n = 1;
    check_is(&o, "the attribute 'scale_form' is missing");
    attrs.n = 2;
    members[0].value.as.u = 1;
    check_is(&o, "a block must have at least 2 elements, not 1");
    members[0].value.as.u = 0;
    check_is(&o, "a block must have at least 2 elements, not 0");
    members[0].value.as.u = 16;
    check_is(&o, "the part 'scales' has 6 bytes, but 12 elements of f8_e8m0 take 12");
    members[0].value.as.u = 32;
    parts[0].nbytes = 95;
    check_is(&o, "the part 'data' has 95 bytes");
    parts[1].type = tnf_type_of(TNF_U8);
    check_is(&o, "the part 'scales' is u8, but must be f8_e8m0");
    o.rank = 0;
    check_is(&o, "there is no axis 0");
}

static void mx_types(void **state)
{
    (void)state;
    static const tnf_type foreign = { "f8_\x1b[2J", TNF_U8, TNF_NUMBER_OPAQUE, 8 };
    static const char known[] = "f4_e2m1 f6_e2m3 f6_e3m2 f8_e4m3fn f8_e5m2 i8";
    const tnf_member members[] = { S("scale_form", "e8m0_exponent"), I("block_size", 32) };
    const tnf_value attrs = { .kind = TNF_MAP, .n = 2, .as.members = members };
    tnf_part parts[] = { PART_OF("data", "i8", NULL, 0), PART_OF("scales", "f8_e8m0", NULL, 1) };
    tnf_object o = tensor_of("mx/1", SHAPE(32), parts, 2);
    o.attrs = &attrs;
    for (size_t i = 0; tnf_type_at(i); i++) {
        parts[0].type = tnf_type_at(i);
        parts[0].nbytes = 4 * parts[0].type->bits;
        check_is(&o, tnf_list_has(known, parts[0].type->id) ? NULL : "which mx/1 does not allow");
    }
    parts[0].type = &foreign; /* its name must be escaped */
    check_is(&o, "the part 'data' is 'f8_\\x1b[2J', which mx/1 does not allow");
}

/* --------------------------------------------------------------------- pq */

/* quantized.fifu of the sheet: 41 rows of 100, 50 pieces, 32 centroids, norms and no projection. */
static void pq_of_a_real_file(void **state)
{
    (void)state;
    static uint8_t codes[2050];
    tnf_part parts[] = { PART("codes", "u8", codes), PART_OF("codebooks", "f32", NULL, 12800),
                         PART_OF("norms", "f32", NULL, 164) };
    tnf_object o = tensor_of("pq/1", SHAPE(41, 100), parts, 3);
    memset(codes, 31, sizeof codes);
    data_is(&o, NULL, 0);
    codes[2049] = 32;
    data_is(&o, "code 2049 is 32, but there are only 32 centroids", 1000 + 2049);
    parts[1].nbytes = 400 * 256;
    data_is(&o, NULL, 0);
    assert_int_equal(o.layout->check_data(&o, read_nothing, NULL), TNF_OK); /* any byte is valid */
    parts[1].nbytes = 400 * 255;
    assert_int_equal(o.layout->check_data(&o, read_nothing, NULL), TNF_EIO);
}

static void pq_sizes(void **state)
{
    (void)state;
    tnf_part parts[] = { PART_OF("codes", "u8", NULL, 6), PART_OF("codebooks", "f32", NULL, 32),
                         PART_OF("projection", "f32", NULL, 64),
                         PART_OF("norms", "f32", NULL, 12) };
    tnf_object o = tensor_of("pq/1", SHAPE(3, 4), parts, 4);
    check_is(&o, NULL);
    parts[0].nbytes = 7;
    check_is(&o, "7 codes cannot be divided evenly by 3 rows");
    parts[0].nbytes = 0;
    check_is(&o, "0 codes cannot be divided evenly by 3 rows");
    parts[0].nbytes = 9;
    check_is(&o, "rows of 4 elements cannot be cut into 3 pieces");
    parts[0].nbytes = 6;
    parts[1].nbytes = 40;
    check_is(&o, "the part 'codebooks' has 40 bytes, not 1 to 256 times 16");
    parts[1].nbytes = 0;
    check_is(&o, "the part 'codebooks' has 0 bytes");
    parts[1].nbytes = 16 * 257;
    check_is(&o, "the part 'codebooks' has 4112 bytes");
    parts[1].nbytes = 16 * 256;
    check_is(&o, NULL);
    parts[2].nbytes = 16;
    check_is(&o, "the part 'projection' has 16 bytes, but 16 elements");
    parts[2].nbytes = 64;
    parts[3].nbytes = 16;
    check_is(&o, "the part 'norms' has 16 bytes, but 3 elements");
    parts[3].nbytes = 12;
    parts[3].type = tnf_type_of(TNF_F16);
    check_is(&o, "the part 'norms' is f16, but must be f32");
    parts[3].type = tnf_type_of(TNF_F32);
    parts[0].type = tnf_type_of(TNF_I8);
    check_is(&o, "the part 'codes' is i8, but must be u8");
}

static void pq_shapes(void **state)
{
    (void)state;
    tnf_part parts[] = { PART_OF("codes", "u8", NULL, 0), PART_OF("codebooks", "f32", NULL, 32),
                         PART_OF("projection", "f32", NULL, 64) };
    tnf_object o = tensor_of("pq/1", SHAPE(0, 4), parts, 3);
    data_is(&o, NULL, 0);
    parts[0].nbytes = 1;
    check_is(&o, "1 codes cannot be divided evenly by 0 rows");
    parts[0].nbytes = 3;
    o.shape = (const uint64_t[]) { 3, 0 };
    check_is(&o, "rows of 0 elements");
    o.shape = (const uint64_t[]) { 3, (uint64_t)1 << 62 };
    check_is(&o, "rows of 4611686018427387904 elements");
    o.shape = (const uint64_t[]) { 1, (uint64_t)1 << 40 };
    parts[1].nbytes = (uint64_t)1 << 42;
    parts[0].nbytes = 1;
    check_is(&o, "the part 'projection' is beyond 2^64 elements");
    o.rank = 1;
    check_is(&o, "2 dimensions, not 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quant_group_sizes),
        cmocka_unit_test(quant_group_zeros),
        cmocka_unit_test(quant_group_scales),
        cmocka_unit_test(quant_group_per_channel),
        cmocka_unit_test(quant_group_parameters),
        cmocka_unit_test(quant_group_bits),
        cmocka_unit_test(mx_rules),
        cmocka_unit_test(mx_types),
        cmocka_unit_test(pq_of_a_real_file),
        cmocka_unit_test(pq_sizes),
        cmocka_unit_test(pq_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
