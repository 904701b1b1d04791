/* SPDX-License-Identifier: MIT */
/* Requests to a place, with redirects. They are followed here, not by libcurl: credentials are sent
 * only to the place's own host, and a public host must not redirect to a private address. */
#ifndef TNF_REMOTE_REDIRECT_H
#define TNF_REMOTE_REDIRECT_H

#include "remote/place.h"
#include "remote/session.h"

/* A request to a place, and what its redirects have shown. */
typedef struct tnf_redirects {
    tnf_session *session;
    tnf_place *place;
    tnf_exchange *x;
    const char *range, *condition; /* header lines, or NULL */
    bool condition_redirected;     /* the condition is for the target of redirects */
    bool origin_public;
    bool origin_seen;
    bool moved;   /* another region was tried */
    bool clocked; /* another time was tried */
    unsigned hops;
    tnf_url start; /* the target of an earlier redirect; used if from_route */
    bool from_route;
    char commit[64], linked[256]; /* hub: headers of the first answer */
} tnf_redirects;

/* Follows redirects to the end: x has an answer that is not a redirect, or no answer. */
tnf_status tnf_redirects_follow(tnf_redirects *w, tnf_error *e);
/* May a retry give another status? */
bool tnf_status_transient(int status);
/* Sends a request of any kind to a place, with redirects and retries; x takes the body. A refusal
 * is an error. */
tnf_status tnf_place_request(tnf_session *s, tnf_place *place, tnf_exchange *x, tnf_error *e);

#endif
