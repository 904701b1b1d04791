/* SPDX-License-Identifier: MIT */
/* Cuts units of work into parts of nearly the same size.
 *
 *   units    a(9 leaves)  b(1)  c(4)  d(2)        in the order of the file
 *   parts   [a0 … a4][a5 … a8 b][c    d]          cut between two units, or inside one at a leaf
 *
 * If no indivisible piece is larger than L, there are cuts for which no two parts differ by more
 * than L (Bárány and Grinberg, Block partitions of sequences, 2015). The cuts are found like this:
 * if every part has m to m + L bytes, then the p-th cut is between a lowest and a highest place,
 * which follow from those of the cut before. The largest m is used for which the lowest place of
 * the last cut is not after the end. If an indivisible piece is larger than a leaf, the cuts next
 * to equal shares are used instead.
 */
#include "base/ckd.h"
#include "base/rising.h"
#include "job/job.h"

struct cutting {
    tnf_job *job;
    const struct job_item *units;
    size_t n;
    uint64_t *before; /* bytes before each unit; then the total */
    uint64_t *cuts;   /* 0, then the end of each part */
    uint64_t parts, total, largest;
};

static bool is_cut(const struct job_item *unit)
{
    return !unit->atom && unit->n > 1;
}

static uint64_t size_of(const struct job_item *unit)
{
    return is_cut(unit) ? unit->bytes : unit->cost;
}

static uint64_t step_of(const tnf_job *job, const struct job_item *unit)
{
    return job->kind == TNF_JOB_SIMILAR ? 1 : unit->step ? unit->step : TNF_LEAF_BYTES;
}

/* The largest indivisible piece of a unit. */
static uint64_t piece_of(const tnf_job *job, const struct job_item *unit)
{
    uint64_t step = step_of(job, unit), size = size_of(unit);
    if (!is_cut(unit))
        return size;
    uint64_t last = size - (unit->n - 1) * step;
    return last > step ? last : step;
}

/* -------------------------------------------------------------------- places */

/* The last unit that begins at or before x. */
static size_t unit_at(const struct cutting *c, uint64_t x)
{
    return tnf_rising_find(c->before, sizeof *c->before, c->n, x);
}

/* The last possible cut at or before x. */
static uint64_t cut_before(const struct cutting *c, uint64_t x)
{
    if (x >= c->total || c->n == 0)
        return c->total;
    size_t i = unit_at(c, x);
    const struct job_item *unit = &c->units[i];
    if (!is_cut(unit))
        return c->before[i];
    uint64_t step = step_of(c->job, unit), leaf = (x - c->before[i]) / step;
    return c->before[i] + (leaf < unit->n ? leaf : unit->n - 1) * step;
}

/* The first possible cut at or after x, which is not after the end. */
static uint64_t cut_after(const struct cutting *c, uint64_t x)
{
    uint64_t at = cut_before(c, x);
    if (at == x || c->n == 0)
        return at;
    size_t i = unit_at(c, at);
    const struct job_item *unit = &c->units[i];
    uint64_t next = c->before[i + 1];
    if (is_cut(unit)) {
        uint64_t step = step_of(c->job, unit), leaf = (at - c->before[i]) / step + 1;
        next = leaf < unit->n ? c->before[i] + leaf * step : next;
    }
    return next;
}

/* --------------------------------------------------------------------- cuts */

/* Can all parts have at least m bytes? */
static bool parts_fit(const struct cutting *c, uint64_t m)
{
    uint64_t at = 0;
    for (uint64_t p = 0; p < c->parts; p++) {
        if (m > c->total - at)
            return false;
        at = cut_after(c, at + m);
    }
    return true;
}

static void cut_evenly(struct cutting *c)
{
    uint64_t low = 0, high = c->total / c->parts + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (parts_fit(c, middle))
            low = middle;
        else
            high = middle;
    }
    uint64_t *cuts = c->cuts; /* first the highest places; then lowered, from the end */
    for (uint64_t p = 0; p < c->parts; p++) {
        uint64_t room = c->total - cuts[p], most = low + c->largest;
        cuts[p + 1] = cut_before(c, most < room ? cuts[p] + most : c->total);
    }
    cuts[c->parts] = c->total;
    for (uint64_t p = c->parts; p-- > 1;) {
        uint64_t upto = cut_before(c, cuts[p + 1] - low);
        cuts[p] = upto < cuts[p] ? upto : cuts[p];
    }
}

static void cut_by_shares(struct cutting *c)
{
    for (uint64_t p = 1; p < c->parts; p++) {
        uint64_t share = c->total / c->parts * p + c->total % c->parts * p / c->parts;
        uint64_t low = cut_before(c, share), high = cut_after(c, share);
        c->cuts[p] = share - low < high - share ? low : high;
    }
    c->cuts[c->parts] = c->total;
}

/* -------------------------------------------------------------------- items */

/* Splits the leaves of a unit at the cuts in it. */
static tnf_status cut_unit(const struct cutting *c, size_t i, uint64_t *part, tnf_error *e)
{
    const struct job_item *unit = &c->units[i];
    uint64_t step = step_of(c->job, unit), begin = c->before[i];
    struct job_item item = *unit;
    for (uint64_t done = 0; done < unit->n; done += item.n) {
        while (*part + 1 < c->parts && c->cuts[*part + 1] <= begin + done * step)
            ++*part;
        uint64_t upto = c->cuts[*part + 1];
        uint64_t end = upto >= c->before[i + 1] ? unit->n : (upto - begin) / step;
        item.part = *part;
        item.first = done;
        item.n = end - done;
        item.offset = done * step;
        item.bytes = end == unit->n ? unit->bytes - item.offset : item.n * step;
        item.cost = item.bytes;
        item.at = unit->at + item.offset;
        TNF_TRY(tnf_job_unit(c->job, &item, e));
    }
    return TNF_OK;
}

static tnf_status make_items(const struct cutting *c, tnf_error *e)
{
    uint64_t part = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct job_item item = c->units[i];
        if (is_cut(&item)) {
            TNF_TRY(cut_unit(c, i, &part, e));
            continue;
        }
        while (part + 1 < c->parts && c->cuts[part + 1] < c->before[i + 1])
            part++;
        item.part = part;
        TNF_TRY(tnf_job_unit(c->job, &item, e));
    }
    return TNF_OK;
}

tnf_status tnf_job_cut(tnf_job *job, tnf_error *e)
{
    struct cutting c = { .job = job, .units = job->items, .n = job->nitems };
    c.parts = job->o.parts;
    c.before = tnf_arena_array(&job->arena, c.n + 1, sizeof *c.before);
    c.cuts = tnf_arena_array(&job->arena, c.parts + 1, sizeof *c.cuts);
    if (!c.before || !c.cuts)
        return tnf_arena_fail(&job->arena, "the plan", e);
    job->items = NULL;
    job->nitems = job->room = 0;
    for (size_t i = 0; i < c.n; i++) {
        uint64_t piece = piece_of(job, &c.units[i]);
        c.largest = piece > c.largest ? piece : c.largest;
        if (!tnf_ckd_add(&c.before[i + 1], c.before[i], size_of(&c.units[i])))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the inputs are too large for a plan");
    }
    c.total = c.before[c.n];
    if (c.largest <= TNF_LEAF_BYTES)
        cut_evenly(&c);
    else
        cut_by_shares(&c);
    return make_items(&c, e);
}

bool tnf_job_is_cut(const tnf_job *job)
{
    for (size_t i = 0; i < job->nitems; i++)
        if ((job->kind == TNF_JOB_STAT || job->kind == TNF_JOB_DIFF) && !job->items[i].whole)
            return true;
    return false;
}

void tnf_job_items(const tnf_job *job, uint64_t part, size_t *first, size_t *end)
{
    const struct job_item *items = job->items;
    size_t n = job->nitems;
    *first = n ? tnf_rising_first(&items->part, sizeof *items, n, part) : 0;
    *end = n ? tnf_rising_first(&items->part, sizeof *items, n, part + 1) : 0;
}
