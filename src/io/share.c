/* SPDX-License-Identifier: MIT */
#include "io/share.h"

#include "io/lock.h"

#define MOST_ENTRIES 64u

void tnf_share_init(tnf_share *s)
{
    *s = (tnf_share) { .inside = 0 };
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
}

void tnf_share_free(tnf_share *s)
{
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
}

static tnf_status take_lock(int fd, bool claimed, uint32_t milliseconds, tnf_error *e)
{
    if (claimed && tnf_lock_beside(fd))
        return TNF_OK;
    tnf_status status = tnf_lock_take(fd, false, milliseconds, e);
    return status == TNF_EUNSUPPORTED ? TNF_OK : status;
}

/* Takes the lock for all threads that wait for it. Called with the mutex, which is free while the
 * thread waits. */
static tnf_status take_for_all(tnf_share *s, int fd, bool claimed, uint32_t milliseconds)
{
    tnf_error error = { .status = TNF_OK };
    s->taking = true;
    pthread_mutex_unlock(&s->mutex);
    tnf_status status = take_lock(fd, claimed, milliseconds, &error);
    pthread_mutex_lock(&s->mutex);
    s->taking = false;
    s->entered = 0;
    if (status != TNF_OK) {
        s->failure = error;
        s->failures++;
    }
    pthread_cond_broadcast(&s->changed);
    return status;
}

tnf_status tnf_share_enter(tnf_share *s, int fd, bool claimed, uint32_t milliseconds, tnf_error *e)
{
    tnf_status status = TNF_OK;
    pthread_mutex_lock(&s->mutex);
    unsigned failures = s->failures;
    while (s->failures == failures && (s->taking || (s->inside && s->entered >= MOST_ENTRIES)))
        pthread_cond_wait(&s->changed, &s->mutex);
    if (s->inside == 0 && s->failures == failures)
        status = take_for_all(s, fd, claimed, milliseconds);
    if (s->failures != failures) {
        status = s->failure.status;
        if (e)
            *e = s->failure;
    } else {
        s->inside++;
        s->entered++;
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

void tnf_share_leave(tnf_share *s, int fd)
{
    pthread_mutex_lock(&s->mutex);
    if (--s->inside == 0) {
        tnf_lock_drop(fd);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
}
