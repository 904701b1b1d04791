/* SPDX-License-Identifier: MIT */
/* Handles signals while a file is written. The library is told to stop, and removes its unfinished
 * file. Then the signal is raised again, so that it has its usual effect. */
#ifndef TENFOLD_CLI_STOP_H
#define TENFOLD_CLI_STOP_H

#include <signal.h>
#include <stdbool.h>

#define STOP_SIGNALS 3u

typedef struct stop_state {
    struct sigaction before[STOP_SIGNALS];
} stop_state;

void stop_catch(stop_state *s);
/* Has a signal arrived? Progress functions call this. */
bool stop_asked(void);
/* Restores the previous handlers. `stopped`: writing was cancelled, so the signal is raised again.
 * Otherwise the signal arrived too late, and the file is complete. */
void stop_release(const stop_state *s, bool stopped);

/* If another program truncates a mapped file, reading the missing bytes raises a signal. After this
 * call the signal ends the program with a message and the exit code of a read error. An output that
 * was being written has no name yet, so nothing is left of it. */
void stop_on_cut_files(void);

#endif
