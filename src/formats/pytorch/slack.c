/* SPDX-License-Identifier: MIT */
/* Slack: bytes of storages that no tensor reaches.
 *
 *   storage   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
 *   tensors     |--a--|   |-b-|          slack: what neither a nor b spans
 *
 * torch.save() writes the whole storage of a small view, so files can be far larger than what they
 * hold, and hold what nobody sees. Steps within a tensor count as spanned.
 */
#include "formats/pytorch/pt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Bytes of the storage of spans[0] that none of its spans has; *n spans are of it. */
static uint64_t measure(const pt_span *spans, size_t left, size_t *n)
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
        uint64_t bytes = measure(&f->spans[i], f->nspans - i, &group);
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
