/* SPDX-License-Identifier: MIT */
/* Statistics of files: every type against its decoder, pieces and threads, batches, faults, the
 * n-th allocation. */
#include "../support/encoded.h"
#include "../support/fake.h"
#include "../support/flush.h"
#include "../support/little.h"
#include "../support/memory.h"
#include "base/int128.h"
#include "core/look/values.h"
#include <tenfold/build.h>
#include <tenfold/stat.h>

#include <math.h>

struct told {
    unsigned tensors, problems, stop_at, steps;
    tnf_stat stat;
    tnf_value_counts counts;
    uint64_t bins[1024];
    char names[256];
};

static void on_tensor(void *ctx, const tnf_stat *s)
{
    struct told *t = ctx;
    t->tensors++;
    t->stat = *s;
    t->counts = s->counts ? *s->counts : (tnf_value_counts) { 0 };
    if (s->nbins)
        memcpy(t->bins, s->bins, s->nbins * sizeof *s->bins);
    size_t n = strlen(t->names);
    snprintf(t->names + n, sizeof t->names - n, "%s ", s->object->name.p);
}

static void on_problem(void *ctx, const tnf_object *o, const tnf_error *e)
{
    (void)o;
    assert_true(e->message[0] != 0);
    ((struct told *)ctx)->problems++;
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct told *t = ctx;
    assert_true(done <= total);
    return ++t->steps != t->stop_at;
}

static tnf_stat_options telling_options(struct told *t)
{
    *t = (struct told) { 0 };
    tnf_stat_options o = { .size = sizeof o, .tensor = on_tensor, .ctx = t };
    return o;
}

/* A file of one tensor, in memory that stays. */
static tnf_file *file_of(const char *type, uint64_t n, const void *data, tnf_sink **sink,
                         const tnf_open_options *how)
{
    tnf_error e;
    tnf_builder *b;
    tnf_file *file;
    tnf_source *source;
    tnf_save_options save = { .size = sizeof save, .format = "ztensor2" };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(
        b, "x", tnf_type_named(type), 1, &n,
        little_bytes(tnf_type_named(type), data, n * tnf_type_named(type)->bits / 8), &e));
    assert_ok(tnf_sink_memory(sink, &e));
    assert_ok(tnf_save_sink(b, *sink, &save, &e));
    tnf_builder_free(b);
    assert_ok(tnf_source_memory(&source, tnf_sink_bytes(*sink).p, tnf_sink_bytes(*sink).n, &e));
    assert_ok(tnf_open_source(&file, source, how, &e));
    return file;
}

/* All 256 bytes, for every type: counted one by one from the results of tnf_type_decode(). */
static void every_type(void **state)
{
    (void)state;
    uint8_t data[4096];
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < sizeof data; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = i < 256 ? (uint8_t)i : (uint8_t)(x >> 32);
    }
    const tnf_type *type;
    for (size_t k = 0; (type = tnf_type_at(k)); k++) {
        static double d[65536];
        tnf_error e;
        tnf_sink *sink;
        struct told t;
        uint64_t n = sizeof data * 8 / type->bits - (type->bits < 8 ? 3 : 0);
        size_t per = type->number == TNF_NUMBER_COMPLEX ? 2 : 1;
        n = n * per > 32768 ? 32768 : n;
        if (!strcmp(type->id, "bool"))
            for (size_t i = 0; i < sizeof data; i++)
                data[i] &= 1;
        tnf_file *file = file_of(type->id, n, data, &sink, NULL);
        tnf_stat_options o = telling_options(&t);
        assert_ok(tnf_stat_file(file, &o, &e));
        assert_int_equal(t.tensors, 1);
        assert_true(t.stat.numbers);
        assert_true(tnf_type_decode(d, type, little_bytes(type, data, sizeof data), 0, (size_t)n));
        uint64_t nan = 0, inf = 0, zero = 0;
        double min = INFINITY, max = -INFINITY;
        for (size_t i = 0; i < n * per; i++) {
            nan += isnan(d[i]) != 0;
            inf += isinf(d[i]) != 0;
            zero += d[i] == 0;
            min = isfinite(d[i]) && d[i] < min ? d[i] : min;
            max = isfinite(d[i]) && d[i] > max ? d[i] : max;
        }
        const tnf_value_counts *c = &t.counts;
        if (c->elements != n * per || c->nan != nan || c->inf != inf || c->zero != zero ||
            c->min != min || c->max != max)
            fail_msg("%s: %llu values, %llu NaN, %llu infinite, %llu zero, %g to %g", type->id,
                     (unsigned long long)c->elements, (unsigned long long)c->nan,
                     (unsigned long long)c->inf, (unsigned long long)c->zero, c->min, c->max);
        uint64_t binned = 0;
        for (size_t i = 0; i < 32; i++)
            binned += t.bins[i];
        assert_int_equal(binned, n * per - nan - inf);
        tnf_close(file);
        tnf_sink_close(sink);
    }
}

static double whole_of(const tnf_type *type, uint64_t low, uint64_t upper)
{
    tnf_u128 v = { low, upper };
    return type->number == TNF_NUMBER_INT ? tnf_i128_to_f64(v) : tnf_u128_to_f64(v);
}

/* Without deviation and histogram, as verify uses them: other loops, the same definitions. The data
 * are long enough for complete vectors and a rest, and short enough to count one by one. */
static void plain_values(void **state)
{
    (void)state;
    static uint8_t data[70001];
    static double d[8 * sizeof data];
    const tnf_type *type;
    uint64_t x = 88172645463325252u;
    for (size_t k = 0; (type = tnf_type_at(k)); k++)
        for (size_t size = 241; size <= sizeof data; size = size * 17 + 11) {
            tnf_error e;
            tnf_sink *sink;
            struct told t;
            for (size_t i = 0; i < size; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                data[i] = (uint8_t)(x >> 32 & (type->number == TNF_NUMBER_BOOL ? 1 : 0xbf));
            }
            uint64_t n = size * 8 / type->bits;
            size_t per = type->number == TNF_NUMBER_COMPLEX ? 2 : 1, finite = 0;
            tnf_file *file = file_of(type->id, n, data, &sink, NULL);
            tnf_stat_options o = telling_options(&t);
            assert_ok(tnf_values_file(file, &o, true, &e));
            assert_true(tnf_type_decode(d, type, little_bytes(type, data, size), 0, (size_t)n));
            tnf_value_counts want = { .elements = n * per, .min = INFINITY, .max = -INFINITY };
            long double sum = 0;
            for (size_t i = 0; i < n * per; i++) {
                want.nan += isnan(d[i]) != 0;
                want.inf += isinf(d[i]) != 0;
                want.zero += d[i] == 0;
                if (!isfinite(d[i]))
                    continue;
                finite++;
                sum += (long double)d[i];
                want.min = d[i] < want.min ? d[i] : want.min;
                want.max = d[i] > want.max ? d[i] : want.max;
            }
            const tnf_value_counts *c = &t.counts;
            long double off = fabsl((long double)c->mean - sum / (long double)finite);
            if (c->elements != want.elements || c->nan != want.nan || c->inf != want.inf ||
                c->zero != want.zero || c->min != want.min || c->max != want.max ||
                (type->number == TNF_NUMBER_UINT &&
                 whole_of(type, c->max_integer, c->max_upper) != want.max) ||
                (type->number == TNF_NUMBER_INT &&
                 whole_of(type, c->min_integer, c->min_upper) != want.min) ||
                off > 1e-12L * fmaxl(fabsl((long double)c->min), fabsl((long double)c->max)))
                fail_msg("%s, %zu bytes: %llu NaN, %llu infinite, %llu zero, %g to %g, mean %.17g",
                         type->id, size, (unsigned long long)c->nan, (unsigned long long)c->inf,
                         (unsigned long long)c->zero, c->min, c->max, c->mean);
            tnf_close(file);
            tnf_sink_close(sink);
        }
}

/* The number of subnormals, counted by hand from the definitions of the types. */
/* The smallest and largest integers, which doubles would round, at any place, and by every way of
 * counting. */
static void exact_integers(void **state)
{
    (void)state;
    enum { N = 3000000 };
    static uint64_t x[N];
    static const struct {
        const char *type;
        uint64_t low, high, rest;
    } cases[] = { { "i64", (uint64_t)-9007199254740993, 9007199254740993, (uint64_t)-5 },
                  { "u64", 9007199254740993, UINT64_MAX - 1, (uint64_t)1 << 60 },
                  { "u64", 1, 1, 1 } };
    for (size_t k = 0; k < 3; k++)
        for (size_t at = 0; at < N; at += N / 2 - 7) {
            tnf_error e;
            tnf_sink *sink;
            struct told t;
            for (size_t i = 0; i < N; i++)
                x[i] = cases[k].rest;
            x[at] = cases[k].low;
            x[N - 1 - at] = cases[k].high;
            tnf_file *file = file_of(cases[k].type, N, x, &sink, NULL);
            for (int plain = 0; plain < 2; plain++) {
                tnf_stat_options o = telling_options(&t);
                o.threads = 3;
                assert_ok(tnf_values_file(file, &o, plain, &e));
                assert_int_equal(t.counts.min_integer, cases[k].low);
                assert_int_equal(t.counts.max_integer, cases[k].high);
            }
            tnf_close(file);
            tnf_sink_close(sink);
        }
}

/* The same for integers of 16 bytes. */
static void exact_wide_integers(void **state)
{
    (void)state;
    enum { N = 600000 };
    static uint8_t x[16 * N];
    static const struct {
        const char *type;
        tnf_u128 low, high, rest;
    } cases[] = { { "i128", { 1, (uint64_t)1 << 63 }, { UINT64_MAX - 1, INT64_MAX }, { 5, 0 } },
                  { "i128", { UINT64_MAX, UINT64_MAX }, { 0, 1 }, { UINT64_MAX, 0 } },
                  { "u128", { UINT64_MAX, 0 }, { UINT64_MAX - 1, UINT64_MAX }, { 0, 1 } },
                  { "u128", { 1, 0 }, { 1, 0 }, { 1, 0 } } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (size_t at = 0; at < N; at += N / 2 - 7) {
            tnf_error e;
            tnf_sink *sink;
            struct told t;
            for (size_t i = 0; i < N; i++)
                tnf_put_le128(x + 16 * i, cases[k].rest);
            tnf_put_le128(x + 16 * at, cases[k].low);
            tnf_put_le128(x + 16 * (N - 1 - at), cases[k].high);
            from_little(x, 16, N);
            tnf_file *file = file_of(cases[k].type, N, x, &sink, NULL);
            for (int plain = 0; plain < 2; plain++) {
                tnf_stat_options o = telling_options(&t);
                o.threads = 3;
                assert_ok(tnf_values_file(file, &o, plain, &e));
                assert_true(t.counts.min_integer == cases[k].low.low);
                assert_true(t.counts.min_upper == cases[k].low.high);
                assert_true(t.counts.max_integer == cases[k].high.low);
                assert_true(t.counts.max_upper == cases[k].high.high);
            }
            tnf_close(file);
            tnf_sink_close(sink);
        }
}

/* They are numbers in all statistics, even if the program treats them as 0. */
static void subnormals_are_numbers(void **state)
{
    (void)state;
    uint64_t data[64];
    tnf_error e;
    tnf_sink *sink;
    struct told plain, flushed;
    for (uint64_t i = 0; i < 64; i++)
        data[i] = i << 44;
    tnf_file *file = file_of("f64", 64, data, &sink, NULL);
    tnf_stat_options o = telling_options(&plain);
    assert_ok(tnf_stat_file(file, &o, &e));
    o = telling_options(&flushed);
    uint32_t mode = flush_begin();
    tnf_status status = tnf_stat_file(file, &o, &e);
    assert_true(flush_end(mode));
    assert_int_equal(status, TNF_OK);
    assert_int_equal(plain.counts.subnormal, 63);
    assert_true(plain.counts.max > 0);
    assert_memory_equal(&flushed.counts, &plain.counts, sizeof plain.counts);
    assert_memory_equal(flushed.bins, plain.bins, sizeof plain.bins);
    tnf_close(file);
    tnf_sink_close(sink);
}

static void counts_subnormals(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint64_t in_256; /* of all 256 bytes, or of the halves up to 0x00ff */
    } known[] = {
        { "f8_e4m3fn", 14 }, { "f8_e5m2", 6 },  { "f8_e4m3fnuz", 14 }, { "f8_e5m2fnuz", 6 },
        { "f8_e8m0", 0 },    { "f4_e2m1", 64 }, { "u8", 0 },           { "i8", 0 },
    };
    uint8_t data[256];
    for (size_t i = 0; i < 256; i++)
        data[i] = (uint8_t)i;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        tnf_error e;
        tnf_sink *sink;
        struct told t;
        const tnf_type *type = tnf_type_named(known[k].type);
        tnf_file *file = file_of(type->id, 2048 / type->bits, data, &sink, NULL);
        tnf_stat_options o = telling_options(&t);
        assert_ok(tnf_stat_file(file, &o, &e));
        if (t.counts.subnormal != known[k].in_256)
            fail_msg("%s: %llu subnormal, not %llu", type->id,
                     (unsigned long long)t.counts.subnormal, (unsigned long long)known[k].in_256);
        tnf_close(file);
        tnf_sink_close(sink);
    }
    uint16_t halves[2048];
    for (size_t i = 0; i < 2048; i++)
        halves[i] = (uint16_t)i; /* 0, 1023 subnormals, 1024 normal ones */
    tnf_error e;
    tnf_sink *sink;
    struct told t;
    tnf_file *file = file_of("f16", 2048, halves, &sink, NULL);
    tnf_stat_options o = telling_options(&t);
    assert_ok(tnf_stat_file(file, &o, &e));
    assert_int_equal(t.counts.subnormal, 1023);
    tnf_close(file);
    tnf_sink_close(sink);
}

/* A tensor of several pieces: the same statistics on one thread and on many, and the right ones. */
static void pieces_and_threads(void **state)
{
    (void)state;
    const size_t n = (size_t)5 << 20;
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i % 1000) - 499.5f;
    x[n - 1] = NAN;
    tnf_error e;
    tnf_sink *sink;
    struct told one, many;
    tnf_file *file = file_of("f32", n, x, &sink, NULL);
    tnf_stat_options o = telling_options(&one);
    o.threads = 1;
    assert_ok(tnf_stat_file(file, &o, &e));
    o = telling_options(&many);
    o.threads = 8;
    o.progress = on_progress;
    assert_ok(tnf_stat_file(file, &o, &e));
    assert_memory_equal(&one.counts, &many.counts, sizeof one.counts);
    assert_memory_equal(one.bins, many.bins, sizeof one.bins);
    struct told plain[2];
    for (unsigned i = 0; i < 2; i++) {
        o = telling_options(&plain[i]);
        o.threads = i ? 8 : 1;
        assert_ok(tnf_values_file(file, &o, true, &e));
    }
    assert_memory_equal(&plain[0].counts, &plain[1].counts, sizeof one.counts);
    assert_true(plain[0].counts.mean == one.counts.mean);
    assert_int_equal(one.counts.elements, n);
    assert_int_equal(one.counts.nan, 1);
    assert_true(one.counts.min == -499.5 && one.counts.max == 499.5);
    /* of 0 … 999, in complete rounds except the last 880: mean and deviation by the formulas */
    double sum = 0, squares = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    double mean = sum / (double)(n - 1);
    assert_true(fabs(one.counts.mean - mean) < 1e-9);
    assert_true(fabs(one.counts.deviation - sqrt(squares / (double)(n - 1) - mean * mean)) < 1e-9);
    o = telling_options(&many);
    o.progress = on_progress;
    many.stop_at = 2;
    assert_fails(tnf_stat_file(file, &o, &e), TNF_ECANCELLED);
    tnf_close(file);
    tnf_sink_close(sink);
    free(x);
}

static bool named_b(void *ctx, const tnf_object *o)
{
    (void)ctx;
    return o->name.p[0] == 'b';
}

/* More tensors than a batch has, in order; only some of them; the requested number of bins. */
static void batches_in_order(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    float x[2] = { 1, 3 };
    fake_begin(&f, to_little(x, 4, 2), sizeof x, 0, false);
    for (unsigned i = 0; i < 900; i++) {
        char name[16];
        uint64_t two = 2;
        snprintf(name, sizeof name, "%c%u", i % 300 == 7 ? 'b' : 'a', i);
        tnf_dense d = { .name = { name, strlen(name) },
                        .type = tnf_type_of(TNF_F32),
                        .shape = &two,
                        .rank = 1,
                        .length = 8 };
        assert_ok(tnf_add_dense(f.r, &d, &e));
    }
    tnf_stat_options o = telling_options(&t);
    assert_ok(tnf_stat_file(f.file, &o, &e));
    assert_int_equal(t.tensors, 900);
    o = telling_options(&t);
    o.wanted = named_b;
    o.bins = 2;
    assert_ok(tnf_stat_file(f.file, &o, &e));
    assert_string_equal(t.names, "b7 b307 b607 ");
    assert_int_equal(t.stat.nbins, 2);
    assert_int_equal(t.bins[0], 1);
    assert_int_equal(t.bins[1], 1);
    assert_true(t.counts.mean == 2 && t.counts.deviation == 1);
    o.bins = 1025;
    assert_fails(tnf_stat_file(f.file, &o, &e), TNF_EINVAL);
    fake_end(&f);
}

/* A tensor that cannot be read: reported, or it ends the call. */
static void faults_are_told(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    float x[2] = { 1, 3 };
    uint64_t two = 2;
    fake_begin(&f, to_little(x, 4, 2), sizeof x, 0, false);
    for (unsigned i = 0; i < 2; i++) {
        tnf_dense d = { .name = { i ? "gone" : "here", 4 },
                        .type = tnf_type_of(TNF_F32),
                        .shape = &two,
                        .rank = 1,
                        .length = 8,
                        .offset = i ? 4 : 0 };
        assert_ok(tnf_add_dense(f.r, &d, &e));
    }
    tnf_part_mutable(f.file->catalog.objects[1].parts)->flags |= TNF_PART_UNREADABLE;
    tnf_stat_options o = telling_options(&t);
    assert_fails(tnf_stat_file(f.file, &o, &e), TNF_EUNSUPPORTED);
    o.problem = on_problem;
    t = (struct told) { 0 };
    assert_ok(tnf_stat_file(f.file, &o, &e));
    assert_int_equal(t.tensors, 1);
    assert_int_equal(t.problems, 1);
    assert_string_equal(t.names, "here ");
    fake_end(&f);
}

static void out_of_memory(void **state)
{
    (void)state;
    float x[64] = { 1 };
    tnf_error e;
    struct memory_log log = { 0 };
    tnf_open_options how = { .size = sizeof how, .allocator = memory_allocator(&log) };
    tnf_sink *sink;
    tnf_file *file = file_of("f32", 64, x, &sink, &how);
    uint64_t before = log.calls, live = log.live;
    tnf_status status = TNF_ENOMEM;
    for (uint64_t n = 1; status == TNF_ENOMEM; n++) {
        struct told t;
        tnf_stat_options o = telling_options(&t);
        log.fail_at = log.calls + n;
        status = tnf_stat_file(file, &o, &e);
        assert_int_equal(log.live, live);
        assert_true(n < 100);
    }
    assert_ok(status);
    assert_true(log.calls > before);
    tnf_close(file);
    tnf_sink_close(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),         cmocka_unit_test(plain_values),
        cmocka_unit_test(counts_subnormals),  cmocka_unit_test(subnormals_are_numbers),
        cmocka_unit_test(pieces_and_threads), cmocka_unit_test(batches_in_order),
        cmocka_unit_test(faults_are_told),    cmocka_unit_test(out_of_memory),
        cmocka_unit_test(exact_integers),     cmocka_unit_test(exact_wide_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
