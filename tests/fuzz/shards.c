/* SPDX-License-Identifier: MIT */
/* A directory for index files: it has two shards and the input as a file.
 *
 *   DIRECTORY/index.json      the input
 *   DIRECTORY/a.safetensors   w f32 [2,3], x i32 [2]
 *   DIRECTORY/b.safetensors   y f32 [4]
 */
#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[64];

static const char *path_inside(char path[96], const char *name)
{
    snprintf(path, 96, "%s/%s", directory, name);
    return path;
}

static void add_tensor(tnf_builder *b, const char *name, tnf_dtype type, uint32_t rank, uint64_t n,
                       uint64_t m)
{
    static const uint8_t bytes[64] = { 0, 0, 128, 63, 1, 2, 3, 4 };
    tnf_error error;
    uint64_t shape[2] = { n, m };
    FUZZ_REQUIRE(tnf_builder_add(b, name, tnf_type_of(type), rank, shape, bytes, &error) == TNF_OK,
                 "%s", error.message);
}

static void make_shard(const char *name, bool first)
{
    char path[96];
    tnf_error error;
    tnf_builder *b;
    tnf_save_options options = { .size = sizeof options, .format = "safetensors", .no_sync = true };
    FUZZ_REQUIRE(tnf_builder_new(&b, NULL, &error) == TNF_OK, "%s", error.message);
    if (first) {
        add_tensor(b, "w", TNF_F32, 2, 2, 3);
        add_tensor(b, "x", TNF_I32, 1, 2, 0);
    } else {
        add_tensor(b, "y", TNF_F32, 1, 4, 0);
    }
    FUZZ_REQUIRE(tnf_save(b, path_inside(path, name), &options, &error) == TNF_OK, "%s",
                 error.message);
    tnf_builder_free(b);
}

static void remove_directory(void)
{
    char path[96];
    unlink(path_inside(path, "index.json"));
    unlink(path_inside(path, "a.safetensors"));
    unlink(path_inside(path, "b.safetensors"));
    rmdir(directory);
}

static void make_directory(void)
{
    bool shm = access("/dev/shm", W_OK) == 0;
    snprintf(directory, sizeof directory, "%s/tenfold-fuzz-XXXXXX", shm ? "/dev/shm" : "/tmp");
    FUZZ_REQUIRE(mkdtemp(directory) != NULL, "cannot make %s", directory);
    atexit(remove_directory);
    make_shard("a.safetensors", true);
    make_shard("b.safetensors", false);
}

tnf_file *fuzz_open_among_shards(const void *bytes, size_t n, const char *format, bool lenient,
                                 tnf_status *status)
{
    char path[96];
    tnf_error error;
    tnf_file *file = NULL;
    tnf_open_options options = { .size = sizeof options, .format = format, .lenient = lenient };
    options.limits.memory = (uint64_t)256 << 20;
    if (!directory[0])
        make_directory();
    FILE *f = fopen(path_inside(path, "index.json"), "wb");
    FUZZ_REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "cannot write %s", path);
    *status = tnf_open(&file, path, &options, &error);
    fuzz_expect_honest(*status, &error);
    return *status == TNF_OK ? file : NULL;
}
