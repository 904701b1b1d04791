/* SPDX-License-Identifier: MIT */
/* Keeps a SIGPIPE that a library raises from ending the program. libcurl before 7.88 writes to TLS
 * connections by write(), and the server may have closed them. Only this thread's signals are held,
 * so the handlers of the program stay as they are. */
#ifndef TNF_BASE_SIGPIPE_H
#define TNF_BASE_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

typedef struct tnf_sigpipe {
    sigset_t before; /* what the thread blocked */
    bool pending;    /* the program has one that waits already */
} tnf_sigpipe;

tnf_sigpipe tnf_sigpipe_hold(void);
/* Drops a SIGPIPE that was raised since tnf_sigpipe_hold(), which this thread must have called. */
void tnf_sigpipe_release(const tnf_sigpipe *s);

#endif
