/* SPDX-License-Identifier: MIT */
/* Writing CBOR, piece by piece and as trees: bytes that real zTensor writers produced (sections
 * 1.3, 2.1, 3.7 and 3.10 of the fact sheet), orders of keys, and values that cannot be written. */
#include "wire_fixture.h"

#include "model/value.h"
#include "wire/cbor.h"
#include <math.h>

static void put_pair(tnf_buf *b, const char *key, const char *text)
{
    tnf_cbor_put_string(b, key);
    tnf_cbor_put_string(b, text);
}

/* One tensor of an index that the writer of zTensor 0.1.4 wrote. */
static void writes_maps_of_open_length(void **state)
{
    tnf_buf *b = &((fixture *)*state)->b;
    tnf_cbor_put_open_map(b);
    put_pair(b, "name", "a");
    tnf_cbor_put_string(b, "offset");
    tnf_cbor_put_uint(b, 64);
    tnf_cbor_put_string(b, "size");
    tnf_cbor_put_uint(b, 16);
    put_pair(b, "dtype", "float32");
    put_pair(b, "layout", "dense");
    tnf_cbor_put_string(b, "shape");
    tnf_cbor_put_array(b, 2);
    tnf_cbor_put_uint(b, 2);
    tnf_cbor_put_uint(b, 2);
    put_pair(b, "encoding", "raw");
    put_pair(b, "data_endianness", "little");
    put_pair(b, "checksum", "crc32c:0x42709AEA");
    tnf_cbor_put_string(b, "f");
    tnf_cbor_put_f64(b, 1.5);
    put_pair(b, "note", "hi");
    tnf_cbor_put_string(b, "zz");
    tnf_cbor_put_int(b, 300);
    tnf_cbor_put_break(b);
    assert_hex(
        b->p, b->n,
        "bf 64 6e616d65 61 61  66 6f6666736574 18 40  64 73697a65 10  65 6474797065 67"
        "666c6f61743332 66 6c61796f7574 65 64656e7365  65 7368617065 82 02 02  68"
        "656e636f64696e67 63 726177 6f 646174615f656e6469616e6e657373 66 6c6974746c65  68"
        "636865636b73756d 71 6372633332633a30783432373039414541 61 66 f9 3e00  64 6e6f7465 62"
        "6869  62 7a7a 19 012c  ff");
}

static void writes_definite_things(void **state)
{
    tnf_buf *b = &((fixture *)*state)->b;
    tnf_cbor_put_map(b, 1);
    tnf_cbor_put_string(b, "objects");
    tnf_cbor_put_map(b, 0);
    assert_hex(b->p, b->n, "a1 67 6f626a65637473 a0");
    b->n = 0;
    tnf_cbor_put_array(b, 2);
    tnf_cbor_put_string(b, "zt.content/1");
    tnf_cbor_put_map(b, 0);
    assert_hex(b->p, b->n, "826c7a742e636f6e74656e742f31a0");
    b->n = 0;
    tnf_cbor_put_map(b, 4);
    put_pair(b, "version", "1.0");
    put_pair(b, "generator", "zTensor-Rust v0.1.0");
    tnf_cbor_put_string(b, "attributes");
    tnf_cbor_put_map(b, 0);
    tnf_cbor_put_string(b, "tensors");
    tnf_cbor_put_map(b, 0);
    assert_hex(
        b->p, b->n,
        "a46776657273696f6e63312e306967656e657261746f72737a54656e736f722d527573742076302e312e"
        "306a61747472696275746573a06774656e736f7273a0");
    b->n = 0;
    tnf_cbor_put_bool(b, true);
    tnf_cbor_put_bool(b, false);
    tnf_cbor_put_null(b);
    tnf_cbor_put_bytes(b, "\1\2", 2);
    tnf_cbor_put_text(b, "", 0);
    tnf_cbor_put_int(b, INT64_MIN);
    tnf_cbor_put_int(b, -1);
    tnf_cbor_put_uint(b, UINT64_MAX);
    tnf_cbor_put_f64(b, (double)NAN);
    tnf_cbor_put_f64(b, -(double)NAN);
    tnf_cbor_put_f64(b, 1e300);
    assert_hex(b->p, b->n,
               "f5 f4 f6 420102 60 3b7fffffffffffffff 20 1bffffffffffffffff f97e00 f97e00 fb"
               "7e37e43c8800759c");
}

/* "b" is before "aa" in a file, after it in a dictionary. */
static void orders_keys_by_their_encoding(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_value v = from_typed(&f->arena,
                             "{\"aa\":1,\"b\":2,\"\":3,\"ab\":{\"z\":1,\"y\":2},\"a\":4}");
    assert_ok(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_STRICT, 8, &e));
    assert_hex(f->b.p, f->b.n, "a5 60 03 6161 04 6162 02 626161 01 626162 a2 6179 02 617a 01");
    f->b.n = 0;
    assert_ok(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_LENIENT, 8, &e));
    assert_hex(f->b.p, f->b.n, "a5 626161 01 6162 02 60 03 626162 a2 617a 01 6179 02 6161 04");

#define S(literal) ((tnf_str) { literal, sizeof literal - 1 })
    assert_true(tnf_cbor_compare(S("b"), S("aa")) < 0);
    assert_true(tnf_cbor_compare(S("aa"), S("b")) > 0);
    assert_true(tnf_cbor_compare(S("a"), S("b")) < 0);
    assert_true(tnf_cbor_compare(S("\x7f"), S("\xc3")) < 0);
    assert_true(tnf_cbor_compare(S("ab"), S("ab")) == 0);
    assert_true(tnf_cbor_compare(S(""), S("")) == 0);
}

static void writes_each_kind(void **state)
{
    static const struct {
        const char *typed, *hex;
    } cases[] = {
        { "{\"$u8\":3}", "03" },
        { "{\"$u64\":18446744073709551615}", "1bffffffffffffffff" },
        { "{\"$i8\":-128}", "387f" },
        { "-9223372036854775808", "3b7fffffffffffffff" },
        { "{\"$f32\":\"3dcccccd\"}", "fa3dcccccd" },
        { "{\"$f32\":\"3fc00000\"}", "f93e00" },
        { "{\"$f32\":\"7fc00001\"}", "f97e00" },
        { "{\"$f64\":\"3fb999999999999a\"}", "fb3fb999999999999a" },
        { "{\"$f16\":\"3ff8000000000000\"}", "f93e00" },
        { "{\"$bytes\":\"00ff\"}", "4200ff" },
        { "{\"$json\":\"{\\\"a\\\": 1}\"}", "68 7b2261223a20317d" },
        { "[null,true,\"\xc3\xa9\",[]]", "84 f6 f5 62c3a9 80" },
    };
    fixture *f = *state;
    tnf_error e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_value v = from_typed(&f->arena, cases[i].typed);
        f->b.n = 0;
        assert_ok(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_STRICT, 8, &e));
        assert_hex(f->b.p, f->b.n, cases[i].hex);
    }
    tnf_value nan = from_typed(&f->arena, "{\"$f32\":\"7f800001\"}");
    f->b.n = 0;
    assert_ok(tnf_cbor_put_value(&f->b, &nan, TNF_CBOR_LENIENT, 8, &e));
    assert_hex(f->b.p, f->b.n, "fa7f800001");
}

static void refuses_what_cannot_be_read_again(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_member twice[2] = { { { "k", 1 }, { 0 } }, { { "k", 1 }, { 0 } } };
    tnf_value map = { .kind = TNF_MAP, .n = 2, .as.members = twice };
    assert_fails(tnf_cbor_put_value(&f->b, &map, TNF_CBOR_STRICT, 8, &e), TNF_EINVAL);
    assert_says("the key 'k' occurs twice");

    tnf_value bad = tnf_value_str(TNF_STRING, "\xff", 1);
    assert_fails(tnf_cbor_put_value(&f->b, &bad, TNF_CBOR_STRICT, 8, &e), TNF_EINVAL);
    assert_fails(tnf_cbor_put_value(&f->b, &bad, TNF_CBOR_LENIENT, 8, &e), TNF_EINVAL);
    twice[0].key = (tnf_str) { "\xff", 1 };
    assert_fails(tnf_cbor_put_value(&f->b, &map, TNF_CBOR_STRICT, 8, &e), TNF_EINVAL);
    assert_fails(tnf_cbor_put_value(&f->b, &map, TNF_CBOR_LENIENT, 8, &e), TNF_EINVAL);
    assert_says("not UTF-8");

    tnf_value unknown = { .kind = 99 };
    assert_fails(tnf_cbor_put_value(&f->b, &unknown, TNF_CBOR_STRICT, 8, &e), TNF_EINVAL);
}

static void depth_is_that_of_the_reader(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_value v = from_typed(&f->arena, "[[{\"a\":[1]}]]");
    assert_ok(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_STRICT, 4, &e));
    assert_fails(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_STRICT, 3, &e), TNF_ELIMIT);
    /* [h'[[1]]']: a value that is kept in encoded form has levels, too */
    v = from_typed(&f->arena, "[{\"$map\":{\"$cbor\":{\"$bytes\":\"818101\"}}}]");
    f->b.n = 0;
    assert_ok(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_STRICT, 3, &e));
    assert_hex(f->b.p, f->b.n, "81 818101");
    assert_fails(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_STRICT, 2, &e), TNF_ELIMIT);
    assert_fails(tnf_cbor_put_value(&f->b, &v, TNF_CBOR_STRICT, 0, &e), TNF_ELIMIT);
}

static void lack_of_room_is_told(void **state)
{
    fixture *f = *state;
    tnf_error e;
    tnf_value v = from_typed(&f->arena, "{\"a\":1,\"b\":[1,2,3]}");
    tnf_buf small;
    tnf_buf_init(&small, &f->alloc, 5);
    assert_fails(tnf_cbor_put_value(&small, &v, TNF_CBOR_STRICT, 8, &e), TNF_ELIMIT);
    tnf_buf_free(&small);
    for (f->log.fail_at = 1;; f->log.fail_at++) {
        tnf_buf b;
        tnf_buf_init(&b, &f->alloc, 1000);
        f->log.calls = 0;
        memset(&e, 0, sizeof e);
        tnf_status status = tnf_cbor_put_value(&b, &v, TNF_CBOR_STRICT, 8, &e);
        tnf_buf_free(&b);
        if (status == TNF_OK)
            break;
        assert_int_equal(status, TNF_ENOMEM);
        assert_int_equal(e.status, TNF_ENOMEM);
    }
    assert_true(f->log.fail_at > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_maps_of_open_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_definite_things, set_up, tear_down),
        cmocka_unit_test_setup_teardown(orders_keys_by_their_encoding, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_each_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_cannot_be_read_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(depth_is_that_of_the_reader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lack_of_room_is_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
