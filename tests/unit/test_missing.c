/* SPDX-License-Identifier: MIT */
/* A model with a missing file: it opens on request; existing tensors are read; errors for missing
 * ones name their file; the model is never treated as complete. */
#include "../support/unit.h"
/* after cmocka's */
#include "../support/files.h"
#include <tenfold/bind.h>
#include <tenfold/build.h>
#include <tenfold/diff.h>

#define HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}"
#define GONE   "gone-00002-of-00002.safetensors"

static const char *path_of(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", files_temp(), name);
    return path;
}

static void make_model(void)
{
    static const char index[] = "{\"metadata\":{\"total_size\":9},\"weight_map\":{"
                                "\"a\":\"there.safetensors\",\"x\":\"" GONE "\",\"y\":\"" GONE
                                "\"}}";
    uint8_t bytes[8 + sizeof HEADER + 1] = { sizeof HEADER - 1 };
    memcpy(bytes + 8, HEADER, sizeof HEADER - 1);
    memcpy(bytes + 8 + sizeof HEADER - 1, "ab", 2);
    bytes_to_file(path_of("there.safetensors"), bytes, sizeof bytes);
    bytes_to_file(path_of("m.json"), index, sizeof index - 1);
}

static tnf_file *open_incomplete(void)
{
    tnf_error e;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .incomplete = true };
    make_model();
    assert_ok(tnf_open(&file, path_of("m.json"), &o, &e));
    return file;
}

static void only_on_request(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
    make_model();
    assert_fails(tnf_open(&file, path_of("m.json"), NULL, &e), TNF_ENOTFOUND);
    assert_says(GONE);
    assert_fails(tnf_open(&file, path_of("m.json"), &lenient, &e), TNF_ENOTFOUND);
}

static void lists_what_is_there(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file = open_incomplete();
    const tnf_info *info = tnf_file_info(file);
    const tnf_object *a = tnf_find(file, "a"), *y = tnf_find(file, "y");
    uint8_t bytes[2];
    assert_int_equal(info->objects, 3);
    assert_int_equal(info->shards, 2);
    assert_int_equal(info->missing, 1);
    assert_int_equal(info->payload, 2);
    assert_int_equal(info->nwarnings, 1);
    assert_non_null(strstr(info->warnings[0].message, GONE));
    assert_null(tnf_missing_file(a));
    assert_null(tnf_missing_file(NULL));
    assert_ok(tnf_read(bytes, 2, a, &e));
    assert_memory_equal(bytes, "ab", 2);
    assert_string_equal(tnf_missing_file(y), GONE);
    assert_string_equal(tnf_layout_id(y->layout), "missing");
    assert_int_equal(y->nparts, 0);
    assert_int_equal(tnf_elements(y), 0);
    tnf_close(file);
}

/* In salvage, missing tensors are reported as lost. */
static void salvages_the_rest(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .incomplete = true, .salvage = true };
    make_model();
    assert_ok(tnf_open(&file, path_of("m.json"), &o, &e));
    assert_int_equal(tnf_file_info(file)->objects, 1);
    tnf_close(file);
}

static void not_read(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file = open_incomplete();
    const tnf_object *x = tnf_find(file, "x");
    tnf_slice slice = { 0, 1, 1, false };
    tnf_strings strings = TNF_STRINGS_INIT;
    uint8_t byte;
    assert_fails(tnf_read(&byte, 1, x, &e), TNF_ENOTFOUND);
    assert_says(GONE);
    assert_fails(tnf_read_slice(&byte, 1, x, &slice, &e), TNF_ENOTFOUND);
    assert_says(GONE);
    assert_fails(tnf_strings_map(&strings, x, &e), TNF_ENOTFOUND);
    assert_fails(tnf_read_part(&byte, 1, tnf_object_part(x, "data"), 0, &e), TNF_EINVAL);
    tnf_close(file);
}

static void count_problem(void *ctx, const tnf_problem *p)
{
    assert_int_equal(p->code, TNF_ENOTFOUND);
    assert_non_null(strstr(p->message, GONE));
    ++*(unsigned *)ctx;
}

static void no_whole(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file = open_incomplete();
    tnf_builder *b;
    tnf_diff_result diff = TNF_DIFF_RESULT_INIT;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    unsigned told = 0;
    tnf_verify_options how = { .size = sizeof how, .problem = count_problem, .ctx = &told };
    uint8_t hash[32];
    assert_fails(tnf_content_hash(hash, file, NULL, &e), TNF_ENOTFOUND);
    assert_says(GONE);
    assert_fails(tnf_diff(&diff, file, file, NULL, &e), TNF_ENOTFOUND);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_fails(tnf_builder_add_file(b, file, &e), TNF_ENOTFOUND);
    assert_says(GONE);
    assert_fails(tnf_builder_add_object(b, tnf_find(file, "x"), "z", &e), TNF_ENOTFOUND);
    tnf_builder_free(b);
    assert_ok(tnf_verify(&result, file, &how, &e));
    assert_int_equal(result.problems, 1);
    assert_int_equal(told, 1);
    assert_int_equal(result.checked, 1);
    tnf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_on_request),   cmocka_unit_test(lists_what_is_there),
        cmocka_unit_test(salvages_the_rest), cmocka_unit_test(not_read),
        cmocka_unit_test(no_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
