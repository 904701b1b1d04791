/* SPDX-License-Identifier: MIT */
/* Derived forms of parameters: made once, found by parameter and kind.
 *
 *   slot ──▶ form "packed" ──▶ form "transposed"     in memory: in use, cached, or both
 *                 │
 *                 └─ making: one thread makes it, and all others that want it wait
 *
 * The lock is not held while a form is made. If that fails, the form leaves the list and the
 * threads that wait are woken: the first of them makes it itself. The cache (cache.c) decides how
 * long a form stays. With a resolver of the caller forms are not cached, so they stay in the list
 * only while they are in use; then they are given back to the resolver.
 */
#include "ext/params/source.h"

#include "base/ckd.h"
#include "base/sized.h"

#include <string.h>

static bool is_foreign(const tnf_params *p)
{
    return p->resolver.version > 0;
}

void tnf_params_end_form(const tnf_params *p, struct form *f)
{
    if (is_foreign(p))
        p->resolver.release(p->options.resolver_ctx, &f->derived);
    else if (f->drop)
        f->drop(f->ctx, f->derived.data, f->derived.nbytes);
}

/* ------------------------------------------------------------------- list */

static struct form *find_form(const struct slot *s, const char *kind)
{
    struct form *f = s->forms;
    while (f && strcmp(f->derived.kind, kind) != 0)
        f = f->next;
    return f;
}

/* Puts a form that has no data yet into the list of its slot, in use by its maker. */
static tnf_status add_form(struct form **out, tnf_params *p, struct slot *s, const char *kind,
                           tnf_error *e)
{
    const size_t n = strlen(kind) + 1;
    size_t size;
    struct form *f = tnf_to_size(&size, (uint64_t)n + sizeof *f) ? tnf_alloc(&p->alloc, size)
                                                                 : NULL;
    if (!f)
        return tnf_no_memory("a derived form", e);
    char *copy = memcpy(f + 1, kind, n);
    *f = (struct form) {
        .item = { .slot = s, .refs = 1, .is_form = true },
        .derived = { .base_id = s->id, .key = tnf_param_key(p->name_space, s->id), .kind = copy },
        .next = s->forms,
        .size = size,
        .maker = pthread_self(),
        .making = true
    };
    *out = s->forms = f;
    return TNF_OK;
}

/* A form that could not be made: threads that wait for it still look at it. */
static void leave_failed(tnf_params *p, struct form *f)
{
    if (--f->item.refs == 0)
        tnf_free(&p->alloc, f, f->size);
}

static void remove_failed(tnf_params *p, struct form *f)
{
    struct form **link = &f->item.slot->forms;
    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    f->making = false;
    f->failed = true;
    leave_failed(p, f);
}

/* ------------------------------------------------------------------- make */

static bool get_abroad(const tnf_params *p, struct form *f)
{
    tnf_derived found = f->derived;
    if (!is_foreign(p) || !p->resolver.get(p->options.resolver_ctx, &found))
        return false;
    f->derived.data = found.data;
    f->derived.nbytes = found.nbytes;
    return true;
}

static tnf_status set_abroad(const tnf_params *p, const struct form *f, tnf_error *e)
{
    tnf_status status;
    if (!is_foreign(p))
        return TNF_OK;
    TNF_CALL(status, e, p->resolver.set, p->options.resolver_ctx, &f->derived, f->drop, f->ctx);
    if (status != TNF_OK && f->drop)
        f->drop(f->ctx, f->derived.data, f->derived.nbytes);
    return status;
}

static tnf_status call_make(tnf_params *p, struct form *f, const tnf_derive *how, tnf_error *e)
{
    const tnf_param *param;
    tnf_status status;
    TNF_TRY(tnf_params_load_slot(&param, p, f->item.slot, e));
    TNF_CALL(status, e, how->make, how->ctx, &f->derived.data, &f->derived.nbytes, param);
    tnf_params_release(p, param);
    f->drop = how->drop;
    f->ctx = how->ctx;
    return status;
}

static tnf_status not_made(const struct slot *s, const char *kind, tnf_error *e)
{
    return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no form %s of %s in memory",
                    TNF_QUOTED(((tnf_str) { kind, strlen(kind) })), TNF_QUOTED(s->object->name));
}

/* Gets the data of a form, without the lock. `how` NULL: without making them. Only this thread uses
 * the form's members meanwhile, apart from its kind and the uses. */
static tnf_status fill_form(bool *made, tnf_params *p, struct form *f, const tnf_derive *how,
                            tnf_error *e)
{
    *made = false;
    if (get_abroad(p, f))
        return TNF_OK;
    if (!how)
        return not_made(f->item.slot, f->derived.kind, e);
    TNF_TRY(call_make(p, f, how, e));
    TNF_TRY(set_abroad(p, f, e));
    *made = true;
    return TNF_OK;
}

/* Under the lock, which is released while the form is made. */
static tnf_status make_form(struct form **out, tnf_params *p, struct slot *s, const char *kind,
                            const tnf_derive *how, tnf_error *e)
{
    struct form *f;
    bool made;
    if (!how && !is_foreign(p))
        return not_made(s, kind, e);
    TNF_TRY(add_form(&f, p, s, kind, e));
    tnf_params_unlock(p);
    tnf_status status = fill_form(&made, p, f, how, e);
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->loaded);
    if (status != TNF_OK) {
        remove_failed(p, f);
        return status;
    }
    f->making = false;
    f->item.nbytes = f->derived.nbytes;
    *(made ? &p->stats.made : &p->stats.derived_hits) += 1;
    p->stats.derived_in_use++;
    *out = f;
    return TNF_OK;
}

/* Under the lock: uses a form of the list, or makes one. A thread that waits counts as a user, so
 * all that wait get the form, even if it is not cached. */
static tnf_status find_or_make(struct form **out, tnf_params *p, struct slot *s, const char *kind,
                               const tnf_derive *how, tnf_error *e)
{
    for (struct form *f; (f = find_form(s, kind)) != NULL;) {
        if (f->making && pthread_equal(f->maker, pthread_self()))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "the form %s of %s is requested by the function that makes it",
                            TNF_QUOTED(((tnf_str) { kind, strlen(kind) })),
                            TNF_QUOTED(s->object->name));
        if (f->item.refs++ == 0)
            p->stats.derived_in_use++;
        while (f->making)
            pthread_cond_wait(&p->loaded, &p->mutex);
        if (!f->failed) {
            p->stats.derived_hits++;
            *out = f;
            return TNF_OK;
        }
        leave_failed(p, f);
    }
    return make_form(out, p, s, kind, how, e);
}

static tnf_status take_form(const tnf_derived **out, tnf_params *p, struct slot *s,
                            const char *kind, const tnf_derive *how, tnf_error *e)
{
    struct form *f;
    TNF_TRY(find_or_make(&f, p, s, kind, how, e));
    if (!is_foreign(p))
        tnf_params_use(p, &f->item);
    *out = &f->derived;
    return TNF_OK;
}

/* ----------------------------------------------------------------- public */

static tnf_status take_how(tnf_derive *out, const tnf_derive *given, tnf_error *e)
{
    TNF_TRY(tnf_need(given, "how", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_derive, out, given, e));
    TNF_TRY(tnf_need(out->kind, "kind", e));
    return out->make ? TNF_OK : tnf_null_given("make", e);
}

static tnf_status derive_slot(const tnf_derived **out, tnf_params *p, struct slot *s,
                              const tnf_derive *how, tnf_error *e)
{
    pthread_mutex_lock(&p->mutex);
    tnf_status status = take_form(out, p, s, how->kind, how, e);
    tnf_params_unlock(p);
    return status;
}

tnf_status tnf_params_derive_n(const tnf_derived **out, tnf_params *p, const char *name, size_t n,
                               const tnf_derive *given, tnf_error *e)
{
    const tnf_str whole = { name, n };
    tnf_derive how;
    *out = NULL;
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(tnf_need_array(name, n, "name", e));
    TNF_TRY(take_how(&how, given, e));
    struct slot *s = tnf_params_named(p, whole);
    return s ? derive_slot(out, p, s, &how, e) : tnf_params_no_name(whole, e);
}

tnf_status tnf_params_derive(const tnf_derived **out, tnf_params *p, const char *name,
                             const tnf_derive *how, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(name, "name", e));
    return tnf_params_derive_n(out, p, name, strlen(name), how, e);
}

tnf_status tnf_params_derive_id(const tnf_derived **out, tnf_params *p, tnf_id base_id,
                                const tnf_derive *given, tnf_error *e)
{
    tnf_derive how;
    *out = NULL;
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(take_how(&how, given, e));
    struct slot *s = tnf_params_slot(p, base_id);
    return s ? derive_slot(out, p, s, &how, e) : tnf_params_no_id("id", base_id, e);
}

static tnf_str slot_key(const void *ctx, uint32_t position)
{
    const tnf_params *p = ctx;
    return (tnf_str) { (const char *)p->slots[position].key.bytes, sizeof(tnf_id) };
}

/* Under the lock. Most programs never look a form up by its key, so the keys are computed late. */
static tnf_status need_keys(tnf_params *p, tnf_error *e)
{
    if (p->has_keys)
        return TNF_OK;
    tnf_hash_free(&p->keys);
    tnf_hash_init(&p->keys, &p->alloc, slot_key, p);
    for (size_t i = 0; i < p->n; i++) {
        uint32_t previous;
        p->slots[i].key = tnf_param_key(p->name_space, p->slots[i].id);
        if (!tnf_hash_add(&p->keys, (uint32_t)i, true, &previous))
            return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu keys", p->n);
    }
    p->has_keys = true;
    return TNF_OK;
}

/* Under the lock. */
static tnf_status look_up(const tnf_derived **out, tnf_params *p, tnf_id key, const char *kind,
                          tnf_error *e)
{
    TNF_TRY(need_keys(p, e));
    uint32_t i = tnf_hash_find(&p->keys, (const char *)key.bytes, sizeof key.bytes);
    if (i == TNF_HASH_NONE)
        return tnf_params_no_id("key", key, e);
    return take_form(out, p, &p->slots[i], kind, NULL, e);
}

tnf_status tnf_params_find_derived(const tnf_derived **out, tnf_params *p, tnf_id key,
                                   const char *kind, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(p, "params", e));
    TNF_TRY(tnf_need(kind, "kind", e));
    pthread_mutex_lock(&p->mutex);
    tnf_status status = look_up(out, p, key, kind, e);
    tnf_params_unlock(p);
    return status;
}

void tnf_params_release_derived(tnf_params *p, const tnf_derived *form)
{
    if (!p || !form)
        return;
    const struct slot *s = tnf_params_slot(p, form->base_id);
    pthread_mutex_lock(&p->mutex);
    struct form *f = s ? s->forms : NULL;
    while (f && &f->derived != form)
        f = f->next;
    if (f && f->item.refs > 0 && --f->item.refs == 0) {
        p->stats.derived_in_use--;
        tnf_params_free_unused(p, &f->item);
    }
    tnf_params_unlock(p);
}
