/* SPDX-License-Identifier: MIT */
/* Element types and their names in torch, as classes of storages and as dtypes. */
#include "formats/pytorch/pt.h"

#include <string.h>

static const pt_type types[] = {
    { "FloatStorage", "float32", "f32", 4, 0, 0, 0, 0 },
    { "DoubleStorage", "float64", "f64", 8, 0, 0, 0, 0 },
    { "HalfStorage", "float16", "f16", 2, 0, 0, 0, 0 },
    { "BFloat16Storage", "bfloat16", "bf16", 2, 0, 0, 0, 0 },
    { "LongStorage", "int64", "i64", 8, 0, 0, 0, 0 },
    { "IntStorage", "int32", "i32", 4, 0, 0, 0, 0 },
    { "ShortStorage", "int16", "i16", 2, 0, 0, 0, 0 },
    { "CharStorage", "int8", "i8", 1, 0, 0, 0, 0 },
    { "ByteStorage", "uint8", "u8", 1, 0, 0, 0, 0 },
    { "BoolStorage", "bool", "bool", 1, 0, 0, 0, 0 },
    { "ComplexFloatStorage", "complex64", "c64", 8, 0, 0, 0, 0 },
    { "ComplexDoubleStorage", "complex128", "c128", 16, 0, 0, 0, 0 },
    { NULL, "uint16", "u16", 2, 0, 0, 0, 0 },
    { NULL, "uint32", "u32", 4, 0, 0, 0, 0 },
    { NULL, "uint64", "u64", 8, 0, 0, 0, 0 },
    { NULL, "float8_e4m3fn", "f8_e4m3fn", 1, 0, 0, 0, 0 },
    { NULL, "float8_e5m2", "f8_e5m2", 1, 0, 0, 0, 0 },
    { NULL, "float8_e4m3fnuz", "f8_e4m3fnuz", 1, 0, 0, 0, 0 },
    { NULL, "float8_e5m2fnuz", "f8_e5m2fnuz", 1, 0, 0, 0, 0 },
    { NULL, "float8_e8m0fnu", "f8_e8m0", 1, 0, 0, 0, 0 },
    { NULL, "float4_e2m1fn_x2", "f4_e2m1", 1, 0, 1, 0, 0 },
    /* only the types above are written */
    { "QInt8Storage", "qint8", "i8", 1, 0, 0, 0, 0 },
    { "QUInt8Storage", "quint8", "u8", 1, 0, 0, 0, 0 },
    { "QInt32Storage", "qint32", "i32", 4, 0, 0, 0, 0 },
    { "QUInt4x2Storage", "quint4x2", "u8", 1, 0, 0, 1, 1 },
    { "QUInt2x4Storage", "quint2x4", "u8", 1, 0, 0, 1, 1 },
    { NULL, "complex32", "f16", 4, 2, 0, 0, 1 },
    { NULL, "bits8", "u8", 1, 0, 0, 0, 1 },
    { NULL, "bits16", "u16", 2, 0, 0, 0, 1 },
    { NULL, "bits1x8", "u8", 1, 0, 0, 0, 1 },
    { NULL, "bits2x4", "u8", 1, 0, 0, 0, 1 },
    { NULL, "bits4x2", "u8", 1, 0, 0, 0, 1 },
    /* old names, and untyped bytes */
    { "UntypedStorage", "uint8", "u8", 1, 0, 0, 0, 0 },
    { "_UntypedStorage", "uint8", "u8", 1, 0, 0, 0, 0 },
    { "TypedStorage", "uint8", "u8", 1, 0, 0, 0, 0 },
    { NULL, "float", "f32", 4, 0, 0, 0, 0 },
    { NULL, "double", "f64", 8, 0, 0, 0, 0 },
    { NULL, "half", "f16", 2, 0, 0, 0, 0 },
    { NULL, "long", "i64", 8, 0, 0, 0, 0 },
    { NULL, "int", "i32", 4, 0, 0, 0, 0 },
    { NULL, "short", "i16", 2, 0, 0, 0, 0 },
    { NULL, "cfloat", "c64", 8, 0, 0, 0, 0 },
    { NULL, "cdouble", "c128", 16, 0, 0, 0, 0 },
};

#define COUNT   (sizeof types / sizeof *types)
#define WRITTEN 21u

static bool is_word(tnf_str s, const char *word)
{
    return word && tnf_str_is(s, word);
}

const pt_type *tnf_pt_type_of_storage(tnf_str class_name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (is_word(class_name, types[i].storage))
            return &types[i];
    return NULL;
}

const pt_type *tnf_pt_type_named(tnf_str name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (is_word(name, types[i].name))
            return &types[i];
    return NULL;
}

const pt_type *tnf_pt_type_for(const tnf_type *type)
{
    for (size_t i = 0; i < WRITTEN; i++)
        if (strcmp(type->id, types[i].id) == 0)
            return &types[i];
    return NULL;
}
