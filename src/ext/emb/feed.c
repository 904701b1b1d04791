/* SPDX-License-Identifier: MIT */
/* Rows for training: decoded, divided by their lengths, rotated and transposed, block by block. */
#include "ext/emb/feed.h"

#include "base/ckd.h"
#include "base/error.h"
#include "base/pool.h"
#include "kernels/transpose.h"

#include <string.h>

#define BLOCK_BYTES ((size_t)256 << 10) /* size of the columns of a block */
#define MAX_BLOCK   1024u               /* rows */
#define MAX_GROUPS  32u
#define MIN_GROUPS  4u
#define GROUP_ROWS  1024u                 /* least rows of a group */
#define GROUP_BYTES ((uint64_t)128 << 20) /* for the sums of more than MIN_GROUPS groups */

size_t tnf_row_feed_groups(const tnf_row_feed *f, uint64_t bytes)
{
    uint64_t n = (f->rows->n + GROUP_ROWS - 1) / GROUP_ROWS;
    uint64_t fit = GROUP_BYTES / (bytes + 1);
    uint64_t most = fit < MIN_GROUPS ? MIN_GROUPS : fit > MAX_GROUPS ? MAX_GROUPS : fit;
    return (size_t)(n > most ? most : n > 0 ? n : 1);
}

/* ------------------------------------------------------------------------- a block */

struct tnf_row_feed_room {
    tnf_row_block block;
    double *wide; /* decoded doubles; other types use the block's spare floats */
    atomic_bool taken;
};

typedef struct tnf_row_feed_room room;

/* Allocates one piece of memory for a block: its floats, its doubles, its codes. */
static bool room_new(room *r, const tnf_row_feed *f, tnf_arena *arena)
{
    uint64_t matrix = (uint64_t)f->block * f->pitch, wide, bytes;
    wide = (f->rows->kind == TNF_ROWS_WIDE ? matrix : 0) + 4 * (uint64_t)f->block;
    if (!tnf_ckd_mul(&bytes, 4 * matrix, sizeof(float)) ||
        !tnf_ckd_add(&bytes, bytes, wide * sizeof(double) + f->block + 64))
        return false;
    uintptr_t memory = (uintptr_t)tnf_arena_raw(arena, bytes);
    if (!memory)
        return false;
    float *floats = (float *)((memory + 63) & ~(uintptr_t)63);
    r->block = (tnf_row_block) { .stride = f->block,
                                 .rows = floats,
                                 .rotated = floats + matrix,
                                 .columns = floats + 2 * matrix,
                                 .spare = floats + 3 * matrix };
    r->block.numbers = (double *)(floats + 4 * matrix);
    r->wide = r->block.numbers + 4 * f->block;
    r->block.codes = (uint8_t *)(r->block.numbers + wide);
    return true;
}

tnf_status tnf_row_feed_init(tnf_row_feed *f, const tnf_rows *rows,
                             const tnf_kmeans_kernels *kernels, unsigned threads, tnf_arena *arena,
                             tnf_error *e)
{
    *f = (tnf_row_feed) { .rows = rows, .kernels = kernels, .d = rows->d };
    f->pitch = TNF_PITCH(rows->d);
    size_t fit = BLOCK_BYTES / sizeof(float) / f->pitch / TNF_TILE * TNF_TILE;
    f->block = fit < TNF_TILE ? TNF_TILE : fit > MAX_BLOCK ? MAX_BLOCK : fit;
    f->caller = pthread_self();
    f->threads = tnf_pool_threads(threads);
    f->threads = f->threads < MAX_GROUPS ? f->threads : MAX_GROUPS;
    f->rooms = tnf_arena_array(arena, f->threads, sizeof *f->rooms);
    bool fits = f->rooms != NULL;
    for (unsigned i = 0; fits && i < f->threads; i++)
        fits = room_new(&f->rooms[i], f, arena);
    return fits ? TNF_OK : tnf_arena_fail(arena, "blocks of rows", e);
}

/* A room is always free, since there are at most as many tasks at a time as threads. */
static room *take_room(const tnf_row_feed *f)
{
    for (unsigned i = 0;; i = (i + 1) % f->threads)
        if (!atomic_exchange(&f->rooms[i].taken, true))
            return &f->rooms[i];
}

#define AT_ONCE 16u /* numbers per step, enough for compilers to use vectors */

static void scale_floats(float *out, const float *in, size_t d, double scale)
{
    size_t i = 0;
    for (; i + AT_ONCE <= d; i += AT_ONCE)
        for (size_t j = 0; j < AT_ONCE; j++)
            out[i + j] = (float)(in[i + j] * scale);
    for (; i < d; i++)
        out[i] = (float)(in[i] * scale);
}

static void scale_wide(float *out, const double *in, size_t d, double scale)
{
    for (size_t i = 0; i < d; i++)
        out[i] = (float)(in[i] * scale);
}

static void take_off(float *out, const double *mean, size_t d)
{
    for (size_t i = 0; i < d; i++)
        out[i] = (float)(out[i] - mean[i]);
}

/* Loads rows first … first + n - 1 into the block, from its row `at` on. */
static void load_rows(const tnf_row_feed *f, room *r, uint64_t first, size_t n, size_t at)
{
    const float *floats = NULL;
    if (f->rows->kind == TNF_ROWS_WIDE)
        tnf_rows_wide(f->rows, first, n, r->wide);
    else
        floats = tnf_rows_block(f->rows, first, n, r->block.spare);
    for (size_t i = 0; i < n; i++) {
        double norm = f->norms ? (double)f->norms[first + i] : 1;
        double scale = norm > 0 ? 1 / norm : 0;
        float *out = r->block.rows + (at + i) * f->pitch;
        if (!floats)
            scale_wide(out, r->wide + i * f->d, f->d, scale);
        else if (f->norms)
            scale_floats(out, floats + i * f->d, f->d, scale);
        else
            memcpy(out, floats + i * f->d, f->d * sizeof *out);
        if (f->mean)
            take_off(out, f->mean, f->d);
        memset(out + f->d, 0, (f->pitch - f->d) * sizeof *out);
    }
}

/* Rotates n rows; only `cols` components from `first` on are computed. */
static void rotate_rows(const tnf_row_feed *f, room *r, size_t n, size_t first, size_t cols)
{
    tnf_product p = { .x = r->block.rows,
                      .y = f->projection + first,
                      .out = r->block.rotated + first,
                      .rows = n,
                      .depth = f->d,
                      .cols = cols,
                      .x_pitch = f->pitch,
                      .y_pitch = f->pitch,
                      .out_pitch = f->pitch };
    f->kernels->product(&p);
}

static void set_columns(const tnf_row_feed *f, tnf_row_block *b, const float *rows)
{
    size_t used = (b->n + TNF_TILE - 1) / TNF_TILE * TNF_TILE;
    tnf_transpose(b->columns, b->stride, rows, f->pitch, b->n, f->d, sizeof *rows);
    for (size_t i = 0; i < f->d && used > b->n; i++)
        memset(b->columns + i * b->stride + b->n, 0, (used - b->n) * sizeof *rows);
}

void tnf_row_feed_columns(const tnf_row_feed *f, tnf_row_block *b)
{
    set_columns(f, b, b->rows);
}

/* ------------------------------------------------------------------------ all rows */

struct pass {
    tnf_row_feed *feed;
    uint64_t group_rows;
    tnf_take_rows *take;
    void *ctx;
};

static tnf_status tell_rows(tnf_row_feed *f, uint64_t rows, tnf_error *e)
{
    uint64_t done = atomic_fetch_add(&f->done, rows) + rows, row = 4 * (uint64_t)f->d;
    if (!f->progress || !pthread_equal(f->caller, pthread_self()) ||
        f->progress(f->ctx, done * row, f->total * row))
        return TNF_OK;
    return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
}

static tnf_status run_group(void *ctx, size_t group, tnf_error *e)
{
    const struct pass *p = ctx;
    tnf_row_feed *f = p->feed;
    uint64_t first = group * p->group_rows, end = first + p->group_rows;
    tnf_status status = TNF_OK;
    room *r = take_room(f);
    tnf_row_block *b = &r->block;
    end = end < f->rows->n ? end : f->rows->n;
    for (; status == TNF_OK && first < end; first += b->n) {
        b->first = first;
        b->n = end - first < f->block ? (size_t)(end - first) : f->block;
        load_rows(f, r, first, b->n, 0);
        if (f->projection)
            rotate_rows(f, r, b->n, 0, f->pitch);
        set_columns(f, b, f->projection ? b->rotated : b->rows);
        status = p->take(p->ctx, group, b, e);
        if (status == TNF_OK)
            status = tell_rows(f, b->n, e);
    }
    atomic_store(&r->taken, false);
    return status;
}

tnf_status tnf_row_feed_run(tnf_row_feed *f, size_t groups, tnf_take_rows *take, void *ctx,
                            tnf_error *e)
{
    struct pass p = { .feed = f, .take = take, .ctx = ctx };
    p.group_rows = (f->rows->n / groups / TNF_TILE + 1) * TNF_TILE;
    return tnf_pool_run(f->threads, groups, run_group, &p, e);
}

/* ----------------------------------------------------------------------- some rows */

void tnf_row_feed_some(tnf_row_feed *f, const uint64_t *which, size_t count, tnf_row_piece piece,
                       float *out)
{
    room *r = &f->rooms[0];
    const float *from = f->projection ? r->block.rotated : r->block.rows;
    size_t cols = TNF_PITCH(piece.width);
    size_t first = piece.first < f->pitch - cols ? piece.first : f->pitch - cols;
    for (size_t i = 0; i < count;) {
        size_t n = count - i < f->block ? count - i : f->block;
        for (size_t j = 0; j < n; j++)
            load_rows(f, r, which[i + j], 1, j);
        if (f->projection)
            rotate_rows(f, r, n, first, cols);
        for (size_t j = 0; j < n; j++, i++)
            memcpy(out + i * piece.width, from + j * f->pitch + piece.first,
                   piece.width * sizeof *out);
    }
}
