/* SPDX-License-Identifier: MIT */
/* Common names of element types: those of NumPy, PyTorch, safetensors and C. Readers of files do
 * not use this table: each format has its own names. */
#include "model/dtype.h"

#include "base/str.h"

#include <string.h>

/* Each type with its other names. float8_e4m3 is missing on purpose: ml_dtypes has a type of that
 * name with infinities, which is none of these types. */
static const struct {
    const char *id, *names;
} spellings[] = {
    { "f64", "float64 double fp64" },
    { "f32", "float32 float fp32 single" },
    { "f16", "float16 half fp16" },
    { "bf16", "bfloat16" },
    { "i64", "int64 long" },
    { "i32", "int32 int" },
    { "i16", "int16 short" },
    { "i8", "int8" },
    { "u64", "uint64" },
    { "u32", "uint32" },
    { "u16", "uint16" },
    { "u8", "uint8 byte" },
    { "i128", "int128" },
    { "u128", "uint128" },
    { "bool", "boolean bool_" },
    { "f8_e4m3fn", "float8_e4m3fn f8_e4m3 fp8_e4m3 fp8_e4m3fn" },
    { "f8_e5m2", "float8_e5m2 fp8_e5m2" },
    { "f8_e4m3fnuz", "float8_e4m3fnuz fp8_e4m3fnuz" },
    { "f8_e5m2fnuz", "float8_e5m2fnuz fp8_e5m2fnuz" },
    { "f8_e8m0", "float8_e8m0fnu f8_e8m0fnu" },
    { "f6_e2m3", "float6_e2m3fn f6_e2m3fn" },
    { "f6_e3m2", "float6_e3m2fn f6_e3m2fn" },
    { "f4_e2m1", "float4_e2m1fn f4_e2m1fn" },
    { "c64", "complex64 cfloat" },
    { "c128", "complex128 cdouble" },
};

static bool is_listed(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = names; *p; p += strspn(p, " ")) {
        size_t here = strcspn(p, " ");
        if (here == n && tnf_str_alike(p, name, n))
            return true;
        p += here;
    }
    return false;
}

const tnf_type *tnf_type_spelled(const char *name)
{
    static const char torch[] = "torch."; /* the prefix that PyTorch prints and people copy */
    const tnf_type *type;
    if (!name)
        return NULL;
    if (strlen(name) >= sizeof torch - 1 && tnf_str_alike(name, torch, sizeof torch - 1))
        name += sizeof torch - 1;
    for (size_t i = 0; (type = tnf_type_at(i)); i++)
        if (is_listed(type->id, name))
            return type;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (is_listed(spellings[i].names, name))
            return tnf_type_named(spellings[i].id);
    return NULL;
}
