/* SPDX-License-Identifier: MIT */
/* Integers of 128 bits against Python's (make_int128_vectors.py): text, doubles, casts; sums and
 * differences against each other. */
#include "../support/unit.h"
#include "base/int128.h"
#include "kernels/cast.h"
#include "kernels/tally.h"
#include "model/dtype.h"

#include "int128_vectors.h"

enum { CASES = sizeof int128_cases / sizeof *int128_cases };

static void bytes_of_case(uint8_t out[16], size_t i)
{
    for (unsigned k = 0; k < 8; k++) {
        out[k] = (uint8_t)(int128_cases[i].low >> 8 * k);
        out[8 + k] = (uint8_t)(int128_cases[i].high >> 8 * k);
    }
}

static void bytes_and_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        uint8_t bytes[17], again[16];
        char text[TNF_U128_TEXT];
        bytes_of_case(bytes + 1, i);
        tnf_u128 v = tnf_le128(bytes + 1);
        assert_true(v.low == int128_cases[i].low && v.high == int128_cases[i].high);
        tnf_put_le128(again, v);
        assert_memory_equal(again, bytes + 1, 16);
        assert_int_equal(tnf_u128_text(text, v), strlen(int128_cases[i].u128));
        assert_string_equal(text, int128_cases[i].u128);
    }
}

/* The text of every integer type, at odd places. */
static void text_of_elements(void **state)
{
    (void)state;
    static const struct {
        const char *id, *bytes, *text[4];
    } small[] = {
        { "i64",
          "\0\0\0\0\0\0\0\x80\xff\xff\xff\xff\xff\xff\xff\xff",
          { "-9223372036854775808", "-1" } },
        { "u64",
          "\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\x20\0",
          { "18446744073709551615", "9007199254740993" } },
        { "i32", "\0\0\0\x80\xff\xff\xff\x7f", { "-2147483648", "2147483647" } },
        { "u32", "\xff\xff\xff\xff", { "4294967295" } },
        { "i16", "\0\x80\xff\xff", { "-32768", "-1" } },
        { "u8", "\xff\0", { "255", "0" } },
        { "bool", "\0\1\2", { "0", "1", "1" } },
        { "i4", "\x8f\x07", { "-1", "-8", "7" } },
        { "u2", "\x1b", { "3", "2", "1", "0" } },
        { "bit", "\x0a", { "0", "1", "0", "1" } },
    };
    static const char *const none[] = { "f32", "f64", "bf16", "c64", "c128", "f8_e4m3fn" };
    static const tnf_type foreign = { "x.int3", TNF_U64, TNF_NUMBER_OPAQUE, 128 };
    char text[TNF_INTEGER_TEXT];
    uint8_t bytes[33] = { 0 };
    for (size_t i = 0; i < CASES; i++) {
        bytes_of_case(bytes + 17, i);
        assert_int_equal(tnf_type_integer(text, sizeof text, tnf_type_named("u128"), bytes + 1, 1),
                         strlen(int128_cases[i].u128));
        assert_string_equal(text, int128_cases[i].u128);
        assert_int_equal(tnf_type_integer(text, sizeof text, tnf_type_named("i128"), bytes + 1, 1),
                         strlen(int128_cases[i].i128));
        assert_string_equal(text, int128_cases[i].i128);
    }
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        for (size_t k = 0; k < 4 && small[i].text[k]; k++) {
            const tnf_type *type = tnf_type_named(small[i].id);
            assert_int_equal(tnf_type_integer(text, sizeof text, type, small[i].bytes, k),
                             strlen(small[i].text[k]));
            assert_string_equal(text, small[i].text[k]);
        }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(tnf_type_integer(text, sizeof text, tnf_type_named(none[i]), bytes, 0), 0);
        assert_string_equal(text, "");
    }
    assert_int_equal(tnf_type_integer(text, sizeof text, &foreign, bytes, 0), 0);
    assert_int_equal(tnf_type_integer(text, sizeof text, NULL, bytes, 0), 0);
    assert_int_equal(tnf_type_integer(text, 4, tnf_type_of(TNF_U32), "\x40\xe2\1", 0), 6);
    assert_string_equal(text, "123");
    assert_int_equal(tnf_type_integer(NULL, 0, tnf_type_of(TNF_U32), "\x40\xe2\1", 0), 6);
}

static void check_bits(const char *what, size_t i, uint64_t got, uint64_t want)
{
    if (got != want)
        fail_msg("%s of %s / %s: %llx instead of %llx", what, int128_cases[i].u128,
                 int128_cases[i].i128, (unsigned long long)got, (unsigned long long)want);
}

static void decoded_to_doubles(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        uint8_t bytes[49] = { 0 };
        double d[3];
        bytes_of_case(bytes + 17, i);
        assert_true(tnf_type_decode(d, tnf_type_named("u128"), bytes + 1, 0, 3));
        check_bits("the double", i, tnf_f64_bits(d[1]), int128_cases[i].u_f64);
        assert_true(d[0] == 0 && d[2] == 0);
        assert_true(tnf_type_decode(d, tnf_type_named("i128"), bytes + 1, 1, 1));
        check_bits("the double", i, tnf_f64_bits(d[0]), int128_cases[i].i_f64);
    }
}

/* Every whole double is itself again. */
static void doubles_to_integers(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        double d = tnf_f64_of(int128_cases[i].u_f64);
        if (d >= 0x1p128)
            continue;
        check_bits("the whole double", i, tnf_f64_bits(tnf_u128_to_f64(tnf_u128_of_f64(d))),
                   int128_cases[i].u_f64);
    }
    tnf_u128 three = tnf_u128_of_f64(3), zero = tnf_u128_of_f64(0);
    assert_true(three.low == 3 && three.high == 0 && zero.low == 0 && zero.high == 0);
    tnf_u128 most = tnf_u128_of_f64(0x1.fffffffffffffp127);
    assert_true(most.low == 0 && most.high == 0xfffffffffffff800);
}

/* ------------------------------------------------------------------- casts */

static void check_cast(const tnf_cast_set *set, const char *from, const char *to, size_t i,
                       uint64_t want)
{
    uint8_t in[49] = { 0 }, out[32] = { 0 }, odd[32] = { 0 };
    size_t width = tnf_type_named(to)->bits / 8;
    tnf_cast_fn *cast = tnf_cast_by(set, from, to);
    uint64_t got = 0, after = 0;
    assert_non_null(cast);
    bytes_of_case(in + 16, i);
    cast(out, in, 3);
    memmove(in + 17, in + 16, 16); /* at an odd address, alone */
    cast(odd + 1, in + 17, 1);
    for (size_t k = width; k-- > 0;) {
        got = got << 8 | out[width + k];
        after = after << 8 | odd[1 + k];
    }
    check_bits(to, i, got, want);
    check_bits(to, i, after, want);
}

static void casts_to_floats(void **state)
{
    (void)state;
    const tnf_cast_set *set;
    for (size_t s = 0; (set = tnf_cast_set_at(s)); s++)
        for (size_t i = 0; i < CASES; i++) {
            check_cast(set, "u128", "f64", i, int128_cases[i].u_f64);
            check_cast(set, "i128", "f64", i, int128_cases[i].i_f64);
            check_cast(set, "u128", "f32", i, int128_cases[i].u_f32);
            check_cast(set, "i128", "f32", i, int128_cases[i].i_f32);
            check_cast(set, "u128", "f16", i, int128_cases[i].u_f16);
            check_cast(set, "i128", "f16", i, int128_cases[i].i_f16);
            check_cast(set, "u128", "bf16", i, int128_cases[i].u_bf16);
            check_cast(set, "i128", "bf16", i, int128_cases[i].i_bf16);
        }
}

/* -------------------------------------------------------------- arithmetic */

static tnf_u128 number_at(size_t i)
{
    return (tnf_u128) { int128_cases[i].low, int128_cases[i].high };
}

/* The cases are in ascending order. */
static void sums_and_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++)
        for (size_t k = 0; k < CASES; k++) {
            tnf_u128 a = number_at(i), b = number_at(k);
            assert_int_equal(tnf_u128_less(a, b), i < k);
            tnf_u128 back = tnf_u128_minus(tnf_u128_sum(a, b), b);
            assert_true(back.low == a.low && back.high == a.high);
        }
    tnf_u128 one = { 1, 0 }, most = { UINT64_MAX, 0 };
    tnf_u128 sum = tnf_u128_sum(most, one), rest = tnf_u128_minus(sum, one);
    assert_true(sum.low == 0 && sum.high == 1);
    assert_true(rest.low == UINT64_MAX && rest.high == 0);
    tnf_u128 least = { 0, (uint64_t)1 << 63 }, minus = { UINT64_MAX, UINT64_MAX };
    assert_true(tnf_i128_size(least).high == least.high && tnf_i128_size(least).low == 0);
    assert_true(tnf_i128_size(minus).low == 1 && tnf_i128_size(minus).high == 0);
}

/* ------------------------------------------------------------------- tally */

static tnf_tally tally_of(const tnf_u128 *v, size_t n, bool is_signed)
{
    uint64_t *words = malloc(16 * n);
    tnf_tally t = { 0 };
    assert_non_null(words);
    for (size_t i = 0; i < n; i++) {
        words[2 * i + TNF_BIG_ENDIAN_HOST] = v[i].low;
        words[2 * i + !TNF_BIG_ENDIAN_HOST] = v[i].high;
    }
    tnf_tally_ints(&t, words, n, 16, is_signed);
    free(words);
    return t;
}

/* Means by hand: of the largest ones, whose sum has 137 bits; of numbers that cancel. */
static void tallied_numbers(void **state)
{
    (void)state;
    enum { N = 512 };
    tnf_u128 v[N];
    for (size_t i = 0; i < N; i++)
        v[i] = (tnf_u128) { UINT64_MAX, UINT64_MAX };
    tnf_tally t = tally_of(v, N, false);
    assert_true(t.mean == 0x1p128 && t.min == 0x1p128 && t.max == 0x1p128 && t.zero == 0);
    assert_true(t.low.low == UINT64_MAX && t.high.high == UINT64_MAX);
    t = tally_of(v, N, true);
    assert_true(t.mean == -1 && t.min == -1 && t.max == -1);
    for (size_t i = 0; i < N; i++)
        v[i] = (tnf_u128) { 0, (uint64_t)1 << 63 };
    t = tally_of(v, N, true);
    assert_true(t.mean == -0x1p127 && t.min == -0x1p127 && t.max == -0x1p127);
    t = tally_of(v, N - 1, true); /* an odd number of them */
    assert_true(t.mean == -0x1p127);
    for (size_t i = 0; i < N; i++) /* 2^127 - 1 and its negative, and 1024 and 0 once each */
        v[i] = i % 2 ? (tnf_u128) { UINT64_MAX, INT64_MAX } : (tnf_u128) { 1, (uint64_t)1 << 63 };
    v[0] = (tnf_u128) { 1024, 0 };
    v[1] = (tnf_u128) { 0, 0 };
    t = tally_of(v, N, true);
    assert_true(t.mean == 2 && t.zero == 1 && t.elements == N);
    assert_true(t.low.low == 1 && t.low.high == 0);
    assert_true(t.high.low == UINT64_MAX && t.high.high == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_text),     cmocka_unit_test(text_of_elements),
        cmocka_unit_test(decoded_to_doubles), cmocka_unit_test(doubles_to_integers),
        cmocka_unit_test(casts_to_floats),    cmocka_unit_test(sums_and_differences),
        cmocka_unit_test(tallied_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
