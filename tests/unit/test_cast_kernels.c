/* SPDX-License-Identifier: MIT */
/* Casts by every instruction set of this machine are compared with the slow way: each number by
 * tnf_type_decode() and tnf_narrow_bits(). All numbers of types of up to 16 bits are tested. For
 * f32, f64 and large integers, the limits of every target are tested (values, midpoints and their
 * neighbours), and a million random numbers, or as many as TENFOLD_CASTS says. */
#include "../support/unit.h"
#include "base/bytes.h"
#include "kernels/cast.h"
#include "kernels/narrow.h"

#include <fenv.h>
#include <math.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#define MOST 40000u /* numbers at a time */

static const char *const targets[] = { "f64",       "f32",     "f16",         "bf16",
                                       "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz" };
#define TARGETS (sizeof targets / sizeof *targets)

static uint64_t state_of_chance = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
    state_of_chance ^= state_of_chance << 13;
    state_of_chance ^= state_of_chance >> 7;
    state_of_chance ^= state_of_chance << 17;
    return state_of_chance;
}

static size_t bytes_of(const char *id)
{
    return tnf_type_named(id)->bits / 8;
}

/* An integer of 64 bits becomes a double that is rounded to odd, so that it is rounded only
 * once. */
static double odd_double(const char *from, const uint8_t *p)
{
    uint64_t v = tnf_le64(p);
    bool minus = from[0] == 'i' && v >> 63;
    uint64_t m = minus ? 0 - v : v;
    double d = (double)(m >> 32) * 0x1p32; /* exact; the next one, too */
    double low = (double)(m & 0xffffffff), sum = d + low;
    double rest = low - (sum - d);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (rest != 0 && bits % 2 == 0)
        bits = rest < 0 ? bits - 1 : bits + 1;
    memcpy(&sum, &bits, sizeof bits);
    return minus ? -sum : sum;
}

static void slow_cast(uint8_t *out, const char *from, const char *to, const uint8_t *in, size_t n)
{
    const tnf_narrow *narrow = tnf_narrow_of(to);
    const tnf_type *type = tnf_type_named(from);
    size_t width = bytes_of(to);
    bool large = narrow && (strcmp(from, "i64") == 0 || strcmp(from, "u64") == 0);
    for (size_t i = 0; i < n; i++) {
        double x;
        uint64_t bits;
        assert_true(tnf_type_decode(&x, type, in, i, 1));
        if (large)
            x = odd_double(from, in + 8 * i);
        memcpy(&bits, &x, sizeof bits);
        if (narrow)
            bits = tnf_narrow_bits(narrow, x);
        for (size_t k = 0; k < width; k++)
            out[i * width + k] = (uint8_t)(bits >> 8 * k);
    }
}

/* Casts n numbers to every target, by every set, at odd addresses; no byte beside them may
 * change. */
static void all_targets(const char *from, const uint8_t *in, size_t n)
{
    size_t width = bytes_of(from);
    uint8_t *odd = malloc(n * width + 1), *want = malloc(n * 8), *got = malloc(n * 8 + 2);
    const tnf_cast_set *set;
    assert_true(odd && want && got);
    memcpy(odd + 1, in, n * width);
    for (size_t t = 0; t < TARGETS; t++) {
        size_t bytes = n * bytes_of(targets[t]);
        if (strcmp(from, targets[t]) == 0)
            memcpy(want, in, bytes);
        else
            slow_cast(want, from, targets[t], in, n);
        for (size_t s = 0; (set = tnf_cast_set_at(s)); s++) {
            tnf_cast_fn *cast = tnf_cast_by(set, from, targets[t]);
            assert_non_null(cast);
            got[0] = got[bytes + 1] = 0xa5;
            cast(got + 1, odd + 1, n);
            assert_int_equal(got[0], 0xa5);
            assert_int_equal(got[bytes + 1], 0xa5);
            for (size_t i = 0; i < bytes; i++)
                if (got[1 + i] != want[i])
                    fail_msg("%s: element %zu of %s to %s, of byte %02x first: byte %zu is %02x, "
                             "not %02x",
                             set->name, i / bytes_of(targets[t]), from, targets[t],
                             in[i / bytes_of(targets[t]) * width], i % bytes_of(targets[t]),
                             got[1 + i], want[i]);
        }
    }
    free(odd);
    free(want);
    free(got);
}

static void all_small_ones(void **state)
{
    (void)state;
    static const char *const two[] = { "f16", "bf16", "i16", "u16" };
    static const char *const one[] = { "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz",
                                       "f8_e8m0",   "i8",      "u8",          "bool" };
    uint8_t *p = malloc((size_t)65536 * 2);
    for (uint32_t v = 0; v < 65536; v++)
        tnf_put_le16(p + 2 * v, (uint16_t)v);
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        all_targets(two[i], p, 65536);
    for (uint32_t v = 0; v < 5000; v++) /* few and many use different code */
        p[v] = (uint8_t)v;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        all_targets(one[i], p, 256);
        all_targets(one[i], p, 5000);
    }
    free(p);
}

/* ----------------------------------------------------------------- limits */

static double as_double(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static float as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

struct edges {
    uint8_t f64[MOST * 8], f32[MOST * 4];
    size_t n64, n32;
};

static void check_edges(struct edges *e)
{
    all_targets("f64", e->f64, e->n64);
    all_targets("f32", e->f32, e->n32);
    e->n64 = e->n32 = 0;
}

static void add_float(struct edges *e, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (int by = -1; by <= 1; by++)
        for (uint32_t sign = 0; sign < 2; sign++)
            tnf_put_le32(e->f32 + 4 * e->n32++, (bits + (uint32_t)by) ^ sign << 31);
}

static void add_edge(struct edges *e, double x)
{
    uint64_t bits;
    if (e->n64 + 6 > MOST || e->n32 + 6 > MOST)
        check_edges(e);
    memcpy(&bits, &x, sizeof bits);
    for (int by = -1; by <= 1; by++)
        for (uint64_t sign = 0; sign < 2; sign++)
            tnf_put_le64(e->f64 + 8 * e->n64++, (bits + (uint64_t)(int64_t)by) ^ sign << 63);
    add_float(e, (float)x);
}

/* Every number of a small type, the middle between it and the next, and numbers beyond the
 * largest. */
static void edges_of_types(void **state)
{
    (void)state;
    struct edges *e = calloc(1, sizeof *e);
    for (size_t t = 2; t < TARGETS; t++) {
        const tnf_narrow *to = tnf_narrow_of(targets[t]);
        const tnf_type *type = tnf_type_named(targets[t]);
        double low, high;
        for (uint32_t v = 0; v < to->largest; v++) {
            uint8_t here[2] = { (uint8_t)v, (uint8_t)(v >> 8) };
            uint8_t next[2] = { (uint8_t)(v + 1), (uint8_t)((v + 1) >> 8) };
            tnf_type_decode(&low, type, here, 0, 1);
            tnf_type_decode(&high, type, next, 0, 1);
            add_edge(e, low);
            add_edge(e, low + (high - low) / 2);
        }
        add_edge(e, high);
        add_edge(e, high + (high - low) / 2);
        add_edge(e, high + (high - low));
    }
    check_edges(e);
    free(e);
}

static void edges_of_floats(void **state)
{
    (void)state;
    static const uint32_t odd[] = { 0,          1,          2,          0x007fffff, 0x00800000,
                                    0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fa00000, 0x7fbfffff,
                                    0x7fc00000, 0x7fc12345, 0x7fffffff, 0x3f800000 };
    struct edges *e = calloc(1, sizeof *e);
    for (int k = -1080; k < 1024; k++) {
        add_edge(e, ldexp(1, k));
        add_edge(e, ldexp(1.5, k));
        add_edge(e, ldexp(1 + 0x1p-24, k)); /* the middle of two f32; not a middle */
        add_edge(e, ldexp(1 + 0x1p-24 + 0x1p-52, k));
        add_edge(e, ldexp(2 - 0x1p-25, k));
        add_edge(e, ldexp(2 - 0x1p-52, k));
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        add_edge(e, (double)as_float(odd[i]));
        add_float(e, as_float(odd[i]));
    }
    for (uint64_t k = 0; k < 52; k++) { /* NaNs of all kinds */
        add_edge(e, as_double((uint64_t)0x7ff << 52 | (uint64_t)1 << k));
        add_edge(e, as_double((uint64_t)0x7ff8 << 48 | (uint64_t)1 << k));
    }
    for (uint32_t k = 0; k < 23; k++)
        for (uint32_t sign = 0; sign < 2; sign++)
            tnf_put_le32(e->f32 + 4 * e->n32++, sign << 31 | 0x7f800000 | (uint32_t)1 << k);
    check_edges(e);
    free(e);
}

static void edges_of_integers(void **state)
{
    (void)state;
    static const char *const ids[] = { "i32", "u32", "i64", "u64" };
    uint8_t *p = malloc(MOST * 8);
    for (size_t t = 0; t < 4; t++) {
        size_t n = 0, width = bytes_of(ids[t]);
        for (unsigned high = 0; high < 64; high++)
            for (unsigned low = 0; low <= high; low++)
                for (int by = -1; by <= 1; by++)
                    for (int sign = 0; sign < 2; sign++) {
                        uint64_t v = ((uint64_t)1 << high | (uint64_t)1 << low) + (uint64_t)by;
                        v = sign ? 0 - v : v;
                        for (size_t k = 0; k < width; k++)
                            p[n * width + k] = (uint8_t)(v >> 8 * k);
                        n++;
                    }
        assert_true(n <= MOST);
        all_targets(ids[t], p, n);
    }
    free(p);
}

/* --------------------------------------------------------- random numbers */

static void at_random(void **state)
{
    (void)state;
    static const char *const ids[] = { "f32", "f64", "i32", "u32", "i64", "u64" };
    const char *asked = getenv("TENFOLD_CASTS");
    uint64_t all = asked ? strtoull(asked, NULL, 10) : 1000000;
    uint8_t *p = malloc(MOST * 8);
    for (uint64_t done = 0; done < all; done += MOST)
        for (size_t t = 0; t < sizeof ids / sizeof *ids; t++) {
            size_t width = bytes_of(ids[t]), n = MOST - next_random() % 40;
            if (t >= 2 && done % ((uint64_t)MOST * 16) != 0)
                continue;
            for (size_t i = 0; i < n; i++) {
                uint64_t v = next_random();
                if (t == 0 && i % 2) /* in the range of the small types */
                    v = (v & 0x807fffff) | (uint64_t)(127 - 32 + i / 2 % 64) << 23;
                if (t == 1 && i % 4)
                    v = (v & 0x800fffffffffffffu) | (uint64_t)(1023 - 160 + i / 2 % 320) << 52;
                if (t == 1 && i % 8 == 5)
                    v &= ~(uint64_t)0xfffffffff;
                for (size_t k = 0; k < width; k++)
                    p[i * width + k] = (uint8_t)(v >> 8 * k);
            }
            all_targets(ids[t], p, n);
        }
    free(p);
}

/* ------------------------------------------------------------------ others */

/* i4, u4, i2, u2: by hand, with an incomplete last byte. */
static void packed_integers(void **state)
{
    (void)state;
    static const uint8_t in[2] = { 0x8f, 0xe1 };
    static const struct {
        const char *id;
        size_t n;
        float want[8];
    } cases[] = {
        { "i4", 3, { -1, -8, 1 } },
        { "u4", 3, { 15, 8, 1 } },
        { "i2", 7, { -1, -1, 0, -2, 1, 0, -2 } },
        { "u2", 7, { 3, 3, 0, 2, 1, 0, 2 } },
    };
    const tnf_cast_set *set;
    for (size_t s = 0; (set = tnf_cast_set_at(s)); s++)
        for (size_t c = 0; c < 4; c++) {
            uint8_t f32[32] = { 0 }, bf16[16] = { 0 };
            tnf_cast_by(set, cases[c].id, "f32")(f32, in, cases[c].n);
            tnf_cast_by(set, cases[c].id, "bf16")(bf16, in, cases[c].n);
            for (size_t i = 0; i < 8; i++) {
                uint32_t bits;
                memcpy(&bits, &cases[c].want[i], sizeof bits);
                assert_int_equal(tnf_le32(f32 + 4 * i), bits);
                assert_int_equal(tnf_le16(bf16 + 2 * i), bits >> 16);
            }
        }
}

/* Many packed ones: pieces follow each other without a gap. */
static void packed_pieces(void **state)
{
    (void)state;
    enum { N = 5003 };
    uint8_t in[N / 2 + 1], out[4 * N];
    const tnf_cast_set *set;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)next_random();
    for (size_t s = 0; (set = tnf_cast_set_at(s)); s++) {
        tnf_cast_by(set, "u4", "f16")(out, in, N);
        for (size_t i = 0; i < N; i++) {
            double x;
            tnf_type_decode(&x, tnf_type_of(TNF_F16), out, i, 1);
            assert_true(x == (double)(in[i / 2] >> 4 * (i % 2) & 15));
        }
    }
}

static void no_such_pair(void **state)
{
    (void)state;
    const tnf_type *f32 = tnf_type_of(TNF_F32);
    assert_null(tnf_cast_of(f32, tnf_type_named("i8")));
    assert_null(tnf_cast_of(f32, tnf_type_named("f8_e8m0")));
    assert_null(tnf_cast_of(tnf_type_named("c64"), f32));
    assert_null(tnf_cast_of(tnf_type_named("f4_e2m1"), f32));
    assert_non_null(tnf_cast_of(f32, f32));
    tnf_cast_of(f32, tnf_type_of(TNF_F16))(NULL, NULL, 0);
    tnf_cast_of(f32, f32)(NULL, NULL, 0);
}

/* The result does not depend on the program's rounding mode, nor on flushing subnormals to 0.
 * Afterwards the program's mode is restored. */
static void in_any_mode(void **state)
{
    (void)state;
    static const double in[] = { 1 + 0x1p-30, -1 - 0x1p-30, 0x1.8p-140, 0x1p-149, 0x1p-20 };
    uint8_t bytes[sizeof in], want[sizeof in], got[sizeof in];
    const tnf_cast_set *set;
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        uint64_t bits;
        memcpy(&bits, &in[i], sizeof bits);
        tnf_put_le64(bytes + 8 * i, bits);
    }
    for (size_t s = 0; (set = tnf_cast_set_at(s)); s++)
        for (size_t t = 1; t < TARGETS; t++) {
            tnf_cast_fn *cast = tnf_cast_by(set, "f64", targets[t]);
            slow_cast(want, "f64", targets[t], bytes, 5);
#if defined(__SSE2__)
            unsigned mode = _mm_getcsr();
            _mm_setcsr((mode & ~0x6000u) | 0x8040 | 0x4000); /* upwards, flush, inputs too */
            cast(got, bytes, 5);
            assert_int_equal(_mm_getcsr() & 0xe040, 0xc040);
            _mm_setcsr(mode);
#elif defined(__aarch64__)
            fesetround(FE_UPWARD);
            cast(got, bytes, 5);
            assert_int_equal(fegetround(), FE_UPWARD);
            fesetround(FE_TONEAREST);
#else
            cast(got, bytes, 5);
#endif
            assert_memory_equal(got, want, 5 * bytes_of(targets[t]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_small_ones),  cmocka_unit_test(edges_of_types),
        cmocka_unit_test(edges_of_floats), cmocka_unit_test(edges_of_integers),
        cmocka_unit_test(at_random),       cmocka_unit_test(packed_integers),
        cmocka_unit_test(packed_pieces),   cmocka_unit_test(no_such_pair),
        cmocka_unit_test(in_any_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
