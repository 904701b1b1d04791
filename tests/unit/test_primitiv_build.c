/* SPDX-License-Identifier: MIT */
/* Files built from C have the bytes that primitiv writes: those of its fixtures, and of complete
 * files that were observed. */
#include "../support/little.h"
#include "../support/unit.h"
#include "primitiv_files.h"

static const uint32_t two_by_two[] = { 2, 2 };
static const tnf_primitiv_shape square = { two_by_two, 2, 1 };
static const tnf_str p[] = { TNF_STR("p") };
static const tnf_str sm_p[] = { TNF_STR("sm"), TNF_STR("p") };

static tnf_builder *new_builder(void)
{
    tnf_builder *b;
    tnf_error e;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    return b;
}

static void saved_as(tnf_builder *b, const char *const *options, const bytes *want)
{
    tnf_error e;
    bytes got;
    assert_ok(save_builder(&got, b, "primitiv", options, &e));
    assert_same_bytes(&got, want, "built from C");
    free(got.p);
    tnf_builder_free(b);
}

static void saved_as_fixture(tnf_builder *b, const char *const *options, const char *name)
{
    fixture f = open_primitiv(name);
    saved_as(b, options, &f.bytes);
    close_primitiv(&f);
}

static void test_model(void **state)
{
    (void)state;
    static const float one[] = { 1, 2, 3, 4 }, five[] = { 5, 6, 7, 8 };
    static const float ten[] = { 10, 20, 30, 40 }, fifty[] = { 50, 60, 70, 80 };
    static const tnf_str a = TNF_STR("a"), bb = TNF_STR("b");
    tnf_error e;
    tnf_builder *b = new_builder(); /* in any order */
    assert_ok(tnf_primitiv_add(b, sm_p, 2, &bb, &square, to_little(fifty, 4, 4), &e));
    assert_ok(tnf_primitiv_add(b, sm_p, 2, NULL, &square, to_little(five, 4, 4), &e));
    assert_ok(tnf_primitiv_add(b, p, 1, NULL, &square, to_little(one, 4, 4), &e));
    assert_ok(tnf_primitiv_add(b, p, 1, &a, &square, to_little(ten, 4, 4), &e));
    assert_fails(tnf_primitiv_add(b, p, 1, &a, &square, to_little(ten, 4, 4), &e), TNF_EEXISTS);
    saved_as_fixture(b, NULL, "model_upstream_with_stats");
}

static void test_odd_names(void **state)
{
    (void)state;
    static const tnf_str paths[][3] = {
        { TNF_STR("") },
        { TNF_STR("Z") },
        { TNF_STR("a"), TNF_STR("b"), TNF_STR("w") },
        { TNF_STR("a"), TNF_STR("z") },
        { TNF_STR("a.b") },
        { TNF_STR("ab") },
        { TNF_STR("b"), TNF_STR("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn") },
        { TNF_STR("b"), TNF_STR("nul\0in") },
        { TNF_STR("z") },
        { TNF_STR("\xe3\x83\x91\xe3\x83\xa9") },
    };
    static const size_t names[] = { 1, 1, 3, 2, 1, 1, 2, 2, 1, 1 };
    static const uint32_t two = 2;
    const tnf_primitiv_shape pair = { &two, 1, 0 };
    fixture f = open_primitiv("model_nested_order");
    float data[10][2];
    tnf_error e;
    tnf_builder *b = new_builder();
    for (size_t i = 10; i-- > 0;) {
        const tnf_object *o;
        assert_ok(tnf_primitiv_find(&o, f.file, paths[i], names[i], NULL, &e));
        assert_ok(tnf_read(data[i], sizeof data[i], o, &e));
        assert_ok(tnf_primitiv_add(b, paths[i], names[i], NULL, &pair, data[i], &e));
    }
    saved_as(b, NULL, &f.bytes);
    close_primitiv(&f);
}

static void test_statistics_of_any_name(void **state)
{
    (void)state;
    static const tnf_str keys[] = { TNF_STR("a"), TNF_STR("\xff\xfe"), TNF_STR("nul\0in"),
                                    TNF_STR("") };
    static const tnf_str path[] = { TNF_STR("w\0") };
    static const uint32_t dims[] = { 2 };
    static const float data[6] = { 1, 2, 3, 4, 5, 6 };
    const tnf_primitiv_shape batched = { dims, 1, 3 }, plain = { dims, 1, 1 };
    tnf_error e;
    bytes got;
    tnf_builder *b = new_builder();
    assert_ok(tnf_primitiv_add(b, path, 1, NULL, &plain, to_little(data, 4, 6), &e));
    for (size_t i = 0; i < 4; i++)
        assert_ok(tnf_primitiv_add(b, path, 1, &keys[i], &batched, to_little(data, 4, 6), &e));
    assert_ok(save_builder(&got, b, "primitiv", NULL, &e));
    tnf_file *f = must_open(&got);
    for (size_t i = 0; i < 4; i++) {
        const tnf_object *o;
        assert_ok(tnf_primitiv_find(&o, f, path, 1, &keys[i], &e));
        assert_true(o->rank == 2 && o->shape[0] == 2 && o->shape[1] == 3);
        const tnf_value *batch = tnf_value_get(o->attrs, "primitiv.batch");
        assert_true(batch && batch->as.u == 3);
    }
    tnf_close(f);
    free(got.p);
    tnf_builder_free(b);
}

static void test_files_of_one_tensor(void **state)
{
    (void)state;
    static const float minus = -7.5f, six[] = { 1, 2, 3, 4, 5, 6 };
    static const uint32_t ones[] = { 1, 1 }, dims[] = { 2, 3 };
    static const char *const tensor[] = { "type", "tensor", NULL };
    tnf_primitiv_shape scalar = { ones, 2, 0 }, matrix = { dims, 2, 1 };
    tnf_error e;
    /* "scalar -7.5" */
    static const char text[] = "\xce\0\0\0\0\xce\0\0\0\1\xce\0\0\2\0\x90\xce\0\0\0\1\xc4\4\0\0\xf0"
                               "\xc0\xce\0\0\0\0";
    bytes want = { 0 };
    add_bytes(&want, text, sizeof text - 1);
    tnf_builder *b = new_builder();
    assert_ok(tnf_primitiv_add(b, NULL, 0, NULL, &scalar, to_little(&minus, 4, 1), &e));
    saved_as(b, NULL, &want);
    free(want.p);

    b = new_builder();
    assert_ok(tnf_primitiv_add(b, NULL, 0, NULL, &matrix, to_little(six, 4, 6), &e));
    saved_as_fixture(b, tensor, "tensor_2x3");
}

static void test_shapes(void **state)
{
    (void)state;
    static const uint32_t dims[] = { 2, 3, 1 }, zero[] = { 2, 0 };
    tnf_error e;
    tnf_primitiv_shape shape = { dims, 3, 4 };
    tnf_builder *b = new_builder();
    assert_ok(tnf_primitiv_set_shape(b, &shape, &e));
    saved_as_fixture(b, NULL, "shape_2x3_batch4");
    b = new_builder();
    shape = (tnf_primitiv_shape) { NULL, 0, 0 };
    assert_ok(tnf_primitiv_set_shape(b, &shape, &e));
    saved_as_fixture(b, NULL, "shape_scalar");
    b = new_builder();
    shape = (tnf_primitiv_shape) { zero, 2, 1 };
    assert_fails(tnf_primitiv_set_shape(b, &shape, &e), TNF_EINVAL);
    shape = (tnf_primitiv_shape) { dims, 9, 1 };
    assert_fails(tnf_primitiv_add(b, p, 1, NULL, &shape, NULL, &e), TNF_EINVAL);
    static const uint32_t huge[] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
    shape = (tnf_primitiv_shape) { huge, 3, 1 };
    assert_fails(tnf_primitiv_add(b, p, 1, NULL, &shape, NULL, &e), TNF_EINVAL);
    shape = (tnf_primitiv_shape) { dims, 2, 1 };
    assert_fails(tnf_primitiv_add(b, p, 1, NULL, &shape, NULL, &e), TNF_EINVAL);
    tnf_builder_free(b);
}

/* Adam(1,2,3,4), epoch 5, scale 6, l2 7, clip 8, in the observed order. */
static void test_optimizer(void **state)
{
    (void)state;
    static const tnf_primitiv_config uints[] = { { TNF_STR("Optimizer.epoch"), 5, 0 } };
    static const tnf_primitiv_config floats[] = {
        { TNF_STR("Adam.beta2"), 0, 3 },
        { TNF_STR("Adam.beta1"), 0, 2 },
        { TNF_STR("Optimizer.clip_threshold"), 0, 8 },
        { TNF_STR("Adam.eps"), 0, 4 },
        { TNF_STR("Adam.alpha"), 0, 1 },
        { TNF_STR("Optimizer.l2_strength"), 0, 7 },
        { TNF_STR("Optimizer.lr_scale"), 0, 6 },
    };
    tnf_error e;
    tnf_builder *b = new_builder();
    assert_ok(tnf_primitiv_set_optimizer(b, uints, 1, floats, 7, &e));
    saved_as_fixture(b, NULL, "optimizer_Adam_upstream");
    b = new_builder();
    assert_ok(tnf_primitiv_set_optimizer(b, NULL, 0, NULL, 0, &e));
    saved_as_fixture(b, NULL, "probe_o_empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_statistics_of_any_name),
        cmocka_unit_test(test_files_of_one_tensor),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_optimizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
