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

void tnf_sigpipe_release(const tnf_sigpipe *s)
{
    static const struct timespec at_once;
    sigset_t set;
    only_sigpipe(&set);
    if (!s->pending && is_pending())
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}
