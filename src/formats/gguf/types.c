/* SPDX-License-Identifier: MIT */
/* ggml's types of tensors and of values, by their ids in files. */
#include "formats/gguf/gguf.h"

#include <stdio.h>

static const gguf_type types[] = {
    { 0, "f32", .dense = true },
    { 1, "f16", .dense = true },
    { 2, "q4_0", .fields = { { 0, 2, 1 } } },
    { 3, "q4_1", .fields = { { 0, 2, 2 } } },
    { 6, "q5_0", .fields = { { 0, 2, 1 }, { 2, 4, 1 } } },
    { 7, "q5_1", .fields = { { 0, 2, 2 }, { 4, 4, 1 } } },
    { 8, "q8_0", .fields = { { 0, 2, 1 } } },
    { 9, "q8_1", .fields = { { 0, 2, 2 } } },
    { 10, "q2_k", .fields = { { 80, 2, 2 } } },
    { 11, "q3_k", .fields = { { 108, 2, 1 } } },
    { 12, "q4_k", .fields = { { 0, 2, 2 } } },
    { 13, "q5_k", .fields = { { 0, 2, 2 } } },
    { 14, "q6_k", .fields = { { 208, 2, 1 } } },
    { 15, "q8_k", .fields = { { 0, 4, 1 }, { 260, 2, 16 } } },
    { 16, "iq2_xxs", .little_only = true },
    { 17, "iq2_xs", .little_only = true },
    { 18, "iq3_xxs", .little_only = true },
    { 19, "iq1_s", .little_only = true },
    { 20, "iq4_nl", .fields = { { 0, 2, 1 } } },
    { 21, "iq3_s", .little_only = true },
    { 22, "iq2_s", .little_only = true },
    { 23, "iq4_xs", .fields = { { 0, 2, 2 } } },
    { 24, "i8", .dense = true },
    { 25, "i16", .dense = true },
    { 26, "i32", .dense = true },
    { 27, "i64", .dense = true },
    { 28, "f64", .dense = true },
    { 29, "iq1_m", .little_only = true },
    { 30, "bf16", .dense = true },
    { 34, "tq1_0", .fields = { { 52, 2, 1 } } },
    { 35, "tq2_0", .fields = { { 64, 2, 1 } } },
    { 39, "mxfp4", .dense = false },
    { 40, "nvfp4", .dense = false },
    { 41, "q1_0", .fields = { { 0, 2, 1 } } },
    { 42, "q2_0", .fields = { { 0, 2, 1 } } },
};

const gguf_type *tnf_gguf_type(uint32_t id)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].id == id)
            return &types[i];
    return NULL;
}

static const gguf_type *type_named(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == n && memcmp(types[i].name, name, n) == 0)
            return &types[i];
    return NULL;
}

const gguf_type *tnf_gguf_type_of(const tnf_object *o)
{
    const char *id = tnf_layout_id(o->layout);
    if (o->layout == &tnf_layout_dense)
        return type_named(o->parts->type->id, strlen(o->parts->type->id));
    if (!o->layout->block_bytes || strncmp(id, GGUF_PREFIX, GGUF_PREFIX_N) != 0)
        return NULL;
    return type_named(id + GGUF_PREFIX_N, strcspn(id + GGUF_PREFIX_N, "/"));
}

const tnf_layout *tnf_gguf_layout(const gguf_type *type)
{
    char id[32];
    int n = snprintf(id, sizeof id, GGUF_PREFIX "%s/1", type->name);
    return tnf_layout_named(id, (size_t)n);
}

const char *tnf_gguf_type_gone(uint32_t id)
{
    if (id == 4 || id == 5)
        return "q4_2 or q4_3, which ggml had before GGUF existed";
    if (id >= 31 && id <= 33)
        return "a q4_0 with mixed rows, removed from ggml: requantize, or use q4_0";
    if (id >= 36 && id <= 38)
        return "removed from ggml (iq4_nl with mixed rows); BitNet's fork uses these ids for i2_s, "
               "i8_s and tl1";
    if (id >= 133 && id <= 158)
        return "unknown; the fork ik_llama.cpp has types with such ids";
    return "unknown";
}

/* ----------------------------------------------------------------- values */

static const struct {
    uint8_t size;
    tnf_dtype dtype;
} values[GGUF_TYPES] = {
    [GGUF_U8] = { 1, TNF_U8 },   [GGUF_I8] = { 1, TNF_I8 },   [GGUF_U16] = { 2, TNF_U16 },
    [GGUF_I16] = { 2, TNF_I16 }, [GGUF_U32] = { 4, TNF_U32 }, [GGUF_I32] = { 4, TNF_I32 },
    [GGUF_F32] = { 4, TNF_F32 }, [GGUF_BOOL] = { 1, TNF_U8 }, [GGUF_U64] = { 8, TNF_U64 },
    [GGUF_I64] = { 8, TNF_I64 }, [GGUF_F64] = { 8, TNF_F64 },
};

tnf_dtype tnf_gguf_dtype(unsigned type)
{
    return values[type].dtype;
}

size_t tnf_gguf_value_size(unsigned type)
{
    return values[type].size;
}

unsigned tnf_gguf_value_type(const tnf_value *v)
{
    switch (v->kind) {
    case TNF_BOOL:
        return GGUF_BOOL;
    case TNF_STRING:
    case TNF_BYTES:
        return GGUF_STRING;
    case TNF_ARRAY:
        return GGUF_ARRAY;
    case TNF_INT:
    case TNF_UINT:
    case TNF_FLOAT:
        for (unsigned t = 0; t < GGUF_TYPES; t++)
            if (values[t].size && t != GGUF_BOOL && values[t].dtype == (tnf_dtype)v->dtype)
                return t;
        return GGUF_TYPES;
    default:
        return GGUF_TYPES;
    }
}

/* ------------------------------------------------- the label of a whole file */

/* Values of general.file_type, and the main tensor type of such a file. */
static const struct {
    uint8_t id;
    const char *type;
} labels[] = {
    { 0, "f32" },     { 1, "f16" },      { 2, "q4_0" },    { 3, "q4_1" },  { 7, "q8_0" },
    { 8, "q5_0" },    { 9, "q5_1" },     { 10, "q2_k" },   { 11, "q3_k" }, { 12, "q3_k" },
    { 13, "q3_k" },   { 14, "q4_k" },    { 15, "q4_k" },   { 16, "q5_k" }, { 17, "q5_k" },
    { 18, "q6_k" },   { 19, "iq2_xxs" }, { 20, "iq2_xs" }, { 21, "q2_k" }, { 24, "iq1_s" },
    { 25, "iq4_nl" }, { 30, "iq4_xs" },  { 31, "iq1_m" },  { 32, "bf16" }, { 36, "tq1_0" },
    { 37, "tq2_0" },  { 38, "mxfp4" },   { 39, "nvfp4" },  { 40, "q1_0" }, { 41, "q2_0" },
};

static bool is_there(const tnf_catalog *c, const char *type)
{
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        const gguf_type *t = o->nparts ? tnf_gguf_type_of(o) : NULL;
        if (t && strcmp(t->name, type) == 0)
            return true;
    }
    return c->n == 0;
}

tnf_status tnf_gguf_fits(tnf_fit *fit, tnf_error *e)
{
    const tnf_attrs *attrs = &fit->catalog->attrs;
    (void)e;
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *m = &attrs->members[i];
        if (!tnf_str_is(m->key, GGUF_PREFIX "general.file_type") || m->value.kind != TNF_UINT)
            continue;
        for (size_t k = 0; k < sizeof labels / sizeof *labels; k++)
            if (labels[k].id == m->value.as.u && !is_there(fit->catalog, labels[k].type))
                fit->attrs[i].why = "this label is no longer correct: no tensor has this type";
    }
    return TNF_OK;
}
