/* SPDX-License-Identifier: MIT */
/* Queries and conversions of fastText models; expected numbers were computed by hand.
 *
 *   n-grams of 3 characters, 3 buckets: "<a>" is in bucket 1, "<b>" and "<c>" are in 0
 *   (FNV-1a of "<a>" is 8c9cd1f0, as in the format's description: 2358038000 = 3 n + 1)
 */
#include "../support/little.h"
#include "../support/memory.h"
#include "emb_files.h"

static const float rows[6][2] = { { 8, 0 }, { 2, 4 }, { 0, 2 }, { 4, 0 }, { 0, 8 }, { 6, 6 } };

static void set_number(tnf_builder *b, const char *key, uint64_t n)
{
    tnf_error e;
    tnf_value v = tnf_value_uint(n);
    assert_ok(tnf_builder_set(b, NULL, key, &v, &e));
}

struct model {
    tnf_sink *sink;
    tnf_file *file;
    tnf_emb *emb;
};

/* Saves the content of a builder and opens the result. */
static void open_built(struct model *m, tnf_builder *b, const char *format, bool allow)
{
    tnf_error e;
    tnf_save_options how = { .size = sizeof how, .format = format, .as_is = true };
    how.allow_loss = allow;
    assert_ok(tnf_sink_memory(&m->sink, &e));
    assert_ok(tnf_save_sink(b, m->sink, &how, &e));
    tnf_builder_free(b);
    tnf_str bytes = tnf_sink_bytes(m->sink);
    tnf_source *source;
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_open_source(&m->file, source, NULL, &e));
    assert_ok(tnf_emb_open(&m->emb, m->file, NULL, &e));
}

static void close_model(struct model *m)
{
    tnf_emb_close(m->emb);
    tnf_close(m->file);
    tnf_sink_close(m->sink);
}

static tnf_builder *new_builder(void)
{
    tnf_error e;
    tnf_builder *b;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    return b;
}

/* `format` may also be one that only stores the model. */
static void open_model(struct model *m, const char *format, const char *words)
{
    tnf_error e;
    tnf_builder *b = new_builder();
    uint64_t offsets[8];
    char bytes[64];
    add_strings(b, "vocab", words, offsets, bytes);
    assert_ok(tnf_builder_add(b, "embeddings", tnf_type_of(TNF_F32), 2, (uint64_t[]) { 6, 2 },
                              to_little(rows, 4, 12), &e));
    set_number(b, "fasttext.bucket", 3);
    set_number(b, "fasttext.minn", 3);
    set_number(b, "fasttext.maxn", 3);
    open_built(m, b, format, false);
}

static void check_vector(const tnf_emb *emb, const char *word, float x, float y)
{
    tnf_error e;
    tnf_emb_found found;
    tnf_str w = TEXT(word);
    float v[2];
    assert_ok(tnf_emb_vectors(v, &found, emb, &w, 1, &e));
    assert_true(found.found);
    assert_float_equal(v[0], x, 1e-6);
    assert_float_equal(v[1], y, 1e-6);
}

static void test_vectors(void **state)
{
    static const char *const formats[] = { "fasttext", "ztensor2", "safetensors" };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct model m;
        open_model(&m, formats[i], "</s>|a|b");
        const tnf_emb_info *info = tnf_emb_describe(m.emb);
        assert_true(info->composed);
        assert_int_equal(info->subwords, TNF_SUBWORDS_FASTTEXT);
        assert_int_equal(info->words, 3);
        assert_int_equal(info->buckets, 3);
        check_vector(m.emb, "a", 1, 6);    /* ((2,4) + (0,8)) / 2 */
        check_vector(m.emb, "b", 2, 1);    /* ((0,2) + (4,0)) / 2 */
        check_vector(m.emb, "</s>", 8, 0); /* fastText gives it no n-grams */
        check_vector(m.emb, "c", 4, 0);
        close_model(&m);
    }
}

static void test_neighbours(void **state)
{
    struct model m;
    tnf_error e;
    tnf_emb_hit hits[3];
    size_t n;
    tnf_str a = TEXT("a");
    tnf_emb_query query = { .size = sizeof query, .k = 3 };
    (void)state;
    open_model(&m, "fasttext", "</s>|a|b");
    for (int again = 0; again < 2; again++) { /* the vectors of all words are computed once */
        assert_ok(tnf_emb_similar(hits, &n, NULL, m.emb, &a, 1, &query, &e));
        assert_int_equal(n, 2);
        assert_int_equal(hits[0].row, 2);
        assert_float_equal(hits[0].score, 8 / sqrt(37 * 5.0), 1e-6);
        assert_int_equal(hits[1].row, 0);
        assert_float_equal(hits[1].score, 1 / sqrt(37.0), 1e-6);
    }
    close_model(&m);
}

static void convert_model(struct model *to, struct model *from, const char *format,
                          tnf_emb_change how)
{
    tnf_error e;
    tnf_builder *b = new_builder();
    how.size = sizeof how;
    assert_ok(tnf_emb_convert(b, from->emb, &how, &e));
    open_built(to, b, format, false);
}

static void check_rows(const tnf_emb *emb, const float *want, size_t n)
{
    tnf_error e;
    for (size_t i = 0; i < n; i++) {
        float v[2];
        assert_ok(tnf_emb_row(v, emb, i, &e));
        assert_float_equal(v[0], want[2 * i], 2e-6);
        assert_float_equal(v[1], want[2 * i + 1], 2e-6);
    }
}

static void test_there_and_back(void **state)
{
    static const float want[] = { 8, 0, 1, 6, 2, 1, 4, 0, 0, 8, 6, 6 };
    struct model m, f, back;
    (void)state;
    open_model(&m, "fasttext", "</s>|a|b");
    convert_model(&f, &m, "finalfusion", (tnf_emb_change) { .fold = TNF_FOLD_FASTTEXT });
    assert_false(tnf_emb_describe(f.emb)->composed);
    check_rows(f.emb, want, 6);
    convert_model(&back, &f, "fasttext", (tnf_emb_change) { .unfold = TNF_FOLD_FASTTEXT });
    assert_true(tnf_emb_describe(back.emb)->composed);
    check_rows(back.emb, &rows[0][0], 6);
    close_model(&back);
    close_model(&f);
    /* finalfusion also uses the n-grams of </s>: all of "<</s>>" */
    convert_model(&f, &m, "finalfusion", (tnf_emb_change) { .fold = TNF_FOLD_FINALFUSION });
    check_rows(f.emb, (const float[]) { 5.2F, 1.2F, 1, 6, 2, 1 }, 3);
    convert_model(&back, &f, "fasttext", (tnf_emb_change) { .unfold = TNF_FOLD_FINALFUSION });
    check_rows(back.emb, &rows[0][0], 6);
    close_model(&back);
    close_model(&f);
    close_model(&m);
}

static void test_lengths(void **state)
{
    struct model m, f, back;
    (void)state;
    open_model(&m, "fasttext", "</s>|a|b");
    convert_model(&f, &m, "finalfusion",
                  (tnf_emb_change) { .fold = TNF_FOLD_FASTTEXT, .normalize = true });
    float a = sqrtf(37), b = sqrtf(5);
    check_rows(f.emb, (const float[]) { 1, 0, 1 / a, 6 / a, 2 / b, 1 / b, 4, 0 }, 4);
    const tnf_object *norms = tnf_find(f.file, "norms");
    float have[3];
    tnf_error e;
    assert_non_null(norms);
    assert_ok(tnf_read(have, sizeof have, norms, &e));
    from_little(have, 4, 3);
    assert_float_equal(have[0], 8, 1e-6);
    assert_float_equal(have[1], a, 1e-6);
    convert_model(&back, &f, "finalfusion", (tnf_emb_change) { .unnormalize = true });
    check_rows(back.emb, (const float[]) { 8, 0, 1, 6, 2, 1, 4, 0 }, 4);
    assert_null(tnf_find(back.file, "norms"));
    close_model(&back);
    convert_model(&back, &f, "fasttext", (tnf_emb_change) { .unfold = TNF_FOLD_FASTTEXT });
    check_rows(back.emb, &rows[0][0], 6);
    close_model(&back);
    close_model(&f);
    close_model(&m);
}

/* Norms after the rows: zTensor sorts tensors, and "norms" follows "embeddings". Norms can also be
 * read without the rows. */
static void test_norms_first(void **state)
{
    struct model m, z;
    tnf_error e;
    float have[3];
    (void)state;
    open_model(&m, "fasttext", "</s>|a|b");
    tnf_builder *b = new_builder();
    tnf_emb_change how = { .size = sizeof how, .fold = TNF_FOLD_FASTTEXT, .normalize = true };
    assert_ok(tnf_emb_convert(b, m.emb, &how, &e));
    open_built(&z, b, "ztensor2", false);
    assert_ok(tnf_read(have, sizeof have, tnf_find(z.file, "norms"), &e));
    from_little(have, 4, 3);
    assert_float_equal(have[2], sqrt(5), 1e-6);
    close_model(&z);
    close_model(&m);
}

static void expect_status(tnf_emb *emb, tnf_emb_change how, tnf_status want)
{
    tnf_error e;
    tnf_builder *b = new_builder();
    how.size = sizeof how;
    assert_int_equal(tnf_emb_convert(b, emb, &how, &e), want);
    tnf_builder_free(b);
}

static void test_refused(void **state)
{
    struct model m;
    (void)state;
    open_model(&m, "fasttext", "</s>|a|b");
    expect_status(m.emb, (tnf_emb_change) { .normalize = true }, TNF_EINVAL);
    expect_status(m.emb, (tnf_emb_change) { .fold = (tnf_fold)9, .normalize = true }, TNF_EINVAL);
    expect_status(
        m.emb,
        (tnf_emb_change) { .fold = TNF_FOLD_FASTTEXT, .normalize = true, .unnormalize = true },
        TNF_EINVAL);
    close_model(&m);
}

/* The writers without n-grams do not confuse the two forms. */
static void test_not_mixed_up(void **state)
{
    struct model m, f;
    tnf_error e;
    (void)state;
    open_model(&m, "fasttext", "</s>|a|b");
    convert_model(&f, &m, "finalfusion", (tnf_emb_change) { .fold = TNF_FOLD_FASTTEXT });
    const tnf_file *files[] = { m.file, f.file };
    static const char *const formats[] = { "finalfusion", "fasttext" };
    for (int i = 0; i < 2; i++) {
        tnf_builder *b = new_builder();
        tnf_sink *sink;
        tnf_save_options how = { .size = sizeof how, .format = formats[i] };
        assert_ok(tnf_builder_add_file(b, files[i], &e));
        assert_ok(tnf_sink_memory(&sink, &e));
        assert_int_equal(tnf_save_sink(b, sink, &how, &e), TNF_ELOSSY);
        tnf_sink_close(sink);
        tnf_builder_free(b);
    }
    close_model(&f);
    close_model(&m);
}

/* A model with data that only training needs, or with rows that nothing uses. */
static void open_trained(struct model *m, bool ngrams)
{
    tnf_error e;
    tnf_builder *b = new_builder();
    uint64_t offsets[8], words = 3;
    static const int64_t counts[] = { 3, 2, 1 };
    char bytes[64];
    add_strings(b, "vocab", "</s>|a|b", offsets, bytes);
    assert_ok(tnf_builder_add(b, "embeddings", tnf_type_of(TNF_F32), 2, (uint64_t[]) { 6, 2 },
                              to_little(rows, 4, 12), &e));
    if (ngrams) {
        assert_ok(tnf_builder_add(b, "counts", tnf_type_of(TNF_I64), 1, &words,
                                  to_little(counts, 8, words), &e));
        assert_ok(tnf_builder_add(b, "output", tnf_type_of(TNF_F32), 2, (uint64_t[]) { 3, 2 },
                                  to_little(rows, 4, 6), &e));
        set_number(b, "fasttext.minn", 3);
        set_number(b, "fasttext.maxn", 3);
    }
    set_number(b, "fasttext.bucket", 3);
    open_built(m, b, "fasttext", false);
}

static tnf_status save_folded(struct model *m, const char *format, tnf_error *e)
{
    const tnf_emb_change how = { .size = sizeof how, .fold = TNF_FOLD_FINALFUSION };
    tnf_save_options o = { .size = sizeof o, .format = format };
    tnf_builder *b = new_builder();
    tnf_sink *sink;
    assert_int_equal(tnf_emb_convert(b, m->emb, &how, e), TNF_OK);
    assert_int_equal(tnf_sink_memory(&sink, e), TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, e);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return status;
}

/* Kept or refused: never dropped silently. */
static void test_nothing_is_left_behind(void **state)
{
    static const char *const without[] = { "finalfusion", "word2vec", "textdims" };
    struct model m, zt;
    tnf_error e;
    (void)state;
    open_trained(&m, true);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        assert_int_equal(save_folded(&m, without[i], &e), TNF_ELOSSY);
    convert_model(&zt, &m, "ztensor2", (tnf_emb_change) { .fold = TNF_FOLD_FINALFUSION });
    assert_non_null(tnf_find(zt.file, "counts"));
    assert_non_null(tnf_find(zt.file, "output"));
    close_model(&zt);
    close_model(&m);
    open_trained(&m, false);
    assert_int_equal(save_folded(&m, "finalfusion", &e), TNF_ELOSSY);
    close_model(&m);
}

/* ----------------------------------------------------------- failing allocations */

static tnf_status save_converted(tnf_emb *emb, const char *format, const tnf_emb_change *how,
                                 tnf_error *e)
{
    tnf_builder *b = new_builder();
    tnf_sink *sink;
    tnf_save_options o = { .size = sizeof o, .format = format, .allow_loss = true };
    tnf_status status = tnf_emb_convert(b, emb, how, e);
    assert_int_equal(tnf_sink_memory(&sink, NULL), TNF_OK);
    if (status == TNF_OK)
        status = tnf_save_sink(b, sink, &o, e);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return status;
}

static tnf_status use_everything(const tnf_file *file, const tnf_allocator *a, tnf_error *e)
{
    tnf_emb_options o = { .size = sizeof o, .threads = 1, .allocator = *a };
    const tnf_emb_change vectors = {
        .size = sizeof vectors, .fold = TNF_FOLD_FINALFUSION, .normalize = true, .threads = 1
    };
    tnf_emb_query query = { .size = sizeof query, .k = 2, .threads = 1 };
    tnf_emb_hit hits[2];
    size_t n;
    tnf_emb *emb;
    tnf_str word = TEXT("haus und hof und was noch alles in einem sehr langen wort sein mag");
    tnf_status status = tnf_emb_open(&emb, file, &o, e);
    if (status != TNF_OK)
        return status;
    status = tnf_emb_similar(hits, &n, NULL, emb, &word, 1, &query, e);
    if (status == TNF_OK)
        status = save_converted(emb, "finalfusion", &vectors, e);
    tnf_emb_close(emb);
    return status;
}

static void test_memory(void **state)
{
    static const char *const names[] = { "skipgram.bin",        "real_cbow.bin", "pruned.ftz",
                                         "quantized_norms.ftz", "labels_ns.bin", "no_words.bin" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        tnf_file *file;
        tnf_error e;
        snprintf(path, sizeof path, "%s/formats/fasttext/valid/%s", TNF_TESTS_DIR, names[i]);
        assert_ok(tnf_open(&file, path, NULL, &e));
        for (uint64_t n = 1; n < 500; n++) {
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
            assert_true(n < 499);
        }
        tnf_close(file);
    }
}

/* An .ftz of fastText: rows given by codes, and only those of buckets that pruning kept. */
static void test_pruned(void **state)
{
    char path[512];
    struct model m = { 0 };
    tnf_error e;
    float row[4], vector[4];
    tnf_str word = TEXT("der");
    tnf_emb_found found;
    (void)state;
    snprintf(path, sizeof path, "%s/formats/fasttext/valid/pruned_all.ftz", TNF_TESTS_DIR);
    assert_ok(tnf_open(&m.file, path, NULL, &e));
    assert_ok(tnf_emb_open(&m.emb, m.file, NULL, &e));
    assert_true(tnf_emb_describe(m.emb)->quantized);
    /* no bucket is left: the row is the vector, and unknown words have no vector */
    assert_ok(tnf_emb_vectors(vector, &found, m.emb, &word, 1, &e));
    assert_true(found.known);
    assert_ok(tnf_emb_row(row, m.emb, found.row, &e));
    assert_memory_equal(row, vector, sizeof row);
    word = TEXT("unknown");
    assert_ok(tnf_emb_vectors(vector, &found, m.emb, &word, 1, &e));
    assert_false(found.found);
    tnf_emb_close(m.emb);
    tnf_close(m.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_norms_first),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_mixed_up),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_pruned),         cmocka_unit_test(test_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
