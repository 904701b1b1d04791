/* SPDX-License-Identifier: MIT */
/* Integers of 16 bytes through every format that can be written: a file either has them again, with
 * the same bytes, or the refusal names their type. Their source is memory, or a file whose bytes
 * are in the other order; formats with a choice write both orders. */
#include "support/unit.h"

#include "support/files.h"
#include "support/little.h"
#include <tenfold/build.h>
#include <tenfold/virtual.h>

enum { ROWS = 4, COLUMNS = 3, N = ROWS * COLUMNS };

/* The limits of both types, and numbers beside the limits of 64 bits: the lower half, the upper. */
static const uint64_t halves[N][2] = {
    { 0, 0x8000000000000000 },  /* the smallest */
    { UINT64_MAX, INT64_MAX },  /* the largest signed one */
    { UINT64_MAX, UINT64_MAX }, /* -1, or the largest */
    { 0, 0 },
    { 0, 1 },                           /* 2^64 */
    { UINT64_MAX, 0 },                  /* 2^64 - 1 */
    { 0, UINT64_MAX },                  /* -2^64 */
    { 0x8000000000000000, UINT64_MAX }, /* -2^63 */
    { 0x7fffffffffffffff, UINT64_MAX }, /* -2^63 - 1 */
    { 0x8000000000000000, 0 },
    { 0x0123456789abcdef, 0xfedcba9876543210 },
    { 1, 0 },
};

static uint8_t values[16 * N], reversed[16 * N];

static void fill_values(void)
{
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < 16; k++) {
            values[16 * i + k] = (uint8_t)(halves[i][k / 8] >> 8 * (k % 8));
            reversed[16 * i + 15 - k] = values[16 * i + k];
        }
}

/* What else a format needs around a tensor of numbers. */
static const struct need {
    const char *format, *name, *option[2], *attribute;
    bool words, bare;
} needs[] = {
    { "vs", "points", { NULL }, NULL, false, false },
    { "finalfusion", "embeddings", { "dialect", "seed" }, NULL, true, false },
    { "gguf", "embeddings", { "endian", "big" }, NULL, false, true },
    { "ztensor0", "embeddings", { "endian", "big" }, NULL, false, true },
    { "keras", "embeddings", { NULL }, "keras.config", false, false },
    { "onnx", "embeddings", { "bare", "yes" }, NULL, false, false },
};

static const struct need *need_of(const char *format)
{
    static const struct need usual = { .name = "embeddings" };
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (strcmp(needs[i].format, format) == 0)
            return &needs[i];
    return &usual;
}

/* A file whose elements are stored in the other byte order. */
struct other_order {
    tnf_sink *sink;
    tnf_file *file;
    tnf_virtual *swapped;
};

static const tnf_object *open_other(struct other_order *o, const tnf_type *type)
{
    static const uint64_t shape[] = { ROWS, COLUMNS };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_builder *b;
    tnf_source *source;
    tnf_error e;
    save.format = "ztensor2";
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "x", type, 2, shape, reversed, &e));
    assert_ok(tnf_sink_memory(&o->sink, &e));
    assert_ok(tnf_save_sink(b, o->sink, &save, &e));
    tnf_builder_free(b);
    tnf_str bytes = tnf_sink_bytes(o->sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&o->file, source, NULL, &e));
    const tnf_object *x = tnf_find(o->file, "x");
    how.kind = TNF_VIRTUAL_SWAP;
    assert_ok(tnf_virtual_new(&o->swapped, &x, 1, &how, &e));
    const tnf_object *there = tnf_virtual_object(o->swapped);
    assert_int_equal(there->parts->flags, TNF_PART_BIG_ENDIAN);
    return there;
}

static void close_other(struct other_order *o)
{
    tnf_virtual_free(o->swapped);
    tnf_close(o->file);
    tnf_sink_close(o->sink);
}

static void add_words(tnf_builder *b)
{
    static const uint64_t shape[] = { ROWS }, offsets[] = { 0, 1, 2, 3, 4 };
    tnf_error e;
    const tnf_part parts[] = {
        { .role = "offsets",
          .type = tnf_type_of(TNF_U64),
          .nbytes = sizeof offsets,
          .memory = to_little(offsets, 8, 5),
          .payload = TNF_MEMORY },
        { .role = "bytes",
          .type = tnf_type_of(TNF_U8),
          .nbytes = 4,
          .memory = "abcd",
          .payload = TNF_MEMORY },
    };
    tnf_object words = { .name = TNF_STR("vocab"),
                         .shape = shape,
                         .rank = 1,
                         .layout = tnf_layout_by_id("strings/1"),
                         .parts = parts,
                         .nparts = 2 };
    assert_ok(tnf_builder_add_object(b, &words, NULL, &e));
}

static void check_file(const char *path, const char *format, const char *name, const tnf_type *type)
{
    tnf_open_options how = TNF_OPEN_INIT;
    tnf_file *file;
    tnf_error e;
    uint8_t got[sizeof values];
    how.format = format;
    assert_ok(tnf_open(&file, path, &how, &e));
    const tnf_object *o = tnf_find(file, name);
    if (!o || o->parts->type != type || o->rank != 2 || o->shape[0] != ROWS ||
        o->shape[1] != COLUMNS)
        fail_msg("%s: %s became %s", format, type->id, o ? o->parts->type->id : "nothing");
    assert_ok(tnf_read(got, sizeof got, o, &e));
    if (memcmp(got, values, sizeof got) != 0)
        fail_msg("%s: the bytes of %s changed", format, type->id);
    for (size_t at = 1; at < sizeof got; at += 5) { /* not from the first byte of an element */
        assert_ok(tnf_read_part(got, sizeof got - at, o->parts, at, &e));
        assert_memory_equal(got, values + at, sizeof got - at);
    }
    tnf_close(file);
}

static unsigned written, refused;

/* Saves in one way. The object comes from a file, or from memory if it is NULL. */
static void try_format(const char *format, const tnf_type *type, const tnf_object *from,
                       const tnf_option *option)
{
    static const uint64_t shape[] = { ROWS, COLUMNS };
    const struct need *need = need_of(format);
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_builder *b;
    tnf_error e;
    char path[400];
    snprintf(path, sizeof path, "%s/%u", files_temp(), written + refused);
    how.format = format;
    how.options = option;
    how.noptions = option ? 1 : 0;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    if (need->words)
        add_words(b);
    if (from)
        assert_ok(tnf_builder_add_object(b, from, need->name, &e));
    else
        assert_ok(tnf_builder_add(b, need->name, type, 2, shape, values, &e));
    if (need->attribute) {
        const tnf_value config = { .kind = TNF_JSON, .n = 2, .as.s = "{}" };
        assert_ok(tnf_builder_set(b, NULL, need->attribute, &config, &e));
    }
    tnf_status status = tnf_save(b, path, &how, &e);
    tnf_builder_free(b);
    if (status == TNF_OK) {
        written++;
        check_file(path, format, need->name, type);
        return;
    }
    refused++;
    if (status != TNF_ELOSSY || !strstr(e.message, type->id))
        fail_msg("%s: the refusal of %s does not name it: %s", format, type->id, e.message);
}

static void every_format(void **state)
{
    (void)state;
    static const char *const types[] = { "i128", "u128" };
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    fill_values();
    for (size_t i = 0; tnf_format_at(&f, i); i++)
        for (size_t t = 0; t < 2 && f.caps & TNF_CAN_WRITE; t++) {
            const struct need *need = need_of(f.name);
            const tnf_option option = { need->option[0], need->option[1] };
            const tnf_type *type = tnf_type_named(types[t]);
            struct other_order o;
            const tnf_object *there = open_other(&o, type);
            if (option.key) {
                try_format(f.name, type, NULL, &option);
                try_format(f.name, type, there, &option);
            }
            if (!option.key || need->bare) {
                try_format(f.name, type, NULL, NULL);
                try_format(f.name, type, there, NULL);
            }
            close_other(&o);
        }
    print_message("%u written, %u refused\n", written, refused);
    assert_true(written >= 8 && refused >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_format) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
