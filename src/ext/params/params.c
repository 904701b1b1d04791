/* SPDX-License-Identifier: MIT */
/* Loads parameters on demand, and caches them within a budget of bytes by the rules of gpt.rs.
 *
 *   slots    one per tensor, found by base id      ┌────┬────┬────┬────┬────┐
 *                                                  │ a  │ b  │ c  │ d  │ e  │
 *   blocks   the bytes of those in memory:         └─┬──┴────┴─┬──┴─┬──┴────┘
 *            in use (refs > 0), cached, or both      block     block  block
 *   line     cached and not pinned, by last use        oldest ⇄ newest
 *
 * The cache keeps everything if there is a budget, small tensors if there is a threshold, and
 * prefetched tensors always. The last two are pinned. A block that does not fit next to the pinned
 * ones is not cached; otherwise the least recently used blocks are evicted for it. gpt.rs numbers
 * the uses and breaks ties by the smaller id. Here uses are ordered by the lock, so the order of
 * the line is enough.
 *
 * The lock is not held while reading: a slot is marked as loading, and other threads that want it
 * wait for that read. A block that is evicted while in use lives until it is released. A block that
 * was read ahead (ahead.c) lives until it is loaded.
 */
#include "ext/params/source.h"

#include "base/blake3.h"
#include "base/ckd.h"
#include "base/sized.h"
#include "base/str.h"

#include <string.h>

#define ALIGNMENT 64u

/* ------------------------------------------------------------------ cache */

static void leave_line(tnf_params *p, struct block *b)
{
    *(b->older ? &b->older->newer : &p->oldest) = b->newer;
    *(b->newer ? &b->newer->older : &p->newest) = b->older;
    b->older = b->newer = NULL;
}

static void join_line(tnf_params *p, struct block *b)
{
    b->older = p->newest;
    *(p->newest ? &p->newest->newer : &p->oldest) = b;
    p->newest = b;
}

void tnf_params_free_unused(tnf_params *p, struct block *b)
{
    if (b->refs > 0 || b->cached || b->held)
        return;
    b->slot->block = NULL;
    tnf_free(&p->alloc, b, b->size);
}

/* Removes a block from the cache, and frees it unless it is in use. */
static void drop_block(tnf_params *p, struct block *b)
{
    if (b->pinned)
        p->stats.pinned_bytes -= b->slot->nbytes;
    else
        leave_line(p, b);
    p->stats.cached_bytes -= b->slot->nbytes;
    p->stats.cached--;
    b->cached = b->pinned = false;
    tnf_params_free_unused(p, b);
}

static bool is_pinned(const tnf_params *p, const struct slot *s)
{
    return s->prefetched || (p->options.small_bytes > 0 && s->nbytes <= p->options.small_bytes);
}

/* Would the slot fit if everything that is not pinned were evicted? */
static bool fits_beside_pinned(const tnf_params *p, const struct slot *s)
{
    return !p->has_budget || s->nbytes <= p->stats.budget - p->stats.pinned_bytes;
}

static void make_room(tnf_params *p, const struct slot *s)
{
    while (p->has_budget && p->oldest && p->stats.cached_bytes > p->stats.budget - s->nbytes) {
        drop_block(p, p->oldest);
        p->stats.evictions++;
    }
}

static void pin_block(tnf_params *p, struct block *b)
{
    b->pinned = true;
    p->stats.pinned_bytes += b->slot->nbytes;
}

/* Notes the use of a block: it becomes the newest, and is cached if the rules say so. */
static void note_use(tnf_params *p, struct block *b)
{
    const struct slot *s = b->slot;
    if (b->cached) {
        if (b->pinned)
            return;
        leave_line(p, b);
        if (is_pinned(p, s))
            pin_block(p, b);
        else
            join_line(p, b);
        return;
    }
    if ((!is_pinned(p, s) && !p->has_budget) || !fits_beside_pinned(p, s))
        return;
    make_room(p, s);
    b->cached = true;
    p->stats.cached_bytes += s->nbytes;
    p->stats.cached++;
    if (is_pinned(p, s))
        pin_block(p, b);
    else
        join_line(p, b);
}

/* ------------------------------------------------------------------- load */

static struct slot *find_slot(const tnf_params *p, tnf_id id)
{
    uint32_t i = tnf_hash_find(&p->ids, (const char *)id.bytes, sizeof id.bytes);
    return i == TNF_HASH_NONE ? NULL : &p->slots[i];
}

static void take_block(tnf_params *p, struct block *b)
{
    if (b->refs++ == 0)
        p->stats.in_use++;
    tnf_params_was_wanted(p, b->slot);
    note_use(p, b);
}

/* Allocates memory for a slot, with aligned data. */
static struct block *new_block(tnf_params *p, struct slot *s)
{
    uint64_t whole;
    size_t size;
    if (!tnf_ckd_add(&whole, s->nbytes, sizeof(struct block) + ALIGNMENT - 1) ||
        !tnf_to_size(&size, whole))
        return NULL;
    struct block *b = tnf_alloc(&p->alloc, size);
    if (!b)
        return NULL;
    uintptr_t gap = (ALIGNMENT - (uintptr_t)(b + 1) % ALIGNMENT) % ALIGNMENT;
    *b = (struct block) { .slot = s, .data = (uint8_t *)(b + 1) + gap, .size = size };
    b->param = (tnf_param) { .object = s->object,
                             .data = b->data,
                             .nbytes = (size_t)s->nbytes,
                             .base_id = s->id,
                             .key = tnf_param_key(p->options.name_space, s->id) };
    return b;
}

static tnf_status read_block(struct block *b, tnf_error *e)
{
    const tnf_object *o = b->slot->object;
    if (o->nparts != 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the layout %s; only tensors of one part can be parameters",
                        TNF_QUOTED(o->name), tnf_layout_id(o->layout));
    return tnf_read(b->data, b->param.nbytes, o, e);
}

tnf_status tnf_params_fetch(struct block **out, tnf_params *p, struct slot *s, tnf_error *e)
{
    struct block *b = new_block(p, s);
    if (!b)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for the %llu bytes of %s",
                        (unsigned long long)s->nbytes, TNF_QUOTED(s->object->name));
    s->loading = true;
    pthread_mutex_unlock(&p->mutex);
    tnf_status status = read_block(b, e);
    pthread_mutex_lock(&p->mutex);
    s->loading = false;
    pthread_cond_broadcast(&p->loaded);
    if (status != TNF_OK) {
        tnf_free(&p->alloc, b, b->size);
        return status;
    }
    *out = s->block = b;
    p->stats.loaded_bytes += s->nbytes;
    return TNF_OK;
}

/* Called with the lock held. */
static tnf_status load_slot(struct block **out, tnf_params *p, struct slot *s, tnf_error *e)
{
    while (s->loading)
        pthread_cond_wait(&p->loaded, &p->mutex);
    if (s->block) {
        p->stats.hits++;
    } else {
        struct block *b;
        p->stats.misses++;
        s->wanted = false; /* it is being read now */
        TNF_TRY(tnf_params_fetch(&b, p, s, e));
    }
    take_block(p, *out = s->block);
    return TNF_OK;
}

static tnf_status load_param(const tnf_param **out, tnf_params *p, struct slot *s, tnf_error *e)
{
    struct block *b = NULL;
    pthread_mutex_lock(&p->mutex);
    tnf_status status = load_slot(&b, p, s, e);
    pthread_mutex_unlock(&p->mutex);
    *out = b ? &b->param : NULL;
    return status;
}

/* The id of any name. Only tnf_param_id() refuses names that are not ASCII. */
static tnf_id id_of(const char *name, size_t n)
{
    uint8_t digest[32];
    tnf_id id;
    tnf_blake3(digest, name, n);
    memcpy(id.bytes, digest, sizeof id.bytes);
    return id;
}

struct slot *tnf_params_named(const tnf_params *p, tnf_str name)
{
    return find_slot(p, id_of(name.n ? name.p : "", name.n));
}

bool tnf_params_loads(const tnf_params *p, const struct slot *s)
{
    return find_slot(p, s->id) == s;
}

tnf_status tnf_params_load_n(const tnf_param **out, tnf_params *p, const char *name, size_t n,
                             tnf_error *e)
{
    const tnf_str whole = { name, n };
    *out = NULL;
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(tnf_need_array(name, n, "name", e));
    struct slot *s = tnf_params_named(p, whole);
    if (!s)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no parameter %s",
                        TNF_QUOTED(whole));
    return load_param(out, p, s, e);
}

tnf_status tnf_params_load(const tnf_param **out, tnf_params *p, const char *name, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(name, "name", e));
    return tnf_params_load_n(out, p, name, strlen(name), e);
}

tnf_status tnf_params_load_id(const tnf_param **out, tnf_params *p, tnf_id base_id, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(p, "params", e));
    struct slot *s = find_slot(p, base_id);
    if (!s)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        "there is no parameter with the id %02x%02x%02x%02x…", base_id.bytes[0],
                        base_id.bytes[1], base_id.bytes[2], base_id.bytes[3]);
    return load_param(out, p, s, e);
}

void tnf_params_release(tnf_params *p, const tnf_param *param)
{
    if (!p || !param)
        return;
    struct slot *s = find_slot(p, param->base_id);
    pthread_mutex_lock(&p->mutex);
    struct block *b = s ? s->block : NULL;
    if (b && &b->param == param && b->refs > 0 && --b->refs == 0) {
        p->stats.in_use--;
        tnf_params_free_unused(p, b);
    }
    pthread_mutex_unlock(&p->mutex);
}

/* --------------------------------------------------------------- prefetch */

/* Loads and pins a slot, if there is room. If two tensors have the same name, the last one is
 * used. */
static tnf_status prefetch_slot(tnf_params *p, struct slot *s, tnf_error *e)
{
    tnf_status status = TNF_OK;
    if (!tnf_params_loads(p, s))
        return TNF_OK;
    struct block *b = NULL;
    pthread_mutex_lock(&p->mutex);
    s->prefetched = true;
    if ((s->block && s->block->cached) || fits_beside_pinned(p, s))
        status = load_slot(&b, p, s, e);
    pthread_mutex_unlock(&p->mutex);
    tnf_params_release(p, b ? &b->param : NULL);
    return status;
}

/* Is the name "blocks.<n>.…" with n below `layers`? */
static bool in_layers(tnf_str name, uint32_t layers)
{
    static const char blocks[] = "blocks.";
    if (!tnf_str_begins(name, blocks))
        return false;
    const char *digits = name.p + sizeof blocks - 1, *p = digits, *end = name.p + name.n;
    uint64_t number = tnf_take_digits(&p, end);
    return p > digits && p < end && *p == '.' && number < layers;
}

tnf_status tnf_params_prefetch(tnf_params *p, const char *prefix, tnf_error *e)
{
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(tnf_need(prefix, "prefix", e));
    for (size_t i = 0; i < p->n; i++)
        if (tnf_str_begins(p->slots[i].object->name, prefix))
            TNF_TRY(prefetch_slot(p, &p->slots[i], e));
    return TNF_OK;
}

static tnf_status prefetch_first(tnf_params *p, tnf_error *e)
{
    const char *prefix = p->options.prefetch_prefix;
    for (size_t i = 0; i < p->n; i++) {
        tnf_str name = p->slots[i].object->name;
        if (in_layers(name, p->options.prefetch_layers) || (prefix && tnf_str_begins(name, prefix)))
            TNF_TRY(prefetch_slot(p, &p->slots[i], e));
    }
    p->options.prefetch_prefix = NULL; /* owned by the caller, and no longer needed */
    return TNF_OK;
}

/* ------------------------------------------------------------------ handle */

static tnf_str slot_id(const void *ctx, uint32_t position)
{
    const tnf_params *p = ctx;
    return (tnf_str) { (const char *)p->slots[position].id.bytes, sizeof(tnf_id) };
}

static tnf_status fill_slots(tnf_params *p, const tnf_file *file, tnf_error *e)
{
    const tnf_object *o;
    p->n = tnf_file_info(file)->objects;
    p->slots = tnf_alloc0(&p->alloc, (p->n + 1) * sizeof *p->slots);
    if (!p->slots)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu parameters", p->n);
    for (size_t i = 0; i < p->n && (o = tnf_at(file, i)) != NULL; i++) {
        struct slot *s = &p->slots[i];
        uint32_t previous;
        *s = (struct slot) { .object = o, .id = id_of(o->name.p, o->name.n) };
        for (uint16_t k = 0; k < o->nparts; k++)
            if (!tnf_ckd_add(&s->nbytes, s->nbytes, o->parts[k].nbytes))
                s->nbytes = UINT64_MAX;
        if (!tnf_hash_add(&p->ids, (uint32_t)i, true, &previous))
            return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu parameters", p->n);
    }
    return TNF_OK;
}

/* Sets the budget to the smallest of the given limits. */
static tnf_status set_budget(tnf_params *p, const tnf_file *file, tnf_error *e)
{
    const tnf_params_options *o = &p->options;
    uint64_t budget = UINT64_MAX;
    if (!(o->budget_percent >= 0 && o->budget_percent <= 1))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "budget_percent must be between 0 and 1");
    if (o->budget > 0)
        budget = o->budget;
    if (o->budget_cap > 0 && o->budget_cap < budget)
        budget = o->budget_cap;
    if (o->budget_percent > 0) {
        double part = (double)tnf_file_info(file)->payload * o->budget_percent;
        if (part < (double)budget)
            budget = (uint64_t)part;
    }
    p->stats.budget = budget;
    p->has_budget = o->budget > 0 || o->budget_cap > 0 || o->budget_percent > 0;
    return TNF_OK;
}

static tnf_status set_up(tnf_params *p, const tnf_file *file, tnf_error *e)
{
    TNF_TRY(set_budget(p, file, e));
    TNF_TRY(fill_slots(p, file, e));
    return prefetch_first(p, e);
}

tnf_status tnf_params_new(tnf_params **out, const tnf_file *file, const tnf_params_options *options,
                          tnf_error *e)
{
    tnf_params_options o;
    *out = NULL;
    TNF_TRY(tnf_need(file, "file", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_params_options, &o, options, e));
    tnf_allocator alloc = tnf_allocator_or_default(&o.allocator);
    tnf_params *p = tnf_alloc0(&alloc, sizeof *p);
    if (!p)
        return tnf_no_memory("a parameter source", e);
    p->options = o;
    p->alloc = alloc;
    p->lock = &p->mutex;
    pthread_mutex_init(&p->mutex, NULL); /* cannot fail with default attributes */
    pthread_cond_init(&p->loaded, NULL);
    pthread_cond_init(&p->work, NULL);
    tnf_hash_init(&p->ids, &p->alloc, slot_id, p);
    tnf_status status = set_up(p, file, e);
    if (status != TNF_OK) {
        tnf_params_free(p);
        return status;
    }
    *out = p;
    return TNF_OK;
}

void tnf_params_free(tnf_params *p)
{
    if (!p)
        return;
    tnf_params_stop(p);
    for (size_t i = 0; p->slots && i < p->n; i++)
        if (p->slots[i].block)
            tnf_free(&p->alloc, p->slots[i].block, p->slots[i].block->size);
    tnf_free(&p->alloc, p->slots, (p->n + 1) * sizeof *p->slots);
    tnf_hash_free(&p->ids);
    pthread_cond_destroy(&p->loaded);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->mutex);
    tnf_allocator alloc = p->alloc;
    tnf_free(&alloc, p, sizeof *p);
}

void tnf_params_trim(tnf_params *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    tnf_params_forget_ahead(p);
    for (size_t i = 0; i < p->n; i++) {
        struct block *b = p->slots[i].block;
        if (b && b->cached && b->refs == 0)
            drop_block(p, b);
    }
    pthread_mutex_unlock(&p->mutex);
}

tnf_status tnf_params_statistics(tnf_params_stats *out, const tnf_params *p, tnf_error *e)
{
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_params_stats), e));
    pthread_mutex_lock(p->lock);
    tnf_result_fill(out, &p->stats, sizeof p->stats);
    pthread_mutex_unlock(p->lock);
    return TNF_OK;
}
