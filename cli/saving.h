/* SPDX-License-Identifier: MIT */
/* What every command that saves shows while the library saves: the plan, a bar; and that it stops
 * when a signal asks for it. */
#ifndef TENFOLD_CLI_SAVING_H
#define TENFOLD_CLI_SAVING_H

#include "plan.h"
#include "progress.h"
#include <tenfold/build.h>

#define LOSS_KINDS "tensor|attribute|extra" /* as plan items are called */

typedef struct saving {
    progress progress;
    plan plan;
} saving;

/* Has the library tell `s`, which must stay until it is done. */
void saving_listen(saving *s, tnf_save_options *how);
/* --allow-loss=KIND,KIND: a kind that does not exist would allow nothing, silently. NULL is fine,
 * for `who` too.
 * False after `who` has said so. */
bool saving_kinds_known(const char *who, const char *kinds);

#endif
