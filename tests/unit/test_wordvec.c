/* SPDX-License-Identifier: MIT */
/* word2vec, text, textdims and floret, beyond the fixtures: options of readers and writers, reading
 * any piece in any order, content that does not fit, and files of real tools if they are
 * available. */
#include "../support/little.h"
#include "../support/unit.h"
#include "gptrs_files.h"

#include <tenfold/emb.h>

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ------------------------------------------------------------------- helpers */

static bytes bytes_of(const char *text)
{
    bytes b = { 0 };
    add_text(&b, text);
    return b;
}

/* Opens text with an option of the reader; NULL: none. */
static tnf_status open_as(tnf_file **out, const bytes *b, const char *format, const char *key,
                          const char *value, tnf_error *e)
{
    tnf_source *source;
    tnf_option option = { key, value };
    tnf_open_options o = {
        .size = sizeof o, .format = format, .options = &option, .noptions = key != NULL
    };
    assert_int_equal(tnf_source_memory(&source, b->p, b->n, e), TNF_OK);
    return tnf_open_source(out, source, &o, e);
}

static void *part_of(const tnf_file *f, const char *name, const char *role, size_t *n)
{
    tnf_error e = { 0 };
    const tnf_object *o = tnf_find(f, name);
    assert_non_null(o);
    const tnf_part *p = tnf_object_part(o, role);
    assert_non_null(p);
    *n = (size_t)p->nbytes;
    void *out = malloc(*n + 1);
    assert_non_null(out);
    assert_ok(tnf_read_part(out, *n, p, 0, &e));
    from_little(out, little_width(p->type), *n / little_width(p->type));
    return out;
}

/* All words, separated by '|'. */
static void assert_words(const tnf_file *f, const char *want)
{
    size_t nbytes, noffsets, at = 0;
    char *text = part_of(f, "vocab", "bytes", &nbytes), joined[512];
    uint64_t *offsets = part_of(f, "vocab", "offsets", &noffsets);
    for (size_t i = 0; i + 1 < noffsets / 8; i++) {
        size_t n = (size_t)(offsets[i + 1] - offsets[i]);
        assert_true(at + n + 2 < sizeof joined);
        memcpy(joined + at, text + offsets[i], n);
        at += n;
        joined[at++] = '|';
    }
    joined[at ? at - 1 : 0] = 0;
    assert_string_equal(joined, want);
    free(text);
    free(offsets);
}

static void assert_saved(const tnf_file *f, const char *format, const char *const *options,
                         const char *want, size_t n)
{
    bytes got = save_file(f, format, options), expected = { 0 };
    add_bytes(&expected, want, n);
    assert_same_bytes(&got, &expected, format);
    free(got.p);
    free(expected.p);
}

/* ------------------------------------------------------------------- reading */

static void test_utf8(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    bytes b = bytes_of("a 1 2\nzee\xc3n 3 4\n\xe2\x82 5 6\nb 7 8\n");
    assert_fails(open_as(&f, &b, "text", "utf8", "strict", &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 9);
    assert_says("2 are not");
    assert_ok(open_as(&f, &b, "text", "utf8", "lossy", &e));
    assert_words(f, "a|zee\xef\xbf\xbdn|\xef\xbf\xbd|b");
    tnf_close(f);
    assert_ok(open_as(&f, &b, "text", NULL, NULL, &e));
    assert_words(f, "a|zee\xc3n|\xe2\x82|b");
    assert_int_equal(tnf_file_info(f)->nwarnings, 1);
    tnf_close(f);
    free(b.p);
}

/* Longer than the buffer for reading: it is still one word, and is checked as a whole. */
static void test_long_word(void **state)
{
    (void)state;
    enum { LONG = 700000 };
    static const float one = 1;
    tnf_error e;
    tnf_file *f;
    for (int bad = 0; bad < 2; bad++) {
        bytes b = bytes_of("2 1\na ");
        add_bytes(&b, &one, 4);
        add_bytes(&b, "\n", 1);
        size_t at = b.n;
        for (size_t i = 0; i < LONG; i += 2)
            add_bytes(&b, bad && i == 500000 ? "\xff." : "\xc3\xbc", 2);
        add_bytes(&b, " ", 1);
        add_bytes(&b, &one, 4);
        add_bytes(&b, "\n", 1);
        assert_ok(open_as(&f, &b, "word2vec", NULL, NULL, &e));
        const tnf_info *info = tnf_file_info(f);
        assert_int_equal(info->nwarnings, bad);
        if (bad) {
            assert_int_equal(info->warnings[0].offset, at + 500000);
            assert_non_null(strstr(info->warnings[0].message, "UTF-8"));
        }
        const tnf_object *v = tnf_find(f, "vocab");
        assert_int_equal(v->shape[0], 2);
        tnf_close(f);
        assert_ok(open_as(&f, &b, "word2vec", "utf8", "lossy", &e));
        v = tnf_find(f, "vocab");
        uint64_t offsets[3];
        assert_ok(tnf_read_part(offsets, sizeof offsets, tnf_object_part(v, "offsets"), 0, &e));
        from_little(offsets, 8, 3);
        assert_int_equal(offsets[2] - offsets[1], LONG + 2 * bad); /* one byte became three */
        tnf_close(f);
        free(b.p);
    }
}

static void test_strict(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    bytes padded = bytes_of("  a    1 2\nbc   3\t4 \n"), spaced = bytes_of("a 1 2\nNew York 3 4\n");
    assert_ok(open_as(&f, &padded, "text", "strict", "yes", &e));
    assert_words(f, "a|bc");
    tnf_close(f);
    assert_ok(open_as(&f, &padded, "text", NULL, NULL, &e));
    assert_words(f, "  a   |bc  ");
    tnf_close(f);
    assert_fails(open_as(&f, &spaced, "text", "strict", "yes", &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 6);
    free(padded.p);
    free(spaced.p);
    bytes empty = bytes_of("a 1 2\n\nb 3 4\n");
    assert_fails(open_as(&f, &empty, "text", "strict", "yes", &e), TNF_EFORMAT);
    assert_says("line 2 is empty");
    free(empty.p);
}

static void test_dims(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    bytes b = bytes_of("1 2 3 4\n5 6 7 8\n");
    assert_ok(open_as(&f, &b, "text", NULL, NULL, &e));
    assert_words(f, "1|5");
    tnf_close(f);
    assert_ok(open_as(&f, &b, "text", "dims", "2", &e));
    assert_words(f, "1 2|5 6");
    assert_int_equal(tnf_find(f, "embeddings")->shape[1], 2);
    tnf_close(f);
    assert_fails(open_as(&f, &b, "text", "dims", "4", &e), TNF_EFORMAT);
    assert_says("line 1 has 3 numbers after its word instead of 4");
    free(b.p);
}

/* Every piece of every part, at any place, has the same bytes as in the whole. */
static void check_pieces(const char *folder, const char *name)
{
    tnf_error e = { 0 };
    bytes b = load_fixture(folder, "valid", name);
    tnf_file *f = must_open(&b);
    for (size_t i = 0; i < tnf_file_info(f)->objects; i++)
        for (unsigned k = 0; k < tnf_at(f, i)->nparts; k++) {
            const tnf_part *p = &tnf_at(f, i)->parts[k];
            size_t n = (size_t)p->nbytes;
            uint8_t *whole = malloc(n + 1), *piece = malloc(n + 1);
            assert_true(whole && piece);
            assert_ok(tnf_read_part(whole, n, p, 0, &e));
            for (size_t at = 0; at < n; at += 1 + n / 50)
                for (size_t some = 1; some <= n - at; some += 1 + n / 40) {
                    assert_ok(tnf_read_part(piece, some, p, at, &e));
                    assert_memory_equal(piece, whole + at, some);
                }
            free(whole);
            free(piece);
        }
    tnf_close(f);
    free(b.p);
}

static void test_pieces(void **state)
{
    (void)state;
    check_pieces("word2vec", "many.bin");
    check_pieces("word2vec", "untrimmed.bin");
    check_pieces("word2vec", "none.bin");
    check_pieces("text", "many.txt");
    check_pieces("text", "odd_words.txt");
    check_pieces("textdims", "empty_lines.vec");
    check_pieces("floret", "upstream.floret");
}

/* Lines and files larger than the buffer, on several threads. */
static void test_large(void **state)
{
    (void)state;
    enum { ROWS = 30000, DIMS = 24 };
    bytes b = { 0 };
    size_t n;
    char line[64];
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(line, sizeof line, "w%zu", i);
        add_text(&b, line);
        for (size_t k = 0; k < DIMS; k++) {
            snprintf(line, sizeof line, " %d.%03d", (int)((i * 7 + k) % 1000) - 500,
                     (int)(k * 8 % 1000));
            add_text(&b, line);
        }
        add_text(&b, "\n");
    }
    tnf_file *f = must_open(&b);
    const tnf_object *o = tnf_find(f, "embeddings");
    assert_int_equal(o->shape[0], ROWS);
    float *values = part_of(f, "embeddings", "data", &n);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < DIMS; k++) {
            int whole = (int)((i * 7 + k) % 1000) - 500;
            float part = (float)((double)(k * 8 % 1000) / 1000);
            float want = whole < 0 ? (float)whole - part : (float)whole + part;
            assert_true(fabsf(values[i * DIMS + k] - want) < 1e-4F);
        }
    free(values);
    bytes plain = save_file(f, "textdims", NULL);
    tnf_file *again = must_open(&plain);
    bytes back = save_file(again, "text", NULL), direct = save_file(f, "text", NULL);
    assert_same_bytes(&back, &direct, "by way of textdims");
    tnf_close(again);
    tnf_close(f);
    free(back.p);
    free(direct.p);
    free(plain.p);
    free(b.p);
    b = (bytes) { 0 };
    add_text(&b, "1 400000\nlong");
    for (int i = 0; i < 400000; i++)
        add_text(&b, i % 2 ? " 0.125" : " -1000.5");
    add_text(&b, "\n");
    f = must_open(&b);
    values = part_of(f, "embeddings", "data", &n);
    assert_int_equal(n, 1600000);
    assert_true(values[399998] == -1000.5F && values[399999] == 0.125F);
    free(values);
    bytes same = save_file(f, "textdims", NULL);
    assert_same_bytes(&same, &b, "one long line");
    free(same.p);
    tnf_close(f);
    free(b.p);
}

/* ------------------------------------------------------------------- writing */

#define SAVED(f, format, options, text) assert_saved(f, format, options, text, sizeof(text) - 1)

static void test_write_text(void **state)
{
    (void)state;
    static const char *const tab[] = { "separator", "tab", "newline", "crlf", NULL };
    static const char *const fasttext[] = { "trailing", "yes", NULL };
    static const char *const python[] = { "numbers", "python", NULL };
    bytes b = bytes_of("2 2\nNew York 1 0.00001\nb -2.5 1e10\n");
    tnf_file *f = must_open(&b);
    SAVED(f, "text", NULL, "New York 1 0.00001\nb -2.5 10000000000\n");
    SAVED(f, "textdims", NULL, "2 2\nNew York 1 0.00001\nb -2.5 10000000000\n");
    SAVED(f, "textdims", tab, "2 2\r\nNew York\t1\t0.00001\r\nb\t-2.5\t10000000000\r\n");
    SAVED(f, "textdims", fasttext, "2 2\nNew York 1 0.00001 \nb -2.5 10000000000 \n");
    SAVED(f, "text", python, "New York 1.0 1e-05\nb -2.5 1e+10\n");
    tnf_close(f);
    free(b.p);
}

static void test_write_word2vec(void **state)
{
    (void)state;
    static const char *const none[] = { "newline", "none", NULL };
    static const char *const between[] = { "newline", "between", NULL };
    static const char *const crlf[] = { "newline", "crlf", NULL };
    static const char *const lf[] = { "newline", "lf", NULL };
    bytes b = bytes_of("2 1\na 1\nb 2\n");
    tnf_file *f = must_open(&b);
    SAVED(f, "word2vec", NULL, "2 1\na \0\0\x80\x3f\nb \0\0\0\x40\n");
    SAVED(f, "word2vec", none,
          "2 1\na \0\0\x80\x3f"
          "b \0\0\0\x40");
    SAVED(f, "word2vec", between, "2 1\na \0\0\x80\x3f\nb \0\0\0\x40");
    SAVED(f, "word2vec", crlf, "2 1\na \0\0\x80\x3f\r\nb \0\0\0\x40\r\n");
    bytes kept = save_file(f, "word2vec", none);
    tnf_file *again = must_open(&kept);
    bytes same = save_file(again, "word2vec", NULL); /* the same bytes */
    assert_same_bytes(&same, &kept, "none");
    SAVED(again, "word2vec", lf, "2 1\na \0\0\x80\x3f\nb \0\0\0\x40\n");
    tnf_close(again);
    tnf_close(f);
    free(same.p);
    free(kept.p);
    free(b.p);
}

/* The spelling is kept by a format that can store it. */
static void test_spelling_comes_back(void **state)
{
    (void)state;
    static const char *const names[] = { "all.vec", "python.vec", "trailing.vec", "crlf.vec" };
    for (size_t i = 0; i < COUNT(names); i++) {
        bytes b = load_fixture("textdims", "valid", names[i]);
        tnf_file *f = must_open(&b);
        bytes other = save_file(f, "finalfusion", NULL);
        tnf_file *g = must_open(&other);
        bytes back = save_file(g, "textdims", NULL);
        if (strcmp(names[i], "all.vec") != 0) /* it has "-0", and no line break at its end */
            assert_same_bytes(&back, &b, names[i]);
        tnf_close(g);
        tnf_close(f);
        free(back.p);
        free(other.p);
        free(b.p);
    }
}

/* As fastText and floret write it: %.5g, and a space after the last number. */
static void test_spelling_of_c(void **state)
{
    (void)state;
    static const char *const c[] = { "numbers", "c", NULL };
    static const struct {
        const char *format, *text;
    } files[] = {
        { "textdims", "2 3\na 1 -8.9778e-05 0.5 \nb 123.45 2e-05 1.2346e+05 \n" },
        { "textdims", "2 3\na 1 -8.9778e-05 0.5\nb 123.45 2e-05 -0.25\n" },
        { "text", "a 1 -8.9778e-05 0.5 \nb 123.45 2e-05 1.2346e+05 \n" },
        { "floret", "2 3 2 3 2 2166136261 < >\n0 -2.2611 -8.9778e-05 3 \n1 0.5 1e-06 1.5 \n" },
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        bytes b = bytes_of(files[i].text);
        tnf_file *f = must_open(&b);
        assert_string_equal(tnf_file_info(f)->format, files[i].format);
        assert_saved(f, files[i].format, NULL, files[i].text, strlen(files[i].text));
        bytes other = save_file(f, "ztensor2", NULL);
        tnf_file *g = must_open(&other);
        assert_saved(g, files[i].format, NULL, files[i].text, strlen(files[i].text));
        tnf_close(g);
        tnf_close(f);
        free(other.p);
        free(b.p);
    }
    bytes b = bytes_of("1 2\na 1 0.00001\n");
    tnf_file *f = must_open(&b);
    SAVED(f, "text", c, "a 1 1e-05\n");
    SAVED(f, "text", NULL, "a 1 0.00001\n");
    tnf_close(f);
    free(b.p);
}

/* ------------------------------------------------------------------ refusing */

static void check_refused(const char *folder, const char *name, const char *format,
                          const char *const *options, const char *words)
{
    tnf_error e = { 0 };
    bytes b = load_fixture(folder, "valid", name), out;
    tnf_file *f = must_open(&b);
    tnf_builder *builder;
    assert_int_equal(tnf_builder_new(&builder, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(builder, f, &e), TNF_OK);
    assert_fails(save_builder(&out, builder, format, options, &e), TNF_ELOSSY);
    assert_says(words);
    tnf_builder_free(builder);
    tnf_close(f);
    free(b.p);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const none[] = { "newline", "none", NULL };
    check_refused("text", "odd_words.txt", "word2vec", NULL, "a word contains a space");
    check_refused("word2vec", "untrimmed.bin", "word2vec", none, "begins with a newline");
    check_refused("word2vec", "untrimmed.bin", "text", NULL, "contains a line end");
    check_refused("word2vec", "no_rows.bin", "text", NULL, "cannot store zero rows");
    check_refused("textdims", "all_numbers.vec", "text", NULL, "most words end in numbers");
    check_refused("text", "plain.txt", "floret", NULL, "the format has no such layout");
    check_refused("floret", "upstream.floret", "text", NULL, "no place for metadata");
}

/* -------------------------------------------------------------------- floret */

/* Means of upstream's tests, as directions (specification, 7.8). */
static void test_floret_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *file, *word;
        float mean[10];
    } cases[] = {
        { "upstream.floret",
          ",",
          { -5.7814f, 2.6918f, .57029f, -3.6985f, -2.7079f, 1.4406f, 1.0084f, 1.7463f, -3.8625f,
            -3.0565f } },
        { "upstream.floret",
          "der",
          { .08224f, 2.6601f, -1.173f, 1.1549f, -.42821f, -.097268f, -2.5589f, -1.609f, -.16968f,
            .84687f } },
        { "upstream.floret",
          "die",
          { -2.8781f, .082576f, 1.9286f, -.33279f, .79488f, 3.36f, 3.5609f, -.64328f, -2.4152f,
            .17266f } },
        { "brackets.floret",
          ",",
          { 1.3844874f, 2.3464875f, 1.2599748f, -.6150249f, -2.7724452f, -.79785013f, -4.0532503f,
            -1.1515112f, .19298255f, -.7406751f } },
    };
    tnf_error e;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = load_fixture("floret", "valid", cases[i].file);
        tnf_file *f = must_open(&b);
        bytes same = save_file(f, "floret", NULL), fifu = save_file(f, "finalfusion", NULL);
        assert_same_bytes(&same, &b, cases[i].file);
        tnf_file *g = must_open(&fifu);
        bytes back = save_file(g, "floret", NULL);
        assert_same_bytes(&back, &b, "by way of finalfusion");
        const tnf_file *files[] = { f, g };
        for (size_t k = 0; k < 2; k++) {
            tnf_emb *emb;
            float got[10], length = 0;
            tnf_str word = { cases[i].word, strlen(cases[i].word) };
            assert_ok(tnf_emb_open(&emb, files[k], NULL, &e));
            assert_ok(tnf_emb_vectors(got, NULL, emb, &word, 1, &e));
            for (int d = 0; d < 10; d++)
                length += cases[i].mean[d] * cases[i].mean[d];
            for (int d = 0; d < 10; d++)
                assert_true(fabsf(got[d] - cases[i].mean[d] / sqrtf(length)) < 1e-4f);
            tnf_emb_close(emb);
        }
        tnf_close(g);
        tnf_close(f);
        free(back.p);
        free(fifu.p);
        free(same.p);
        free(b.p);
    }
}

/* ------------------------------------------------------------------ upstream */

static bytes load_upstream(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fixtures/finalfusion/%s", TNF_SHARED_DIR, name);
    bytes b = load_path(path);
    if (!b.p)
        skip();
    return b;
}

/* Files of finalfusion's tests: read and written again with the same bytes, also through each
 * other. */
static void test_upstream_bytes(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        { "rt/similarity.bin", "word2vec" },      { "rt/similarity.txt", "textdims" },
        { "rt/similarity.nodims", "text" },       { "py/embeddings.txt", "text" },
        { "py/embeddings.dims.txt", "textdims" }, { "py/embeddings.w2v", "word2vec" },
        { "rt/utf8-incomplete.txt", "text" },     { "rt/utf8-incomplete.dims", "textdims" },
        { "rt/utf8-incomplete.bin", "word2vec" },
    };
    tnf_error e;
    for (size_t i = 0; i < COUNT(files); i++) {
        bytes b = load_upstream(files[i][0]);
        tnf_file *f, *g;
        assert_ok(open_as(&f, &b, files[i][1], NULL, NULL, &e));
        bytes same = save_file(f, files[i][1], NULL), other = save_file(f, "ztensor2", NULL);
        assert_same_bytes(&same, &b, files[i][0]);
        g = must_open(&other);
        bytes back = save_file(g, files[i][1], NULL);
        assert_same_bytes(&back, &b, "by way of zTensor");
        tnf_close(g);
        tnf_close(f);
        free(back.p);
        free(other.p);
        free(same.p);
        free(b.p);
    }
}

/* One matrix in three formats, and in finalfusion's own file. */
static void test_upstream_alike(void **state)
{
    (void)state;
    static const char *const files[] = { "rt/similarity.bin", "rt/similarity.txt",
                                         "rt/similarity.nodims" };
    bytes want = load_upstream("rt/similarity.fifu");
    for (size_t i = 0; i < COUNT(files); i++) {
        bytes b = load_upstream(files[i]);
        tnf_file *f = must_open(&b);
        bytes fifu = save_file(f, "finalfusion", NULL);
        assert_same_bytes(&fifu, &want, files[i]);
        tnf_close(f);
        free(fifu.p);
        free(b.p);
    }
    free(want.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_dims),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_write_text),
        cmocka_unit_test(test_write_word2vec),
        cmocka_unit_test(test_spelling_comes_back),
        cmocka_unit_test(test_spelling_of_c),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_floret_vectors),
        cmocka_unit_test(test_upstream_bytes),
        cmocka_unit_test(test_upstream_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
