/* SPDX-License-Identifier: MIT */
/* Several matrices in a finalfusion file: each as embeddings of its own, and what the writer
 * refuses. tests/formats/finalfusion has the content of each fixture; tests/cli/cases/groups has
 * queries. */
#include "../support/memory.h"
#include "gptrs_files.h"

#include <tenfold/emb.h>

#define FORMAT "finalfusion"

/* Six groups: bucket with norms, simple, explicit, fastText, floret, and one with floret's. */
static tnf_file *open_six(bytes *file)
{
    *file = load_fixture(FORMAT, "valid", "groups_pairs.fifu");
    return must_open(file);
}

static tnf_status open_group(tnf_emb **emb, const tnf_file *f, const char *name, const char *vocab,
                             const tnf_allocator *a, tnf_error *e)
{
    tnf_emb_options o = { .size = sizeof o, .embeddings = name, .vocab = vocab, .threads = 1 };
    if (a)
        o.allocator = *a;
    return tnf_emb_open(emb, f, &o, e);
}

static void each_group_is_a_file(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tnf_subwords subwords;
        uint64_t words, rows, buckets;
        uint32_t min_n, max_n;
        size_t dims;
        bool norms;
    } want[] = {
        { NULL, TNF_SUBWORDS_BUCKET, 4, 8, 4, 3, 6, 2, true },
        { "1/embeddings", TNF_SUBWORDS_BUCKET, 4, 8, 4, 3, 6, 2, true },
        { "2/embeddings", TNF_SUBWORDS_NONE, 2, 2, 0, 0, 0, 3, false },
        { "3/embeddings", TNF_SUBWORDS_EXPLICIT, 4, 7, 3, 2, 3, 1, false },
        { "4/embeddings", TNF_SUBWORDS_FASTTEXT, 2, 7, 5, 3, 6, 2, false },
        { "5/embeddings", TNF_SUBWORDS_FLORET, 0, 4, 4, 3, 6, 4, false },
        { "6/embeddings", TNF_SUBWORDS_FLORET, 0, 4, 4, 3, 6, 5, false },
    };
    bytes file;
    tnf_file *f = open_six(&file);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        tnf_emb *emb;
        tnf_error e;
        if (open_group(&emb, f, want[i].name, NULL, NULL, &e) != TNF_OK)
            fail_msg("%s", e.message);
        const tnf_emb_info *got = tnf_emb_describe(emb);
        assert_int_equal(got->subwords, want[i].subwords);
        assert_int_equal(got->words, want[i].words);
        assert_int_equal(got->rows, want[i].rows);
        assert_int_equal(got->buckets, want[i].buckets);
        assert_int_equal(got->min_n, want[i].min_n);
        assert_int_equal(got->max_n, want[i].max_n);
        assert_int_equal(got->dims, want[i].dims);
        assert_int_equal(got->has_norms, want[i].norms);
        tnf_emb_close(emb);
    }
    tnf_close(f);
    free(file.p);
}

static void names_of_no_group(void **state)
{
    (void)state;
    static const char *const names[] = { "7/embeddings",
                                         "02/embeddings",
                                         "0/embeddings",
                                         "/embeddings",
                                         "2/embedding",
                                         "2/embeddings/",
                                         "99999999999999/embeddings",
                                         "1/vocab" };
    bytes file;
    tnf_file *f = open_six(&file);
    tnf_emb *emb;
    tnf_error e;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(open_group(&emb, f, names[i], NULL, NULL, &e), TNF_ENOTFOUND);
    /* With a vocabulary of its own, the name is that of any matrix: here four words for two rows.
     */
    assert_int_equal(open_group(&emb, f, "2/embeddings", "vocab", NULL, &e), TNF_EFORMAT);
    assert_int_equal(open_group(&emb, f, "4/embeddings", "2/vocab", NULL, &e), TNF_OK);
    assert_int_equal(tnf_emb_describe(emb)->words, 2);
    tnf_emb_close(emb);
    tnf_close(f);
    free(file.p);
    file = load_fixture(FORMAT, "valid", "simple_dense.fifu"); /* it has no groups */
    f = must_open(&file);
    assert_int_equal(open_group(&emb, f, "1/embeddings", NULL, NULL, &e), TNF_ENOTFOUND);
    tnf_close(f);
    free(file.p);
}

static void allocations_fail(void **state)
{
    (void)state;
    bytes file;
    tnf_file *f = open_six(&file);
    for (uint64_t n = 1;; n++) {
        struct memory_log log = { .fail_at = n };
        const tnf_allocator a = memory_allocator(&log);
        tnf_emb *emb = NULL;
        tnf_error e;
        tnf_status status = open_group(&emb, f, "3/embeddings", NULL, &a, &e);
        assert_true(status == TNF_OK || status == TNF_ENOMEM);
        tnf_emb_close(emb);
        assert_int_equal(log.blocks, 0);
        assert_int_equal(log.wrong_sizes, 0);
        if (log.failed == 0)
            break;
    }
    tnf_close(f);
    free(file.p);
}

/* The file without the tensor `without`; `named` replaces the name of the tensor `old`. */
static tnf_builder *changed_copy(const tnf_file *f, const char *without, const char *old,
                                 const char *named)
{
    tnf_builder *b;
    tnf_error e;
    const tnf_object *o;
    const tnf_value *attrs = tnf_file_info(f)->attrs;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    for (size_t i = 0; (o = tnf_at(f, i)); i++)
        if (strcmp(o->name.p, without) != 0)
            assert_int_equal(
                tnf_builder_add_object(b, o, old && !strcmp(o->name.p, old) ? named : NULL, &e),
                TNF_OK);
    for (size_t i = 0; i < attrs->n; i++)
        assert_int_equal(
            tnf_builder_set_n(b, NULL, attrs->as.members[i].key, &attrs->as.members[i].value, &e),
            TNF_OK);
    return b;
}

/* The dropped tensors of a plan, and the reason of the last one. */
struct dropped {
    char names[512], why[256];
};

static void note_dropped(void *ctx, const tnf_plan_item *item)
{
    struct dropped *d = ctx;
    if (item->fate != TNF_DROPPED || strcmp(item->kind, "tensor") != 0)
        return;
    size_t n = strlen(d->names);
    snprintf(d->names + n, sizeof d->names - n, "%.*s ", (int)item->name.n, item->name.p);
    snprintf(d->why, sizeof d->why, "%s", item->reason);
}

static void groups_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *without, *old, *named, *dropped, *why;
    } cases[] = {
        { "", NULL, NULL, "", "" },
        { "6/embeddings", NULL, NULL, "", "" }, /* the last one */
        { "4/embeddings", NULL, NULL, "4/vocab 5/embeddings 6/embeddings ", "a gap" },
        { "4/vocab", NULL, NULL, "4/embeddings 5/embeddings 6/embeddings ",
          "missing or incomplete" },
        { "2/vocab", NULL, NULL,
          "2/embeddings 3/vocab 3/ngrams 3/ngrams.index 3/embeddings 4/vocab 4/embeddings "
          "5/embeddings 6/embeddings ",
          "the number of rows" },
        { "3/ngrams", NULL, NULL,
          "3/vocab 3/ngrams.index 3/embeddings 4/vocab 4/embeddings 5/embeddings 6/embeddings ",
          "saved as simple" },
        { "vocab", NULL, NULL,
          "2/vocab 2/embeddings 3/vocab 3/ngrams 3/ngrams.index 3/embeddings 4/vocab 4/embeddings "
          "5/embeddings 6/embeddings ",
          "the first group" },
        { "", "6/embeddings", "9/embeddings", "9/embeddings ", "a gap" },
        { "norms", "6/embeddings", "06/embeddings", "06/embeddings ", "holds only" },
    };
    bytes file;
    tnf_file *f = open_six(&file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dropped d = { "", "" };
        tnf_builder *b = changed_copy(f, cases[i].without, cases[i].old, cases[i].named);
        const tnf_save_options o = { .size = sizeof o,
                                     .format = FORMAT,
                                     .dry_run = true,
                                     .plan = note_dropped,
                                     .ctx = &d,
                                     .as_is = true };
        tnf_status status = tnf_save_sink(b, NULL, &o, NULL);
        assert_true(status == TNF_OK || status == TNF_ELOSSY);
        assert_string_equal(d.names, cases[i].dropped);
        if (!strstr(d.why, cases[i].why))
            fail_msg("%s", d.why);
        tnf_builder_free(b);
    }
    tnf_close(f);
    free(file.p);
}

/* In the order of names, as other formats sort them. */
static void order_of_the_tensors_does_not_matter(void **state)
{
    (void)state;
    bytes file;
    tnf_file *f = open_six(&file);
    tnf_builder *b;
    tnf_error e;
    size_t n = 0;
    const tnf_value *attrs = tnf_file_info(f)->attrs;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    while (tnf_at(f, n))
        n++;
    for (size_t i = n; i-- > 0;)
        assert_int_equal(tnf_builder_add_object(b, tnf_at(f, i), NULL, &e), TNF_OK);
    for (size_t i = 0; i < attrs->n; i++)
        assert_int_equal(
            tnf_builder_set_n(b, NULL, attrs->as.members[i].key, &attrs->as.members[i].value, &e),
            TNF_OK);
    bytes out = { 0 };
    if (save_builder(&out, b, FORMAT, NULL, &e) != TNF_OK)
        fail_msg("%s", e.message);
    assert_same_bytes(&out, &file, "reversed");
    free(out.p);
    tnf_builder_free(b);
    tnf_close(f);
    free(file.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_group_is_a_file),
        cmocka_unit_test(names_of_no_group),
        cmocka_unit_test(allocations_fail),
        cmocka_unit_test(groups_that_do_not_fit),
        cmocka_unit_test(order_of_the_tensors_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
