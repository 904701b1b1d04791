/* SPDX-License-Identifier: MIT */
/* The content hash: by the definition at the head of content.c for one case worked out with another
 * program, the same in every container, and another one for every single thing that changes. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "core/core.h"

/* What may be changed, one at a time. */
struct model {
    const char *name, *type, *layout, *key, *tensor_key;
    uint64_t shape[2];
    uint32_t rank;
    uint8_t data[8];
    tnf_value value, tensor_value;
    bool columns;
};

static const struct model plain = {
    .name = "w",
    .type = "u8",
    .key = "k",
    .tensor_key = "t",
    .shape = { 2, 4 },
    .rank = 2,
    .data = { 1, 2, 3, 4, 5, 6, 7, 8 },
    .value = { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 1 },
    .tensor_value = { .kind = TNF_STRING, .n = 1, .as.s = "x" },
};

static tnf_builder *build(const struct model *m)
{
    tnf_builder *b;
    tnf_error e;
    tnf_part part = { .role = "data",
                      .type = tnf_type_named(m->type),
                      .memory = m->data,
                      .stored = 8,
                      .nbytes = 8,
                      .payload = TNF_MEMORY };
    tnf_object o = { .name = { m->name, strlen(m->name) },
                     .shape = m->shape,
                     .rank = m->rank,
                     .parts = &part,
                     .nparts = 1,
                     .layout = tnf_layout_by_id("dense"),
                     .order = m->columns ? TNF_ORDER_F : TNF_ORDER_C };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
    assert_ok(tnf_builder_set(b, NULL, m->key, &m->value, &e));
    assert_ok(tnf_builder_set(b, m->name, m->tensor_key, &m->tensor_value, &e));
    return b;
}

struct heard {
    unsigned tensors;
    uint8_t last[32];
};

static void hear(void *ctx, const tnf_object *object, const uint8_t hash[32])
{
    struct heard *h = ctx;
    assert_non_null(object);
    h->tensors++;
    memcpy(h->last, hash, 32);
}

static void hash_as(uint8_t out[32], const tnf_builder *b, const char *format, struct heard *heard)
{
    tnf_error e = { 0 };
    tnf_sink *sink;
    tnf_source *source;
    tnf_file *file;
    tnf_save_options o = { .size = sizeof o, .format = format };
    tnf_hash_options h = { .size = sizeof h, .tensor = hear, .ctx = heard };
    *heard = (struct heard) { 0 };
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &o, &e));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    assert_ok(tnf_content_hash(out, file, &h, &e));
    tnf_close(file);
    tnf_sink_close(sink);
}

static void hash_model(uint8_t out[32], const struct model *m)
{
    struct heard heard;
    tnf_builder *b = build(m);
    hash_as(out, b, "ztensor2", &heard);
    tnf_builder_free(b);
}

/* Both worked out with Python's hashlib and struct, from the definition. */
static void by_the_definition(void **state)
{
    (void)state;
    static const uint8_t tensor[] = { 0x0d, 0x8c, 0xe5, 0xab, 0x90, 0x17, 0x6d, 0xb3,
                                      0x36, 0x64, 0x61, 0x17, 0xca, 0x13, 0x8c, 0x98,
                                      0xed, 0x13, 0x4d, 0x99, 0xb7, 0x86, 0x78, 0x56,
                                      0xd5, 0xd4, 0xa9, 0xb2, 0x61, 0x6a, 0x87, 0x11 };
    static const uint8_t content[] = { 0xea, 0x40, 0x81, 0xbb, 0xe3, 0x6f, 0x89, 0x90,
                                       0x12, 0xc7, 0xe2, 0xb6, 0x6d, 0xb9, 0x19, 0x43,
                                       0x20, 0xdd, 0x35, 0x97, 0xb8, 0xf3, 0x5b, 0x57,
                                       0xd1, 0x11, 0x31, 0xbe, 0x24, 0xb5, 0x17, 0x24 };
    uint8_t hash[32];
    struct heard heard;
    tnf_builder *b = build(&plain);
    hash_as(hash, b, "ztensor2", &heard);
    assert_int_equal(heard.tensors, 1);
    assert_memory_equal(heard.last, tensor, 32);
    assert_memory_equal(hash, content, 32);
    tnf_builder_free(b);
}

static void the_same_in_all(void **state)
{
    (void)state;
    static const char *const formats[] = { "safetensors", "ztensor0", "ztensor1" };
    uint8_t first[32], other[32];
    struct heard heard;
    tnf_builder *b = build(&plain);
    hash_as(first, b, "ztensor2", &heard);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        hash_as(other, b, formats[i], &heard);
        assert_memory_equal(first, other, 32);
    }
    tnf_builder_free(b);
}

/* The same values, stored the other way round. */
static void orders(void **state)
{
    (void)state;
    uint8_t rows[32], columns[32];
    struct model m = plain;
    m.columns = true;
    memcpy(m.data, (uint8_t[]) { 1, 5, 2, 6, 3, 7, 4, 8 }, 8);
    hash_model(rows, &plain);
    hash_model(columns, &m);
    assert_memory_equal(rows, columns, 32);
}

static void every_change_shows(void **state)
{
    (void)state;
    enum { CHANGES = 13 };
    uint8_t hashes[CHANGES + 1][32];
    struct model m[CHANGES];
    for (size_t i = 0; i < CHANGES; i++)
        m[i] = plain;
    m[0].name = "v";
    m[1].type = "i8";
    m[2].type = "bool"; /* the same storage */
    m[3].shape[0] = 4, m[3].shape[1] = 2;
    m[4].rank = 1, m[4].shape[0] = 8;
    m[5].data[7] ^= 1;
    m[6].key = "l";
    m[7].value.as.u = 2;
    m[8].value = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 1 };
    m[9].value.dtype = TNF_U8;
    m[10].tensor_key = "u";
    m[11].tensor_value = (tnf_value) { .kind = TNF_BYTES, .n = 1, .as.s = "x" };
    m[12].columns = true; /* the same bytes mean other values */
    hash_model(hashes[CHANGES], &plain);
    for (size_t i = 0; i < CHANGES; i++)
        hash_model(hashes[i], &m[i]);
    for (size_t i = 0; i <= CHANGES; i++)
        for (size_t k = 0; k < i; k++)
            if (memcmp(hashes[i], hashes[k], 32) == 0)
                fail_msg("changes %zu and %zu have one hash", k, i);
}

/* Threads, progress, no memory. */
static bool stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    return done > total;
}

static void stopped(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    tnf_sink *sink;
    tnf_source *source;
    tnf_file *file;
    uint8_t hash[32];
    tnf_builder *b = build(&plain);
    tnf_save_options o = { .size = sizeof o, .format = "ztensor2" };
    tnf_hash_options h = { .size = sizeof h, .progress = stop, .threads = 2 };
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &o, &e));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    assert_fails(tnf_content_hash(hash, file, &h, &e), TNF_ECANCELLED);
    tnf_close(file);
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_definition),
        cmocka_unit_test(the_same_in_all),
        cmocka_unit_test(orders),
        cmocka_unit_test(every_change_shows),
        cmocka_unit_test(stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
