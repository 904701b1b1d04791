/* SPDX-License-Identifier: MIT */
/* The values of a file in figures, batch by batch.
 *
 *   tensors   a  b  c  d                  e …
 *   batch     [a][b][c][d1][d2][d3]       pieces, each a job of its own with its own figures
 *             └──────┬────────────┘
 *                told in order, then the next batch
 *
 * Only what lies in the file as it is can be cut into pieces: what is encoded is read from its
 * beginning to its end. How it is cut depends on the tensor alone, and with it the result.
 */
#include "base/pool.h"
#include "base/sized.h"
#include "core/look/progress.h"
#include "core/look/values.h"
#include "core/read/stream.h"
#include <tenfold/stat.h>
#include <tenfold/virtual.h>

#include <pthread.h>
#include <string.h>

#define BLOCK        ((size_t)3 << 17)   /* read at a time: whole elements of any type */
#define PIECE        ((uint64_t)3 << 21) /* the least that is worth a job */
#define PIECES       256u                /* of one tensor, at most */
#define BATCH_BYTES  ((uint64_t)256 << 20)
#define BATCH_JOBS   512u
#define DEFAULT_BINS 32u
#define MAX_BINS     1024u

struct piece {
    size_t object;
    uint64_t from, to; /* bytes of its part */
    tnf_values values;
    tnf_error *problem; /* of the file; NULL: none */
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
    bool plain;           /* neither histograms nor deviations */
    tnf_virtual **seen;   /* for each tensor; NULL: as it is */
    pthread_mutex_t lock; /* guards progress, the allocator and the arena */
};

static bool has_numbers(const tnf_object *o)
{
    return o->layout == &tnf_layout_dense && o->nparts == 1 && tnf_values_known(o->parts->type);
}

/* What is looked at: the tensor, or the numbers that it stands for if it is quantized. */
static const tnf_object *seen_object(const struct stats *s, size_t i)
{
    return s->seen[i] ? tnf_virtual_object(s->seen[i]) : &s->file->catalog.objects[i];
}

static bool wanted(const struct stats *s, const tnf_object *o)
{
    return !s->options.wanted || s->options.wanted(s->options.ctx, o);
}

/* ------------------------------------------------------------------- jobs */

static tnf_status read_piece(struct stats *s, struct piece *p, tnf_stream *stream, uint8_t *block,
                             tnf_error *e)
{
    const tnf_object *o = seen_object(s, p->object);
    const tnf_type *type = o->parts->type;
    uint64_t left = tnf_elements(o) - p->from / type->bits * 8;
    const uint8_t *there = tnf_part_in_memory(o->parts);
    for (uint64_t at = p->from; at < p->to; at += BLOCK) {
        size_t n = p->to - at < BLOCK ? (size_t)(p->to - at) : BLOCK;
        if (!there)
            TNF_TRY(tnf_stream_read(stream, at, block, n, e));
        uint64_t here = (uint64_t)n * 8 / type->bits;
        here = here < left ? here : left;
        tnf_values_take(&p->values, type, there ? there + at : block, (size_t)here);
        left -= here;
        TNF_TRY(tnf_progress_add(&s->progress, &s->lock, n, e));
    }
    return p->to == o->parts->nbytes ? tnf_stream_end(stream, e) : TNF_OK;
}

/* The handle's allocator need not bear several threads. */
static void *resize(struct stats *s, void *p, size_t old, size_t size)
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
    const tnf_part *part = seen_object(s, p->object)->parts;
    tnf_stream stream;
    size_t size = p->to - p->from < BLOCK ? (size_t)(p->to - p->from) : BLOCK;
    size += size == 0;
    TNF_TRY(tnf_stream_open(&stream, part, e));
    uint8_t *block = resize(s, NULL, 0, size);
    tnf_status status = block ? read_piece(s, p, &stream, block, e)
                              : tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for reading");
    (void)resize(s, block, size, 0);
    tnf_stream_close(&stream);
    return status;
}

static tnf_status job(void *ctx, size_t i, tnf_error *e)
{
    struct stats *s = ctx;
    struct piece *p = &s->pieces[i];
    tnf_error error = { .offset = TNF_NO_OFFSET };
    if (!has_numbers(seen_object(s, p->object)))
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

/* Elements of 1, 4 or 6 bits end with a byte after 24 of them, and so do all others. */
static uint64_t piece_bytes(const tnf_part *part)
{
    if (!tnf_part_anywhere(part))
        return part->nbytes ? part->nbytes : 1;
    uint64_t unit = (uint64_t)3 * (part->type->bits ? part->type->bits : 8);
    uint64_t least = part->nbytes / PIECES > PIECE ? part->nbytes / PIECES : PIECE;
    return least / unit * unit + unit;
}

static size_t count_pieces(const tnf_object *o)
{
    if (!has_numbers(o) || o->parts->nbytes == 0)
        return 1;
    uint64_t size = piece_bytes(o->parts);
    return (size_t)(o->parts->nbytes / size + (o->parts->nbytes % size != 0));
}

/* The figures of a piece need memory of their own: a histogram is 16 KiB. */
static tnf_status add_pieces(struct stats *s, size_t object, tnf_error *e)
{
    const tnf_object *o = seen_object(s, object);
    size_t n = count_pieces(o);
    uint64_t size = has_numbers(o) ? piece_bytes(o->parts) : 0;
    uint64_t all = has_numbers(o) ? o->parts->nbytes : 0;
    for (size_t i = 0; i < n; i++) {
        struct piece *p = &s->pieces[s->n++];
        *p = (struct piece) { .object = object, .from = i * size };
        p->to = i + 1 < n ? p->from + size : all;
        p->values.spread = !s->plain;
        if (!has_numbers(o) || s->plain)
            continue;
        p->values.bins = tnf_arena_alloc(&s->arena, sizeof *p->values.bins);
        if (!p->values.bins)
            return tnf_arena_fail(&s->arena, "histograms", e);
    }
    s->bytes += all;
    return TNF_OK;
}

/* As many tensors from *next on as make a batch. */
static tnf_status fill_batch(struct stats *s, size_t *next, tnf_error *e)
{
    const tnf_catalog *c = &s->file->catalog;
    s->n = 0;
    s->bytes = 0;
    s->pieces = tnf_arena_array(&s->arena, BATCH_JOBS + PIECES + 1, sizeof *s->pieces);
    if (!s->pieces)
        return tnf_arena_fail(&s->arena, "figures", e);
    for (; *next < c->n && s->n < BATCH_JOBS && s->bytes < BATCH_BYTES; (*next)++)
        if (wanted(s, &c->objects[*next]))
            TNF_TRY(add_pieces(s, *next, e));
    return TNF_OK;
}

/* The first piece takes what the others found. Gives the position after the last. */
static size_t tell_tensor(struct stats *s, size_t i)
{
    struct piece *first = &s->pieces[i];
    const tnf_object *o = seen_object(s, first->object);
    const tnf_object *named = &s->file->catalog.objects[first->object];
    for (i++; i < s->n && s->pieces[i].object == first->object; i++) {
        tnf_values_merge(&first->values, &s->pieces[i].values);
        first->problem = first->problem ? first->problem : s->pieces[i].problem;
    }
    if (first->problem) {
        s->options.problem(s->options.ctx, named, first->problem);
        return i;
    }
    tnf_stat stat = { .object = named, .numbers = has_numbers(o) };
    tnf_value_counts counts = { 0 };
    if (stat.numbers) {
        counts = tnf_values_counts(&first->values, o->parts[0].type);
        stat.counts = &counts;
        stat.type = o->parts->type;
    }
    if (stat.numbers && !s->plain) {
        stat.bins = s->shown;
        stat.nbins = s->options.bins;
        tnf_bins_show(first->values.bins, counts.min, counts.max, s->shown, stat.nbins);
    }
    if (s->options.tensor)
        s->options.tensor(s->options.ctx, &stat);
    return i;
}

static tnf_status run_batch(struct stats *s, size_t *next, tnf_error *e)
{
    TNF_TRY(fill_batch(s, next, e));
    unsigned threads = s->bytes < PIECE ? 1 : tnf_pool_threads(s->options.threads);
    TNF_TRY(tnf_pool_run(threads, s->n, job, s, e));
    for (size_t i = 0; i < s->n;)
        i = tell_tensor(s, i);
    return TNF_OK;
}

static tnf_status run_all(struct stats *s, tnf_error *e)
{
    const tnf_catalog *c = &s->file->catalog;
    if (s->options.bins > MAX_BINS)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%u bins wanted, %u are allowed",
                        s->options.bins, MAX_BINS);
    s->options.bins = s->options.bins ? s->options.bins : DEFAULT_BINS;
    for (size_t i = 0; i < c->n; i++)
        if (has_numbers(seen_object(s, i)) && wanted(s, &c->objects[i]))
            s->progress.total += seen_object(s, i)->parts->nbytes;
    for (size_t next = 0; next < c->n;) {
        tnf_arena_init(&s->arena, &s->file->alloc, UINT64_MAX);
        tnf_status status = run_batch(s, &next, e);
        tnf_arena_free(&s->arena);
        TNF_TRY(status);
    }
    return TNF_OK;
}

/* Quantized tensors that keep the rules of their layouts. */
static tnf_status see_values(struct stats *s, tnf_error *e)
{
    const tnf_catalog *c = &s->file->catalog;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    s->seen = tnf_alloc0(&s->file->alloc, (c->n + 1) * sizeof *s->seen);
    if (!s->seen)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for figures");
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        tnf_error broken = { .offset = TNF_NO_OFFSET };
        if (o->layout == &tnf_layout_dense || !tnf_layout_has_values(o->layout) || !wanted(s, o))
            continue;
        tnf_status status = tnf_virtual_new(&s->seen[i], &o, 1, &how, &broken);
        if (status != TNF_OK && !tnf_is_file_fault(status)) {
            if (e)
                *e = broken;
            return status;
        }
    }
    return TNF_OK;
}

static void forget_values(struct stats *s)
{
    size_t n = s->file->catalog.n;
    for (size_t i = 0; s->seen && i < n; i++)
        tnf_virtual_free(s->seen[i]);
    tnf_free(&s->file->alloc, s->seen, (n + 1) * sizeof *s->seen);
}

tnf_status tnf_values_file(const tnf_file *file, const tnf_stat_options *options, bool plain,
                           tnf_error *e)
{
    struct stats s = { .file = file, .plain = plain, .lock = PTHREAD_MUTEX_INITIALIZER };
    TNF_TRY(tnf_options_copy(&s.options, sizeof s.options, options, e));
    s.progress = (tnf_progress) { .tell = s.options.progress, .ctx = s.options.ctx };
    tnf_status status = see_values(&s, e);
    if (status == TNF_OK)
        status = run_all(&s, e);
    forget_values(&s);
    pthread_mutex_destroy(&s.lock);
    return status;
}

tnf_status tnf_stat_file(const tnf_file *file, const tnf_stat_options *options, tnf_error *e)
{
    return tnf_values_file(file, options, false, e);
}
