/* SPDX-License-Identifier: MIT */
/* Functions that formats call while they index: bounded reads, adding objects with all checks,
 * warnings. */
#include "../support/fake.h"

static uint8_t bytes[1000];

static void bounded_reads(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    tnf_cur c;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    assert_ok(tnf_read_range(f.r, "header", 10, 20, 100, &c, &e));
    assert_int_equal(tnf_left(&c), 20);
    assert_int_equal(tnf_where(&c), 10);
    assert_int_equal(tnf_u8(&c), 10);
    assert_string_equal(f.trace, "header, 20 bytes");
    assert_ok(tnf_read_range(f.r, "header", 1000, 0, 100, &c, &e));
    assert_int_equal(tnf_left(&c), 0);
    assert_fails(tnf_read_range(f.r, "header", 0, 101, 100, &c, &e), TNF_ELIMIT);
    assert_says("header");
    assert_fails(tnf_read_range(f.r, "index", 990, 30, 100, &c, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, 1000);
    assert_says("20 bytes are missing");
    assert_fails(tnf_read_range(f.r, "index", UINT64_MAX, 30, 100, &c, &e), TNF_ETRUNCATED);
    assert_says("30 bytes are missing");
    assert_fails(tnf_read_range(f.r, "index", 0, UINT64_MAX, UINT64_MAX, &c, &e), TNF_ELIMIT);
    f.r->limits.header_bytes = 5; /* the caller's limit counts as well */
    assert_fails(tnf_read_range(f.r, "index", 0, 6, 100, &c, &e), TNF_ELIMIT);
    assert_true(f.log.largest < 5000);
    fake_end(&f);
}

static void dense_tensors(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    uint64_t shape[] = { 2, 3 };
    tnf_dense d = { .name = { "wxyz", 1 },
                    .type = tnf_type_of(TNF_F32),
                    .shape = shape,
                    .rank = 2,
                    .offset = 8,
                    .length = 24,
                    .at = 5 };
    assert_ok(tnf_add_dense(f.r, &d, &e));
    shape[0] = 99; /* it was copied */
    const tnf_object *o = tnf_catalog_find(&f.file->catalog, "w", 1);
    assert_non_null(o);
    assert_int_equal(o->shape[0], 2);
    assert_int_equal(o->rank, 2);
    assert_int_equal(o->nparts, 1);
    assert_ptr_equal(o->layout, &tnf_layout_dense);
    assert_string_equal(o->parts->role, "data");
    assert_int_equal(o->parts->payload, TNF_AT);
    assert_int_equal(o->parts->offset, 8);
    assert_int_equal(o->parts->stored, 24);
    assert_int_equal(o->parts->nbytes, 24);
    assert_ptr_equal(o->parts->origin, &f.file->origin);
    fake_end(&f);
}

/* The length must match shape and type: every way to be wrong. */
static void the_size_equation(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint64_t shape[3];
        uint32_t rank;
        uint64_t length;
        bool fits;
    } cases[] = {
        { "f32", { 0 }, 0, 4, true },
        { "f32", { 0 }, 0, 0, false },
        { "f32", { 5 }, 1, 20, true },
        { "f32", { 5 }, 1, 19, false },
        { "f32", { 5 }, 1, 24, false },
        { "c128", { 3, 2 }, 2, 96, true },
        { "bit", { 9 }, 1, 2, true },
        { "bit", { 9 }, 1, 1, false },
        { "f4_e2m1", { 3 }, 1, 2, true },
        { "f6_e2m3", { 5 }, 1, 4, true },
        { "u8", { 3, 0, UINT64_MAX }, 3, 0, true },
        { "u8", { 3, 0, UINT64_MAX }, 3, 1, false },
        { "f64", { (uint64_t)1 << 61 }, 1, 0, false }, /* 2^64 bytes: wraps to 0 */
        { "f64", { (uint64_t)1 << 32, (uint64_t)1 << 29 }, 2, 0, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int lenient = 0; lenient < 2; lenient++) {
            tnf_error e;
            struct fake f;
            fake_begin(&f, bytes, sizeof bytes, 0, lenient);
            tnf_dense d = { .name = { "t", 1 },
                            .type = tnf_type_named(cases[i].type),
                            .shape = cases[i].shape,
                            .rank = cases[i].rank,
                            .length = cases[i].length,
                            .at = 7 };
            if (cases[i].fits) {
                assert_ok(tnf_add_dense(f.r, &d, &e));
            } else if (!lenient) {
                assert_fails(tnf_add_dense(f.r, &d, &e), TNF_EFORMAT);
                assert_int_equal(e.offset, 7);
                assert_says("'t'");
            } else { /* listed, but not readable */
                assert_ok(tnf_add_dense(f.r, &d, &e));
                assert_int_equal(f.warned, 1);
                uint8_t out;
                assert_fails(tnf_read_part(&out, 1, f.file->catalog.objects[0].parts, 0, &e),
                             TNF_EUNSUPPORTED);
            }
            fake_end(&f);
        }
}

/* Column-major, big-endian, only listed: further properties of an index entry. */
static void dense_otherwise(void **state)
{
    (void)state;
    static const uint8_t stored[] = { 0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6 }; /* 1 2 3 / 4 5 6 */
    static const uint8_t row[] = { 4, 0, 5, 0, 6, 0 };
    tnf_error e;
    struct fake f;
    uint8_t got[6];
    fake_begin(&f, stored, sizeof stored, 0, false);
    uint64_t shape[] = { 2, 3 }, flat[] = { 6 };
    tnf_dense d = { .name = { "m", 1 },
                    .type = tnf_type_of(TNF_U16),
                    .shape = shape,
                    .rank = 2,
                    .length = sizeof stored,
                    .order = TNF_ORDER_F,
                    .flags = TNF_PART_BIG_ENDIAN };
    assert_ok(tnf_add_dense(f.r, &d, &e));
    const tnf_object *o = tnf_catalog_find(&f.file->catalog, "m", 1);
    assert_int_equal(o->order, TNF_ORDER_F);
    const tnf_slice second[] = { { 1, 1, 1, true }, { 0, 1, 3, false } };
    assert_ok(tnf_read_slice(got, sizeof got, o, second, &e));
    assert_memory_equal(got, row, sizeof row);
    d.name = (tnf_str) { "v", 1 };
    d.shape = flat;
    d.rank = 1;
    d.flags |= TNF_PART_UNREADABLE;
    assert_ok(tnf_add_dense(f.r, &d, &e));
    o = tnf_catalog_find(&f.file->catalog, "v", 1);
    assert_int_equal(o->order, TNF_ORDER_C); /* rank 1: the orders are the same */
    assert_fails(tnf_read_part(got, 1, o->parts, 0, &e), TNF_EUNSUPPORTED);
    fake_end(&f);
}

static void limits_hold(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, true); /* lenient mode does not change the limits */
    uint64_t shape[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    char name[102];
    memset(name, 'n', sizeof name);
    tnf_dense d = { .name = { name, 100 },
                    .type = tnf_type_of(TNF_U8),
                    .shape = shape,
                    .rank = 8,
                    .length = 1,
                    .at = 3 };
    assert_ok(tnf_add_dense(f.r, &d, &e));
    d.name.n = 101;
    assert_fails(tnf_add_dense(f.r, &d, &e), TNF_ELIMIT);
    assert_int_equal(e.offset, 3);
    d.name.n = 99;
    d.rank = 9;
    assert_fails(tnf_add_dense(f.r, &d, &e), TNF_ELIMIT);
    d.rank = 2;
    shape[0] = shape[1] = (uint64_t)1 << 32;
    assert_fails(tnf_add_dense(f.r, &d, &e), TNF_EFORMAT); /* 2^64 elements */
    f.r->limits.objects = 1;
    d.rank = 0;
    assert_fails(tnf_add_dense(f.r, &d, &e), TNF_ELIMIT);
    tnf_object o = { .name = d.name, .layout = &tnf_layout_dense };
    assert_fails(tnf_add_object(f.r, &o, 4, &e), TNF_ELIMIT);
    fake_end(&f);
}

static void names_twice(void **state)
{
    (void)state;
    tnf_error e;
    for (int lenient = 0; lenient < 2; lenient++) {
        struct fake f;
        fake_begin(&f, bytes, sizeof bytes, 0, lenient);
        assert_ok(fake_add(&f, "a", 0, 10, &e));
        if (lenient) {
            assert_ok(fake_add(&f, "a", 10, 10, &e));
            assert_int_equal(f.file->catalog.n, 2);
            assert_int_equal(tnf_catalog_find(&f.file->catalog, "a", 1)->parts->offset, 10);
            assert_int_equal(f.warned, 1);
        } else {
            assert_fails(fake_add(&f, "a", 10, 10, &e), TNF_EFORMAT);
            assert_int_equal(e.offset, 1010);
        }
        fake_end(&f);
    }
}

/* If a format allows it, the first tensor of a name is found in both modes; there is still a
 * warning. */
static void names_that_may_repeat(void **state)
{
    (void)state;
    tnf_error e;
    for (int lenient = 0; lenient < 2; lenient++) {
        struct fake f;
        fake_begin(&f, bytes, sizeof bytes, TNF_RULE_NAMES_MAY_REPEAT, lenient);
        assert_ok(fake_add(&f, "a", 0, 10, &e));
        assert_ok(fake_add(&f, "a", 10, 10, &e));
        assert_int_equal(f.file->catalog.n, 2);
        assert_int_equal(tnf_catalog_find(&f.file->catalog, "a", 1)->parts->offset, 0);
        assert_int_equal(f.warned, 1);
        fake_end(&f);
    }
}

static void objects_of_any_layout(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    uint64_t shape[] = { 3 };
    tnf_part parts[] = {
        { .role = "offsets", .type = tnf_type_of(TNF_U64), .stored = 32, .nbytes = 32 },
        { .role = "bytes", .type = tnf_type_of(TNF_U8), .offset = 32, .stored = 5, .nbytes = 5 }
    };
    tnf_object o = { .name = { "words", 5 },
                     .shape = shape,
                     .rank = 1,
                     .parts = parts,
                     .nparts = 2,
                     .layout = tnf_layout_named("strings/1", 9) };
    assert_ok(tnf_add_object(f.r, &o, 9, &e));
    const tnf_object *in = &f.file->catalog.objects[0];
    assert_ptr_equal(in->parts[1].origin, &f.file->origin);
    o.name.n = 4;
    parts[0].nbytes = 24; /* one offset is missing */
    assert_fails(tnf_add_object(f.r, &o, 9, &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 9);
    fake_end(&f);
}

static void attributes_and_extras(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    assert_ok(tnf_set_attr(f.r, "fake.x", tnf_value_uint(1), &e));
    assert_ok(tnf_set_attr(f.r, "fake.x", tnf_value_uint(2), &e));
    assert_int_equal(f.file->catalog.attrs.n, 1);
    assert_ok(tnf_set_text(f.r, (tnf_str) { "k\0x", 3 }, (tnf_str) { "vvv", 2 }, &e));
    assert_int_equal(f.file->text.members[0].key.n, 3);
    assert_string_equal(f.file->text.members[0].value.as.s, "vv");
    assert_ok(tnf_add_extra(f.r, "fake.rest", 990, 10, &e));
    uint8_t out[10];
    assert_ok(tnf_read_part(out, 10, &f.file->catalog.extras[0].bytes, 0, &e));
    assert_memory_equal(out, bytes + 990, 10);
    fake_end(&f);
}

static void warns_if_lenient(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    assert_fails(tnf_stricter(f.r, &e, TNF_EDIGEST, 44, "odd %d", 1), TNF_EDIGEST);
    assert_int_equal(e.offset, 44);
    assert_string_equal(e.message, "odd 1");
    assert_int_equal(f.warned, 0);
    f.r->lenient = true;
    assert_ok(tnf_stricter(f.r, &e, TNF_EDIGEST, 44, "odd %d", 2));
    assert_string_equal(f.warning, "odd 2");
    for (int i = 0; i < 150; i++)
        tnf_warn(f.r, 5, "number %d", i);
    assert_int_equal(f.warned, 151);          /* all are reported */
    assert_int_equal(f.file->nwarnings, 100); /* some are stored */
    assert_string_equal(f.file->warnings[99].message, "number 98");
    assert_int_equal(f.file->warnings[0].offset, 44);
    f.file->options.warn = NULL;
    f.file->options.trace = NULL;
    tnf_warn(f.r, 0, "to nobody");
    tnf_trace(f.r, 0, "to nobody");
    assert_int_equal(f.warned, 151);
    fake_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounded_reads),         cmocka_unit_test(dense_tensors),
        cmocka_unit_test(the_size_equation),     cmocka_unit_test(dense_otherwise),
        cmocka_unit_test(limits_hold),           cmocka_unit_test(names_twice),
        cmocka_unit_test(names_that_may_repeat), cmocka_unit_test(objects_of_any_layout),
        cmocka_unit_test(attributes_and_extras), cmocka_unit_test(warns_if_lenient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
