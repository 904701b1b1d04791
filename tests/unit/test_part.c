/* SPDX-License-Identifier: MIT */
/* A part of a plan, or finish, is stopped by the caller in the middle: it leaves nothing behind and
 * can be repeated. tests/jobs tests all other properties of plans. */
#include "../support/files.h"
#include "../support/unit.h"
#include <tenfold/jobs.h>

#define LEAVES 6u /* of 4 MiB */

/* A file of one tensor of zeros. */
static const char *make_input(const char *name)
{
    static char path[2][400];
    static unsigned next;
    char *here = path[next++ % 2], header[200];
    unsigned long long bytes = LEAVES * 4194304ull;
    int n = snprintf(header, sizeof header,
                     "{\"t\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[0,%llu]}}", bytes,
                     bytes);
    uint8_t size[8] = { (uint8_t)n };
    snprintf(here, sizeof path[0], "%s/%s", files_temp(), name);
    FILE *f = fopen(here, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(size, 1, 8, f), 8);
    assert_int_equal(fwrite(header, 1, (size_t)n, f), n);
    assert_int_equal(ftruncate(fileno(f), 8 + n + (off_t)bytes), 0);
    assert_int_equal(fclose(f), 0);
    return here;
}

struct watch {
    unsigned calls, upto; /* how many calls are allowed */
    uint64_t last;
};

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct watch *w = ctx;
    assert_true(done >= w->last && (total == 0 || done <= total));
    w->last = done;
    return w->calls++ < w->upto;
}

static size_t files_like(const char *words)
{
    return files_count(files_temp(), words);
}

static tnf_job *make_plan(const char *job, const char *out, const char *const *inputs, size_t n)
{
    tnf_job_options what = TNF_JOB_INIT;
    tnf_job *plan;
    tnf_error e;
    what.job = job;
    what.inputs = inputs;
    what.ninputs = n;
    what.parts = 2;
    what.out = out;
    what.numeric = n == 2;
    assert_ok(tnf_job_plan(&plan, &what, &e));
    return plan;
}

/* Part 0 is stopped after some call, and leaves no receipt; then it is run completely. */
static void stop_part(tnf_job *plan, const char *base)
{
    struct watch w = { .upto = 1 };
    tnf_job_how how = TNF_JOB_HOW_INIT;
    tnf_error e;
    tnf_str receipt;
    how.base = base;
    how.threads = 1;
    how.progress = on_progress;
    how.ctx = &w;
    assert_fails(tnf_job_part(&receipt, plan, 0, &how, &e), TNF_ECANCELLED);
    assert_null(receipt.p);
    assert_int_equal(w.calls, 2);
    assert_int_equal(files_like(".parts"), 0);
    w = (struct watch) { .upto = 1000000 };
    for (uint64_t part = 0; part < 2; part++) {
        w.last = 0;
        assert_ok(tnf_job_part(&receipt, plan, part, &how, &e));
    }
    assert_true(w.calls >= 2);
}

static void rows_are_stopped(void **state)
{
    const char *const jobs[] = { "hash", "stat", "diff" };
    const char *inputs[] = { make_input("a.safetensors"), make_input("b.safetensors") };
    char kept[400];
    (void)state;
    snprintf(kept, sizeof kept, "%s/receipts", files_temp());
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        tnf_job *plan = make_plan(jobs[i], NULL, inputs, i == 2 ? 2 : 1);
        tnf_job_how how = TNF_JOB_HOW_INIT;
        tnf_error e;
        how.base = kept;
        stop_part(plan, kept);
        assert_int_equal(files_like(".parts"), 1);
        assert_ok(tnf_job_abort(plan, &how, &e));
        assert_int_equal(files_like(".parts"), 0);
        tnf_job_free(plan);
    }
}

/* finish reads the written file again. If it is stopped there, no file gets the name. */
static void finish_is_stopped(void **state)
{
    const char *inputs[] = { make_input("a.safetensors") };
    char out[400];
    struct watch w = { .upto = 2 };
    tnf_job_how how = TNF_JOB_HOW_INIT;
    tnf_error e;
    struct stat st;
    (void)state;
    snprintf(out, sizeof out, "%s/out.safetensors", files_temp());
    tnf_job *plan = make_plan("convert", out, inputs, 1);
    for (uint64_t part = 0; part < 2; part++)
        assert_ok(tnf_job_part(NULL, plan, part, &how, &e));
    how.threads = 1;
    how.progress = on_progress;
    how.ctx = &w;
    assert_fails(tnf_job_finish(NULL, plan, &how, &e), TNF_ECANCELLED);
    assert_int_equal(w.calls, 3);
    assert_int_not_equal(stat(out, &st), 0);
    assert_int_equal(files_like(".parts"), 1);
    w = (struct watch) { .upto = 1000000 };
    assert_ok(tnf_job_finish(NULL, plan, &how, &e));
    assert_true(w.calls >= LEAVES);
    assert_int_equal(stat(out, &st), 0);
    assert_int_equal(files_like("tenfold-"), 0);
    tnf_job_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_stopped),
        cmocka_unit_test(finish_is_stopped),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    files_dir_remove();
    return failed;
}
