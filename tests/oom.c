/* SPDX-License-Identifier: MIT */
/* The n-th allocation fails, for every n (under a sanitizer, for one of fifteen): while opening,
 * listing and verifying every fixture and, for every second n, while saving it in every format that
 * can be written (under a sanitizer, in a third of them). The result is TNF_ENOMEM or success each
 * time; nothing leaks, no block is freed with a wrong size, and no incomplete file is left. */
#include "support/files.h"
#include "support/memory.h"
#include "support/open.h"

#ifndef MANY
#define MANY 3000u /* allocations: no small file needs more */
#define STEP 1u    /* every STEP-th one fails; with each file, the first one is another */
#endif

static unsigned long opens, saves;

static uint64_t failure_step(void)
{
    return STEP * check_share(15);
}

/* Fixtures share most of the code that saves them, so allocations that are left out with one are
 * tried with the next ones. */
static uint64_t save_step(void)
{
    return failure_step() > 1 || getenv("TNF_FULL") ? failure_step() : 2;
}

/* The count of attempts serves as a random number. */
static uint64_t first_of(unsigned long tried, uint64_t step)
{
    return 1 + tried % step;
}

/* Fills an error with a pattern, so that an error that nobody sets is detected, and no status of
 * the previous run is left. */
static tnf_error untouched_error(void)
{
    tnf_error error;
    memset(&error, 0xaa, sizeof error);
    return error;
}

static void check_log(const struct memory_log *log)
{
    CHECK(log->blocks == 0, "%llu blocks of %llu bytes are lost", (unsigned long long)log->blocks,
          (unsigned long long)log->live);
    CHECK(log->wrong_sizes == 0, "%llu blocks were freed under a wrong size",
          (unsigned long long)log->wrong_sizes);
}

static void check_status(tnf_status status, const struct memory_log *log, const tnf_error *error)
{
    check_error(status, error);
    CHECK(status == TNF_OK || status == TNF_ENOMEM, "%s: %s", tnf_status_name(status),
          error->message);
    CHECK(status == TNF_OK || log->failed > 0, "TNF_ENOMEM, but memory was there");
}

/* For an index, its directory is opened. */
static const char *path_to_open(const struct fixture *f, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", f->path);
    if (is_index(f->path))
        *strrchr(buffer, '/') = 0;
    return buffer;
}

/* -------------------------------------------------------------------- open */

/* Returns true if nothing failed, since all allocations were made. */
static bool open_failing(const struct fixture *f, uint64_t n, bool once, size_t objects)
{
    struct memory_log log = { .fail_at = n, .fail_once = once };
    tnf_error error = untouched_error();
    tnf_file *file;
    char path[4096];
    tnf_open_options o = { .size = sizeof o, .lenient = true, .allocator = memory_allocator(&log) };
    check_doing("%s: open, allocation %llu%s", f->label, (unsigned long long)n,
                once ? " alone" : " and all after it");
    tnf_status status = tnf_open(&file, path_to_open(f, path, sizeof path), &o, &error);
    check_status(status, &log, &error);
    opens++;
    if (status == TNF_OK) {
        tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
        CHECK(tnf_file_info(file)->objects == objects, "%zu tensors of %zu",
              tnf_file_info(file)->objects, objects);
        eat_listing(file);
        status = tnf_verify(&result, file, NULL, &error);
        check_status(status, &log, &error);
        tnf_close(file);
    } else {
        CHECK(file == NULL, "a handle in spite of the failure");
    }
    check_log(&log);
    return log.failed == 0;
}

static void try_open(const struct fixture *f)
{
    tnf_error error;
    tnf_file *file;
    char path[4096];
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    check_doing("%s", f->label);
    if (!CHECK(tnf_open(&file, path_to_open(f, path, sizeof path), &o, &error) == TNF_OK, "%s",
               error.message))
        return;
    size_t objects = tnf_file_info(file)->objects;
    tnf_close(file);
    for (int once = 0; once < 2; once++) {
        uint64_t n = first_of(opens, failure_step());
        while (n < MANY && !open_failing(f, n, once, objects))
            n += failure_step();
        CHECK(n < MANY, "it never comes to an end");
    }
}

/* -------------------------------------------------------------------- save */

static tnf_status save_with(const tnf_file *file, const char *format, const char *path,
                            const tnf_allocator *a, tnf_error *error)
{
    tnf_builder *b;
    tnf_save_options o = {
        .size = sizeof o, .format = format, .no_sync = true, .allow_loss = true
    };
    tnf_status status = tnf_builder_new(&b, a, error);
    if (status != TNF_OK)
        return status;
    status = tnf_builder_add_file(b, file, error);
    if (status == TNF_OK)
        status = tnf_save(b, path, &o, error);
    tnf_builder_free(b);
    return status;
}

static bool save_failing(const struct fixture *f, const tnf_file *file, const char *format,
                         uint64_t n, bool once)
{
    struct memory_log log = { .fail_at = n, .fail_once = once };
    tnf_error error = untouched_error();
    tnf_allocator a = memory_allocator(&log);
    char path[600], dir[300];
    snprintf(dir, sizeof dir, "%s/out", files_temp());
    snprintf(path, sizeof path, "%s/file", dir);
    check_doing("%s: save as %s, allocation %llu%s", f->label, format, (unsigned long long)n,
                once ? " alone" : " and all after it");
    tnf_status status = save_with(file, format, path, &a, &error);
    check_status(status, &log, &error);
    check_log(&log);
    saves++;
    size_t left = files_count(dir, "");
    CHECK(left == (status == TNF_OK ? 1 : 0), "%zu files are there after %s", left,
          tnf_status_name(status));
    unlink(path);
    return log.failed == 0;
}

static void try_save(const struct fixture *f)
{
    tnf_error error;
    tnf_file *file;
    char path[4096];
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    if (tnf_open(&file, path_to_open(f, path, sizeof path), &o, &error) != TNF_OK)
        return; /* already reported */
    for (size_t i = first_of(saves, failure_step()) % check_share(3); writable_format(i);
         i += check_share(3)) {
        tnf_status status;
        check_doing("%s", f->label);
        tnf_sink *sink = save_bytes(file, writable_format(i), true, &status, &error);
        tnf_sink_close(sink);
        for (int once = 0; sink && once < 2; once++) {
            uint64_t n = first_of(saves, save_step());
            while (n < MANY && !save_failing(f, file, writable_format(i), n, once))
                n += save_step();
            CHECK(n < MANY, "it never comes to an end");
        }
    }
    tnf_close(file);
}

int main(void)
{
    char dir[300];
    snprintf(dir, sizeof dir, "%s/out", files_temp());
    MUST(mkdir(dir, 0700) == 0);
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i++) {
        try_open(&fixtures.list[i]);
        try_save(&fixtures.list[i]);
    }
    printf("%zu files: opened %lu times, saved %lu times\n", fixtures.n, opens, saves);
    return check_end("oom");
}
