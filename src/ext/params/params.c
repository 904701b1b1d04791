/* SPDX-License-Identifier: MIT */
/* Loads parameters on demand, and caches them within a budget of bytes.
 *
 *   slots    one per tensor, found by base id      ┌────┬────┬────┬────┬────┐
 *                                                  │ a  │ b  │ c  │ d  │ e  │
 *   blocks   the bytes of those in memory:         └─┬──┴────┴─┬──┴─┬──┴────┘
 *            in use (refs > 0), cached, or both      block     block  block
 *
 * cache.c decides which blocks stay, derive.c adds derived forms to the slots.
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

/* ------------------------------------------------------------------- load */

struct slot *tnf_params_slot(const tnf_params *p, tnf_id id)
{
    uint32_t i = tnf_hash_find(&p->ids, (const char *)id.bytes, sizeof id.bytes);
    return i == TNF_HASH_NONE ? NULL : &p->slots[i];
}

static void take_block(tnf_params *p, struct block *b)
{
    if (b->item.refs++ == 0)
        p->stats.in_use++;
    tnf_params_was_wanted(p, b->item.slot);
    tnf_params_use(p, &b->item);
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
    *b = (struct block) { .item = { .slot = s, .nbytes = s->nbytes },
                          .data = (uint8_t *)(b + 1) + gap,
                          .size = size };
    b->param = (tnf_param) { .object = s->object,
                             .data = b->data,
                             .nbytes = (size_t)s->nbytes,
                             .base_id = s->id,
                             .key = tnf_param_key(p->name_space, s->id) };
    return b;
}

static tnf_status read_block(struct block *b, tnf_error *e)
{
    const tnf_object *o = b->item.slot->object;
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

tnf_status tnf_params_load_slot(const tnf_param **out, tnf_params *p, struct slot *s, tnf_error *e)
{
    struct block *b = NULL;
    pthread_mutex_lock(&p->mutex);
    tnf_status status = load_slot(&b, p, s, e);
    tnf_params_unlock(p);
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
    return tnf_params_slot(p, id_of(name.n ? name.p : "", name.n));
}

bool tnf_params_loads(const tnf_params *p, const struct slot *s)
{
    return tnf_params_slot(p, s->id) == s;
}

tnf_status tnf_params_no_name(tnf_str name, tnf_error *e)
{
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no parameter %s", TNF_QUOTED(name));
}

tnf_status tnf_params_no_id(const char *what, tnf_id id, tnf_error *e)
{
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                    "there is no parameter with the %s %02x%02x%02x%02x…", what, id.bytes[0],
                    id.bytes[1], id.bytes[2], id.bytes[3]);
}

tnf_status tnf_params_load_n(const tnf_param **out, tnf_params *p, const char *name, size_t n,
                             tnf_error *e)
{
    const tnf_str whole = { name, n };
    *out = NULL;
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(tnf_need_array(name, n, "name", e));
    struct slot *s = tnf_params_named(p, whole);
    return s ? tnf_params_load_slot(out, p, s, e) : tnf_params_no_name(whole, e);
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
    struct slot *s = tnf_params_slot(p, base_id);
    return s ? tnf_params_load_slot(out, p, s, e) : tnf_params_no_id("id", base_id, e);
}

void tnf_params_release(tnf_params *p, const tnf_param *param)
{
    if (!p || !param)
        return;
    struct slot *s = tnf_params_slot(p, param->base_id);
    pthread_mutex_lock(&p->mutex);
    struct block *b = s ? s->block : NULL;
    if (b && &b->param == param && b->item.refs > 0 && --b->item.refs == 0) {
        p->stats.in_use--;
        tnf_params_free_unused(p, &b->item);
    }
    tnf_params_unlock(p);
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
    if ((s->block && s->block->item.cached) || tnf_params_fits(p, s->nbytes))
        status = load_slot(&b, p, s, e);
    tnf_params_unlock(p);
    tnf_params_release(p, b ? &b->param : NULL);
    return status;
}

/* Is the name "blocks.<n>.…" with n below `layers`? */
static bool in_layers(tnf_str name, uint64_t layers)
{
    static const char blocks[] = "blocks.";
    if (!tnf_str_begins(name, blocks))
        return false;
    const char *digits = name.p + sizeof blocks - 1, *end = name.p + name.n;
    digits += digits < end && *digits == '+'; /* Rust's numbers may have a sign */
    const char *p = digits;
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
    if (o->budget_percent >= 1 && tnf_file_info(file)->payload < budget) {
        budget = tnf_file_info(file)->payload;
    } else if (o->budget_percent > 0) {
        double part = (double)tnf_file_info(file)->payload * o->budget_percent;
        if (part < (double)budget)
            budget = (uint64_t)part;
    }
    p->stats.budget = o->budget_zero ? 0 : budget;
    p->has_budget = o->budget > 0 || o->budget_cap > 0 || o->budget_percent > 0 || o->budget_zero;
    return TNF_OK;
}

/* Keeps what the options point to: the caller's memory need not outlive the call. */
static tnf_status copy_pointers(tnf_params *p, tnf_error *e)
{
    tnf_params_options *o = &p->options;
    p->name_space = o->name_space ? *o->name_space : tnf_namespace_next();
    o->name_space = NULL;
    if (!o->resolver)
        return TNF_OK;
    const tnf_resolver_ops *r = o->resolver;
    if (r->version == 0 || r->version > TNF_RESOLVER_OPS_VERSION || !r->get || !r->set ||
        !r->release)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "a resolver needs get, set and release, and a version from 1 to %u",
                        TNF_RESOLVER_OPS_VERSION);
    p->resolver = *r;
    o->resolver = NULL;
    return TNF_OK;
}

static tnf_status set_up(tnf_params *p, const tnf_file *file, tnf_error *e)
{
    TNF_TRY(tnf_check_reserved(p->options.reserved, sizeof p->options.reserved, e));
    TNF_TRY(copy_pointers(p, e));
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
    tnf_hash_init(&p->keys, &p->alloc, NULL, NULL); /* derive.c fills it */
    tnf_status status = set_up(p, file, e);
    if (status != TNF_OK) {
        tnf_params_free(p);
        return status;
    }
    *out = p;
    return TNF_OK;
}

static void free_slot(tnf_params *p, struct slot *s)
{
    if (s->block)
        tnf_free(&p->alloc, s->block, s->block->size);
    for (struct form *f = s->forms, *next; f; f = next) {
        next = f->next;
        tnf_params_end_form(p, f);
        tnf_free(&p->alloc, f, f->size);
    }
}

void tnf_params_free(tnf_params *p)
{
    if (!p)
        return;
    tnf_params_stop(p);
    for (size_t i = 0; p->slots && i < p->n; i++)
        free_slot(p, &p->slots[i]);
    tnf_free(&p->alloc, p->slots, (p->n + 1) * sizeof *p->slots);
    tnf_hash_free(&p->ids);
    tnf_hash_free(&p->keys);
    pthread_cond_destroy(&p->loaded);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->mutex);
    tnf_allocator alloc = p->alloc;
    tnf_free(&alloc, p, sizeof *p);
}

tnf_id tnf_params_namespace(const tnf_params *p)
{
    return p ? p->name_space : tnf_namespace_id(0, 0);
}

static void trim_slot(tnf_params *p, struct slot *s)
{
    struct block *b = s->block;
    if (b && b->item.cached && b->item.refs == 0)
        tnf_params_drop(p, &b->item);
    for (struct form *f = s->forms, *next; f; f = next) {
        next = f->next;
        if (f->item.cached && f->item.refs == 0)
            tnf_params_drop(p, &f->item);
    }
}

void tnf_params_trim(tnf_params *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    tnf_params_forget_ahead(p);
    for (size_t i = 0; i < p->n; i++)
        trim_slot(p, &p->slots[i]);
    tnf_params_unlock(p);
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
