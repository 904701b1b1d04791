/* SPDX-License-Identifier: MIT */
/* What commands that save share. */
#include "saving.h"
#include "stop.h"
#include <string.h>

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(&((saving *)ctx)->progress, done, total);
    return !stop_asked();
}

static void on_plan(void *ctx, const tnf_plan_item *item)
{
    plan_item(&((saving *)ctx)->plan, item);
}

void saving_listen(saving *s, tnf_save_options *how)
{
    how->plan = on_plan;
    how->progress = on_progress;
    how->ctx = s;
}

bool saving_kinds_known(const char *who, const char *kinds)
{
    for (const char *p = kinds; p; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (opt_position(LOSS_KINDS, p, n) < 0) {
            usage_error("%s%s--allow-loss takes one or more of " LOSS_KINDS
                        ", separated by commas, not '%s'",
                        who ? who : "", who ? ": " : "", kinds);
            return false;
        }
        p += n;
    }
    return true;
}
