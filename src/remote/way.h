/* SPDX-License-Identifier: MIT */
/* From a place to an answer, over redirects that we follow ourselves: what proves who asks goes to
 * the place's own host alone, and no public host leads to a private address. */
#ifndef TNF_REMOTE_WAY_H
#define TNF_REMOTE_WAY_H

#include "remote/place.h"
#include "remote/session.h"

/* A way from place to answer. */
typedef struct tnf_way {
    tnf_session *session;
    tnf_place *place;
    tnf_exchange *x;
    const char *range, *condition; /* header lines, or NULL */
    bool condition_far;            /* the condition is for where redirects lead to */
    bool origin_public;
    bool origin_seen;
    bool moved;   /* another region was tried */
    bool clocked; /* another time was tried */
    unsigned hops;
    tnf_url start; /* known from before; used if from_route */
    bool from_route;
    char commit[64], linked[256]; /* hub: what the first answer told */
} tnf_way;

/* Follows the way to its end: an answer that is no redirect, in x, or no answer. */
tnf_status tnf_walk_way(tnf_way *w, tnf_error *e);
/* A status that may be another one next time. */
bool tnf_status_transient(int status);
/* One request of any kind to a place, with redirects and repetition; x says what becomes of the
 * body. Refusals are failures. */
tnf_status tnf_far_ask(tnf_session *s, tnf_place *place, tnf_exchange *x, tnf_error *e);

#endif
