/* SPDX-License-Identifier: MIT */
/* Appending: the file and the builder become one model, which is planned as a whole. The format
 * writes only the new content, after the existing one.
 *
 *   file  ─┐
 *          ├─ one catalog ── plan ── format.append ── the end of the file
 *   builder┘
 */
#include "core/save/save.h"

#include <string.h>

struct appending {
    struct tnf_save save;
    tnf_save_options given;
    const tnf_builder *builder;
    tnf_file *file;
    tnf_builder *all;
    bool repair;     /* its end is missing or broken, so something must be written in any case */
    size_t news;     /* number of new attributes */
    tnf_arena arena; /* scratch of the format */
};

/* Items that do not change are not reported. */
static void on_plan(void *ctx, const tnf_plan_item *item)
{
    const struct appending *a = ctx;
    bool tensor = strcmp(item->kind, "tensor") == 0;
    bool old = tensor ? tnf_find_n(a->file, item->name.p, item->name.n) != NULL
                      : tnf_value_get_n(a->file->info.attrs, item->name.p, item->name.n) != NULL;
    if (a->given.plan && !(old && item->fate < TNF_TRANSFORMED))
        a->given.plan(a->given.ctx, item);
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const struct appending *a = ctx;
    return !a->given.progress || a->given.progress(a->given.ctx, done, total);
}

/* ------------------------------------------------------------------- base */

/* A truncated file may still contain a complete model, if an append was interrupted. */
static tnf_status open_base(struct appending *a, const char *path, tnf_error *e)
{
    tnf_open_options o = { .size = sizeof o,
                           .format = a->given.format,
                           .allocator = a->builder->alloc,
                           .to_change = true };
    tnf_status status = tnf_open(&a->file, path, &o, e);
    if (status == TNF_ETRUNCATED) {
        tnf_error again;
        o.lenient = true;
        a->repair = tnf_open(&a->file, path, &o, &again) == TNF_OK;
        status = a->repair ? TNF_OK : status;
    }
    TNF_TRY(status);
    const tnf_format *f = a->file->format;
    if (!(tnf_registry_caps(f) & TNF_CAN_APPEND))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s: this format does not support appending", f->name);
    a->save.format = f;
    return TNF_OK;
}

/* The index is rewritten, so a tensor that cannot be read cannot be kept. */
static tnf_status check_base(const struct appending *a, tnf_error *e)
{
    const tnf_catalog *c = &a->file->catalog;
    for (size_t i = 0; i < c->n; i++)
        for (uint16_t k = 0; k < c->objects[i].nparts; k++)
            if (c->objects[i].parts[k].flags & TNF_PART_UNREADABLE)
                return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                                "%s: %s cannot be read here, and would be lost by appending",
                                a->save.format->name, TNF_QUOTED(c->objects[i].name));
    return TNF_OK;
}

/* ------------------------------------------------------------------- both */

static tnf_status add_attr(struct appending *a, const tnf_member *m, tnf_error *e)
{
    tnf_attrs *attrs = &a->all->catalog.attrs;
    if (tnf_registry_derives(m))
        return TNF_OK;
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *known = &attrs->members[i];
        if (known->key.n != m->key.n || memcmp(known->key.p, m->key.p, m->key.n) != 0)
            continue;
        if (tnf_value_equal(&known->value, &m->value))
            return TNF_OK;
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET,
                        "the file has the attribute %s already, with another value",
                        TNF_QUOTED(m->key));
    }
    a->news++;
    return tnf_attrs_set(attrs, m->key.p, m->key.n, m->value, e);
}

static tnf_status unite_catalogs(struct appending *a, tnf_error *e)
{
    const tnf_catalog *c = &a->builder->catalog;
    TNF_TRY(tnf_builder_new(&a->all, &a->builder->alloc, e));
    TNF_TRY(tnf_builder_add_file(a->all, a->file, e));
    for (size_t i = 0; i < c->n; i++) {
        if (tnf_find_n(a->file, c->objects[i].name.p, c->objects[i].name.n))
            return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "the file has a tensor %s already",
                            TNF_QUOTED(c->objects[i].name));
        TNF_TRY(tnf_catalog_add(&a->all->catalog, &c->objects[i], TNF_NAMES_ONCE, e));
    }
    for (size_t i = 0; i < c->attrs.n; i++)
        TNF_TRY(add_attr(a, &c->attrs.members[i], e));
    for (size_t i = 0; i < c->nextras; i++)
        TNF_TRY(tnf_catalog_add_extra(&a->all->catalog, &c->extras[i], e));
    return TNF_OK;
}

static tnf_status plan_append(struct appending *a, tnf_error *e)
{
    struct tnf_save *s = &a->save;
    tnf_status status = tnf_options_parse(&s->values, s->format->write_options, "writer",
                                          s->options.options, s->options.noptions, &s->arena, e);
    if (status == TNF_OK)
        status = tnf_plan(s, &a->all->catalog, e);
    if (status != TNF_OK)
        tnf_error_prefix(e, s->format->name);
    s->total = 0; /* of the new content only */
    for (size_t i = 0; i < a->builder->catalog.n; i++)
        for (uint16_t k = 0; k < a->builder->catalog.objects[i].nparts; k++)
            s->total += a->builder->catalog.objects[i].parts[k].nbytes;
    return status;
}

/* ------------------------------------------------------------------ write */

static tnf_status write_end(struct appending *a, const char *path, tnf_error *e)
{
    struct tnf_save *s = &a->save;
    tnf_sink *sink;
    unsigned flags = s->options.no_sync ? TNF_SINK_NO_SYNC : 0u;
    const tnf_claim *claim = a->file->claim.fd >= 0 ? &a->file->claim : NULL;
    TNF_TRY(tnf_sink_append(&sink, path, claim, a->file->source->size, flags, &s->arena.alloc, e));
    tnf_writer w = tnf_save_writer(s, sink, &a->arena);
    w.base = &a->file->reader;
    tnf_status status;
    TNF_CALL(status, e, s->format->append, &w);
    if (status != TNF_OK)
        tnf_error_prefix(e, s->format->name);
    else
        status = tnf_sink_commit(sink, e);
    tnf_sink_close(sink);
    return status;
}

static tnf_status append_to_file(struct appending *a, const char *path, tnf_error *e)
{
    TNF_TRY(open_base(a, path, e));
    TNF_TRY(check_base(a, e));
    TNF_TRY(unite_catalogs(a, e));
    TNF_TRY(plan_append(a, e));
    bool nothing = a->builder->catalog.n == 0 && a->news == 0 && !a->repair;
    return nothing || a->save.options.dry_run ? TNF_OK : write_end(a, path, e);
}

tnf_status tnf_append(const tnf_builder *b, const char *path, const tnf_save_options *options,
                      tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need(path, "path", e));
    struct appending a = { .builder = b };
    TNF_TRY(tnf_save_take(&a.given, options, e));
    a.save.options = a.given;
    a.save.options.plan = on_plan;
    a.save.options.progress = on_progress;
    a.save.options.ctx = &a;
    tnf_arena_init(&a.save.arena, &b->alloc, UINT64_MAX);
    tnf_arena_init(&a.arena, &b->alloc, UINT64_MAX);
    tnf_status status = append_to_file(&a, path, e);
    tnf_plan_end(&a.save);
    tnf_arena_free(&a.arena);
    tnf_arena_free(&a.save.arena);
    tnf_builder_free(a.all);
    tnf_close(a.file);
    return status;
}
