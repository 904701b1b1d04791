/* SPDX-License-Identifier: MIT */
/* An object of another machine, one version of it, in ranges of bytes.
 *
 *   place ── asked ──> answer ── redirect ──> route (kept until it ends or is refused)
 *                        └─ 206 ──> pin: ETag, date, size; every later answer must have the same
 */
#ifndef TNF_REMOTE_RANGE_H
#define TNF_REMOTE_RANGE_H

#include "remote/place.h"
#include "remote/session.h"

#define TNF_FAR_HEAD 65536u /* bytes that the first request asks for */

/* What identifies a version. */
typedef struct tnf_pin {
    bool set;
    bool redirected; /* it is of where a redirect led to */
    char etag[256];  /* strong, or "" */
    char modified[64];
    uint64_t total;
} tnf_pin;

typedef struct tnf_far {
    tnf_session *session;
    pthread_mutex_t lock; /* guards place, route and dead */
    tnf_place place;
    struct {
        bool known, bound; /* bound: good for one range only */
        int64_t until;     /* 0: not told */
        tnf_url url;
    } route;
    bool origin_public; /* the place's own host has a public address */
    bool dead;
    tnf_error why; /* it is dead */

    tnf_pin pin;    /* fixed after tnf_far_begin(), like all below */
    bool no_ranges; /* only the head is there, or the spool */
    int spool;      /* all of it, in a file without a name; -1: none */
    bool local;     /* that file is one of the hub's cache on this machine */
    uint8_t *head;  /* the first bytes */
    size_t nhead;
    char linked_etag[256]; /* hub: digest of the real file */
    tnf_sum told;          /* by the first answer, of the whole object */
    bool sealed;           /* its ETag is no MD5 */
} tnf_far;

/* Retries that one operation may use, however many ranges it has. */
typedef struct tnf_budget {
    atomic_int left;
} tnf_budget;
#define TNF_RETRIES 30

/* Asks for the beginning of the object and pins its version. The session is
 * shared. */
tnf_status tnf_far_begin(tnf_far *f, tnf_session *s, const tnf_place *place, tnf_error *e);
void tnf_far_end(tnf_far *f);

/* n bytes at offset, by one request and what it takes to repeat it. */
tnf_status tnf_far_get(tnf_far *f, tnf_budget *budget, uint64_t offset, void *dst, size_t n,
                       tnf_error *e);

/* The strongest digest of the whole object that the server tells; none: its kind is TNF_SUM_NONE.
 * s3 is asked for it. */
tnf_status tnf_far_told(tnf_far *f, tnf_sum *out, tnf_error *e);

#endif
