/* SPDX-License-Identifier: MIT */
/* The format template, used through the library as if it were registered. This program has a
 * registry with only this format, and so the linker leaves out core/open/registry.c. Therefore it
 * is a program of its own. */
#include "../../support/little.h"
#include "../gptrs_files.h"

#include "core/core.h"

extern const tnf_format tnf_format_template;

const tnf_format *tnf_registry_at(size_t i)
{
    return i == 0 ? &tnf_format_template : NULL;
}

const tnf_format *tnf_registry_find(const char *name)
{
    return strcmp(name, "template") == 0 ? &tnf_format_template : NULL;
}

tnf_status tnf_registry_by_extension(const tnf_format **out, const char *path, tnf_error *e)
{
    (void)path;
    (void)e;
    *out = &tnf_format_template;
    return TNF_OK;
}

bool tnf_registry_owns(const char *key, size_t n)
{
    return n == 13 && memcmp(key, "template.note", n) == 0;
}

bool tnf_registry_derives(const tnf_member *attr)
{
    (void)attr;
    return false;
}

bool tnf_registry_spells(const tnf_member *attr)
{
    (void)attr;
    return false;
}

unsigned tnf_registry_caps(const tnf_format *format)
{
    return format->caps;
}

const char *tnf_extension(char out[16], const char *path)
{
    (void)path;
    out[0] = 0;
    return out;
}

/* ------------------------------------------------------------------- files */

/* Made by hand, from the drawing in TEMPLATE.c: "v" = i64 [2] and "s" = f32 [], with a note. */
static bytes sample_file(void)
{
    bytes b = { 0 };
    add_text(&b, "TNFTEMPL");
    add_number(&b, 1, 4);
    add_number(&b, 4 + 2 + 4 + 28 + 1 + 8 + 28 + 1, 4); /* 76: the index ends at 92 */
    add_number(&b, 2, 4);
    add_text(&b, "hi");
    add_number(&b, 2, 4);
    add_number(&b, 1, 4);
    add_text(&b, "v");
    add_number(&b, 1, 4);
    add_number(&b, 1, 4);
    add_number(&b, 2, 8);
    add_number(&b, 128, 8);
    add_number(&b, 16, 8);
    add_number(&b, 1, 4);
    add_text(&b, "s");
    add_number(&b, 0, 4);
    add_number(&b, 0, 4);
    add_number(&b, 192, 8);
    add_number(&b, 4, 8);
    while (b.n < 128)
        add_number(&b, 0, 1);
    add_number(&b, 7, 8);
    add_number(&b, 8, 8);
    while (b.n < 192)
        add_number(&b, 0, 1);
    add_number(&b, 0x3f800000, 4);
    return b;
}

static void test_read(void **state)
{
    (void)state;
    bytes b = sample_file();
    tnf_file *f = must_open(&b);
    tnf_error e;
    int64_t v[2];
    float s;
    const tnf_info *info = tnf_file_info(f);
    assert_string_equal(info->format, "template");
    assert_string_equal(info->version, "1");
    assert_int_equal(info->objects, 2);
    assert_string_equal(tnf_value_get(info->attrs, "template.note")->as.s, "hi");
    assert_int_equal(tnf_read(v, sizeof v, tnf_find(f, "v"), &e), TNF_OK);
    from_little(v, 8, 2);
    assert_true(v[0] == 7 && v[1] == 8);
    assert_int_equal(tnf_read(&s, sizeof s, tnf_find(f, "s"), &e), TNF_OK);
    from_little(&s, 4, 1);
    assert_true(s == 1.0f);
    tnf_close(f);
    free(b.p);
}

static void test_write(void **state)
{
    (void)state;
    bytes b = sample_file();
    tnf_file *f = must_open(&b);
    bytes got = save_file(f, "template", NULL);
    assert_same_bytes(&got, &b, "written again");
    free(got.p);
    got = save_file(f, "template", (const char *[]) { "align", "1", NULL });
    assert_int_equal(got.n, 92 + 16 + 4);
    tnf_file *g = must_open(&got);
    bytes back = save_file(g, "template", NULL);
    assert_same_bytes(&back, &b, "aligned again");
    tnf_close(g);
    tnf_close(f);
    free(back.p);
    free(got.p);
    free(b.p);
}

/* ------------------------------------------------------------------ refusals */

struct wrong {
    size_t at; /* the byte at this place is changed … */
    uint8_t byte;
    tnf_status status;
    uint64_t offset;
    bool lenient_opens;
};

static void test_refusals(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        { 8, 2, TNF_EUNSUPPORTED, 8, false },   /* version */
        { 12, 5, TNF_EFORMAT, 16, false },      /* index too short for the note */
        { 12, 8, TNF_EFORMAT, 22, false },      /* … for the count */
        { 12, 75, TNF_EFORMAT, 63, false },     /* … for the last tensor */
        { 12, 77, TNF_EFORMAT, 92, true },      /* a byte too long */
        { 15, 255, TNF_ELIMIT, 16, false },     /* 4 GiB of index */
        { 20, 0xff, TNF_EFORMAT, 20, false },   /* note is not UTF-8 */
        { 29, 255, TNF_EFORMAT, 26, false },    /* name runs past the index */
        { 31, 3, TNF_EUNSUPPORTED, 31, false }, /* type */
        { 35, 200, TNF_EFORMAT, 26, false },    /* rank */
        { 39, 3, TNF_EFORMAT, 26, true },       /* 16 bytes for three i64 */
        { 48, 1, TNF_ETRUNCATED, 196, true },   /* offset beyond the file */
        { 47, 90, TNF_EFORMAT, 90, true },      /* offset inside the index */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = sample_file();
        tnf_file *f = NULL;
        tnf_error e = { 0 };
        b.p[cases[i].at] = cases[i].byte;
        if (open_bytes(&f, &b, false, &e) != cases[i].status || e.offset != cases[i].offset)
            fail_msg("case %zu: %s at %llu: %s", i, tnf_status_name(e.status),
                     (unsigned long long)e.offset, e.message);
        assert_int_equal(open_bytes(&f, &b, true, &e) == TNF_OK, cases[i].lenient_opens);
        tnf_close(f);
        free(b.p);
    }
}

static void test_every_cut_and_flip(void **state)
{
    (void)state;
    bytes b = sample_file();
    for (size_t n = 0; n < b.n; n++) {
        bytes cut = { 0 };
        tnf_file *f = NULL;
        tnf_error e;
        add_bytes(&cut, b.p, n);
        assert_int_not_equal(open_bytes(&f, &cut, false, &e), TNF_OK);
        free(cut.p);
    }
    for (size_t bit = 0; bit < 8 * b.n; bit++) {
        tnf_file *f = NULL;
        tnf_error e;
        b.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (open_bytes(&f, &b, bit % 2, &e) == TNF_OK)
            assert_string_equal(tnf_file_info(f)->format, "template");
        tnf_close(f);
        b.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(b.p);
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2 };
    static const uint16_t halves[2];
    tnf_builder *b;
    tnf_error e;
    bytes out;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(save_builder(&out, b, "template", (const char *[]) { "align", "3", NULL }, &e),
                     TNF_EINVAL);
    assert_int_equal(tnf_builder_add(b, "h", tnf_type_of(TNF_F16), 1, shape, halves, &e), TNF_OK);
    assert_int_equal(save_builder(&out, b, "template", NULL, &e), TNF_ELOSSY);
    tnf_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_every_cut_and_flip),
        cmocka_unit_test(test_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
