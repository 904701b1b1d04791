/* SPDX-License-Identifier: MIT */
/* A bar on stderr for work that takes longer than a second, on a terminal only. */
#ifndef TENFOLD_CLI_PROGRESS_H
#define TENFOLD_CLI_PROGRESS_H

#include "cmd.h"

typedef struct progress {
    bool shown; /* stderr is a terminal */
    bool drawn;
    double began, last;
} progress;

void progress_begin(progress *p, const cli_state *cli);
/* A tnf_progress_fn step; draws at most ten times a second. */
void progress_step(progress *p, uint64_t done, uint64_t total);
/* A tnf_progress_fn whose context begins with a progress. It draws the bar, and stops at a
 * signal. */
bool progress_watch(void *ctx, uint64_t done, uint64_t total);
/* Erases the bar. */
void progress_end(progress *p);

#endif
