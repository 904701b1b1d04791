/* SPDX-License-Identifier: MIT */
/* Quantizes a matrix: every row becomes a few bytes.
 *
 *   row ≈ norm x ( centroid[0][code 0] │ centroid[1][code 1] │ … ) x projection^T
 *
 * All rows are used, including those of subwords. The matrix is read from the file many times; only
 * codes, norms and sums are kept in memory.
 */
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/ieee.h"
#include "base/sized.h"
#include "ext/emb/change.h"
#include "ext/emb/pq_train.h"

#include <math.h>
#include <string.h>

#define LONGEST 1e18 /* its square fits into a float, also when summed */

typedef struct quantizing {
    tnf_emb *emb;
    tnf_trainer trainer;
    tnf_quantizer method;
    bool as_is;
    float *norms; /* of all rows; or NULL */
    uint8_t *codes;
    double *lost; /* for each group: sums of cosines and of distances, and the number of cosines */
} quantizing;

/* ------------------------------------------------------------------------- settings */

static tnf_status refuse_number(tnf_error *e, const char *what, uint64_t given, uint64_t most)
{
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%llu %s; the number must be 1 to %llu",
                    (unsigned long long)given, what, (unsigned long long)most);
}

static unsigned most_bits(uint64_t rows)
{
    unsigned bits = 0;
    while (bits < 8 && (uint64_t)2 << bits <= rows)
        bits++;
    return bits;
}

/* Half of the dimensions, or the next smaller number that divides them. */
static size_t usual_pieces(size_t d)
{
    size_t m = d < 2 ? 1 : d / 2;
    while (d % m != 0)
        m--;
    return m;
}

static tnf_status set_up(quantizing *q, const tnf_quantize_options *o, tnf_error *e)
{
    tnf_trainer *t = &q->trainer;
    uint64_t rows = q->emb->rows.n;
    size_t d = q->emb->rows.d;
    unsigned most = most_bits(rows);
    if (most == 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "a matrix must have at least 2 rows to be quantized, not %llu",
                        (unsigned long long)rows);
    if (o->bits > most)
        return refuse_number(
            e, "bits for a code are not possible, because a code of n bits needs 2^n rows", o->bits,
            most);
    if (o->subquantizers > d)
        return refuse_number(e, "pieces (subquantizers) are not possible", o->subquantizers, d);
    t->m = o->subquantizers ? o->subquantizers : usual_pieces(d);
    if (d % t->m != 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%zu dimensions cannot be cut into %zu pieces of the same size", d, t->m);
    t->k = (size_t)1 << (o->bits ? o->bits : most);
    t->rounds = o->iterations ? o->iterations : 100;
    t->attempts = o->attempts && o->method != TNF_OPQ ? o->attempts : 1;
    t->seed = o->seed;
    return TNF_OK;
}

static tnf_status check_options(const quantizing *q, const tnf_quantize_options *o, tnf_error *e)
{
    const tnf_object *matrix = q->emb->info.embeddings;
    TNF_TRY(tnf_check_choice((unsigned)o->method, TNF_GAUSSIAN_OPQ, "method", e));
    if (o->method != TNF_PQ)
        TNF_TRY(tnf_opq_ready(e));
    if (q->emb->info.quantized)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s is already quantized; reconstruct it first", TNF_QUOTED(matrix->name));
    if (matrix->rank != 2)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has %u dimensions, not 2",
                        TNF_QUOTED(matrix->name), matrix->rank);
    return TNF_OK;
}

/* The number of passes over the rows, for progress. */
static uint64_t count_passes(const quantizing *q)
{
    const tnf_trainer *t = &q->trainer;
    uint64_t training = t->attempts * (t->rounds + (t->attempts > 1));
    if (q->method == TNF_OPQ)
        training = 2 * t->rounds;
    return 2 + training + (q->method == TNF_PQ ? 0 : 2);
}

/* --------------------------------------------------------------------------- lengths */

/* A tnf_take_rows: computes lengths, and checks that all numbers are finite and not too large. */
static tnf_status measure_loss(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    quantizing *q = ctx;
    const tnf_row_feed *f = &q->trainer.feed;
    (void)group;
    for (size_t r = 0; r < b->n; r++) {
        const float *row = b->rows + r * f->pitch;
        double square = 0;
        for (size_t i = 0; i < f->d; i++)
            square += (double)row[i] * row[i];
        float norm = (float)sqrt(square);
        if (!isfinite(norm))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "row %llu has numbers that are not finite, or too large",
                            (unsigned long long)(b->first + r));
        if (q->as_is && norm > LONGEST)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "row %llu has the length %g, which is too large without normalising",
                            (unsigned long long)(b->first + r), (double)norm);
        if (q->norms)
            q->norms[b->first + r] = norm;
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------------------ codes */

/* Adds the contribution of a piece to numbers[0 … 3][row]: the squares of the row and of its
 * reconstruction, their product, and the square of their difference. */
static void add_piece(const tnf_trainer *t, size_t piece, const tnf_row_block *b)
{
    const float *columns = b->columns + piece * t->width * b->stride;
    double *numbers = b->numbers;
    for (size_t r = 0; r < b->n; r++) {
        const float *c = t->centroids + (piece * t->padded + b->codes[r]) * t->width;
        for (size_t i = 0; i < t->width; i++) {
            double x = columns[i * b->stride + r], y = c[i];
            numbers[r] += x * x;
            numbers[b->stride + r] += y * y;
            numbers[2 * b->stride + r] += x * y;
            numbers[3 * b->stride + r] += (x - y) * (x - y);
        }
    }
}

static void add_lost(quantizing *q, size_t group, const tnf_row_block *b)
{
    double *lost = q->lost + 3 * group;
    for (size_t r = 0; r < b->n; r++) {
        double lengths = sqrt(b->numbers[r]) * sqrt(b->numbers[b->stride + r]);
        double norm = q->norms ? (double)q->norms[b->first + r] : 1;
        lost[1] += norm * sqrt(b->numbers[3 * b->stride + r]);
        if (b->numbers[r] > 0) {
            lost[0] += lengths > 0 ? b->numbers[2 * b->stride + r] / lengths : 0;
            lost[2] += 1;
        }
    }
}

/* A tnf_take_rows that encodes a block. */
static tnf_status encode_block(void *ctx, size_t group, tnf_row_block *b, tnf_error *e)
{
    quantizing *q = ctx;
    tnf_trainer *t = &q->trainer;
    (void)e;
    memset(b->numbers, 0, 4 * b->stride * sizeof *b->numbers);
    for (size_t piece = 0; piece < t->m; piece++) {
        uint8_t *to = q->codes + (size_t)b->first * t->m + piece;
        tnf_trainer_encode(t, piece, b);
        for (size_t r = 0; r < b->n; r++)
            to[r * t->m] = b->codes[r];
        add_piece(t, piece, b);
    }
    add_lost(q, group, b);
    return TNF_OK;
}

static tnf_quantized result_of(const quantizing *q)
{
    double all[3] = { 0 };
    unsigned bits = 0;
    while ((size_t)1 << bits < q->trainer.k)
        bits++;
    for (size_t g = 0; g < q->trainer.groups; g++)
        for (size_t i = 0; i < 3; i++)
            all[i] += q->lost[3 * g + i];
    return (tnf_quantized) { .size = sizeof(tnf_quantized),
                             .bits = bits,
                             .subquantizers = (unsigned)q->trainer.m,
                             .rows = q->emb->rows.n,
                             .dims = q->emb->info.dims,
                             .cosine = all[2] > 0 ? all[0] / all[2] : 1,
                             .euclidean = all[1] / (double)q->emb->rows.n };
}

/* ---------------------------------------------------------------------------- result */

/* Makes a part from floats, which are converted to little-endian in place. */
static tnf_part part_of_floats(const char *role, float *p, uint64_t n)
{
    tnf_swap_le(p, n, sizeof *p);
    return (tnf_part) { .role = role,
                        .type = tnf_type_of(TNF_F32),
                        .payload = TNF_MEMORY,
                        .memory = p,
                        .stored = n * sizeof *p,
                        .nbytes = n * sizeof *p };
}

/* Copies rows without their padding. */
static float *keep_rows(tnf_emb *emb, const float *from, size_t pitch, size_t rows, size_t cols)
{
    float *to = tnf_arena_array(&emb->arena, rows, cols * sizeof *to);
    for (size_t r = 0; to && r < rows; r++)
        memcpy(to + r * cols, from + r * pitch, cols * sizeof *to);
    return to;
}

static tnf_status add_matrix(tnf_builder *builder, const quantizing *q, tnf_error *e)
{
    const tnf_trainer *t = &q->trainer;
    const tnf_object *before = q->emb->info.embeddings;
    size_t d = t->feed.d, n = (size_t)q->emb->rows.n;
    float *books = keep_rows(q->emb, t->centroids, t->padded * t->width, t->m, t->k * t->width);
    float *projection = t->projection ? keep_rows(q->emb, t->projection, t->feed.pitch, d, d)
                                      : NULL;
    tnf_part parts[4];
    uint16_t nparts = 2;
    if (!books || (t->projection && !projection))
        return tnf_arena_fail(&q->emb->arena, "codebooks", e);
    parts[0] = (tnf_part) { .role = "codes",
                            .type = tnf_type_of(TNF_U8),
                            .payload = TNF_MEMORY,
                            .memory = q->codes,
                            .stored = n * t->m,
                            .nbytes = n * t->m };
    parts[1] = part_of_floats("codebooks", books, (uint64_t)t->k * d);
    if (projection)
        parts[nparts++] = part_of_floats("projection", projection, (uint64_t)d * d);
    if (q->norms)
        parts[nparts++] = part_of_floats("norms", q->norms, n);
    tnf_object o = { .name = before->name,
                     .shape = before->shape,
                     .rank = 2,
                     .layout = tnf_layout_by_id("pq/1"),
                     .attrs = before->attrs,
                     .parts = parts,
                     .nparts = nparts };
    return tnf_builder_add_object(builder, &o, NULL, e);
}

/* ------------------------------------------------------------------------------- all */

/* Allocates the data for the builder in the view's arena. */
static tnf_status make_results(quantizing *q, tnf_error *e)
{
    tnf_arena *arena = &q->emb->arena;
    q->codes = tnf_arena_array(arena, q->emb->rows.n, q->trainer.m);
    if (!q->as_is)
        q->norms = tnf_arena_array(arena, q->emb->rows.n, sizeof *q->norms);
    if (!q->codes || (!q->as_is && !q->norms))
        return tnf_arena_fail(arena, "codes", e);
    return TNF_OK;
}

static tnf_status make_room(quantizing *q, const tnf_quantize_options *o, tnf_error *e)
{
    tnf_trainer *t = &q->trainer;
    const tnf_kmeans_kernels *kernels = tnf_kmeans_named(q->emb->kernels->name);
    TNF_TRY(tnf_row_feed_init(&t->feed, &q->emb->rows, kernels, o->threads, t->arena, e));
    t->feed.progress = o->progress;
    t->feed.ctx = o->ctx;
    TNF_TRY(tnf_trainer_room(t, e));
    if (q->method != TNF_PQ)
        TNF_TRY(tnf_opq_room(t, e));
    q->lost = tnf_arena_array(t->arena, t->groups, 3 * sizeof *q->lost);
    return q->lost ? TNF_OK : tnf_arena_fail(t->arena, "sums", e);
}

static tnf_status train_groups(quantizing *q, tnf_error *e)
{
    tnf_trainer *t = &q->trainer;
    t->feed.total = q->emb->rows.n * count_passes(q);
    TNF_TRY(tnf_row_feed_run(&t->feed, t->groups, measure_loss, q, e));
    t->feed.norms = q->norms;
    if (q->method == TNF_OPQ)
        return tnf_opq_train(t, e);
    if (q->method == TNF_GAUSSIAN_OPQ)
        TNF_TRY(tnf_opq_gaussian(t, e));
    return tnf_pq_train(t, e);
}

static tnf_status quantize_rows(tnf_builder *builder, quantizing *q, tnf_quantized *out,
                                tnf_error *e)
{
    TNF_TRY(train_groups(q, e));
    TNF_TRY(tnf_row_feed_run(&q->trainer.feed, q->trainer.groups, encode_block, q, e));
    const tnf_quantized result = result_of(q);
    if (out)
        tnf_result_fill(out, &result, sizeof result);
    TNF_TRY(add_matrix(builder, q, e));
    return tnf_emb_add_others(builder, q->emb, e);
}

tnf_status tnf_emb_quantize(tnf_quantized *out, tnf_builder *builder, tnf_emb *emb,
                            const tnf_quantize_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(builder, "builder", e));
    TNF_TRY(tnf_need(emb, "emb", e));
    tnf_quantize_options o;
    tnf_arena arena;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_quantize_options, &o, options, e));
    if (out)
        TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_quantized), e));
    if (emb->info.composed)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
            "rows of a fastText model are not vectors; convert it to finalfusion first");
    quantizing q = { .emb = emb, .method = o.method, .as_is = o.as_is };
    TNF_TRY(check_options(&q, &o, e));
    TNF_TRY(set_up(&q, &o, e));
    q.trainer.arena = &arena;
    q.trainer.alloc = &emb->alloc;
    TNF_TRY(make_results(&q, e));
    uint64_t taken = emb->arena.total;
    tnf_arena_init(&arena, &emb->alloc, taken < emb->memory ? emb->memory - taken : 0);
    uint32_t mode = tnf_enter_ieee();
    tnf_status status = make_room(&q, &o, e);
    if (status == TNF_OK)
        status = quantize_rows(builder, &q, out, e);
    tnf_leave_ieee(mode);
    tnf_arena_free(&arena);
    return status;
}
