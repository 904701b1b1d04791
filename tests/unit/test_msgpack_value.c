/* SPDX-License-Identifier: MIT */
/* MessagePack as trees and back, compared with the packages msgpack and u-msgpack-python for the
 * same bytes (vectors/msgpack.txt), and values that trees cannot represent. */
#include "wire_fixture.h"

#include "wire/msgpack.h"

#define DEPTH 32u

static tnf_status read_hex(fixture *f, const char *hex, tnf_value *v)
{
    size_t n;
    uint8_t *bytes = bytes_from_hex(hex, &n);
    tnf_msgpack r;
    memset(&f->e, 0, sizeof f->e);
    tnf_msgpack_init(&r, bytes, n, BASE, &f->arena, DEPTH, &f->e);
    if (tnf_msgpack_value(&r, v))
        tnf_msgpack_end(&r);
    free(bytes); /* a tree does not borrow bytes */
    return r.status;
}

static void assert_written(fixture *f, const tnf_value *v, const char *hex)
{
    tnf_buf b;
    tnf_buf_init(&b, &f->alloc, 64u << 20);
    if (tnf_msgpack_put_value(&b, v, DEPTH, &f->e) != TNF_OK)
        fail_msg("%s: %s", hex, f->e.message);
    assert_hex(b.p, b.n, hex);
    tnf_buf_free(&b);
}

static void agrees_with_other_packages(void **state)
{
    fixture *f = *state;
    FILE *file = fopen(TNF_TESTS_DIR "/unit/vectors/msgpack.txt", "r");
    char *text = NULL, *fields[3];
    size_t capacity = 0, lines = 0;
    assert_non_null(file);
    for (tnf_value v; next_vector(file, &text, &capacity, fields, 3); lines++) {
        const char *bytes = fields[0], *shortest = fields[1], *typed = fields[2];
        if (read_hex(f, bytes, &v) != TNF_OK)
            fail_msg("%s: %s", bytes, f->e.message);
        assert_typed(&v, typed);
        assert_written(f, &v, shortest);
        v = from_typed(&f->arena, typed);
        assert_written(f, &v, shortest);
    }
    assert_true(lines > 400);
    free(text);
    fclose(file);
}

static void keeps_what_has_no_word(void **state)
{
    static const struct {
        const char *hex, *typed;
    } cases[] = {
        /* strs that are not UTF-8 */
        { "a1ff", "{\"$map\":{\"$str\":{\"$bytes\":\"ff\"}}}" },
        { "a2c328", "{\"$map\":{\"$str\":{\"$bytes\":\"c328\"}}}" },
        { "a3eda080", "{\"$map\":{\"$str\":{\"$bytes\":\"eda080\"}}}" },
        /* timestamps of 32, 64 and 96 bits */
        { "d6ff 5a4af6a5", "{\"$map\":{\"$ext\":[{\"$i8\":-1},{\"$bytes\":\"5a4af6a5\"}]}}" },
        { "d7ff 0000000000000001",
          "{\"$map\":{\"$ext\":[{\"$i8\":-1},{\"$bytes\":\"0000000000000001\"}]}}" },
        { "c70cff 00000001ffffffffffffffff",
          "{\"$map\":{\"$ext\":[{\"$i8\":-1},{\"$bytes\":\"00000001ffffffffffffffff\"}]}}" },
        { "d480 00", "{\"$map\":{\"$ext\":[{\"$i8\":-128},{\"$bytes\":\"00\"}]}}" },
        /* keys of other kinds, not UTF-8, or twice */
        { "81 01 c0", "{\"$map\":{\"$pairs\":[[{\"$u8\":1},null]]}}" },
        { "81 a1ff c0",
          "{\"$map\":{\"$pairs\":[[{\"$map\":{\"$str\":{\"$bytes\":\"ff\"}}},null]]}}" },
        { "82 a161 01 a161 02",
          "{\"$map\":{\"$pairs\":[[\"a\",{\"$u8\":1}],[\"a\",{\"$u8\":2}]]}}" },
        { "83 a162 c0 c3 c0 a161 c0",
          "{\"$map\":{\"$pairs\":[[\"b\",null],[true,null],[\"a\",null]]}}" },
        { "81 8101c0 90",
          "{\"$map\":{\"$pairs\":[[{\"$map\":{\"$pairs\":[[{\"$u8\":1},null]]}},[]]]}}" },
        { "81 c40161 c0", "{\"$map\":{\"$pairs\":[[{\"$bytes\":\"61\"},null]]}}" },
        /* maps that look like our wrappers */
        { "81 a6 247061697273 90", "{\"$map\":{\"$map\":{\"$map\":{\"$pairs\":[]}}}}" },
        { "81 a6 247061697273 91 92 01 02",
          "{\"$map\":{\"$map\":{\"$map\":{\"$pairs\":[[{\"$u8\":1},{\"$u8\":2}]]}}}}" },
        { "81 a6 247061697273 91 91 01", "{\"$map\":{\"$pairs\":[[{\"$u8\":1}]]}}" },
        { "81 a6 247061697273 01", "{\"$map\":{\"$pairs\":{\"$u8\":1}}}" },
        { "81 a4 24737472 c40161",
          "{\"$map\":{\"$map\":{\"$map\":{\"$str\":{\"$bytes\":\"61\"}}}}}" },
        { "81 a4 24737472 a161", "{\"$map\":{\"$str\":\"a\"}}" },
        { "81 a4 24657874 92 05 c40161",
          "{\"$map\":{\"$map\":{\"$map\":{\"$ext\":[{\"$u8\":5},{\"$bytes\":\"61\"}]}}}}" },
        { "81 a4 24657874 92 cc80 c40161",
          "{\"$map\":{\"$ext\":[{\"$u8\":128},{\"$bytes\":\"61\"}]}}" },
        { "81 a4 24657874 92 d1ff7f c40161",
          "{\"$map\":{\"$ext\":[{\"$i16\":-129},{\"$bytes\":\"61\"}]}}" },
        { "81 a4 246d6170 81 a4 24737472 c40161",
          "{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$map\":{\"$str\":{"
          "\"$bytes\":\"61\"}}}}}}}}}" },
        { "81 a4 246d6170 80", "{\"$map\":{\"$map\":{}}}" },
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_value v;
        char nested[400], typed[400];
        if (read_hex(f, cases[i].hex, &v) != TNF_OK)
            fail_msg("%s: %s", cases[i].hex, f->e.message);
        assert_typed(&v, cases[i].typed);
        assert_written(f, &v, cases[i].hex);

        snprintf(nested, sizeof nested, "92 81 a161 %s c3", cases[i].hex);
        snprintf(typed, sizeof typed, "[{\"a\":%s},true]", cases[i].typed);
        assert_int_equal(read_hex(f, nested, &v), TNF_OK);
        assert_typed(&v, typed);
        assert_written(f, &v, nested);
    }
}

static void floats_keep_their_bits(void **state)
{
    static const char *const floats[] = {
        "ca7f800001",         "caffc00001", "cb7ff0000000000001",
        "cbfff8000000000000", "ca80000000", "cb8000000000000000"
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        tnf_value v;
        assert_int_equal(read_hex(f, floats[i], &v), TNF_OK);
        assert_int_equal(v.dtype, floats[i][1] == 'a' ? TNF_F32 : TNF_F64);
        assert_written(f, &v, floats[i]);
    }
}

/* 100,000 keys, and nested maps whose last key is not text: memory is a small multiple of the
 * bytes. */
/* Each width of MessagePack for the same number gives the same value: u64, or i64 if negative. */
static void integers_without_widths(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *hex;
        tnf_value value;
    } cases[] = {
        { "05", { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 5 } },
        { "cc05", { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 5 } },
        { "d005", { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 5 } },
        { "d305", { .kind = TNF_NULL } }, /* cut */
        { "d30000000000000005", { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 5 } },
        { "cfffffffffffffffff", { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = UINT64_MAX } },
        { "ff", { .kind = TNF_INT, .dtype = TNF_I64, .as.i = -1 } },
        { "d1ff00", { .kind = TNF_INT, .dtype = TNF_I64, .as.i = -256 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        uint8_t *bytes = bytes_from_hex(cases[i].hex, &n);
        tnf_msgpack r;
        tnf_value v;
        tnf_msgpack_init(&r, bytes, n, BASE, &f->arena, DEPTH, &f->e);
        r.no_widths = true;
        bool read = tnf_msgpack_value(&r, &v);
        assert_int_equal(read, cases[i].value.kind != TNF_NULL);
        if (read) {
            assert_int_equal(v.kind, cases[i].value.kind);
            assert_int_equal(v.dtype, cases[i].value.dtype);
            assert_true(v.as.u == cases[i].value.as.u);
        }
        free(bytes);
    }
}

static void large_maps_are_no_matter(void **state)
{
    enum { N = 100000, LEVELS = 30 };
    fixture *f = *state;
    uint8_t *bytes = malloc(5 + 10 * N), *p = bytes;
    tnf_msgpack r;
    tnf_value v;
    memcpy(p, "\xdf\x00\x01\x86\xa0", 5);
    p += 5;
    for (unsigned i = 0; i < N; i++) {
        *p++ = 0xa8;
        snprintf((char *)p, 9, "k%07u", i);
        p += 8;
        *p++ = 0xc0;
    }
    tnf_msgpack_init(&r, bytes, (size_t)(p - bytes), BASE, &f->arena, DEPTH, &f->e);
    assert_true(tnf_msgpack_value(&r, &v));
    assert_int_equal(v.kind, TNF_MAP);
    assert_int_equal(v.n, N);
    memcpy(p - 9, "k0000500", 8);
    tnf_msgpack_init(&r, bytes, (size_t)(p - bytes), BASE, &f->arena, DEPTH, &f->e);
    assert_true(tnf_msgpack_value(&r, &v));
    assert_string_equal(v.as.members[0].key.p, "$pairs");
    assert_int_equal(v.as.members[0].value.n, N);

    p = bytes;
    for (int i = 0; i < LEVELS; i++) {
        memcpy(p, "\x82\xa1x", 3);
        p += 3;
    }
    *p++ = 0xc0;
    for (int i = 0; i < LEVELS; i++, p += 2)
        memcpy(p, "\x01\x02", 2);
    f->log.calls = 0;
    tnf_msgpack_init(&r, bytes, (size_t)(p - bytes), BASE, &f->arena, DEPTH, &f->e);
    assert_true(tnf_msgpack_value(&r, &v));
    assert_true(f->log.calls < 100);
    free(bytes);
}

static void survives_any_lack_of_memory(void **state)
{
    static const char hex[] =
        "8c a161 92 01 a3616263 a162 a1ff a163 d40102 a164 82 01 02 03 04 a165 c0"
        "a166 c2 a167 01 a168 01 a169 01 a16a 01 a16b c40161 a16c 81 a161 a162";
    fixture *f = *state;
    for (uint64_t fail_at = 1;; fail_at++) {
        tnf_value v;
        tnf_arena_free(&f->arena);
        tnf_arena_init(&f->arena, &f->alloc, 64u << 20);
        f->log.calls = 0;
        f->log.fail_at = fail_at;
        tnf_status status = read_hex(f, hex, &v);
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
        cmocka_unit_test_setup_teardown(agrees_with_other_packages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_what_has_no_word, set_up, tear_down),
        cmocka_unit_test_setup_teardown(floats_keep_their_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(integers_without_widths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_maps_are_no_matter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_any_lack_of_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
