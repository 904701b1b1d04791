/* SPDX-License-Identifier: MIT */
/* CBOR as trees and back, against the results of the cbor2 package (vectors/cbor.txt), and values
 * that trees cannot represent. */
#include "wire_fixture.h"

#include "model/value.h"
#include "wire/cbor.h"

#define DEPTH 32u

static tnf_status read_hex(fixture *f, const char *hex, tnf_cbor_profile profile, tnf_value *v)
{
    size_t n;
    uint8_t *bytes = bytes_from_hex(hex, &n);
    tnf_cbor r;
    memset(&f->e, 0, sizeof f->e);
    tnf_cbor_init(&r, bytes, n, BASE, &f->arena, DEPTH, profile, &f->e);
    if (tnf_cbor_value(&r, v))
        tnf_cbor_end(&r);
    free(bytes); /* a tree does not borrow bytes */
    return r.status;
}

static void assert_written(fixture *f, const tnf_value *v, tnf_cbor_profile profile,
                           const char *hex)
{
    tnf_buf b;
    tnf_buf_init(&b, &f->alloc, 64u << 20);
    if (tnf_cbor_put_value(&b, v, profile, DEPTH, &f->e) != TNF_OK)
        fail_msg("%s: %s", hex, f->e.message);
    assert_hex(b.p, b.n, hex);
    tnf_buf_free(&b);
}

static void agrees_with_cbor2(void **state)
{
    fixture *f = *state;
    FILE *file = fopen(TNF_TESTS_DIR "/unit/vectors/cbor.txt", "r");
    char *text = NULL, *fields[3];
    size_t capacity = 0, lines = 0;
    assert_non_null(file);
    for (tnf_value v; next_vector(file, &text, &capacity, fields, 3); lines++) {
        const char *bytes = fields[0], *canonical = fields[1], *typed = fields[2];
        if (read_hex(f, bytes, TNF_CBOR_LENIENT, &v) != TNF_OK)
            fail_msg("%s: %s", bytes, f->e.message);
        assert_typed(&v, typed);
        assert_written(f, &v, TNF_CBOR_STRICT, canonical);
        bool is_canonical = strcmp(bytes, canonical) == 0;
        tnf_status status = read_hex(f, bytes, TNF_CBOR_STRICT, &v);
        if (is_canonical != (status == TNF_OK))
            fail_msg("%s, canonically %s: %s", bytes, canonical, f->e.message);
        if (!is_canonical)
            continue;
        assert_typed(&v, typed);
        assert_written(f, &v, TNF_CBOR_LENIENT, bytes); /* it was in order */
        v = from_typed(&f->arena, typed);
        assert_written(f, &v, TNF_CBOR_STRICT, bytes);
    }
    assert_true(lines > 400);
    free(text);
    fclose(file);
}

/* RFC 8949, appendix A: cases that the vectors leave out. In typed JSON, a map that begins with '$'
 * is itself wrapped. */
static void keeps_what_has_no_word(void **state)
{
    static const char *const items[] = {
        "c249010000000000000000",
        "c349010000000000000000",
        "3bffffffffffffffff",
        "3b8000000000000000",
        "f7",
        "c074323031332d30332d32315432303a30343a30305a",
        "c11a514b67b0",
        "c1fb41d452d9e8200000",
        "d74401020304",
        "d818456449455446",
        "d82076687474703a2f2f7777772e6578616d706c652e636f6d",
        "a201020304",
        "bf01020304ff",
        "bf6161019f0203ff05ff",
        "c1c2c300",
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        tnf_value v;
        char typed[200], nested[200];
        assert_int_equal(read_hex(f, items[i], TNF_CBOR_LENIENT, &v), TNF_OK);
        snprintf(typed, sizeof typed, "{\"$map\":{\"$cbor\":{\"$bytes\":\"%s\"}}}", items[i]);
        assert_typed(&v, typed);
        assert_written(f, &v, TNF_CBOR_LENIENT, items[i]);

        snprintf(nested, sizeof nested, "82 a1 6161 %s f5", items[i]);
        assert_int_equal(read_hex(f, nested, TNF_CBOR_LENIENT, &v), TNF_OK);
        snprintf(nested, sizeof nested, "[{\"a\":%s},true]", typed);
        assert_typed(&v, nested);
        snprintf(nested, sizeof nested, "82 a1 6161 %s f5", items[i]);
        assert_written(f, &v, TNF_CBOR_LENIENT, nested);
    }
    /* Simple values that common readers refuse are refused. */
    tnf_value v;
    assert_int_equal(read_hex(f, "f0", TNF_CBOR_LENIENT, &v), TNF_EFORMAT);
    assert_int_equal(read_hex(f, "f818", TNF_CBOR_LENIENT, &v), TNF_EFORMAT);
    assert_int_equal(read_hex(f, "f8ff", TNF_CBOR_LENIENT, &v), TNF_EFORMAT);
}

static void keeps_strict_maps_with_other_keys(void **state)
{
    static const char *const items[] = { "a2 01 02 6161 03", "a1 6161 a1 01 a1 02 03",
                                         "a3 20 01 8101 02 a0 03", "3bffffffffffffffff" };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        tnf_value v;
        assert_int_equal(read_hex(f, items[i], TNF_CBOR_STRICT, &v), TNF_OK);
        assert_written(f, &v, TNF_CBOR_STRICT, items[i]);
    }
}

/* Maps that look like Tenfold's wrappers are distinguished from them. */
static void look_alikes_survive(void **state)
{
    static const struct {
        const char *hex, *typed;
    } cases[] = {
        /* {"$cbor": h'01'} in the file itself */
        { "a1 65 2463626f72 41 01",
          "{\"$map\":{\"$map\":{\"$map\":{\"$cbor\":{\"$bytes\":\"01\"}}}}}" },
        /* {"$map": {"$cbor": h'01'}} */
        { "a1 64 246d6170 a1 65 2463626f72 41 01",
          "{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$cbor\":{"
          "\"$bytes\":\"01\"}}}}}}}}}" },
        /* {"$cbor": h'18'}: not an item, so not a wrapper */
        { "a1 65 2463626f72 41 18", "{\"$map\":{\"$cbor\":{\"$bytes\":\"18\"}}}" },
        { "a1 65 2463626f72 42 0000", "{\"$map\":{\"$cbor\":{\"$bytes\":\"0000\"}}}" },
        { "a1 65 2463626f72 40", "{\"$map\":{\"$cbor\":{\"$bytes\":\"\"}}}" },
        { "a1 65 2463626f72 00", "{\"$map\":{\"$cbor\":{\"$u64\":0}}}" },
        { "a1 64 246d6170 a0", "{\"$map\":{\"$map\":{}}}" },
        { "a1 64 246d6170 01", "{\"$map\":{\"$map\":{\"$u64\":1}}}" },
        { "a2 61 61 00 65 2463626f72 41 01", "{\"a\":{\"$u64\":0},\"$cbor\":{\"$bytes\":\"01\"}}" },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned profile = TNF_CBOR_LENIENT; profile <= TNF_CBOR_STRICT; profile++) {
            tnf_value v;
            assert_int_equal(read_hex(f, cases[i].hex, (tnf_cbor_profile)profile, &v), TNF_OK);
            assert_typed(&v, cases[i].typed);
            assert_written(f, &v, (tnf_cbor_profile)profile, cases[i].hex);
        }
}

/* A tagged item of an old file cannot be in a strict file, so it becomes an ordinary map there;
 * converted back, it is an item again. */
static void verbatim_items_wait_where_they_cannot_stand(void **state)
{
    fixture *f = *state;
    tnf_value v;
    assert_int_equal(read_hex(f, "c100", TNF_CBOR_LENIENT, &v), TNF_OK);
    assert_written(f, &v, TNF_CBOR_STRICT, "a1 65 2463626f72 42 c100");
    assert_int_equal(read_hex(f, "a1 65 2463626f72 42 c100", TNF_CBOR_STRICT, &v), TNF_OK);
    assert_written(f, &v, TNF_CBOR_LENIENT, "c100");
}

static void nans_keep_their_bits_in_lenient(void **state)
{
    static const struct {
        const char *hex, *strict;
    } nans[] = { { "f97e00", "f97e00" },     { "f97c01", "f97e00" },
                 { "f9fe00", "f97e00" },     { "fa7f800001", "f97e00" },
                 { "faffc00001", "f97e00" }, { "fb7ff0000000000001", "f97e00" } };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        tnf_value v;
        assert_int_equal(read_hex(f, nans[i].hex, TNF_CBOR_LENIENT, &v), TNF_OK);
        assert_written(f, &v, TNF_CBOR_LENIENT, nans[i].hex);
        assert_written(f, &v, TNF_CBOR_STRICT, nans[i].strict);
    }
}

/* Any failing allocation is an error and leaks nothing. */
static void survives_any_lack_of_memory(void **state)
{
    static const char hex[] = "bf 6161 9f 01 82 02 6161 ff 6162 7f 6161 6162 ff 6163 c0 00 6164 01 "
                              "6165 02 6166 03 6167 04"
                              "6168 05 6169 06 616a a1 0000 616b 20 616c 42 0102 616d f6 ff";
    fixture *f = *state;
    for (uint64_t fail_at = 1;; fail_at++) {
        tnf_value v;
        tnf_arena_free(&f->arena);
        tnf_arena_init(&f->arena, &f->alloc, 64u << 20);
        f->log.calls = 0;
        f->log.fail_at = fail_at;
        tnf_status status = read_hex(f, hex, TNF_CBOR_LENIENT, &v);
        if (status == TNF_OK) {
            assert_true(fail_at > 3);
            break;
        }
        assert_int_equal(status, TNF_ENOMEM);
        assert_int_equal(f->e.status, TNF_ENOMEM);
    }
    f->log.fail_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(agrees_with_cbor2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_what_has_no_word, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_strict_maps_with_other_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(look_alikes_survive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(verbatim_items_wait_where_they_cannot_stand, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nans_keep_their_bits_in_lenient, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_any_lack_of_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
