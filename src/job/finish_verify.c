/* SPDX-License-Identifier: MIT */
/* Reads the output again, and compares it with the receipts of the parts. */
#include "base/hex.h"
#include "io/fs.h"
#include "job/finishing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tnf_status tnf_finish_find(struct finishing *f, tnf_error *e)
{
    tnf_job *job = f->job;
    f->now = tnf_arena_array(&f->arena, job->nouts, sizeof *f->now);
    if (!f->now)
        return tnf_arena_fail(&f->arena, "paths", e);
    for (size_t i = 0; i < job->nouts; i++) {
        char *temp;
        struct stat st;
        TNF_TRY(tnf_job_temp(&temp, job, i, e));
        bool there = lstat(temp, &st) == 0;
        f->placed = f->placed || !there;
        const char *path = there ? temp : job->outs[i].path;
        bool good = there || (lstat(path, &st) == 0 &&
                              (!job->outs[i].size || (uint64_t)st.st_size == job->outs[i].size));
        f->progress.total += (uint64_t)st.st_size;
        f->now[i] = tnf_arena_str(&f->arena, path, strlen(path));
        tnf_free_path(temp);
        if (!f->now[i])
            return tnf_arena_fail(&f->arena, "paths", e);
        if (!good)
            return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                            "the output of the parts is missing; remove the receipts (finish "
                            "--abort) and run the parts again");
    }
    return TNF_OK;
}

/* Compares the bytes of one part with its receipt. */
struct again {
    struct finishing *f;
    uint64_t part;
    int fd;
    uint8_t *block;
    size_t leaf, window;
};

static bool is_same(const uint8_t hash[TNF_HASH_BYTES], tnf_str hex, size_t i)
{
    uint8_t said[TNF_HASH_BYTES];
    return hex.n >= (i + 1) * 64 && tnf_hex_take(said, hex.p + i * 64, sizeof said) &&
           memcmp(said, hash, sizeof said) == 0;
}

static tnf_status leaf_differs(const struct again *a, const struct job_item *it, uint64_t leaf,
                               uint64_t at, tnf_error *e)
{
    return tnf_fail(e, TNF_EDIGEST, at,
                    "part %" PRIu64 ", leaf %" PRIu64
                    " of %s: the file does not have the bytes that the part wrote; run the parts "
                    "again after finish --abort",
                    a->part, leaf, it ? TNF_QUOTED(it->tensor) : "the file");
}

static tnf_status one_hash(const struct again *a, uint8_t out[TNF_HASH_BYTES], uint64_t at,
                           uint64_t n, tnf_error *e)
{
    tnf_digester d;
    TNF_TRY(tnf_content_begin(&d, TNF_LEAF_TITLE, e));
    tnf_status status = tnf_window_hash(&d, a->fd, at, n, a->block, e);
    tnf_digest_end(&d, out);
    return status;
}

static tnf_status check_leaves(struct again *a, const struct job_item *it, uint64_t at,
                               uint64_t bytes, tnf_error *e)
{
    for (uint64_t done = 0, k = 0; done < bytes; done += TNF_LEAF_BYTES, k++) {
        uint8_t hash[TNF_HASH_BYTES];
        uint64_t n = bytes - done < TNF_LEAF_BYTES ? bytes - done : TNF_LEAF_BYTES;
        TNF_TRY(one_hash(a, hash, at + done, n, e));
        if (!is_same(hash, a->f->receipts[a->part].leaves, a->leaf++))
            return leaf_differs(a, it, (it ? it->first : 0) + k, at + done, e);
        TNF_TRY(tnf_progress_add(&a->f->progress, &a->f->lock, n, e));
    }
    return TNF_OK;
}

static tnf_status check_frame(struct again *a, const struct job_window *w, tnf_error *e)
{
    const tnf_job *job = a->f->job;
    uint8_t hash[TNF_HASH_BYTES];
    uint64_t at = w->first;
    tnf_digester d;
    TNF_TRY(tnf_content_begin(&d, TNF_FRAME_TITLE, e));
    tnf_status status = TNF_OK;
    for (size_t i = 0; i <= w->nitems && status == TNF_OK; i++) {
        const struct job_item *it = i < w->nitems ? &job->items[w->item + i] : NULL;
        status = tnf_window_hash(&d, a->fd, at, (it ? it->at : w->end) - at, a->block, e);
        at = it ? it->at + it->bytes : w->end;
    }
    tnf_digest_end(&d, hash);
    TNF_TRY(status);
    if (is_same(hash, a->f->receipts[a->part].frame, a->window++))
        return TNF_OK;
    return tnf_fail(e, TNF_EDIGEST, w->first,
                    "part %" PRIu64
                    ": the bytes around the tensors are not those that the part wrote; run the "
                    "parts again after finish --abort",
                    a->part);
}

static tnf_status check_window(struct again *a, const struct job_window *w, tnf_error *e)
{
    a->fd = tnf_fs_open(a->f->now[w->out], O_RDONLY, 0);
    if (a->fd < 0)
        return tnf_fail_sys(e, errno, "cannot read %s", TNF_VISIBLE(a->f->now[w->out]));
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < w->nitems && status == TNF_OK; i++) {
        const struct job_item *it = &a->f->job->items[w->item + i];
        status = check_leaves(a, it, it->at, it->bytes, e);
    }
    if (status == TNF_OK)
        status = check_frame(a, w, e);
    close(a->fd);
    return status;
}

static tnf_status check_whole(struct again *a, size_t out, tnf_error *e)
{
    struct stat st;
    a->fd = tnf_fs_open(a->f->now[out], O_RDONLY, 0);
    if (a->fd < 0 || fstat(a->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot read %s", TNF_VISIBLE(a->f->now[out]));
    tnf_status status = check_leaves(a, NULL, 0, (uint64_t)st.st_size, e);
    close(a->fd);
    return status;
}

static tnf_status check_part(struct finishing *f, uint64_t part, uint8_t *block, tnf_error *e)
{
    struct again a = { .f = f, .part = part, .fd = -1, .block = block };
    struct job_window *windows;
    size_t n, first, end;
    tnf_arena arena;
    tnf_job_items(f->job, part, &first, &end);
    if (strcmp(f->job->mode, "whole") == 0) {
        for (size_t i = first; i < end; i++)
            TNF_TRY(check_whole(&a, f->job->items[i].out, e));
        return TNF_OK;
    }
    tnf_scratch_begin(&arena);
    tnf_status status = tnf_job_windows(&windows, &n, f->job, part, &arena, e);
    for (size_t i = 0; i < n && status == TNF_OK; i++)
        status = check_window(&a, &windows[i], e);
    tnf_arena_free(&arena);
    return status;
}

tnf_status tnf_finish_check(void *ctx, size_t part, tnf_error *e)
{
    uint8_t *block = malloc(TNF_WINDOW_BLOCK);
    tnf_status status = block ? check_part(ctx, part, block, e)
                              : tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory");
    free(block);
    return status;
}
