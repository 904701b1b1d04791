/* SPDX-License-Identifier: MIT */
/* A directory is opened as the model in it. */
#include "../support/files.h"
#include "../support/unit.h"
#include "core/core.h"

static char dir[300];
static tnf_arena arena;

static int set_up(void **state)
{
    static int n;
    (void)state;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &a, UINT64_MAX);
    snprintf(dir, sizeof dir, "%s/%d", files_temp(), n++);
    return mkdir(dir, 0700);
}

static int tear_down(void **state)
{
    (void)state;
    tnf_arena_free(&arena);
    return 0;
}

static void put_file(const char *name)
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
    put_file("README.md");
    put_file(".hidden.gten");
    put_file("config.json");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_ENOTFOUND);
    assert_says("no tensor file");
    assert_fails(tnf_directory_model(&out, "/nonexistent", &arena, &e), TNF_ENOTFOUND);
}

static void one_tensor_file(void **state)
{
    (void)state;
    put_file("README.md");
    put_file("weights.gten");
    assert_found("weights.gten");
}

static void several_tensor_files(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put_file("a.gten");
    put_file("b.gten");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    assert_says("2 tensor files");
}

static void put_text(const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    bytes_to_file(path, text, strlen(text));
}

static void a_file_says_which_checkpoint(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put_file("ckpt-1.index");
    put_file("ckpt-2.index");
    put_file("ckpt-3.index");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    put_text("checkpoint", "# made by hand\nlast_preserved_timestamp: 17.5\n"
                           "model_checkpoint_path: \"ckpt-2\"\n"
                           "all_model_checkpoint_paths: \"ckpt-1\"\n"
                           "all_model_checkpoint_paths: 'ckpt-2'\n");
    assert_found("ckpt-2.index");
    put_text("checkpoint", "model_checkpoint_path: \"/home/me/\\143kpt\\x2d3\" # its end");
    assert_found("ckpt-3.index");
    put_file("model.gten"); /* the file "checkpoint" does not mention it */
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
}

static void a_file_names_a_checkpoint_badly(void **state)
{
    static const char *const out_of_it[] = { "../ckpt-1", "sub/../../ckpt-1", "", "a\\000b",
                                             "/",         "C:ckpt-1" };
    static const char *const no_such_file[] = { "model_checkpoint_path", "\x82\xa5model", "a b: 1",
                                                "model_checkpoint_path: 17",
                                                "model_checkpoint_path: \"ckpt-1" };
    (void)state;
    tnf_error e;
    char *out, text[100];
    put_file("ckpt-1.index");
    for (size_t i = 0; i < sizeof out_of_it / sizeof *out_of_it; i++) {
        snprintf(text, sizeof text, "model_checkpoint_path: \"%s\"", out_of_it[i]);
        put_text("checkpoint", text);
        if (!out_of_it[i][0]) { /* without a name, the file "checkpoint" is ignored */
            assert_found("ckpt-1.index");
            continue;
        }
        assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EFORMAT);
        assert_says("points outside");
    }
    put_text("checkpoint", "model_checkpoint_path: \"ckpt-9\"");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_ENOTFOUND);
    assert_says("'ckpt-9.index', which does not exist");
    for (size_t i = 0; i < sizeof no_such_file / sizeof *no_such_file; i++) {
        put_text("checkpoint", no_such_file[i]);
        assert_found("ckpt-1.index");
    }
}

/* Steps of a training: they are listed in order. */
static void a_folder_of_checkpoints(void **state)
{
    static const char *const steps[] = { "9", "100", "1000", "20", "3", "4", "5" };
    (void)state;
    tnf_error e;
    char *out, path[400];
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, steps[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/_CHECKPOINT_METADATA", steps[i]);
        put_file(path);
        if (i == 1) {
            assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
            assert_says("contains 2 directories with a checkpoint (9, 100): open one of them");
        }
    }
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    assert_says("contains 7 directories with a checkpoint (3, 4, 5, 9, 20, ... 1000)");
    put_file("model.gten");
    assert_found("model.gten");
}

static void a_variant_comes_after_the_model(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put_file("model.fp16-00001-of-00002.safetensors");
    put_file("config.index.fp16.txt");
    put_file("index.fp16.json"); /* of an unknown format */
    put_file("model.index..json");
    put_file(".index.fp16.json");
    assert_found("model.fp16-00001-of-00002.safetensors");
    put_file("model.safetensors.index.fp16.json");
    assert_found("model.safetensors.index.fp16.json");
    put_file("model.safetensors.index.bf16.json");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    assert_says("2 indexes");
    put_file("other.safetensors.index.json");
    assert_found("other.safetensors.index.json");
}

static void an_index_goes_first(void **state)
{
    (void)state;
    put_file("a.gten");
    put_file("b.gten");
    put_file("m.index.json");
    assert_found("m.index.json");
}

static void several_indexes(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put_file("a.index.json");
    put_file("b.index.json");
    assert_fails(tnf_directory_model(&out, dir, &arena, &e), TNF_EINVAL);
    assert_says("2 indexes");
    put_file("model.safetensors.index.json"); /* the usual name */
    assert_found("model.safetensors.index.json");
    put_file("c.index.json");
    put_file("zz.index.json");
    assert_found("model.safetensors.index.json");
}

static void no_memory(void **state)
{
    (void)state;
    tnf_error e;
    char *out;
    put_file("a.gten");
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena none;
    tnf_arena_init(&none, &a, 10);
    assert_fails(tnf_directory_model(&out, dir, &none, &e), TNF_ELIMIT);
    tnf_arena_free(&none);
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_DIR(nothing_in_it),
        IN_DIR(one_tensor_file),
        IN_DIR(several_tensor_files),
        IN_DIR(an_index_goes_first),
        IN_DIR(several_indexes),
        IN_DIR(no_memory),
        IN_DIR(a_variant_comes_after_the_model),
        IN_DIR(a_file_says_which_checkpoint),
        IN_DIR(a_folder_of_checkpoints),
        IN_DIR(a_file_names_a_checkpoint_badly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
