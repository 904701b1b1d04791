/* SPDX-License-Identifier: MIT */
/* The cache of a parameter source: which items stay in memory after their last use.
 *
 *   items    in use (refs > 0), cached, or both: the bytes of parameters, and derived forms
 *   line     cached and not pinned, by last use         oldest ⇄ … ⇄ newest
 *
 * The cache keeps everything if there is a budget, small items if there is a threshold, and what
 * belongs to prefetched parameters always. The last two are pinned. An item that does not fit next
 * to the pinned ones is not cached; otherwise the least recently used items are evicted for it.
 * These are gpt.rs' rules for parameters. It numbers the uses and breaks ties by the smaller id.
 * Here uses are ordered by the lock, so the order of the line is enough.
 *
 * Functions of the caller are never called under the lock: forms that are freed wait in a list
 * until the lock is released.
 */
#include "ext/params/source.h"

static void leave_line(tnf_params *p, struct item *i)
{
    *(i->older ? &i->older->newer : &p->oldest) = i->newer;
    *(i->newer ? &i->newer->older : &p->newest) = i->older;
    i->older = i->newer = NULL;
}

static void join_line(tnf_params *p, struct item *i)
{
    i->older = p->newest;
    *(p->newest ? &p->newest->newer : &p->oldest) = i;
    p->newest = i;
}

static bool is_pinned(const tnf_params *p, const struct item *i)
{
    return i->slot->prefetched ||
           (p->options.small_bytes > 0 && i->nbytes <= p->options.small_bytes);
}

static void pin_item(tnf_params *p, struct item *i)
{
    i->pinned = true;
    p->stats.pinned_bytes += i->nbytes;
}

static void count_in(tnf_params *p, struct item *i)
{
    i->cached = true;
    p->stats.cached_bytes += i->nbytes;
    p->stats.derived_bytes += i->is_form ? i->nbytes : 0;
    *(i->is_form ? &p->stats.derived : &p->stats.cached) += 1;
}

static void count_out(tnf_params *p, struct item *i)
{
    i->cached = false;
    p->stats.cached_bytes -= i->nbytes;
    p->stats.derived_bytes -= i->is_form ? i->nbytes : 0;
    *(i->is_form ? &p->stats.derived : &p->stats.cached) -= 1;
}

static void free_block(tnf_params *p, struct item *i)
{
    struct block *b = i->slot->block;
    i->slot->block = NULL;
    tnf_free(&p->alloc, b, b->size);
}

static void bury_form(tnf_params *p, struct item *i)
{
    struct form **link = &i->slot->forms;
    while (&(*link)->item != i)
        link = &(*link)->next;
    struct form *f = *link;
    *link = f->next;
    f->next = p->dead;
    p->dead = f;
}

void tnf_params_free_unused(tnf_params *p, struct item *i)
{
    if (i->refs > 0 || i->cached || i->held)
        return;
    if (i->is_form)
        bury_form(p, i);
    else
        free_block(p, i);
}

void tnf_params_drop(tnf_params *p, struct item *i)
{
    if (i->pinned)
        p->stats.pinned_bytes -= i->nbytes;
    else
        leave_line(p, i);
    i->pinned = false;
    count_out(p, i);
    tnf_params_free_unused(p, i);
}

bool tnf_params_fits(const tnf_params *p, uint64_t nbytes)
{
    return !p->has_budget || nbytes <= p->stats.budget - p->stats.pinned_bytes;
}

static void make_room(tnf_params *p, uint64_t nbytes)
{
    while (p->has_budget && p->oldest && p->stats.cached_bytes > p->stats.budget - nbytes) {
        tnf_params_drop(p, p->oldest);
        p->stats.evictions++;
    }
}

void tnf_params_use(tnf_params *p, struct item *i)
{
    const bool pin = is_pinned(p, i);
    if (i->cached && i->pinned)
        return;
    if (i->cached) {
        leave_line(p, i);
    } else {
        if ((!pin && !p->has_budget) || !tnf_params_fits(p, i->nbytes))
            return;
        make_room(p, i->nbytes);
        count_in(p, i);
    }
    if (pin)
        pin_item(p, i);
    else
        join_line(p, i);
}

void tnf_params_unlock(tnf_params *p)
{
    struct form *dead = p->dead;
    p->dead = NULL;
    pthread_mutex_unlock(&p->mutex);
    if (!dead)
        return;
    for (struct form *f = dead; f; f = f->next)
        tnf_params_end_form(p, f);
    pthread_mutex_lock(&p->mutex); /* the allocator is called by one thread at a time */
    while (dead) {
        struct form *next = dead->next;
        tnf_free(&p->alloc, dead, dead->size);
        dead = next;
    }
    pthread_mutex_unlock(&p->mutex);
}
