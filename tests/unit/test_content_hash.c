/* SPDX-License-Identifier: MIT */
/* The content hash: correct by the definition in content_hash.c for a case computed with another
 * program, equal in every container, and different for every single change. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "core/core.h"
#include <tenfold/value.h>

/* Properties that are changed, one at a time. */
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

static tnf_builder *build_model(const struct model *m)
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

static void hear_tensor(void *ctx, const tnf_object *object, const uint8_t hash[32])
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
    tnf_hash_options h = { .size = sizeof h, .tensor = hear_tensor, .ctx = heard };
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
    tnf_builder *b = build_model(m);
    hash_as(out, b, "ztensor2", &heard);
    tnf_builder_free(b);
}

/* Both were computed with Python's hashlib and struct, from the definition. */
static void by_the_definition(void **state)
{
    (void)state;
    static const uint8_t tensor[] = { 0x3c, 0x3c, 0x0e, 0x30, 0x6c, 0xf6, 0x4a, 0x61,
                                      0x43, 0x19, 0x90, 0x27, 0xc8, 0x2c, 0x98, 0x93,
                                      0xb5, 0x52, 0x4b, 0xa5, 0x50, 0xcc, 0xb1, 0xd1,
                                      0x13, 0x96, 0x9e, 0xf2, 0x7d, 0x07, 0xd4, 0x28 };
    static const uint8_t content[] = { 0x04, 0xbe, 0x96, 0x4b, 0xd0, 0x23, 0xc8, 0x3c,
                                       0xe1, 0x1f, 0x65, 0xda, 0x0d, 0x2c, 0xec, 0x80,
                                       0xd1, 0x6e, 0x4e, 0x90, 0x43, 0x15, 0xa8, 0x1b,
                                       0xb0, 0x8b, 0x25, 0xa2, 0x14, 0x0c, 0xe2, 0x6d };
    uint8_t hash[32];
    struct heard heard;
    tnf_builder *b = build_model(&plain);
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
    tnf_builder *b = build_model(&plain);
    hash_as(first, b, "ztensor2", &heard);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        hash_as(other, b, formats[i], &heard);
        assert_memory_equal(first, other, 32);
    }
    tnf_builder_free(b);
}

/* The same values in the other order. */
static void orders_hash_alike(void **state)
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
    m[2].type = "bool"; /* the type of the stored bytes is the same */
    m[3].shape[0] = 4, m[3].shape[1] = 2;
    m[4].rank = 1, m[4].shape[0] = 8;
    m[5].data[7] ^= 1;
    m[6].key = "l";
    m[7].value.as.u = 2;
    m[8].value = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 1 };
    m[9].value.dtype = TNF_U8;
    m[10].tensor_key = "u";
    m[11].tensor_value = (tnf_value) { .kind = TNF_BYTES, .n = 1, .as.s = "x" };
    m[12].columns = true; /* the same bytes represent other values */
    hash_model(hashes[CHANGES], &plain);
    for (size_t i = 0; i < CHANGES; i++)
        hash_model(hashes[i], &m[i]);
    for (size_t i = 0; i <= CHANGES; i++)
        for (size_t k = 0; k < i; k++)
            if (memcmp(hashes[i], hashes[k], 32) == 0)
                fail_msg("changes %zu and %zu have one hash", k, i);
}

/* Threads, progress, failing allocations. */
static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    return done > total;
}

static void stops_on_request(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    tnf_sink *sink;
    tnf_source *source;
    tnf_file *file;
    uint8_t hash[32];
    tnf_builder *b = build_model(&plain);
    tnf_save_options o = { .size = sizeof o, .format = "ztensor2" };
    tnf_hash_options h = { .size = sizeof h, .progress = stop_at_once, .threads = 2 };
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

/* ----------------------------------------------------------------- leaves */

enum { LARGE = 9 * 1024 * 1024 + 5, LEAVES = 3, STRINGS = 3 };

/* The hash of the bytes of a part, by the definition. */
static void root_of(uint8_t out[32], const uint8_t *p, uint64_t n, uint8_t leaves[][32])
{
    tnf_digester d, leaf;
    uint8_t size[8];
    assert_true(tnf_digest_begin(&d, "sha256"));
    tnf_digest_update(&d, "tenfold part 2\n", 15);
    tnf_put_le64(size, n);
    tnf_digest_update(&d, size, 8);
    for (uint64_t at = 0, i = 0; at < n; at += 4194304, i++) {
        assert_true(tnf_digest_begin(&leaf, "sha256"));
        tnf_digest_update(&leaf, "tenfold leaf 2\n", 15);
        tnf_digest_update(&leaf, p + at, n - at < 4194304 ? (size_t)(n - at) : 4194304);
        tnf_digest_end(&leaf, leaves[i]);
        tnf_digest_update(&d, leaves[i], 32);
    }
    tnf_digest_end(&d, out);
}

static void put_numbers(tnf_digester *d, const uint64_t *v, size_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++) {
        tnf_put_le64(bytes, v[i]);
        tnf_digest_update(d, bytes, 8);
    }
}

static void put_words(tnf_digester *d, const char *text)
{
    put_numbers(d, (uint64_t[]) { strlen(text) }, 1);
    tnf_digest_update(d, text, strlen(text));
}

/* A long array is hashed piece by piece, with the same result as for the complete text of the
 * definition. */
static void long_arrays(void **state)
{
    (void)state;
    enum { N = 2500 };
    static const char title[] = "tenfold content 2\n";
    static tnf_value items[N];
    static char text[6 * N + 2] = "[";
    struct model m = plain;
    struct heard heard;
    uint8_t hash[32], expected[32];
    tnf_digester d;
    size_t n = 1;
    for (size_t i = 0; i < N; i++) {
        items[i] = tnf_value_bool(i % 3 == 0);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%c", i % 3 ? "false" : "true",
                              i + 1 < N ? ',' : ']');
    }
    m.value = tnf_value_array(items, N);
    tnf_builder *b = build_model(&m);
    hash_as(hash, b, "ztensor2", &heard);
    tnf_builder_free(b);
    assert_true(tnf_digest_begin(&d, "sha256"));
    tnf_digest_update(&d, title, sizeof title - 1);
    put_numbers(&d, (uint64_t[]) { 1 }, 1);
    put_words(&d, "w");
    tnf_digest_update(&d, heard.last, 32);
    put_numbers(&d, (uint64_t[]) { 1 }, 1);
    put_words(&d, "t");
    put_words(&d, "\"x\"");
    put_numbers(&d, (uint64_t[]) { 1 }, 1);
    put_words(&d, "k");
    put_words(&d, text);
    put_numbers(&d, (uint64_t[]) { 0 }, 1);
    tnf_digest_end(&d, expected);
    assert_memory_equal(hash, expected, 32);
}

struct seen {
    unsigned leaves, tensors, before[4]; /* leaves before each tensor */
    uint8_t leaf[16][32], tensor[4][32];
    uint64_t offset[16];
    char role[16][16];
};

static void see_leaf(void *ctx, const tnf_leaf *leaf)
{
    struct seen *s = ctx;
    assert_true(s->leaves < 16);
    memcpy(s->leaf[s->leaves], leaf->hash, 32);
    s->offset[s->leaves] = leaf->offset;
    snprintf(s->role[s->leaves++], 16, "%s", leaf->part->role);
    assert_true(leaf->nbytes > 0 && leaf->offset + leaf->nbytes <= leaf->part->nbytes);
    assert_true(leaf->nbytes == TNF_LEAF_BYTES ||
                leaf->offset + leaf->nbytes == leaf->part->nbytes);
}

static void see_tensor(void *ctx, const tnf_object *object, const uint8_t hash[32])
{
    struct seen *s = ctx;
    assert_non_null(object);
    s->before[s->tensors] = s->leaves;
    memcpy(s->tensor[s->tensors++], hash, 32);
}

/* Strings of LARGE bytes, and a dense tensor of the same size. */
static tnf_builder *build_large(const uint8_t *bytes, const uint8_t *offsets)
{
    tnf_builder *b;
    tnf_error e;
    static const uint64_t count[] = { STRINGS }, size[] = { LARGE };
    tnf_part parts[] = { { .role = "offsets",
                           .type = tnf_type_named("u64"),
                           .memory = offsets,
                           .stored = 8 * (STRINGS + 1),
                           .nbytes = 8 * (STRINGS + 1),
                           .payload = TNF_MEMORY },
                         { .role = "bytes",
                           .type = tnf_type_named("u8"),
                           .memory = bytes,
                           .stored = LARGE,
                           .nbytes = LARGE,
                           .payload = TNF_MEMORY } };
    tnf_part data = parts[1];
    data.role = "data";
    tnf_object strings = { .name = { "strings", 7 },
                           .shape = count,
                           .rank = 1,
                           .parts = parts,
                           .nparts = 2,
                           .layout = tnf_layout_by_id("strings/1") };
    tnf_object dense = { .name = { "w", 1 },
                         .shape = size,
                         .rank = 1,
                         .parts = &data,
                         .nparts = 1,
                         .layout = tnf_layout_by_id("dense") };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_object(b, &strings, NULL, &e));
    assert_ok(tnf_builder_add_object(b, &dense, NULL, &e));
    return b;
}

/* The hash of the tensor "strings", by the definition; its leaves are `leaves`, then that of the
 * offsets. */
static void expect_strings(uint8_t out[32], uint8_t leaves[][32], const uint8_t *bytes,
                           const uint8_t *offsets)
{
    tnf_digester d;
    uint8_t root[2][32];
    root_of(root[0], bytes, LARGE, leaves);
    root_of(root[1], offsets, 8 * (STRINGS + 1), leaves + LEAVES);
    assert_true(tnf_digest_begin(&d, "sha256"));
    tnf_digest_update(&d, "tenfold tensor 2\n", 17);
    put_words(&d, "strings/1");
    put_numbers(&d, (uint64_t[]) { 1, STRINGS, 2 }, 3);
    put_words(&d, "bytes");
    put_words(&d, "u8");
    put_numbers(&d, (uint64_t[]) { LARGE }, 1);
    tnf_digest_update(&d, root[0], 32);
    put_words(&d, "offsets");
    put_words(&d, "u64");
    put_numbers(&d, (uint64_t[]) { 8 * (STRINGS + 1) }, 1);
    tnf_digest_update(&d, root[1], 32);
    tnf_digest_end(&d, out);
}

static void hash_large(struct seen *seen, uint8_t out[32], const tnf_builder *b, const char *format,
                       bool zstd, unsigned threads)
{
    tnf_error e = { 0 };
    tnf_sink *sink;
    tnf_source *source;
    tnf_file *file;
    static const tnf_option encoding = { "encoding", "zstd" };
    tnf_save_options o = { .size = sizeof o, .format = format, .options = &encoding };
    o.noptions = zstd;
    tnf_hash_options h = { .size = sizeof h, .tensor = see_tensor, .leaf = see_leaf, .ctx = seen };
    h.threads = threads;
    *seen = (struct seen) { 0 };
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &o, &e));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    assert_ok(tnf_content_hash(out, file, &h, &e));
    h.leaf = NULL;
    h.tensor = NULL;
    uint8_t again[32]; /* without keeping the hashes */
    assert_ok(tnf_content_hash(again, file, &h, &e));
    assert_memory_equal(again, out, 32);
    tnf_close(file);
    tnf_sink_close(sink);
}

/* In any container, and with any number of threads. */
static void by_leaves(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        bool zstd;
    } forms[] = {
        { "ztensor2", false }, { "ztensor2", true }, { "ztensor1", false }, { "ztensor1", true }
    };
    uint64_t offsets[STRINGS + 1] = { 0, 3, 5000000, LARGE };
    uint8_t packed[8 * (STRINGS + 1)], leaves[LEAVES + 1][32], tensor[32], first[32], hash[32];
    uint8_t *bytes = malloc(LARGE);
    assert_non_null(bytes);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (uint8_t)('a' + i * 7 / 1000 % 26);
    for (size_t i = 0; i <= STRINGS; i++)
        tnf_put_le64(packed + 8 * i, offsets[i]);
    expect_strings(tensor, leaves, bytes, packed);
    tnf_builder *b = build_large(bytes, packed);
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (unsigned threads = 1; threads < 6; threads++) {
            struct seen seen;
            hash_large(&seen, hash, b, forms[f].format, forms[f].zstd, threads);
            if (f == 0 && threads == 1)
                memcpy(first, hash, 32);
            assert_memory_equal(hash, first, 32);
            assert_int_equal(seen.leaves, 2 * LEAVES + 1);
            assert_int_equal(seen.before[0], LEAVES + 1);
            assert_memory_equal(seen.leaf, leaves, sizeof leaves);
            assert_memory_equal(seen.leaf + LEAVES + 1, leaves, (size_t)LEAVES * 32);
            assert_memory_equal(seen.tensor[0], tensor, 32);
            assert_string_equal(seen.role[LEAVES], "offsets");
            assert_int_equal(seen.offset[2], 2 * TNF_LEAF_BYTES);
        }
    tnf_builder_free(b);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_definition), cmocka_unit_test(the_same_in_all),
        cmocka_unit_test(orders_hash_alike), cmocka_unit_test(every_change_shows),
        cmocka_unit_test(stops_on_request),  cmocka_unit_test(long_arrays),
        cmocka_unit_test(by_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
