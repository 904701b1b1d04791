/* SPDX-License-Identifier: MIT */
/* A view of embeddings that opens its file itself, and closes it. */
#include "../support/files.h"
#include "../support/unit.h"
#include <tenfold/emb.h>

static const char *write_text(const char *name, const char *text)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", files_temp(), name);
    bytes_to_file(path, text, strlen(text));
    return path;
}

static void owns_the_file(void **state)
{
    static const float want[] = { 3, 4 };
    const tnf_str b = TNF_STR("b");
    float got[2];
    tnf_emb *emb;
    tnf_error e;
    (void)state;
    const char *path = write_text("two.vec", "2 2\na 1 2\nb 3 4\n");
    assert_ok(tnf_emb_open_path(&emb, path, NULL, NULL, &e));
    assert_int_equal(tnf_emb_describe(emb)->words, 2);
    assert_int_equal(tnf_emb_find(emb, b), 1);
    assert_ok(tnf_emb_row(got, emb, 1, &e));
    assert_memory_equal(got, want, sizeof want);
    tnf_emb_close(emb);
}

static void passes_options_on(void **state)
{
    tnf_emb *emb;
    tnf_error e;
    tnf_open_options how = TNF_OPEN_INIT;
    tnf_emb_options options = TNF_EMB_INIT;
    (void)state;
    const char *path = write_text("two.txt", "2 2\na 1 2\nb 3 4\n");
    how.format = "safetensors";
    assert_int_not_equal(tnf_emb_open_path(&emb, path, &how, NULL, &e), TNF_OK);
    assert_null(emb);
    how.format = "textdims";
    options.no_index = true;
    assert_ok(tnf_emb_open_path(&emb, path, &how, &options, &e));
    assert_true(tnf_emb_find(emb, (tnf_str)TNF_STR("b")) == TNF_NO_ROW);
    tnf_emb_close(emb);
    options.embeddings = "no such";
    assert_fails(tnf_emb_open_path(&emb, path, &how, &options, &e), TNF_ENOTFOUND);
    assert_null(emb);
    assert_fails(tnf_emb_open_path(&emb, "/nowhere.vec", NULL, NULL, &e), TNF_ENOTFOUND);
    assert_null(emb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owns_the_file),
        cmocka_unit_test(passes_options_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
