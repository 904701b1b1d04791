/* SPDX-License-Identifier: MIT */
/* Vectors of known and unknown words, by every scheme; compared with finalfusion's own tests, and
 * with results computed by hand from its rules. */
#include "emb_files.h"

static tnf_emb_found look_up(const tnf_emb *emb, const char *word, float *vector)
{
    tnf_error e;
    tnf_emb_found found;
    tnf_str text = TEXT(word);
    assert_ok(tnf_emb_vectors(vector, &found, emb, &text, 1, &e));
    return found;
}

struct rows {
    uint64_t list[512];
    size_t n;
};

static tnf_status note_row(void *ctx, tnf_str ngram, uint64_t row, tnf_error *e)
{
    struct rows *r = ctx;
    (void)ngram;
    (void)e;
    r->list[r->n++] = row;
    return TNF_OK;
}

static void expect_rows(const tnf_emb *emb, const char *word, const uint64_t *rows, size_t n)
{
    struct rows r = { .n = 0 };
    tnf_error e;
    assert_ok(tnf_emb_ngrams(emb, TEXT(word), note_row, &r, &e));
    assert_int_equal(r.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(r.list[i], rows[i]);
}

/* ------------------------------------------------------------------- floret */

static const float floret[100] = {
    -2.2611F, 3.9302F,  2.6676F,  -11.233F, .093715F, -10.52F,  -9.6463F, -.11853F, 2.101F,
    -.10145F, -3.12F,   -1.7981F, 10.7F,    -6.171F,  4.4527F,  10.967F,  9.073F,   6.2056F,
    -6.1199F, -2.0402F, 9.5689F,  5.6721F,  -8.4832F, -1.2249F, 2.1871F,  -3.0264F, -2.391F,
    -5.3308F, -3.2847F, -4.0382F, 3.6268F,  4.2759F,  -1.7007F, 1.5002F,  5.5266F,  1.8716F,
    -12.063F, .26314F,  2.7645F,  2.4929F,  -11.683F, -7.7068F, 2.1102F,  2.214F,   7.2202F,
    .69799F,  3.2173F,  -5.382F,  -2.0838F, 5.0314F,  -4.3024F, 8.0241F,  2.0714F,  -1.0174F,
    -.28369F, 1.7622F,  7.8797F,  -1.7795F, 6.7541F,  5.6703F,  8.3574F,  -5.225F,  8.6529F,
    8.5605F,  -8.9465F, 3.767F,   -5.4636F, -1.4635F, -.98947F, -.58025F, -10.01F,  3.3894F,
    -4.4487F, 1.1669F,  -11.904F, 6.5158F,  4.3681F,  .79913F,  -6.9131F, -8.687F,  -5.4576F,
    7.1019F,  -8.8259F, 1.7189F,  4.955F,   -8.9157F, -3.8905F, -.60086F, -2.1233F, 5.892F,
    8.0678F,  -4.4142F, 3.6236F,  4.5889F,  -2.7611F, 2.4455F,  .67096F,  -4.2822F, 2.0875F,
    4.6274F
};

/* floret itself returns the mean; here the vector is normalised. */
static void expect_direction(const tnf_emb *emb, const char *word, const float *mean)
{
    float got[10], expected[10];
    double length = 0;
    tnf_emb_found found = look_up(emb, word, got);
    assert_true(found.found && !found.known && found.row == TNF_NO_ROW);
    for (size_t i = 0; i < 10; i++)
        length += (double)mean[i] * mean[i];
    for (size_t i = 0; i < 10; i++)
        expected[i] = (float)(mean[i] / sqrt(length));
    near_all(got, expected, 10, 1e-4);
}

static void floret_words(void **state)
{
    static const struct {
        const char *word;
        float mean[10];
    } table[] = {
        { ",",
          { -5.7814F, 2.6918F, .57029F, -3.6985F, -2.7079F, 1.4406F, 1.0084F, 1.7463F, -3.8625F,
            -3.0565F } },
        { "der",
          { .08224F, 2.6601F, -1.173F, 1.1549F, -.42821F, -.097268F, -2.5589F, -1.609F, -.16968F,
            .84687F } },
        { "die",
          { -2.8781F, .082576F, 1.9286F, -.33279F, .79488F, 3.36F, 3.5609F, -.64328F, -2.4152F,
            .17266F } },
        { "in",
          { -.87635F, 2.0958F, 4.0018F, -2.2473F, -1.2429F, 2.3474F, 1.8846F, .46521F, -.506F,
            -.26653F } },
        { "(",
          { .59263F, 2.1856F, .67346F, 1.0769F, 1.0701F, 1.2151F, 1.718F, -3.0441F, 2.7291F,
            3.719F } },
    };
    static const char *const formats[] = { "ztensor2", "finalfusion", "safetensors" };
    (void)state;
    for (size_t f = 0; f < 3; f++) {
        struct made m = { .format = formats[f],
                          .rows = 10,
                          .dims = 10,
                          .values = floret,
                          .vocab = "floret",
                          .min_n = 2,
                          .max_n = 3,
                          .buckets = 10,
                          .hashes = 2,
                          .seed = 2166136261u,
                          .bow = "<",
                          .eow = ">" };
        struct opened x = open_made(&m, NULL);
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
            expect_direction(x.emb, table[i].word, table[i].mean);
        expect_rows(x.emb, ",", (const uint64_t[]) { 1, 7, 1, 7, 8, 7, 0, 0 }, 8);
        expect_rows(x.emb, "der",
                    (const uint64_t[]) { 5, 6, 4, 6, 7, 5, 7, 3, 8, 2, 0, 2, 8, 9, 3, 3 }, 16);
        assert_int_equal(tnf_emb_describe(x.emb)->words, 0);
        assert_int_equal(tnf_emb_find(x.emb, TEXT("der")), TNF_NO_ROW);
        close_opened(&x);
    }
}

static void floret_brackets(void **state)
{
    static const float comma[] = { 1.3844874F,  2.3464875F,  1.2599748F,  -.6150249F, -2.7724452F,
                                   -.79785013F, -4.0532503F, -1.1515112F, .19298255F, -.7406751F };
    static const float der[] = { -.30920622F, 3.038363F,   -.68778753F,  -.563806F,   1.5502453F,
                                 -.06880643F, -1.2151338F, -.047910027F, -1.5533295F, .95536256F };
    struct made m = { .rows = 10,
                      .dims = 10,
                      .values = floret,
                      .vocab = "floret",
                      .min_n = 2,
                      .max_n = 3,
                      .buckets = 10,
                      .hashes = 2,
                      .seed = 2166136261u,
                      .bow = "[",
                      .eow = "]" };
    struct opened x = open_made(&m, NULL);
    (void)state;
    expect_direction(x.emb, ",", comma);
    expect_direction(x.emb, "der", der);
    expect_rows(x.emb, ",", (const uint64_t[]) { 0, 6, 0, 6, 5, 7, 3, 2 }, 8);
    close_opened(&x);
}

/* ------------------------------------------------------------------ explicit */

static void explicit_words(void **state)
{
    static const float values[] = { 1, 0, 2, 0, 3, 0, 4, 0, 0, 5, 0, 7, 0, 11 };
    static const uint64_t index[] = { 0, 1, 2 }, turned[] = { 2, 0, 1 };
    static const char *const formats[] = { "ztensor2", "finalfusion" };
    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (size_t t = 0; t < 3; t++) {
            float v[2];
            struct made m = { .format = formats[f],
                              .words = "this|is|a|test",
                              .rows = 7,
                              .dims = 2,
                              .values = values,
                              .ngrams = "is>|is|<t",
                              .index = t == 0   ? index
                                       : t == 1 ? turned
                                                : NULL,
                              .vocab = "explicit",
                              .min_n = 2,
                              .max_n = 3 };
            struct opened x = open_made(&m, NULL);
            const float third = t == 1 ? 7 : 11;          /* the row of "<t" */
            tnf_emb_found found = look_up(x.emb, "t", v); /* <t> <t t>: only <t is there */
            assert_true(found.found && !found.known);
            assert_near(found.norm, third, 0);
            near_all(v, (const float[]) { 0, 1 }, 2, 0);
            found = look_up(x.emb, "his", v); /* is> and is */
            assert_near(found.norm, t == 1 ? 11 + 5 : 5 + 7, 0);
            assert_false(look_up(x.emb, "xyz", v).found);
            near_all(v, (const float[]) { 0, 0 }, 2, 0);
            found = look_up(x.emb, "is", v);
            assert_true(found.known && found.row == 1 && found.norm == 1);
            near_all(v, (const float[]) { 2, 0 }, 2, 0);
            close_opened(&x);
        }
}

/* An index beyond the rows is detected when it is used. */
static void explicit_beyond(void **state)
{
    static const float values[] = { 1, 2, 3 };
    static const uint64_t index[] = { 0, 5 };
    struct made m = { .words = "one",
                      .rows = 3,
                      .dims = 1,
                      .values = values,
                      .ngrams = "ab|bc",
                      .index = index,
                      .vocab = "explicit",
                      .min_n = 2,
                      .max_n = 2 };
    struct opened x = open_made(&m, NULL);
    tnf_error e;
    float v;
    tnf_str word = TEXT("xbcx");
    (void)state;
    assert_fails(tnf_emb_vectors(&v, NULL, x.emb, &word, 1, &e), TNF_EFORMAT);
    assert_true(look_up(x.emb, "xabx", &v).found);
    close_opened(&x);
}

/* ------------------------------------------------------------------- buckets */

static void buckets_of_finalfusion(void **state)
{
    struct opened x;
    float v[5];
    (void)state;
    if (!open_shared(&x, "py/ff_buckets.fifu"))
        skip();
    const tnf_emb_info *i = tnf_emb_describe(x.emb);
    assert_true(i->words == 2 && i->rows == 1026 && i->dims == 5 && i->has_norms);
    assert_true(i->subwords == TNF_SUBWORDS_BUCKET && i->buckets == 1024 && i->min_n == 3);
    tnf_emb_found found = look_up(x.emb, "one", v);
    assert_true(found.known && found.row == 0);
    assert_near(found.norm, .111857, 1e-5);
    near_all(v, (const float[]) { .2434929F, .5275825F, .1132917F, -.7992398F, .1036758F }, 5,
             1e-7);
    assert_near(look_up(x.emb, "</s>", v).norm, .243729, 1e-5);
    near_all(v, (const float[]) { -.5235909F, .5282893F, .5526837F, -.0640690F, -.3704036F }, 5,
             1e-7);
    static const struct {
        const char *word;
        float norm, vector[5];
    } unknown[] = {
        { "OOV", .3133950F, { .0493155F, -.0107174F, -.3021776F, -.4504146F, .8386111F } },
        { "tübingen", .7510552F, { -.3078733F, -.7839374F, .1763394F, -.4880887F, -.1460477F } },
        { "foo", .5484732F, { -.3098341F, .4731411F, -.1489878F, .2044618F, .7849448F } },
        { "definitely out of vocab",
          3.5922152F,
          { -.0298461F, .7636758F, .0456751F, -.2261234F, .6022379F } },
        { "asd", .5359041F, { .0455262F, -.6500278F, -.2976454F, .5944512F, .3652755F } },
    };
    for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++) {
        found = look_up(x.emb, unknown[k].word, v);
        assert_true(found.found && !found.known);
        assert_near(found.norm, unknown[k].norm, 1e-6);
        near_all(v, unknown[k].vector, 5, 1e-6);
    }
    assert_false(look_up(x.emb, "", v).found);
    /* from each character on, the longest first */
    expect_rows(x.emb, "tübingen",
                (const uint64_t[]) { 308, 817, 857, 820, 651, 1007, 276, 14,  74,
                                     416, 250, 707, 300, 761, 197,  325, 648, 717,
                                     246, 168, 590, 181, 860, 549,  124, 69 },
                26);
    close_opened(&x);
}

/* ----------------------------------------------------------------- quantized */

/* The example of section 2.8: P = [[0,-1],[1,0]], centroids (1,2) and (3,4), norms 2 and 1. */
static void quantized_by_hand(void **state)
{
    static const float projection[] = { 0, -1, 1, 0 }, codebooks[] = { 1, 2, 3, 4 };
    static const float row_norms[] = { 2, 1 };
    static const uint8_t codes[] = { 0, 1 };
    float v[2];
    struct made m = { .words = "a|b",
                      .rows = 2,
                      .dims = 2,
                      .codes = codes,
                      .m = 1,
                      .k = 2,
                      .codebooks = codebooks,
                      .projection = projection,
                      .row_norms = row_norms };
    struct opened x = open_made(&m, NULL);
    (void)state;
    assert_true(tnf_emb_describe(x.emb)->quantized);
    look_up(x.emb, "a", v);
    near_all(v, (const float[]) { -4, 2 }, 2, 0);
    look_up(x.emb, "b", v);
    near_all(v, (const float[]) { -4, 3 }, 2, 0);
    close_opened(&x);
}

/* Unknown words: rotating the sum of centroids once gives the sum of the rotated rows. */
static void quantized_unknown(void **state)
{
    enum { D = 6, M = 3, K = 4, N = 40 };
    static uint8_t codes[N * M];
    static float codebooks[K * D], projection[D * D], row_norms[N], dense[N * D];
    float v[D], w[D];
    (void)state;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)(i * 7 % 11 % K);
    for (size_t i = 0; i < K * D; i++)
        codebooks[i] = (float)((int)(i * 37 % 23) - 11) / 8;
    for (size_t i = 0; i < D * D; i++) /* any matrix is accepted, not only a rotation */
        projection[i] = (float)((int)(i * 29 % 17) - 8) / 16;
    for (size_t i = 0; i < N; i++)
        row_norms[i] = 1 + (float)(i % 5) / 4;
    struct made m = { .words = "one|two",
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
                      .buckets = N - 2 };
    struct opened x = open_made(&m, NULL);
    tnf_error e;
    for (uint64_t i = 0; i < N; i++)
        assert_ok(tnf_emb_row(dense + i * D, x.emb, i, &e));
    struct made flat = m;
    flat.codes = NULL;
    flat.values = dense;
    struct opened y = open_made(&flat, NULL);
    static const char *const words[] = { "three", "fourteen", "überspringen", "x" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        tnf_emb_found a = look_up(x.emb, words[i], v), b = look_up(y.emb, words[i], w);
        assert_true(a.found && b.found);
        assert_near(a.norm, b.norm, 1e-5 * b.norm);
        near_all(v, w, D, 1e-5);
    }
    close_opened(&x);
    close_opened(&y);
}

/* A code without a centroid is an error only when it is used. */
static void quantized_bad_code(void **state)
{
    static const float codebooks[] = { 1, 2, 3, 4 };
    static const uint8_t codes[] = { 0, 2, 1 };
    struct made m = { .words = "a|b|c",
                      .rows = 3,
                      .dims = 2,
                      .codes = codes,
                      .m = 1,
                      .k = 2,
                      .codebooks = codebooks };
    struct opened x = open_made(&m, NULL);
    tnf_error e;
    float v[2];
    (void)state;
    assert_ok(tnf_emb_row(v, x.emb, 0, &e));
    assert_fails(tnf_emb_row(v, x.emb, 1, &e), TNF_EFORMAT);
    assert_says("row 1 has the code 2");
    assert_fails(tnf_emb_row(v, x.emb, 3, &e), TNF_EINVAL);
    close_opened(&x);
}

/* The real quantizer's bytes: a chunk without a file around it. */
static void quantized_storage(void **state)
{
    static char bytes[20000];
    char path[512];
    size_t n = 0;
    struct opened x = { 0 };
    float v[100];
    tnf_error e;
    (void)state;
    snprintf(path, sizeof path, "%s/fixtures/finalfusion/rt/quantized_storage.bin", TNF_SHARED_DIR);
    FILE *f = fopen(path, "rb");
    if (!f)
        skip();
    /* header, 100 words of four letters (so that padding does not change), the chunk */
    static const uint32_t header[] = { 0x75466946, 0, 2, 1, 4 };
    uint32_t number[] = { 1, 8 + 100 * 8, 0, 100, 0 };
    memcpy(bytes, to_little(header, 4, 5), sizeof header);
    memcpy(bytes + (n = sizeof header), to_little(number, 4, 5), sizeof number);
    n += sizeof number;
    for (unsigned i = 0; i < 100; i++, n += 8)
        snprintf(bytes + n, 9, "\4%c%c%c%04u", 0, 0, 0, i);
    n += fread(bytes + n, 1, sizeof bytes - n, f);
    fclose(f);
    open_bytes(&x, (tnf_str) { bytes, n }, NULL);
    assert_ok(tnf_emb_row(v, x.emb, 0, &e));
    near_all(v, (const float[]) { 0, 1, 2, 3, 4 }, 5, 1e-5);
    assert_ok(tnf_emb_row(v, x.emb, 50, &e));
    near_all(v, (const float[]) { 5001.8225F, 5002.7860F, 5003.7491F }, 3, 1e-3);
    assert_ok(tnf_emb_row(v, x.emb, 99, &e));
    near_all(v + 97, (const float[]) { 10002.083F, 10003.192F, 10004.298F }, 3, 2e-3);
    double most = 0;
    for (uint64_t r = 0; r < 100; r++) {
        assert_ok(tnf_emb_row(v, x.emb, r, &e));
        for (size_t c = 0; c < 100; c++) { /* not fmax(): gcc 12 for aarch64 crashes */
            double off = fabs((double)v[c] - (100.0 * (double)r + (double)c));
            most = off > most ? off : most;
        }
    }
    assert_near(most, 25.21, .01);
    close_opened(&x);
}

/* --------------------------------------------------------------------- words */

static void duplicates_are_counted(void **state)
{
    static const float values[] = { 1, 2, 3, 4, 5, 6 };
    struct made m = { .words = "a|b c|a||b c|", .rows = 6, .dims = 1, .values = values };
    struct opened x = open_made(&m, NULL);
    (void)state;
    assert_int_equal(tnf_emb_describe(x.emb)->duplicates, 3);
    assert_int_equal(tnf_emb_describe(x.emb)->first_duplicate, 2);
    assert_int_equal(tnf_emb_find(x.emb, TEXT("a")), 0);
    assert_int_equal(tnf_emb_find(x.emb, TEXT("b c")), 1);
    assert_int_equal(tnf_emb_find(x.emb, TEXT("")), 3);
    assert_int_equal(tnf_emb_find(x.emb, TEXT("b")), TNF_NO_ROW);
    assert_int_equal(tnf_emb_word(x.emb, 4).n, 3);
    assert_null(tnf_emb_word(x.emb, 6).p);
    close_opened(&x);
}

/* Many words, read by several threads, interleaved in the file and not: each is found, and the
 * table takes less than 16 bytes for a word. */
static void many_words(void **state)
{
    enum { N = 100000 };
    static char text[N * 8];
    static float values[N];
    static const char *const formats[] = { "ztensor2", "finalfusion" };
    char word[16];
    size_t at = 0;
    (void)state;
    for (unsigned i = 0; i < N; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%sw%x", i ? "|" : "", i * 7);
    for (size_t f = 0; f < 2; f++) {
        struct made m = {
            .format = formats[f], .words = text, .rows = N, .dims = 1, .values = values
        };
        tnf_emb_options o = { .size = sizeof o, .threads = 4 };
        struct opened x = open_made(&m, &o);
        assert_int_equal(tnf_emb_describe(x.emb)->duplicates, 0);
        for (unsigned i = 0; i < N; i++) {
            snprintf(word, sizeof word, "w%x", i * 7);
            assert_int_equal(tnf_emb_find(x.emb, TEXT(word)), i);
            tnf_str back = tnf_emb_word(x.emb, i);
            assert_int_equal(back.n, strlen(word));
            assert_memory_equal(back.p, word, back.n);
            snprintf(word, sizeof word, "x%x", i);
            assert_int_equal(tnf_emb_find(x.emb, TEXT(word)), TNF_NO_ROW);
        }
        close_opened(&x);
    }
}

static void every_type_is_read(void **state)
{
    static const float f32[] = { 1, -2, 0.5F, 3 };
    static const double f64[] = { 1, -2, 0.5, 3 };
    static const uint16_t f16[] = { 0x3c00, 0xc000, 0x3800, 0x4200 };
    static const uint16_t bf16[] = { 0x3f80, 0xc000, 0x3f00, 0x4040 };
    static const int8_t i8[] = { 1, -2, 0, 3 };
    static const int32_t i32[] = { 1, -2, 0, 3 };
    const struct {
        const char *type;
        const void *values;
    } all[] = { { "f32", f32 },   { "f64", f64 }, { "f16", f16 },
                { "bf16", bf16 }, { "i8", i8 },   { "i32", i32 } };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct made m = { .words = "a|b",
                          .rows = 2,
                          .dims = 2,
                          .values = all[i].values,
                          .type = tnf_type_named(all[i].type) };
        struct opened x = open_made(&m, NULL);
        float v[4];
        look_up(x.emb, "a", v);
        look_up(x.emb, "b", v + 2);
        near_all(v, all[i].type[0] == 'i' ? (const float[]) { 1, -2, 0, 3 } : f32, 4, 0);
        close_opened(&x);
    }
}

/* ------------------------------------------------------------------ mistakes */

static tnf_status try_open(const struct made *m, const tnf_emb_options *o, tnf_error *e)
{
    tnf_sink *sink = make_bytes(m);
    tnf_source *source;
    tnf_file *file;
    tnf_emb *emb;
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_int_equal(tnf_source_memory(&source, bytes.p, bytes.n, NULL), TNF_OK);
    assert_int_equal(tnf_open_source(&file, source, NULL, e), TNF_OK);
    tnf_status status = tnf_emb_open(&emb, file, o, e);
    assert_true((status == TNF_OK) == (emb != NULL));
    tnf_emb_close(emb);
    tnf_close(file);
    tnf_sink_close(sink);
    return status;
}

static void refuses_bad_files(void **state)
{
    static const float values[] = { 1, 2, 3, 4 };
    struct made m = { .words = "a|b|c", .rows = 2, .dims = 2, .values = values };
    tnf_error e;
    (void)state;
    assert_fails(try_open(&m, NULL, &e), TNF_EFORMAT);
    assert_says("words, 3, is larger than the number of rows, 2");
    m = (struct made) { .words = "a|b",
                        .rows = 2,
                        .dims = 2,
                        .values = values,
                        .vocab = "bucket",
                        .min_n = 3,
                        .max_n = 6,
                        .buckets = 4 };
    assert_fails(try_open(&m, NULL, &e), TNF_EFORMAT);
    assert_says("words (2) and of buckets (4) are together larger than the number of rows (2)");
    m.buckets = 0;
    assert_fails(try_open(&m, NULL, &e), TNF_EFORMAT);
    m.vocab = "explicit";
    assert_fails(try_open(&m, NULL, &e), TNF_EFORMAT);
    assert_says("n-grams is missing");
    m = (struct made) { .words = "a|b", .rows = 2, .dims = 2, .values = values };
    tnf_emb_options o = { .size = sizeof o, .kernel = "abacus" };
    assert_fails(try_open(&m, &o, &e), TNF_EINVAL);
    o = (tnf_emb_options) { .size = sizeof o, .embeddings = "nothing" };
    assert_fails(try_open(&m, &o, &e), TNF_ENOTFOUND);
    o = (tnf_emb_options) { .size = sizeof o, .vocab = "embeddings" };
    assert_fails(try_open(&m, &o, &e), TNF_EINVAL);
    o = (tnf_emb_options) { .size = sizeof o, .embeddings = "vocab" };
    assert_fails(try_open(&m, &o, &e), TNF_EUNSUPPORTED);
    o = (tnf_emb_options) { .size = sizeof o, .memory = 1 };
    assert_fails(try_open(&m, &o, &e), TNF_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floret_words),
        cmocka_unit_test(floret_brackets),
        cmocka_unit_test(explicit_words),
        cmocka_unit_test(explicit_beyond),
        cmocka_unit_test(buckets_of_finalfusion),
        cmocka_unit_test(quantized_by_hand),
        cmocka_unit_test(quantized_unknown),
        cmocka_unit_test(quantized_bad_code),
        cmocka_unit_test(quantized_storage),
        cmocka_unit_test(duplicates_are_counted),
        cmocka_unit_test(many_words),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(refuses_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
