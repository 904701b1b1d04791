/* SPDX-License-Identifier: MIT */
/* Keeps the plan of a conversion for the caller, with copies of names and reasons. */
#include "job/report.h"

#include "base/error.h"

#include <string.h>

tnf_status tnf_report_new(struct tnf_report_room **out, bool all, tnf_error *e)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    struct tnf_report_room *r = tnf_alloc0(&alloc, sizeof *r);
    if (!r)
        return tnf_no_memory("a report", e);
    tnf_arena_init(&r->arena, &alloc, UINT64_MAX);
    r->all = all;
    r->quantized.size = sizeof r->quantized;
    r->report.quantized = &r->quantized;
    *out = r;
    return TNF_OK;
}

void tnf_report_free(tnf_report *report)
{
    struct tnf_report_room *r = (struct tnf_report_room *)(void *)report;
    if (!r)
        return;
    tnf_allocator alloc = r->arena.alloc;
    tnf_free(&alloc, r->items, r->room * sizeof *r->items);
    tnf_arena_free(&r->arena);
    tnf_free(&alloc, r, sizeof *r);
}

const tnf_plan_item *tnf_report_item(const tnf_report *report, size_t i)
{
    const struct tnf_report_room *r = (const struct tnf_report_room *)(const void *)report;
    return report && i < report->nitems ? &r->items[i] : NULL;
}

static bool grow_items(struct tnf_report_room *r)
{
    tnf_plan_item *items = tnf_grow(&r->arena.alloc, r->items, r->report.nitems, &r->room,
                                    sizeof *items, 16);
    if (!items)
        return false;
    r->items = items;
    return true;
}

void tnf_report_add(struct tnf_report_room *r, const tnf_plan_item *item)
{
    r->report.counts[item->fate] += !item->late && !item->note; /* those are in addition */
    if (item->fate == TNF_NATIVE && !r->all && !item->note)
        return;
    const char *name = tnf_arena_str(&r->arena, item->name.p, item->name.n);
    const char *kind = tnf_arena_str(&r->arena, item->kind, strlen(item->kind));
    const char *reason = item->reason ? item->reason : "";
    reason = *reason ? tnf_arena_str(&r->arena, reason, strlen(reason)) : "";
    bool room = grow_items(r);
    if (!name || !kind || !reason || !room) {
        r->short_of_memory = true;
        return;
    }
    tnf_plan_item *copy = &r->items[r->report.nitems++];
    *copy = *item;
    copy->name.p = name;
    copy->kind = kind;
    copy->reason = reason;
}

tnf_status tnf_report_status(const struct tnf_report_room *r, tnf_error *e)
{
    return r->short_of_memory ? tnf_no_memory("a report", e) : TNF_OK;
}
