/* SPDX-License-Identifier: MIT */
/* The pulling CBOR reader: the function for each item, and every refusal with its rule and offset.
 * The bytes are those of RFC 8949 and of the rules of deterministic encoding. */
#include "wire/cbor.h"

#define READER tnf_cbor
#include "wire_fixture.h"

#define DEPTH 4u

static tnf_cbor *begin_hex(fixture *f, const char *hex, tnf_cbor_profile profile)
{
    size_t n;
    free(f->bytes);
    f->bytes = bytes_from_hex(hex, &n);
    memset(&f->e, 0, sizeof f->e);
    tnf_cbor_init(&f->r, f->bytes, n, BASE, &f->arena, DEPTH, profile, &f->e);
    return &f->r;
}

static tnf_cbor *begin_strict(fixture *f, const char *hex)
{
    return begin_hex(f, hex, TNF_CBOR_STRICT);
}

static tnf_cbor *begin_lenient(fixture *f, const char *hex)
{
    return begin_hex(f, hex, TNF_CBOR_LENIENT);
}

static void assert_error(const fixture *f, tnf_cbor_rule rule, tnf_status status, uint64_t at)
{
    assert_string_equal(tnf_cbor_rule_name(f->r.rule), tnf_cbor_rule_name(rule));
    assert_string_equal(tnf_status_name(f->r.status), tnf_status_name(status));
    assert_int_equal(f->e.status, status);
    assert_int_equal(f->e.offset, BASE + at);
    assert_true(f->e.message[0] != 0);
}

/* ------------------------------------------------------------------ items */

static void reads_integers(void **state)
{
    static const struct {
        const char *hex;
        uint64_t u;
    } unsigned_ones[] = {
        { "00", 0 },
        { "17", 23 },
        { "1818", 24 },
        { "18ff", 255 },
        { "190100", 256 },
        { "19ffff", 65535 },
        { "1a00010000", 65536 },
        { "1affffffff", UINT32_MAX },
        { "1b0000000100000000", (uint64_t)1 << 32 },
        { "1bffffffffffffffff", UINT64_MAX },
    };
    static const struct {
        const char *hex;
        int64_t i;
    } signed_ones[] = {
        { "20", -1 },
        { "37", -24 },
        { "3818", -25 },
        { "390100", -257 },
        { "3b7fffffffffffffff", INT64_MIN },
        { "1b7fffffffffffffff", INT64_MAX },
        { "05", 5 },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof unsigned_ones / sizeof *unsigned_ones; i++) {
        uint64_t u = 1;
        tnf_cbor *r = begin_strict(f, unsigned_ones[i].hex);
        assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_UINT);
        assert_true(tnf_cbor_u64(r, &u));
        assert_true(u == unsigned_ones[i].u);
        assert_int_equal(tnf_cbor_end(r), TNF_OK);
    }
    for (size_t i = 0; i < sizeof signed_ones / sizeof *signed_ones; i++) {
        int64_t v = 1;
        assert_true(tnf_cbor_i64(begin_strict(f, signed_ones[i].hex), &v));
        assert_true(v == signed_ones[i].i);
    }
    int64_t v;
    uint64_t u;
    assert_false(tnf_cbor_i64(begin_strict(f, "3b8000000000000000"), &v));
    assert_error(f, TNF_CBOR_SCHEMA, TNF_ELIMIT, 0);
    assert_false(tnf_cbor_i64(begin_strict(f, "1b8000000000000000"), &v));
    assert_error(f, TNF_CBOR_SCHEMA, TNF_ELIMIT, 0);
    assert_false(tnf_cbor_u64(begin_strict(f, "20"), &u));
    assert_error(f, TNF_CBOR_SCHEMA, TNF_EFORMAT, 0);
    assert_string_equal(f->e.message,
                        "the CBOR has a negative integer where an unsigned integer should be");
}

static void reads_strings_where_they_lie(void **state)
{
    fixture *f = *state;
    tnf_str s;
    tnf_cbor *r = begin_strict(f, "64 f0908591 4401020304 60 40");
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_TEXT);
    assert_true(tnf_cbor_text(r, &s));
    assert_text(s, "\xf0\x90\x85\x91");
    assert_ptr_equal(s.p, f->bytes + 1);
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_BYTES);
    assert_true(tnf_cbor_bytes(r, &s));
    assert_hex(s.p, s.n, "01020304");
    assert_true(tnf_cbor_text(r, &s) && s.n == 0 && s.p);
    assert_true(tnf_cbor_bytes(r, &s) && s.n == 0 && s.p);
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_END);
    assert_int_equal(tnf_cbor_end(r), TNF_OK);
    assert_int_equal(f->arena.total, 0);
}

static void joins_chunks(void **state)
{
    fixture *f = *state;
    tnf_str s;
    tnf_cbor *r = begin_lenient(
        f, "7f 65 7374726561 64 6d696e67 60 ff 5f 42 0102 43 030405 ff 7fff 5fff");
    assert_true(tnf_cbor_text(r, &s));
    assert_text(s, "streaming");
    assert_true(tnf_cbor_bytes(r, &s));
    assert_hex(s.p, s.n, "0102030405");
    assert_true(tnf_cbor_text(r, &s) && s.n == 0);
    assert_true(tnf_cbor_bytes(r, &s) && s.n == 0);
    assert_int_equal(tnf_cbor_end(r), TNF_OK);
}

static void reads_simple_things(void **state)
{
    fixture *f = *state;
    bool b = false;
    double d;
    tnf_cbor *r = begin_strict(f, "f5 f4 f6 f93e00 fa47c35000 fb3ff199999999999a 01");
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_BOOL);
    assert_false(tnf_cbor_null(r));
    assert_true(tnf_cbor_bool(r, &b) && b);
    assert_true(tnf_cbor_bool(r, &b) && !b);
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_NULL);
    assert_true(tnf_cbor_null(r));
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_FLOAT);
    assert_true(tnf_cbor_f64(r, &d) && d == 1.5);
    assert_true(tnf_cbor_f64(r, &d) && d == 100000.0);
    assert_true(tnf_cbor_f64(r, &d) && d == 1.1);
    assert_int_equal(tnf_cbor_where(r), BASE + 20);
    assert_false(tnf_cbor_null(r));
    assert_int_equal(r->status, TNF_OK);
    assert_false(tnf_cbor_f64(r, &d));
    assert_error(f, TNF_CBOR_SCHEMA, TNF_EFORMAT, 20);

    assert_true(tnf_cbor_null(begin_lenient(f, "f7")));
    assert_int_equal(tnf_cbor_end(&f->r), TNF_OK);
}

/* -------------------------------------------------------------- wrong bytes */

struct wrong {
    const char *hex;
    tnf_cbor_rule rule;
    tnf_status status;
    uint64_t at;
};

#define SYNTAX      TNF_CBOR_SYNTAX, TNF_EFORMAT
#define CUT         TNF_CBOR_SYNTAX, TNF_ETRUNCATED
#define DETERMINISM TNF_CBOR_DETERMINISM, TNF_EFORMAT
#define TWICE       TNF_CBOR_DUPLICATE_KEY, TNF_EFORMAT

/* For any profile. */
static const struct wrong never[] = {
    { "", CUT, 0 },
    { "18", CUT, 1 },
    { "19", CUT, 1 },
    { "1901", CUT, 2 },
    { "1a000000", CUT, 4 },
    { "1b00000000000000", CUT, 8 },
    { "f9", CUT, 1 },
    { "f93c", CUT, 2 },
    { "fa000000", CUT, 4 },
    { "fb00000000000000", CUT, 8 },
    { "41", CUT, 0 },
    { "61", CUT, 0 },
    { "6261", CUT, 0 },
    { "78ff6161", CUT, 0 },
    { "5bffffffffffffffff01", CUT, 0 },
    { "7b8000000000000000", CUT, 0 },
    { "81", CUT, 0 },
    { "8201", CUT, 0 },
    { "828100", CUT, 3 }, /* the byte of the second item is part of the inner array */
    { "9bffffffffffffffff00", CUT, 0 },
    { "9affffffff00", CUT, 0 },
    { "a1", CUT, 0 },
    { "a100", CUT, 0 },
    { "a20000", CUT, 0 },
    { "bb8000000000000000", CUT, 0 },
    { "bbffffffffffffffff0000", CUT, 0 },
    { "ba7fffffff0000", CUT, 0 },
    { "a2 6161 83 6162", CUT, 3 },
    { "1c", SYNTAX, 0 },
    { "1d", SYNTAX, 0 },
    { "1e", SYNTAX, 0 },
    { "1f", SYNTAX, 0 },
    { "3c", SYNTAX, 0 },
    { "3f", SYNTAX, 0 },
    { "5c", SYNTAX, 0 },
    { "7d", SYNTAX, 0 },
    { "9e", SYNTAX, 0 },
    { "bc", SYNTAX, 0 },
    { "dc00", SYNTAX, 0 },
    { "df00", SYNTAX, 0 },
    { "fc", SYNTAX, 0 },
    { "fd", SYNTAX, 0 },
    { "fe", SYNTAX, 0 },
    { "ff", SYNTAX, 0 },
    { "81ff", SYNTAX, 1 },
    { "a1ff00", SYNTAX, 1 },
    { "a100ff", SYNTAX, 2 },
    { "e0", SYNTAX, 0 },
    { "f0", SYNTAX, 0 },
    { "f3", SYNTAX, 0 },
    { "f8", SYNTAX, 0 },
    { "f814", SYNTAX, 0 },
    { "f818", SYNTAX, 0 },
    { "f8ff", SYNTAX, 0 },
    { "61ff", SYNTAX, 1 },
    { "6261c3", SYNTAX, 2 },
    { "62c080", SYNTAX, 1 },      /* overlong */
    { "63eda080", SYNTAX, 1 },    /* a surrogate */
    { "64f4908080", SYNTAX, 1 },  /* beyond U+10FFFF */
    { "a161c3a9 00", SYNTAX, 2 }, /* in a key */
    { "0000", SYNTAX, 1 },        /* more than one item */
    { "8000", SYNTAX, 1 },
    { "a0f6", SYNTAX, 1 },
};

static const struct wrong strict_only[] = {
    /* longer heads than needed, for each major type and width */
    { "1800", DETERMINISM, 0 },
    { "1817", DETERMINISM, 0 },
    { "1900ff", DETERMINISM, 0 },
    { "1a0000ffff", DETERMINISM, 0 },
    { "1b00000000ffffffff", DETERMINISM, 0 },
    { "3817", DETERMINISM, 0 },
    { "3900ff", DETERMINISM, 0 },
    { "5800", DETERMINISM, 0 },
    { "590001ff", DETERMINISM, 0 },
    { "780161", DETERMINISM, 0 },
    { "8280 9800", DETERMINISM, 2 },
    { "99000100", DETERMINISM, 0 },
    { "b800", DETERMINISM, 0 },
    { "a1 b9000000", DETERMINISM, 1 },
    /* the head is checked before the bytes that it announces */
    { "7817", DETERMINISM, 0 },
    { "9b00000000ffffffff", DETERMINISM, 0 },
    /* floats wider than needed, and NaNs */
    { "fa3fc00000", DETERMINISM, 0 },
    { "fb3ff8000000000000", DETERMINISM, 0 },
    { "fb40f86a0000000000", DETERMINISM, 0 },
    { "fa00000000", DETERMINISM, 0 },
    { "fa80000000", DETERMINISM, 0 },
    { "fa7f800000", DETERMINISM, 0 },
    { "fbfff0000000000000", DETERMINISM, 0 },
    { "fa33800000", DETERMINISM, 0 },         /* 2^-24, the smallest half */
    { "fb36a0000000000000", DETERMINISM, 0 }, /* 2^-149, the smallest single */
    { "f97e01", DETERMINISM, 0 },
    { "f97c01", DETERMINISM, 0 },
    { "f9fe00", DETERMINISM, 0 },
    { "fa7fc00000", DETERMINISM, 0 },
    { "81fb7ff8000000000000", DETERMINISM, 1 },
    /* keys in the wrong order: sorted by encoding, so the shorter is first */
    { "a2 6162 00 6161 00", DETERMINISM, 4 },
    { "a2 626161 00 6162 00", DETERMINISM, 5 },
    { "a2 6161 00 01 00", DETERMINISM, 4 },
    { "a2 20 00 1818 00", DETERMINISM, 3 },
    { "a3 6161 00 6163 00 6162 00", DETERMINISM, 7 },
    { "81 a1 00 a2 6162 00 6161 00", DETERMINISM, 7 },
    { "a2 8101 00 8100 00", DETERMINISM, 4 },
    { "a2 6162 00 6161", DETERMINISM, 4 }, /* reported before the missing value */
    { "a2 6a 61616161616161616161 00 6162", DETERMINISM, 13 },
    /* the same key twice */
    { "a2 6161 00 6161 00", TWICE, 4 },
    { "a2 00 00 00 00", TWICE, 3 },
    { "a3 6161 00 6162 00 6162 00", TWICE, 7 },
    { "a2 a10000 00 a10000 00", TWICE, 5 },
    { "a1 a2 f97e00 00 f97e00 00 00", TWICE, 6 },
    /* outside the profile */
    { "5fff", SYNTAX, 0 },
    { "7f6161ff", SYNTAX, 0 },
    { "9fff", SYNTAX, 0 },
    { "bfff", SYNTAX, 0 },
    { "819fff", SYNTAX, 1 },
    { "c000", SYNTAX, 0 },
    { "d9d9f700", SYNTAX, 0 },
    { "81c2420100", SYNTAX, 1 },
    { "f7", SYNTAX, 0 },
    { "81f7", SYNTAX, 1 },
    /* the fifth container is still within four levels, but not its content */
    { "8181818181 00", TNF_CBOR_DEPTH, TNF_EFORMAT, 5 },
    { "a100a100a100a100a1 00 00", TNF_CBOR_DEPTH, TNF_EFORMAT, 9 },
    { "a1a1a1a1a1 00 00 00 00 00 00", TNF_CBOR_DEPTH, TNF_EFORMAT, 5 },
    { "8181818181 ff", TNF_CBOR_DEPTH, TNF_EFORMAT, 5 }, /* before the item is checked */
};

static const struct wrong lenient_only[] = {
    { "9f", CUT, 1 },
    { "9f00", CUT, 2 },
    { "bf", CUT, 1 },
    { "bf00", CUT, 2 },
    { "bf0000", CUT, 3 },
    { "7f", CUT, 1 },
    { "7f6161", CUT, 3 },
    { "5f42ff", CUT, 1 },
    { "c0", CUT, 1 },
    { "d9", CUT, 1 },
    { "bf00ff", SYNTAX, 2 }, /* a key without a value */
    { "7f4161ff", SYNTAX, 1 },
    { "5f6161ff", SYNTAX, 1 },
    { "7f7f6161ffff", SYNTAX, 1 },
    { "7f00ff", SYNTAX, 1 },
    { "7fc06161ff", SYNTAX, 1 },
    { "7f61c361a9ff", SYNTAX, 2 }, /* a character that is cut */
    { "81c0ff", SYNTAX, 2 },
    { "8181818181 00", TNF_CBOR_DEPTH, TNF_ELIMIT, 5 },
    { "9f9f9f9f9f 00 ffffffffff", TNF_CBOR_DEPTH, TNF_ELIMIT, 5 },
    { "c0c0c0c0c000", TNF_CBOR_DEPTH, TNF_ELIMIT, 5 },
    { "81c0c0c0c000", TNF_CBOR_DEPTH, TNF_ELIMIT, 5 },
    { "81818181c000", TNF_CBOR_DEPTH, TNF_ELIMIT, 5 },
};

static void check_wrong(fixture *f, const struct wrong *w, size_t n, tnf_cbor_profile profile)
{
    for (size_t i = 0; i < n; i++) {
        tnf_value v;
        for (int tree = 0; tree < 2; tree++) {
            tnf_cbor *r = begin_hex(f, w[i].hex, profile);
            if ((tree ? tnf_cbor_value(r, &v) : tnf_cbor_skip(r, NULL)) &&
                tnf_cbor_end(r) == TNF_OK)
                fail_msg("%s passes as %s", w[i].hex, tree ? "a tree" : "something to skip");
            if (r->rule != w[i].rule || r->status != w[i].status || f->e.offset != BASE + w[i].at)
                fail_msg("%s (%s): %s %s at %llu: %s", w[i].hex, tree ? "tree" : "skip",
                         tnf_cbor_rule_name(r->rule), tnf_status_name(r->status),
                         (unsigned long long)(f->e.offset - BASE), f->e.message);
            assert_int_equal(f->e.status, w[i].status);
        }
    }
}

#define CHECK_WRONG(table, profile)                                                                \
    check_wrong(*state, table, sizeof table / sizeof *table, profile)

static void refuses_bad_bytes(void **state)
{
    CHECK_WRONG(never, TNF_CBOR_STRICT);
    CHECK_WRONG(never, TNF_CBOR_LENIENT);
    CHECK_WRONG(strict_only, TNF_CBOR_STRICT);
    CHECK_WRONG(lenient_only, TNF_CBOR_LENIENT);
}

/* STRICT refuses all of these, but LENIENT reads them, except for depth and repeated text keys. */
static void lenient_takes_the_rest(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof strict_only / sizeof *strict_only; i++) {
        const struct wrong *w = &strict_only[i];
        tnf_cbor *r = begin_lenient(f, w->hex);
        bool read = tnf_cbor_skip(r, NULL) && tnf_cbor_end(r) == TNF_OK;
        bool cut = r->status == TNF_ETRUNCATED;
        if (!read && !cut && w->rule != TNF_CBOR_DEPTH)
            fail_msg("%s: %s", w->hex, f->e.message);
    }
}

static void every_truncation_is_noticed(void **state)
{
    static const char *const whole[] = {
        "a3 6161 83 01 02 3903e7 6162 a1 426162 f5 626363 84 fb3ff199999999999a f93c00 f6 "
        "1b000000e8d4a51000",
        "bf 6161 9f 01 82 02 03 ff 6162 7f 6161 6162 ff 6163 c0 5f 4101 ff ff",
    };
    fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        uint8_t *bytes = bytes_from_hex(whole[i], &n);
        for (size_t cut = 0; cut <= n; cut++) {
            uint8_t *copy = malloc(cut ? cut : 1);
            memcpy(copy, bytes, cut);
            tnf_cbor_init(&f->r, copy, cut, BASE, &f->arena, DEPTH,
                          i == 0 ? TNF_CBOR_STRICT : TNF_CBOR_LENIENT, &f->e);
            assert_int_equal(tnf_cbor_skip(&f->r, NULL), cut == n);
            assert_int_equal(f->r.status, cut == n ? TNF_OK : TNF_ETRUNCATED);
            free(copy);
        }
        free(bytes);
    }
}

static void says_what_is_wrong(void **state)
{
    static const struct {
        const char *hex, *words;
    } cases[] = {
        { "", "the CBOR ends where an item should be" },
        { "1901", "the CBOR ends inside the head of an item" },
        { "7a00010000 61", "the CBOR claims 65536 bytes (bytes left: 1)" },
        { "9affffffff 00", "the CBOR claims 4294967295 items (bytes left: 1)" },
        { "a3 0000", "the CBOR claims 3 pairs (bytes left: 2)" },
        { "1c", "the CBOR has the reserved byte 0x1c" },
        { "f8 20", "the CBOR has the byte 0xf8, a simple value other than false, true and null" },
        { "c000", "the CBOR has a tag, which its profile does not allow" },
        { "9fff", "the CBOR has an item of indefinite length, which its profile does not allow" },
        { "ff", "the CBOR has an end (0xff) where an item should be" },
        { "61ff", "the CBOR has text that is not UTF-8" },
        { "1817", "the CBOR has a number or length in more bytes than it needs" },
        { "fa3fc00000", "the CBOR has a float in more bytes than it needs" },
        { "f97e01", "the CBOR has a NaN other than f9 7e00" },
        { "a2 6162 00 6161 00",
          "the keys of a CBOR map are in the wrong order: 'a' comes after 'b'" },
        { "a2 6161 00 6161 00", "the CBOR has the key 'a' twice in one map" },
        { "a2 00 00 00 00", "the CBOR has the key (not text) twice in one map" },
        { "8181818181 00", "the CBOR is nested deeper than 4 levels" },
        { "00 0000", "other bytes follow the end of the CBOR (bytes left: 2)" },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_cbor *r = begin_strict(f, cases[i].hex);
        if (tnf_cbor_skip(r, NULL))
            tnf_cbor_end(r);
        assert_string_equal(f->e.message, cases[i].words);
    }
}

static void errors_stick(void **state)
{
    fixture *f = *state;
    tnf_cbor_scope scope;
    tnf_str s;
    uint64_t u = 7;
    bool b;
    tnf_value v;
    tnf_cbor *r = begin_strict(f, "82 61 ff 01");
    assert_true(tnf_cbor_enter_array(r, &scope) && tnf_cbor_item(r, &scope));
    assert_false(tnf_cbor_text(r, &s));
    assert_error(f, TNF_CBOR_SYNTAX, TNF_EFORMAT, 2);
    assert_false(tnf_cbor_item(r, &scope) || tnf_cbor_key(r, &scope, &s) || tnf_cbor_u64(r, &u) ||
                 tnf_cbor_bool(r, &b) || tnf_cbor_null(r) || tnf_cbor_skip(r, NULL) ||
                 tnf_cbor_value(r, &v) || tnf_cbor_enter_map(r, &scope));
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_END);
    assert_int_equal(tnf_cbor_end(r), TNF_EFORMAT);
    assert_false(tnf_cbor_fail(r, TNF_CBOR_SCHEMA, TNF_EINVAL, 5, "later"));
    assert_error(f, TNF_CBOR_SYNTAX, TNF_EFORMAT, 2);
    assert_int_equal(u, 7);

    r = begin_strict(f, "01");
    assert_false(
        tnf_cbor_fail(r, TNF_CBOR_SCHEMA, TNF_EFORMAT, TNF_NO_OFFSET, "%s", "a format's own"));
    assert_error(f, TNF_CBOR_SCHEMA, TNF_EFORMAT, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_integers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_strings_where_they_lie, set_up, tear_down),
        cmocka_unit_test_setup_teardown(joins_chunks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_simple_things, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_bad_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lenient_takes_the_rest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_truncation_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(says_what_is_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_stick, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
