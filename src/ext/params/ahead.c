/* SPDX-License-Identifier: MIT */
/* Reads parameters ahead, in a thread of the source.
 *
 *   queue    next to be read ─▶ … ─▶ last         requested, not yet begun
 *   held     in memory until it is loaded         at most the budget without pinned parameters
 *
 * The first call starts the thread, and freeing the source ends it. A load of a parameter that is
 * being read waits for that read. A load of a parameter in the queue reads it itself, and the
 * thread skips it. If reading ahead fails, the load tries again, and reports the error.
 */
#include "ext/params/source.h"

#include "base/pool.h"

static void hold_block(tnf_params *p, struct block *b)
{
    if (b->item.held)
        return;
    b->item.held = true;
    p->stats.ahead++;
    p->stats.ahead_bytes += b->item.nbytes;
}

static void unhold_block(tnf_params *p, struct block *b)
{
    if (!b->item.held)
        return;
    b->item.held = false;
    p->stats.ahead--;
    p->stats.ahead_bytes -= b->item.nbytes;
    pthread_cond_signal(&p->work);
}

void tnf_params_was_wanted(tnf_params *p, struct slot *s)
{
    s->wanted = false;
    unhold_block(p, s->block);
}

void tnf_params_forget_ahead(tnf_params *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct block *b = p->slots[i].block;
        p->slots[i].wanted = false;
        if (b && b->item.held) {
            unhold_block(p, b);
            tnf_params_free_unused(p, &b->item);
        }
    }
}

/* ------------------------------------------------------------------ reader */

static void join_queue(tnf_params *p, struct slot *s)
{
    s->wanted = true;
    if (s->linked)
        return;
    s->linked = true;
    s->next = NULL;
    *(p->last ? &p->last->next : &p->first) = s;
    p->last = s;
}

static struct slot *leave_queue(tnf_params *p)
{
    struct slot *s = p->first;
    p->first = s->next;
    p->last = p->first ? p->last : NULL;
    s->linked = false;
    return s;
}

/* The bytes that may be held; without a budget there is no limit. */
static uint64_t most_bytes(const tnf_params *p)
{
    return p->has_budget ? p->stats.budget - p->stats.pinned_bytes : UINT64_MAX;
}

/* The next slot to read. Skips slots that need no reading or can never fit. NULL: none now. */
static struct slot *next_to_read(tnf_params *p)
{
    while (p->first) {
        const struct slot *s = p->first;
        if (s->wanted && !s->loading && !s->block && s->nbytes <= most_bytes(p))
            break;
        leave_queue(p)->wanted = false;
    }
    if (!p->first || p->stats.ahead_bytes > most_bytes(p) - p->first->nbytes)
        return NULL;
    return leave_queue(p);
}

/* Reads a slot, and holds it unless it is no longer wanted. */
static void read_one(tnf_params *p, struct slot *s)
{
    struct block *b;
    if (tnf_params_fetch(&b, p, s, NULL) == TNF_OK) {
        if (s->wanted)
            hold_block(p, b);
        else
            tnf_params_free_unused(p, &b->item);
    }
    s->wanted = s->linked;
}

static void *read_ahead(void *arg)
{
    tnf_params *p = arg;
    pthread_mutex_lock(&p->mutex);
    while (!p->stopping) {
        struct slot *s = next_to_read(p);
        if (s)
            read_one(p, s);
        else
            pthread_cond_wait(&p->work, &p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* Called with the lock held. If no thread can be created, parameters are read when they are
 * loaded. */
static void start_thread(tnf_params *p)
{
    if (!p->has_reader)
        p->has_reader = tnf_thread_start(&p->reader, read_ahead, p);
}

void tnf_params_stop(tnf_params *p)
{
    if (!p->has_reader)
        return;
    pthread_mutex_lock(&p->mutex);
    p->stopping = true;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->mutex);
    pthread_join(p->reader, NULL);
}

/* Under the lock. */
static void want_slot(tnf_params *p, struct slot *s)
{
    if (s->block)
        hold_block(p, s->block); /* keeps it until it is used */
    else
        join_queue(p, s);
}

/* If two tensors have the same name, only one of them can be loaded. */
static void want_all(tnf_params *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->slots[i].object->nparts == 1 && tnf_params_loads(p, &p->slots[i]))
            want_slot(p, &p->slots[i]);
}

tnf_status tnf_params_ahead(tnf_params *p, const tnf_str *names, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(tnf_need_array(names, n, "names", e));
    for (size_t i = 0; i < n; i++) {
        TNF_TRY(tnf_need_str(names[i], "names", e));
        if (!tnf_params_named(p, names[i]))
            return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no parameter %s",
                            TNF_QUOTED(names[i]));
    }
    pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < n; i++)
        want_slot(p, tnf_params_named(p, names[i]));
    if (!names)
        want_all(p);
    if (p->first)
        start_thread(p);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->mutex);
    return TNF_OK;
}
