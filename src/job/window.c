/* SPDX-License-Identifier: MIT */
/* A sink that takes some bytes of a file that several workers write.
 *
 *   file     header │ tensor a │ tensor b …           as the format's writer streams it
 *   window              [       ]                     is written to its place, the rest is dropped
 *   leaves              leaf│leaf│frame│leaf          of the tensors in it, and of bytes between
 */
#include "io/sink.h"
#include "job/job.h"

#include <string.h>
#include <unistd.h>

#define FRAME_MAX ((uint64_t)64 << 20) /* most bytes that every part makes again */

static bool all_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static void end_leaf(struct window_sink *w)
{
    tnf_digest_end(&w->leaf, w->leaves);
    w->leaves += TNF_HASH_BYTES;
    w->in_leaf = false;
}

/* Hashes the first of n bytes at `at`, up to the end of their leaf or frame. */
static tnf_status hash_run(struct window_sink *w, uint64_t at, const uint8_t *p, size_t n,
                           size_t *done, tnf_error *e)
{
    size_t end = w->window.item + w->window.nitems;
    const struct job_item *item = w->item < end ? &w->job->items[w->item] : NULL;
    if (!item || at < item->at) {
        *done = item && item->at - at < n ? (size_t)(item->at - at) : n;
        tnf_digest_update(&w->frame, p, *done);
        return TNF_OK;
    }
    uint64_t in = at - item->at, left = item->bytes - in;
    uint64_t leaf = TNF_LEAF_BYTES - in % TNF_LEAF_BYTES;
    leaf = leaf < left ? leaf : left;
    *done = leaf < n ? (size_t)leaf : n;
    if (!w->in_leaf)
        TNF_TRY(tnf_content_begin(&w->leaf, TNF_LEAF_TITLE, e));
    w->in_leaf = true;
    tnf_digest_update(&w->leaf, p, *done);
    if (*done == leaf)
        end_leaf(w);
    w->item += *done == left;
    return TNF_OK;
}

static tnf_status take_wanted(struct window_sink *w, uint64_t at, const uint8_t *p, size_t n,
                              tnf_error *e)
{
    /* The file is new, so blocks of zeros need not be written. */
    if (w->sending)
        TNF_TRY(tnf_sending_take(w->sending, p, n, e));
    else if (n < 4096 || !all_zero(p, n))
        TNF_TRY(tnf_fs_write_at(w->fd, p, n, at, e));
    for (size_t done; n > 0; at += done, p += done, n -= done)
        TNF_TRY(hash_run(w, at, p, n, &done, e));
    return TNF_OK;
}

static tnf_status window_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct window_sink *w = ctx;
    uint64_t at = w->pos, first = w->window.first, end = w->window.end;
    w->pos += n;
    w->framed += n;
    bool learns = w->fd < 0 && !w->sending;
    if (learns && w->framed > FRAME_MAX) {
        w->unlaid = true;
        return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET,
                        "the layout of the output cannot be computed");
    }
    if (learns || at >= end || at + n <= first)
        return TNF_OK;
    size_t skip = first > at ? (size_t)(first - at) : 0;
    size_t wanted = (end - at < n ? (size_t)(end - at) : n) - skip;
    return take_wanted(w, at + skip, (const uint8_t *)bytes + skip, wanted, e);
}

static void window_pass(void *ctx, uint64_t n)
{
    ((struct window_sink *)ctx)->pos += n;
}

static tnf_status window_place(void *ctx, tnf_str tensor, const tnf_part *part, bool cuts,
                               bool plain, tnf_error *e)
{
    struct window_sink *w = ctx;
    if (!w->place)
        return TNF_OK;
    if (plain)
        return w->place(w->ctx, tensor, part, w->pos, cuts, e);
    w->unlaid = true;
    return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET,
                    "the layout of the output cannot be computed");
}

/* Some formats go back to patch bytes if a sink supports it. This sink claims to, like a file; but
 * then the layout cannot be computed. */
static tnf_status window_patch(void *ctx, uint64_t at, const void *bytes, size_t n, tnf_error *e)
{
    struct window_sink *w = ctx;
    (void)at;
    (void)bytes;
    (void)n;
    w->unlaid = true;
    return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET,
                    "the layout of the output cannot be computed");
}

static const tnf_sink_ops window_ops = { .version = TNF_SINK_OPS_VERSION, .write = window_write };

tnf_status tnf_window_open(tnf_sink **out, struct window_sink *w, tnf_error *e)
{
    w->item = w->window.item;
    w->wants = (tnf_window) { w->window.first, w->window.end, window_place, window_pass };
    TNF_TRY(tnf_content_begin(&w->frame, TNF_FRAME_TITLE, e));
    tnf_status status = tnf_sink_new(out, &window_ops, w, NULL, e);
    if (status != TNF_OK) {
        tnf_digest_end(&w->frame, NULL);
        return status;
    }
    (*out)->window = &w->wants;
    (*out)->patch = window_patch;
    return TNF_OK;
}

tnf_status tnf_window_close(tnf_sink *sink, struct window_sink *w, tnf_status status, tnf_error *e)
{
    tnf_sink_close(sink);
    if (w->in_leaf)
        tnf_digest_end(&w->leaf, NULL);
    tnf_digest_end(&w->frame, w->frame_hash);
    if (status != TNF_OK || (w->fd < 0 && !w->sending))
        return status;
    if (w->in_leaf || w->item != w->window.item + w->window.nitems || w->pos < w->window.end)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "the output differs from the plan");
    return TNF_OK;
}

tnf_status tnf_window_hash(tnf_digester *d, int fd, uint64_t at, uint64_t n, uint8_t *block,
                           tnf_error *e)
{
    for (size_t here; n > 0; at += here, n -= here) {
        size_t got;
        here = n < TNF_WINDOW_BLOCK ? (size_t)n : TNF_WINDOW_BLOCK;
        TNF_TRY(tnf_fs_read_at(fd, block, here, at, &got, e));
        if (got < here)
            return tnf_fail(e, TNF_ETRUNCATED, at + got, "the file is truncated");
        tnf_digest_update(d, block, here);
    }
    return TNF_OK;
}
