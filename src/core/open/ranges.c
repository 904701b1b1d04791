/* SPDX-License-Identifier: MIT */
/* Checks the ranges of all tensors against the file and against each other.
 *
 *   0        data_start                                     size
 *   ├─ header ─┤├── a ──┤├── b ──┤  hole  ├── c ──┤ trailing ┤
 *                              ├ overlap ┤
 *
 * This is done once for all tensors, in order of position. So it can tell a truncated file from one
 * with a wrong index, and it takes n log n time at most (n, if the index is in order).
 */
#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>

#define SHARED "%s and %s share bytes from %llu on"

struct range {
    uint64_t begin, end;
    uint32_t object, part;
};

static int by_position(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Collects the parts in this file. A range whose end overflows is illegal in any format. */
static tnf_status collect_ranges(const tnf_file *f, tnf_arena *arena, struct range **out, size_t *n,
                                 tnf_error *e)
{
    size_t count = 0;
    bool sorted = true;
    for (size_t i = 0; i < f->catalog.n; i++)
        count += f->catalog.objects[i].nparts;
    struct range *r = tnf_arena_array(arena, count, sizeof *r);
    if (!r)
        return tnf_arena_fail(arena, "checking", e);
    *n = 0;
    for (size_t i = 0; i < f->catalog.n; i++) {
        const tnf_object *o = &f->catalog.objects[i];
        for (uint32_t p = 0; p < o->nparts; p++) {
            const tnf_part *part = &o->parts[p];
            uint64_t end;
            if (part->payload > TNF_ENCODED || part->origin != &f->origin)
                continue;
            if (!tnf_ckd_add(&end, part->offset, part->stored))
                return tnf_fail(e, TNF_EFORMAT,
                                part->offset < f->reader.source->size ? part->offset
                                                                      : TNF_NO_OFFSET,
                                "the end of %s is beyond 2^64", TNF_QUOTED(o->name));
            r[*n] = (struct range) { part->offset, end, (uint32_t)i, p };
            sorted = sorted && (*n == 0 || by_position(&r[*n - 1], &r[*n]) <= 0);
            (*n)++;
        }
    }
    if (!sorted)
        qsort(r, *n, sizeof *r, by_position);
    *out = r;
    return TNF_OK;
}

static tnf_str name_of(const tnf_file *f, const struct range *r)
{
    return f->catalog.objects[r->object].name;
}

/* Fails unless all ranges are inside the file. If lenient, incomplete tensors are listed, but
 * cannot be read. (An empty range is always complete.) */
static tnf_status check_size(tnf_file *f, const struct range *r, size_t n, tnf_error *e)
{
    uint64_t size = f->source->size, need = 0;
    for (size_t i = 0; i < n; i++)
        need = r[i].end > need ? r[i].end : need;
    if (need <= size)
        return TNF_OK;
    char text[160];
    snprintf(text, sizeof text,
             "the file has %llu bytes, but its index needs %llu: %s missing (cut short?)",
             (unsigned long long)size, (unsigned long long)need, TNF_BYTES_ARE(need - size));
    if (f->reader.salvage) /* each tensor is a loss of its own */
        tnf_note_fault(&f->reader, TNF_ETRUNCATED, size, text);
    else
        TNF_TRY(tnf_stricter(&f->reader, e, TNF_ETRUNCATED, size, "%s", text));
    f->needed_lenience = true;
    for (size_t i = 0; i < n; i++)
        if (r[i].end > size && r[i].end > r[i].begin)
            tnf_part_mutable(&f->catalog.objects[r[i].object].parts[r[i].part])
                ->flags |= TNF_PART_UNREADABLE;
    return TNF_OK;
}

static tnf_status check_start(tnf_file *f, const struct range *r, size_t n, tnf_error *e)
{
    uint64_t start = f->reader.data_start;
    for (size_t i = 0; i < n && r[i].begin < start; i++)
        TNF_TRY(tnf_stricter(&f->reader, e, TNF_EFORMAT, r[i].begin,
                             "%s begins at byte %llu, inside the header, which ends at %llu",
                             TNF_QUOTED(name_of(f, &r[i])), (unsigned long long)r[i].begin,
                             (unsigned long long)start));
    return TNF_OK;
}

static tnf_status tell_overlap(tnf_file *f, const struct range *a, const struct range *b,
                               tnf_error *e)
{
    if (!(f->format->rules & TNF_RULE_NO_OVERLAP)) {
        tnf_warn(&f->reader, b->begin, SHARED, TNF_QUOTED(name_of(f, a)), TNF_QUOTED(name_of(f, b)),
                 (unsigned long long)b->begin);
        return TNF_OK;
    }
    return tnf_stricter(&f->reader, e, TNF_EFORMAT, b->begin, SHARED, TNF_QUOTED(name_of(f, a)),
                        TNF_QUOTED(name_of(f, b)), (unsigned long long)b->begin);
}

/* Checks neighbours in order of position: `last` is the range with the highest end so far. */
static tnf_status check_neighbours(tnf_file *f, const struct range *r, size_t n, tnf_error *e)
{
    unsigned rules = f->format->rules;
    const struct range *last = NULL;
    uint64_t end = f->reader.data_start;
    for (size_t i = 0; i < n; i++) {
        bool inside = last && r[i].begin < end;
        if (inside && (r[i].end > r[i].begin || rules & TNF_RULE_NO_HOLES))
            TNF_TRY(tell_overlap(f, last, &r[i], e));
        if (rules & TNF_RULE_NO_HOLES && r[i].begin > end)
            TNF_TRY(tnf_stricter(
                &f->reader, e, TNF_EFORMAT, end, "%llu bytes before %s belong to no tensor",
                (unsigned long long)(r[i].begin - end), TNF_QUOTED(name_of(f, &r[i]))));
        if (!last || r[i].end > end) {
            end = r[i].end > end ? r[i].end : end;
            last = &r[i];
        }
    }
    if (rules & TNF_RULE_NO_HOLES && end < f->source->size)
        TNF_TRY(tnf_stricter(&f->reader, e, TNF_EFORMAT, end,
                             "%llu bytes after the last tensor belong to no tensor",
                             (unsigned long long)(f->source->size - end)));
    return TNF_OK;
}

tnf_status tnf_check_ranges(tnf_file *f, tnf_error *e)
{
    struct range *r = NULL;
    size_t n = 0;
    const unsigned neighbours = TNF_RULE_NO_OVERLAP | TNF_RULE_NO_HOLES | TNF_RULE_OVERLAP_ODD |
                                TNF_RULE_OVERLAP_WRONG;
    TNF_TRY(collect_ranges(f, f->reader.scratch, &r, &n, e));
    TNF_TRY(check_size(f, r, n, e));
    if (f->format->rules & TNF_RULE_DATA_START)
        TNF_TRY(check_start(f, r, n, e));
    return f->format->rules & neighbours ? check_neighbours(f, r, n, e) : TNF_OK;
}

tnf_status tnf_tell_overlaps(const tnf_file *f, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e)
{
    struct range *r = NULL;
    const struct range *last = NULL;
    size_t n = 0;
    TNF_TRY(collect_ranges(f, arena, &r, &n, e));
    for (size_t i = 0; i < n; i++) {
        tnf_error problem = { 0 };
        if (last && r[i].begin < last->end && r[i].end > r[i].begin) {
            (void)tnf_fail(&problem, TNF_EFORMAT, r[i].begin, SHARED, TNF_QUOTED(name_of(f, last)),
                           TNF_QUOTED(name_of(f, &r[i])), (unsigned long long)r[i].begin);
            tell(ctx, &problem, name_of(f, &r[i]));
        }
        if (!last || r[i].end > last->end)
            last = &r[i];
    }
    return TNF_OK;
}
