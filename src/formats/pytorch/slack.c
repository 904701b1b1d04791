/* SPDX-License-Identifier: MIT */
/* Slack: bytes of storages that belong to no tensor.
 *
 *   storage   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
 *   tensors     |--a--|   |-b-|          slack: the bytes outside a and b
 *
 * torch.save() writes the complete storage of a small view. So files can be far larger than their
 * tensors and contain invisible data. Gaps inside a tensor do not count as slack. A storage that
 * the pickle names and no tensor uses is different: its tensor was not found.
 */
#include "formats/pytorch/pt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME ((uint64_t)1 << 20)

tnf_status tnf_pt_note_span(pt_file *f, pt_storage *s, uint64_t begin, uint64_t end, tnf_error *e)
{
    if (s->spanned || !s->key.n)
        return TNF_OK;
    s->spanned = begin == 0 && end == s->size;
    pt_span *last = f->nspans ? &f->spans[f->nspans - 1] : NULL;
    if (s->spanned)
        return TNF_OK;
    if (last && last->storage == s && last->end == begin) {
        last->end = end;
        return TNF_OK;
    }
    pt_span *more = tnf_arena_grow(f->r->scratch, f->spans, f->nspans, &f->spans_capacity,
                                   sizeof *more, 16);
    if (!more)
        return tnf_arena_fail(f->r->scratch, "the spans of tensors", e);
    f->spans = more;
    f->spans[f->nspans++] = (pt_span) { s, begin, end };
    return TNF_OK;
}

static int by_place(const void *a, const void *b)
{
    const pt_span *x = a, *y = b;
    if (x->storage != y->storage) {
        if (x->storage->offset != y->storage->offset)
            return x->storage->offset < y->storage->offset ? -1 : 1;
        return tnf_str_compare(x->storage->key, y->storage->key);
    }
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The bytes of the storage of spans[0] outside all its spans; *n is the number of its spans. */
static uint64_t measure_slack(const pt_span *spans, size_t left, size_t *n)
{
    uint64_t end = 0, slack = 0;
    for (*n = 0; *n < left && spans[*n].storage == spans->storage; ++*n) {
        slack += spans[*n].begin > end ? spans[*n].begin - end : 0;
        end = spans[*n].end > end ? spans[*n].end : end;
    }
    return slack + (spans->storage->size > end ? spans->storage->size - end : 0);
}

static tnf_status add_row(pt_file *f, tnf_value *out, const pt_storage *s, uint64_t bytes,
                          tnf_error *e)
{
    tnf_attrs m = { .arena = f->r->arena };
    TNF_TRY(tnf_attrs_push(&m, "storage", tnf_value_str(TNF_STRING, s->key.p, s->key.n), e));
    TNF_TRY(tnf_attrs_push(&m, "size", tnf_value_uint(s->size), e));
    TNF_TRY(tnf_attrs_push(&m, "slack", tnf_value_uint(bytes), e));
    *out = tnf_attrs_value(&m);
    return TNF_OK;
}

tnf_status tnf_pt_slack_done(pt_file *f, tnf_error *e)
{
    size_t n = 0, group;
    char text[160];
    uint64_t all = 0;
    if (!f->nspans)
        return TNF_OK;
    qsort(f->spans, f->nspans, sizeof *f->spans, by_place);
    tnf_value *rows = tnf_arena_array(f->r->arena, f->nspans, sizeof *rows);
    if (!rows)
        return tnf_arena_fail(f->r->arena, "slack", e);
    for (size_t i = 0; i < f->nspans; i += group) {
        const pt_storage *s = f->spans[i].storage;
        uint64_t bytes = measure_slack(&f->spans[i], f->nspans - i, &group);
        if (s->spanned || bytes == 0)
            continue;
        TNF_TRY(add_row(f, &rows[n++], s, bytes, e));
        all += bytes;
    }
    if (n == 0)
        return TNF_OK;
    snprintf(text, sizeof text,
             "slack: %llu bytes of %zu storage%s belong to no tensor; convert leaves them out",
             (unsigned long long)all, n, n == 1 ? "" : "s");
    f->slack = (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = rows };
    f->slack_text = tnf_arena_str(f->r->arena, text, strlen(text));
    return f->slack_text ? TNF_OK : tnf_arena_fail(f->r->arena, "slack", e);
}

/* ----------------------------------------------------------------- unlisted */

tnf_status tnf_pt_add_unreadable(pt_file *f, const tnf_object *object, const char *why, uint64_t at,
                                 tnf_error *e)
{
    const char *kept = tnf_arena_str(f->r->arena, why, strlen(why));
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .payload = TNF_OPAQUE,
                      .flags = TNF_PART_UNREADABLE };
    tnf_object o = *object;
    if (!kept)
        return tnf_arena_fail(f->r->arena, "a tensor", e);
    tnf_warn(f->r, at, "%s is listed, but cannot be read: %s", TNF_QUOTED(o.name), why);
    TNF_TRY(tnf_unreadable_origin(f->r, &part.origin, kept, e));
    o.layout = &tnf_layout_dense;
    o.parts = &part;
    o.nparts = 1;
    return tnf_add_object(f->r, &o, at, e);
}

/* The storage of a persistent id, if the file has it. */
static pt_storage *storage_of(pt_file *f, const tnf_pickle_node *node)
{
    const tnf_pickle_node *id = tnf_pt_is_storage(node) ? node->as.items[0] : NULL;
    const tnf_pickle_node *key = id && id->n > 2 ? id->as.items[2] : NULL;
    return key && key->kind == TNF_PICKLE_TEXT
               ? tnf_pt_find_storage(f, (tnf_str) { key->as.s, key->n })
               : NULL;
}

/* Marks the storages in the calls that make a tensor. */
static void mark_in(pt_file *f, const tnf_pickle_node *node, unsigned depth)
{
    if (node->kind == TNF_PICKLE_CALL)
        node = node->as.call->args;
    for (size_t i = 0; node->kind == TNF_PICKLE_TUPLE && i < node->n && i < 8; i++) {
        const tnf_pickle_node *item = node->as.items[i];
        pt_storage *s = storage_of(f, item);
        if (s)
            s->listed = true;
        else if (depth < 3)
            mark_in(f, item, depth + 1);
    }
}

void tnf_pt_mark_listed(pt_file *f, const tnf_pickle_node *tensor)
{
    mark_in(f, tensor, 0);
}

/* Makes a name that no tensor has. */
static tnf_status free_name(tnf_buf *name, const pt_file *f, tnf_str key, tnf_error *e)
{
    for (unsigned i = 1; i == 1 || tnf_catalog_find(f->r->catalog, (const char *)name->p, name->n);
         i++) {
        name->n = 0;
        tnf_buf_puts(name, "storage ");
        tnf_buf_put(name, key.p, key.n);
        if (i > 1)
            tnf_buf_printf(name, "@%u", i);
        TNF_TRY(tnf_buf_status(name, "the name", e));
    }
    return TNF_OK;
}

tnf_status tnf_pt_list_others(pt_file *f, const tnf_pickle *p, tnf_error *e)
{
    static const char why[] =
        "the pickle names this storage, but its tensor was not found in the places that are read";
    tnf_buf name;
    tnf_status status = TNF_OK;
    tnf_buf_init(&name, &f->r->scratch->alloc, MAX_NAME);
    for (size_t i = 0; i < p->persistent.n && status == TNF_OK; i++) {
        pt_storage *s = storage_of(f, p->persistent.nodes[i]);
        if (!s || s->listed || s->size == 0)
            continue;
        s->listed = true;
        status = f->locate ? f->locate(f, s, e) : TNF_OK;
        if (status == TNF_OK)
            status = free_name(&name, f, s->key, e);
        tnf_object o = { .name = { (const char *)name.p, name.n }, .shape = &s->size, .rank = 1 };
        if (status == TNF_OK)
            status = tnf_pt_add_unreadable(f, &o, why, f->base + p->persistent.nodes[i]->at, e);
    }
    tnf_buf_free(&name);
    return status;
}
