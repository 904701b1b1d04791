/* SPDX-License-Identifier: MIT */
/* The report of a conversion that is being made. */
#ifndef TNF_JOB_REPORT_H
#define TNF_JOB_REPORT_H

#include "base/arena.h"
#include <tenfold/convert.h>

struct tnf_report_room {
    tnf_report report; /* the first member, which callers see */
    tnf_arena arena;
    tnf_plan_item *items;
    tnf_quantized quantized;
    size_t room;
    bool all; /* also keep native items */
    bool short_of_memory;
};

tnf_status tnf_report_new(struct tnf_report_room **out, bool all, tnf_error *e);
/* Counts an item, and keeps a copy if `all`, or if the item is not native. */
void tnf_report_add(struct tnf_report_room *r, const tnf_plan_item *item);
/* TNF_ENOMEM if an item could not be kept. */
tnf_status tnf_report_status(const struct tnf_report_room *r, tnf_error *e);

#endif
