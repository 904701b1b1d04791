/* SPDX-License-Identifier: MIT */
/* N-grams and hashes, compared with the tests and programs of finalfusion, fastText and floret. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "ext/emb/subword.h"

#define TEXT(s) ((tnf_str) { (s), sizeof(s) - 1 })

static const tnf_str none = { "", 0 };

struct seen {
    char text[4096];
    size_t n, at;
    uint64_t buckets;
    uint64_t rows[256];
    bool signed_bytes;
    size_t only; /* characters; 0: any */
};

static tnf_status note_text(void *ctx, const tnf_ngram *g, tnf_error *e)
{
    struct seen *s = ctx;
    (void)e;
    s->n++;
    s->at += (size_t)snprintf(s->text + s->at, sizeof s->text - s->at, "%s%.*s", s->at ? " " : "",
                              (int)g->bytes.n, g->bytes.p);
    return TNF_OK;
}

static tnf_status note_row(void *ctx, const tnf_ngram *g, tnf_error *e)
{
    struct seen *s = ctx;
    (void)e;
    if (s->only && g->count != s->only)
        return TNF_OK;
    s->rows[s->n++] = s->signed_bytes ? tnf_ngram_hash_fasttext(g->bytes.p, g->bytes.n) % s->buckets
                                      : tnf_ngram_hash_points(g->points, g->count) % s->buckets;
    return TNF_OK;
}

static void expect_text(const char *word, uint32_t min_n, uint32_t max_n, bool brackets,
                        const char *expected)
{
    struct seen s = { .n = 0 };
    tnf_error e;
    tnf_ngram_rule rule = { .min_n = min_n,
                            .max_n = max_n,
                            .begin = brackets ? TEXT("<") : none,
                            .end = brackets ? TEXT(">") : none };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    assert_ok(tnf_ngrams_each(&rule, (tnf_str) { word, strlen(word) }, &a, note_text, &s, &e));
    assert_string_equal(s.text, expected);
}

static void extracts_ngrams(void **state)
{
    (void)state;
    expect_text("Test", 3, 6, true, "<Test> <Test <Tes <Te Test> Test Tes est> est st>");
    expect_text("实验", 2, 6, true, "<实验> <实验 <实 实验> 实验 验>");
    expect_text("Test", 3, 6, false, "Test Tes est");
    expect_text("ˈjəp", 3, 6, false, "ˈjəp ˈjə jəp");
    expect_text("", 3, 6, true, "");
    expect_text("", 2, 6, true, "<>");
    expect_text("", 1, 6, true, "<> < >");
    expect_text("Test", 10, 11, true, "");
    expect_text("aa", 1, 2, false, "aa a a"); /* repeated n-grams stay repeated */
}

static int compare_ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void expect_rows(const char *word, bool signed_bytes, uint64_t buckets, size_t only,
                        const uint64_t *expected, size_t n)
{
    struct seen s = { .buckets = buckets, .signed_bytes = signed_bytes, .only = only };
    tnf_error e;
    tnf_ngram_rule rule = { .min_n = 3, .max_n = 6, .begin = TEXT("<"), .end = TEXT(">") };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    assert_ok(tnf_ngrams_each(&rule, (tnf_str) { word, strlen(word) }, &a, note_row, &s, &e));
    qsort(s.rows, s.n, sizeof *s.rows, compare_ascending);
    assert_int_equal(s.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(s.rows[i], expected[i]);
}
#define EXPECT_ROWS(word, signed_bytes, buckets, only, ...)                                        \
    do {                                                                                           \
        static const uint64_t list[] = { __VA_ARGS__ };                                            \
        expect_rows(word, signed_bytes, buckets, only, list, sizeof list / sizeof *list);          \
    } while (0)

static void bucket_rows(void **state)
{
    (void)state;
    EXPECT_ROWS("Daniël", false, 1 << 21, 0, 214157, 233912, 311961, 488897, 620206, 741276, 841219,
                1167494, 1192256, 1489905, 1532271, 1644730, 1666166, 1679745, 1680294, 1693100,
                2026735, 2065822);
    EXPECT_ROWS("hallo", false, 1 << 21, 0, 75867, 104120, 136555, 456131, 599360, 722393, 938007,
                985859, 1006102, 1163391, 1218704, 1321513, 1505861, 1892376);
    EXPECT_ROWS("Daniël", false, 4, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3);
    EXPECT_ROWS("hallo", false, 4, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3);
}

static void fasttext_rows(void **state)
{
    (void)state;
    EXPECT_ROWS("Daniël", true, 2000000, 0, 69886, 84537, 338340, 441697, 448390, 468430, 504093,
                573175, 749365, 804851, 811506, 991985, 1022467, 1105725, 1249224, 1418443, 1493412,
                1880616);
    EXPECT_ROWS("Daniël", true, 2000000, 5, 441697, 749365, 1105725, 1880616);
    EXPECT_ROWS("überspringen", true, 2000000, 0, 79599, 119685, 255527, 263610, 352266, 385524,
                403356, 421853, 485366, 488156, 586161, 619228, 629649, 642367, 716781, 751724,
                754367, 771707, 799583, 887882, 894109, 904527, 908492, 978563, 991164, 992241,
                1142035, 1230973, 1278156, 1350653, 1414694, 1513262, 1533308, 1607098, 1607788,
                1664269, 1712300, 1749574, 1793082, 1891605, 1934955, 1992797);
    EXPECT_ROWS("überspringen", true, 2000000, 5, 79599, 352266, 385524, 629649, 716781, 978563,
                991164, 1230973, 1350653, 1992797);
    assert_int_equal(tnf_ngram_hash_fasttext("en>", 3) % 2000000, 619228);
}

static void hashes_of_ngrams(void **state)
{
    static const struct {
        const char *text;
        uint32_t points[3];
        size_t count;
        uint64_t fnv64;
        uint32_t fasttext;
        uint64_t murmur[2];
    } table[] = {
        { "a",
          { 'a' },
          1,
          0xfe745a4cdf2f7a95,
          0xe40c292c,
          { 0x0aa4b9dae6734340, 0x4939994ae6e3fde4 } },
        { "<a>",
          { '<', 'a', '>' },
          3,
          0x1198e85e31dc4745,
          0x8c9cd1f0,
          { 0x14af3cf2a9f66171, 0x7de7ba920ac58844 } },
        { "ë",
          { 0xeb },
          1,
          0x40e90e75226a8fbf,
          0x3afa659b,
          { 0x0aa0d0deec8fccdf, 0xf694811f552e3ae7 } },
        { "<Da",
          { '<', 'D', 'a' },
          3,
          0xacbd1465361eecef,
          0x47f8e324,
          { 0x9cc2e37e7259d7bb, 0x64b25e4c322438e4 } },
        { "iël",
          { 'i', 0xeb, 'l' },
          3,
          0x8721752a09e391b8,
          0xaa477bf2,
          { 0xcd2bd2e057e8ed1c, 0x5b831059ef2cf552 } },
    };
    uint64_t h[2];
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(tnf_ngram_hash_points(table[i].points, table[i].count), table[i].fnv64);
        assert_int_equal(tnf_ngram_hash_fasttext(table[i].text, strlen(table[i].text)),
                         table[i].fasttext);
        tnf_ngram_hash_murmur3(h, table[i].text, strlen(table[i].text), 2166136261u);
        assert_int_equal(h[0], table[i].murmur[0]);
        assert_int_equal(h[1], table[i].murmur[1]);
    }
    tnf_ngram_hash_murmur3(h, "", 0, 0);
    assert_true(h[0] == 0 && h[1] == 0);
    tnf_ngram_hash_murmur3(h, "hello", 5, 0);
    assert_true(h[0] == 0xcbd8a7b341bd9b02 && h[1] == 0x5b1e906a48ae1d19);
}

/* The fast way for small numbers gives the same hash as byte by byte. */
static void fnv_by_bytes(void **state)
{
    static const uint32_t points[] = { 0, 255, 256, 0x9a8c, 0x1f600, 'x' };
    uint8_t bytes[8 + 4 * 300];
    uint32_t many[300];
    (void)state;
    for (size_t i = 0; i < 300; i++)
        many[i] = points[i % 6];
    for (size_t count = 0; count <= 300; count++) {
        uint64_t h = 0xcbf29ce484222325u;
        for (size_t i = 0; i < 8; i++)
            bytes[i] = (uint8_t)((uint64_t)count >> 8 * i);
        for (size_t i = 0; i < 4 * count; i++)
            bytes[8 + i] = (uint8_t)(many[i / 4] >> 8 * (i % 4));
        for (size_t i = 0; i < 8 + 4 * count; i++)
            h = (h ^ bytes[i]) * 0x100000001b3u;
        assert_int_equal(tnf_ngram_hash_points(many, count), h);
    }
}

static tnf_status note_points(void *ctx, const tnf_ngram *g, tnf_error *e)
{
    struct seen *s = ctx;
    (void)e;
    for (size_t i = 0; i < g->count; i++)
        s->rows[s->n++] = g->points[i];
    return TNF_OK;
}

/* Each byte that is not valid UTF-8 is a character of its own. */
static void broken_text(void **state)
{
    struct seen s = { .n = 0 };
    tnf_error e;
    tnf_ngram_rule rule = { .min_n = 100, .max_n = 100, .whole = true };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    static const char word[] = "a\xc3"
                               "b\xed\xa0\x80\xf0\x9f\x98\x80\xf5\xe2\x82";
    static const uint64_t expected[] = { 'a',    0xfffd,  'b',    0xfffd, 0xfffd,
                                         0xfffd, 0x1f600, 0xfffd, 0xfffd, 0xfffd };
    (void)state;
    assert_ok(tnf_ngrams_each(&rule, TEXT(word), &a, note_points, &s, &e));
    assert_int_equal(s.n, sizeof expected / sizeof *expected);
    assert_memory_equal(s.rows, expected, sizeof expected);
}

static tnf_status count_only(void *ctx, const tnf_ngram *g, tnf_error *e)
{
    (void)g;
    (void)e;
    ++*(size_t *)ctx;
    return TNF_OK;
}

static void long_words(void **state)
{
    tnf_error e;
    tnf_ngram_rule rule = { .min_n = 3, .max_n = 6, .begin = TEXT("<"), .end = TEXT(">") };
    struct memory_log log = { .fail_at = 0 };
    tnf_allocator a = memory_allocator(&log);
    enum { LONG = 5000 };
    char *word = malloc(LONG);
    size_t n = 0;
    (void)state;
    memset(word, 'x', LONG);
    assert_ok(tnf_ngrams_each(&rule, (tnf_str) { word, LONG }, &a, count_only, &n, &e));
    assert_int_equal(n, 4 * (LONG + 2) - 2 - 3 - 4 - 5);
    assert_int_equal(log.blocks, 0);
    assert_int_equal(log.wrong_sizes, 0);
    rule.max_n = UINT32_MAX;
    assert_fails(tnf_ngrams_each(&rule, (tnf_str) { word, LONG }, &a, count_only, &n, &e),
                 TNF_ELIMIT);
    log.fail_at = log.calls + 1;
    rule.max_n = 6;
    assert_fails(tnf_ngrams_each(&rule, (tnf_str) { word, LONG }, &a, count_only, &n, &e),
                 TNF_ENOMEM);
    free(word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extracts_ngrams), cmocka_unit_test(bucket_rows),
        cmocka_unit_test(fasttext_rows),   cmocka_unit_test(hashes_of_ngrams),
        cmocka_unit_test(fnv_by_bytes),    cmocka_unit_test(broken_text),
        cmocka_unit_test(long_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
