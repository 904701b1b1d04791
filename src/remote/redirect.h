/* SPDX-License-Identifier: MIT */
/* From a place to an answer. Redirects are followed here, not by libcurl: credentials are sent only
 * to the place's own host, and a public host must not redirect to a private address. */
#ifndef TNF_REMOTE_REDIRECT_H
#define TNF_REMOTE_REDIRECT_H

#include "remote/place.h"
#include "remote/session.h"

/* A way from a place to an answer. */
typedef struct tnf_way {
    tnf_session *session;
    tnf_place *place;
    tnf_exchange *x;
    const char *range, *condition; /* header lines, or NULL */
    bool condition_far;            /* the condition is for the target of redirects */
    bool origin_public;
    bool origin_seen;
    bool moved;   /* another region was tried */
    bool clocked; /* another time was tried */
    unsigned hops;
    tnf_url start; /* the target of an earlier redirect; used if from_route */
    bool from_route;
    char commit[64], linked[256]; /* hub: headers of the first answer */
} tnf_way;

/* Follows redirects to the end: x has an answer that is not a redirect, or no answer. */
tnf_status tnf_walk_way(tnf_way *w, tnf_error *e);
/* May a retry give another status? */
bool tnf_status_transient(int status);
/* Sends a request of any kind to a place, with redirects and retries; x takes the body. A refusal
 * is an error. */
tnf_status tnf_far_ask(tnf_session *s, tnf_place *place, tnf_exchange *x, tnf_error *e);

#endif
