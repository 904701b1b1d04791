/* SPDX-License-Identifier: MIT */
/* The plan reports what primitiv files cannot hold, before anything is written. If losses are
 * allowed, the rest is written and read back. */
#include "gptrs_files.h"

#define FORMAT "primitiv"
#define F32    tnf_type_of(TNF_F32)

static const float numbers[16] = { 1, 2, 3, 4, 5, 6 };

static tnf_builder *new_builder(void)
{
    tnf_builder *b;
    tnf_error e;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    return b;
}

static void add_vector(tnf_builder *b, const char *name, uint64_t n)
{
    tnf_error e;
    assert_int_equal(tnf_builder_add(b, name, F32, 1, &n, numbers, &e), TNF_OK);
}

static void set_attribute(tnf_builder *b, const char *name, const char *key, tnf_value value)
{
    tnf_error e;
    assert_int_equal(tnf_builder_set(b, name, key, &value, &e), TNF_OK);
}

static tnf_builder *build_vector(const char *name, uint64_t n)
{
    tnf_builder *b = new_builder();
    add_vector(b, name, n);
    return b;
}

/* The fate of one item in the plan. */
struct told {
    const char *name;
    tnf_fate fate;
    char why[128];
    int times;
};

static void note_item(void *ctx, const tnf_plan_item *item)
{
    struct told *t = ctx;
    if (item->name.n != strlen(t->name) || memcmp(item->name.p, t->name, item->name.n) != 0)
        return;
    t->fate = item->fate;
    t->times++;
    snprintf(t->why, sizeof t->why, "%s", item->reason);
}

/* Only plans: `name` has this fate, and the reason contains these words. */
static void check_plan(tnf_builder *b, const char *type, const char *name, tnf_fate fate,
                       const char *why)
{
    tnf_option option = { "type", type };
    struct told t = { .name = name };
    tnf_save_options o = { .size = sizeof o, .format = FORMAT, .dry_run = true, .plan = note_item };
    tnf_error e = { 0 };
    tnf_sink *sink;
    o.ctx = &t;
    o.options = &option;
    o.noptions = type ? 1 : 0;
    assert_int_equal(tnf_sink_memory(&sink, &e), TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, &e);
    assert_int_equal(status, fate < TNF_TRANSFORMED ? TNF_OK : TNF_ELOSSY);
    assert_int_equal(t.times, 1);
    assert_int_equal(t.fate, fate);
    if (!strstr(t.why, why))
        fail_msg("%s: '%s' is not in: %s", name, why, t.why);
    assert_int_equal(tnf_sink_bytes(sink).n, 0);
    tnf_sink_close(sink);
}

static void check_refused(tnf_builder *b, const char *name, const char *why)
{
    check_plan(b, NULL, name, TNF_DROPPED, why);
    tnf_builder_free(b);
}

/* Saves with losses allowed and opens the result. */
static tnf_file *save_lossy(const tnf_builder *b, const char *type, bytes *out)
{
    tnf_option option = { "type", type };
    tnf_save_options o = { .size = sizeof o, .format = FORMAT, .allow_loss = true };
    tnf_error e = { 0 };
    tnf_sink *sink;
    o.options = &option;
    o.noptions = type ? 1 : 0;
    assert_int_equal(tnf_sink_memory(&sink, &e), TNF_OK);
    if (tnf_save_sink(b, sink, &o, &e) != TNF_OK)
        fail_msg("%s", e.message);
    tnf_str written = tnf_sink_bytes(sink);
    *out = (bytes) { 0 };
    add_bytes(out, written.p, written.n);
    tnf_sink_close(sink);
    return must_open(out);
}

static void test_tensors_by_themselves(void **state)
{
    (void)state;
    uint64_t shape[9] = { 2, 1, 1, 1, 1, 1, 1, 1, 3 };
    check_refused(build_vector("w", 0), "w", "cannot store empty tensors");
    tnf_builder *b = build_vector("w", 1);
    check_plan(b, NULL, "w", TNF_TRANSFORMED, "are dropped");
    tnf_builder_free(b);
    b = new_builder();
    tnf_error e;
    assert_int_equal(tnf_builder_add(b, "w", tnf_type_of(TNF_I32), 1, shape, numbers, &e), TNF_OK);
    check_refused(b, "w", "has no type i32");
    b = new_builder();
    tnf_part part = { .role = "data", .type = F32, .stored = 24, .nbytes = 24 };
    part.memory = numbers;
    part.payload = TNF_MEMORY;
    tnf_object o = { .name = { "w", 1 }, .shape = shape, .rank = 9, .parts = &part, .nparts = 1 };
    o.layout = tnf_layout_by_id("dense");
    o.order = TNF_ORDER_F;
    assert_int_equal(tnf_builder_add_object(b, &o, NULL, &e), TNF_OK);
    check_refused(b, "w", "8 dimensions");
    b = build_vector("w", 2);
    set_attribute(b, "w", "primitiv.stat", tnf_value_uint(2));
    check_refused(b, "w", "not the key");
    b = build_vector("w", 2);
    set_attribute(b, "w", "primitiv.batch", tnf_value_uint(3));
    check_refused(b, "w", "not its last");
}

static void test_more_than_four_gigabytes(void **state)
{
    (void)state;
    tnf_builder *b = build_vector("w", (uint64_t)1 << 30); /* a plan does not read data */
    check_refused(b, "w", "4 GiB");
    b = build_vector("w", ((uint64_t)1 << 30) - 1);
    check_plan(b, NULL, "w", TNF_NATIVE, "");
    tnf_builder_free(b);
}

static tnf_builder *with_stats(void)
{
    tnf_builder *b = build_vector("w", 2);
    add_vector(b, "w@m", 3);
    set_attribute(b, "w@m", "primitiv.stat", tnf_value_string("m"));
    return b;
}

static void test_statistics_and_their_parameters(void **state)
{
    (void)state;
    tnf_builder *b = with_stats();
    check_plan(b, NULL, "w@m", TNF_NATIVE, "");
    check_plan(b, "tensor", "w@m", TNF_DROPPED, "no statistics");
    add_vector(b, "u@m", 2);
    set_attribute(b, "u@m", "primitiv.stat", tnf_value_string("m"));
    check_plan(b, NULL, "u@m", TNF_DROPPED, "its parameter is missing");
    bytes out;
    tnf_file *f = save_lossy(b, NULL, &out);
    assert_int_equal(tnf_file_info(f)->objects, 2);
    assert_non_null(tnf_find(f, "w@m"));
    tnf_close(f);
    free(out.p);
    tnf_builder_free(b);

    b = with_stats();
    add_vector(b, "other", 2); /* the same key again, with a different name */
    set_attribute(b, "other", "primitiv.stat", tnf_value_string("m"));
    set_attribute(b, "other", "primitiv.of", tnf_value_string("w"));
    check_refused(b, "other", "the same key");
}

/* If its parameter is dropped, the statistic is dropped, too. */
static void test_a_parameter_that_cannot_stay(void **state)
{
    (void)state;
    uint64_t two = 2;
    tnf_builder *b = new_builder();
    tnf_error e;
    assert_int_equal(tnf_builder_add(b, "w", tnf_type_of(TNF_I32), 1, &two, numbers, &e), TNF_OK);
    add_vector(b, "w@m", 3);
    set_attribute(b, "w@m", "primitiv.stat", tnf_value_string("m"));
    add_vector(b, "x", 2);
    check_plan(b, NULL, "w@m", TNF_DROPPED, "its parameter is missing");
    bytes out;
    tnf_file *f = save_lossy(b, NULL, &out);
    assert_int_equal(tnf_file_info(f)->objects, 1);
    tnf_close(f);
    free(out.p);
    tnf_builder_free(b);
}

static void test_batches(void **state)
{
    (void)state;
    tnf_builder *b = build_vector("w", 2);
    set_attribute(b, "w", "primitiv.batch", tnf_value_uint(2));
    check_plan(b, NULL, "w", TNF_DROPPED, "cannot have a batch");
    check_plan(b, "parameter", "w", TNF_DROPPED, "cannot have a batch");
    tnf_builder_free(b);
    b = build_vector("value", 2);
    set_attribute(b, "value", "primitiv.batch", tnf_value_uint(2));
    check_plan(b, "tensor", "value", TNF_NATIVE, "");
    tnf_builder_free(b);
}

static tnf_value one_config(tnf_member *room, const char *key, tnf_value value)
{
    *room = (tnf_member) { { key, strlen(key) }, value };
    return (tnf_value) { .kind = TNF_MAP, .n = 1, .as.members = room };
}

static void test_kinds_do_not_mix(void **state)
{
    (void)state;
    tnf_member room;
    bytes out;
    tnf_builder *b = build_vector("w", 2);
    set_attribute(b, NULL, "primitiv.uint_configs", one_config(&room, "e", tnf_value_uint(1)));
    check_plan(b, NULL, "primitiv.uint_configs", TNF_DROPPED, "only an optimizer");
    check_plan(b, "optimizer", "w", TNF_DROPPED, "no tensors");
    tnf_file *f = save_lossy(b, NULL, &out);
    assert_int_equal(tnf_file_info(f)->objects, 1);
    assert_null(tnf_value_get(tnf_file_info(f)->attrs, "primitiv.uint_configs"));
    tnf_close(f);
    free(out.p);
    f = save_lossy(b, "optimizer", &out);
    assert_int_equal(tnf_file_info(f)->objects, 0);
    assert_non_null(tnf_value_get(tnf_file_info(f)->attrs, "primitiv.uint_configs"));
    tnf_close(f);
    free(out.p);
    tnf_builder_free(b);

    b = build_vector("w", 2);
    tnf_value dims = { .kind = TNF_ARRAY };
    set_attribute(b, NULL, "primitiv.dims", dims);
    check_plan(b, NULL, "primitiv.dims", TNF_DROPPED, "of the kind shape");
    check_plan(b, "shape", "w", TNF_DROPPED, "no tensors");
    tnf_builder_free(b);
    b = build_vector("w", 2);
    set_attribute(b, NULL, "primitiv.type", tnf_value_string("module"));
    check_refused(b, "primitiv.type", "unknown kind");
}

static void test_files_of_one_tensor(void **state)
{
    (void)state;
    bytes out;
    tnf_builder *b = with_stats();
    add_vector(b, "x", 2);
    check_plan(b, "parameter", "x", TNF_DROPPED, "only one tensor");
    check_plan(b, "parameter", "w", TNF_TRANSFORMED, "its name");
    check_plan(b, "parameter", "w@m", TNF_TRANSFORMED, "its name");
    tnf_file *f = save_lossy(b, "parameter", &out);
    assert_non_null(tnf_find(f, "value"));
    assert_non_null(tnf_find(f, "value@m"));
    assert_int_equal(tnf_file_info(f)->objects, 2);
    tnf_close(f);
    free(out.p);
    tnf_builder_free(b);

    static const char *const tensor[] = { "type", "tensor", NULL };
    tnf_error e = { 0 };
    b = new_builder();
    assert_int_equal(save_builder(&out, b, FORMAT, tensor, &e), TNF_EINVAL);
    assert_non_null(strstr(e.message, "no tensor for a file of the kind tensor"));
    tnf_builder_free(b);
}

static void test_values_of_configs_and_shapes(void **state)
{
    (void)state;
    static const char uints[] = "primitiv.uint_configs", floats[] = "primitiv.float_configs";
    const tnf_value tenth = { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 0.1 };
    const tnf_value minus = { .kind = TNF_INT, .dtype = TNF_I64, .as.i = -1 };
    tnf_member room;
    tnf_builder *b = new_builder();
    set_attribute(b, NULL, uints, one_config(&room, "e", tnf_value_uint(UINT32_MAX)));
    check_plan(b, NULL, uints, TNF_NATIVE, "");
    set_attribute(b, NULL, uints, one_config(&room, "e", tnf_value_uint((uint64_t)1 << 32)));
    check_plan(b, NULL, uints, TNF_DROPPED, "32 bits");
    set_attribute(b, NULL, uints, one_config(&room, "e", minus));
    check_plan(b, NULL, uints, TNF_DROPPED, "32 bits");
    set_attribute(b, NULL, uints, tnf_value_string("e"));
    check_refused(b, uints, "not a map");
    b = new_builder();
    set_attribute(b, NULL, floats, one_config(&room, "e", minus));
    check_plan(b, NULL, floats, TNF_NATIVE, "");
    set_attribute(b, NULL, floats, one_config(&room, "e", tenth));
    check_plan(b, NULL, floats, TNF_TRANSFORMED, "rounded");
    set_attribute(b, NULL, floats, one_config(&room, "e", tnf_value_uint((1 << 24) + 1)));
    check_plan(b, NULL, floats, TNF_TRANSFORMED, "rounded");
    set_attribute(b, NULL, floats, one_config(&room, "e", tnf_value_bool(true)));
    check_refused(b, floats, "not a map");
    b = new_builder();
    tnf_value none = tnf_value_uint(0);
    set_attribute(b, NULL, "primitiv.dims",
                  (tnf_value) { .kind = TNF_ARRAY, .n = 1, .as.items = &none });
    check_refused(b, "primitiv.dims", "not a shape");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_by_themselves),
        cmocka_unit_test(test_more_than_four_gigabytes),
        cmocka_unit_test(test_statistics_and_their_parameters),
        cmocka_unit_test(test_a_parameter_that_cannot_stay),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_kinds_do_not_mix),
        cmocka_unit_test(test_files_of_one_tensor),
        cmocka_unit_test(test_values_of_configs_and_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
