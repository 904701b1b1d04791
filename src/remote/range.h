/* SPDX-License-Identifier: MIT */
/* One version of a remote object, which is read in ranges of bytes.
 *
 *   place ── request ──> answer ── redirect ──> route (kept until it ends or is refused)
 *                          └─ 206 ──> pin: ETag, date, size; every later answer must have the same
 */
#ifndef TNF_REMOTE_RANGE_H
#define TNF_REMOTE_RANGE_H

#include "remote/place.h"
#include "remote/session.h"

#define TNF_REMOTE_HEAD 65536u /* bytes of the first request */

/* Identifies a version. */
typedef struct tnf_pin {
    bool set;
    bool redirected; /* the ETag is from the target of a redirect */
    char etag[256];  /* strong, or "" */
    char modified[64];
    uint64_t total;
} tnf_pin;

typedef struct tnf_remote {
    tnf_session *session;
    pthread_mutex_t lock; /* guards `place`, `route` and `changed` */
    tnf_place place;
    struct {
        bool known, bound; /* bound: valid for one range only */
        int64_t until;     /* 0: unknown */
        tnf_url url;
    } route;
    bool origin_public; /* the place's own host has a public address */
    bool changed;
    tnf_error why; /* the reason for `changed` */

    tnf_pin pin;    /* fixed after tnf_remote_begin(), like everything below */
    bool no_ranges; /* only the head or the spool can be read */
    int spool;      /* the complete object, in a file without a name; -1: none */
    bool local;     /* that file is in the hub's cache on this machine */
    uint8_t *head;  /* the first bytes */
    size_t nhead;
    char linked_etag[256]; /* hub: digest of the real file */
    tnf_sum told;          /* the digest of the complete object in the first answer */
    bool sealed;           /* its ETag is not an MD5 */
} tnf_remote;

/* The retries of one operation, for all of its ranges together. */
typedef struct tnf_budget {
    atomic_int left;
} tnf_budget;
#define TNF_RETRIES 30

/* Requests the beginning of the object and pins its version. The session is shared. */
tnf_status tnf_remote_begin(tnf_remote *f, tnf_session *s, const tnf_place *place, tnf_error *e);
void tnf_remote_end(tnf_remote *f);

/* Reads n bytes at offset with one request, which is repeated if necessary. */
tnf_status tnf_remote_get(tnf_remote *f, tnf_budget *budget, uint64_t offset, void *dst, size_t n,
                          tnf_error *e);

/* The strongest digest of the complete object that the server gives; its kind is TNF_SUM_NONE if
 * there is none. For s3 this makes a request. */
tnf_status tnf_remote_digest(tnf_remote *f, tnf_sum *out, tnf_error *e);

#endif
