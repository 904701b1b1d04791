/* SPDX-License-Identifier: MIT */
/* Word vectors for finalfusion's tools: scaled to length 1, with a tensor of norms; the plan
 * reports this and does not refuse it; and the cases in which the vectors do not change. */
#include "emb_files.h"
#include <math.h>

enum { WORDS = 3, DIMS = 4, ROWS = 5 };

static const float vectors[ROWS * DIMS] = { 3, 0, 0, -4, 0, 0, 0, 0, 1e-20F, 0,
                                            0, 0, 7, 7,  7, 7, 9, 9, 9,      9 };
static const float lengths[WORDS] = { 5, 0, 1e-20F };
static const float units[WORDS * DIMS] = { .6F, 0, 0, -.8F, 0, 0, 0, 0, 1, 0, 0, 0 };

struct seen {
    unsigned fates[4], unasked;
    char why[160];
};

static void note_item(void *ctx, const tnf_plan_item *item)
{
    struct seen *s = ctx;
    s->fates[item->fate]++;
    s->unasked += item->unasked;
    if (item->unasked)
        snprintf(s->why, sizeof s->why, "%.*s: %s", (int)item->name.n, item->name.p, item->reason);
}

/* A file of the other format with these vectors, or with them and rows of subwords. */
static struct opened open_other(const char *format, bool subwords)
{
    struct made m = { .format = format,
                      .words = "a|b|c",
                      .rows = subwords ? ROWS : WORDS,
                      .dims = DIMS,
                      .values = vectors };
    if (subwords) {
        m.vocab = "fasttext";
        m.min_n = m.max_n = 3;
        m.buckets = ROWS - WORDS;
    }
    return open_made(&m, NULL);
}

static struct opened save_and_open(const tnf_file *file, const char *format, bool as_is,
                                   struct seen *s)
{
    struct opened x = { 0 };
    tnf_error e;
    tnf_builder *b;
    tnf_save_options o = { .size = sizeof o, .format = format, .plan = note_item, .ctx = s };
    o.as_is = as_is;
    *s = (struct seen) { 0 };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, file, &e));
    assert_ok(tnf_sink_memory(&x.sink, &e));
    assert_ok(tnf_save_sink(b, x.sink, &o, &e));
    tnf_builder_free(b);
    open_bytes(&x, tnf_sink_bytes(x.sink), NULL);
    return x;
}

static void expect_numbers(const struct opened *x, const char *name, const float *want, size_t n)
{
    tnf_error e;
    float got[ROWS * DIMS];
    const tnf_object *o = tnf_find(x->file, name);
    assert_non_null(o);
    assert_int_equal(o->parts->nbytes, n * sizeof *got);
    assert_ok(tnf_read_part(got, n * sizeof *got, o->parts, 0, &e));
    from_little(got, sizeof *got, n);
    near_all(got, want, n, 0);
}

static void from_others(void **state)
{
    static const char *const formats[] = { "word2vec", "text", "textdims", "safetensors",
                                           "ztensor2" };
    struct seen s;
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct opened x = open_other(formats[i], false);
        struct opened y = save_and_open(x.file, "finalfusion", false, &s);
        expect_numbers(&y, "embeddings", units, WORDS * DIMS);
        expect_numbers(&y, "norms", lengths, WORDS);
        assert_int_equal(s.unasked, 1);
        assert_int_equal(s.fates[TNF_TRANSFORMED], 1);
        assert_int_equal(s.fates[TNF_DROPPED], 0);
        assert_non_null(strstr(s.why, "embeddings: vectors are divided by their lengths"));
        close_opened(&y);
        y = save_and_open(x.file, "finalfusion", true, &s);
        expect_numbers(&y, "embeddings", vectors, WORDS * DIMS);
        assert_null(tnf_find(y.file, "norms"));
        assert_int_equal(s.fates[TNF_TRANSFORMED], 0);
        close_opened(&y);
        close_opened(&x);
    }
}

/* Rows of subwords are parts of vectors, so they are not changed. */
static void subwords_stay(void **state)
{
    struct seen s;
    float want[ROWS * DIMS];
    (void)state;
    struct opened x = open_other("ztensor2", true);
    struct opened y = save_and_open(x.file, "finalfusion", false, &s);
    memcpy(want, vectors, sizeof want);
    memcpy(want, units, sizeof units);
    expect_numbers(&y, "embeddings", want, ROWS * DIMS);
    expect_numbers(&y, "norms", lengths, WORDS);
    close_opened(&y);
    close_opened(&x);
}

/* Vectors that come from a finalfusion file stay unchanged, also via another format. */
static void own_files_stay(void **state)
{
    static const char *const ways[] = { "finalfusion", "ztensor2", "safetensors" };
    struct seen s;
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct opened x = open_other("finalfusion", false);
        struct opened y = save_and_open(x.file, ways[i], false, &s);
        struct opened z = save_and_open(y.file, "finalfusion", false, &s);
        expect_numbers(&z, "embeddings", vectors, WORDS * DIMS);
        assert_int_equal(s.unasked, 0);
        assert_int_equal(tnf_sink_bytes(x.sink).n, tnf_sink_bytes(z.sink).n);
        assert_memory_equal(tnf_sink_bytes(x.sink).p, tnf_sink_bytes(z.sink).p,
                            tnf_sink_bytes(x.sink).n);
        close_opened(&z);
        close_opened(&y);
        close_opened(&x);
    }
}

/* Other formats keep vectors unchanged. */
static void others_do_not(void **state)
{
    static const char *const formats[] = { "word2vec", "textdims", "safetensors", "ztensor2" };
    struct seen s;
    (void)state;
    struct opened x = open_other("text", false);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct opened y = save_and_open(x.file, formats[i], false, &s);
        expect_numbers(&y, "embeddings", vectors, WORDS * DIMS);
        assert_int_equal(s.fates[TNF_TRANSFORMED] + s.fates[TNF_DROPPED], 0);
        close_opened(&y);
    }
    close_opened(&x);
}

/* Words, and vectors multiplied with their norms, are the same as before, except for a rounding or
 * two. */
static void back_again(void **state)
{
    enum { MANY = 3000, WIDE = 37 };
    static float values[MANY * WIDE];
    static char words[MANY * 8];
    struct seen s;
    tnf_error e;
    (void)state;
    for (size_t i = 0, at = 0; i < MANY; i++)
        at += (size_t)snprintf(words + at, sizeof words - at, i ? "|w%zu" : "w%zu", i);
    for (size_t i = 0; i < MANY * WIDE; i++)
        values[i] = ldexpf((float)(int)(i * 7919 % 2001) - 1000, (int)(i / WIDE % 60) - 30);
    struct made m = { .format = "word2vec", .words = words, .rows = MANY, .dims = WIDE };
    m.values = values;
    struct opened x = open_made(&m, NULL), y = save_and_open(x.file, "finalfusion", false, &s);
    float rows[WIDE];
    const tnf_part *norms = tnf_find(y.file, "norms")->parts;
    for (size_t i = 0; i < MANY; i++) {
        float norm, length = 0;
        assert_ok(tnf_emb_row(rows, y.emb, i, &e));
        assert_ok(tnf_read_part(&norm, sizeof norm, norms, 4 * i, &e));
        from_little(&norm, sizeof norm, 1);
        for (size_t k = 0; k < WIDE; k++) {
            float was = values[i * WIDE + k], is = rows[k] * norm;
            assert_near(is, was, 2e-7 * fabs((double)was));
            length += rows[k] * rows[k];
        }
        assert_near(length, 1, 1e-6);
    }
    close_opened(&y);
    close_opened(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_others),    cmocka_unit_test(subwords_stay),
        cmocka_unit_test(own_files_stay), cmocka_unit_test(others_do_not),
        cmocka_unit_test(back_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
