/* SPDX-License-Identifier: MIT */
/* Comparing the bytes of many pairs of parts on several threads.
 *
 *   comparisons   [w ████████████][b █][v ██████]
 *   jobs           1111 2222 3333   4   5555 66       blocks of what can be read anywhere, or
 * wholes
 *
 * The first round compares bytes. Those that differ are taken for numbers in a second one; the sums
 * of each block of elements are joined in order, so that they are the same for any number of
 * threads.
 */
#include "base/pool.h"
#include "core/look/diff.h"
#include "core/read/stream.h"
#include "core/save/save.h"

#include <string.h>

#define JOB_BYTES    ((uint64_t)8 << 20)
#define BLOCK        ((size_t)256 << 10)
#define JOB_ELEMENTS ((uint64_t)1 << 20)
#define WORTH_THREAD ((uint64_t)1 << 20)

struct job {
    struct comparison *c;
    uint64_t first, n;   /* bytes or elements; n is all of them if it is a whole */
    struct tally *tally; /* second round */
};

struct round {
    struct diff *d;
    struct job *jobs;
    size_t n;
    tnf_status (*work)(struct diff *d, struct job *job, tnf_error *e);
};

static tnf_status blame(struct diff *d, const tnf_file *file, tnf_status status)
{
    if (status != TNF_OK) {
        pthread_mutex_lock(&d->lock);
        d->result->failed = file;
        pthread_mutex_unlock(&d->lock);
    }
    return status;
}

static void note_unlike(struct diff *d, struct comparison *c)
{
    atomic_store(&c->unlike, true);
    if (d->options.brief && c->exact)
        atomic_store(&d->stop, true);
}

/* ------------------------------------------------------------ both streams */

/* Both parts of a comparison, row by row if their orders differ. */
struct both {
    tnf_stream a, b;
    struct tnf_save turning;
    tnf_part rows;
    uint8_t *blocks; /* two */
};

static void close_both(struct both *s)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_stream_close(&s->a);
    tnf_stream_close(&s->b);
    tnf_reorder_end(&s->turning);
    tnf_arena_free(&s->turning.arena);
    tnf_free(&alloc, s->blocks, 2 * BLOCK);
}

static tnf_status open_one(tnf_stream *stream, struct both *s, const struct comparison *c,
                           const tnf_object *of, const tnf_part *part, tnf_error *e)
{
    if (c->turned && of->order == TNF_ORDER_F) {
        TNF_TRY(tnf_reorder(&s->rows, of, &s->turning, e));
        part = &s->rows;
    }
    TNF_TRY(tnf_stream_open(stream, part, e));
    return tnf_stream_check(stream, e);
}

static tnf_status open_both(struct both *s, struct diff *d, const struct comparison *c,
                            tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL); /* the handle's is not for threads */
    *s = (struct both) { .blocks = tnf_alloc(&alloc, 2 * BLOCK) };
    tnf_arena_init(&s->turning.arena, &alloc, UINT64_MAX);
    if (!s->blocks)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for comparing");
    TNF_TRY(blame(d, d->a, open_one(&s->a, s, c, c->a_of, c->a, e)));
    return blame(d, d->b, open_one(&s->b, s, c, c->b_of, c->b, e));
}

static tnf_status read_both(struct both *s, struct diff *d, uint64_t a_at, size_t a_n,
                            uint64_t b_at, size_t b_n, tnf_error *e)
{
    TNF_TRY(blame(d, d->a, tnf_stream_read(&s->a, a_at, s->blocks, a_n, e)));
    return blame(d, d->b, tnf_stream_read(&s->b, b_at, s->blocks + BLOCK, b_n, e));
}

/* An encoded part may hold no more than it should. */
static tnf_status end_both(struct both *s, struct diff *d, tnf_error *e)
{
    TNF_TRY(blame(d, d->a, tnf_stream_end(&s->a, e)));
    return blame(d, d->b, tnf_stream_end(&s->b, e));
}

/* ------------------------------------------------------------------ bytes */

static tnf_status compare_bytes(struct diff *d, struct job *job, struct both *s, tnf_error *e)
{
    struct comparison *c = job->c;
    uint64_t end = job->first + job->n;
    for (uint64_t at = job->first; at < end; at += BLOCK) {
        size_t n = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        if (atomic_load(&c->unlike) || atomic_load(&d->stop))
            return tnf_progress_add(&d->progress, &d->lock, end - at, e);
        TNF_TRY(read_both(s, d, at, n, at, n, e));
        if (memcmp(s->blocks, s->blocks + BLOCK, n) != 0)
            note_unlike(d, c);
        TNF_TRY(tnf_progress_add(&d->progress, &d->lock, n, e));
    }
    return c->direct || atomic_load(&c->unlike) ? TNF_OK : end_both(s, d, e);
}

/* ---------------------------------------------------------------- numbers */

static uint64_t bytes_of(const struct comparison *c, const tnf_part *part, uint64_t elements)
{
    uint64_t bits = c->numbers ? part->type->bits : 8;
    return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

static void tally_block(struct tally *t, const struct diff *d, const struct comparison *c,
                        const struct both *s, uint64_t first, size_t n)
{
    for (size_t at = 0; at < n; at += TNF_TALLY_MOST) {
        size_t here = n - at < TNF_TALLY_MOST ? n - at : TNF_TALLY_MOST;
        const uint8_t *a = s->blocks + bytes_of(c, c->a, at);
        const uint8_t *b = s->blocks + BLOCK + bytes_of(c, c->b, at);
        if (c->numbers)
            tnf_tally(t, d, c, first + at, a, b, here);
        else
            tnf_tally_bytes(t, first + at, a, b, here);
    }
}

/* Elements [first, first + n), of which the first begins at a whole byte. */
static tnf_status tally_some(struct tally *t, struct diff *d, const struct comparison *c,
                             struct both *s, uint64_t first, uint64_t n, tnf_error *e)
{
    const size_t most = BLOCK / 16; /* fit a block whatever their type */
    for (uint64_t at = 0; at < n; at += most) {
        size_t here = n - at < most ? (size_t)(n - at) : most;
        uint64_t from = first + at;
        TNF_TRY(read_both(s, d, bytes_of(c, c->a, from), (size_t)bytes_of(c, c->a, here),
                          bytes_of(c, c->b, from), (size_t)bytes_of(c, c->b, here), e));
        tally_block(t, d, c, s, from, here);
    }
    return tnf_progress_add(&d->progress, &d->lock, bytes_of(c, c->a, n), e);
}

static tnf_status tally_job(struct diff *d, struct job *job, struct both *s, tnf_error *e)
{
    for (uint64_t at = 0; at < job->n; at += JOB_ELEMENTS) {
        struct tally t = { 0 };
        uint64_t n = job->n - at < JOB_ELEMENTS ? job->n - at : JOB_ELEMENTS;
        if (atomic_load(&d->stop))
            return TNF_OK;
        TNF_TRY(tally_some(&t, d, job->c, s, job->first + at, n, e));
        tnf_tally_join(job->tally, &t);
        if (d->options.brief && t.different)
            atomic_store(&d->stop, true);
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------- jobs */

static tnf_status run_job(void *ctx, size_t i, tnf_error *e)
{
    struct round *r = ctx;
    struct job *job = &r->jobs[i];
    struct both s;
    if (atomic_load(&r->d->stop))
        return TNF_OK;
    tnf_status status = open_both(&s, r->d, job->c, e);
    if (status == TNF_OK)
        status = (job->tally ? tally_job : compare_bytes)(r->d, job, &s, e);
    close_both(&s);
    return status;
}

/* How much there is to do, in the unit of the round. */
static uint64_t amount(const struct comparison *c, bool tally)
{
    if (!tally || !c->numbers)
        return c->a->nbytes;
    return c->a->nbytes / c->a->type->bits * 8 +
           c->a->nbytes % c->a->type->bits * 8 / c->a->type->bits;
}

static uint64_t elements_of(const struct comparison *c)
{
    uint64_t fit = amount(c, true), n = tnf_elements(c->a_of);
    bool dense = c->a_of->layout == &tnf_layout_dense && c->numbers;
    return dense && n < fit ? n : fit; /* the last byte of packed ones may not be full */
}

static bool takes_part(const struct comparison *c, bool tally)
{
    return c->a->nbytes > 0 && (bool)atomic_load(&c->unlike) == tally;
}

static size_t count_jobs(const struct comparison *c, bool tally)
{
    uint64_t n = tally ? elements_of(c) : c->a->nbytes, per = tally ? JOB_ELEMENTS : JOB_BYTES;
    return c->direct && n > 0 ? (size_t)((n - 1) / per + 1) : 1;
}

static tnf_status add_jobs(struct round *r, struct comparison *c, bool tally, tnf_error *e)
{
    size_t count = count_jobs(c, tally);
    uint64_t n = tally ? elements_of(c) : c->a->nbytes, per = tally ? JOB_ELEMENTS : JOB_BYTES;
    if (tally && !(c->tallies = tnf_arena_array(r->d->arena, count, sizeof *c->tallies)))
        return tnf_arena_fail(r->d->arena, "comparing", e);
    for (size_t i = 0; i < count; i++) {
        uint64_t first = i * per, left = n - first;
        r->jobs[r->n++] = (struct job) { .c = c,
                                         .first = first,
                                         .n = c->direct && left > per ? per : left,
                                         .tally = tally ? &c->tallies[i] : NULL };
    }
    r->d->progress.total += c->a->nbytes;
    return TNF_OK;
}

static tnf_status run_round(struct diff *d, bool tally, tnf_error *e)
{
    struct round r = { .d = d };
    size_t jobs = 0;
    for (size_t i = 0; i < d->n; i++)
        jobs += takes_part(&d->comparisons[i], tally) ? count_jobs(&d->comparisons[i], tally) : 0;
    if (!(r.jobs = tnf_arena_array(d->arena, jobs, sizeof *r.jobs)))
        return tnf_arena_fail(d->arena, "comparing", e);
    uint64_t before = d->progress.total;
    for (size_t i = 0; i < d->n; i++)
        if (takes_part(&d->comparisons[i], tally))
            TNF_TRY(add_jobs(&r, &d->comparisons[i], tally, e));
    bool few = d->progress.total - before < WORTH_THREAD;
    return tnf_pool_run(few ? 1 : tnf_pool_threads(d->options.threads), r.n, run_job, &r, e);
}

/* ------------------------------------------------------------------ whole */

static void judge(struct comparison *c)
{
    struct tally all = { 0 };
    if (!atomic_load(&c->unlike))
        return;
    for (size_t i = 0; c->tallies && i < count_jobs(c, true); i++)
        tnf_tally_join(&all, &c->tallies[i]);
    tnf_tally_end(&c->found, &all, c);
    /* It stopped early, or bits after the last element differ: this difference was not counted. */
    bool uncounted = c->exact && !c->preset && all.different == 0;
    c->verdict = all.different || uncounted ? DIFFERENT : all.unequal ? OTHER_BITS : SAME;
}

tnf_status tnf_diff_values(struct diff *d, tnf_error *e)
{
    TNF_TRY(run_round(d, false, e));
    if (!atomic_load(&d->stop))
        TNF_TRY(run_round(d, true, e));
    for (size_t i = 0; i < d->n; i++)
        judge(&d->comparisons[i]);
    return TNF_OK;
}
