/* SPDX-License-Identifier: MIT */
/* New files from old: explicit n-grams, reconstructed rows, some words; and the n-th allocation
 * failing in all that a view does. */
#include "../support/flush.h"
#include "../support/memory.h"
#include "emb_files.h"

/* Saves what a builder holds and opens it again. */
static struct opened save_and_open(tnf_builder *b, const char *format)
{
    struct opened x = { 0 };
    tnf_error e;
    tnf_save_options o = { .size = sizeof o, .format = format, .as_is = true };
    assert_ok(tnf_sink_memory(&x.sink, &e));
    assert_ok(tnf_save_sink(b, x.sink, &o, &e));
    tnf_builder_free(b);
    open_bytes(&x, tnf_sink_bytes(x.sink), NULL);
    return x;
}

static struct opened made_explicit(struct opened *from, const char *format)
{
    tnf_builder *b;
    tnf_error e;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_emb_explicit(b, from->emb, &e));
    return save_and_open(b, format);
}

/* The same words give the same vectors. */
static void expect_same(const tnf_emb *a, const tnf_emb *b, const char *word, double tolerance)
{
    float x[64], y[64];
    tnf_emb_found f, g;
    tnf_error e;
    tnf_str text = TEXT(word);
    size_t d = tnf_emb_describe(a)->dims;
    assert_int_equal(d, tnf_emb_describe(b)->dims);
    assert_ok(tnf_emb_vectors(x, &f, a, &text, 1, &e));
    assert_ok(tnf_emb_vectors(y, &g, b, &text, 1, &e));
    assert_true(f.known == g.known && f.found == g.found);
    assert_near(f.norm, g.norm, tolerance);
    near_all(x, y, d, tolerance);
}

/* --------------------------------------------------------------- explicit */

/* finalfusion's own file: 44 n-grams, 43 rows; "dings" and "<gro" share one. */
static void ngrams_of_gross(void **state)
{
    enum { BUCKETS = 1 << 21 };
    static const char *const orders[] = { "groß|allerdings", "allerdings|groß" };
    float *values = calloc(2 + BUCKETS, sizeof *values);
    (void)state;
    for (size_t i = 0; i < 2 + BUCKETS; i++)
        values[i] = (float)(i % 1000003);
    for (size_t order = 0; order < 2; order++) {
        struct made m = { .words = orders[order],
                          .rows = 2 + BUCKETS,
                          .dims = 1,
                          .values = values,
                          .vocab = "bucket",
                          .min_n = 3,
                          .max_n = 6,
                          .buckets = BUCKETS };
        struct opened x = open_made(&m, NULL), y = made_explicit(&x, "finalfusion");
        const tnf_emb_info *i = tnf_emb_describe(y.emb);
        assert_true(i->subwords == TNF_SUBWORDS_EXPLICIT && i->rows == 2 + 43 && i->buckets == 43);
        assert_int_equal(tnf_find(y.file, "ngrams")->shape[0], 44);
        expect_same(x.emb, y.emb, "groß", 0);
        expect_same(x.emb, y.emb, "allerdings", 0);
        tnf_error e;
        float v;
        tnf_str dings = TEXT("xdingsx");
        tnf_emb_found found; /* of its n-grams, only those of "dings" are listed */
        assert_ok(tnf_emb_vectors(&v, &found, y.emb, &dings, 1, &e));
        assert_true(found.found);
        close_opened(&x);
        close_opened(&y);
    }
    free(values);
}

static void buckets_file(void **state)
{
    struct opened x;
    (void)state;
    if (!open_shared(&x, "py/ff_buckets.fifu"))
        skip();
    struct opened y = made_explicit(&x, "finalfusion"), z = made_explicit(&x, "ztensor2");
    assert_int_equal(tnf_emb_describe(y.emb)->buckets, 16);
    assert_int_equal(tnf_find(y.file, "ngrams")->shape[0], 16);
    expect_same(x.emb, y.emb, "one", 0);
    expect_same(x.emb, z.emb, "</s>", 0);
    assert_true(tnf_emb_describe(y.emb)->has_norms);
    close_opened(&x);
    close_opened(&y);
    close_opened(&z);
}

static void not_explicit(void **state)
{
    static const float values[] = { 1, 2 };
    struct made m = { .words = "a|b", .rows = 2, .dims = 1, .values = values };
    struct opened x = open_made(&m, NULL);
    tnf_builder *b;
    tnf_error e;
    (void)state;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_fails(tnf_emb_explicit(b, x.emb, &e), TNF_EINVAL);
    assert_fails(tnf_emb_reconstruct(b, x.emb, false, &e), TNF_EINVAL);
    tnf_builder_free(b);
    close_opened(&x);
}

/* -------------------------------------------------------------- quantized */

enum { D = 6, M = 3, K = 4, N = 200, WORDS = 2 };
static uint8_t codes[N * M];
static float codebooks[K * D], projection[D * D], row_norms[N];

static struct made make_quantized(void)
{
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)(i * 7 % 11 % K);
    for (size_t i = 0; i < K * D; i++)
        codebooks[i] = (float)((int)(i * 37 % 23) - 11) / 8;
    for (size_t i = 0; i < D; i++)
        projection[i * D + (i + 1) % D] = i % 2 ? 1 : -1;
    for (size_t i = 0; i < N; i++)
        row_norms[i] = 1 + (float)(i % 5) / 4;
    return (struct made) { .words = "one|twofold",
                           .rows = N,
                           .dims = D,
                           .codes = codes,
                           .m = M,
                           .k = K,
                           .codebooks = codebooks,
                           .projection = projection,
                           .row_norms = row_norms,
                           .vocab = "fasttext",
                           .min_n = 3,
                           .max_n = 6,
                           .buckets = N - WORDS };
}

static void reconstructs_rows(void **state)
{
    struct made m = make_quantized();
    struct opened x = open_made(&m, NULL);
    tnf_builder *b;
    tnf_error e;
    float was[D], is[D];
    (void)state;
    for (int as_is = 0; as_is < 2; as_is++) {
        assert_ok(tnf_builder_new(&b, NULL, &e));
        assert_ok(tnf_emb_reconstruct(b, x.emb, as_is, &e));
        struct opened y = save_and_open(b, as_is ? "ztensor2" : "finalfusion");
        const tnf_emb_info *i = tnf_emb_describe(y.emb);
        assert_true(!i->quantized && i->rows == N && i->words == WORDS && i->has_norms == !as_is);
        for (uint64_t r = 0; r < N; r++) {
            assert_ok(tnf_emb_row(was, x.emb, r, &e));
            assert_ok(tnf_emb_row(is, y.emb, r, &e));
            double length = 0;
            for (size_t c = 0; c < D; c++)
                length += (double)was[c] * was[c];
            length = as_is || r >= WORDS ? 1 : sqrt(length);
            for (size_t c = 0; c < D; c++)
                assert_near(is[c] * length, was[c], 1e-5);
        }
        tnf_str word = TEXT("one");
        tnf_emb_found found;
        assert_ok(tnf_emb_vectors(is, &found, y.emb, &word, 1, &e));
        assert_ok(tnf_emb_row(was, x.emb, 0, &e));
        for (size_t c = 0; c < D; c++)
            assert_near(is[c] * found.norm, was[c], 1e-5);
        expect_same(x.emb, y.emb, "unknown", 1e-5);
        close_opened(&y);
    }
    close_opened(&x);
}

/* Quantized rows stay so when n-grams become explicit. */
static void quantized_explicit(void **state)
{
    struct made m = make_quantized();
    struct opened x = open_made(&m, NULL), y = made_explicit(&x, "finalfusion");
    (void)state;
    assert_true(tnf_emb_describe(y.emb)->quantized);
    expect_same(x.emb, y.emb, "one", 0);
    expect_same(x.emb, y.emb, "twofold", 0);
    close_opened(&x);
    close_opened(&y);
}

/* ----------------------------------------------------------------- select */

static void selects_words(void **state)
{
    struct made m = make_quantized();
    struct opened x = open_made(&m, NULL);
    tnf_builder *b;
    tnf_error e;
    tnf_str words[] = { TEXT("unheard of"), TEXT("one"), TEXT("unheard of") };
    (void)state;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_emb_select(b, x.emb, words, 3, &e));
    struct opened y = save_and_open(b, "finalfusion");
    assert_int_equal(tnf_emb_describe(y.emb)->words, 2);
    assert_int_equal(tnf_emb_find(y.emb, words[0]), 0);
    float was[D], is[D];
    tnf_emb_found f, g;
    for (size_t i = 0; i < 2; i++) {
        assert_ok(tnf_emb_vectors(was, &f, x.emb, &words[i], 1, &e));
        assert_ok(tnf_emb_vectors(is, &g, y.emb, &words[i], 1, &e));
        assert_true(g.known && g.norm == 1); /* there were no norms, and none were added */
        near_all(is, was, D, 0);
    }
    close_opened(&y);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    tnf_str none = TEXT("x");
    m.min_n = 5;
    struct opened z = open_made(&m, NULL);
    assert_fails(tnf_emb_select(b, z.emb, &none, 1, &e), TNF_ENOTFOUND);
    tnf_builder_free(b);
    close_opened(&x);
    close_opened(&z);
}

/* ------------------------------------------------------------------ names */

static const tnf_str matrix_name = TNF_STR("e\0x");
static const tnf_str keys[] = { TNF_STR("a"), TNF_STR("a\0b"), TNF_STR("a\0c"),
                                TNF_STR("finalfusion.chunks\0d") };

/* A dense or quantized matrix whose name contains a NUL, and attributes with such keys. */
static tnf_builder *with_nuls(const struct made *m, uint64_t *offsets, char *bytes)
{
    tnf_builder *b;
    tnf_error e;
    const uint64_t shape[] = { m->rows, m->dims };
    tnf_part parts[2];
    uint16_t n = 0;
    if (m->codes) {
        parts[n++] = memory_part("codes", TNF_U8, m->codes, m->rows * m->m);
        parts[n++] = memory_part("codebooks", TNF_F32, m->codebooks, 4 * m->k * m->dims);
    } else {
        parts[n++] = memory_part("data", TNF_F32, m->values, 4 * m->rows * m->dims);
    }
    const tnf_object o = { .name = matrix_name,
                           .shape = shape,
                           .rank = 2,
                           .layout = tnf_layout_by_id(m->codes ? "pq/1" : "dense"),
                           .parts = parts,
                           .nparts = n };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
    add_strings(b, "vocab", m->words, offsets, bytes);
    for (size_t i = 0; i < 4; i++) {
        const tnf_value v = tnf_value_uint(i);
        assert_ok(tnf_builder_set_n(b, NULL, keys[i], &v, &e));
    }
    return b;
}

static void expect_names(const tnf_builder *b)
{
    tnf_error e;
    tnf_file *file;
    assert_ok(tnf_open_builder(&file, b, NULL, &e));
    assert_non_null(tnf_find_n(file, matrix_name.p, matrix_name.n));
    assert_null(tnf_find(file, "e"));
    for (uint64_t i = 0; i < 4; i++) {
        const tnf_value *v = tnf_value_get_n(tnf_file_info(file)->attrs, keys[i].p, keys[i].n);
        assert_true(v && v->as.u == i);
    }
    assert_null(tnf_value_get(tnf_file_info(file)->attrs, "finalfusion.chunks"));
    tnf_close(file);
}

static void names_with_nuls(void **state)
{
    static const float values[] = { 3, 4, 0, 2 };
    static const uint8_t few[] = { 0, 1, 1, 0 };
    static const float books[] = { 1, 2, 3, 4 };
    (void)state;
    for (int quantized = 0; quantized < 2; quantized++) {
        struct made m = { .words = "one|two", .rows = 2, .dims = 2, .values = values };
        tnf_emb_change how = TNF_EMB_CHANGE_INIT;
        tnf_emb_options options = TNF_EMB_INIT;
        uint64_t offsets[3];
        char bytes[8];
        tnf_builder *b;
        tnf_file *file;
        tnf_emb *emb;
        tnf_error e;
        if (quantized) {
            m.codes = few;
            m.m = m.k = 2;
            m.codebooks = books;
        }
        tnf_builder *from = with_nuls(&m, offsets, bytes);
        assert_ok(tnf_open_builder(&file, from, NULL, &e));
        options.embeddings = "e\0xyz";
        assert_fails(tnf_emb_open(&emb, file, &options, &e), TNF_ENOTFOUND);
        options.embeddings_bytes = matrix_name.n;
        options.vocab = "vocabulary";
        options.vocab_bytes = 5;
        assert_ok(tnf_emb_open(&emb, file, &options, &e));
        assert_ok(tnf_builder_new(&b, NULL, &e));
        how.normalize = true;
        assert_ok(quantized ? tnf_emb_reconstruct(b, emb, false, &e)
                            : tnf_emb_convert(b, emb, &how, &e));
        expect_names(b);
        tnf_builder_free(b);
        if (!quantized) {
            tnf_quantize_options coarse = TNF_QUANTIZE_INIT;
            coarse.bits = 1;
            assert_ok(tnf_builder_new(&b, NULL, &e));
            assert_ok(tnf_emb_quantize(NULL, b, emb, &coarse, &e));
            expect_names(b);
            tnf_builder_free(b);
        }
        tnf_emb_close(emb);
        tnf_close(file);
        tnf_builder_free(from);
    }
}

static void unknown_fold_rules(void **state)
{
    static const float values[] = { 1, 2 };
    struct made m = { .words = "a|b", .rows = 2, .dims = 1, .values = values };
    struct opened x = open_made(&m, NULL);
    tnf_builder *b;
    tnf_error e;
    (void)state;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    for (int unfold = 0; unfold < 2; unfold++) {
        tnf_emb_change how = TNF_EMB_CHANGE_INIT;
        memcpy(unfold ? &how.unfold : &how.fold, &(int) { 77 }, sizeof(int));
        assert_fails(tnf_emb_convert(b, x.emb, &how, &e), TNF_EINVAL);
        assert_says(unfold ? "'unfold' has the value 77" : "'fold' has the value 77");
    }
    tnf_builder_free(b);
    close_opened(&x);
}

/* --------------------------------------------------------------- subnormal */

/* Norms below the smallest normal number, in a program that treats such numbers as 0. */
static void small_norms(void **state)
{
    static const uint8_t few[] = { 0, 1 };
    static const float books[] = { 3e-39F, 4e-39F, 0, 5e-39F }, values[] = { 1, 0, 0, 1 };
    static const float norms[] = { 3e-39F, 1 };
    struct made m = { .words = "a|b", .rows = 2, .dims = 2, .codes = few, .m = 1, .k = 2 };
    struct made dense = { .words = "a|b", .rows = 2, .dims = 2, .values = values, .norms = norms };
    struct opened x;
    tnf_builder *b;
    tnf_error e;
    float row[4];
    tnf_emb_found found[2];
    const tnf_str words[] = { TEXT("a"), TEXT("b") };
    (void)state;
    m.codebooks = books;
    x = open_made(&m, NULL);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    uint32_t mode = flush_begin();
    tnf_status status = tnf_emb_reconstruct(b, x.emb, false, &e);
    assert_true(flush_end(mode));
    assert_ok(status);
    struct opened y = save_and_open(b, "ztensor2");
    assert_ok(tnf_emb_vectors(row, found, y.emb, words, 2, &e));
    assert_near(found[0].norm, 5e-39, 1e-44);
    assert_near(found[1].norm, 5e-39, 1e-44);
    near_all(row, (const float[]) { 0.6F, 0.8F, 0, 1 }, 4, 1e-5);
    close_opened(&x);
    close_opened(&y);

    tnf_sink *sink = make_bytes(&dense);
    mode = flush_begin();
    x = (struct opened) { .sink = sink };
    open_bytes(&x, tnf_sink_bytes(sink), NULL);
    assert_true(flush_end(mode));
    assert_ok(tnf_emb_vectors(row, found, x.emb, words, 2, &e));
    assert_true(found[0].norm == 3e-39F && found[1].norm == 1);
    close_opened(&x);
}

/* ----------------------------------------------------------------- memory */

/* All operations of a view, with the n-th allocation failing; all memory is freed. */
static tnf_status use_everything(const tnf_file *file, const tnf_allocator *a, tnf_error *e)
{
    tnf_emb_options o = { .size = sizeof o, .allocator = *a, .threads = 1 };
    tnf_emb_query q = { .size = sizeof q, .k = 3, .threads = 2 };
    tnf_emb *emb;
    tnf_builder *b = NULL;
    tnf_emb_hit hits[6];
    size_t counts[2];
    tnf_str words[] = { TEXT("one"), TEXT("something unheard of that is rather long"),
                        TEXT("two") };
    tnf_status status = tnf_emb_open(&emb, file, &o, e);
    if (status != TNF_OK)
        return status;
    status = tnf_emb_similar(hits, counts, NULL, emb, words, 2, &q, e);
    if (status == TNF_OK)
        status = tnf_emb_analogy(hits, counts, NULL, emb, words, 1, &q, e);
    q.metric = TNF_L2;
    static const float vector[D] = { 1 };
    if (status == TNF_OK)
        status = tnf_emb_nearest(hits, counts, emb, vector, 1, &q, e);
    if (status == TNF_OK)
        status = tnf_builder_new(&b, NULL, e);
    if (status == TNF_OK && tnf_emb_describe(emb)->quantized)
        status = tnf_emb_reconstruct(b, emb, false, e);
    tnf_builder_free(b);
    b = NULL;
    if (status == TNF_OK)
        status = tnf_builder_new(&b, NULL, e);
    if (status == TNF_OK)
        status = tnf_emb_explicit(b, emb, e);
    tnf_builder_free(b);
    b = NULL;
    if (status == TNF_OK)
        status = tnf_builder_new(&b, NULL, e);
    if (status == TNF_OK)
        status = tnf_emb_select(b, emb, words, 2, e);
    tnf_builder_free(b);
    tnf_emb_close(emb);
    return status;
}

static void memory_fails(void **state)
{
    struct made m = make_quantized();
    static float dense[N * D];
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 1) {
            m.codes = NULL;
            m.values = dense;
        } else if (kind == 2) {
            m.type = tnf_type_of(TNF_F16);
        }
        tnf_sink *sink = make_bytes(&m);
        tnf_str bytes = tnf_sink_bytes(sink);
        tnf_source *source;
        tnf_file *file;
        tnf_error e;
        assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
        assert_ok(tnf_open_source(&file, source, NULL, &e));
        for (uint64_t n = 1; n < 2000; n++) {
            struct memory_log log = { .fail_at = n, .fail_once = true };
            tnf_allocator a = memory_allocator(&log);
            tnf_status status = use_everything(file, &a, &e);
            assert_int_equal(log.blocks, 0);
            assert_int_equal(log.wrong_sizes, 0);
            if (log.failed == 0) {
                assert_int_equal(status, TNF_OK);
                break;
            }
            assert_true(status == TNF_OK || status == TNF_ENOMEM);
            assert_true(n < 1999);
        }
        tnf_close(file);
        tnf_sink_close(sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ngrams_of_gross),    cmocka_unit_test(buckets_file),
        cmocka_unit_test(not_explicit),       cmocka_unit_test(reconstructs_rows),
        cmocka_unit_test(quantized_explicit), cmocka_unit_test(selects_words),
        cmocka_unit_test(names_with_nuls),    cmocka_unit_test(unknown_fold_rules),
        cmocka_unit_test(small_norms),        cmocka_unit_test(memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
