/* SPDX-License-Identifier: MIT */
#include "io/claim.h"

#include "io/lock.h"
#include "io/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define TRIES   100    /* how often the file may be replaced while this function waits */
#define PATIENT 60000u /* milliseconds */

void tnf_claim_drop(tnf_claim *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

bool tnf_claim_holds(const tnf_claim *c, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    const tnf_stamp now = tnf_stamp_of(&st);
    return tnf_same_file(&now, &c->stamp);
}

bool tnf_claim_unchanged(const tnf_claim *c, const char *path)
{
    struct stat st;
    if (!tnf_claim_holds(c, path) || fstat(c->fd, &st) != 0)
        return false;
    const tnf_stamp now = tnf_stamp_of(&st);
    return tnf_same_stamp(&now, &c->stamp);
}

/* If no descriptor is open afterwards, there is nothing to claim. */
static tnf_status open_target(tnf_claim *c, const char *path, tnf_error *e)
{
    struct stat st;
    c->fd = tnf_fs_open(path, O_RDWR | O_NONBLOCK | O_NOCTTY, 0);
    c->writable = c->fd >= 0;
    if (c->fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS || errno == ETXTBSY))
        c->fd = tnf_fs_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (c->fd < 0) /* ENXIO: a FIFO or socket */
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM ||
                       errno == EISDIR || errno == ENXIO
                   ? TNF_OK
                   : tnf_fail_sys(e, errno, "cannot open the file to lock it");
    if (fstat(c->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    c->stamp = tnf_stamp_of(&st);
    if (!S_ISREG(st.st_mode))
        tnf_claim_drop(c);
    return TNF_OK;
}

static tnf_status lock_both(const tnf_claim *c, const tnf_waiting *waiting, tnf_error *e)
{
    bool (*go_on)(void *) = waiting ? waiting->go_on : NULL;
    void *ctx = waiting ? waiting->ctx : NULL;
    tnf_status status = tnf_lock_whole(c->fd, PATIENT, go_on, ctx, e);
    if (status == TNF_OK)
        status = tnf_lock_ask(c->fd, false, PATIENT, go_on, ctx, e);
    return status == TNF_EUNSUPPORTED ? TNF_OK : status; /* without locks nothing can be done */
}

/* *again: another file got the name while this function waited. */
static tnf_status try_claim(tnf_claim *c, const char *path, const tnf_waiting *waiting, bool *again,
                            tnf_error *e)
{
    struct stat st;
    *again = false;
    tnf_status status = open_target(c, path, e);
    if (status != TNF_OK || c->fd < 0)
        return status;
    TNF_TRY(lock_both(c, waiting, e));
    *again = !tnf_claim_holds(c, path);
    if (fstat(c->fd, &st) != 0)
        return tnf_fail_sys(e, errno, "cannot get the status of the file");
    c->stamp = tnf_stamp_of(&st); /* from now on no other program changes it */
    return TNF_OK;
}

tnf_status tnf_claim_take(tnf_claim *c, const char *path, const tnf_waiting *waiting, tnf_error *e)
{
    for (int i = 0; i < TRIES; i++) {
        bool again;
        *c = (tnf_claim) { .fd = -1 };
        tnf_status status = try_claim(c, path, waiting, &again, e);
        if (status != TNF_OK || again)
            tnf_claim_drop(c);
        if (!again) {
            tnf_temp_sweep(path); /* of a writer that was killed */
            return status;
        }
    }
    return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the file is being replaced repeatedly");
}
