/* SPDX-License-Identifier: MIT */
#include "device/plan.h"

#include "base/alloc.h"
#include "base/ckd.h"

#include <stdlib.h>
#include <string.h>

#define GAP         ((uint64_t)64 << 10) /* a smaller gap of unwanted bytes is read, too */
#define LONG_RUN    PLAIN_BLOCK          /* a longer run is a piece of its own */
#define LONG_GAP    ((uint64_t)4 << 10)  /* reading it costs more than another call, if in memory */
#define LANES       4u                   /* requests for the same bytes that are handled fast */

/* The default block sizes. Blocks of plain loads are sent many at a time, so they are as short as a
 * call is worth: few pinned pages are enough, and the blocks fit into the CPU's cache. */
#define PLAIN_BLOCK ((size_t)512 << 10)
#define BLOCK       (((size_t)3 << 20) - 2 * TNF_PAGE - TNF_TABLE(TNF_SLOT_ROWS))
/* From this number of tensors on, with at most this mean size, a kernel distributes them. */
#define MANY_PIECES 1024u
#define SMALL       (BLOCK / 8)

/* The largest gap of unwanted bytes that may be read. From a remote file few long ranges are read,
 * in every mode. */
static uint64_t gap_of(const tnf_load_plan *p, size_t intake)
{
    return p->exact && !p->intakes[intake].source->remote ? 0 : GAP;
}

/* Makes room for one more item after n items. Returns the array, or NULL; then the caller still
 * owns the old one. */
static void *grow_array(void *items, size_t n, size_t *room, size_t size)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    return tnf_grow(&a, items, n, room, size, 256);
}

/* ------------------------------------------------------------- rectangles */

unsigned tnf_load_piece_rectangles(const tnf_load_piece *p, uint64_t low, uint64_t high,
                                   tnf_rectangle out[3])
{
    unsigned n = 0;
    if (p->run == p->span) {
        out[0] = (tnf_rectangle) { 0, p->to + low, high - low, 1, high - low };
        return high > low;
    }
    uint64_t row = low / p->stride, in = low % p->stride, end;
    if (in > 0) { /* the rest of a run that began earlier */
        if (in < p->run) {
            end = row * p->stride + p->run;
            end = end < high ? end : high;
            out[n++] = (tnf_rectangle) { 0, p->to + row * p->run + in, end - low, 1, end - low };
        }
        row++;
    }
    uint64_t rows = high < p->run ? 0 : (high - p->run) / p->stride + 1; /* that end below high */
    uint64_t all = (p->span - p->run) / p->stride + 1;
    if (rows > row) {
        out[n++] = (tnf_rectangle) { row * p->stride - low, p->to + row * p->run, p->run,
                                     rows - row, p->stride };
        row = rows;
    }
    if (row < all && row * p->stride < high) {
        uint64_t left = high - row * p->stride;
        out[n++] = (tnf_rectangle) { row * p->stride - low, p->to + row * p->run, left, 1, left };
    }
    return n;
}

/* ------------------------------------------------------------------ order */

struct keyed {
    uintptr_t source;
    uint64_t at;
    size_t tensor;
};

static int by_place(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static struct keyed key_of(const tnf_load_plan *p, size_t i)
{
    const tnf_load_tensor *w = &p->tensors[i];
    return (struct keyed) { (uintptr_t)w->place.source, w->place.offset + w->first, i };
}

/* Most files list their tensors in the order of their data. */
static bool is_sorted(const tnf_load_plan *p)
{
    for (size_t i = 1; i < p->n; i++) {
        struct keyed before = key_of(p, i - 1), key = key_of(p, i);
        if (by_place(&before, &key) > 0)
            return false;
    }
    return true;
}

/* Sorts the tensors by file and place, those without a file first. */
static tnf_status sort_tensors(tnf_load_plan *p, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    p->order = tnf_alloc(&a, p->n * sizeof *p->order);
    if (!p->order)
        return tnf_no_memory("planning a load", e);
    for (size_t i = 0; i < p->n; i++)
        p->order[i] = i;
    if (is_sorted(p))
        return TNF_OK;
    struct keyed *keys = tnf_alloc(&a, p->n * sizeof *keys);
    if (!keys)
        return tnf_no_memory("planning a load", e);
    for (size_t i = 0; i < p->n; i++)
        keys[i] = key_of(p, i);
    qsort(keys, p->n, sizeof *keys, by_place);
    for (size_t i = 0; i < p->n; i++)
        p->order[i] = keys[i].tensor;
    tnf_free(&a, keys, p->n * sizeof *keys);
    return TNF_OK;
}

/* ---------------------------------------------------------------- intakes */

static tnf_status find_intakes(tnf_load_plan *p, tnf_device_read_mode mode, tnf_error *e)
{
    for (size_t i = 0; i < p->n; i++) {
        tnf_load_tensor *w = &p->tensors[p->order[i]];
        uint64_t low = w->place.offset + w->first;
        uint64_t high = low + (w->count ? (w->count - 1) * w->stride + w->run : 0);
        if (!w->place.source || w->count == 0)
            continue;
        tnf_intake *last = p->nintakes ? &p->intakes[p->nintakes - 1] : NULL;
        if (!last || last->source != w->place.source) {
            tnf_intake *intakes = grow_array(p->intakes, p->nintakes, &p->room_intakes,
                                             sizeof *intakes);
            if (!intakes)
                return tnf_no_memory("planning a load", e);
            p->intakes = intakes;
            last = &p->intakes[p->nintakes++];
            *last = (tnf_intake) { w->place.source, w->place.label, low, high, -1, false };
        }
        last->high = high > last->high ? high : last->high;
        w->intake = p->nintakes - 1;
    }
    for (size_t i = 0; i < p->nintakes; i++)
        tnf_intake_open(&p->intakes[i], mode);
    return TNF_OK;
}

/* ----------------------------------------------------------------- pieces */

static tnf_status add_piece(tnf_load_plan *p, tnf_load_piece piece, tnf_error *e)
{
    tnf_load_piece *pieces = grow_array(p->pieces, p->npieces, &p->room_pieces, sizeof *pieces);
    if (!pieces)
        return tnf_no_memory("planning a load", e);
    p->pieces = pieces;
    p->pieces[p->npieces++] = piece;
    return TNF_OK;
}

/* A run that is long, or larger than a block, is a piece of its own. Short runs are read one by one
 * if the gaps are large, or if the file is in memory and a gap costs more than a call. Otherwise
 * they are read with their gaps, which the copy to the device leaves out. */
static tnf_status add_pieces(tnf_load_plan *p, size_t tensor, tnf_error *e)
{
    const tnf_load_tensor *w = &p->tensors[tensor];
    uint64_t at = w->place.offset + w->first;
    if (w->count > 1 && (w->run >= LONG_RUN || w->run > p->block)) {
        for (uint64_t i = 0; i < w->count; i++)
            TNF_TRY(add_piece(p,
                              (tnf_load_piece) { tensor, at + i * w->stride, w->run, w->run, w->run,
                                                 i * w->run, false },
                              e));
        return TNF_OK;
    }
    uint64_t span = (w->count - 1) * w->stride + w->run, gap = w->stride - w->run;
    bool in_memory = p->intakes[w->intake].cached && !p->intakes[w->intake].source->remote;
    tnf_load_piece piece = { tensor, at, span, w->count > 1 ? w->run : span, w->stride, 0, false };
    piece.gather = w->count > 1 && (gap >= gap_of(p, w->intake) || (in_memory && gap >= LONG_GAP));
    return add_piece(p, piece, e);
}

/* Are any bytes requested twice? */
static bool has_overlaps(const tnf_load_plan *p)
{
    for (size_t i = 1; i < p->npieces; i++) {
        const tnf_load_piece *before = &p->pieces[i - 1], *x = &p->pieces[i];
        if (p->tensors[before->tensor].intake == p->tensors[x->tensor].intake &&
            x->at < before->at + before->span)
            return true;
    }
    return false;
}

/* If bytes are requested several times, pieces overlap. They are sorted into lanes without
 * overlaps, one lane after the other. */
static tnf_status sort_lanes(tnf_load_plan *p, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = p->npieces * sizeof *p->pieces, done = 0, left = p->npieces;
    tnf_load_piece *rest = tnf_alloc(&a, size), *from = rest;
    if (!rest)
        return tnf_no_memory("planning a load", e);
    if (size)
        memcpy(rest, p->pieces, size);
    for (unsigned lane = 0; lane < LANES && left > 0; lane++) {
        uint64_t end = 0;
        size_t kept = 0, intake = SIZE_MAX;
        for (size_t i = 0; i < left; i++) {
            size_t in = p->tensors[from[i].tensor].intake;
            if (in == intake && from[i].at < end) {
                from[kept++] = from[i];
                continue;
            }
            intake = in;
            end = from[i].at + from[i].span;
            p->pieces[done++] = from[i];
        }
        left = kept;
    }
    for (size_t i = 0; i < left; i++)
        p->pieces[done++] = from[i];
    tnf_free(&a, rest, size);
    return TNF_OK;
}

/* ------------------------------------------------------------------- tasks */

static tnf_status add_task(tnf_load_plan *p, tnf_load_task task, tnf_error *e)
{
    tnf_load_task *tasks = grow_array(p->tasks, p->njobs, &p->room_tasks, sizeof *tasks);
    if (!tasks)
        return tnf_no_memory("planning a load", e);
    p->tasks = tasks;
    p->tasks[p->njobs++] = task;
    return TNF_OK;
}

static tnf_status cut_gather(tnf_load_plan *p, size_t piece, tnf_error *e)
{
    const tnf_load_piece *x = &p->pieces[piece];
    uint64_t all = (x->span - x->run) / x->stride + 1, rows = p->block / x->run;
    for (uint64_t i = 0; i < all; i += rows) {
        uint64_t some = all - i < rows ? all - i : rows;
        TNF_TRY(add_task(p, (tnf_load_task) { TNF_READ_GATHER, piece, 1, i, some * x->run }, e));
    }
    return TNF_OK;
}

/* The block that is being filled. */
struct filling {
    tnf_load_task *task; /* NULL: none */
    size_t intake;
    uint64_t limit; /* its largest possible end */
};

static bool fits_block(const tnf_load_plan *p, const struct filling *f, size_t intake, uint64_t at)
{
    uint64_t end = f->task ? f->task->at + f->task->bytes : 0;
    return f->task && f->intake == intake && at >= end && at - end <= gap_of(p, intake) &&
           at < f->limit;
}

static tnf_status begin_block(tnf_load_plan *p, struct filling *f, size_t piece, uint64_t at,
                              tnf_error *e)
{
    const tnf_load_tensor *w = &p->tensors[p->pieces[piece].tensor];
    TNF_TRY(add_task(p, (tnf_load_task) { TNF_READ_BLOCK, piece, 1, at, 0 }, e));
    f->task = &p->tasks[p->njobs - 1];
    f->intake = w->intake;
    f->limit = (w->kernel ? at : at / TNF_PAGE * TNF_PAGE) + p->block;
    return TNF_OK;
}

static tnf_status cut_piece(tnf_load_plan *p, struct filling *f, size_t piece, tnf_error *e)
{
    const tnf_load_piece *x = &p->pieces[piece];
    const tnf_load_tensor *w = &p->tensors[x->tensor];
    for (uint64_t at = x->at, end = x->at + x->span; at < end;) {
        if (!fits_block(p, f, w->intake, at))
            TNF_TRY(begin_block(p, f, piece, at, e));
        uint64_t take = end - at, room = f->limit - at;
        if (take > room)
            take = room / w->unit * w->unit;
        if (take == 0) {
            f->task = NULL;
            continue;
        }
        at += take;
        f->task->bytes = at - f->task->at;
        f->task->npieces = piece - f->task->first + 1;
        if (at < end)
            f->task = NULL;
    }
    return TNF_OK;
}

static tnf_status cut_part(tnf_load_plan *p, size_t tensor, tnf_error *e)
{
    const tnf_load_tensor *w = &p->tensors[tensor];
    if (!w->place.anywhere)
        return add_task(p, (tnf_load_task) { TNF_READ_SCAN, tensor, 1, 0, w->run }, e);
    for (uint64_t at = 0; at < w->run; at += p->block) {
        uint64_t n = w->run - at < p->block ? w->run - at : p->block;
        TNF_TRY(add_task(p, (tnf_load_task) { TNF_READ_PART, tensor, 1, at, n }, e));
    }
    return TNF_OK;
}

/* Tensors that can only be read in order come first, since they take longest. */
static tnf_status cut_tasks(tnf_load_plan *p, tnf_error *e)
{
    struct filling f = { 0 };
    for (int anywhere = 0; anywhere < 2; anywhere++)
        for (size_t i = 0; i < p->n; i++) {
            const tnf_load_tensor *w = &p->tensors[i];
            if (!w->place.source && w->count && w->place.anywhere == (anywhere == 1))
                TNF_TRY(cut_part(p, i, e));
        }
    for (size_t i = 0; i < p->npieces; i++) {
        if (p->pieces[i].gather) {
            f.task = NULL;
            TNF_TRY(cut_gather(p, i, e));
        } else {
            TNF_TRY(cut_piece(p, &f, i, e));
        }
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------- plan */

static tnf_status make_tensors(tnf_load_plan *p, tnf_device *device,
                               const tnf_device_request *requests, tnf_error *e)
{
    for (size_t i = 0; i < p->n; i++) {
        tnf_load_tensor *w = &p->tensors[i];
        TNF_TRY(tnf_load_tensor_make(w, device, &requests[i], e));
        if (!tnf_ckd_add(&p->device_bytes, p->device_bytes, w->bytes) ||
            !tnf_ckd_add(&p->source_bytes, p->source_bytes, w->run * w->count))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the tensors have too many bytes");
    }
    return TNF_OK;
}

/* Can the ring serve the load? Not with direct reads, which need room at both ends of each block,
 * and not with tensors that are read in order, whose length is unknown in advance. */
static bool is_plain(const tnf_load_plan *p)
{
    for (size_t i = 0; i < p->nintakes; i++)
        if (p->intakes[i].direct >= 0 || !p->intakes[i].cached)
            return false;
    for (size_t i = 0; i < p->n; i++) {
        const tnf_load_tensor *w = &p->tensors[i];
        if (!w->place.source && w->count && !w->place.anywhere)
            return false;
    }
    return true;
}

static bool has_kernel(const tnf_load_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->tensors[i].kernel)
            return true;
    return false;
}

static bool is_small(const tnf_load_plan *p)
{
    return p->npieces >= MANY_PIECES && p->source_bytes / p->npieces <= SMALL;
}

tnf_status tnf_load_plan_make(tnf_load_plan *p, tnf_device *device,
                              const tnf_device_request *requests, size_t n,
                              const tnf_load_options *how, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    *p = (tnf_load_plan) { .block = how->block ? how->block : BLOCK,
                           .exact = how->read == TNF_DEVICE_READ_EXACT };
    if (n > SIZE_MAX / sizeof(tnf_load_tensor) ||
        !(p->tensors = tnf_alloc0(&a, n * sizeof *p->tensors)))
        return tnf_no_memory("planning a load", e);
    p->n = n;
    TNF_TRY(make_tensors(p, device, requests, e));
    TNF_TRY(sort_tensors(p, e));
    TNF_TRY(find_intakes(p, how->read, e));
    for (size_t i = 0; i < n; i++)
        if (p->tensors[p->order[i]].place.source && p->tensors[p->order[i]].count)
            TNF_TRY(add_pieces(p, p->order[i], e));
    if (has_overlaps(p))
        TNF_TRY(sort_lanes(p, e));
    p->small = is_small(p);
    p->computes = has_kernel(p);
    p->plain = is_plain(p);
    if (p->plain && how->block == 0)
        p->block = PLAIN_BLOCK;
    return cut_tasks(p, e);
}

void tnf_load_plan_free(tnf_load_plan *p)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    for (size_t i = 0; i < p->nintakes; i++)
        tnf_intake_close(&p->intakes[i]);
    for (size_t i = 0; i < p->n; i++)
        tnf_memory_drop(p->tensors[i].scales);
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = sizeof p->tensors->made / sizeof *p->tensors->made; k-- > 0;)
            tnf_virtual_free(p->tensors[i].made[k]);
    tnf_free(&a, p->tensors, p->n * sizeof *p->tensors);
    tnf_free(&a, p->order, p->n * sizeof *p->order);
    tnf_free(&a, p->intakes, p->room_intakes * sizeof *p->intakes);
    tnf_free(&a, p->pieces, p->room_pieces * sizeof *p->pieces);
    tnf_free(&a, p->tasks, p->room_tasks * sizeof *p->tasks);
    *p = (tnf_load_plan) { 0 };
}
