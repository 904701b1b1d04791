/* SPDX-License-Identifier: MIT */
/* Quantizing embeddings: the loss, the refused cases, that the result is always the same, and that
 * everything else is kept. */
#include "../support/check.h"
#include "../support/memory.h"
#include "emb_files.h"
#include "ext/emb/pq_train.h"

enum { N = 256, D = 20 };
static float uniform[N * D];
static const tnf_quantizer methods[] = { TNF_PQ, TNF_OPQ, TNF_GAUSSIAN_OPQ };

static void fill_uniform(void)
{
    uint64_t seed = 42;
    for (size_t i = 0; i < N * D; i++)
        uniform[i] = (float)((double)(next_random(&seed) >> 11) / 9007199254740992.0);
}

static bool is_built(tnf_quantizer method)
{
    return method == TNF_PQ || tnf_opq_ready(NULL) == TNF_OK;
}

static tnf_quantize_options suite_options(tnf_quantizer method)
{
    return (tnf_quantize_options) { .size = sizeof(tnf_quantize_options),
                                    .method = method,
                                    .bits = 7,
                                    .subquantizers = 10,
                                    .iterations = 10,
                                    .threads = 1 };
}

/* Quantizes, saves, opens again. */
static struct opened quantize_and_open(tnf_emb *emb, const tnf_quantize_options *o,
                                       const char *format, tnf_quantized *loss)
{
    struct opened x = { 0 };
    tnf_error e;
    tnf_builder *b;
    tnf_save_options save = { .size = sizeof save, .format = format };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_emb_quantize(loss, b, emb, o, &e));
    assert_ok(tnf_sink_memory(&x.sink, &e));
    assert_ok(tnf_save_sink(b, x.sink, &save, &e));
    tnf_builder_free(b);
    open_bytes(&x, tnf_sink_bytes(x.sink), NULL);
    return x;
}

struct distances {
    double euclidean, cosine, largest;
};

static struct distances compare_rows(const tnf_emb *a, const tnf_emb *b)
{
    const tnf_emb_info *i = tnf_emb_describe(a);
    struct distances all = { 0 };
    float x[128], y[128];
    tnf_error e;
    assert_true(i->dims <= 128 && i->rows == tnf_emb_describe(b)->rows);
    for (uint64_t r = 0; r < i->rows; r++) {
        double square = 0, dot = 0, xx = 0, yy = 0;
        assert_ok(tnf_emb_row(x, a, r, &e));
        assert_ok(tnf_emb_row(y, b, r, &e));
        for (size_t c = 0; c < i->dims; c++) {
            double off = (double)x[c] - y[c];
            square += off * off;
            dot += (double)x[c] * y[c];
            xx += (double)x[c] * x[c];
            yy += (double)y[c] * y[c];
            all.largest = fabs(off) > all.largest ? fabs(off) : all.largest;
        }
        all.euclidean += sqrt(square) / (double)i->rows;
        all.cosine += dot / sqrt(xx * yy) / (double)i->rows;
    }
    return all;
}

/* The limits of reductive's tests: 256 rows, 10 pieces, 7 bits, 10 rounds. */
static void losses_are_bounded(void **state)
{
    static const double bounds[] = { .08, .1, .12 };
    struct made m = { .rows = N, .dims = D, .values = uniform };
    (void)state;
    fill_uniform();
    struct opened x = open_made(&m, NULL);
    for (size_t i = 0; i < 3; i++)
        for (int as_is = 0; as_is < 2 && is_built(methods[i]); as_is++) {
            tnf_quantize_options o = suite_options(methods[i]);
            tnf_quantized loss = TNF_QUANTIZED_INIT;
            o.as_is = as_is;
            struct opened y = quantize_and_open(x.emb, &o, "ztensor2", &loss);
            struct distances found = compare_rows(x.emb, y.emb);
            assert_near(loss.euclidean, found.euclidean, 1e-5);
            assert_near(loss.cosine, found.cosine, 1e-5);
            /* Lengths, about 2.6, are stored separately: then the limit is for rows of length 1. */
            if (!(found.euclidean < bounds[i] * (as_is ? 1 : 2.6)))
                fail_msg("method %zu: %g", i, found.euclidean);
            const tnf_object *q = tnf_find(y.file, "embeddings");
            assert_true((tnf_object_part(q, "norms") == NULL) == as_is);
            assert_true((tnf_object_part(q, "projection") == NULL) == (methods[i] == TNF_PQ));
            close_opened(&y);
        }
    close_opened(&x);
}

/* More attempts are never worse, and more rounds almost never; another seed gives another
 * result. */
static void attempts_help(void **state)
{
    struct made m = { .rows = N, .dims = D, .values = uniform };
    tnf_quantized one = TNF_QUANTIZED_INIT, best = one, other = one;
    (void)state;
    fill_uniform();
    struct opened x = open_made(&m, NULL);
    tnf_quantize_options o = suite_options(TNF_PQ);
    o.bits = 4;
    struct opened a = quantize_and_open(x.emb, &o, "ztensor2", &one);
    o.attempts = 5;
    struct opened b = quantize_and_open(x.emb, &o, "ztensor2", &best);
    o.attempts = 1;
    o.seed = 9;
    struct opened c = quantize_and_open(x.emb, &o, "ztensor2", &other);
    assert_true(best.euclidean < one.euclidean);
    assert_true(other.euclidean != one.euclidean);
    close_opened(&a);
    close_opened(&b);
    close_opened(&c);
    close_opened(&x);
}

/* ------------------------------------------------------------- always the same */

/* Rows in several groups, which are rotated in several pieces. */
static void same_bits(void **state)
{
    enum { ROWS = 5000, DIMS = 18 };
    static float values[ROWS * DIMS];
    uint64_t seed = 5;
    tnf_str first = { 0 };
    const tnf_kernels *k;
    (void)state;
    for (size_t i = 0; i < (size_t)ROWS * DIMS; i++)
        values[i] = (float)((double)(next_random(&seed) >> 11) / 9007199254740992.0) - .3F;
    struct made m = { .rows = ROWS, .dims = DIMS, .values = values };
    for (size_t method = 0; method < 3; method++) {
        struct opened kept = { 0 };
        for (size_t i = 0; (k = tnf_kernels_at(i)) && is_built(methods[method]); i++)
            for (unsigned threads = 1; threads < 6; threads += 2) {
                tnf_emb_options how = { .size = sizeof how, .kernel = k->name };
                struct opened x = open_made(&m, &how);
                tnf_quantize_options o = suite_options(methods[method]);
                o.iterations = 2;
                o.bits = 5;
                o.subquantizers = 6;
                o.attempts = 2;
                o.threads = threads;
                struct opened y = quantize_and_open(x.emb, &o, "finalfusion", NULL);
                tnf_str bytes = tnf_sink_bytes(y.sink);
                close_opened(&x);
                if (!kept.sink) {
                    kept = y;
                    first = bytes;
                    continue;
                }
                assert_int_equal(bytes.n, first.n);
                assert_memory_equal(bytes.p, first.p, first.n);
                close_opened(&y);
            }
        if (kept.sink)
            close_opened(&kept);
    }
}

/* ----------------------------------------------------------- what else is kept */

/* Words, norms, subwords; rows of 0; types; the usual settings. */
static void whole_files(void **state)
{
    enum { WORDS = 3, BUCKETS = 16, ROWS = WORDS + BUCKETS, DIMS = 6 };
    static double wide[ROWS * DIMS];
    static float floats[ROWS * DIMS];
    static int8_t bytes[ROWS * DIMS];
    static const tnf_dtype types[] = { TNF_F32, TNF_F64, TNF_I8 };
    const void *values[] = { floats, wide, bytes };
    static const float norms[] = { 1.5F, 2, 3 };
    float row[DIMS];
    tnf_error e;
    (void)state;
    fill_uniform();
    for (size_t i = 0; i < (size_t)ROWS * DIMS; i++) {
        bool zero = i / DIMS == 1 || i / DIMS == 7;
        bytes[i] = zero ? 0 : (int8_t)(100 * uniform[i] - 50);
        wide[i] = floats[i] = bytes[i];
    }
    double first = 0;
    for (size_t kind = 0; kind < 3; kind++) {
        struct made m = { .words = "one|twofold|three",
                          .rows = ROWS,
                          .dims = DIMS,
                          .type = tnf_type_of(types[kind]),
                          .values = values[kind],
                          .norms = norms,
                          .vocab = "bucket",
                          .min_n = 3,
                          .max_n = 6,
                          .buckets = BUCKETS };
        tnf_quantized loss = TNF_QUANTIZED_INIT;
        struct opened x = open_made(&m, NULL);
        struct opened y = quantize_and_open(x.emb, NULL, "finalfusion", &loss);
        const tnf_emb_info *i = tnf_emb_describe(y.emb);
        assert_true(i->quantized && i->words == WORDS && i->rows == ROWS && i->has_norms);
        assert_true(i->subwords == TNF_SUBWORDS_BUCKET && i->buckets == BUCKETS);
        assert_int_equal(tnf_object_part(i->embeddings, "codes")->nbytes, ROWS * DIMS / 2);
        assert_int_equal(tnf_object_part(i->embeddings, "codebooks")->nbytes, 16 * DIMS * 4);
        assert_true(loss.bits == 4 && loss.subquantizers == DIMS / 2);
        assert_true(loss.cosine > .9 && loss.cosine < 1.0001 && isfinite(loss.euclidean));
        assert_true(kind == 0 || loss.euclidean == first); /* the same numbers, the same result */
        first = loss.euclidean;
        tnf_str word = TEXT("three");
        tnf_emb_found found;
        assert_int_equal(tnf_emb_find(y.emb, word), 2);
        assert_ok(tnf_emb_vectors(row, &found, y.emb, &word, 1, &e));
        assert_near(found.norm, 3, 0);
        for (uint64_t r = 1; r < 8; r += 6) {
            assert_ok(tnf_emb_row(row, y.emb, r, &e));
            near_all(row, (float[DIMS]) { 0 }, DIMS, 0);
        }
        close_opened(&x);
        close_opened(&y);
    }
}

/* As many rows as centroids: nothing is lost, and no row is left out. */
static void nothing_is_lost(void **state)
{
    struct made m = { .rows = N, .dims = D, .values = uniform };
    (void)state;
    fill_uniform();
    struct opened x = open_made(&m, NULL);
    tnf_quantize_options o = suite_options(TNF_PQ);
    o.bits = 8;
    o.as_is = true;
    struct opened y = quantize_and_open(x.emb, &o, "finalfusion", NULL);
    assert_near(compare_rows(x.emb, y.emb).largest, 0, 0);
    close_opened(&x);
    close_opened(&y);
}

/* ------------------------------------------------------------------- refusals */

static tnf_status try_with(const struct opened *x, const tnf_quantize_options *o, tnf_error *e)
{
    tnf_builder *b;
    tnf_status status = tnf_builder_new(&b, NULL, e);
    if (status == TNF_OK)
        status = tnf_emb_quantize(NULL, b, x->emb, o, e);
    tnf_builder_free(b);
    return status;
}

static void limits_of_options(void **state)
{
    struct made m = { .rows = 200, .dims = D, .values = uniform };
    tnf_error e;
    (void)state;
    fill_uniform();
    struct opened x = open_made(&m, NULL);
    tnf_quantize_options o = suite_options(TNF_PQ);
    o.bits = 8;
    assert_fails(try_with(&x, &o, &e), TNF_EINVAL);
    assert_says("1 to 7");
    o.bits = 9;
    assert_fails(try_with(&x, &o, &e), TNF_EINVAL);
    o = suite_options(TNF_PQ);
    o.subquantizers = 21;
    assert_fails(try_with(&x, &o, &e), TNF_EINVAL);
    assert_says("1 to 20");
    o.subquantizers = 8;
    assert_fails(try_with(&x, &o, &e), TNF_EINVAL);
    assert_says("cannot be cut");
    o = suite_options((tnf_quantizer)3);
    assert_fails(try_with(&x, &o, &e), TNF_EINVAL);
    o = suite_options(TNF_OPQ);
    o.iterations = 1;
    if (tnf_opq_ready(NULL) != TNF_OK) {
        assert_fails(try_with(&x, &o, &e), TNF_EUNSUPPORTED);
        assert_says("LAPACK");
    }
    o = suite_options(TNF_PQ);
    struct opened y = quantize_and_open(x.emb, &o, "ztensor2", NULL);
    assert_fails(try_with(&y, &o, &e), TNF_EINVAL);
    assert_says("already");
    close_opened(&x);
    close_opened(&y);
    m.rows = 1;
    x = open_made(&m, NULL);
    assert_fails(try_with(&x, NULL, &e), TNF_EINVAL);
    assert_says("at least 2 rows");
    close_opened(&x);
}

static void odd_numbers(void **state)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38F };
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        fill_uniform();
        uniform[17 * D + 3] = uniform[17 * D + 4] = odd[i];
        struct made m = { .rows = N, .dims = D, .values = uniform };
        struct opened x = open_made(&m, NULL);
        tnf_quantize_options o = suite_options(TNF_PQ);
        assert_fails(try_with(&x, &o, &e), TNF_EINVAL);
        assert_says("row 17");
        close_opened(&x);
    }
    fill_uniform();
    uniform[0] = 1e19F;
    uniform[D] = 1e-42F; /* very long and short rows can be divided by their lengths, too */
    memset(uniform + D + 1, 0, (D - 1) * sizeof *uniform);
    struct made m = { .rows = N, .dims = D, .values = uniform };
    struct opened x = open_made(&m, NULL);
    tnf_quantize_options o = suite_options(TNF_PQ);
    tnf_quantized loss = TNF_QUANTIZED_INIT;
    struct opened y = quantize_and_open(x.emb, &o, "ztensor2", &loss);
    assert_true(loss.cosine > .9);
    o.as_is = true;
    assert_fails(try_with(&x, &o, &e), TNF_EINVAL);
    assert_says("row 0");
    close_opened(&x);
    close_opened(&y);
}

struct watch {
    uint64_t calls, stop_at, last, total;
};

static bool watch_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct watch *w = ctx;
    assert_true(done >= w->last && done <= total);
    w->last = done;
    w->total = total;
    return ++w->calls != w->stop_at;
}

static void cancels_anywhere(void **state)
{
    struct made m = { .rows = N, .dims = D, .values = uniform };
    tnf_error e;
    (void)state;
    fill_uniform();
    struct opened x = open_made(&m, NULL);
    for (size_t i = 0; i < 3; i++) {
        tnf_quantize_options o = suite_options(methods[i]);
        struct watch w = { 0 };
        if (!is_built(methods[i]))
            continue;
        o.iterations = 3;
        o.attempts = 2;
        o.progress = watch_progress;
        o.ctx = &w;
        assert_ok(try_with(&x, &o, &e));
        uint64_t calls = w.calls;
        assert_true(calls > 4 && w.last == w.total);
        for (uint64_t stop = 1; stop <= calls; stop++) {
            w = (struct watch) { .stop_at = stop };
            assert_fails(try_with(&x, &o, &e), TNF_ECANCELLED);
            assert_int_equal(w.calls, stop);
        }
        w = (struct watch) { 0 };
        o.threads = 4;
        assert_ok(try_with(&x, &o, &e));
    }
    close_opened(&x);
}

static void memory_fails(void **state)
{
    struct made m = { .words = "a|b", .rows = N, .dims = D, .values = uniform };
    tnf_error e;
    (void)state;
    fill_uniform();
    tnf_sink *sink = make_bytes(&m);
    for (size_t i = 0; i < 3; i++)
        for (uint64_t n = 1; n < 200 && is_built(methods[i]); n++) {
            struct memory_log log = { .fail_at = n, .fail_once = true };
            tnf_emb_options how = { .size = sizeof how, .threads = 1 };
            how.allocator = memory_allocator(&log);
            tnf_source *source;
            struct opened x = { 0 };
            tnf_str bytes = tnf_sink_bytes(sink);
            assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
            assert_ok(tnf_open_source(&x.file, source, NULL, &e));
            tnf_quantize_options o = suite_options(methods[i]);
            o.iterations = 1;
            tnf_status status = tnf_emb_open(&x.emb, x.file, &how, &e);
            if (status == TNF_OK)
                status = try_with(&x, &o, &e);
            tnf_emb_close(x.emb);
            tnf_close(x.file);
            assert_int_equal(log.blocks, 0);
            assert_int_equal(log.wrong_sizes, 0);
            if (log.failed == 0) {
                assert_int_equal(status, TNF_OK);
                break;
            }
            assert_true(status == TNF_ENOMEM);
            assert_true(n < 199);
        }
    /* A limit is not exceeded; it is an error. */
    tnf_emb_options little = { .size = sizeof little, .memory = 100000 };
    struct opened x = { 0 };
    open_bytes(&x, tnf_sink_bytes(sink), &little);
    tnf_quantize_options o = suite_options(TNF_PQ);
    assert_fails(try_with(&x, &o, &e), TNF_ELIMIT);
    close_opened(&x);
    tnf_sink_close(sink);
}

/* ------------------------------------------------------------------ real vectors */

/* The limits of finalfusion's tests for the same rows, quantized by the real tool: 50 pieces of 32
 * centroids, every component within 0.05. */
static void real_vectors(void **state)
{
    struct opened x;
    tnf_quantized loss = TNF_QUANTIZED_INIT;
    tnf_error e;
    (void)state;
    if (!open_shared(&x, "py/similarity.fifu"))
        skip();
    tnf_quantize_options o = { .size = sizeof o, .bits = 5, .subquantizers = 50 };
    struct opened y = quantize_and_open(x.emb, &o, "finalfusion", &loss);
    struct distances found = compare_rows(x.emb, y.emb);
    assert_true(found.largest < .05);
    assert_true(loss.cosine > .998 && loss.euclidean < .06);
    float is[100], was[100]; /* Berlin is the first row */
    assert_ok(tnf_emb_row(was, x.emb, 0, &e));
    assert_ok(tnf_emb_row(is, y.emb, 0, &e));
    near_all(is, was, 100, .03);
    tnf_str berlin = TEXT("Berlin");
    tnf_emb_hit hits[4];
    size_t n;
    tnf_emb_query query = { .size = sizeof query, .k = 4 };
    static const char *const expected[] = { "Potsdam", "Hamburg", "Leipzig", "Dresden" };
    assert_ok(tnf_emb_similar(hits, &n, NULL, y.emb, &berlin, 1, &query, &e));
    for (size_t i = 0; i < 4; i++)
        assert_memory_equal(hits[i].word.p, expected[i], hits[i].word.n);
    close_opened(&x);
    close_opened(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_bounded), cmocka_unit_test(attempts_help),
        cmocka_unit_test(same_bits),          cmocka_unit_test(whole_files),
        cmocka_unit_test(nothing_is_lost),    cmocka_unit_test(limits_of_options),
        cmocka_unit_test(odd_numbers),        cmocka_unit_test(cancels_anywhere),
        cmocka_unit_test(memory_fails),       cmocka_unit_test(real_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
