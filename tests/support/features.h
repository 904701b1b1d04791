/* SPDX-License-Identifier: MIT */
/* Small models, each with a feature that some formats cannot store: types, ranks, names, layouts,
 * metadata. */
#ifndef TNF_SUPPORT_FEATURES_H
#define TNF_SUPPORT_FEATURES_H

#include "open.h"
#include <math.h>

struct feature {
    char name[64];
    tnf_builder *builder;
};

static inline uint8_t *feature_bytes(void)
{
    static uint8_t bytes[4096]; /* any bytes, with NaN payloads and -0 among the floats */
    for (size_t i = 0; i < sizeof bytes && bytes[1] == 0; i++)
        bytes[i] = (uint8_t)(i * 167 + 41 + (i >> 8) * 13);
    static const uint32_t odd[] = { 0x80000000, 0x7fc01234, 0xffa00001, 0x7f800000, 1 };
    memcpy(bytes, odd, sizeof odd);
    return bytes;
}

static inline void feature_tensor(tnf_builder *b, const char *name, const char *type, uint32_t rank,
                                  const uint64_t *shape)
{
    static const uint8_t zero_or_one[64] = { 1, 0, 0, 1, 1, 0, 1 };
    tnf_error e;
    bool boolean = strcmp(type, "bool") == 0;
    MUST(tnf_builder_add(b, name, tnf_type_named(type), rank, shape,
                         boolean ? zero_or_one : feature_bytes(), &e) == TNF_OK);
}

static inline tnf_part feature_part(const char *role, const char *type, const void *p, size_t n)
{
    return (tnf_part) { .role = role,
                        .type = tnf_type_named(type),
                        .memory = p,
                        .stored = n,
                        .nbytes = n,
                        .payload = TNF_MEMORY };
}

static inline void feature_object(tnf_builder *b, const char *name, const char *layout,
                                  uint32_t rank, const uint64_t *shape, const tnf_part *parts,
                                  uint16_t nparts)
{
    tnf_error e;
    tnf_object o = { .name = { name, strlen(name) },
                     .layout = tnf_layout_by_id(layout),
                     .shape = shape,
                     .rank = rank,
                     .parts = parts,
                     .nparts = nparts };
    MUST(o.layout != NULL);
    MUST(tnf_builder_add_object(b, &o, NULL, &e) == TNF_OK);
}

static inline void feature_set(tnf_builder *b, const char *tensor, const char *key, tnf_value v)
{
    tnf_error e;
    MUST(tnf_builder_set(b, tensor, key, &v, &e) == TNF_OK);
}

#define FEATURE_STRING(kind_, text_)                                                               \
    (tnf_value)                                                                                    \
    {                                                                                              \
        .kind = (kind_), .n = sizeof(text_) - 1, .as.s = (text_)                                   \
    }

/* ---------------------------------------------------------------- layouts */

static inline void feature_strings(tnf_builder *b, const char *name)
{
    static const uint64_t offsets[] = { 0, 3, 3, 8 }, n = 3;
    tnf_part parts[] = { feature_part("offsets", "u64", offsets, sizeof offsets),
                         feature_part("bytes", "u8", "one\xffree!", 8) };
    feature_object(b, name, "strings/1", 1, &n, parts, 2);
}

static inline void feature_words(tnf_builder *b)
{
    static const uint64_t shape[] = { 3, 4 };
    static const float values[] = { 1, 2, 3, 4, -0.f, 6, 7, 8, 9, 10, 11, 12 };
    static const float norms[] = { 1, 2, 3 };
    static const uint64_t offsets[] = { 0, 3, 6, 11 }, n = 3;
    tnf_error e;
    tnf_part parts[] = { feature_part("offsets", "u64", offsets, sizeof offsets),
                         feature_part("bytes", "u8", "onetwothree", 11) };
    MUST(tnf_builder_add(b, "embeddings", tnf_type_named("f32"), 2, shape, values, &e) == TNF_OK);
    feature_object(b, "vocab", "strings/1", 1, &n, parts, 2);
    MUST(tnf_builder_add(b, "norms", tnf_type_named("f32"), 1, shape, norms, &e) == TNF_OK);
}

static inline void feature_points(tnf_builder *b)
{
    static const uint64_t shape[] = { 3, 2 };
    feature_tensor(b, "points", "f64", 2, shape);
}

static inline void feature_quantized(tnf_builder *b)
{
    static const uint64_t shape[] = { 2, 4 };
    static const uint8_t codes[] = { 0, 1, 1, 0 };
    static const float books[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    tnf_part parts[] = { feature_part("codes", "u8", codes, sizeof codes),
                         feature_part("codebooks", "f32", books, sizeof books) };
    feature_object(b, "embeddings", "pq/1", 2, shape, parts, 2);
}

static inline void feature_csr(tnf_builder *b)
{
    static const uint64_t shape[] = { 2, 3 }, rows[] = { 0, 1, 3 }, columns[] = { 2, 0, 1 };
    tnf_part parts[] = { feature_part("indices", "u64", columns, sizeof columns),
                         feature_part("indptr", "u64", rows, sizeof rows),
                         feature_part("values", "f32", feature_bytes(), 12) };
    feature_object(b, "sparse", "sparse_csr/1", 2, shape, parts, 3);
}

static inline void feature_coo(tnf_builder *b)
{
    static const uint64_t shape[] = { 2, 3 }, coords[] = { 0, 1, 2, 0 };
    tnf_part parts[] = { feature_part("coords", "u64", coords, sizeof coords),
                         feature_part("values", "f32", feature_bytes(), 8) };
    feature_object(b, "sparse", "sparse_coo/1", 2, shape, parts, 2);
}

/* --------------------------------------------------------------- metadata */

static inline void feature_metadata(tnf_builder *b, const char *tensor)
{
    static const tnf_value items[] = { { .kind = TNF_NULL },
                                       { .kind = TNF_BOOL, .as.u = 1 },
                                       { .kind = TNF_INT, .dtype = TNF_I8, .as.i = -7 },
                                       { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = UINT64_MAX },
                                       { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = -0.0 },
                                       { .kind = TNF_ARRAY } };
    static const tnf_member members[] = {
        { { "zz", 2 }, { .kind = TNF_ARRAY, .n = 6, .as.items = items } },
        { { "a \"b\"\n", 6 }, { .kind = TNF_STRING, .n = 2, .as.s = "\xc3\xa9" } },
        { { "", 0 }, { .kind = TNF_MAP } },
    };
    static const uint8_t raw[] = { 0, 0xff, 10 };
    feature_set(b, tensor, "deep", (tnf_value) { .kind = TNF_MAP, .n = 3, .as.members = members });
    feature_set(b, tensor, "bytes",
                (tnf_value) { .kind = TNF_BYTES, .n = 3, .as.s = (const char *)raw });
    feature_set(b, tensor, "json", FEATURE_STRING(TNF_JSON, "{\"b\": [1,  2.50], \"a\":null}"));
    feature_set(b, tensor, "nan",
                (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F32, .as.f32 = (float)NAN });
    feature_set(b, tensor, "text", FEATURE_STRING(TNF_STRING, "plain"));
    feature_set(b, tensor, "format", FEATURE_STRING(TNF_STRING, "pt"));
}

/* ------------------------------------------------------------------- each */

static const uint64_t feature_shape[] = { 2, 1, 3, 1, 2, 1, 1, 2 };
static const uint64_t feature_empty[][3] = { { 0, 3, 2 }, { 3, 0, 2 }, { 3, 2, 0 } };
static const char *const feature_names[] = {
    "a",
    "b c",
    "a/b",
    "a.b.c",
    "a#data",
    "..",
    "__metadata__",
    "\xc3\xbc\xe2\x82\xac",
    "\xf0\x9f\x98\x80",
    "tab\tline\nquote\"back\\",
    "no\xff"
    "text",
    "%FF",
    "-",
    "0",
    " ",
    "tenfold.stash",
    "embeddings",
    "vocab",
    "points",
};

enum {
    FEATURE_RANKS = 9,
    FEATURE_EMPTY = 3,
    FEATURE_NAMES = sizeof feature_names / sizeof *feature_names,
    FEATURE_REST = 13,
};

static inline void feature_rest(struct feature *f, size_t i)
{
    static const char *const names[FEATURE_REST] = {
        "strings", "words", "points", "pq",   "csr",  "coo",     "metadata",
        "attrs",   "tied",  "many",   "none", "long", "columns",
    };
    static const uint64_t two[] = { 2, 3 };
    static char long_name[301];
    tnf_builder *b = f->builder;
    snprintf(f->name, sizeof f->name, "%s", names[i]);
    switch (i) {
    case 0:
        feature_strings(b, "list");
        break;
    case 1:
        feature_words(b);
        break;
    case 2:
        feature_points(b);
        break;
    case 3:
        feature_quantized(b);
        break;
    case 4:
        feature_csr(b);
        break;
    case 5:
        feature_coo(b);
        break;
    case 6:
        feature_tensor(b, "w", "f32", 1, two);
        feature_metadata(b, NULL);
        break;
    case 7:
        feature_tensor(b, "w", "f32", 1, two);
        feature_metadata(b, "w");
        break;
    case 8:
        feature_tensor(b, "w", "f32", 2, two);
        feature_tensor(b, "tied", "f32", 2, two);
        break;
    case 9:
        for (int k = 0; k < 300; k++) {
            char name[16];
            snprintf(name, sizeof name, "t%d", (k * 7919) % 300);
            feature_tensor(b, name, k % 2 ? "f32" : "i32", 1, two);
        }
        break;
    case 10:
        break;
    case 11:
        memset(long_name, 'n', 300);
        feature_tensor(b, long_name, "f32", 1, two);
        break;
    default: {
        tnf_part part = feature_part("data", "f32", feature_bytes(), 24);
        tnf_object o = { .name = { "w", 1 },
                         .layout = tnf_layout_by_id("dense"),
                         .shape = two,
                         .rank = 2,
                         .parts = &part,
                         .nparts = 1,
                         .order = TNF_ORDER_F };
        MUST(tnf_builder_add_object(b, &o, NULL, NULL) == TNF_OK);
    }
    }
}

/* The i-th model; false past the last. The caller frees its builder. */
static inline bool feature_at(struct feature *f, size_t i)
{
    size_t skipped = 0;
    f->name[0] = 0;
    MUST(tnf_builder_new(&f->builder, NULL, NULL) == TNF_OK);
    const tnf_type *type = tnf_type_at(i);
    if (type) {
        static const uint64_t eight[] = { 8 };
        snprintf(f->name, sizeof f->name, "type %s", type->id);
        feature_tensor(f->builder, "w", type->id, 1, eight);
        return true;
    }
    while (i > 0 && !tnf_type_at(i - 1))
        i--, skipped++;
    i = skipped;
    if (i < FEATURE_RANKS) {
        snprintf(f->name, sizeof f->name, "rank %zu", i);
        feature_tensor(f->builder, "w", "f32", (uint32_t)i, feature_shape);
        return true;
    }
    i -= FEATURE_RANKS;
    if (i < FEATURE_EMPTY) {
        snprintf(f->name, sizeof f->name, "empty %zu", i);
        feature_tensor(f->builder, "w", "f32", 3, feature_empty[i]);
        return true;
    }
    i -= FEATURE_EMPTY;
    if (i < FEATURE_NAMES) {
        static const uint64_t two[] = { 2 };
        snprintf(f->name, sizeof f->name, "name %zu", i);
        feature_tensor(f->builder, feature_names[i], "f32", 1, two);
        return true;
    }
    i -= FEATURE_NAMES;
    if (i < FEATURE_REST) {
        feature_rest(f, i);
        return true;
    }
    tnf_builder_free(f->builder);
    return false;
}

#endif
