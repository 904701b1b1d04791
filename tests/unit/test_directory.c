/* SPDX-License-Identifier: MIT */
/* A directory stands for the model in it. */
#include "../support/files.h"
#include "../support/unit.h"
#include "core/core.h"

static char dir[300];
static tnf_arena arena;

static int begin(void **state)
{
    static int n;
    (void)state;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &a, UINT64_MAX);
    snprintf(dir, sizeof dir, "%s/%d", files_temp(), n++);
    return mkdir(dir, 0700);
}

static int end(void **state)
{
    (void)state;
    tnf_arena_free(&arena);
    return 0;
}

static void put(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    bytes_to_file(path, "x", 1);
}

static void assert_found(const char *name)
{
    tnf_error e;
    char *out = NULL, want[400];
    snprintf(want, sizeof want, "%s/%s", dir, name);
    assert_ok(tnf_directory_model(&out, dir, &arena, &e));
    assert_string_equal(out, want);
}

static void nothing_in_it(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_ENOTFOUND);
    put("README.md");
    put(".hidden.gten");
    put("config.json");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_ENOTFOUND);
    assert_says("no tensor file");
    assert_fails(tnf_directory_model(&out, "/nonexistent", &arena, &e), TNF_ENOTFOUND);
}

static void one_tensor_file(void **state)
{
    (void)state;
    put("README.md");
    put("weights.gten");
    assert_found("weights.gten");
}

static void several_tensor_files(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put("a.gten");
    put("b.gten");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    assert_says("2 tensor files");
}

static void a_variant_comes_after_the_model(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put("model.fp16-00001-of-00002.safetensors");
    put("config.index.fp16.txt");
    put("index.fp16.json"); /* of what? */
    put("model.index..json");
    put(".index.fp16.json");
    assert_found("model.fp16-00001-of-00002.safetensors");
    put("model.safetensors.index.fp16.json");
    assert_found("model.safetensors.index.fp16.json");
    put("model.safetensors.index.bf16.json");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    assert_says("2 indexes");
    put("other.safetensors.index.json");
    assert_found("other.safetensors.index.json");
}

static void an_index_goes_first(void **state)
{
    (void)state;
    put("a.gten");
    put("b.gten");
    put("m.index.json");
    assert_found("m.index.json");
}

static void several_indexes(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put("a.index.json");
    put("b.index.json");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    assert_says("2 indexes");
    put("model.safetensors.index.json"); /* the one everybody means */
    assert_found("model.safetensors.index.json");
    put("c.index.json");
    put("zz.index.json");
    assert_found("model.safetensors.index.json");
}

static void no_memory(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put("a.gten");
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena none;
    tnf_arena_init(&none, &a, 10);
    assert_fails(tnf_directory_model(&out, dir, &none, &e), TNF_ELIMIT);
    tnf_arena_free(&none);
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        IN_DIR(nothing_in_it),
        IN_DIR(one_tensor_file),
        IN_DIR(several_tensor_files),
        IN_DIR(an_index_goes_first),
        IN_DIR(several_indexes),
        IN_DIR(no_memory),
        IN_DIR(a_variant_comes_after_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
