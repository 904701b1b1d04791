/* SPDX-License-Identifier: MIT */
/* Compares the bytes of many pairs of parts on several threads.
 *
 *   comparisons   [w ████████████][b █][v ██████]
 *   tasks           1111 2222 3333   4   5555 66       blocks of parts that can be read at any
 *                                                     position, or whole parts
 *
 * The first round compares bytes. Parts that differ are compared as numbers in a second round. The
 * sums of each leaf (4 MiB of the first part) are joined in an order that depends only on their
 * number (base/pairing.h). So they are the same for any number of threads, and for any division of
 * the leaves among workers.
 */
#include "base/ieee.h"
#include "base/pool.h"
#include "core/look/diff.h"
#include "core/read/stream.h"

#include <string.h>

#define TASK_BYTES   ((uint64_t)8 << 20)
#define BLOCK        ((size_t)256 << 10)
#define WORTH_THREAD ((uint64_t)1 << 20)

struct task {
    struct comparison *c;
    uint64_t first, n;    /* bytes or elements; for a whole part, n is all of them */
    tnf_diff_sums *tally; /* second round */
};

struct round {
    struct diff *d;
    struct task *tasks;
    size_t n;
    tnf_status (*work)(struct diff *d, struct task *task, tnf_error *e);
};

static tnf_status blame_file(struct diff *d, const tnf_file *file, tnf_status status)
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

/* ----------------------------------------------------------- both streams */

/* Both parts of a comparison, row by row if their orders differ. */
struct both {
    tnf_stream a, b;
    tnf_virtual *rows; /* of the part that is stored column by column */
    uint8_t *blocks;   /* two blocks */
};

static void close_both(struct both *s)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_stream_close(&s->a);
    tnf_stream_close(&s->b);
    tnf_virtual_free(s->rows);
    tnf_free(&alloc, s->blocks, 2 * BLOCK);
}

static tnf_status open_one(tnf_stream *stream, struct both *s, const struct comparison *c,
                           const tnf_object *of, const tnf_part *part, tnf_error *e)
{
    if (c->transposed && of->order == TNF_ORDER_F) {
        tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
        how.kind = TNF_VIRTUAL_ORDER;
        TNF_TRY(tnf_virtual_new(&s->rows, &of, 1, &how, e));
        part = tnf_virtual_object(s->rows)->parts;
    }
    TNF_TRY(tnf_stream_open(stream, part, e));
    return tnf_stream_check(stream, e);
}

static tnf_status open_both(struct both *s, struct diff *d, const struct comparison *c,
                            tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL); /* the handle's is not thread-safe */
    *s = (struct both) { .blocks = tnf_alloc(&alloc, 2 * BLOCK) };
    if (!s->blocks)
        return tnf_no_memory("comparing", e);
    TNF_TRY(blame_file(d, d->a, open_one(&s->a, s, c, c->a_of, c->a, e)));
    return blame_file(d, d->b, open_one(&s->b, s, c, c->b_of, c->b, e));
}

static tnf_status read_both(struct both *s, struct diff *d, uint64_t a_at, size_t a_n,
                            uint64_t b_at, size_t b_n, tnf_error *e)
{
    TNF_TRY(blame_file(d, d->a, tnf_stream_read(&s->a, a_at, s->blocks, a_n, e)));
    return blame_file(d, d->b, tnf_stream_read(&s->b, b_at, s->blocks + BLOCK, b_n, e));
}

/* Checks that encoded parts do not contain more than they should. */
static tnf_status end_both(struct both *s, struct diff *d, tnf_error *e)
{
    TNF_TRY(blame_file(d, d->a, tnf_stream_end(&s->a, e)));
    return blame_file(d, d->b, tnf_stream_end(&s->b, e));
}

/* ------------------------------------------------------------------ bytes */

static tnf_status compare_bytes(struct diff *d, struct task *task, struct both *s, tnf_error *e)
{
    struct comparison *c = task->c;
    uint64_t end = task->first + task->n;
    for (uint64_t at = task->first; at < end; at += BLOCK) {
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

static void tally_block(tnf_diff_sums *t, const struct diff *d, const struct comparison *c,
                        const struct both *s, uint64_t first, size_t n)
{
    for (size_t at = 0; at < n; at += TNF_DIFF_MOST) {
        size_t here = n - at < TNF_DIFF_MOST ? n - at : TNF_DIFF_MOST;
        const uint8_t *a = s->blocks + bytes_of(c, c->a, at);
        const uint8_t *b = s->blocks + BLOCK + bytes_of(c, c->b, at);
        bool same = memcmp(a, b, (size_t)bytes_of(c, c->a, here)) == 0;
        if (!c->numbers)
            tnf_diff_add_bytes(t, first + at, a, b, here);
        else if (!same || !tnf_diff_add_same(t, d, c, a, here))
            tnf_diff_add(t, d, c, first + at, a, b, here);
    }
}

/* Adds elements [first, first + n); the first one begins at a byte. */
static tnf_status tally_some(tnf_diff_sums *t, struct diff *d, const struct comparison *c,
                             struct both *s, uint64_t first, uint64_t n, tnf_error *e)
{
    const size_t most = BLOCK / 16; /* fits in a block for any type */
    for (uint64_t at = 0; at < n; at += most) {
        size_t here = n - at < most ? (size_t)(n - at) : most;
        uint64_t from = first + at;
        TNF_TRY(read_both(s, d, bytes_of(c, c->a, from), (size_t)bytes_of(c, c->a, here),
                          bytes_of(c, c->b, from), (size_t)bytes_of(c, c->b, here), e));
        tally_block(t, d, c, s, from, here);
    }
    return tnf_progress_add(&d->progress, &d->lock, bytes_of(c, c->a, n), e);
}

/* The elements of a leaf, which begin at a byte. */
static uint64_t leaf_elements(const struct comparison *c)
{
    return c->numbers ? TNF_LEAF_BYTES / c->a->type->bits * 8 : TNF_LEAF_BYTES;
}

static tnf_status tally_task(struct diff *d, struct task *task, struct both *s, tnf_error *e)
{
    uint64_t per = leaf_elements(task->c), leaf = 0;
    tnf_diff_sums room[TNF_PAIRING_NODES];
    tnf_pairing sums = tnf_diff_pairing(room);
    for (uint64_t at = 0; at < task->n; at += per) {
        tnf_diff_sums t = { 0 };
        uint64_t n = task->n - at < per ? task->n - at : per;
        if (atomic_load(&d->stop))
            break;
        TNF_TRY(tally_some(&t, d, task->c, s, task->first + at, n, e));
        (void)tnf_pairing_add(&sums, (tnf_pairing_node) { leaf++, 0 }, &t);
        if (d->options.brief && t.different)
            atomic_store(&d->stop, true);
    }
    (void)tnf_pairing_end(&sums, task->tally);
    return TNF_OK;
}

/* ------------------------------------------------------------------- tasks */

static tnf_status run_task(void *ctx, size_t i, tnf_error *e)
{
    struct round *r = ctx;
    struct task *task = &r->tasks[i];
    struct both s;
    if (atomic_load(&r->d->stop))
        return TNF_OK;
    tnf_status status = open_both(&s, r->d, task->c, e);
    if (status == TNF_OK)
        status = (task->tally ? tally_task : compare_bytes)(r->d, task, &s, e);
    close_both(&s);
    return status;
}

/* The amount of work, in the unit of the round. */
static uint64_t amount_of(const struct comparison *c, bool tally)
{
    if (!tally || !c->numbers)
        return c->a->nbytes;
    return c->a->nbytes / c->a->type->bits * 8 +
           c->a->nbytes % c->a->type->bits * 8 / c->a->type->bits;
}

static uint64_t elements_of(const struct comparison *c)
{
    uint64_t fit = amount_of(c, true), n = tnf_elements(c->a_of);
    bool dense = c->a_of->layout == &tnf_layout_dense && c->numbers;
    return dense && n < fit ? n : fit; /* the last byte of packed elements might not be full */
}

/* The sums of a range are needed even if the range has no difference: another range may have
 * one. */
static bool takes_part(const struct comparison *c, bool tally)
{
    return c->a->nbytes > 0 && (c->n > 0 || (bool)atomic_load(&c->unlike) == tally);
}

/* The compared range, in bytes or elements. */
struct extent {
    uint64_t first, end, per; /* per: of a task */
};

static struct extent extent_of(const struct comparison *c, bool tally)
{
    struct extent x = { .end = tally ? elements_of(c) : c->a->nbytes, .per = TASK_BYTES };
    uint64_t leaf = tally ? leaf_elements(c) : TNF_LEAF_BYTES;
    x.per = tally ? leaf : TASK_BYTES;
    if (c->n == 0)
        return x;
    x.first = c->first * leaf;
    x.end = x.end - x.first > c->n * leaf ? x.first + c->n * leaf : x.end;
    return x;
}

static size_t count_tasks(const struct comparison *c, bool tally)
{
    struct extent x = extent_of(c, tally);
    return c->direct && x.end > x.first ? (size_t)((x.end - x.first - 1) / x.per + 1) : 1;
}

static tnf_status add_tasks(struct round *r, struct comparison *c, bool tally, tnf_error *e)
{
    size_t count = count_tasks(c, tally);
    struct extent x = extent_of(c, tally);
    if (tally && !(c->tallies = tnf_arena_array(r->d->arena, count, sizeof *c->tallies)))
        return tnf_arena_fail(r->d->arena, "comparing", e);
    for (size_t i = 0; i < count; i++) {
        uint64_t first = x.first + i * x.per, left = x.end - first;
        r->tasks[r->n++] = (struct task) { .c = c,
                                           .first = first,
                                           .n = c->direct && left > x.per ? x.per : left,
                                           .tally = tally ? &c->tallies[i] : NULL };
    }
    r->d->progress.total += c->a->nbytes;
    return TNF_OK;
}

static tnf_status run_round(struct diff *d, bool tally, tnf_error *e)
{
    struct round r = { .d = d };
    size_t tasks = 0;
    for (size_t i = 0; i < d->n; i++)
        tasks += takes_part(&d->comparisons[i], tally) ? count_tasks(&d->comparisons[i], tally) : 0;
    if (!(r.tasks = tnf_arena_array(d->arena, tasks, sizeof *r.tasks)))
        return tnf_arena_fail(d->arena, "comparing", e);
    uint64_t before = d->progress.total;
    for (size_t i = 0; i < d->n; i++)
        if (takes_part(&d->comparisons[i], tally))
            TNF_TRY(add_tasks(&r, &d->comparisons[i], tally, e));
    bool few = d->progress.total - before < WORTH_THREAD;
    return tnf_pool_run(few ? 1 : tnf_pool_threads(d->options.threads), r.n, run_task, &r, e);
}

/* ------------------------------------------------------------------ whole */

static void join_sums(void *t, const void *more)
{
    tnf_diff_add_sums(t, more);
}

tnf_pairing tnf_diff_pairing(tnf_diff_sums room[TNF_PAIRING_NODES])
{
    return (tnf_pairing) { .size = sizeof *room, .join = join_sums, .results = (uint8_t *)room };
}

static tnf_pairing join_leaves(const struct comparison *c, tnf_diff_sums *room)
{
    tnf_pairing sums = tnf_diff_pairing(room);
    for (size_t i = 0; c->tallies && i < count_tasks(c, true); i++)
        (void)tnf_pairing_add(&sums, (tnf_pairing_node) { c->first + i, 0 }, &c->tallies[i]);
    return sums;
}

static void judge_pair(const struct diff *d, struct comparison *c)
{
    tnf_diff_sums room[TNF_PAIRING_NODES], all = { 0 };
    bool unlike = atomic_load(&c->unlike);
    const tnf_diff_part *some = d->some;
    if (some && some->found) {
        if (!some->found(d->options.ctx, c->a_of, &all, &unlike))
            return;
    } else if (unlike) {
        tnf_pairing sums = join_leaves(c, room);
        (void)tnf_pairing_end(&sums, &all);
    }
    if (!unlike)
        return;
    const uint32_t mode = tnf_enter_ieee();
    tnf_diff_end(&c->found, &all, c);
    tnf_leave_ieee(mode);
    /* It stopped early, or bits after the last element differ: that difference was not counted. */
    bool uncounted = c->exact && !c->preset && all.different == 0;
    c->verdict = all.different || uncounted ? DIFFERENT : all.unequal ? OTHER_BITS : SAME;
}

static void tell_piece(const struct diff *d, const struct comparison *c)
{
    tnf_diff_sums room[TNF_PAIRING_NODES];
    tnf_pairing sums = join_leaves(c, room);
    d->some->piece(d->options.ctx, c->a_of, &sums, atomic_load(&c->unlike));
}

tnf_status tnf_diff_values(struct diff *d, tnf_error *e)
{
    bool known = d->some && d->some->found, pieces = d->some && d->some->piece;
    if (!known)
        TNF_TRY(run_round(d, false, e));
    if (!known && !atomic_load(&d->stop))
        TNF_TRY(run_round(d, true, e));
    for (size_t i = 0; i < d->n; i++)
        if (pieces)
            tell_piece(d, &d->comparisons[i]);
        else
            judge_pair(d, &d->comparisons[i]);
    return TNF_OK;
}
