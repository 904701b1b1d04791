/* SPDX-License-Identifier: MIT */
/* A SIGPIPE is for the thread whose write() failed. Blocked, it waits until somebody takes it. */
#include "base/sigpipe.h"

#include <errno.h>
#include <time.h>

static void only_sigpipe(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

static bool is_pending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

tnf_sigpipe tnf_sigpipe_hold(void)
{
    tnf_sigpipe s = { .pending = is_pending() };
    sigset_t set;
    only_sigpipe(&set);
    pthread_sigmask(SIG_BLOCK, &set, &s.before);
    return s;
}

/* Takes a pending signal. */
static void take_signal(const sigset_t *set)
{
#ifdef __APPLE__ /* has no sigtimedwait(); sigwait() returns at once, since the signal is there */
    int signal;
    sigwait(set, &signal);
#else
    static const struct timespec at_once;
    while (sigtimedwait(set, NULL, &at_once) < 0 && errno == EINTR)
        ;
#endif
}

void tnf_sigpipe_release(const tnf_sigpipe *s)
{
    sigset_t set;
    only_sigpipe(&set);
    if (!s->pending && is_pending())
        take_signal(&set);
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}
