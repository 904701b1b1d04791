/* SPDX-License-Identifier: MIT */
/* Every status is returned by some call of the public functions, with a message. The library itself
 * has no reason to return TNF_ENET or TNF_EBUG here, so the back-end of a caller returns them, and
 * they are passed on unchanged. */
#include "core/core.h"
#include "support/check.h"
#include "support/files.h"
#include "support/memory.h"
#include <tenfold/build.h>

static bool raised[32];

static void note_status(const char *what, tnf_status status, const tnf_error *error,
                        tnf_status expected)
{
    check_doing("%s", what);
    CHECK(status == expected, "%s instead of %s: %s", tnf_status_name(status),
          tnf_status_name(expected), status == TNF_OK ? "" : error->message);
    if (status != TNF_OK) {
        CHECK(error->status == status, "the error says %s", tnf_status_name(error->status));
        CHECK(error->message[0] != 0, "no sentence");
    }
    if (status == expected)
        raised[-status] = true;
}

static tnf_status answer_as_told(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    (void)dst, (void)n;
    tnf_status status = *(tnf_status *)ctx;
    if (error) {
        *error = (tnf_error) { .status = status, .offset = offset, .message = "as told" };
    }
    return status;
}

static tnf_status fetch_zeros(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    (void)ctx, (void)offset, (void)error;
    memset(dst, 0, n);
    return TNF_OK;
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    return false;
}

static void open_some(void)
{
    tnf_error e;
    tnf_file *f;
    tnf_source *s;
    struct memory_log log = { .fail_at = 1 };
    tnf_open_options o = { .size = sizeof o, .allocator = memory_allocator(&log) };
    note_status("open without memory", tnf_open(&f, "/dev/null", &o, &e), &e, TNF_ENOMEM);
    note_status("open what is not there", tnf_open(&f, "/nonexistent", NULL, &e), &e,
                TNF_ENOTFOUND);
    note_status("open a device", tnf_open(&f, "/dev/null", NULL, &e), &e, TNF_EINVAL);
    char loop[400];
    snprintf(loop, sizeof loop, "%s/loop", files_temp());
    MUST(symlink(loop, loop) == 0);
    note_status("open a loop", tnf_open(&f, loop, NULL, &e), &e, TNF_EIO);
    CHECK(e.sys == ELOOP, "errno is %d", e.sys);

    static const struct {
        const char *bytes;
        size_t n;
        tnf_status status;
    } texts[] = {
        { "<!doctype html><title>502 Bad Gateway</title>", 45, TNF_EFORMAT },
        { "", 0, TNF_ETRUNCATED },
        { "GPTRSTEN\2\0\0\0\377\377\0\0", 16, TNF_ETRUNCATED },
        { "GPTRSTEN\2\0\0\0\377\377\377\377", 16, TNF_ELIMIT },
        { "GPTRSTEN\77\0\0\0\0\0\0\0", 16, TNF_EUNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        MUST(tnf_source_memory(&s, texts[i].bytes, texts[i].n, NULL) == TNF_OK);
        note_status("open odd bytes", tnf_open_source(&f, s, NULL, &e), &e, texts[i].status);
    }
    static tnf_status told[] = { TNF_ENET, TNF_EBUG, TNF_EIO, TNF_ECHANGED };
    tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = answer_as_told };
    for (size_t i = 0; i < 4; i++) {
        MUST(tnf_source_custom(&s, &ops, &told[i], 1000, NULL) == TNF_OK);
        note_status("a source that fails", tnf_open_source(&f, s, NULL, &e), &e, told[i]);
    }
}

static tnf_status take_all(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    (void)ctx, (void)bytes, (void)n, (void)error;
    return TNF_OK;
}

/* A sink that has written all bytes, but cannot sync them. It is not aborted. */
static void never_aborted(void *ctx)
{
    (void)ctx;
    CHECK(false, "what is done was aborted");
}

static tnf_status commit_unsynced(void *ctx, tnf_error *error)
{
    (void)ctx;
    *error = (tnf_error) { .status = TNF_EUNSYNCED, .offset = TNF_NO_OFFSET };
    snprintf(error->message, sizeof error->message, "cannot sync");
    return TNF_EUNSYNCED;
}

static void save_unsynced(const tnf_builder *b)
{
    static const tnf_sink_ops ops = { TNF_SINK_OPS_VERSION, take_all, commit_unsynced,
                                      never_aborted };
    tnf_error e;
    tnf_sink *sink;
    tnf_save_options o = { .size = sizeof o, .format = "safetensors" };
    MUST(tnf_sink_custom(&sink, &ops, NULL, NULL) == TNF_OK);
    note_status("a sink that cannot sync", tnf_save_sink(b, sink, &o, &e), &e, TNF_EUNSYNCED);
    tnf_sink_close(sink);
}

static void save_some(void)
{
    tnf_error e;
    tnf_builder *b;
    uint64_t shape[] = { 1 << 20 };
    char path[400];
    snprintf(path, sizeof path, "%s/x.gten", files_temp());
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    const tnf_type *f32 = tnf_type_of(TNF_F32), *f64 = tnf_type_of(TNF_F64);
    MUST(tnf_builder_add_stream(b, "w", f32, 1, shape, fetch_zeros, NULL, &e) == TNF_OK);
    note_status("a name twice",
                tnf_builder_add_stream(b, "w", f32, 1, shape, fetch_zeros, NULL, &e), &e,
                TNF_EEXISTS);
    tnf_save_options o = { .size = sizeof o, .progress = stop_at_once };
    note_status("stopped", tnf_save(b, path, &o, &e), &e, TNF_ECANCELLED);
    note_status("saved", tnf_save(b, path, NULL, &e), &e, TNF_OK);
    note_status("a file that exists", tnf_save(b, path, NULL, &e), &e, TNF_EEXISTS);
    MUST(tnf_builder_add_stream(b, "x", f64, 1, shape, fetch_zeros, NULL, &e) == TNF_OK);
    o = (tnf_save_options) { .size = sizeof o, .replace = true };
    note_status("a type it has not", tnf_save(b, path, &o, &e), &e, TNF_ELOSSY);
    save_unsynced(b);
    tnf_builder_free(b);
}

static void on_problem(void *ctx, const tnf_problem *problem)
{
    (void)ctx;
    tnf_error e = { .status = problem->code };
    snprintf(e.message, sizeof e.message, "%s", problem->message);
    note_status("a wrong digest", problem->code, &e, TNF_EDIGEST);
}

/* A digest that does not match is a problem that verify reports. The test sets a wrong digest
 * itself, so it does not depend on any format. */
static void verify_some(void)
{
    static const uint8_t wrong[4] = { 1, 2, 3, 4 };
    static const tnf_digest digest = { .algorithm = "crc32c", .bytes = wrong, .n = sizeof wrong };
    tnf_error e;
    tnf_file *f;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options o = { .size = sizeof o, .problem = on_problem };
    char path[400];
    snprintf(path, sizeof path, "%s/x.gten", files_temp()); /* the file of save_some() */
    MUST(tnf_open(&f, path, NULL, &e) == TNF_OK);
    tnf_part_mutable(tnf_at(f, 0)->parts)->digest = &digest;
    note_status("verify", tnf_verify(&result, f, &o, &e), &e, TNF_OK);
    CHECK(result.problems == 1, "%llu problems", (unsigned long long)result.problems);
    tnf_close(f);
}

int main(void)
{
    open_some();
    save_some();
    verify_some();
    check_doing("all of them");
    for (int i = 0; i <= -TNF_EUNSYNCED; i++)
        CHECK(raised[i], "%s was never raised", tnf_status_name((tnf_status)-i));
    CHECK(strcmp(tnf_status_name((tnf_status)(TNF_EUNSYNCED - 1)), "TNF_?") == 0,
          "there is a status that this test does not know: %s",
          tnf_status_name((tnf_status)(TNF_EUNSYNCED - 1)));
    return check_end("errors");
}
