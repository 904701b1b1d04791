/* SPDX-License-Identifier: MIT */
/* Runs one part of a plan: opens the inputs, runs its items, stores its receipt.
 *
 * A conversion writes its windows into OUT.tenfold-ID, which the first worker creates with its full
 * size. All workers write the same bytes at the same places, so a part may run anywhere, at any
 * time, any number of times.
 */
#include "base/pool.h"
#include "base/rising.h"
#include "base/sized.h"
#include "base/str.h"
#include "io/fs.h"
#include "io/sink.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------------- paths */

tnf_status tnf_job_path(char **out, const tnf_job *job, const char *base, const char *end,
                        tnf_error *e)
{
    size_t length = strlen(base);
    while (length > 1 && base[length - 1] == '/')
        length--; /* "DIR/" is DIR */
    size_t n = length + strlen(end) + 32;
    *out = malloc(n);
    if (!*out)
        return tnf_no_memory("a path", e);
    (void)snprintf(*out, n, "%.*s.tenfold-%.16s%s", (int)length, base, job->id, end);
    return TNF_OK;
}

void tnf_free_path(char *path)
{
    free(path);
}

const char *tnf_job_base(const tnf_job *job, const tnf_job_how *how)
{
    if (tnf_job_is_remote(job))
        return how->base;
    return job->kind == TNF_JOB_CONVERT || !how->base ? job->o.out : how->base;
}

/* A single output is next to its final path; several outputs are in the directory of receipts. */
tnf_status tnf_job_temp(char **out, const tnf_job *job, size_t number, tnf_error *e)
{
    if (!job->o.max_bytes)
        return tnf_job_path(out, job, job->outs[number].path, "", e);
    const char *path = number < job->nouts ? job->outs[number].path : job->index;
    char end[300];
    int n = snprintf(end, sizeof end, ".parts/%s", tnf_path_end(path));
    if (n < 0 || (size_t)n >= sizeof end)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the name of a file is too long");
    return tnf_job_path(out, job, job->o.out, end, e);
}

/* ----------------------------------------------------------------------- hash */

struct hashing {
    tnf_job *job;
    const struct job_item *items;
    size_t n;
    const uint64_t *before; /* leaves before each item; then the total */
    const uint64_t *jobs;   /* the same, but an item that cannot be cut counts as one */
    uint8_t *leaves;
    tnf_progress progress;
    pthread_mutex_t lock; /* guards `progress` */
};

/* The progress of one call among several threads, which is added to the total. */
struct share {
    struct hashing *h;
    uint64_t before;
};

static bool on_share(void *ctx, uint64_t done, uint64_t total)
{
    struct share *s = ctx;
    uint64_t n = done - s->before;
    (void)total;
    s->before = done;
    return tnf_progress_add(&s->h->progress, &s->h->lock, n, NULL) == TNF_OK;
}

static tnf_status check_item(const tnf_job *job, const struct job_item *it, tnf_error *e)
{
    const tnf_object *o = tnf_at(job->inputs[it->in].file, it->index);
    bool good = o && (it->whole || job->kind != TNF_JOB_HASH || /* other jobs check it themselves */
                      (it->k < o->nparts && it->first <= tnf_count_leaves(&o->parts[it->k]) &&
                       it->n <= tnf_count_leaves(&o->parts[it->k]) - it->first));
    return good ? TNF_OK
                : tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                           "the plan does not match its inputs; make a new plan");
}

static tnf_status hash_job(void *ctx, size_t job, tnf_error *e)
{
    struct hashing *h = ctx;
    struct share share = { h, 0 };
    tnf_progress progress = { .tell = h->progress.tell ? on_share : NULL, .ctx = &share };
    size_t i = tnf_rising_find(h->jobs, sizeof *h->jobs, h->n, job);
    const struct job_item *it = &h->items[i];
    uint64_t in = job - h->jobs[i];
    uint8_t *out = h->leaves + (h->before[i] + in) * TNF_HASH_BYTES;
    bool one = it->atom || it->n == 0;
    return tnf_content_some(out, h->job->inputs[it->in].file, it->index, (uint16_t)it->k,
                            one ? it->first : it->first + in, one ? it->n : 1, &progress, e);
}

/* The hashes of the leaves of a part, as hex. */
static tnf_status hash_part(tnf_buf *out, tnf_job *job, uint64_t part, const tnf_job_how *how,
                            tnf_arena *a, tnf_error *e)
{
    size_t first, end;
    tnf_job_items(job, part, &first, &end);
    struct hashing h = { .job = job,
                         .items = &job->items[first],
                         .n = end - first,
                         .progress = { .tell = how->progress, .ctx = how->ctx },
                         .lock = PTHREAD_MUTEX_INITIALIZER };
    uint64_t *before = tnf_arena_array(a, h.n + 1, sizeof *before);
    uint64_t *jobs = tnf_arena_array(a, h.n + 1, sizeof *jobs);
    if (!before || !jobs)
        return tnf_arena_fail(a, "hashes", e);
    for (size_t i = 0; i < h.n; i++) {
        TNF_TRY(check_item(job, &h.items[i], e));
        h.progress.total += h.items[i].bytes;
        before[i + 1] = before[i] + h.items[i].n;
        jobs[i + 1] = jobs[i] + (h.items[i].atom || h.items[i].n == 0 ? 1 : h.items[i].n);
    }
    h.before = before;
    h.jobs = jobs;
    h.leaves = tnf_arena_array(a, before[h.n] + 1, TNF_HASH_BYTES);
    if (!h.leaves || jobs[h.n] > SIZE_MAX / 2)
        return tnf_arena_fail(a, "hashes", e);
    tnf_status status = tnf_pool_run(tnf_pool_threads(how->threads), (size_t)jobs[h.n], hash_job,
                                     &h, e);
    pthread_mutex_destroy(&h.lock);
    TNF_TRY(status);
    tnf_buf_hex(out, h.leaves, (size_t)before[h.n] * TNF_HASH_BYTES);
    return tnf_buf_status(out, "the hashes", e);
}

/* -------------------------------------------------------------------- convert */

struct converting {
    tnf_job *job;
    const tnf_job_how *how;
    tnf_buf *leaves, *frames;
    uint64_t bytes;
    struct job_sending *sending; /* for an object; NULL: for files */
};

static tnf_status make_file(int *fd, const char *path, uint64_t size, tnf_error *e)
{
    *fd = tnf_fs_open(path, O_RDWR | O_CREAT, 0666);
    if (*fd < 0)
        return tnf_fail_sys(e, errno, "cannot create %s", TNF_VISIBLE(path));
    tnf_status status = tnf_fs_cut(*fd, size, e);
    if (status != TNF_OK)
        close(*fd);
    return status;
}

static tnf_status fill_window(struct converting *c, struct window_sink *w, tnf_error *e)
{
    tnf_through through = { .number = w->window.out };
    uint8_t *leaves = w->leaves;
    TNF_TRY(tnf_window_open(&through.sink, w, e));
    tnf_status status = tnf_job_convert(c->job, &through, c->how, NULL, e);
    TNF_TRY(tnf_window_close(through.sink, w, status, e));
    tnf_buf_hex(c->leaves, leaves, (size_t)(w->leaves - leaves));
    tnf_buf_hex(c->frames, w->frame_hash, sizeof w->frame_hash);
    c->bytes += w->window.end - w->window.first;
    return w->sending ? tnf_sending_flush(w->sending, e) : tnf_fs_sync(w->fd, e);
}

static tnf_status write_window(struct converting *c, const struct job_window *window, tnf_arena *a,
                               tnf_error *e)
{
    struct window_sink w = { .job = c->job, .window = *window };
    uint64_t n = 0;
    char *path;
    for (size_t i = 0; i < window->nitems; i++)
        n += c->job->items[window->item + i].n;
    w.leaves = tnf_arena_array(a, n + 1, TNF_HASH_BYTES);
    if (!w.leaves)
        return tnf_arena_fail(a, "hashes", e);
    w.sending = c->sending;
    w.fd = -1;
    if (c->sending)
        return fill_window(c, &w, e);
    TNF_TRY(tnf_job_temp(&path, c->job, window->out, e));
    tnf_status status = make_file(&w.fd, path, c->job->outs[window->out].size, e);
    tnf_free_path(path);
    TNF_TRY(status);
    status = fill_window(c, &w, e);
    close(w.fd);
    return status;
}

/* Hashes a file that was written in one piece: every 4 MiB of it. */
static tnf_status hash_file(struct converting *c, const char *path, tnf_error *e)
{
    struct stat st;
    int fd = tnf_fs_open(path, O_RDONLY, 0);
    uint8_t *block = malloc(TNF_WINDOW_BLOCK);
    tnf_status status = TNF_OK;
    if (fd < 0 || !block || fstat(fd, &st) != 0)
        status = tnf_fail_sys(e, errno, "cannot read %s", TNF_VISIBLE(path));
    uint64_t size = status == TNF_OK ? (uint64_t)st.st_size : 0;
    tnf_progress progress = { .tell = c->how->progress, .ctx = c->how->ctx, .total = size };
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (uint64_t at = 0; at < size && status == TNF_OK; at += TNF_LEAF_BYTES) {
        uint8_t hash[TNF_HASH_BYTES];
        tnf_digester d;
        uint64_t n = size - at < TNF_LEAF_BYTES ? size - at : TNF_LEAF_BYTES;
        status = tnf_content_begin(&d, TNF_LEAF_TITLE, e);
        if (status != TNF_OK)
            break;
        status = tnf_window_hash(&d, fd, at, n, block, e);
        tnf_digest_end(&d, hash);
        tnf_buf_hex(c->leaves, hash, sizeof hash);
        if (status == TNF_OK)
            status = tnf_progress_add(&progress, &lock, n, e);
    }
    pthread_mutex_destroy(&lock);
    free(block);
    if (fd >= 0)
        close(fd);
    c->bytes += size;
    return status;
}

/* Writes an output that cannot be cut, like tnf_convert(), but under a temporary name. */
static tnf_status write_whole(struct converting *c, size_t number, tnf_error *e)
{
    tnf_through through = { .number = number };
    tnf_error why = { .offset = TNF_NO_OFFSET };
    char *path;
    TNF_TRY(tnf_job_temp(&path, c->job, number, e));
    tnf_status status = tnf_sink_file(&through.sink, path, TNF_SINK_REPLACE, e);
    if (status == TNF_OK) {
        status = tnf_job_convert(c->job, &through, c->how, NULL, &why);
        status = tnf_until_finish(status, &why, e);
        tnf_sink_close(through.sink);
    }
    if (status == TNF_OK)
        status = hash_file(c, path, e);
    tnf_free_path(path);
    return status;
}

/* The same for an object, which is sent piece by piece. */
static tnf_status send_whole(struct converting *c, size_t number, tnf_error *e)
{
    static const tnf_sink_ops ops = { .version = TNF_SINK_OPS_VERSION, .write = tnf_sending_take };
    tnf_through through = { .number = number };
    TNF_TRY(tnf_sink_new(&through.sink, &ops, c->sending, NULL, e));
    tnf_status status = tnf_job_convert(c->job, &through, c->how, NULL, e);
    tnf_sink_close(through.sink);
    return status == TNF_OK ? tnf_sending_flush(c->sending, e) : status;
}

/* Creates the directory in which several outputs are until finish. */
static tnf_status make_directory(const tnf_job *job, tnf_error *e)
{
    char *path;
    if (!job->o.max_bytes)
        return TNF_OK;
    TNF_TRY(tnf_job_path(&path, job, job->o.out, ".parts", e));
    tnf_status status = tnf_fs_make_directory(path, e);
    tnf_free_path(path);
    return status;
}

static tnf_status convert_part(struct converting *c, uint64_t part, tnf_arena *a, tnf_error *e)
{
    struct job_window *windows;
    size_t n, first, end;
    TNF_TRY(make_directory(c->job, e));
    if (strcmp(c->job->mode, "whole") == 0) {
        tnf_job_items(c->job, part, &first, &end);
        for (size_t i = first; i < end; i++)
            TNF_TRY(c->sending ? send_whole(c, c->job->items[i].out, e)
                               : write_whole(c, c->job->items[i].out, e));
        return TNF_OK;
    }
    TNF_TRY(tnf_job_windows(&windows, &n, c->job, part, a, e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(write_window(c, &windows[i], a, e));
    return TNF_OK;
}

/* ----------------------------------------------------------------------- part */

/* Sends a part to an object. A part without anything to write does not begin the upload. */
static tnf_status send_part(struct converting *c, uint64_t part, const char *base, tnf_buf *rows,
                            tnf_arena *a, tnf_error *e)
{
    size_t first, end;
    tnf_job_items(c->job, part, &first, &end);
    if (first == end && part != 0)
        return TNF_OK;
    tnf_status status = tnf_sending_begin(&c->sending, c->job, part, base, rows, e);
    if (status == TNF_OK)
        status = convert_part(c, part, a, e);
    tnf_sending_end(c->sending);
    return status;
}

static tnf_status do_items(tnf_job *job, uint64_t part, const tnf_job_how *how, const char *base,
                           tnf_buf texts[3], tnf_error *e)
{
    struct converting c = { job, how, &texts[0], &texts[1], 0, NULL };
    struct job_receipt r = { .part = part };
    size_t first, end;
    tnf_arena a;
    tnf_job_items(job, part, &first, &end);
    for (size_t i = first; i < end && job->kind != TNF_JOB_CONVERT; i++) {
        TNF_TRY(check_item(job, &job->items[i], e));
        c.bytes += job->items[i].cost;
    }
    tnf_scratch_begin(&a);
    tnf_status status;
    if (job->kind == TNF_JOB_HASH)
        status = hash_part(&texts[0], job, part, how, &a, e);
    else if (tnf_job_is_remote(job))
        status = send_part(&c, part, base, &texts[2], &a, e);
    else if (job->kind == TNF_JOB_CONVERT)
        status = convert_part(&c, part, &a, e);
    else
        status = tnf_job_rows(&texts[2], job, part, how, e);
    tnf_arena_free(&a);
    TNF_TRY(status);
    if (texts[2].n == 0)
        tnf_buf_puts(&texts[2], "[]");
    for (unsigned i = 0; i < 3; i++)
        TNF_TRY(tnf_buf_status(&texts[i], "a receipt", e));
    r.bytes = c.bytes;
    r.leaves = (tnf_str) { (const char *)texts[0].p, texts[0].n };
    r.frame = (tnf_str) { (const char *)texts[1].p, texts[1].n };
    r.rows = (tnf_str) { (const char *)texts[2].p, texts[2].n };
    tnf_receipt_put(&job->answer, job, &r);
    return tnf_buf_status(&job->answer, "a receipt", e);
}

/* Is there a valid receipt already? A damaged one is removed, so the part runs again. */
static bool is_done(tnf_job *job, const char *base, uint64_t part)
{
    struct job_receipt r;
    tnf_arena arena;
    char *path, end[40];
    if (!base || tnf_receipt_read(job, base, part, NULL) != TNF_OK)
        return false;
    tnf_scratch_begin(&arena);
    tnf_status status = tnf_receipt_parse(&r, job, (const char *)job->answer.p, job->answer.n,
                                          &arena, NULL);
    tnf_arena_free(&arena);
    bool good = status == TNF_OK && r.part == part;
    (void)snprintf(end, sizeof end, ".parts/%05" PRIu64, part);
    if (!good && status != TNF_ENOMEM && tnf_job_path(&path, job, base, end, NULL) == TNF_OK) {
        (void)unlink(path);
        tnf_free_path(path);
    }
    return good;
}

/* If all workers are started again after the plan was finished, they have nothing to do. With
 * `trust_content` the input may have changed, so the part runs again. */
static bool was_finished(tnf_job *job, uint64_t part, const tnf_job_how *how)
{
    if (how->trust_content || !tnf_job_marked(job))
        return false;
    job->answer.n = 0;
    tnf_buf_printf(&job->answer,
                   "{\"job\":\"%s\",\"id\":\"%s\",\"part\":%" PRIu64 ",\"finished_before\":true}\n",
                   tnf_job_names[job->kind], job->id, part);
    return tnf_buf_status(&job->answer, "a receipt", NULL) == TNF_OK;
}

/* A late worker must not begin a plan again that was finished. */
static tnf_status check_begun(const tnf_job *job, tnf_error *e)
{
    struct stat st;
    char *parts;
    if (job->kind != TNF_JOB_CONVERT || tnf_job_is_remote(job) || job->o.replace ||
        stat(job->outs[0].path, &st) != 0)
        return TNF_OK;
    TNF_TRY(tnf_job_path(&parts, job, job->o.out, ".parts", e));
    bool begun = stat(parts, &st) == 0;
    tnf_free_path(parts);
    return begun ? TNF_OK
                 : tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET,
                            "%s already exists; the plan was finished, or another program wrote it",
                            TNF_VISIBLE(job->outs[0].path));
}

static tnf_status do_part(tnf_job *job, uint64_t part, const tnf_job_how *how, const char *base,
                          tnf_error *e)
{
    tnf_buf texts[3];
    TNF_TRY(check_begun(job, e));
    TNF_TRY(tnf_job_open(job, true, how, e));
    for (unsigned i = 0; i < 3; i++)
        tnf_text_begin(&texts[i], UINT64_MAX);
    tnf_status status = do_items(job, part, how, base, texts, e);
    for (unsigned i = 0; i < 3; i++)
        tnf_buf_free(&texts[i]);
    return status == TNF_OK && base ? tnf_receipt_leave(job, base, part, e) : status;
}

tnf_status tnf_job_part(tnf_str *receipt, tnf_job *job, uint64_t part, const tnf_job_how *options,
                        tnf_error *e)
{
    if (receipt)
        *receipt = (tnf_str) { NULL, 0 };
    TNF_TRY(tnf_need(job, "job", e));
    tnf_job_how how;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_job_how, &how, options, e));
    if (part >= job->o.parts)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the plan has the parts 0 to %" PRIu64,
                        job->o.parts - 1);
    const char *base = tnf_job_base(job, &how);
    tnf_status status = TNF_OK;
    if (tnf_job_is_remote(job) && !base)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, TNF_NEEDS_BASE);
    if (!is_done(job, base, part) && !was_finished(job, part, &how)) {
        status = do_part(job, part, &how, base, e);
        tnf_job_close(job);
    }
    tnf_text_end(&job->answer);
    status = status == TNF_OK ? tnf_buf_status(&job->answer, "a receipt", e) : status;
    if (receipt && status == TNF_OK)
        *receipt = (tnf_str) { (const char *)job->answer.p, job->answer.n };
    return status;
}
