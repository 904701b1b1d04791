/* SPDX-License-Identifier: MIT */
/* Writing MessagePack, piece by piece: bytes from the tests of the primitiv library's writer, and
 * complete files that it wrote (section 7 of its fact sheet). */
#include "../support/little.h"
#include "wire_fixture.h"

#include "model/value.h"
#include "wire/msgpack.h"

static void assert_put(tnf_buf *b, const char *hex)
{
    assert_int_equal(b->status, TNF_OK);
    assert_hex(b->p, b->n, hex);
    b->n = 0;
}

static void writes_exact_widths(void **state)
{
    tnf_buf *b = &((fixture *)*state)->b;
    tnf_msgpack_put_exact(b, TNF_U8, 0x12);
    tnf_msgpack_put_exact(b, TNF_U16, 0x1234);
    tnf_msgpack_put_exact(b, TNF_U32, 0x12345678);
    tnf_msgpack_put_exact(b, TNF_U64, 0x123456789abcdef0);
    assert_put(b, "cc12 cd1234 ce12345678 cf123456789abcdef0");
    tnf_msgpack_put_exact(b, TNF_I8, 0x12);
    tnf_msgpack_put_exact(b, TNF_I16, 0x1234);
    tnf_msgpack_put_exact(b, TNF_I32, 0x12345678);
    tnf_msgpack_put_exact(b, TNF_I64, 0x123456789abcdef0);
    tnf_msgpack_put_exact(b, TNF_I32, (uint64_t)-2);
    assert_put(b, "d012 d11234 d212345678 d3123456789abcdef0 d2fffffffe");
    tnf_msgpack_put_exact(b, TNF_F32, 0x7f800001);
    tnf_msgpack_put_exact(b, TNF_F64, 0x3ff0000000000000);
    assert_put(b, "ca7f800001 cb3ff0000000000000");
    tnf_msgpack_put_nil(b);
    tnf_msgpack_put_bool(b, true);
    tnf_msgpack_put_bool(b, false);
    tnf_msgpack_put_u32(b, 0);
    tnf_msgpack_put_f32(b, 1.0f);
    tnf_msgpack_put_f32(b, -3.0f);
    tnf_msgpack_put_f64(b, 1.0);
    assert_put(b, "c0 c3 c2 ce00000000 ca3f800000 cac0400000 cb3ff0000000000000");
    tnf_msgpack_put_exact(b, TNF_F16, 0);
    assert_int_equal(b->status, TNF_EINVAL);
}

static void writes_the_shortest_integers(void **state)
{
    static const struct {
        int64_t v;
        const char *hex;
    } cases[] = {
        { 0, "00" },
        { 127, "7f" },
        { 128, "cc80" },
        { 255, "ccff" },
        { 256, "cd0100" },
        { 65535, "cdffff" },
        { 65536, "ce00010000" },
        { 0xffffffff, "ceffffffff" },
        { 0x100000000, "cf0000000100000000" },
        { INT64_MAX, "cf7fffffffffffffff" },
        { -1, "ff" },
        { -32, "e0" },
        { -33, "d0df" },
        { -128, "d080" },
        { -129, "d1ff7f" },
        { -32768, "d18000" },
        { -32769, "d2ffff7fff" },
        { INT32_MIN, "d280000000" },
        { (int64_t)INT32_MIN - 1, "d3ffffffff7fffffff" },
        { INT64_MIN, "d38000000000000000" },
    };
    tnf_buf *b = &((fixture *)*state)->b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_msgpack_put_int(b, cases[i].v);
        assert_put(b, cases[i].hex);
    }
    tnf_msgpack_put_uint(b, UINT64_MAX);
    assert_put(b, "cfffffffffffffffff");
}

/* Only the head is compared: `n` bytes of content follow it. */
static void assert_head(tnf_buf *b, const char *hex, size_t n)
{
    size_t head = strlen(hex) / 2;
    assert_int_equal(b->status, TNF_OK);
    assert_int_equal(b->n, head + n);
    assert_hex(b->p, head, hex);
    b->n = 0;
}

static void writes_the_shortest_heads(void **state)
{
    static char many[65536];
    tnf_buf *b = &((fixture *)*state)->b;
    static const struct {
        size_t n;
        const char *str, *bin, *ext;
    } cases[] = {
        { 0, "a0", "c400", "c70058" },
        { 1, "a1", "c401", "d458" },
        { 2, "a2", "c402", "d558" },
        { 3, "a3", "c403", "c70358" },
        { 4, "a4", "c404", "d658" },
        { 8, "a8", "c408", "d758" },
        { 16, "b0", "c410", "d858" },
        { 31, "bf", "c41f", "c71f58" },
        { 32, "d920", "c420", "c72058" },
        { 255, "d9ff", "c4ff", "c7ff58" },
        { 256, "da0100", "c50100", "c8010058" },
        { 65535, "daffff", "c5ffff", "c8ffff58" },
        { 65536, "db00010000", "c600010000", "c90001000058" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_msgpack_put_str(b, many, cases[i].n);
        assert_head(b, cases[i].str, cases[i].n);
        tnf_msgpack_put_bin(b, many, cases[i].n);
        assert_head(b, cases[i].bin, cases[i].n);
        tnf_msgpack_put_bin_head(b, cases[i].n);
        assert_head(b, cases[i].bin, 0);
        tnf_msgpack_put_ext(b, 'X', many, cases[i].n);
        assert_head(b, cases[i].ext, cases[i].n);
    }
    static const struct {
        uint64_t n;
        const char *array, *map;
    } counts[] = {
        { 0, "90", "80" },
        { 15, "9f", "8f" },
        { 16, "dc0010", "de0010" },
        { 255, "dc00ff", "de00ff" },
        { 65535, "dcffff", "deffff" },
        { 65536, "dd00010000", "df00010000" },
        { UINT32_MAX, "ddffffffff", "dfffffffff" },
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        tnf_msgpack_put_array(b, counts[i].n);
        assert_put(b, counts[i].array);
        tnf_msgpack_put_map(b, counts[i].n);
        assert_put(b, counts[i].map);
    }
    tnf_msgpack_put_bin_head(b, UINT32_MAX);
    assert_put(b, "c6ffffffff");
    tnf_msgpack_put_ext(b, -1, "\1", 1);
    assert_put(b, "d4ff01");
    tnf_msgpack_put_bin_head(b, (uint64_t)UINT32_MAX + 1);
    assert_int_equal(b->status, TNF_ELIMIT);
}

static void put_tensor(tnf_buf *b, const float *values)
{
    tnf_msgpack_put_array(b, 2);
    tnf_msgpack_put_u32(b, 2);
    tnf_msgpack_put_u32(b, 2);
    tnf_msgpack_put_u32(b, 1);
    tnf_msgpack_put_bin(b, values, 16);
}

/* A parameter with a statistic, and an optimizer, as primitiv writes them. */
static void writes_primitiv_files(void **state)
{
    static const float value[] = { 1, 2, 3, 4 }, stat[] = { 10, 20, 30, 40 };
    tnf_buf *b = &((fixture *)*state)->b;
    tnf_msgpack_put_u32(b, 0);
    tnf_msgpack_put_u32(b, 1);
    tnf_msgpack_put_u32(b, 0x200);
    put_tensor(b, to_little(value, 4, 4));
    tnf_msgpack_put_u32(b, 1);
    tnf_msgpack_put_str(b, "a", 1);
    put_tensor(b, to_little(stat, 4, 4));
    assert_put(
        b, "ce00000000ce00000001ce0000020092ce00000002ce00000002ce00000001c4100000803f0000004000"
           "00404000008040ce00000001a16192ce00000002ce00000002ce00000001c410000020410000a0410000"
           "f04100002042");
    tnf_msgpack_put_u32(b, 0);
    tnf_msgpack_put_u32(b, 1);
    tnf_msgpack_put_u32(b, 0x400);
    tnf_msgpack_put_map(b, 1);
    tnf_msgpack_put_str(b, "Optimizer.epoch", 15);
    tnf_msgpack_put_u32(b, 2);
    tnf_msgpack_put_map(b, 4);
    tnf_msgpack_put_str(b, "SGD.eta", 7);
    tnf_msgpack_put_f32(b, 1);
    tnf_msgpack_put_str(b, "Optimizer.clip_threshold", 24);
    tnf_msgpack_put_f32(b, 5);
    tnf_msgpack_put_str(b, "Optimizer.l2_strength", 21);
    tnf_msgpack_put_f32(b, 4);
    tnf_msgpack_put_str(b, "Optimizer.lr_scale", 18);
    tnf_msgpack_put_f32(b, 3);
    assert_put(
        b, "ce00000000ce00000001ce0000040081af4f7074696d697a65722e65706f6368ce0000000284a7534744"
           "2e657461ca3f800000b84f7074696d697a65722e636c69705f7468726573686f6c64ca40a00000b54f70"
           "74696d697a65722e6c325f737472656e677468ca40800000b24f7074696d697a65722e6c725f7363616c"
           "65ca40400000");
}

static void writes_each_kind(void **state)
{
    static const struct {
        const char *typed, *hex;
    } cases[] = {
        { "{\"$u64\":5}", "05" },
        { "{\"$i64\":5}", "05" },
        { "{\"$i8\":-5}", "fb" },
        { "-9223372036854775808", "d38000000000000000" },
        { "{\"$f32\":\"3f800000\"}", "ca3f800000" },
        { "{\"$f64\":\"3ff0000000000000\"}", "cb3ff0000000000000" },
        { "{\"$f16\":\"3ff8000000000000\"}", "cb3ff8000000000000" },
        { "{\"$json\":\"[1]\"}", "a35b315d" },
        { "{\"b\":1,\"a\":[null,true]}", "82 a162 01 a161 92 c0 c3" },
        { "{\"$string\":\"ff\"}", "a1ff" },
        { "{\"$map\":{\"$pairs\":[]}}", "80" },
        { "{\"$map\":{\"$ext\":[{\"$u64\":5},{\"$bytes\":\"0102\"}]}}", "d5050102" },
    };
    fixture *f = *state;
    tnf_error e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_value v = from_typed(&f->arena, cases[i].typed);
        assert_ok(tnf_msgpack_put_value(&f->b, &v, 8, &e));
        assert_put(&f->b, cases[i].hex);
    }
    tnf_value unknown = { .kind = 99 };
    assert_fails(tnf_msgpack_put_value(&f->b, &unknown, 8, &e), TNF_EINVAL);
}

static void limits_are_told(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_value v = from_typed(&f->arena, "[[{\"a\":[1]}]]");
    assert_ok(tnf_msgpack_put_value(&f->b, &v, 4, &e));
    assert_fails(tnf_msgpack_put_value(&f->b, &v, 3, &e), TNF_ELIMIT);
    assert_fails(tnf_msgpack_put_value(&f->b, &v, 0, &e), TNF_ELIMIT);
    v = from_typed(&f->arena, "{\"$map\":{\"$pairs\":[[1,[2]]]}}"); /* two levels, not four */
    f->b.n = 0;
    assert_ok(tnf_msgpack_put_value(&f->b, &v, 2, &e));
    assert_put(&f->b, "81 01 91 02");
    assert_fails(tnf_msgpack_put_value(&f->b, &v, 1, &e), TNF_ELIMIT);
    tnf_buf small;
    tnf_buf_init(&small, &f->alloc, 2);
    assert_fails(tnf_msgpack_put_value(&small, &v, 8, &e), TNF_ELIMIT);
    tnf_buf_free(&small);
    f->log.fail_at = 1;
    f->log.calls = 0;
    tnf_buf_init(&small, &f->alloc, 100);
    assert_fails(tnf_msgpack_put_value(&small, &v, 8, &e), TNF_ENOMEM);
    tnf_buf_free(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_exact_widths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_the_shortest_integers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_the_shortest_heads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_primitiv_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_each_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limits_are_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
