/* SPDX-License-Identifier: MIT */
/* Every fixture is split into small files. The files, opened by their index, have the same content
 * hash, and so has the file that they are merged to. If a process is killed while it splits, there
 * is no index, or one of a complete model. */
#include "support/model.h"
#include "support/moments.h"
#include <signal.h>
#include <sys/wait.h>
#include <tenfold/shards.h>

static unsigned splits, refused;
static char dir[300];

static void remove_directory(const char *path)
{
    nftw(path, files_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static tnf_builder *builder_of(const tnf_file *file)
{
    tnf_builder *b;
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    MUST(tnf_builder_add_file(b, file, NULL) == TNF_OK);
    return b;
}

static void check_hash(const tnf_file *file, const uint8_t expected[32])
{
    uint8_t hash[32];
    tnf_error error = { 0 };
    tnf_hash_options one = { .size = sizeof one, .threads = 1 };
    tnf_status status = tnf_content_hash(hash, file, &one, &error);
    CHECK(status == TNF_OK && memcmp(hash, expected, 32) == 0, "another content hash (%s %s)",
          tnf_status_name(status), error.message);
}

/* Opens leniently, since some fixtures have tensors that strict readers refuse. */
static tnf_file *open_lenient(const char *path)
{
    tnf_file *file = NULL;
    tnf_error error = { 0 };
    tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
    tnf_status status = tnf_open(&file, path, &lenient, &error);
    CHECK(status == TNF_OK, "%s: %s", path, error.message);
    return file;
}

static void check_merged(const tnf_file *whole, const char *format, const uint8_t hash[32])
{
    tnf_builder *b;
    tnf_error error = { 0 };
    char path[400];
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    tnf_status status = tnf_builder_merge(b, &whole, NULL, 1, NULL, &error);
    snprintf(path, sizeof path, "%s/merged", dir);
    tnf_save_options how = { .size = sizeof how, .format = format, .no_sync = true };
    if (status == TNF_OK)
        status = tnf_save(b, path, &how, &error);
    if (CHECK(status == TNF_OK, "merging: %s", error.message)) {
        tnf_file *file = open_lenient(path);
        if (file)
            check_hash(file, hash);
        tnf_close(file);
    }
    tnf_builder_free(b);
}

static void check_split(const tnf_file *file, const char *format, const uint8_t hash[32])
{
    tnf_error error = { 0 };
    tnf_save_options fast = { .size = sizeof fast, .no_sync = true };
    tnf_split_options how = { .size = sizeof how, .format = format, .max_bytes = 16 };
    how.save = &fast;
    tnf_builder *b = builder_of(file);
    tnf_status status = tnf_split(b, dir, &how, &error);
    check_error(status, &error);
    tnf_builder_free(b);
    if (status == TNF_OK) {
        splits++;
        tnf_file *whole = open_lenient(dir);
        if (whole) {
            check_hash(whole, hash);
            check_merged(whole, format, hash);
        }
        tnf_close(whole);
    } else {
        refused++;
        CHECK(status == TNF_ELOSSY || status == TNF_EUNSUPPORTED || status == TNF_EINVAL, "%s: %s",
              tnf_status_name(status), error.message);
        CHECK(access(dir, F_OK) != 0, "the directory is still there");
    }
    remove_directory(dir);
}

static void fixtures_of_all_formats(void)
{
    static const char *const formats[] = { "safetensors", "ztensor2" };
    tnf_hash_options one = { .size = sizeof one, .threads = 1 };
    fixtures_find(TNF_TESTS_DIR "/formats", "/valid/");
    MUST(fixtures.n > 0);
    for (size_t i = 0; i < fixtures.n; i++) {
        tnf_file *file;
        uint8_t hash[32];
        tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
        if (tnf_open(&file, fixtures.list[i].path, &lenient, NULL) != TNF_OK)
            continue;
        if (tnf_content_hash(hash, file, &one, NULL) == TNF_OK)
            for (size_t k = 0; k < 2; k++) {
                check_doing("%s to %s", fixtures.list[i].label, formats[k]);
                check_split(file, formats[k], hash);
            }
        tnf_close(file);
    }
    printf("%u split, %u refused\n", splits, refused);
    CHECK(splits > 100, "only %u were split", splits);
}

/* -------------------------------------------------------------------- kill */

#define MOMENTS 60
#define TENSORS 6u

static uint8_t data[TENSORS][100000];

static tnf_builder *large_model(void)
{
    tnf_builder *b;
    uint64_t n = sizeof data[0];
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    for (unsigned i = 0; i < TENSORS; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%u", i);
        memset(data[i], (int)i + 1, sizeof data[i]);
        MUST(tnf_builder_add(b, name, tnf_type_of(TNF_U8), 1, &n, data[i], NULL) == TNF_OK);
    }
    return b;
}

static pid_t start_splitting(const tnf_builder *b, const char *format)
{
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        tnf_save_options force = { .size = sizeof force, .replace = true };
        tnf_split_options how = { .size = sizeof how, .format = format, .save = &force };
        how.max_bytes = sizeof data[0];
        _exit(tnf_split(b, dir, &how, NULL) == TNF_OK ? 0 : 1);
    }
    return child;
}

static void kill_while_splitting(const char *format, const char *index, bool over_old)
{
    unsigned whole = 0, none = 0;
    char path[400];
    int status;
    tnf_builder *b = large_model();
    remove_directory(dir);
    double from = seconds_now();
    MUST(waitpid(start_splitting(b, format), &status, 0) > 0 && status == 0);
    double longest = seconds_now() - from;
    snprintf(path, sizeof path, "%s/%s", dir, index);
    for (int i = 0; i < MOMENTS || (whole == 0 && i < MOMENTS + MORE_MOMENTS); i++) {
        check_doing("%s%s, killed at moment %d", format, over_old ? " over an old one" : "", i);
        if (!over_old)
            remove_directory(dir);
        pid_t child = start_splitting(b, format);
        wait_for(moment_at(i, MOMENTS, longest));
        kill(child, SIGKILL);
        MUST(waitpid(child, &status, 0) == child);
        if (access(path, F_OK) != 0) {
            none++;
            CHECK(over_old || access(dir, F_OK) != 0, "a directory without its index");
            continue;
        }
        whole++;
        tnf_file *file = open_lenient(path);
        CHECK(file && tnf_file_info(file)->objects == TENSORS, "not all of it");
        tnf_close(file);
    }
    printf("%s: %u times a whole model, %u times none\n", format, whole, none);
    CHECK(whole > 0 && (none > 0 || over_old), "it was never %s",
          none > 0 ? "done" : "interrupted");
    tnf_builder_free(b);
    remove_directory(dir);
}

int main(void)
{
    snprintf(dir, sizeof dir, "%s/split", files_temp());
    fixtures_of_all_formats();
    kill_while_splitting("safetensors", "model.safetensors.index.json", false);
    kill_while_splitting("safetensors", "model.safetensors.index.json", true);
    kill_while_splitting("ztensor2", "model.zt", false);
    return check_end("splits");
}
