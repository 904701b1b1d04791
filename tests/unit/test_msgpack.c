/* SPDX-License-Identifier: MIT */
/* The pulling MessagePack reader: the function for each item, and every refusal with its offset.
 * Many bytes are those of the unit tests of the primitiv library (section 7 of its fact sheet). */
#include "../support/little.h"
#include "wire/msgpack.h"

#define READER tnf_msgpack
#include "wire_fixture.h"

#include "wire/tree.h"

#define DEPTH 4u

static tnf_msgpack *begin_hex(fixture *f, const char *hex)
{
    size_t n;
    free(f->bytes);
    f->bytes = bytes_from_hex(hex, &n);
    memset(&f->e, 0, sizeof f->e);
    tnf_msgpack_init(&f->r, f->bytes, n, BASE, &f->arena, DEPTH, &f->e);
    return &f->r;
}

static void assert_error(const fixture *f, tnf_status status, uint64_t at)
{
    assert_string_equal(tnf_status_name(f->r.status), tnf_status_name(status));
    assert_int_equal(f->e.status, status);
    assert_int_equal(f->e.offset, BASE + at);
    assert_true(f->e.message[0] != 0);
}

/* ------------------------------------------------------------------ items */

static void every_first_byte_has_its_kind(void **state)
{
    fixture *f = *state;
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[10] = { (uint8_t)first };
        tnf_msgpack_kind expected = first < 0x80                     ? TNF_MSGPACK_UINT
                                    : first < 0x90                   ? TNF_MSGPACK_MAP
                                    : first < 0xa0                   ? TNF_MSGPACK_ARRAY
                                    : first < 0xc0                   ? TNF_MSGPACK_STR
                                    : first == 0xc0                  ? TNF_MSGPACK_NIL
                                    : first == 0xc1                  ? TNF_MSGPACK_END
                                    : first <= 0xc3                  ? TNF_MSGPACK_BOOL
                                    : first <= 0xc6                  ? TNF_MSGPACK_BIN
                                    : first <= 0xc9                  ? TNF_MSGPACK_EXT
                                    : first <= 0xcb                  ? TNF_MSGPACK_FLOAT
                                    : first <= 0xcf                  ? TNF_MSGPACK_UINT
                                    : first <= 0xd3 || first >= 0xe0 ? TNF_MSGPACK_INT
                                    : first <= 0xd8                  ? TNF_MSGPACK_EXT
                                    : first <= 0xdb                  ? TNF_MSGPACK_STR
                                    : first <= 0xdd                  ? TNF_MSGPACK_ARRAY
                                                                     : TNF_MSGPACK_MAP;
        tnf_msgpack_init(&f->r, bytes, sizeof bytes, BASE, NULL, DEPTH, &f->e);
        assert_int_equal(tnf_msgpack_marker(&f->r), first);
        assert_int_equal(tnf_msgpack_peek(&f->r), expected);
        assert_int_equal(f->r.status, first == 0xc1 ? TNF_EFORMAT : TNF_OK);
        assert_int_equal(tnf_msgpack_where(&f->r), BASE);
    }
    assert_int_equal(tnf_msgpack_marker(begin_hex(f, "")), -1);
    assert_int_equal(tnf_msgpack_peek(&f->r), TNF_MSGPACK_END);
    assert_int_equal(f->r.status, TNF_OK);
}

static void reads_integers_of_any_width(void **state)
{
    static const struct {
        const char *hex;
        int64_t i;
    } cases[] = {
        { "00", 0 },
        { "7f", 127 },
        { "cc12", 0x12 },
        { "ccff", 255 },
        { "cd1234", 0x1234 },
        { "ce12345678", 0x12345678 },
        { "ceffffffff", 0xffffffff },
        { "cf123456789abcdef0", 0x123456789abcdef0 },
        { "cf7fffffffffffffff", INT64_MAX },
        { "d012", 0x12 },
        { "d11234", 0x1234 },
        { "d212345678", 0x12345678 },
        { "d3123456789abcdef0", 0x123456789abcdef0 },
        { "ff", -1 },
        { "e0", -32 },
        { "d080", -128 },
        { "d0ff", -1 },
        { "d18000", -32768 },
        { "d280000000", INT32_MIN },
        { "d38000000000000000", INT64_MIN },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t v;
        uint64_t u;
        assert_true(tnf_msgpack_i64(begin_hex(f, cases[i].hex), &v));
        assert_true(v == cases[i].i);
        assert_int_equal(tnf_msgpack_end(&f->r), TNF_OK);
        assert_int_equal(tnf_msgpack_u64(begin_hex(f, cases[i].hex), &u), cases[i].i >= 0);
        if (cases[i].i >= 0)
            assert_true(u == (uint64_t)cases[i].i);
        else
            assert_error(f, TNF_EFORMAT, 0);
    }
    uint64_t u;
    int64_t v;
    assert_true(tnf_msgpack_u64(begin_hex(f, "cfffffffffffffffff"), &u) && u == UINT64_MAX);
    assert_false(tnf_msgpack_i64(begin_hex(f, "cf8000000000000000"), &v));
    assert_error(f, TNF_ELIMIT, 0);
    assert_false(tnf_msgpack_i64(begin_hex(f, "ca00000000"), &v));
    assert_error(f, TNF_EFORMAT, 0);
}

/* primitiv accepts only ce for an integer, and only ca for a float. */
static void insists_on_markers(void **state)
{
    static const char *const no_u32[] = {
        "01", "cc01", "cd0001", "cf0000000000000001", "d200000001", "ca00000000", "c0", "a161", "90"
    };
    static const char *const no_f32[] = { "cb3ff0000000000000", "00", "ce00000000", "c0" };
    fixture *f = *state;
    uint32_t u = 0;
    float x = 0;
    tnf_msgpack *r = begin_hex(f, "ce00000000 ce7fffffff ce80000000 ceffffffff cedeadbeef");
    static const uint32_t expected[] = { 0, 0x7fffffff, 0x80000000, 0xffffffff, 0xdeadbeef };
    for (size_t i = 0; i < 5; i++)
        assert_true(tnf_msgpack_exact_u32(r, &u) && u == expected[i]);
    assert_int_equal(tnf_msgpack_end(r), TNF_OK);
    r = begin_hex(f, "ca00000000 ca3f800000 cac0400000 ca7f800001");
    assert_true(tnf_msgpack_exact_f32(r, &x) && x == 0.0f);
    assert_true(tnf_msgpack_exact_f32(r, &x) && x == 1.0f);
    assert_true(tnf_msgpack_exact_f32(r, &x) && x == -3.0f);
    assert_true(tnf_msgpack_exact_f32(r, &x) &&
                memcmp(&x, to_little("\1\0\x80\x7f", 4, 1), 4) == 0);
    for (size_t i = 0; i < sizeof no_u32 / sizeof *no_u32; i++) {
        assert_false(tnf_msgpack_exact_u32(begin_hex(f, no_u32[i]), &u));
        assert_error(f, TNF_EFORMAT, 0);
    }
    for (size_t i = 0; i < sizeof no_f32 / sizeof *no_f32; i++) {
        assert_false(tnf_msgpack_exact_f32(begin_hex(f, no_f32[i]), &x));
        assert_error(f, TNF_EFORMAT, 0);
    }
    tnf_msgpack_exact_u32(begin_hex(f, "cd0001"), &u);
    assert_string_equal(f->e.message, "the MessagePack has an unsigned integer (0xcd) where an "
                                      "unsigned integer of 32 bits (0xce) should be");
}

static void reads_the_rest(void **state)
{
    fixture *f = *state;
    bool b = false;
    double d;
    tnf_str s;
    int8_t type;
    uint64_t n;
    tnf_msgpack *r;
    assert_false(tnf_msgpack_bool(begin_hex(f, "c0"), &b));
    assert_error(f, TNF_EFORMAT, 0);
    r = begin_hex(f,
                  "c0 c2 c3 ca3f800000 cb3ff199999999999a a0 a178 d90178 da000178 db0000000178 c400"
                  "c40178 c5000178 c60000000178");
    assert_true(tnf_msgpack_nil(r));
    assert_false(tnf_msgpack_nil(r));
    assert_int_equal(r->status, TNF_OK);
    assert_true(tnf_msgpack_bool(r, &b) && !b);
    assert_true(tnf_msgpack_bool(r, &b) && b);
    assert_true(tnf_msgpack_f64(r, &d) && d == 1.0);
    assert_true(tnf_msgpack_f64(r, &d) && d == 1.1);
    assert_true(tnf_msgpack_str(r, &s) && s.n == 0 && s.p);
    for (int i = 0; i < 4; i++) {
        assert_true(tnf_msgpack_str(r, &s));
        assert_text(s, "x");
        assert_true((const uint8_t *)s.p > f->bytes && (const uint8_t *)s.p < r->end);
    }
    assert_true(tnf_msgpack_bin(r, &s) && s.n == 0 && s.p);
    for (int i = 0; i < 3; i++) {
        assert_true(tnf_msgpack_bin(r, &s));
        assert_text(s, "x");
    }
    assert_int_equal(tnf_msgpack_end(r), TNF_OK);

    r = begin_hex(f, "c70058 d45831 d5583132 d65831323334 d7ff0102030405060708 d880"
                     "000102030405060708090a0b0c0d0e0f c7035801 0203 c800015801 c9000000015801");
    assert_true(tnf_msgpack_ext(r, &type, &s) && type == 'X' && s.n == 0);
    assert_true(tnf_msgpack_ext(r, &type, &s) && type == 'X');
    assert_text(s, "1");
    assert_true(tnf_msgpack_ext(r, &type, &s));
    assert_text(s, "12");
    assert_true(tnf_msgpack_ext(r, &type, &s));
    assert_text(s, "1234");
    assert_true(tnf_msgpack_ext(r, &type, &s) && type == -1 && s.n == 8);
    assert_true(tnf_msgpack_ext(r, &type, &s) && type == -128 && s.n == 16);
    assert_true(tnf_msgpack_ext(r, &type, &s) && s.n == 3);
    assert_true(tnf_msgpack_ext(r, &type, &s) && s.n == 1);
    assert_true(tnf_msgpack_ext(r, &type, &s) && s.n == 1);
    assert_int_equal(tnf_msgpack_end(r), TNF_OK);

    /* the head of a bin without its content */
    assert_true(tnf_msgpack_bin_head(begin_hex(f, "c6fffffffc 00"), &n) && n == 0xfffffffc);
    assert_int_equal(tnf_msgpack_where(&f->r), BASE + 5);
    assert_false(tnf_msgpack_bin_head(begin_hex(f, "a178"), &n));
    assert_error(f, TNF_EFORMAT, 0);
    assert_int_equal(f->log.calls, 0);
}

/* ------------------------------------------------------------- containers */

static void walks_through_containers(void **state)
{
    static const char *const spellings[] = {
        "82 a161 93 01 02 03 a162 80 05",
        "de0002 d90161 dc0003 cc01 02 03 da000162 df00000000 05",
        "df00000002 db0000000161 dd00000003 01 d202000000 03 a162 de0000 05",
    };
    fixture *f = *state;
    for (size_t i = 0; i < 3; i++) {
        tnf_msgpack_scope map, array, inner;
        tnf_str key;
        uint64_t u;
        tnf_msgpack *r = begin_hex(f, spellings[i]);
        assert_true(tnf_msgpack_enter_map(r, &map) && map.left == 2);
        assert_true(tnf_msgpack_key(r, &map, &key));
        assert_text(key, "a");
        assert_true(tnf_msgpack_enter_array(r, &array) && array.left == 3);
        unsigned n = 0;
        for (; tnf_msgpack_item(r, &array); n++)
            assert_true(tnf_msgpack_u64(r, &u));
        assert_int_equal(n, 3);
        assert_true(tnf_msgpack_key(r, &map, &key));
        assert_text(key, "b");
        assert_true(tnf_msgpack_enter_map(r, &inner) && inner.left == 0);
        assert_false(tnf_msgpack_key(r, &inner, &key));
        assert_false(tnf_msgpack_key(r, &map, &key));
        assert_int_equal(r->depth, 0);
        assert_true(tnf_msgpack_u64(r, &u) && u == 5);
        assert_int_equal(tnf_msgpack_end(r), TNF_OK);
    }
    assert_int_equal(f->log.calls, 0);
}

static void keys_may_be_anything(void **state)
{
    fixture *f = *state;
    tnf_msgpack_scope map;
    tnf_str key;
    tnf_msgpack *r = begin_hex(f, "85 01 c0 a161 c0 a161 c0 9201 02 c0 a0 c0");
    assert_true(tnf_msgpack_enter_map(r, &map));
    assert_true(tnf_msgpack_key(r, &map, &key) && !key.p && tnf_msgpack_nil(r));
    assert_hex(map.key.p, map.key.n, "01");
    assert_true(tnf_msgpack_key(r, &map, &key) && key.p && tnf_msgpack_nil(r));
    assert_true(tnf_msgpack_key(r, &map, &key) && key.p && tnf_msgpack_nil(r)); /* repeated */
    assert_hex(map.key.p, map.key.n, "a161");
    assert_true(tnf_msgpack_key(r, &map, &key) && !key.p && tnf_msgpack_nil(r));
    assert_hex(map.key.p, map.key.n, "920102");
    assert_true(tnf_msgpack_key(r, &map, &key) && key.p && key.n == 0 && tnf_msgpack_nil(r));
    assert_false(tnf_msgpack_key(r, &map, &key));
    assert_int_equal(tnf_msgpack_end(r), TNF_OK);
}

static void skipped_items_are_handed_out_raw(void **state)
{
    static const char *const items[] = {
        "00",
        "ff",
        "c0",
        "cb3ff199999999999a",
        "d90161",
        "c5000261 62",
        "c7030a010203",
        "d8ff 00112233445566778899aabbccddeeff",
        "90",
        "80",
        "92 91 91 00 a161",
        "82 01 91 80 a162 92 c0 c3",
        "dc0001 de0001 00 00",
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        char hex[128];
        tnf_str raw;
        uint64_t u;
        snprintf(hex, sizeof hex, "01 %s 17", items[i]);
        tnf_msgpack *r = begin_hex(f, hex);
        assert_true(tnf_msgpack_u64(r, &u) && tnf_msgpack_skip(r, &raw));
        assert_hex(raw.p, raw.n, items[i]);
        assert_true(tnf_msgpack_u64(r, &u) && u == 23);
        assert_int_equal(tnf_msgpack_end(r), TNF_OK);
        assert_int_equal(r->depth, 0);
    }
    assert_int_equal(f->log.calls, 0);
}

/* -------------------------------------------------------------- wrong bytes */

static void refuses_bad_bytes(void **state)
{
    static const struct {
        const char *hex;
        tnf_status status;
        uint64_t at;
    } wrong[] = {
        { "", TNF_ETRUNCATED, 0 },
        { "c1", TNF_EFORMAT, 0 },
        { "92 00 c1", TNF_EFORMAT, 2 },
        { "cc", TNF_ETRUNCATED, 1 },
        { "cd00", TNF_ETRUNCATED, 2 },
        { "ce000000", TNF_ETRUNCATED, 4 },
        { "cf00000000000000", TNF_ETRUNCATED, 8 },
        { "d0", TNF_ETRUNCATED, 1 },
        { "d3000000", TNF_ETRUNCATED, 4 },
        { "ca000000", TNF_ETRUNCATED, 4 },
        { "cb00000000000000", TNF_ETRUNCATED, 8 },
        { "a1", TNF_ETRUNCATED, 0 },
        { "bf61", TNF_ETRUNCATED, 0 },
        { "d9", TNF_ETRUNCATED, 1 },
        { "d901", TNF_ETRUNCATED, 0 },
        { "daffff61", TNF_ETRUNCATED, 0 },
        { "dbffffffff61", TNF_ETRUNCATED, 0 },
        { "db000000", TNF_ETRUNCATED, 4 },
        { "c401", TNF_ETRUNCATED, 0 },
        { "c5000261", TNF_ETRUNCATED, 0 },
        { "c6ffffffff00", TNF_ETRUNCATED, 0 },
        { "d4", TNF_ETRUNCATED, 1 },
        { "d401", TNF_ETRUNCATED, 0 },
        { "d80100", TNF_ETRUNCATED, 0 },
        { "c700", TNF_ETRUNCATED, 2 },
        { "c70105", TNF_ETRUNCATED, 0 },
        { "c9ffffffff00", TNF_ETRUNCATED, 0 },
        { "91", TNF_ETRUNCATED, 0 },
        { "9200", TNF_ETRUNCATED, 0 },
        { "929100", TNF_ETRUNCATED, 3 },
        { "dc", TNF_ETRUNCATED, 1 },
        { "dc0100", TNF_ETRUNCATED, 0 },
        { "ddffffffff", TNF_ETRUNCATED, 0 }, /* five bytes that would need 96 GB in other readers */
        { "ddffffffff c0", TNF_ETRUNCATED, 0 },
        { "81", TNF_ETRUNCATED, 0 },
        { "8100", TNF_ETRUNCATED, 0 },
        { "820000", TNF_ETRUNCATED, 0 },
        { "deffff0000", TNF_ETRUNCATED, 0 },
        { "dfffffffff", TNF_ETRUNCATED, 0 },
        { "df80000000 0000", TNF_ETRUNCATED, 0 },
        { "81 a161 92 00", TNF_ETRUNCATED, 3 },
        { "0000", TNF_EFORMAT, 1 },
        { "90c0", TNF_EFORMAT, 1 },
        { "9191919191 00", TNF_ELIMIT, 5 },
        { "dc0001dc0001dc0001dc0001dc0001 c0", TNF_ELIMIT, 15 },
        { "81c081c081c081c081 c0 c0", TNF_ELIMIT, 9 },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int tree = 0; tree < 2; tree++) {
            tnf_value v;
            tnf_msgpack *r = begin_hex(f, wrong[i].hex);
            if ((tree ? tnf_msgpack_value(r, &v) : tnf_msgpack_skip(r, NULL)) &&
                tnf_msgpack_end(r) == TNF_OK)
                fail_msg("%s passes", wrong[i].hex);
            if (r->status != wrong[i].status || f->e.offset != BASE + wrong[i].at)
                fail_msg("%s (%s): %s at %llu: %s", wrong[i].hex, tree ? "tree" : "skip",
                         tnf_status_name(r->status), (unsigned long long)(f->e.offset - BASE),
                         f->e.message);
            assert_int_equal(f->e.status, wrong[i].status);
        }
    assert_true(f->log.peak < 8192);
}

static void every_truncation_is_noticed(void **state)
{
    static const char whole[] =
        "84 a161 93 01 cd0102 d3fffffffffffffff0 01 c70301 010203 d90162 c4"
        "020304 a163 82 cafffffff0 d501 0102 c0 df00000001 c3 db00000001 63";
    fixture *f = *state;
    size_t n;
    uint8_t *bytes = bytes_from_hex(whole, &n);
    for (size_t cut = 0; cut <= n; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        tnf_value v;
        memcpy(copy, bytes, cut);
        tnf_msgpack_init(&f->r, copy, cut, BASE, &f->arena, DEPTH, &f->e);
        assert_int_equal(tnf_msgpack_skip(&f->r, NULL), cut == n);
        assert_int_equal(f->r.status, cut == n ? TNF_OK : TNF_ETRUNCATED);
        tnf_msgpack_init(&f->r, copy, cut, BASE, &f->arena, DEPTH, &f->e);
        assert_int_equal(tnf_msgpack_value(&f->r, &v), cut == n);
        assert_int_equal(f->r.status, cut == n ? TNF_OK : TNF_ETRUNCATED);
        free(copy);
    }
    free(bytes);
}

/* Nested arrays of one item end at the limit, for any depth. */
static void nesting_has_an_end(void **state)
{
    fixture *f = *state;
    static uint8_t deep[300000];
    tnf_value v;
    for (size_t i = 0; i < sizeof deep; i += 3)
        memcpy(deep + i, "\xdc\0\1", 3);
    tnf_msgpack_init(&f->r, deep, sizeof deep, 0, &f->arena, UINT32_MAX, &f->e);
    assert_false(tnf_msgpack_skip(&f->r, NULL));
    assert_int_equal(f->r.status, TNF_ELIMIT);
    assert_int_equal(f->e.offset, 3 * (TNF_TREE_DEEPEST + 1));
    tnf_msgpack_init(&f->r, deep, sizeof deep, 0, &f->arena, UINT32_MAX, &f->e);
    assert_false(tnf_msgpack_value(&f->r, &v));
    assert_int_equal(f->r.status, TNF_ELIMIT);
    tnf_msgpack_init(&f->r, "\x91\x91\x91\x91\x90", 5, 0, &f->arena, 4, &f->e);
    assert_true(tnf_msgpack_value(&f->r, &v)); /* the fifth array is within four levels */
}

static void says_what_is_wrong(void **state)
{
    static const struct {
        const char *hex, *words;
    } cases[] = {
        { "", "the MessagePack ends where an item should be" },
        { "cd00", "the MessagePack ends inside the head of an item" },
        { "c700", "the MessagePack ends where the type of an ext should be" },
        { "c1", "the MessagePack has the byte 0xc1, which is reserved" },
        { "db00010000 61", "the MessagePack claims 65536 bytes (bytes left: 1)" },
        { "ddffffffff 00", "the MessagePack claims 4294967295 items (bytes left: 1)" },
        { "83 0000", "the MessagePack claims 3 pairs (bytes left: 2)" },
        { "9191919191 00", "the MessagePack is nested deeper than 4 levels" },
        { "00 0000", "other bytes follow the end of the MessagePack (bytes left: 2)" },
    };
    fixture *f = *state;
    tnf_str s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_msgpack *r = begin_hex(f, cases[i].hex);
        if (tnf_msgpack_skip(r, NULL))
            tnf_msgpack_end(r);
        assert_string_equal(f->e.message, cases[i].words);
    }
    tnf_msgpack_bin(begin_hex(f, "a178"), &s);
    assert_string_equal(f->e.message, "the MessagePack has a str (0xa1) where a bin should be");
}

static void errors_stick(void **state)
{
    fixture *f = *state;
    tnf_msgpack_scope scope;
    tnf_str s;
    uint64_t u = 7;
    uint32_t w;
    bool b;
    tnf_value v;
    tnf_msgpack *r = begin_hex(f, "92 c1 01");
    assert_true(tnf_msgpack_enter_array(r, &scope) && tnf_msgpack_item(r, &scope));
    assert_false(tnf_msgpack_str(r, &s));
    assert_error(f, TNF_EFORMAT, 1);
    assert_false(tnf_msgpack_item(r, &scope) || tnf_msgpack_key(r, &scope, &s) ||
                 tnf_msgpack_u64(r, &u) || tnf_msgpack_exact_u32(r, &w) ||
                 tnf_msgpack_bool(r, &b) || tnf_msgpack_nil(r) || tnf_msgpack_skip(r, NULL) ||
                 tnf_msgpack_value(r, &v) || tnf_msgpack_enter_map(r, &scope) ||
                 tnf_msgpack_bin_head(r, &u));
    assert_int_equal(tnf_msgpack_peek(r), TNF_MSGPACK_END);
    assert_int_equal(tnf_msgpack_marker(r), -1);
    assert_int_equal(tnf_msgpack_end(r), TNF_EFORMAT);
    assert_false(tnf_msgpack_fail(r, TNF_EINVAL, 5, "later"));
    assert_error(f, TNF_EFORMAT, 1);
    assert_int_equal(u, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_first_byte_has_its_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_integers_of_any_width, set_up, tear_down),
        cmocka_unit_test_setup_teardown(insists_on_markers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_the_rest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(walks_through_containers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_may_be_anything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(skipped_items_are_handed_out_raw, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_bad_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_truncation_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nesting_has_an_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(says_what_is_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_stick, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
