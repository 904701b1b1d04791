/* SPDX-License-Identifier: MIT */
/* The statistics of a file, batch by batch.
 *
 *   tensors   a  b  c  d                  e …
 *   batch     [a][b][c][d1][d2][d3]       pieces, each a task with its own statistics
 *             └──────┬────────────┘
 *                reported in order, then the next batch
 *
 * Only parts that are stored plain can be divided into pieces; an encoded part is read from
 * beginning to end. Sums are computed leaf by leaf (4 MiB, as for hashes) and joined in an order
 * that depends only on their number (base/pairing.h). So the result depends only on the tensor: not
 * on threads, nor on the division of leaves among workers (tnf_stat_some()).
 */
#include "base/ieee.h"
#include "base/pool.h"
#include "base/sized.h"
#include "core/look/progress.h"
#include "core/look/stat_partial.h"
#include "core/look/values.h"
#include "core/read/stream.h"
#include <tenfold/stat.h>
#include <tenfold/virtual.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK        ((size_t)3 << 17) /* bytes read at a time: whole elements of any type */
#define WORTH_THREAD ((uint64_t)6 << 20)
#define PIECES       256u /* the maximum for one tensor */
#define BATCH_BYTES  ((uint64_t)256 << 20)
#define BATCH_TASKS  512u
#define DEFAULT_BINS 32u
#define MAX_BINS     1024u

struct piece {
    size_t object;
    uint64_t first, end; /* leaves of its part */
    tnf_values values;   /* of the current leaf; the histogram is of all leaves */
    tnf_pairing_node *nodes;
    tnf_tally *sums; /* one for each node */
    size_t nnodes;
    tnf_error *problem; /* a fault of the file; NULL: none */
};

struct stats {
    tnf_stat_options options;
    const tnf_file *file;
    tnf_arena arena; /* of the batch */
    struct piece *pieces;
    size_t n;
    uint64_t bytes; /* of the batch */
    tnf_progress progress;
    uint64_t shown[MAX_BINS];
    tnf_tally room[TNF_PAIRING_NODES]; /* for the tensor that is reported */
    const tnf_stat_part *some;         /* NULL: all leaves of all wanted tensors */
    bool plain;                        /* neither histograms nor deviations */
    tnf_virtual **numbers;             /* of quantized tensors; NULL: read as stored */
    pthread_mutex_t lock;              /* guards progress, the allocator and the arena */
};

static bool has_numbers(const tnf_object *o)
{
    return o->layout == &tnf_layout_dense && o->nparts == 1 && tnf_values_known(o->parts->type);
}

/* The tensor that is read: the stored one, or the numbers that a quantized one represents. */
static const tnf_object *object_to_read(const struct stats *s, size_t i)
{
    return s->numbers[i] ? tnf_virtual_object(s->numbers[i]) : &s->file->catalog.objects[i];
}

/* The requested range of leaves of a tensor. */
static const tnf_stat_range *range_of(const struct stats *s, size_t object)
{
    const tnf_stat_range key = { .object = object };
    return s->some && s->some->n
               ? bsearch(&key, s->some->ranges, s->some->n, sizeof key, tnf_stat_range_compare)
               : NULL;
}

static bool is_wanted(const struct stats *s, size_t i)
{
    if (s->some)
        return range_of(s, i) != NULL;
    return !s->options.wanted || s->options.wanted(s->options.ctx, &s->file->catalog.objects[i]);
}

/* A whole number of elements, at least eight: elements of 6 bits do not fill the last byte of 4
 * MiB. */
static uint64_t leaf_bytes(const tnf_type *type)
{
    return TNF_LEAF_BYTES / type->bits * type->bits;
}

static uint64_t count_leaves(const tnf_object *o)
{
    uint64_t n = has_numbers(o) ? o->parts->nbytes : 0, leaf = n ? leaf_bytes(o->parts->type) : 1;
    return n / leaf + (n % leaf != 0);
}

static void join_sums(void *t, const void *more)
{
    tnf_tally_merge(t, more);
}

tnf_pairing tnf_stat_sums(tnf_tally room[TNF_PAIRING_NODES])
{
    return (tnf_pairing) { .size = sizeof *room, .join = join_sums, .results = (uint8_t *)room };
}

/* ------------------------------------------------------------------- tasks */

struct reading {
    struct stats *s;
    struct piece *p;
    const tnf_object *o;
    tnf_stream stream;
    uint8_t *block;
    const uint8_t *there; /* all bytes, if they are in memory */
};

static tnf_status read_leaf(struct reading *r, uint64_t leaf, tnf_error *e)
{
    const tnf_type *type = r->o->parts->type;
    uint64_t from = leaf * leaf_bytes(type), all = r->o->parts->nbytes;
    uint64_t to = all - from < leaf_bytes(type) ? all : from + leaf_bytes(type);
    uint64_t left = tnf_elements(r->o) - from / type->bits * 8;
    r->p->values.tally = (tnf_tally) { 0 };
    for (uint64_t at = from; at < to; at += BLOCK) {
        size_t n = to - at < BLOCK ? (size_t)(to - at) : BLOCK;
        if (!r->there)
            TNF_TRY(tnf_stream_read(&r->stream, at, r->block, n, e));
        uint64_t here = (uint64_t)n * 8 / type->bits;
        here = here < left ? here : left;
        tnf_values_take(&r->p->values, type, r->there ? r->there + at : r->block, (size_t)here);
        left -= here;
        TNF_TRY(tnf_progress_add(&r->s->progress, &r->s->lock, n, e));
    }
    return TNF_OK;
}

/* Keeps the complete sums of the piece: one node if it is aligned. */
static tnf_status keep_sums(struct stats *s, struct piece *p, const tnf_pairing *sums, tnf_error *e)
{
    pthread_mutex_lock(&s->lock);
    p->nodes = tnf_arena_array(&s->arena, sums->n, sizeof *p->nodes);
    p->sums = tnf_arena_array(&s->arena, sums->n, sizeof *p->sums);
    pthread_mutex_unlock(&s->lock);
    if (!p->nodes || !p->sums)
        return tnf_arena_fail(&s->arena, "figures", e);
    p->nnodes = sums->n;
    memcpy(p->nodes, sums->nodes, sums->n * sizeof *p->nodes);
    memcpy(p->sums, sums->results, sums->n * sizeof *p->sums);
    return TNF_OK;
}

static tnf_status read_piece(struct reading *r, tnf_error *e)
{
    tnf_tally room[TNF_PAIRING_NODES];
    tnf_pairing sums = tnf_stat_sums(room);
    struct piece *p = r->p;
    for (uint64_t leaf = p->first; leaf < p->end; leaf++) {
        TNF_TRY(read_leaf(r, leaf, e));
        (void)tnf_pairing_add(&sums, (tnf_pairing_node) { leaf, 0 }, &p->values.tally);
    }
    if (p->end == count_leaves(r->o))
        TNF_TRY(tnf_stream_end(&r->stream, e));
    return sums.n ? keep_sums(r->s, p, &sums, e) : TNF_OK;
}

/* The handle's allocator might not be thread-safe. */
static void *resize_memory(struct stats *s, void *p, size_t old, size_t size)
{
    void *out = NULL;
    pthread_mutex_lock(&s->lock);
    if (size > 0)
        out = tnf_alloc(&s->file->alloc, size);
    else
        tnf_free(&s->file->alloc, p, old);
    pthread_mutex_unlock(&s->lock);
    return out;
}

static tnf_status take_piece(struct stats *s, struct piece *p, tnf_error *e)
{
    struct reading r = { .s = s, .p = p, .o = object_to_read(s, p->object) };
    uint64_t all = r.o->parts->nbytes;
    size_t size = all == 0 ? 1 : all < BLOCK ? (size_t)all : BLOCK;
    TNF_TRY(tnf_stream_open(&r.stream, r.o->parts, e));
    r.there = tnf_part_in_memory(r.o->parts);
    r.block = resize_memory(s, NULL, 0, size);
    tnf_status status = r.block ? read_piece(&r, e) : tnf_no_memory("reading", e);
    (void)resize_memory(s, r.block, size, 0);
    tnf_stream_close(&r.stream);
    return status;
}

static tnf_status run_piece(void *ctx, size_t i, tnf_error *e)
{
    struct stats *s = ctx;
    struct piece *p = &s->pieces[i];
    tnf_error error = { .offset = TNF_NO_OFFSET };
    if (!has_numbers(object_to_read(s, p->object)))
        return TNF_OK;
    tnf_status status = take_piece(s, p, &error);
    if (status == TNF_OK)
        return TNF_OK;
    if (!tnf_is_file_fault(status) || !s->options.problem) {
        *e = error;
        return status;
    }
    pthread_mutex_lock(&s->lock);
    p->problem = tnf_arena_alloc(&s->arena, sizeof *p->problem);
    pthread_mutex_unlock(&s->lock);
    if (!p->problem)
        return tnf_arena_fail(&s->arena, "a problem", e);
    *p->problem = error;
    return TNF_OK;
}

/* ---------------------------------------------------------------- batches */

/* The number of leaves per piece: a power of two, so that most pieces give a single sum. */
static uint64_t piece_leaves(const tnf_object *o)
{
    uint64_t n = count_leaves(o), step = 1;
    if (n == 0 || !tnf_part_anywhere(o->parts))
        return UINT64_MAX;
    while (n / step >= PIECES)
        step *= 2;
    return step;
}

/* The statistics of a piece need memory of their own: a histogram is 16 KiB. */
static tnf_status add_piece(struct stats *s, size_t object, uint64_t first, uint64_t end,
                            tnf_error *e)
{
    struct piece *p = &s->pieces[s->n++];
    *p = (struct piece) { .object = object, .first = first, .end = end };
    p->values.spread = !s->plain;
    if (!has_numbers(object_to_read(s, object)) || s->plain)
        return TNF_OK;
    p->values.bins = tnf_arena_alloc(&s->arena, sizeof *p->values.bins);
    return p->values.bins ? TNF_OK : tnf_arena_fail(&s->arena, "histograms", e);
}

static tnf_status add_pieces(struct stats *s, size_t object, const tnf_stat_range *range,
                             tnf_error *e)
{
    const tnf_object *o = object_to_read(s, object);
    uint64_t step = piece_leaves(o), first = range ? range->first : 0;
    uint64_t end = range && range->n != TNF_ALL_LEAVES ? first + range->n : count_leaves(o);
    do {
        uint64_t to = step == UINT64_MAX ? end : (first / step + 1) * step;
        to = to < end ? to : end;
        TNF_TRY(add_piece(s, object, first, to, e));
        s->bytes += (to - first) * TNF_LEAF_BYTES;
        first = to;
    } while (first < end);
    return TNF_OK;
}

/* Adds tensors from *next on until the batch is full. */
static tnf_status fill_batch(struct stats *s, size_t *next, tnf_error *e)
{
    const tnf_catalog *c = &s->file->catalog;
    s->n = 0;
    s->bytes = 0;
    s->pieces = tnf_arena_array(&s->arena, BATCH_TASKS + PIECES + 2, sizeof *s->pieces);
    if (!s->pieces)
        return tnf_arena_fail(&s->arena, "figures", e);
    for (; *next < c->n && s->n < BATCH_TASKS && s->bytes < BATCH_BYTES; (*next)++)
        if (is_wanted(s, *next))
            TNF_TRY(add_pieces(s, *next, range_of(s, *next), e));
    return TNF_OK;
}

/* Reports the statistics of a complete tensor. */
static void tell_figures(struct stats *s, size_t object, tnf_pairing *sums, const tnf_bins *bins)
{
    const tnf_object *o = object_to_read(s, object);
    tnf_stat stat = { .object = &s->file->catalog.objects[object], .numbers = has_numbers(o) };
    tnf_values values = { .spread = !s->plain };
    tnf_value_counts counts = { 0 };
    const uint32_t mode = tnf_enter_ieee();
    if (stat.numbers) {
        (void)tnf_pairing_end(sums, &values.tally);
        counts = tnf_values_counts(&values, o->parts[0].type);
        stat.counts = &counts;
        stat.type = o->parts->type;
    }
    if (stat.numbers && bins) {
        stat.bins = s->shown;
        stat.nbins = s->options.bins;
        tnf_bins_show(bins, counts.min, counts.max, s->shown, stat.nbins);
    }
    tnf_leave_ieee(mode);
    if (s->options.tensor)
        s->options.tensor(s->options.ctx, &stat);
}

/* Merges the results of all pieces into the first one. Returns the position after the last
 * piece. */
static size_t tell_tensor(struct stats *s, size_t i)
{
    const struct piece *first = &s->pieces[i];
    tnf_pairing sums = tnf_stat_sums(s->room);
    const tnf_error *problem = NULL;
    const tnf_object *named = &s->file->catalog.objects[first->object];
    uint64_t from = first->first, end = 0;
    for (; i < s->n && s->pieces[i].object == first->object; i++) {
        const struct piece *p = &s->pieces[i];
        problem = problem ? problem : p->problem;
        for (size_t k = 0; k < p->nnodes && !problem; k++)
            (void)tnf_pairing_add(&sums, p->nodes[k], &p->sums[k]);
        if (p != first && first->values.bins)
            tnf_bins_merge(first->values.bins, p->values.bins);
        end = p->end;
    }
    bool all = from == 0 && end == count_leaves(object_to_read(s, first->object));
    if (problem)
        s->options.problem(s->options.ctx, named, problem);
    else if (all)
        tell_figures(s, first->object, &sums, first->values.bins);
    else
        s->some->piece(s->options.ctx, named, &sums, first->values.bins);
    return i;
}

static tnf_status run_batch(struct stats *s, size_t *next, tnf_error *e)
{
    TNF_TRY(fill_batch(s, next, e));
    unsigned threads = s->bytes < WORTH_THREAD ? 1 : tnf_pool_threads(s->options.threads);
    TNF_TRY(tnf_pool_run(threads, s->n, run_piece, s, e));
    for (size_t i = 0; i < s->n;)
        i = tell_tensor(s, i);
    return TNF_OK;
}

static tnf_status run_all(struct stats *s, tnf_error *e)
{
    const tnf_catalog *c = &s->file->catalog;
    if (s->options.bins > MAX_BINS)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%u bins were requested, but at most %u are allowed", s->options.bins,
                        MAX_BINS);
    s->options.bins = s->options.bins ? s->options.bins : DEFAULT_BINS;
    for (size_t i = 0; i < c->n; i++)
        if (has_numbers(object_to_read(s, i)) && is_wanted(s, i))
            s->progress.total += object_to_read(s, i)->parts->nbytes;
    for (size_t next = 0; next < c->n;) {
        tnf_arena_init(&s->arena, &s->file->alloc, UINT64_MAX);
        tnf_status status = run_batch(s, &next, e);
        tnf_arena_free(&s->arena);
        TNF_TRY(status);
    }
    return TNF_OK;
}

/* Makes the numbers of a quantized tensor that follows the rules of its layout; other tensors are
 * read as stored. */
static tnf_status make_values(tnf_virtual **out, const tnf_object *o, tnf_error *e)
{
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_error broken = { .offset = TNF_NO_OFFSET };
    if (o->layout == &tnf_layout_dense || !tnf_layout_has_values(o->layout))
        return TNF_OK;
    tnf_status status = tnf_virtual_new(out, &o, 1, &how, &broken);
    if (status == TNF_OK || tnf_is_file_fault(status))
        return TNF_OK;
    if (e)
        *e = broken;
    return status;
}

static tnf_status make_all_values(struct stats *s, tnf_error *e)
{
    const tnf_catalog *c = &s->file->catalog;
    s->numbers = tnf_alloc0(&s->file->alloc, (c->n + 1) * sizeof *s->numbers);
    if (!s->numbers)
        return tnf_no_memory("statistics", e);
    for (size_t i = 0; i < c->n; i++)
        if (is_wanted(s, i))
            TNF_TRY(make_values(&s->numbers[i], &c->objects[i], e));
    return TNF_OK;
}

static void free_all_values(struct stats *s)
{
    size_t n = s->file->catalog.n;
    for (size_t i = 0; s->numbers && i < n; i++)
        tnf_virtual_free(s->numbers[i]);
    tnf_free(&s->file->alloc, s->numbers, (n + 1) * sizeof *s->numbers);
}

static tnf_status check_ranges(const struct stats *s, tnf_error *e)
{
    for (size_t i = 0; i < s->some->n; i++) {
        const tnf_stat_range *r = &s->some->ranges[i];
        uint64_t leaves = r->object < s->file->catalog.n
                              ? count_leaves(object_to_read(s, r->object))
                              : 0;
        bool cut = r->first != 0 || r->n < leaves;
        bool all = r->first == 0 && r->n == TNF_ALL_LEAVES;
        if (r->object >= s->file->catalog.n ||
            (!all && (r->first > leaves || r->n > leaves - r->first)) ||
            (cut && !tnf_part_anywhere(object_to_read(s, r->object)->parts)))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there are no such leaves");
    }
    return TNF_OK;
}

static tnf_status look_at_values(struct stats *s, const tnf_stat_options *options, tnf_error *e)
{
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_stat_options, &s->options, options, e));
    s->progress = (tnf_progress) { .tell = s->options.progress, .ctx = s->options.ctx };
    tnf_status status = make_all_values(s, e);
    if (status == TNF_OK && s->some)
        status = check_ranges(s, e);
    if (status == TNF_OK)
        status = run_all(s, e);
    free_all_values(s);
    pthread_mutex_destroy(&s->lock);
    return status;
}

tnf_status tnf_values_file(const tnf_file *file, const tnf_stat_options *options, bool plain,
                           tnf_error *e)
{
    struct stats s = { .file = file, .plain = plain, .lock = PTHREAD_MUTEX_INITIALIZER };
    return look_at_values(&s, options, e);
}

tnf_status tnf_stat_file(const tnf_file *file, const tnf_stat_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(file, "file", e));
    return tnf_values_file(file, options, false, e);
}

/* ------------------------------------------------------------- some leaves */

tnf_status tnf_stat_cuts(uint64_t *leaves, const tnf_object *o, tnf_error *e)
{
    tnf_virtual *made = NULL;
    *leaves = 0;
    TNF_TRY(make_values(&made, o, e));
    const tnf_object *numbers = made ? tnf_virtual_object(made) : o;
    if (has_numbers(numbers) && tnf_part_anywhere(numbers->parts))
        *leaves = count_leaves(numbers);
    tnf_virtual_free(made);
    return TNF_OK;
}

tnf_status tnf_stat_some(const tnf_file *file, const tnf_stat_options *options,
                         const tnf_stat_part *some, tnf_error *e)
{
    struct stats s = { .file = file, .some = some, .lock = PTHREAD_MUTEX_INITIALIZER };
    return look_at_values(&s, options, e);
}

tnf_status tnf_stat_tell(const tnf_file *file, size_t object, tnf_pairing *sums,
                         const tnf_bins *bins, const tnf_stat_options *options, tnf_error *e)
{
    const tnf_stat_range range = { .object = object };
    const tnf_stat_part some = { .ranges = &range, .n = 1 };
    struct stats s = { .file = file, .some = &some };
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_stat_options, &s.options, options, e));
    s.options.bins = DEFAULT_BINS;
    tnf_status status = make_all_values(&s, e);
    if (status == TNF_OK && tnf_pairing_upto(sums) != count_leaves(object_to_read(&s, object)))
        status = tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "leaves are missing");
    if (status == TNF_OK)
        tell_figures(&s, object, sums, bins);
    free_all_values(&s);
    return status;
}
