/* SPDX-License-Identifier: MIT */
/* Slices as text: refused texts, and sizes. tests/slices.c compares slices with numpy. */
#include "../support/unit.h"
#include "core/core.h"

static tnf_status parse_text(const char *text, uint32_t rank, tnf_slice *out, tnf_error *e)
{
    static const uint64_t shape[] = { 4, 5, 6, 7 };
    return tnf_slice_parse(out, text, shape, rank, e);
}

static void one_by_one(void **state)
{
    (void)state;
    tnf_error e;
    tnf_slice s[4];
    assert_ok(parse_text("1:3,::-1,-1", 3, s, &e));
    assert_true(s[0].start == 1 && s[0].step == 1 && s[0].count == 2 && !s[0].drop);
    assert_true(s[1].start == 4 && s[1].step == -1 && s[1].count == 5 && !s[1].drop);
    assert_true(s[2].start == 5 && s[2].count == 1 && s[2].drop);
    assert_ok(parse_text("...,0", 4, s, &e));
    assert_true(s[0].count == 4 && s[2].count == 6 && s[3].drop);
    assert_ok(parse_text("0,...", 2, s, &e));
    assert_true(s[0].drop && s[1].count == 5);
    assert_ok(parse_text("", 2, s, &e));
    assert_true(s[0].count == 4 && s[1].count == 5);
    assert_ok(parse_text("", 0, s, &e));
    assert_ok(parse_text("...", 0, s, &e));
    assert_ok(parse_text(" 1 : 3 : 1 , 2 ", 2, s, &e)); /* spaces may be anywhere between */
    assert_true(s[0].count == 2 && s[1].start == 2);
    assert_ok(parse_text("0,", 1, s, &e));
    assert_ok(parse_text("9:,:-9", 2, s, &e)); /* ranges are clipped */
    assert_true(s[0].count == 0 && s[1].count == 0);
}

static void refuses_nonsense(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "x",
        "1:2:3:4",
        "::0",
        "1,2,3",
        "1 2",
        "0,,1",
        ",",
        ",0",
        "-",
        "1:-",
        "...,...",
        "....",
        "...0",
        "0x1",
        "1.0",
        "--1",
        "1;2",
        "[0]",
        "4",
        "-5",
        "0,5",
        "0,-6",
        "+",
        "+-1",
        ":,:,:",
        "1:2,3:4,5",
        "99999999999999999999",
        "0:99999999999999999999",
        ".",
        "..",
        "0 ,x",
        ":::",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tnf_error e;
        tnf_slice s[4];
        tnf_status status = parse_text(texts[i], 2, s, &e);
        if (status != TNF_EINVAL)
            fail_msg("'%s' gives %s", texts[i], tnf_status_name(status));
        assert_true(e.message[0] != 0);
    }
}

static void long_text_is_cut_in_messages(void **state)
{
    (void)state;
    tnf_error e;
    tnf_slice s[2];
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_fails(parse_text(text, 2, s, &e), TNF_EINVAL);
    memset(text, ',', sizeof text - 1);
    assert_fails(parse_text(text, 2, s, &e), TNF_EINVAL);
}

static void sizes_in_bytes(void **state)
{
    (void)state;
    uint64_t shape[] = { 4, 5 };
    tnf_part part = { .type = tnf_type_named("f4_e2m1") };
    tnf_object o = { .shape = shape, .rank = 2, .parts = &part, .nparts = 1 };
    tnf_slice s[] = { { 0, 1, 3, false }, { 0, 1, 3, false } };
    assert_int_equal(tnf_slice_bytes(&o, s), 5); /* nine halves of a byte each */
    part.type = tnf_type_of(TNF_F64);
    assert_int_equal(tnf_slice_bytes(&o, s), 72);
    s[0].count = 0;
    s[1].count = UINT64_MAX;
    assert_int_equal(tnf_slice_bytes(&o, s), 0);
    s[0].count = 3;
    assert_true(tnf_slice_bytes(&o, s) == UINT64_MAX); /* an impossible size */
    s[1].count = UINT64_MAX / 8;
    s[0].count = 1;
    assert_true(tnf_slice_bytes(&o, s) == UINT64_MAX - 7);
    o.rank = 0;
    assert_int_equal(tnf_slice_bytes(&o, s), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(refuses_nonsense),
        cmocka_unit_test(long_text_is_cut_in_messages),
        cmocka_unit_test(sizes_in_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
