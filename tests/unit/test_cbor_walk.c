/* SPDX-License-Identifier: MIT */
/* Arrays and maps of the CBOR reader: definite and indefinite ones give the same, repeated keys are
 * found in maps of any size, and skipped items are returned byte for byte. */
#include "wire/cbor.h"

#define READER tnf_cbor
#include "wire_fixture.h"

static tnf_cbor *begin_hex(fixture *f, const char *hex, tnf_cbor_profile profile)
{
    size_t n;
    free(f->bytes);
    f->bytes = bytes_from_hex(hex, &n);
    memset(&f->e, 0, sizeof f->e);
    tnf_cbor_init(&f->r, f->bytes, n, BASE, &f->arena, 32, profile, &f->e);
    return &f->r;
}

static bool str_is(tnf_str s, const char *expected)
{
    return s.p && s.n == strlen(expected) && memcmp(s.p, expected, s.n) == 0;
}

/* {"a": [1, 2], "b": {}, "cc": true}, then 5 */
static void walk_example(fixture *f, const char *hex, tnf_cbor_profile profile, bool open)
{
    tnf_cbor *r = begin_hex(f, hex, profile);
    tnf_cbor_scope map, array, inner;
    tnf_str key;
    uint64_t u;
    bool b = false;
    assert_int_equal(tnf_cbor_peek(r), TNF_CBOR_MAP);
    assert_true(tnf_cbor_enter_map(r, &map));
    assert_true(map.level.left == (open ? TNF_CBOR_OPEN : 3));
    assert_true(tnf_cbor_key(r, &map, &key) && str_is(key, "a"));
    assert_true(tnf_cbor_enter_array(r, &array));
    assert_true(array.level.left == (open ? TNF_CBOR_OPEN : 2));
    assert_true(tnf_cbor_item(r, &array) && tnf_cbor_u64(r, &u) && u == 1);
    assert_true(tnf_cbor_item(r, &array) && tnf_cbor_u64(r, &u) && u == 2);
    assert_false(tnf_cbor_item(r, &array));
    assert_true(tnf_cbor_key(r, &map, &key) && str_is(key, "b"));
    assert_true(tnf_cbor_enter_map(r, &inner));
    assert_false(tnf_cbor_key(r, &inner, &key));
    assert_true(tnf_cbor_key(r, &map, &key) && str_is(key, "cc"));
    assert_true(tnf_cbor_bool(r, &b) && b);
    assert_false(tnf_cbor_key(r, &map, &key));
    assert_int_equal(r->status, TNF_OK);
    assert_int_equal(r->depth, 0);
    assert_true(tnf_cbor_u64(r, &u) && u == 5);
    assert_int_equal(tnf_cbor_end(r), TNF_OK);
}

static void definite_and_open_look_alike(void **state)
{
    walk_example(*state, "a3 6161 820102 6162 a0 626363 f5 05", TNF_CBOR_STRICT, false);
    walk_example(*state, "a3 6161 820102 6162 a0 626363 f5 05", TNF_CBOR_LENIENT, false);
    walk_example(*state, "bf 6161 9f0102ff 6162 bfff 626363 f5 ff 05", TNF_CBOR_LENIENT, true);
    walk_example(*state, "c1 bf c2 7f6161ff d864 9f0102ff 6162 bfff 7f6163 6163ff f5 ff d9d9f7 05",
                 TNF_CBOR_LENIENT, true);
}

static void keys_may_be_anything(void **state)
{
    fixture *f = *state;
    tnf_cbor_scope map;
    tnf_str key;
    uint64_t u;
    tnf_cbor *r = begin_hex(f, "a4 1818 01 20 02 6161 03 8161 62 04", TNF_CBOR_STRICT);
    assert_true(tnf_cbor_enter_map(r, &map));
    assert_true(tnf_cbor_key(r, &map, &key) && key.p == NULL);
    assert_hex(map.level.previous.p, map.level.previous.n, "1818");
    assert_true(tnf_cbor_u64(r, &u) && u == 1);
    assert_true(tnf_cbor_key(r, &map, &key) && key.p == NULL);
    assert_hex(map.level.previous.p, map.level.previous.n, "20");
    assert_true(tnf_cbor_u64(r, &u) && u == 2);
    assert_true(tnf_cbor_key(r, &map, &key) && str_is(key, "a"));
    assert_hex(map.level.previous.p, map.level.previous.n, "6161");
    assert_true(tnf_cbor_u64(r, &u) && u == 3);
    assert_true(tnf_cbor_key(r, &map, &key) && key.p == NULL);
    assert_hex(map.level.previous.p, map.level.previous.n, "816162");
    assert_true(tnf_cbor_u64(r, &u) && u == 4);
    assert_false(tnf_cbor_key(r, &map, &key));
    assert_int_equal(tnf_cbor_end(r), TNF_OK);

    /* an empty key is a key */
    r = begin_hex(f, "a1 60 00", TNF_CBOR_STRICT);
    assert_true(tnf_cbor_enter_map(r, &map) && tnf_cbor_key(r, &map, &key) && str_is(key, ""));
}

static void skipped_items_are_handed_out_raw(void **state)
{
    static const char *const items[] = {
        "00",
        "1bffffffffffffffff",
        "6161",
        "a2 6161 820102 6162 a16163 f6",
        "5f 41 01 42 0203 ff",
        "c1 d864 9f 01 bf 6161 f7 ff ff",
        "fb7ff8000000000001",
        "1a00000001",
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        char hex[128];
        tnf_str raw;
        uint64_t u;
        snprintf(hex, sizeof hex, "00 %s 17", items[i]);
        tnf_cbor *r = begin_hex(f, hex, TNF_CBOR_LENIENT);
        assert_true(tnf_cbor_u64(r, &u) && tnf_cbor_skip(r, &raw));
        assert_hex(raw.p, raw.n, items[i]);
        assert_true(tnf_cbor_u64(r, &u) && u == 23);
        assert_int_equal(tnf_cbor_end(r), TNF_OK);
        assert_int_equal(r->depth, 0);
    }
    assert_int_equal(f->log.calls, 0);
}

/* 32 arrays around an integer are within the limit of zTensor 2, 33 are not; 33 may be empty. */
static void depth_is_counted_in_items(void **state)
{
    fixture *f = *state;
    uint8_t bytes[40];
    tnf_value v;
    memset(bytes, 0x81, sizeof bytes);
    for (unsigned profile = TNF_CBOR_LENIENT; profile <= TNF_CBOR_STRICT; profile++)
        for (unsigned n = 30; n < 36; n++) {
            for (int tree = 0; tree < 2; tree++) {
                bytes[n] = 0;
                tnf_cbor_init(&f->r, bytes, n + 1, BASE, &f->arena, 32, (tnf_cbor_profile)profile,
                              &f->e);
                assert_int_equal(tree ? tnf_cbor_value(&f->r, &v) : tnf_cbor_skip(&f->r, NULL),
                                 n <= 32);
                if (n > 32) {
                    assert_int_equal(f->r.rule, TNF_CBOR_DEPTH);
                    assert_int_equal(f->e.offset, BASE + 33);
                }
                bytes[n] = 0x80;
                tnf_cbor_init(&f->r, bytes, n + 1, BASE, &f->arena, 32, (tnf_cbor_profile)profile,
                              &f->e);
                assert_int_equal(tree ? tnf_cbor_value(&f->r, &v) : tnf_cbor_skip(&f->r, NULL),
                                 n <= 32);
            }
            bytes[n] = 0x81;
        }
    /* Even with a higher limit, skipping stops when its own stack is full. */
    static uint8_t deep[100000];
    memset(deep, 0x81, sizeof deep);
    tnf_cbor_init(&f->r, deep, sizeof deep, 0, &f->arena, UINT32_MAX, TNF_CBOR_STRICT, &f->e);
    assert_false(tnf_cbor_skip(&f->r, NULL));
    assert_int_equal(f->r.rule, TNF_CBOR_DEPTH);
    assert_int_equal(f->e.offset, TNF_TREE_DEEPEST + 1);
    memset(deep, 0xc1, sizeof deep);
    tnf_cbor_init(&f->r, deep, sizeof deep, 0, &f->arena, UINT32_MAX, TNF_CBOR_LENIENT, &f->e);
    assert_false(tnf_cbor_value(&f->r, &v));
    assert_int_equal(f->r.rule, TNF_CBOR_DEPTH);
}

/* A map of n keys "k0000000", "k0000001" …; the last repeats key `twice` if `twice` < n. */
static size_t make_map(uint8_t *to, uint32_t n, uint32_t twice, bool backwards)
{
    uint8_t *p = to;
    *p++ = 0xba;
    for (int i = 3; i >= 0; i--)
        *p++ = (uint8_t)(n >> 8 * i);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = backwards ? n - 1 - i : i;
        if (i == n - 1 && twice < n)
            k = twice;
        *p++ = 0x68;
        snprintf((char *)p, 9, "k%07u", k);
        p += 8;
        *p++ = 0xf6;
    }
    return (size_t)(p - to);
}

static bool read_all(tnf_cbor *r, uint32_t *count)
{
    tnf_cbor_scope map;
    tnf_str key;
    tnf_cbor_enter_map(r, &map);
    for (*count = 0; tnf_cbor_key(r, &map, &key); ++*count)
        if (!tnf_cbor_null(r))
            return false;
    return r->status == TNF_OK;
}

static void large_maps_are_no_matter(void **state)
{
    enum { N = 100000 };
    fixture *f = *state;
    uint8_t *bytes = malloc(5 + 10 * N);
    uint32_t count;
    size_t n = make_map(bytes, N, N, false);
    tnf_cbor_init(&f->r, bytes, n, BASE, &f->arena, 32, TNF_CBOR_STRICT, &f->e);
    assert_true(read_all(&f->r, &count) && count == N);
    assert_int_equal(f->log.calls, 0); /* the order is enough */

    n = make_map(bytes, N, N, true);
    tnf_cbor_init(&f->r, bytes, n, BASE, &f->arena, 32, TNF_CBOR_LENIENT, &f->e);
    assert_true(read_all(&f->r, &count) && count == N);
    assert_true(f->arena.total < 16u << 20);
    tnf_cbor_init(&f->r, bytes, n, BASE, &f->arena, 32, TNF_CBOR_STRICT, &f->e);
    assert_false(read_all(&f->r, &count));
    assert_int_equal(f->r.rule, TNF_CBOR_DETERMINISM);
    assert_int_equal(f->e.offset, BASE + 5 + 10);

    n = make_map(bytes, N, 500, false);
    tnf_cbor_init(&f->r, bytes, n, BASE, &f->arena, 32, TNF_CBOR_LENIENT, &f->e);
    assert_false(read_all(&f->r, &count));
    assert_int_equal(f->r.rule, TNF_CBOR_DUPLICATE_KEY);
    assert_int_equal(f->e.offset, BASE + 5 + 10 * (N - 1));
    assert_string_equal(f->e.message, "the CBOR has the key 'k0000500' twice in one map");
    free(bytes);
}

static void keys_that_come_twice_are_found(void **state)
{
    fixture *f = *state;
    uint8_t bytes[5 + 10 * 40];
    uint32_t count;
    for (uint32_t n = 2; n <= 40; n++)
        for (uint32_t twice = 0; twice + 1 < n; twice++) {
            size_t size = make_map(bytes, n, twice, false);
            tnf_cbor_init(&f->r, bytes, size, BASE, &f->arena, 32, TNF_CBOR_LENIENT, &f->e);
            assert_false(read_all(&f->r, &count));
            assert_int_equal(f->r.rule, TNF_CBOR_DUPLICATE_KEY);
            assert_int_equal(f->e.offset, BASE + 5 + 10 * (n - 1));
        }
    /* keys are compared as text, not in their spellings */
    static const char *const same[] = { "a2 6161 f6 780161 f6", "a2 7f6161ff f6 6161 f6",
                                        "bf c16161 f6 6161 f6 ff", "a2 60 f6 7fff f6" };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_false(read_all(begin_hex(f, same[i], TNF_CBOR_LENIENT), &count));
        assert_int_equal(f->r.rule, TNF_CBOR_DUPLICATE_KEY);
    }
    assert_true(read_all(begin_hex(f, "a2 6161 f6 4161 f6", TNF_CBOR_LENIENT), &count));
}

/* A few bytes that claim a huge size. */
static void claims_take_no_memory(void **state)
{
    static const char *const claims[] = {
        "9bffffffffffffffff", "9b00000000ffffffff00", "9affffffff00", "bbffffffffffffffff",
        "baffffffff0000",     "7bffffffffffffffff00", "5affffffff00", "9f5affffffff00",
        "bf9affffffff00",     "7f7affffffff00",       "819affffffff", "5f5bfffffffffffffffff6",
    };
    fixture *f = *state;
    tnf_value v;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        assert_false(tnf_cbor_skip(begin_hex(f, claims[i], TNF_CBOR_LENIENT), NULL));
        assert_int_equal(f->r.status, TNF_ETRUNCATED);
        assert_false(tnf_cbor_value(begin_hex(f, claims[i], TNF_CBOR_LENIENT), &v));
        assert_int_equal(f->r.status, TNF_ETRUNCATED);
        assert_true(f->log.peak < 8192);
    }
}

static void lack_of_memory_is_told(void **state)
{
    fixture *f = *state;
    uint8_t bytes[5 + 10 * 40];
    uint32_t count;
    tnf_str s;
    size_t size = make_map(bytes, 40, 40, false);
    f->log.fail_at = 1;
    tnf_cbor_init(&f->r, bytes, size, BASE, &f->arena, 32, TNF_CBOR_LENIENT, &f->e);
    assert_false(read_all(&f->r, &count));
    assert_int_equal(count, TNF_KEYS_FEW);
    assert_int_equal(f->r.status, TNF_ENOMEM);
    assert_int_equal(f->r.rule, TNF_CBOR_FINE);
    assert_false(tnf_cbor_text(begin_hex(f, "7f6161ff", TNF_CBOR_LENIENT), &s));
    assert_int_equal(f->e.status, TNF_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(definite_and_open_look_alike, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_may_be_anything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(skipped_items_are_handed_out_raw, set_up, tear_down),
        cmocka_unit_test_setup_teardown(depth_is_counted_in_items, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_maps_are_no_matter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_that_come_twice_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claims_take_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
