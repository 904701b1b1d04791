/* SPDX-License-Identifier: MIT */
/* Finishes a plan. Only this step makes anything visible.
 *
 *   receipts of all parts ─> the output is read again ─> the result is stored
 *     ─> files get their names ─> BASE.tenfold-ID.parts becomes ….done ─> that is removed
 *
 * After a kill at any point, another call continues: a file with its final name has no temporary
 * name any more, and a directory called ….done only has to be removed.
 */
#include "base/pool.h"
#include "base/sized.h"
#include "io/fs.h"
#include "job/finishing.h"
#include "job/rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX ((uint64_t)1 << 32)

/* ------------------------------------------------------------------- receipts */

/* For the job hash: checks a receipt, and keeps only the number of its leaves. The leaves are read
 * again later, tensor by tensor, so they need not all be in memory at once. */
static tnf_status keep_length(struct finishing *f, tnf_error *e)
{
    struct job_receipt r;
    tnf_arena scratch;
    tnf_scratch_begin(&scratch);
    tnf_status status = tnf_receipt_parse(&r, f->job, (const char *)f->job->answer.p,
                                          f->job->answer.n, &scratch, e);
    if (status == TNF_OK)
        f->receipts[r.part] = (struct job_receipt) { .part = r.part,
                                                     .bytes = r.bytes,
                                                     .leaves = { NULL, r.leaves.n },
                                                     .frame = { NULL, r.frame.n },
                                                     .rows = { "[]", 2 } };
    tnf_arena_free(&scratch);
    return status;
}

static tnf_status keep_receipt(struct finishing *f, const char *text, size_t n, tnf_error *e)
{
    struct job_receipt r;
    const char *copy = tnf_arena_str(&f->arena, text, n);
    if (!copy)
        return tnf_arena_fail(&f->arena, "receipts", e);
    TNF_TRY(tnf_receipt_parse(&r, f->job, copy, n, &f->arena, e));
    struct job_receipt *there = &f->receipts[r.part];
    if (there->rows.p && (there->leaves.n != r.leaves.n || there->rows.n != r.rows.n ||
                          memcmp(there->leaves.p, r.leaves.p, r.leaves.n) != 0 ||
                          memcmp(there->rows.p, r.rows.p, r.rows.n) != 0))
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                        "two runs of part %" PRIu64 " differ, so one of the machines is faulty",
                        r.part);
    *there = r;
    return TNF_OK;
}

static tnf_status read_all(struct finishing *f, tnf_error *e)
{
    tnf_job *job = f->job;
    TNF_TRY(tnf_need_array(f->how.receipts, f->how.nreceipts, "receipts", e));
    for (size_t i = 0; i < f->how.nreceipts; i++) {
        TNF_TRY(tnf_need_str(f->how.receipts[i], "receipts", e));
        TNF_TRY(keep_receipt(f, f->how.receipts[i].p, f->how.receipts[i].n, e));
    }
    for (uint64_t i = 0; f->how.nreceipts == 0 && f->base && i < job->o.parts; i++) {
        tnf_error why = { .offset = TNF_NO_OFFSET };
        tnf_status status = tnf_receipt_read(job, f->base, i, &why);
        if (status == TNF_ENOTFOUND)
            continue;
        if (status == TNF_OK)
            status = job->kind == TNF_JOB_HASH
                         ? keep_length(f, &why)
                         : keep_receipt(f, (const char *)job->answer.p, job->answer.n, &why);
        if (status != TNF_OK) {
            if (e)
                *e = why;
            return status;
        }
    }
    return TNF_OK;
}

static tnf_status check_all_there(const struct finishing *f, tnf_error *e)
{
    char list[120] = "";
    size_t at = 0;
    uint64_t missing = 0;
    for (uint64_t i = 0; i < f->job->o.parts; i++) {
        if (f->receipts[i].rows.p)
            continue;
        if (missing++ < 8)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%" PRIu64, at ? ", " : "", i);
    }
    if (missing == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                    "%" PRIu64 " of %" PRIu64 " parts are not done: %s%s; run them first", missing,
                    f->job->o.parts, list, missing > 8 ? " …" : "");
}

/* Checks that the number of hashes in a receipt fits its items. */
static tnf_status check_receipt(struct finishing *f, uint64_t part, tnf_error *e)
{
    const tnf_job *job = f->job;
    const struct job_receipt *r = &f->receipts[part];
    struct job_window *windows;
    size_t first, end, n = 0;
    uint64_t leaves = 0;
    bool whole = strcmp(job->mode, "whole") == 0;
    bool hashed = job->kind == TNF_JOB_HASH || (job->kind == TNF_JOB_CONVERT && !whole);
    tnf_job_items(job, part, &first, &end);
    for (size_t i = first; i < end && hashed; i++)
        leaves += job->items[i].n;
    if (job->kind == TNF_JOB_CONVERT && !whole)
        TNF_TRY(tnf_job_windows(&windows, &n, job, part, &f->arena, e));
    bool good = whole ? r->leaves.n % 64 == 0 : r->leaves.n == leaves * 64;
    return good && r->frame.n == n * 64
               ? TNF_OK
               : tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                          "the receipt of part %" PRIu64 " does not match the plan", part);
}

static tnf_status collect_receipts(struct finishing *f, tnf_error *e)
{
    f->receipts = tnf_arena_array(&f->arena, f->job->o.parts, sizeof *f->receipts);
    if (!f->receipts)
        return tnf_arena_fail(&f->arena, "receipts", e);
    TNF_TRY(read_all(f, e));
    TNF_TRY(check_all_there(f, e));
    for (uint64_t i = 0; i < f->job->o.parts; i++)
        TNF_TRY(check_receipt(f, i, e));
    return TNF_OK;
}

/* --------------------------------------------------------------------- placing */

static tnf_status place_output(const tnf_job *job, const char *temp, const char *path, tnf_error *e)
{
    struct stat a, b;
    bool replace = job->o.replace;
    if (lstat(temp, &a) != 0)
        return errno == ENOENT ? TNF_OK /* the file already has its final name */
                               : tnf_fail_sys(e, errno, "cannot read %s", TNF_VISIBLE(temp));
    tnf_job_mark(job, temp);
    bool linked = !replace && link(temp, path) == 0;
    if (!replace && !linked && errno == EEXIST) {
        if (lstat(path, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
            return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "%s already exists", TNF_VISIBLE(path));
        linked = true; /* by an earlier call that was killed */
    }
    if (linked ? unlink(temp) != 0 : rename(temp, path) != 0)
        return tnf_fail_sys(e, errno, "cannot create %s", TNF_VISIBLE(path));
    return TNF_OK;
}

/* Writes the index, from the files at their current paths. It gets its final name last. */
static tnf_status write_index(struct finishing *f, tnf_error *e)
{
    tnf_job *job = f->job;
    struct stat st;
    char *path;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_through through = { .number = job->nouts, .n = job->nouts };
    through.shards = (const char *const *)f->now;
    if (!job->index || (lstat(job->index, &st) == 0 && !job->o.replace))
        return TNF_OK;
    TNF_TRY(tnf_job_open(job, true, &f->how, e));
    TNF_TRY(tnf_job_temp(&path, job, job->nouts, e));
    tnf_status status = tnf_sink_file(&through.sink, path, TNF_SINK_REPLACE, e);
    if (status == TNF_OK) {
        status = tnf_job_convert(job, &through, NULL, NULL, &why);
        status = tnf_until_finish(status, &why, e);
        tnf_sink_close(through.sink);
    }
    tnf_free_path(path);
    return status;
}

static tnf_status place_one(const tnf_job *job, size_t number, const char *path, tnf_error *e)
{
    char *temp;
    TNF_TRY(tnf_job_temp(&temp, job, number, e));
    tnf_status status = place_output(job, temp, path, e);
    tnf_free_path(temp);
    return status;
}

static tnf_status place_all(struct finishing *f, tnf_error *e)
{
    tnf_job *job = f->job;
    if (job->o.max_bytes)
        TNF_TRY(tnf_fs_make_directory(job->o.out, e));
    for (size_t i = 0; i < job->nouts; i++)
        TNF_TRY(place_one(job, i, job->outs[i].path, e));
    if (job->index) { /* it must not be there without the files that it names */
        TNF_TRY(tnf_sync_directory_of(job->outs[0].path, e));
        TNF_TRY(place_one(job, job->nouts, job->index, e));
    }
    return tnf_sync_placed(job->outs[0].path, e);
}

/* --------------------------------------------------------------------- removing */

/* Removes a directory of plain files. */
static void remove_all(const char *path)
{
    DIR *d = opendir(path);
    int fd = d ? dirfd(d) : -1;
    for (const struct dirent *entry; d && (entry = readdir(d)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(fd, entry->d_name, 0);
    if (d)
        closedir(d);
    (void)rmdir(path);
}

/* First renames the directory to ….done, which marks the plan as finished; then removes it. */
static tnf_status remove_parts(struct finishing *f, tnf_error *e)
{
    char *parts, *done;
    TNF_TRY(tnf_job_path(&parts, f->job, f->base, ".parts", e));
    tnf_status status = tnf_job_path(&done, f->job, f->base, ".done", e);
    if (status == TNF_OK) {
        if (rename(parts, done) != 0 && errno != ENOENT)
            remove_all(parts);
        remove_all(done);
        tnf_free_path(done);
    }
    tnf_free_path(parts);
    return status;
}

static tnf_status note_result(struct finishing *f, const tnf_buf *result, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    char *path;
    TNF_TRY(tnf_job_path(&path, f->job, f->base, ".parts/result", e));
    tnf_status status = tnf_write_text(path, result->p, result->n, TNF_SINK_REPLACE, &why);
    tnf_free_path(path);
    return tnf_until_finish(status, &why, e);
}

/* If an earlier call was killed while it removed leftovers, removes them and reads the result. */
static bool was_done(struct finishing *f, tnf_buf *result)
{
    char *done, *path;
    struct stat st;
    if (tnf_job_path(&done, f->job, f->base, ".done", NULL) != TNF_OK)
        return false;
    bool there = lstat(done, &st) == 0;
    if (there && tnf_job_path(&path, f->job, f->base, ".done/result", NULL) == TNF_OK) {
        if (tnf_read_text(result, path, TEXT_MAX, NULL) != TNF_OK)
            result->n = 0;
        tnf_free_path(path);
    }
    if (there)
        remove_all(done);
    tnf_free_path(done);
    return there;
}

/* Removes the leftovers of parts: receipts, and incomplete outputs. */
static tnf_status remove_left(struct finishing *f, tnf_error *e)
{
    const tnf_job *job = f->job;
    bool remote = tnf_job_is_remote(job);
    if (remote)
        tnf_s3_abort(f);
    for (size_t i = 0; i < job->nouts && !job->o.max_bytes && !remote; i++) {
        char *temp;
        TNF_TRY(tnf_job_temp(&temp, job, i, e));
        (void)unlink(temp);
        tnf_free_path(temp);
    }
    return remove_parts(f, e);
}

/* If nothing is left of the parts: does the output exist, with the content of its only input? */
static bool is_finished(struct finishing *f)
{
    const tnf_job *job = f->job;
    uint8_t in[TNF_HASH_BYTES], out[TNF_HASH_BYTES];
    tnf_file *file;
    bool plain = job->o.ninputs == 1 && !job->o.nselect && !job->o.nexclude && !job->o.dtype;
    const char *path = job->index ? job->index : job->outs[0].path;
    if (!plain || tnf_job_open(f->job, true, &f->how, NULL) != TNF_OK ||
        tnf_open(&file, path, NULL, NULL) != TNF_OK)
        return false;
    bool same = tnf_content_hash(in, job->inputs[0].file, NULL, NULL) == TNF_OK &&
                tnf_content_hash(out, file, NULL, NULL) == TNF_OK &&
                memcmp(in, out, sizeof in) == 0;
    tnf_close(file);
    return same;
}

/* ---------------------------------------------------------------------- result */

static void begin_result(const tnf_job *job, tnf_buf *b)
{
    b->n = 0;
    tnf_buf_printf(b, "{\"job\":\"%s\",\"id\":\"%s\"", tnf_job_names[job->kind], job->id);
}

/* If an earlier call was killed while it placed files, reads the result that it stored. */
static bool was_noted(struct finishing *f, tnf_buf *b)
{
    char *path;
    if (!f->placed || tnf_job_path(&path, f->job, f->base, ".parts/result", NULL) != TNF_OK)
        return false;
    b->n = 0;
    bool noted = tnf_read_text(b, path, TEXT_MAX, NULL) == TNF_OK && b->n > 0;
    tnf_free_path(path);
    return noted;
}

static tnf_status make_result(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    if (was_noted(f, b))
        return TNF_OK;
    begin_result(f->job, b);
    TNF_TRY(tnf_finish_output(f, b, e));
    tnf_buf_puts(b, "}\n");
    TNF_TRY(tnf_buf_status(b, "the result", e));
    return note_result(f, b, e);
}

static tnf_status write_result(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    TNF_TRY(tnf_finish_find(f, e));
    if (!f->how.no_verify)
        TNF_TRY(tnf_pool_run(tnf_pool_threads(f->how.threads), (size_t)f->job->o.parts,
                             tnf_finish_check, f, e));
    TNF_TRY(tnf_finish_input(f, e));
    TNF_TRY(write_index(f, e));
    TNF_TRY(make_result(f, b, e));
    tnf_status status = place_all(f, e);
    if (status != TNF_OK && status != TNF_EUNSYNCED)
        return status;
    TNF_TRY(remove_parts(f, e));
    return status;
}

static tnf_status finish_convert(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    if (was_done(f, b) && b->n > 0)
        return TNF_OK;
    tnf_status status = collect_receipts(f, &why);
    bool marked = status == TNF_ENOTFOUND && !f->how.trust_content && tnf_job_marked(f->job);
    if (marked) /* late parts may have left files after the plan was finished */
        TNF_TRY(remove_left(f, e));
    if (marked || (status == TNF_ENOTFOUND && !f->receipts[0].rows.p && is_finished(f))) {
        begin_result(f->job, b);
        tnf_buf_puts(b, ",");
        tnf_row_key(b, "out", f->job->o.out);
        tnf_buf_puts(b, ",\"finished_before\":true}\n");
        return tnf_buf_status(b, "the result", e);
    }
    if (status == TNF_OK)
        return write_result(f, b, e);
    if (e)
        *e = why;
    return status;
}

/* Completing the upload makes the object visible. After a kill, another call completes it again. */
static tnf_status finish_object(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    if (!f->base)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, TNF_NEEDS_BASE);
    TNF_TRY(collect_receipts(f, e));
    TNF_TRY(tnf_finish_input(f, e));
    begin_result(f->job, b);
    TNF_TRY(tnf_s3_finish(f, b, e));
    tnf_buf_puts(b, "}\n");
    TNF_TRY(tnf_buf_status(b, "the result", e));
    return remove_parts(f, e);
}

static tnf_status finish_job(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    if (tnf_job_is_remote(f->job))
        return finish_object(f, b, e);
    if (f->job->kind == TNF_JOB_CONVERT)
        return finish_convert(f, b, e);
    TNF_TRY(collect_receipts(f, e));
    if (tnf_job_is_cut(f->job)) /* joining pieces needs their tensors */
        TNF_TRY(tnf_job_open(f->job, true, &f->how, e));
    begin_result(f->job, b);
    TNF_TRY(f->job->kind == TNF_JOB_HASH ? tnf_finish_hash(f, b, e)
                                         : tnf_job_merge(b, f->job, f->receipts, &f->arena, e));
    tnf_buf_puts(b, "}\n");
    return tnf_buf_status(b, "the result", e);
}

static tnf_status begin_finish(struct finishing *f, tnf_job *job, const tnf_job_how *how,
                               tnf_error *e)
{
    *f = (struct finishing) { .job = job, .lock = PTHREAD_MUTEX_INITIALIZER };
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_job_how, &f->how, how, e));
    f->progress = (tnf_progress) { .tell = f->how.progress, .ctx = f->how.ctx };
    f->base = tnf_job_base(job, &f->how);
    return TNF_OK;
}

tnf_status tnf_job_finish(tnf_str *result, tnf_job *job, const tnf_job_how *how, tnf_error *e)
{
    if (result)
        *result = (tnf_str) { NULL, 0 };
    TNF_TRY(tnf_need(job, "job", e));
    struct finishing f;
    tnf_buf text;
    TNF_TRY(begin_finish(&f, job, how, e));
    tnf_scratch_begin(&f.arena);
    tnf_text_begin(&text, UINT64_MAX);
    tnf_status status = finish_job(&f, &text, e);
    tnf_text_end(&text);
    if (status == TNF_OK)
        status = tnf_buf_status(&text, "the result", e);
    tnf_job_close(job);
    tnf_arena_free(&f.arena);
    pthread_mutex_destroy(&f.lock);
    bool done = status == TNF_OK || status == TNF_EUNSYNCED;
    if (done) {
        tnf_buf old = job->answer;
        job->answer = text;
        text = old;
    }
    tnf_buf_free(&text);
    if (result && done)
        *result = (tnf_str) { (const char *)job->answer.p, job->answer.n };
    return status;
}

tnf_status tnf_job_abort(tnf_job *job, const tnf_job_how *how, tnf_error *e)
{
    TNF_TRY(tnf_need(job, "job", e));
    struct finishing f;
    TNF_TRY(begin_finish(&f, job, how, e));
    return f.base ? remove_left(&f, e) : TNF_OK;
}
