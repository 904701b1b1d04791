/* SPDX-License-Identifier: MIT */
/* Building a catalog: what is copied, and what is refused. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "core/save/save.h"

struct world {
    struct memory_log log;
    tnf_builder *b;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    tnf_allocator a = memory_allocator(&w->log);
    *state = w;
    return tnf_builder_new(&w->b, &a, NULL);
}

static int tear_down(void **state)
{
    struct world *w = *state;
    tnf_builder_free(w->b);
    tnf_builder_free(NULL);
    int bad = w->log.blocks != 0 || w->log.wrong_sizes != 0;
    free(w);
    return bad;
}

static tnf_status fetch_zeros(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)ctx, (void)offset, (void)e;
    memset(dst, 0, n);
    return TNF_OK;
}

static void adds_dense(void **state)
{
    struct world *w = *state;
    tnf_error e;
    char name[] = "w";
    uint64_t shape[] = { 2, 3 };
    float data[6] = { 0 };
    assert_ok(tnf_builder_add(w->b, name, tnf_type_of(TNF_F32), 2, shape, data, &e));
    name[0] = 'x'; /* name and shape are copied, data are not */
    shape[0] = 7;
    const tnf_object *o = tnf_catalog_find(&w->b->catalog, "w", 1);
    assert_non_null(o);
    assert_int_equal(o->shape[0], 2);
    assert_int_equal(o->parts->nbytes, 24);
    assert_ptr_equal(o->parts->memory, data);
    assert_int_equal(o->parts->payload, TNF_MEMORY);
    assert_fails(tnf_builder_add(w->b, "w", tnf_type_of(TNF_F32), 0, NULL, data, &e), TNF_EEXISTS);
    assert_ok(tnf_builder_add(w->b, "scalar", tnf_type_of(TNF_F32), 0, NULL, data, &e));
    uint64_t none[] = { 0, 5 };
    assert_ok(tnf_builder_add(w->b, "empty", tnf_type_of(TNF_F32), 2, none, NULL, &e));
    assert_ok(tnf_builder_add(w->b, "", tnf_type_of(TNF_U8), 0, NULL, data, &e));
    assert_int_equal(w->b->catalog.n, 4);
}

static void refuses_bad_tensors(void **state)
{
    struct world *w = *state;
    tnf_error e;
    uint64_t shape[] = { 2, 3 }, huge[] = { (uint64_t)1 << 40, (uint64_t)1 << 40 };
    uint64_t wraps[] = { (uint64_t)1 << 61 };
    float data[6] = { 0 };
    const tnf_type *f32 = tnf_type_of(TNF_F32), *f64 = tnf_type_of(TNF_F64);
    assert_fails(tnf_builder_add(w->b, NULL, f32, 2, shape, data, &e), TNF_EINVAL);
    assert_fails(tnf_builder_add(w->b, "w", NULL, 2, shape, data, &e), TNF_EINVAL);
    assert_fails(tnf_builder_add(w->b, "w", f32, 2, NULL, data, &e), TNF_EINVAL);
    assert_fails(tnf_builder_add(w->b, "w", f32, 2, shape, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_builder_add(w->b, "w", f32, 2, huge, data, &e), TNF_EINVAL);
    assert_fails(tnf_builder_add(w->b, "w", f64, 1, wraps, data, &e), TNF_EINVAL);
    assert_fails(tnf_builder_add_stream(w->b, "w", f32, 2, shape, NULL, NULL, &e), TNF_EINVAL);
    assert_ok(tnf_builder_add_stream(w->b, "s", f32, 2, shape, fetch_zeros, NULL, &e));
    assert_int_equal(w->b->catalog.n, 1);
}

/* Objects made by hand: a mistake gives an error, at once or on saving, and never a crash. */
static void objects_by_hand(void **state)
{
    struct world *w = *state;
    uint64_t shape[] = { 2, 3 };
    uint8_t data[24] = { 0 };
    const tnf_part good = { .role = "data",
                            .type = tnf_type_of(TNF_F32),
                            .memory = data,
                            .stored = 24,
                            .nbytes = 24,
                            .payload = TNF_MEMORY };
    const tnf_object base = {
        .name = { "w", 1 }, .shape = shape, .rank = 2, .nparts = 1, .layout = &tnf_layout_dense
    };
    enum {
        GOOD,
        NO_DATA,
        FORGOT_PAYLOAD,
        NO_PARTS,
        WRONG_SIZE,
        NO_TYPE,
        NO_ROLE,
        WRONG_ROLE,
        NO_LAYOUT,
        CASES
    };
    for (int i = 0; i < CASES; i++) {
        tnf_error e = { .status = TNF_OK };
        tnf_part part = good;
        tnf_object o = base;
        tnf_builder *b;
        tnf_sink *sink;
        o.parts = &part;
        part.memory = i == NO_DATA ? NULL : part.memory;
        part.payload = i == FORGOT_PAYLOAD ? TNF_AT : part.payload;
        o.nparts = i == NO_PARTS ? 0 : o.nparts;
        part.nbytes = i == WRONG_SIZE ? 20 : part.nbytes;
        part.type = i == NO_TYPE ? NULL : part.type;
        part.role = i == NO_ROLE ? NULL : i == WRONG_ROLE ? "values" : part.role;
        o.layout = i == NO_LAYOUT ? NULL : o.layout;
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_sink_memory(&sink, &e));
        tnf_save_options options = { .size = sizeof options, .format = "gptrs-archive" };
        tnf_status status = tnf_builder_add_object(b, &o, NULL, &e);
        if (status == TNF_OK)
            status = tnf_save_sink(b, sink, &options, &e);
        if (i == GOOD ? status != TNF_OK : status == TNF_OK)
            fail_msg("case %d: %s", i, tnf_status_name(status));
        if (i != GOOD && status != TNF_EINVAL && status != TNF_EFORMAT)
            fail_msg("case %d: %s: %s", i, tnf_status_name(status), e.message);
        tnf_sink_close(sink);
        tnf_builder_free(b);
    }
    (void)w;
}

static void renames_objects(void **state)
{
    struct world *w = *state;
    tnf_error e;
    uint8_t data[2] = { 0 };
    uint64_t shape[] = { 2 };
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .memory = data,
                      .stored = 2,
                      .nbytes = 2,
                      .payload = TNF_MEMORY };
    tnf_object o = { .name = { "a", 1 },
                     .shape = shape,
                     .rank = 1,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    assert_ok(tnf_builder_add_object(w->b, &o, NULL, &e));
    assert_ok(tnf_builder_add_object(w->b, &o, "b", &e));
    assert_non_null(tnf_catalog_find(&w->b->catalog, "a", 1));
    assert_non_null(tnf_catalog_find(&w->b->catalog, "b", 1));
    assert_fails(tnf_builder_add_object(w->b, &o, "b", &e), TNF_EEXISTS);
}

static void sets_attributes(void **state)
{
    struct world *w = *state;
    tnf_error e;
    char text[] = "value";
    tnf_value v = tnf_value_string(text);
    uint8_t data = 0;
    assert_ok(tnf_builder_add(w->b, "t", tnf_type_of(TNF_U8), 0, NULL, &data, &e));
    assert_ok(tnf_builder_set(w->b, NULL, "k", &v, &e));
    assert_ok(tnf_builder_set(w->b, "t", "k", &v, &e));
    text[0] = 'X'; /* it was copied */
    tnf_value map = tnf_attrs_value(&w->b->catalog.attrs);
    assert_string_equal(tnf_value_get(&map, "k")->as.s, "value");
    assert_string_equal(tnf_value_get(w->b->catalog.objects[0].attrs, "k")->as.s, "value");
    v = tnf_value_uint(3);
    assert_ok(tnf_builder_set(w->b, "t", "k", &v, &e));
    assert_ok(tnf_builder_set(w->b, "t", "other", &v, &e));
    assert_int_equal(tnf_value_get(w->b->catalog.objects[0].attrs, "k")->as.u, 3);
    assert_ok(tnf_builder_set(w->b, "t", "k", NULL, &e));
    assert_null(tnf_value_get(w->b->catalog.objects[0].attrs, "k"));
    assert_non_null(tnf_value_get(w->b->catalog.objects[0].attrs, "other"));
    assert_ok(tnf_builder_set(w->b, NULL, "k", NULL, &e));
    assert_int_equal(w->b->catalog.attrs.n, 0);
    assert_ok(tnf_builder_set(w->b, NULL, "not there", NULL, &e));
    assert_fails(tnf_builder_set(w->b, "no such", "k", &v, &e), TNF_ENOTFOUND);
    assert_fails(tnf_builder_set(w->b, NULL, NULL, &v, &e), TNF_EINVAL);
    tnf_value deep[100];
    for (int i = 0; i < 99; i++)
        deep[i] = (tnf_value) { .kind = TNF_ARRAY, .n = 1, .as.items = &deep[i + 1] };
    deep[99] = tnf_value_uint(1);
    assert_fails(tnf_builder_set(w->b, NULL, "deep", deep, &e), TNF_ELIMIT);
}

/* Values that no file can hold are refused; no other value is written instead. An integer without a
 * type has 64 bits. */
static void refuses_impossible_values(void **state)
{
    const struct world *w = *state;
    tnf_error e;
    const tnf_member twice[] = { { { "a", 2 }, tnf_value_uint(1) },
                                 { { "a", 2 }, tnf_value_uint(2) } };
    const struct {
        tnf_value value;
        const char *says;
    } bad[] = {
        { { .kind = TNF_INT, .dtype = TNF_I8, .as.i = 128 }, "does not fit" },
        { { .kind = TNF_INT, .dtype = TNF_I8, .as.i = -129 }, "does not fit" },
        { { .kind = TNF_INT, .dtype = TNF_I32, .as.i = INT64_C(1) << 31 }, "does not fit" },
        { { .kind = TNF_UINT, .dtype = TNF_U16, .as.u = 65536 }, "does not fit" },
        { { .kind = TNF_INT, .dtype = TNF_U32, .as.i = 7 }, "a signed integer" },
        { { .kind = TNF_UINT, .dtype = TNF_F32, .as.u = 7 }, "an unsigned integer" },
        { { .kind = TNF_FLOAT, .dtype = TNF_I64, .as.f64 = 7 }, "a float" },
        { { .kind = TNF_ARRAY, .dtype = TNF_DTYPE_COUNT + 1 }, "an array" },
        { { .kind = TNF_ARRAY, .dtype = 250 }, "an array" },
        { { .kind = TNF_MAP + 1 }, "unknown kind 10" },
        { tnf_value_map(twice, 2), "the key 'a\\x00' twice" },
        { tnf_value_text("\xff", 1), "not UTF-8" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(tnf_builder_set(w->b, NULL, "k", &bad[i].value, &e), TNF_EINVAL);
        assert_says(bad[i].says);
        tnf_member inside = { { "k", 1 }, bad[i].value };
        tnf_value map = tnf_value_map(&inside, 1);
        assert_fails(tnf_builder_set(w->b, NULL, "map", &map, &e), TNF_EINVAL);
    }
    static const char *const documents[] = { "not json", "{\"a\":1}}", "" };
    for (size_t i = 0; i < 3; i++) {
        tnf_value json = tnf_value_json(documents[i], strlen(documents[i]));
        tnf_value list = tnf_value_array(&json, 1);
        assert_int_not_equal(tnf_builder_set(w->b, NULL, "k", &json, &e), TNF_OK);
        assert_int_not_equal(tnf_builder_set(w->b, NULL, "k", &list, &e), TNF_OK);
    }
    assert_int_equal(w->b->catalog.attrs.n, 0);
    const tnf_value good[] = {
        { .kind = TNF_INT, .as.i = -5 },
        { .kind = TNF_UINT, .as.u = UINT64_MAX },
        { .kind = TNF_INT, .dtype = TNF_I8, .as.i = -128 },
        { .kind = TNF_INT, .dtype = TNF_I16, .as.i = INT16_MAX },
        { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = 255 },
    };
    static const tnf_dtype types[] = { TNF_I64, TNF_U64, TNF_I8, TNF_I16, TNF_U8 };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(tnf_builder_set(w->b, NULL, "k", &good[i], &e));
        tnf_value all = tnf_attrs_value(&w->b->catalog.attrs);
        const tnf_value *kept = tnf_value_get(&all, "k");
        assert_int_equal(kept->dtype, types[i]);
        assert_true(kept->as.u == good[i].as.u);
    }
}

/* Names and keys may contain a NUL if they have lengths. */
static void names_with_nul(void **state)
{
    struct world *w = *state;
    tnf_error e;
    uint8_t data = 0;
    const tnf_str name = TNF_STR("t\0u"), other = TNF_STR("t\0x"), key = TNF_STR("k\0l");
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .memory = &data,
                      .stored = 1,
                      .nbytes = 1,
                      .payload = TNF_MEMORY };
    const tnf_object o = { .name = name, .parts = &part, .nparts = 1, .layout = &tnf_layout_dense };
    const tnf_value v = tnf_value_uint(3);
    assert_ok(tnf_builder_add_object(w->b, &o, NULL, &e));
    assert_ok(tnf_builder_set_n(w->b, &name, key, &v, &e));
    assert_ok(tnf_builder_set_n(w->b, NULL, key, &v, &e));
    assert_fails(tnf_builder_set_n(w->b, &other, key, &v, &e), TNF_ENOTFOUND);
    assert_says("'t\\x00x'");
    assert_ok(
        tnf_builder_add_stream_n(w->b, other, tnf_type_of(TNF_U8), 0, NULL, fetch_zeros, NULL, &e));
    assert_non_null(tnf_catalog_find(&w->b->catalog, other.p, other.n));
    assert_fails(
        tnf_builder_add_stream_n(w->b, name, tnf_type_of(TNF_U8), 0, NULL, fetch_zeros, NULL, &e),
        TNF_EEXISTS);
    const tnf_value *of_tensor = w->b->catalog.objects[0].attrs;
    const tnf_value of_file = tnf_attrs_value(&w->b->catalog.attrs);
    assert_int_equal(tnf_value_get_n(of_tensor, "k\0l", 3)->as.u, 3);
    assert_int_equal(tnf_value_get_n(&of_file, "k\0l", 3)->as.u, 3);
    assert_null(tnf_value_get_n(&of_file, "k\0m", 3));
    assert_null(tnf_value_get(&of_file, "k"));
    assert_ok(tnf_builder_set_n(w->b, NULL, (tnf_str)TNF_STR("k\0m"), NULL, &e)); /* missing */
    assert_int_equal(w->b->catalog.attrs.n, 1);
    assert_ok(tnf_builder_set_n(w->b, NULL, key, NULL, &e));
    assert_int_equal(w->b->catalog.attrs.n, 0);
}

/* A tensor shares its attributes with the file until they are changed; then it has a copy. */
static void shared_attributes(void **state)
{
    struct world *w = *state;
    tnf_error e;
    const tnf_member members[] = { { { "k", 1 }, { .kind = TNF_NULL } } };
    const tnf_value map = { .kind = TNF_MAP, .n = 1, .as.members = members };
    uint8_t data = 0;
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .memory = &data,
                      .stored = 1,
                      .nbytes = 1,
                      .payload = TNF_MEMORY };
    tnf_object o = {
        .name = { "a", 1 }, .parts = &part, .nparts = 1, .attrs = &map, .layout = &tnf_layout_dense
    };
    assert_ok(tnf_builder_add_object(w->b, &o, NULL, &e));
    tnf_value v = tnf_value_uint(3);
    assert_ok(tnf_builder_set(w->b, "a", "k", &v, &e));
    assert_int_equal(members[0].value.kind, TNF_NULL);
    assert_int_equal(tnf_value_get(w->b->catalog.objects[0].attrs, "k")->as.u, 3);
}

static void values_from_json(void **state)
{
    struct world *w = *state;
    tnf_value v;
    tnf_error e;
    char text[] = "{\"a\":[1,-2,18446744073709551615,0.5,null,true],\"b\\n\":\"x\"}";
    assert_ok(tnf_builder_parse(&v, w->b, text, sizeof text - 1, &e));
    memset(text, 0, sizeof text); /* it is a copy */
    const tnf_value *a = tnf_value_get(&v, "a"), *b = tnf_value_get(&v, "b\n");
    assert_true(v.kind == TNF_MAP && a && a->n == 6 && b && b->kind == TNF_STRING);
    assert_string_equal(b->as.s, "x");
    assert_true(a->as.items[0].kind == TNF_INT && a->as.items[0].as.i == 1);
    assert_true(a->as.items[2].kind == TNF_UINT && a->as.items[2].as.u == UINT64_MAX);
    assert_true(a->as.items[3].kind == TNF_FLOAT && a->as.items[3].as.f64 == 0.5);
    assert_true(a->as.items[4].kind == TNF_NULL && a->as.items[5].as.b);
    assert_ok(tnf_builder_set(w->b, NULL, "key", &v, &e));
    assert_fails(tnf_builder_parse(&v, w->b, "[1,]", 4, &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 3);
    assert_fails(tnf_builder_parse(&v, w->b, "1 2", 3, &e), TNF_EFORMAT);
    w->log.fail_at = w->log.calls + 1;
    char large[20000];
    memset(large, ' ', sizeof large);
    assert_fails(tnf_builder_parse(&v, w->b, large, sizeof large, &e), TNF_ENOMEM);
}

static void refuses_odd_objects(void **state)
{
    const struct world *w = *state;
    static const float data[2];
    static const uint64_t shape[] = { 2 };
    const tnf_value texts[] = { tnf_value_string("x"), tnf_value_array(NULL, 0),
                                tnf_value_json("{}", 2) };
    tnf_error e;
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_F32),
                      .payload = TNF_MEMORY,
                      .memory = data,
                      .stored = 8,
                      .nbytes = 8 };
    tnf_object o = { .name = { "w", 1 },
                     .shape = shape,
                     .rank = 1,
                     .layout = &tnf_layout_dense,
                     .parts = &part,
                     .nparts = 1 };
    for (size_t i = 0; i < 3; i++) {
        o.attrs = &texts[i];
        assert_fails(tnf_builder_add_object(w->b, &o, NULL, &e), TNF_EINVAL);
        assert_says("not a map");
    }
    o.attrs = NULL;
    for (unsigned payload = TNF_AT; payload <= TNF_MEMORY + 1u; payload++) {
        float out[2];
        part.payload = (uint8_t)payload;
        if (payload == TNF_MEMORY)
            continue;
        assert_fails(tnf_builder_add_object(w->b, &o, NULL, &e), TNF_EINVAL);
        assert_fails(tnf_read_part(out, sizeof out, &part, 0, &e), TNF_EINVAL);
        const struct tnf_origin none = { .source = NULL };
        part.origin = &none;
        assert_fails(tnf_builder_add_object(w->b, &o, NULL, &e), TNF_EINVAL);
        assert_fails(tnf_read_part(out, sizeof out, &part, 0, &e), TNF_EINVAL);
        const tnf_extra extra = { { "x", 1 }, part };
        assert_fails(tnf_builder_add_extra(w->b, &extra, &e), TNF_EINVAL);
        part.origin = NULL;
    }
    part.payload = TNF_MEMORY;
    part.flags = 0x80;
    assert_fails(tnf_builder_add_object(w->b, &o, NULL, &e), TNF_EINVAL);
    assert_says("'flags' has the value 128");
    part.flags = 0;
    o.order = 7;
    assert_fails(tnf_builder_add_object(w->b, &o, NULL, &e), TNF_EINVAL);
    assert_says("'order' has the value 7,");
    o.order = TNF_ORDER_F;
    assert_ok(tnf_builder_add_object(w->b, &o, NULL, &e));
}

static void refuses_no_object(void **state)
{
    tnf_error e;
    tnf_builder *b;
    (void)state;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_fails(tnf_builder_add_object(b, NULL, NULL, &e), TNF_EINVAL);
    tnf_builder_free(b);
}

int main(void)
{
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(adds_dense),
        WITH_WORLD(refuses_bad_tensors),
        WITH_WORLD(objects_by_hand),
        WITH_WORLD(renames_objects),
        WITH_WORLD(sets_attributes),
        WITH_WORLD(shared_attributes),
        WITH_WORLD(values_from_json),
        WITH_WORLD(names_with_nul),
        WITH_WORLD(refuses_odd_objects),
        cmocka_unit_test(refuses_no_object),
        WITH_WORLD(refuses_impossible_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
