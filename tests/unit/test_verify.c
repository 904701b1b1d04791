/* SPDX-License-Identifier: MIT */
/* Verifying: digests, rules on data, counts of values, and errors that end it. */
#include "../support/encoded.h"
#include "../support/fake.h"
#include "../support/little.h"
#include "base/digest.h"

#include <math.h>

struct told {
    unsigned problems, values;
    tnf_status code;
    uint64_t offset;
    char message[240], name[64];
    tnf_value_counts counts;
};

static void on_problem(void *ctx, const tnf_problem *p)
{
    struct told *t = ctx;
    t->problems++;
    t->code = p->code;
    t->offset = p->offset;
    snprintf(t->message, sizeof t->message, "%s", p->message);
    snprintf(t->name, sizeof t->name, "%s", p->object ? p->object->name.p : "");
}

static void on_values(void *ctx, const tnf_object *o, const tnf_value_counts *v)
{
    struct told *t = ctx;
    (void)o;
    t->values++;
    t->counts = *v;
}

static tnf_status verify_fake(struct fake *f, bool values, struct told *t, tnf_verify_result *r,
                              tnf_error *e)
{
    *t = (struct told) { 0 };
    f->file->info.payload = 0;
    for (size_t i = 0; i < f->file->catalog.n; i++)
        f->file->info.payload += f->file->catalog.objects[i].parts[0].nbytes;
    tnf_verify_options o = { .size = sizeof o, .problem = on_problem, .ctx = t };
    o.values = values ? on_values : NULL;
    return tnf_verify(r, f->file, &o, e);
}

static void add_tensor(struct fake *f, const char *name, const char *type, uint64_t count,
                       uint64_t offset, uint64_t n, const tnf_digest *digest)
{
    tnf_error e;
    tnf_part part = { .role = "data",
                      .type = tnf_type_named(type),
                      .offset = offset,
                      .stored = n,
                      .nbytes = n,
                      .digest = digest };
    tnf_object o = { .name = { name, strlen(name) },
                     .shape = &count,
                     .rank = 1,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    assert_ok(tnf_add_object(f->r, &o, 0, &e));
}

/* The check values of "123456789", from the documents of each algorithm. */
static void checks_digests(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm, *hex;
    } known[] = {
        { "crc32", "cbf43926" },
        { "crc32c", "e3069283" },
        { "sha256", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225" },
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        tnf_error e;
        struct fake f;
        struct told t;
        tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
        uint8_t sum[32];
        size_t n = strlen(known[k].hex) / 2;
        for (size_t i = 0; i < n; i++)
            sum[i] = (uint8_t)strtoul((char[]) { known[k].hex[2 * i], known[k].hex[2 * i + 1], 0 },
                                      NULL, 16);
        tnf_digest d = { .algorithm = known[k].algorithm, .bytes = sum, .n = n };
        fake_begin(&f, "..123456789", 11, 0, false);
        add_tensor(&f, "good", "u8", 9, 2, 9, &d);
        add_tensor(&f, "plain", "u8", 9, 2, 9, NULL);
        assert_ok(verify_fake(&f, false, &t, &r, &e));
        assert_int_equal(r.checked, 2);
        assert_int_equal(r.undigested, 1);
        assert_int_equal(r.problems, 0);
        sum[n - 1] ^= 1;
        /* problems are reported, the call succeeds */
        assert_ok(verify_fake(&f, false, &t, &r, &e));
        assert_int_equal(r.problems, 1);
        assert_int_equal(t.problems, 1);
        assert_int_equal(t.code, TNF_EDIGEST);
        assert_int_equal(t.offset, 2);
        assert_string_equal(t.name, "good");
        assert_non_null(strstr(t.message, known[k].algorithm));
        fake_end(&f);
    }
}

/* Some files have digests of stored bytes, others of decoded bytes. */
static void digests_of_stored_bytes(void **state)
{
    (void)state;
    enum { N = 2500000 };
    uint8_t *plain = calloc(1, N), sums[2][32];
    struct encoded x = encoded_bytes(TNF_CODEC_ZSTD, plain, N);
    for (int of_stored = 0; of_stored < 2; of_stored++) {
        tnf_digester d;
        assert_true(tnf_digest_begin(&d, "sha256"));
        tnf_digest_update(&d, of_stored ? x.p : plain, of_stored ? x.n : N);
        tnf_digest_end(&d, sums[of_stored]);
    }
    for (int k = 0; k < 4; k++) { /* of stored or decoded bytes; right or wrong */
        tnf_error e;
        struct fake f;
        struct told t;
        tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
        tnf_digest d = { "sha256", sums[k & 1], 32, { NULL, 0 }, k & 1 };
        sums[k & 1][31] ^= (uint8_t)(k >> 1);
        fake_begin(&f, x.p, x.n, 0, false);
        uint64_t n = N;
        tnf_part part = { .role = "data",
                          .type = tnf_type_of(TNF_U8),
                          .stored = x.n,
                          .nbytes = N,
                          .digest = &d,
                          .payload = TNF_ENCODED,
                          .codec = TNF_CODEC_ZSTD };
        tnf_object o = { .name = { "z", 1 },
                         .shape = &n,
                         .rank = 1,
                         .parts = &part,
                         .nparts = 1,
                         .layout = &tnf_layout_dense };
        assert_ok(tnf_add_object(f.r, &o, 0, &e));
        assert_ok(verify_fake(&f, false, &t, &r, &e));
        assert_int_equal(r.problems, k >> 1);
        assert_int_equal(r.undigested, 0);
        if (k >> 1)
            assert_int_equal(t.code, TNF_EDIGEST);
        fake_end(&f);
    }
    free(plain);
    free(x.p);
}

static void digests_that_cannot_be_checked(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    static const uint8_t sum[32];
    tnf_digest unknown = { .algorithm = "md6", .bytes = sum, .n = 16 };
    tnf_digest short_one = { .algorithm = "sha256", .bytes = sum, .n = 16 };
    fake_begin(&f, "abcdefgh", 8, 0, false);
    add_tensor(&f, "a", "u8", 4, 0, 4, &unknown);
    add_tensor(&f, "b", "u8", 4, 4, 4, &short_one);
    assert_ok(verify_fake(&f, false, &t, &r, &e));
    assert_int_equal(r.undigested, 2);
    assert_int_equal(r.problems, 1); /* its length does not match its algorithm, so it is wrong */
    assert_int_equal(t.code, TNF_EDIGEST);
    assert_string_equal(t.name, "b");
    fake_end(&f);
}

static void bools_are_checked(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    fake_begin(&f, "\0\1\1\0\2\1", 6, 0, false);
    add_tensor(&f, "fine", "bool", 4, 0, 4, NULL);
    add_tensor(&f, "odd", "bool", 4, 2, 4, NULL);
    assert_ok(verify_fake(&f, false, &t, &r, &e));
    assert_int_equal(r.problems, 1);
    assert_int_equal(t.code, TNF_EFORMAT);
    assert_int_equal(t.offset, 4);
    assert_string_equal(t.name, "odd");
    fake_end(&f);
}

static void counting_values(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    float v[] = { 1.5f, -2.0f, 0.0f, -0.0f, NAN, INFINITY, -INFINITY, 3.0f };
    from_little(v, 4, 8);
    fake_begin(&f, v, sizeof v, 0, false);
    add_tensor(&f, "v", "f32", 8, 0, 32, NULL);
    assert_ok(verify_fake(&f, true, &t, &r, &e));
    assert_int_equal(t.values, 1);
    assert_int_equal(t.counts.elements, 8);
    assert_int_equal(t.counts.nan, 1);
    assert_int_equal(t.counts.inf, 2);
    assert_int_equal(t.counts.zero, 2);
    assert_true(t.counts.min == -2.0 && t.counts.max == 3.0);
    fake_end(&f);
    float bad[] = { NAN, INFINITY }; /* no finite value, so both are 0 */
    from_little(bad, 4, 2);
    fake_begin(&f, bad, sizeof bad, 0, false);
    add_tensor(&f, "v", "f32", 2, 0, 8, NULL);
    assert_ok(verify_fake(&f, true, &t, &r, &e));
    assert_true(t.counts.min == 0.0 && t.counts.max == 0.0);
    fake_end(&f);
    fake_begin(&f, v, sizeof v, 0, false); /* both halves of complex numbers count */
    add_tensor(&f, "v", "c64", 4, 0, 32, NULL);
    assert_ok(verify_fake(&f, true, &t, &r, &e));
    assert_int_equal(t.counts.elements, 8);
    fake_end(&f);
    fake_begin(&f, "\x10\x32\x04", 3, 0, false); /* five of f4: the unused bits do not count */
    add_tensor(&f, "v", "f4_e2m1", 5, 0, 3, NULL);
    assert_ok(verify_fake(&f, true, &t, &r, &e));
    assert_int_equal(t.counts.elements, 5);
    assert_int_equal(t.counts.zero, 1);
    fake_end(&f);
}

/* Blocks do not end with an element: six bits, megabytes of them. */
static void across_blocks(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    size_t n = (3 << 20) + 3;
    uint8_t *bytes = calloc(1, n);
    bytes[n - 1] = 0x7c; /* the last element: 011111 */
    fake_begin(&f, bytes, n, 0, false);
    add_tensor(&f, "v", "f6_e2m3", n / 3 * 4, 0, n, NULL);
    assert_ok(verify_fake(&f, true, &t, &r, &e));
    assert_int_equal(t.counts.elements, n / 3 * 4);
    assert_int_equal(t.counts.zero, n / 3 * 4 - 1);
    assert_true(t.counts.max == 7.5);
    fake_end(&f);
    free(bytes);
}

/* A tensor that can be listed but not read is a problem. */
static void unreadable_is_a_problem(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    fake_begin(&f, "abc", 3, 0, true);
    assert_ok(fake_add(&f, "there", 0, 3, &e));
    assert_ok(fake_add(&f, "gone", 2, 5, &e));
    assert_ok(tnf_check_ranges(f.file, &e));
    assert_ok(verify_fake(&f, false, &t, &r, &e));
    assert_int_equal(r.checked, 2);
    assert_int_equal(r.problems, 1);
    assert_string_equal(t.name, "gone");
    fake_end(&f);
}

static void layouts_check_their_data(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    uint64_t file[] = { 0, 3, 2, 5, 0x6564636261 }; /* the offsets go back */
    fake_begin(&f, file, sizeof file, 0, false);
    uint64_t count = 3;
    tnf_part parts[] = {
        { .role = "offsets", .type = tnf_type_of(TNF_U64), .stored = 32, .nbytes = 32 },
        { .role = "bytes", .type = tnf_type_of(TNF_U8), .offset = 32, .stored = 5, .nbytes = 5 }
    };
    tnf_object o = { .name = { "words", 5 },
                     .shape = &count,
                     .rank = 1,
                     .parts = parts,
                     .nparts = 2,
                     .layout = tnf_layout_named("strings/1", 9) };
    assert_ok(tnf_add_object(f.r, &o, 9, &e));
    assert_ok(verify_fake(&f, false, &t, &r, &e));
    assert_int_equal(r.checked, 2);
    assert_int_equal(r.problems, 1);
    assert_int_equal(t.code, TNF_EFORMAT);
    assert_int_equal(t.offset, 16);
    fake_end(&f);
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done <= total);
    return false;
}

static void what_stops_it(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    struct told t;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    static const uint8_t sum[4];
    tnf_digest d = { .algorithm = "crc32", .bytes = sum, .n = 4 };
    fake_begin(&f, "abc", 3, 0, false);
    add_tensor(&f, "a", "u8", 3, 0, 3, &d);
    f.file->info.payload = 3;
    tnf_verify_options o = { .size = sizeof o, .progress = stop_at_once };
    assert_fails(tnf_verify(&r, f.file, &o, &e), TNF_ECANCELLED);
    f.log.fail_at = 1;
    assert_fails(verify_fake(&f, false, &t, &r, &e), TNF_ENOMEM);
    f.log.fail_at = 0;
    assert_ok(tnf_verify(&r, f.file, NULL, &e)); /* no callback is needed */
    assert_int_equal(r.problems, 1);
    fake_end(&f);
}

/* Many tensors, some of them damaged: reported in the order of the file, with any number of
 * threads, and under the format's own name for the problem. */
struct heard {
    size_t n;
    int numbers[64];
    const char *rules[64];
    uint64_t done;
};

static void hear_problem(void *ctx, const tnf_problem *p)
{
    struct heard *h = ctx;
    h->rules[h->n] = p->rule;
    h->numbers[h->n++] = (int)strtol(p->object->name.p, NULL, 10);
}

static bool hear_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct heard *h = ctx;
    assert_true(done > h->done && done <= total);
    h->done = done;
    return true;
}

static void on_many_threads(void **state)
{
    (void)state;
    enum { N = 40, SIZE = 300000 };
    static const tnf_rule_names names = { "Digest", "Encoding", "Data" };
    tnf_error e;
    struct fake f;
    uint8_t *bytes = calloc(1, (size_t)N * SIZE), sum[4], wrong[4] = { 1, 2, 3, 4 };
    tnf_digest right = { "crc32c", sum, 4, { NULL, 0 }, true };
    tnf_digest bad = { "crc32c", wrong, 4, { NULL, 0 }, false };
    tnf_digester d;
    assert_true(tnf_digest_begin(&d, "crc32c"));
    tnf_digest_update(&d, bytes, SIZE);
    tnf_digest_end(&d, sum);
    fake_begin(&f, bytes, (size_t)N * SIZE, 0, false);
    f.format.rule_names = &names;
    for (int i = 0; i < N; i++) { /* 7, 14, 21 … have a wrong digest, 33 is not a valid bool */
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        if (i == 33)
            bytes[(size_t)i * SIZE] = 2;
        add_tensor(&f, name, i == 33 ? "bool" : "u8", i % 7 ? SIZE : SIZE - (size_t)i,
                   (uint64_t)i * SIZE, i % 7 ? SIZE : SIZE - (size_t)i,
                   i == 33 || i == 5 ? NULL
                   : i % 7           ? &right
                                     : &bad);
    }
    f.file->info.payload = 0;
    for (int i = 0; i < N; i++)
        f.file->info.payload += f.file->catalog.objects[i].parts[0].nbytes;
    for (unsigned threads = 0; threads < 5; threads++) {
        struct heard h = { 0 };
        tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
        tnf_verify_options o = { .size = sizeof o,
                                 .problem = hear_problem,
                                 .progress = hear_progress };
        o.ctx = &h;
        o.threads = threads;
        assert_ok(tnf_verify(&r, f.file, &o, &e));
        assert_int_equal(h.n, 7);
        assert_int_equal(r.problems, 7);
        assert_int_equal(r.checked, N);
        assert_int_equal(r.undigested, 2);
        assert_int_equal(h.done, f.file->info.payload); /* those without a digest count, too */
        for (size_t i = 0; i < 7; i++) {
            static const int want[] = { 0, 7, 14, 21, 28, 33, 35 };
            assert_int_equal(h.numbers[i], want[i]);
            assert_string_equal(h.rules[i], want[i] == 33 ? "Data" : "Digest");
        }
        o.canonical = true; /* this format does not support it */
        assert_fails(tnf_verify(&r, f.file, &o, &e), TNF_EUNSUPPORTED);
    }
    fake_end(&f);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_digests),
        cmocka_unit_test(digests_of_stored_bytes),
        cmocka_unit_test(digests_that_cannot_be_checked),
        cmocka_unit_test(bools_are_checked),
        cmocka_unit_test(counting_values),
        cmocka_unit_test(across_blocks),
        cmocka_unit_test(unreadable_is_a_problem),
        cmocka_unit_test(layouts_check_their_data),
        cmocka_unit_test(what_stops_it),
        cmocka_unit_test(on_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
