/* SPDX-License-Identifier: MIT */
/* Signals while a file is written: the library is told to stop and removes what it wrote. Then
 * the signal is raised again, so that its sender sees the usual effect. */
#ifndef TENFOLD_CLI_STOP_H
#define TENFOLD_CLI_STOP_H

#include <signal.h>
#include <stdbool.h>

#define STOP_SIGNALS 3u

typedef struct stop_state {
    struct sigaction before[STOP_SIGNALS];
} stop_state;

void stop_catch(stop_state *s);
/* Has one come? For progress functions to ask. */
bool stop_asked(void);
/* Back to what was before. `stopped`: writing was given up, so the signal is raised again; else it
 * came too late and the file is there. */
void stop_release(const stop_state *s, bool stopped);

/* A mapped file that another program cuts short gives a signal where its bytes were. From now on
 * that ends the program with a sentence and the exit code of what cannot be read; a file that was
 * being written has no name yet, so nothing is left of it. */
void stop_on_cut_files(void);

#endif
