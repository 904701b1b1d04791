/* SPDX-License-Identifier: MIT */
/* Changes of embeddings by tnf_convert(): what is skipped and what is not. */
#include "emb_files.h"
#include <tenfold/convert.h>

static const float four[] = { 1, 0, 0, 1, 1, 1, 0, 2 };

/* Two words, and n-grams that have the rows 0 and 1; or one of them a row that there is not. */
static struct made explicit_words(bool damaged)
{
    static const uint64_t rows[] = { 0, 1 }, wrong[] = { 0, 99 };
    return (struct made) { .words = "ab|cd",
                           .ngrams = "<xy|yz>",
                           .index = damaged ? wrong : rows,
                           .rows = 4,
                           .dims = 2,
                           .values = four,
                           .vocab = "explicit",
                           .min_n = 3,
                           .max_n = 3 };
}

/* Selects words, and opens the new file unless that fails. */
static tnf_status select_words(struct opened *out, uint64_t *unknown, const struct made *m,
                               const tnf_str *words, size_t n, tnf_error *e)
{
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_convert_options how = TNF_CONVERT_INIT;
    tnf_report *report;
    struct opened from = open_made(m, NULL);
    const tnf_file *file = from.file;
    save.format = "ztensor2";
    *out = (struct opened) { 0 };
    assert_int_equal(tnf_sink_memory(&out->sink, e), TNF_OK);
    how.save = &save;
    how.sink = out->sink;
    how.step = TNF_EMB_SELECT;
    how.words = words;
    how.nwords = n;
    how.skip_unknown = true;
    tnf_status status = tnf_convert(&report, &file, 1, NULL, &how, e);
    *unknown = report ? report->unknown_words : 0;
    tnf_report_free(report);
    if (status == TNF_OK)
        open_bytes(out, tnf_sink_bytes(out->sink), NULL);
    close_opened(&from);
    return status;
}

static void skips_only_unknown_words(void **state)
{
    struct made good = explicit_words(false), bad = explicit_words(true);
    const tnf_str words[] = { TEXT("cd"), TEXT("nothing"), TEXT("xyz") };
    struct opened x;
    uint64_t unknown;
    tnf_error e;
    (void)state;
    assert_ok(select_words(&x, &unknown, &good, words, 3, &e));
    assert_int_equal(unknown, 1);
    assert_int_equal(tnf_emb_describe(x.emb)->words, 2);
    assert_true(tnf_emb_find(x.emb, words[0]) == 0 && tnf_emb_find(x.emb, words[2]) == 1);
    close_opened(&x);
    /* A word that the damage does not touch is selected; another one is not unknown. */
    assert_ok(select_words(&x, &unknown, &bad, words, 2, &e));
    close_opened(&x);
    assert_fails(select_words(&x, &unknown, &bad, words, 3, &e), TNF_EFORMAT);
    assert_says("has the row 99");
    close_opened(&x);
}

static void words_that_are_null(void **state)
{
    struct made m = explicit_words(false);
    const tnf_str words[] = { TEXT("ab"), { NULL, 3 } };
    struct opened x;
    uint64_t unknown;
    tnf_error e;
    (void)state;
    assert_fails(select_words(&x, &unknown, &m, NULL, 1, &e), TNF_EINVAL);
    assert_says("words");
    close_opened(&x);
    assert_fails(select_words(&x, &unknown, &m, words, 2, &e), TNF_EINVAL);
    assert_says("words");
    close_opened(&x);
    assert_ok(select_words(&x, &unknown, &m, words, 1, &e));
    close_opened(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skips_only_unknown_words),
        cmocka_unit_test(words_that_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
