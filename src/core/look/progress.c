/* SPDX-License-Identifier: MIT */
#include "core/look/progress.h"

#include "base/error.h"

tnf_status tnf_progress_add(tnf_progress *p, pthread_mutex_t *lock, uint64_t n, tnf_error *e)
{
    if (!p->tell)
        return TNF_OK;
    pthread_mutex_lock(lock);
    p->done += n;
    bool go_on = p->tell(p->ctx, p->done, p->total);
    pthread_mutex_unlock(lock);
    return go_on ? TNF_OK : tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
}
