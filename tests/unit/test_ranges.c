/* SPDX-License-Identifier: MIT */
/* Ranges of all tensors, compared with the file and each other, rule by rule. A picture is a row of
 * tensors, each "name begin end"; the file has 100 bytes and its data begin at 10. */
#include "../support/fake.h"

enum {
    START = TNF_RULE_DATA_START,
    HOLES = TNF_RULE_NO_HOLES,
    APART = TNF_RULE_NO_OVERLAP,
    ODD = TNF_RULE_OVERLAP_ODD
};

struct picture {
    unsigned rules;
    struct {
        const char *name;
        uint64_t begin, end;
    } tensor[4];
    tnf_status status; /* in strict mode */
    uint64_t offset;   /* of the error */
    const char *says;
    unsigned warnings; /* in lenient mode, or if the status is TNF_OK */
};

static const struct picture pictures[] = {
    /* no rules: anything inside the file */
    { 0, { { "a", 0, 100 }, { "b", 0, 100 } }, TNF_OK, 0, NULL, 0 },
    { 0, { { 0 } }, TNF_OK, 0, NULL, 0 },
    /* the end of the file */
    { 0, { { "a", 10, 101 } }, TNF_ETRUNCATED, 100, "1 byte is missing", 1 },
    { 0, { { "a", 10, 20 }, { "b", 500, 600 } }, TNF_ETRUNCATED, 100, "500 bytes are missing", 1 },
    { 0, { { "a", 100, 100 } }, TNF_OK, 0, NULL, 0 },
    { 0, { { "a", 101, 101 } }, TNF_ETRUNCATED, 100, "1 byte is", 1 },
    /* where data begin */
    { START, { { "a", 10, 100 } }, TNF_OK, 0, NULL, 0 },
    { START, { { "a", 9, 20 } }, TNF_EFORMAT, 9, "'a' begins at byte 9", 1 },
    { START, { { "b", 50, 60 }, { "a", 0, 1 }, { "c", 3, 30 } }, TNF_EFORMAT, 0, "'a'", 2 },
    /* overlap */
    { APART, { { "a", 10, 20 }, { "b", 20, 30 } }, TNF_OK, 0, NULL, 0 },
    { APART, { { "a", 10, 20 }, { "b", 19, 30 } }, TNF_EFORMAT, 19, "'a' and 'b' share bytes", 1 },
    { APART, { { "b", 19, 30 }, { "a", 10, 20 } }, TNF_EFORMAT, 19, "'a' and 'b'", 1 },
    { APART, { { "a", 10, 90 }, { "b", 20, 30 }, { "c", 40, 50 } }, TNF_EFORMAT, 20, "'b'", 2 },
    { APART, { { "a", 10, 20 }, { "b", 10, 20 } }, TNF_EFORMAT, 10, "share", 1 },
    { APART, { { "a", 10, 20 }, { "b", 15, 15 } }, TNF_OK, 0, NULL, 0 }, /* no byte is shared */
    { APART, { { "a", 20, 20 }, { "b", 10, 20 }, { "c", 20, 30 } }, TNF_OK, 0, NULL, 0 },
    { ODD, { { "a", 10, 20 }, { "b", 19, 30 } }, TNF_OK, 0, NULL, 1 },
    /* holes */
    { HOLES, { { "b", 60, 100 }, { "a", 10, 60 } }, TNF_OK, 0, NULL, 0 },
    { HOLES, { { "a", 10, 60 }, { "e", 60, 60 }, { "b", 60, 100 } }, TNF_OK, 0, NULL, 0 },
    { HOLES, { { "a", 12, 100 } }, TNF_EFORMAT, 10, "2 bytes before 'a'", 1 },
    { HOLES, { { "a", 10, 50 }, { "b", 51, 100 } }, TNF_EFORMAT, 50, "1 bytes before 'b'", 1 },
    { HOLES, { { "a", 10, 99 } }, TNF_EFORMAT, 99, "1 bytes after the last", 1 },
    { HOLES, { { 0 } }, TNF_EFORMAT, 10, "90 bytes after the last", 1 },
    { HOLES | APART, { { "a", 10, 60 }, { "b", 30, 100 } }, TNF_EFORMAT, 30, "share", 1 },
    { HOLES | APART, { { "a", 10, 100 }, { "e", 50, 50 } }, TNF_EFORMAT, 50, "share", 1 },
};

static void every_picture(void **state)
{
    (void)state;
    static const uint8_t bytes[100];
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        for (int lenient = 0; lenient < 2; lenient++) {
            const struct picture *p = &pictures[i];
            tnf_error e;
            struct fake f;
            fake_begin(&f, bytes, sizeof bytes, p->rules, lenient);
            f.r->data_start = 10;
            for (int t = 0; t < 4 && p->tensor[t].name; t++)
                assert_ok(fake_add(&f, p->tensor[t].name, p->tensor[t].begin,
                                   p->tensor[t].end - p->tensor[t].begin, &e));
            tnf_status status = tnf_check_ranges(f.file, &e);
            if (status != (lenient ? TNF_OK : p->status))
                fail_msg("picture %zu: %s", i, tnf_status_name(status));
            if (status != TNF_OK) {
                assert_int_equal(e.offset, p->offset);
                assert_says(p->says);
            } else if (f.warned != p->warnings) {
                fail_msg("picture %zu: %u warnings, the last %s", i, f.warned, f.warning);
            }
            fake_end(&f);
        }
}

/* If a file is opened leniently, parts beyond its end are listed; only these cannot be read. */
static void what_is_missing_cannot_be_read(void **state)
{
    (void)state;
    static const uint8_t bytes[100];
    tnf_error e;
    uint8_t out[10];
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, true);
    assert_ok(fake_add(&f, "there", 90, 10, &e));
    assert_ok(fake_add(&f, "half", 95, 10, &e));
    assert_ok(fake_add(&f, "gone", 1000, 10, &e));
    assert_ok(tnf_check_ranges(f.file, &e));
    assert_ok(tnf_read(out, 10, &f.file->catalog.objects[0], &e));
    assert_fails(tnf_read(out, 10, &f.file->catalog.objects[1], &e), TNF_EUNSUPPORTED);
    assert_fails(tnf_read(out, 10, &f.file->catalog.objects[2], &e), TNF_EUNSUPPORTED);
    fake_end(&f);
}

static void an_end_beyond_all_numbers(void **state)
{
    (void)state;
    static const uint8_t bytes[100];
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, true); /* refused in lenient mode, too */
    assert_ok(fake_add(&f, "a", UINT64_MAX - 5, 10, &e));
    assert_fails(tnf_check_ranges(f.file, &e), TNF_EFORMAT);
    assert_says("2^64");
    fake_end(&f);
}

/* Many tensors in any order take at most n log n time: otherwise this would run for minutes. */
static void many_in_any_order(void **state)
{
    (void)state;
    static const uint8_t bytes[30000];
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, APART | HOLES, false);
    f.r->limits.objects = 100000;
    for (unsigned i = 0; i < 30000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        assert_ok(fake_add(&f, name, (uint64_t)i * 7919 % 30000, 1, &e));
    }
    assert_ok(tnf_check_ranges(f.file, &e));
    fake_end(&f);
}

/* Parts in other places (a shard, memory, decoded) are not checked against this file. */
static void other_places(void **state)
{
    (void)state;
    static const uint8_t bytes[100];
    tnf_error e;
    struct fake f;
    struct tnf_origin elsewhere = { 0 };
    fake_begin(&f, bytes, sizeof bytes, APART | START, false);
    f.r->data_start = 10;
    uint64_t n = 8;
    tnf_part part = { .role = "data", .type = tnf_type_of(TNF_U8), .stored = 8, .nbytes = 8 };
    tnf_object o = { .name = { "a", 1 },
                     .shape = &n,
                     .rank = 1,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    part.origin = &elsewhere;
    assert_ok(tnf_add_object(f.r, &o, 0, &e));
    o.name.p = "b";
    part.origin = NULL;
    part.payload = TNF_OPAQUE;
    assert_ok(tnf_add_object(f.r, &o, 0, &e));
    o.name.p = "c";
    part.payload = TNF_MEMORY;
    part.memory = bytes;
    assert_ok(tnf_add_object(f.r, &o, 0, &e));
    assert_ok(tnf_check_ranges(f.file, &e));
    fake_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_picture),
        cmocka_unit_test(what_is_missing_cannot_be_read),
        cmocka_unit_test(an_end_beyond_all_numbers),
        cmocka_unit_test(many_in_any_order),
        cmocka_unit_test(other_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
