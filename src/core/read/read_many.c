/* SPDX-License-Identifier: MIT */
/* Reads many parts at once.
 *
 *   requests   a b c d …                         in the caller's order
 *   pieces     c ab d1 d2 d3 …                   sorted by source and position, large ones divided
 *   tasks       [c ab] [d1] [d2] [d3] …           about 8 MiB each, taken by the threads in order
 *
 * Each task is one call to its source, which merges neighbours into one system call.
 */
#include "base/pool.h"
#include "base/sized.h"
#include "core/core.h"
#include "core/look/progress.h"
#include "core/read/place.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK        ((size_t)8 << 20)
#define MAX_TASK     4096u               /* pieces; there may be thousands of small tensors */
#define WORTH_THREAD ((uint64_t)4 << 20) /* below this a thread costs more than it saves */

struct piece {
    const struct tnf_origin *origin; /* NULL: read the part in one call */
    const tnf_part *part;
    tnf_range range;
};

struct task {
    const struct piece *piece; /* the first one */
    size_t first, n;           /* its ranges */
    size_t bytes;
};

struct work {
    struct piece *pieces;
    tnf_range *ranges; /* in the order of the pieces, adjacent ones joined */
    struct task *tasks;
    size_t npieces, nranges, njobs;
    tnf_progress progress;
    pthread_mutex_t lock; /* guards progress */
};

static bool is_plain(const tnf_part *p)
{
    return p->payload == TNF_AT && !(p->flags & (TNF_PART_BIG_ENDIAN | TNF_PART_UNREADABLE)) &&
           !tnf_checks_reads(p);
}

static int by_place(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    uintptr_t s = (uintptr_t)x->origin, t = (uintptr_t)y->origin;
    if (s != t)
        return s < t ? -1 : 1;
    return x->range.offset < y->range.offset ? -1 : x->range.offset > y->range.offset;
}

static size_t count_pieces(const tnf_request *requests, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += is_plain(requests[i].part) ? (size_t)(requests[i].part->nbytes / BLOCK) + 1 : 1;
    return count;
}

static void cut_pieces(struct work *w, const tnf_request *requests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tnf_part *p = requests[i].part;
        w->progress.total += p->nbytes;
        if (!is_plain(p)) {
            w->pieces[w->npieces++] = (struct piece) { NULL,
                                                       p,
                                                       { 0, (size_t)p->nbytes, requests[i].dst } };
            continue;
        }
        for (uint64_t at = 0; at < p->nbytes; at += BLOCK) {
            size_t len = p->nbytes - at < BLOCK ? (size_t)(p->nbytes - at) : BLOCK;
            w->pieces[w->npieces++] = (struct piece) {
                p->origin, p, { p->offset + at, len, (uint8_t *)requests[i].dst + at }
            };
        }
    }
}

/* Requests mostly come in the order of the file already. */
static void sort_pieces(struct work *w)
{
    size_t i = 1;
    while (i < w->npieces && by_place(&w->pieces[i - 1], &w->pieces[i]) <= 0)
        i++;
    if (i < w->npieces)
        qsort(w->pieces, w->npieces, sizeof *w->pieces, by_place);
}

static bool ranges_touch(const tnf_range *a, const tnf_range *b)
{
    return a->offset + a->n == b->offset && (uint8_t *)a->dst + a->n == (uint8_t *)b->dst;
}

/* Neighbours of one source share a task until it is full. Those that are also neighbours in memory
 * become one range. */
static void make_tasks(struct work *w)
{
    for (size_t i = 0; i < w->npieces; i++) {
        const struct piece *p = &w->pieces[i];
        struct task *last = &w->tasks[w->njobs ? w->njobs - 1 : 0];
        bool fits = w->njobs && p->origin && p->origin == last->piece->origin &&
                    last->n < MAX_TASK && last->bytes < BLOCK && p->range.n <= BLOCK - last->bytes;
        if (!fits) {
            last = &w->tasks[w->njobs++];
            *last = (struct task) { .piece = p, .first = w->nranges };
        }
        last->bytes += p->range.n;
        if (last->n && ranges_touch(&w->ranges[w->nranges - 1], &p->range)) {
            w->ranges[w->nranges - 1].n += p->range.n;
        } else {
            w->ranges[w->nranges++] = p->range;
            last->n++;
        }
    }
}

static tnf_status run_task(void *ctx, size_t i, tnf_error *e)
{
    struct work *w = ctx;
    const struct task *j = &w->tasks[i];
    const struct piece *p = j->piece;
    if (!p->origin) {
        TNF_TRY(tnf_read_part(p->range.dst, p->range.n, p->part, 0, e));
        return tnf_progress_add(&w->progress, &w->lock, p->range.n, e);
    }
    tnf_status status = tnf_source_read_many(p->origin->source, w->ranges + j->first, j->n, e);
    if (status != TNF_OK) {
        if (p->origin->label)
            tnf_error_prefix(e, p->origin->label);
        return status;
    }
    return tnf_progress_add(&w->progress, &w->lock, j->bytes, e);
}

tnf_status tnf_read_many(const tnf_request *requests, size_t n, const tnf_read_options *options,
                         tnf_error *e)
{
    TNF_TRY(tnf_need_array(requests, n, "requests", e));
    tnf_read_options how;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_read_options, &how, options, e));
    for (size_t i = 0; i < n; i++) {
        TNF_TRY(tnf_need_part(requests[i].part, e));
        TNF_TRY(tnf_need_array(requests[i].dst, requests[i].part->nbytes, "dst", e));
    }
    size_t count = count_pieces(requests, n);
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = count * (sizeof(struct piece) + sizeof(tnf_range) + sizeof(struct task));
    uint8_t *memory = tnf_alloc(&a, size);
    if (!memory)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu reads", count);
    struct work w = { .pieces = (void *)memory,
                      .ranges = (void *)(memory + count * sizeof(struct piece)),
                      .progress = { .tell = how.progress, .ctx = how.ctx },
                      .lock = PTHREAD_MUTEX_INITIALIZER };
    w.tasks = (void *)(w.ranges + count);
    cut_pieces(&w, requests, n);
    sort_pieces(&w);
    make_tasks(&w);
    unsigned threads = w.progress.total < WORTH_THREAD ? 1 : how.threads;
    tnf_status status = tnf_pool_run(threads, w.njobs, run_task, &w, e);
    pthread_mutex_destroy(&w.lock);
    tnf_free(&a, memory, size);
    return status;
}
