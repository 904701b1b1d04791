/* SPDX-License-Identifier: MIT */
#include "io/lock.h"

#include "base/clock.h"
#include "io/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOCK_BYTES 4
#define GATE       ((off_t)1 << 62)
#define CHANGE     (GATE + 1)
#define NAP_FIRST  200000L /* nanoseconds */
#define NAP_MOST   10000000L

/* One fcntl() of either kind. */
static int set_lock(int fd, short type, off_t start, off_t n, bool wait)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = n };
    int done;
#ifdef F_OFD_SETLK
    do
        done = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l);
    while (done != 0 && errno == EINTR);
    if (done == 0 || errno != EINVAL) /* EINVAL: the kernel is older than OFD locks */
        return done;
    l.l_pid = 0;
#endif
    do
        done = fcntl(fd, wait ? F_SETLKW : F_SETLK, &l);
    while (done != 0 && errno == EINTR);
    return done;
}

static bool is_busy(int err)
{
    return err == EAGAIN || err == EACCES;
}

struct patience {
    uint32_t milliseconds;
    uint64_t until;
    bool (*go_on)(void *ctx);
    void *ctx;
};

/* A wanted lock: on some bytes or, for type LOCK_WHOLE, by flock(). */
struct wanted {
    short type;
    off_t start, n;
};

#define LOCK_WHOLE ((short)-1)

static int try_lock(int fd, const struct wanted *w)
{
    int done;
    if (w->type != LOCK_WHOLE)
        return set_lock(fd, w->type, w->start, w->n, false);
    do
        done = flock(fd, LOCK_EX | LOCK_NB);
    while (done != 0 && errno == EINTR);
    return done;
}

/* Tries again until it succeeds, the time is over or the caller cancels. */
static int poll_lock(int fd, const struct wanted *w, const struct patience *p)
{
    struct timespec nap = { 0, NAP_FIRST };
    while (try_lock(fd, w) != 0) {
        int err = errno;
        if (!is_busy(err) || (p->milliseconds != TNF_LOCK_FOREVER && tnf_now() >= p->until)) {
            errno = err;
            return -1;
        }
        if (p->go_on && !p->go_on(p->ctx)) {
            errno = ECANCELED;
            return -1;
        }
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec * 2 < NAP_MOST ? nap.tv_nsec * 2 : NAP_MOST;
    }
    return 0;
}

static int take_lock(int fd, short type, off_t start, off_t n, const struct patience *p)
{
    bool sleep = p->milliseconds == TNF_LOCK_FOREVER && !p->go_on;
    return sleep ? set_lock(fd, type, start, n, true)
                 : poll_lock(fd, &(struct wanted) { type, start, n }, p);
}

tnf_status tnf_lock_take(int fd, bool exclusive, uint32_t milliseconds, tnf_error *e)
{
    return tnf_lock_ask(fd, exclusive, milliseconds, NULL, NULL, e);
}

static struct patience patience_of(uint32_t milliseconds, bool (*go_on)(void *ctx), void *ctx)
{
    return (struct patience) { milliseconds, tnf_now() + (uint64_t)milliseconds * 1000000u, go_on,
                               ctx };
}

/* Fails with the reason in errno. `use` is a verb: what the other program does with the file. */
static tnf_status lock_failed(const char *use, tnf_error *e)
{
    int err = errno;
    if (err == ECANCELED)
        return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "stopped while waiting for a lock");
    if (err == ENOLCK || err == EOPNOTSUPP || err == EINVAL || err == ENOSYS || err == EBADF)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "this file system has no locks: open the file without them");
    if (is_busy(err))
        return tnf_fail_sys(e, EAGAIN, "the file is locked by another program, which %s it", use);
    return tnf_fail_sys(e, err, "cannot lock the file");
}

tnf_status tnf_lock_whole(int fd, uint32_t milliseconds, bool (*go_on)(void *ctx), void *ctx,
                          tnf_error *e)
{
    const struct patience p = patience_of(milliseconds, go_on, ctx);
    const struct wanted w = { .type = LOCK_WHOLE };
    return poll_lock(fd, &w, &p) == 0 ? TNF_OK : lock_failed("changes or replaces", e);
}

tnf_status tnf_lock_change(int fd, bool exclusive, uint32_t milliseconds, tnf_error *e)
{
    const struct patience p = patience_of(milliseconds, NULL, NULL);
    const struct wanted w = { exclusive ? F_WRLCK : F_RDLCK, CHANGE, 1 };
    if (poll_lock(fd, &w, &p) == 0)
        return TNF_OK;
    tnf_status status = lock_failed(exclusive ? "reads" : "changes", e);
    return status == TNF_EUNSUPPORTED ? TNF_OK : status;
}

void tnf_unlock_change(int fd)
{
    (void)set_lock(fd, F_UNLCK, CHANGE, 1, false);
}

tnf_status tnf_lock_ask(int fd, bool exclusive, uint32_t milliseconds, bool (*go_on)(void *ctx),
                        void *ctx, tnf_error *e)
{
    short type = exclusive ? F_WRLCK : F_RDLCK;
    const struct patience p = patience_of(milliseconds, go_on, ctx);
    int done = take_lock(fd, type, GATE, 1, &p);
    if (done == 0) {
        done = take_lock(fd, type, 0, LOCK_BYTES, &p);
        int err = errno;
        (void)set_lock(fd, F_UNLCK, GATE, 1, false);
        errno = err;
    }
    return done == 0 ? TNF_OK : lock_failed(exclusive ? "reads or writes" : "writes", e);
}

bool tnf_lock_beside(int fd)
{
    return set_lock(fd, F_RDLCK, 0, LOCK_BYTES, false) == 0;
}

void tnf_lock_drop(int fd)
{
    (void)set_lock(fd, F_UNLCK, 0, LOCK_BYTES, false);
}
