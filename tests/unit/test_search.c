/* SPDX-License-Identifier: MIT */
/* Neighbours and analogies: finalfusion's own lists for its own file; everything else is compared
 * with sums in double precision over all rows. */
#include "../support/check.h"
#include "../support/flush.h"
#include "emb_files.h"

static void expect_hits(const tnf_emb_hit *hits, size_t n, const char *words, const double *scores)
{
    const char *p = words;
    for (size_t i = 0; i < n; i++) {
        size_t length = strcspn(p, " ");
        if (hits[i].word.n != length || memcmp(hits[i].word.p, p, length) != 0)
            fail_msg("hit %zu is %.*s, not %.*s", i, (int)hits[i].word.n, hits[i].word.p,
                     (int)length, p);
        if (scores)
            assert_near(hits[i].score, scores[i], 1e-6);
        p += length + (p[length] == ' ');
    }
    assert_true(*p == 0);
}

static const char stuttgart[] = "Karlsruhe Mannheim München Darmstadt Heidelberg Wiesbaden Kassel "
                                "Düsseldorf Leipzig Berlin";
static const double stuttgart_scores[] = { .945955, .892286, .861649, .858604, .824187,
                                           .815044, .814340, .812553, .796304, .773155 };
static const char berlin[] =
    "Potsdam Hamburg Leipzig Dresden München Düsseldorf Bonn Stuttgart Weimar "
    "Berlin-Charlottenburg Rostock Karlsruhe Chemnitz Breslau Wiesbaden Hannover Mannheim Kassel "
    "Köln Danzig Erfurt Dessau Bremen Charlottenburg Magdeburg Neuruppin Darmstadt Jena Wien "
    "Heidelberg Dortmund Stettin Schwerin Neubrandenburg Greifswald Göttingen Braunschweig "
    "Berliner Warschau Berlin-Spandau";
static const double berlin_scores[] = {
    .884851, .875753, .855145, .844803, .828337, .809514, .789038, .773155, .771304, .768241,
    .765554, .764982, .762029, .756846, .756535, .755400, .750658, .749823, .747808, .742182,
    .741823, .741634, .740140, .739185, .739172, .736521, .731180, .727993, .726544, .725441,
    .721844, .718343, .718082, .713322, .712266, .712004, .710947, .705944, .701642, .701501
};

static void cities_by_word(void **state)
{
    static const char *const files[] = { "py/similarity.fifu", "rt/similarity.fifu" };
    struct opened x;
    tnf_emb_hit hits[2 * 40];
    size_t counts[2];
    tnf_emb_found found[2];
    tnf_error e;
    tnf_str words[] = { TEXT("Berlin"), TEXT("Stuttgart") };
    (void)state;
    for (size_t f = 0; f < 2; f++) { /* the second is not normalised, but the cosine is the same */
        if (!open_shared(&x, files[f]))
            skip();
        for (unsigned threads = 1; threads < 5; threads++) {
            tnf_emb_query q = { .size = sizeof q, .k = 40, .threads = threads };
            assert_ok(tnf_emb_similar(hits, counts, found, x.emb, words, 2, &q, &e));
            assert_true(counts[0] == 40 && counts[1] == 40 && found[0].known);
            expect_hits(hits, 40, berlin, berlin_scores);
            expect_hits(hits + 40, 10, stuttgart, stuttgart_scores);
        }
        close_opened(&x);
    }
}

/* A query by vector leaves out no words, unless requested. */
static void cities_by_vector(void **state)
{
    struct opened x;
    float vectors[2 * 100];
    tnf_emb_hit hits[10];
    size_t count;
    tnf_error e;
    tnf_str words[] = { TEXT("Berlin"), TEXT("Stuttgart") };
    (void)state;
    if (!open_shared(&x, "py/similarity.fifu"))
        skip();
    assert_ok(tnf_emb_vectors(vectors, NULL, x.emb, words, 2, &e));
    for (size_t i = 0; i < 200; i++)
        vectors[i] *= 3; /* normalised on request */
    tnf_emb_query q = { .size = sizeof q, .k = 10 };
    assert_ok(tnf_emb_nearest(hits, &count, x.emb, vectors, 1, &q, &e));
    expect_hits(hits, 1, "Berlin", (const double[]) { 1 });
    expect_hits(hits + 1, 9,
                "Potsdam Hamburg Leipzig Dresden München Düsseldorf Bonn Stuttgart Weimar",
                berlin_scores);
    uint64_t skipped = tnf_emb_find(x.emb, words[1]);
    q.skip = &skipped;
    q.nskip = 1;
    assert_ok(tnf_emb_nearest(hits, &count, x.emb, vectors + 100, 1, &q, &e));
    expect_hits(hits, 10, stuttgart, stuttgart_scores);
    close_opened(&x);
}

static void plain_products(void **state)
{
    struct opened x;
    tnf_emb_hit hits[10];
    size_t count;
    tnf_error e;
    tnf_str word = TEXT("Berlin");
    (void)state;
    if (!open_shared(&x, "rt/similarity.fifu"))
        skip();
    tnf_emb_query q = { .size = sizeof q, .k = 10, .metric = TNF_DOT };
    assert_ok(tnf_emb_similar(hits, &count, NULL, x.emb, &word, 1, &q, &e));
    expect_hits(hits, 10,
                "Leipzig Dresden Potsdam München Hamburg Breslau Berliner Rostock Hannover "
                "Magdeburg",
                NULL);
    word = TEXT("Tübingen");
    tnf_emb_found found;
    assert_ok(tnf_emb_similar(hits, &count, &found, x.emb, &word, 1, &q, &e));
    assert_true(count == 0 && !found.found);
    close_opened(&x);
}

/* ---------------------------------------------------------------- brute force */

enum { N = 3000, MOST_D = 40, WORDS = 2900 };
static float values[N * MOST_D];
static char words[N * 8];

static double score_exactly(const float *row, const float *query, size_t d, tnf_metric metric)
{
    double dot = 0, rows = 0, queries = 0, distance = 0;
    for (size_t i = 0; i < d; i++) {
        dot += (double)row[i] * query[i];
        rows += (double)row[i] * row[i];
        queries += (double)query[i] * query[i];
        distance += ((double)row[i] - query[i]) * ((double)row[i] - query[i]);
    }
    double cosine = rows == 0 || queries == 0 ? 0 : dot / sqrt(rows) / sqrt(queries);
    cosine = cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    return metric == TNF_DOT      ? dot
           : metric == TNF_L2     ? sqrt(distance)
           : metric == TNF_COSINE ? cosine
                                  : 1 - acos(cosine) / acos(-1);
}

/* Do the hits agree with the scores of all rows, and is no better row missing? */
static void check_hits(const struct opened *x, const tnf_emb_hit *hits, size_t n,
                       const float *query, size_t d, const tnf_emb_query *q, double tolerance)
{
    double sign = q->metric == TNF_L2 ? -1 : 1;
    static bool taken[N];
    memset(taken, 0, sizeof taken);
    for (size_t i = 0; i < n; i++) {
        const float *row = values + hits[i].row * d;
        assert_near(hits[i].score, score_exactly(row, query, d, q->metric), tolerance);
        assert_true(hits[i].row < WORDS && !taken[hits[i].row]);
        taken[hits[i].row] = true;
        assert_true(i == 0 || sign * hits[i].score <= sign * hits[i - 1].score);
        tnf_str word = tnf_emb_word(x->emb, hits[i].row);
        assert_true(word.n == hits[i].word.n && word.p == hits[i].word.p);
    }
    for (size_t r = 0; n == q->k && r < WORDS; r++)
        if (!taken[r] && sign * score_exactly(values + r * d, query, d, q->metric) >
                             sign * hits[n - 1].score + tolerance)
            fail_msg("row %zu is better than hit %zu and left out", r, n - 1);
}

static void fill_rows(size_t d, uint64_t seed)
{
    size_t at = 0;
    for (size_t i = 0; i < N * d; i++)
        values[i] = (float)((double)(next_random(&seed) >> 11) / 4503599627370496.0 - 1);
    for (unsigned i = 0; i < WORDS; i++)
        at += (size_t)snprintf(words + at, sizeof words - at, "%s%u", i ? "|" : "",
                               i * 7919 % WORDS);
}

/* Every kernel and metric, several numbers of queries and threads: the bits do not depend on the
 * number of threads. */
static void against_all(void **state)
{
    static const char *const kernels[] = { "avx512vbmi", "avx2", "neon", "portable" };
    static const size_t dims[] = { 1, 3, 16, 37 };
    enum { Q = 9, K = 25 };
    static tnf_emb_hit hits[Q * K], again[Q * K];
    size_t counts[Q];
    tnf_error e;
    (void)state;
    for (size_t c = 0; c < 4; c++)
        for (size_t k = 0; k < 4; k++) {
            size_t d = dims[c];
            fill_rows(d, 1 + c);
            struct made m = { .words = words, .rows = N, .dims = d, .values = values };
            struct opened x = { .sink = make_bytes(&m) };
            tnf_emb_options o = { .size = sizeof o, .kernel = kernels[k] };
            tnf_source *source;
            tnf_str bytes = tnf_sink_bytes(x.sink);
            assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
            assert_ok(tnf_open_source(&x.file, source, NULL, &e));
            if (tnf_emb_open(&x.emb, x.file, &o, &e) != TNF_OK) {
                assert_int_equal(e.status, TNF_EINVAL); /* a kernel of another machine */
                close_opened(&x);
                continue;
            }
            const float *queries = values + 17 * d; /* rows, so some hits are exact */
            for (tnf_metric metric = TNF_COSINE; metric <= TNF_L2; metric++) {
                tnf_emb_query q = { .size = sizeof q, .metric = metric, .k = K, .threads = 1 };
                double tolerance = metric == TNF_ANGULAR ? 2e-4 : metric == TNF_L2 ? 2e-6 : 3e-6;
                assert_ok(tnf_emb_nearest(hits, counts, x.emb, queries, Q, &q, &e));
                for (size_t i = 0; i < Q; i++) {
                    assert_int_equal(counts[i], K);
                    check_hits(&x, hits + i * K, K, queries + i * d, d, &q, tolerance);
                }
                for (q.threads = 2; q.threads < 9; q.threads += 3) {
                    assert_ok(tnf_emb_nearest(again, counts, x.emb, queries, Q, &q, &e));
                    assert_memory_equal(hits, again, sizeof hits);
                }
                for (size_t i = 0; i < Q; i++) { /* the same alone and among others */
                    assert_ok(tnf_emb_nearest(again, counts, x.emb, queries + i * d, 1, &q, &e));
                    assert_memory_equal(hits + i * K, again, K * sizeof *hits);
                }
            }
            close_opened(&x);
        }
}

/* More queries than go into one pass, and more answers than there are rows. */
static void many_and_all(void **state)
{
    enum { D = 4, Q = 700, K = 3 };
    static tnf_emb_hit hits[Q * K], all[WORDS + 100];
    static size_t counts[Q];
    tnf_error e;
    (void)state;
    fill_rows(D, 99);
    struct made m = { .words = words, .rows = N, .dims = D, .values = values };
    struct opened x = open_made(&m, NULL);
    tnf_emb_query q = { .size = sizeof q, .k = K };
    assert_ok(tnf_emb_nearest(hits, counts, x.emb, values, Q, &q, &e));
    for (size_t i = 0; i < Q; i++)
        check_hits(&x, hits + i * K, K, values + i * D, D, &q, 3e-6);
    q.k = WORDS + 100;
    assert_ok(tnf_emb_nearest(all, counts, x.emb, values, 1, &q, &e));
    assert_int_equal(counts[0], WORDS);
    check_hits(&x, all, WORDS, values, D, &q, 3e-6);
    q.k = 0;
    assert_fails(tnf_emb_nearest(all, counts, x.emb, values, 1, &q, &e), TNF_EINVAL);
    q = (tnf_emb_query) { .size = sizeof q, .k = 1, .metric = (tnf_metric)9 };
    assert_fails(tnf_emb_nearest(all, counts, x.emb, values, 1, &q, &e), TNF_EINVAL);
    close_opened(&x);
}

/* ------------------------------------------------------------------- order */

static void ties_and_odd_rows(void **state)
{
    static const float rows[] = {
        1, 0, NAN, 1, 1, 0, 0, 0, 2, 0, 0, 1, 3e38F, 0, 1e-30F, 0, -1, 0
    };
    struct made m = {
        .words = "m|nan|b|zero|a|up|huge|tiny|back", .rows = 9, .dims = 2, .values = rows
    };
    struct opened x = open_made(&m, NULL);
    tnf_emb_hit hits[9];
    size_t count;
    tnf_error e;
    static const float right[] = { 5, 0 };
    (void)state;
    tnf_emb_query q = { .size = sizeof q, .k = 9 };
    assert_ok(tnf_emb_nearest(hits, &count, x.emb, right, 1, &q, &e));
    assert_int_equal(count, 9);
    expect_hits(hits, 9, "a b huge m tiny up zero back nan", NULL);
    for (size_t i = 0; i < 5; i++)
        assert_near(hits[i].score, 1, 0);
    assert_true(hits[5].score == 0 && hits[6].score == 0 && hits[7].score == -1);
    assert_true(isnan(hits[8].score));
    q.metric = TNF_ANGULAR;
    assert_ok(tnf_emb_nearest(hits, &count, x.emb, right, 1, &q, &e));
    assert_near(hits[0].score, 1, 0);
    assert_near(hits[5].score, .5, 1e-12);
    assert_near(hits[7].score, 0, 0);
    static const float between[] = { 1, 1 };
    q.k = 1;
    assert_ok(tnf_emb_nearest(hits, &count, x.emb, between, 1, &q, &e));
    assert_near(hits[0].score, .75, 1e-5); /* the cosine is the root of one half */
    close_opened(&x);
}

/* Vectors of subnormal numbers, in a program that treats such numbers as 0: the answers are the
 * same as in others. */
static void small_numbers(void **state)
{
    static const float rows[] = { 3e-39F, 0, 2e-39F, 2e-39F, 0, 5e-39F, 1, 1.25F };
    struct made m = { .words = "a|b|c|d", .rows = 4, .dims = 2, .values = rows };
    struct opened x = open_made(&m, NULL);
    tnf_emb_hit hits[2][9];
    float vectors[2][6];
    size_t counts[2][3];
    tnf_error e;
    tnf_str asked[] = { TEXT("a"), TEXT("b"), TEXT("d") };
    (void)state;
    tnf_emb_query q = { .size = sizeof q, .k = 3 };
    for (unsigned flushed = 0; flushed < 2; flushed++) {
        uint32_t mode = flushed ? flush_begin() : 0;
        assert_ok(tnf_emb_similar(hits[flushed], counts[flushed], NULL, x.emb, asked, 2, &q, &e));
        assert_ok(
            tnf_emb_analogy(hits[flushed] + 6, counts[flushed] + 2, NULL, x.emb, asked, 1, &q, &e));
        assert_ok(tnf_emb_vectors(vectors[flushed], NULL, x.emb, asked, 3, &e));
        assert_true(!flushed || flush_end(mode));
    }
    expect_hits(hits[0], 3, "b d c", NULL); /* the cosines are .707, .625 and 0 */
    assert_memory_equal(vectors[0], vectors[1], sizeof vectors[0]);
    assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
    for (size_t i = 0; i < counts[0][0] + counts[0][1] + counts[0][2]; i++)
        assert_true(hits[0][i].row == hits[1][i].row && hits[0][i].score == hits[1][i].score);
    close_opened(&x);
}

/* A word that occurs twice is left out twice. */
static void duplicates_left_out(void **state)
{
    static const float rows[] = { 1, 0, 1, 0, 1, 1, 0, 1 };
    struct made m = { .words = "a|a|b|c", .rows = 4, .dims = 2, .values = rows };
    struct opened x = open_made(&m, NULL);
    tnf_emb_hit hits[4];
    size_t count;
    tnf_error e;
    tnf_str word = TEXT("a");
    (void)state;
    tnf_emb_query q = { .size = sizeof q, .k = 4 };
    assert_ok(tnf_emb_similar(hits, &count, NULL, x.emb, &word, 1, &q, &e));
    assert_int_equal(count, 2);
    expect_hits(hits, 2, "b c", NULL);
    q.keep_asked = true;
    assert_ok(tnf_emb_similar(hits, &count, NULL, x.emb, &word, 1, &q, &e));
    assert_int_equal(count, 4);
    assert_true(hits[0].row == 0 && hits[1].row == 1);
    close_opened(&x);
}

/* ---------------------------------------------------------------- analogies */

static void finds_analogies(void **state)
{
    /* king - man + woman = queen, in two dimensions */
    static const float rows[] = { 1, 1, 1, -1, 3, 1, 3, -1, -2, 0.5F };
    struct made m = { .words = "man|woman|king|queen|other", .rows = 5, .dims = 2, .values = rows };
    struct opened x = open_made(&m, NULL);
    tnf_emb_hit hits[10];
    size_t counts[2];
    tnf_emb_found found[6];
    tnf_error e;
    tnf_str asked[] = { TEXT("man"), TEXT("king"), TEXT("woman"),
                        TEXT("man"), TEXT("Foo"),  TEXT("woman") };
    (void)state;
    tnf_emb_query q = { .size = sizeof q, .k = 5 };
    /* of vectors of length 1: (3, 1)/sqrt(10) - (1, 1)/sqrt(2) + (1, -1)/sqrt(2) */
    assert_ok(tnf_emb_analogy(hits, counts, found, x.emb, asked, 1, &q, &e));
    expect_hits(hits, 2, "queen other", NULL);
    assert_near(hits[0].score, 1.2472136 / 1.4510589, 1e-6);
    q.raw = true;
    assert_ok(tnf_emb_analogy(hits, counts, found, x.emb, asked, 2, &q, &e));
    assert_int_equal(counts[0], 2);
    expect_hits(hits, 2, "queen other", NULL);
    assert_near(hits[0].score, 1, 1e-6);
    assert_int_equal(counts[1], 0);
    assert_true(found[3].found && !found[4].found && found[5].found);
    q.keep[1] = true; /* the second word may be an answer */
    assert_ok(tnf_emb_analogy(hits, counts, NULL, x.emb, asked, 1, &q, &e));
    expect_hits(hits, counts[0], "queen king other", NULL);
    tnf_str thrice[] = { asked[1], asked[1], asked[1] }; /* left out because of the other two */
    assert_ok(tnf_emb_analogy(hits, counts, NULL, x.emb, thrice, 1, &q, &e));
    expect_hits(hits, counts[0], "man queen woman other", NULL);
    q.keep_asked = true;
    assert_ok(tnf_emb_analogy(hits, counts, NULL, x.emb, thrice, 1, &q, &e));
    expect_hits(hits, 1, "king", NULL);
    close_opened(&x);
}

/* ---------------------------------------------------------------- quantized */

/* Scores from tables against those of the reconstructed rows. */
static void quantized_as_reconstructed(void **state)
{
    enum { D = 12, M = 4, K = 16, R = 3000 };
    static uint8_t codes[R * M];
    static float codebooks[K * D], projection[D * D], row_norms[R];
    static tnf_emb_hit hits[2 * 30], again[2 * 30];
    size_t counts[2];
    tnf_error e;
    (void)state;
    for (unsigned shape = 0; shape < 8; shape++) {
        uint64_t seed = shape;
        fill_rows(D, shape);
        for (size_t i = 0; i < sizeof codes; i++)
            codes[i] = (uint8_t)(next_random(&seed) % K);
        for (size_t i = 0; i < K * D; i++)
            codebooks[i] = (float)((int)(next_random(&seed) % 2001) - 1000) / 1000;
        memset(projection, 0, sizeof projection);
        for (size_t i = 0; i < D; i += 2) { /* rotates by pairs; the result is not a rotation */
            float angle = (float)i, size = shape & 4 ? 1.5F : 1;
            projection[i * D + i] = projection[(i + 1) * D + i + 1] = size * cosf(angle);
            projection[i * D + i + 1] = -size * sinf(angle);
            projection[(i + 1) * D + i] = sinf(angle);
        }
        for (size_t i = 0; i < R; i++)
            row_norms[i] = (float)((int)(next_random(&seed) % 400) - 50) / 100;
        struct made m = { .words = words,
                          .rows = R,
                          .dims = D,
                          .codes = codes,
                          .m = M,
                          .k = K,
                          .codebooks = codebooks,
                          .projection = shape & 1 ? projection : NULL,
                          .row_norms = shape & 2 ? row_norms : NULL };
        struct opened x = open_made(&m, NULL);
        for (uint64_t r = 0; r < R; r++)
            assert_ok(tnf_emb_row(values + r * D, x.emb, r, &e));
        static const float queries[2 * D] = { 1, -1, .5F, .25F, 0, 2, -.5F, 1, 1, 0, 0,  .125F,
                                              0, 1,  2,   -3,   1, 1, 1,    0, 2, 1, -1, 0 };
        for (tnf_metric metric = TNF_COSINE; metric <= TNF_L2; metric++) {
            tnf_emb_query q = { .size = sizeof q, .metric = metric, .k = 30, .threads = 1 };
            double tolerance = metric == TNF_ANGULAR ? 1e-4 : metric == TNF_L2 ? 2e-4 : 2e-5;
            assert_ok(tnf_emb_nearest(hits, counts, x.emb, queries, 2, &q, &e));
            for (size_t i = 0; i < 2; i++)
                check_hits(&x, hits + i * 30, 30, queries + i * D, D, &q, tolerance);
            q.threads = 3;
            assert_ok(tnf_emb_nearest(again, counts, x.emb, queries, 2, &q, &e));
            assert_memory_equal(hits, again, sizeof hits);
        }
        close_opened(&x);
    }
}

/* Rows with a code without a centroid come last. */
static void quantized_bad_codes(void **state)
{
    static const float codebooks[] = { 1, 0, 0, 1 }, right[] = { 1, 0 };
    static const uint8_t codes[] = { 9, 1, 0 };
    struct made m = { .words = "bad|up|right",
                      .rows = 3,
                      .dims = 2,
                      .codes = codes,
                      .m = 1,
                      .k = 2,
                      .codebooks = codebooks };
    struct opened x = open_made(&m, NULL);
    tnf_emb_hit hits[3];
    size_t count;
    tnf_error e;
    (void)state;
    for (tnf_metric metric = TNF_COSINE; metric <= TNF_L2; metric++) {
        tnf_emb_query q = { .size = sizeof q, .metric = metric, .k = 3 };
        assert_ok(tnf_emb_nearest(hits, &count, x.emb, right, 1, &q, &e));
        expect_hits(hits, 3, "right up bad", NULL);
        assert_true(isnan(hits[2].score));
    }
    close_opened(&x);
}

/* --------------------------------------------------------------------- types */

static void other_types(void **state)
{
    static const double f64[] = { 1e9 + 1, 0, 1e9, 1, 1e9, 0 };
    static const int32_t i32[] = { 1000000001, 0, 1000000000, 1, 1000000000, 0 };
    static const uint16_t f16[] = { 0x3c00, 0, 0, 0x3c00, 0x3c00, 0x3c00 };
    static const double asked[] = { 1e9, 0 };
    static const float half[] = { 0, 1 };
    tnf_emb_hit hits[3];
    size_t count;
    tnf_error e;
    (void)state;
    for (int i = 0; i < 2; i++) { /* as floats, all three would be equal */
        struct made m = { .name = "points",
                          .labels = "appdata",
                          .words = "a|b|c",
                          .rows = 3,
                          .dims = 2,
                          .values = i ? (const void *)i32 : f64,
                          .type = tnf_type_of(i ? TNF_I32 : TNF_F64) };
        struct opened x = open_made(&m, NULL);
        tnf_emb_query q = { .size = sizeof q, .metric = TNF_L2, .k = 3 };
        assert_ok(tnf_emb_nearest_f64(hits, &count, x.emb, asked, 1, &q, &e));
        expect_hits(hits, 3, "c a b", (const double[]) { 0, 1, 1 });
        tnf_str word = TEXT("b");
        assert_ok(tnf_emb_similar(hits, &count, NULL, x.emb, &word, 1, &q, &e));
        expect_hits(hits, 2, "c a", (const double[]) { 1, sqrt(2) });
        q.metric = TNF_DOT;
        assert_ok(tnf_emb_nearest_f64(hits, &count, x.emb, asked, 1, &q, &e));
        expect_hits(hits, 1, "a", NULL);
        close_opened(&x);
    }
    struct made m = {
        .words = "a|b|c", .rows = 3, .dims = 2, .values = f16, .type = tnf_type_of(TNF_F16)
    };
    struct opened x = open_made(&m, NULL);
    tnf_emb_query q = { .size = sizeof q, .k = 3 };
    assert_ok(tnf_emb_nearest(hits, &count, x.emb, half, 1, &q, &e));
    expect_hits(hits, 3, "b c a", (const double[]) { 1, sqrt(.5), 0 });
    close_opened(&x);
}

/* Without words, rows have numbers. */
static void no_words(void **state)
{
    static const float rows[] = { 1, 0, 0, 1, 1, 1 }, up[] = { 0, 2 };
    struct made m = { .name = "anything", .rows = 3, .dims = 2, .values = rows };
    struct opened x = open_made(&m, NULL);
    tnf_emb_hit hits[3];
    size_t count;
    tnf_error e;
    (void)state;
    tnf_emb_query q = { .size = sizeof q, .k = 3 };
    assert_ok(tnf_emb_nearest(hits, &count, x.emb, up, 1, &q, &e));
    assert_true(count == 3 && hits[0].row == 1 && hits[1].row == 2 && hits[2].row == 0);
    assert_null(hits[0].word.p);
    close_opened(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cities_by_word),
        cmocka_unit_test(cities_by_vector),
        cmocka_unit_test(plain_products),
        cmocka_unit_test(against_all),
        cmocka_unit_test(many_and_all),
        cmocka_unit_test(ties_and_odd_rows),
        cmocka_unit_test(small_numbers),
        cmocka_unit_test(duplicates_left_out),
        cmocka_unit_test(finds_analogies),
        cmocka_unit_test(quantized_as_reconstructed),
        cmocka_unit_test(quantized_bad_codes),
        cmocka_unit_test(other_types),
        cmocka_unit_test(no_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
