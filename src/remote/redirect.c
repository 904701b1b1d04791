/* SPDX-License-Identifier: MIT */
#include "remote/redirect.h"

#include <string.h>
#include <time.h>

#define MOST_REDIRECTS 5u

bool tnf_status_transient(int status)
{
    return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 ||
           status == 503 || status == 504;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static tnf_status step_exchange(tnf_redirects *w, const tnf_url *to, tnf_error *e)
{
    tnf_exchange *x = w->x;
    tnf_auth_lines auth;
    unsigned before = x->nheaders;
    bool redirected = w->from_route || w->hops > 0;
    auth.n = 0;
    x->url = *to;
    x->netrc = false;
    x->guarded = redirected && w->origin_public && !w->session->how.private_hosts;
    if (w->range)
        tnf_exchange_header(x, w->range);
    if (w->condition && w->condition_redirected == redirected)
        tnf_exchange_header(x, w->condition);
    if (tnf_place_trusts(w->place, to))
        TNF_TRY(tnf_place_authorize(w->place, w->session, x, &auth, e));
    tnf_status status = tnf_exchange_run(w->session, x, e);
    x->nheaders = before;
    if (!redirected && x->peer[0]) {
        w->origin_seen = true;
        /* Behind a proxy, only the host in the URL is known. */
        w->origin_public = !tnf_host_private(x->by_proxy ? to->host : x->peer);
    }
    if (!redirected && w->place->service == TNF_HUB) {
        memcpy(w->commit, x->answer.commit, sizeof w->commit);
        memcpy(w->linked, x->answer.linked_etag, sizeof w->linked);
    }
    return status;
}

static tnf_status next_hop(const tnf_redirects *w, tnf_url *url, tnf_error *e)
{
    tnf_url next;
    const tnf_answer *a = &w->x->answer;
    if (w->hops >= MOST_REDIRECTS)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "more than %u redirects", MOST_REDIRECTS);
    if (!a->location[0])
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "%s answers %d, a redirect without a target",
                        TNF_URL_SHOWN(url), a->status);
    if (tnf_url_follow(&next, url, a->location, NULL) != TNF_OK)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "%s redirects to an invalid web address",
                        TNF_URL_SHOWN(url));
    if (url->secure && !next.secure)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "the server redirects from https to http (%s), which is refused",
                        TNF_URL_SHOWN(&next));
    if (w->origin_public && !w->session->how.private_hosts && tnf_host_private(next.host))
        return tnf_fail(
            e, TNF_ENET, TNF_NO_OFFSET,
            "the server redirects from a public host to a private address (%s), which is "
            "refused; -o private=yes allows it",
            TNF_VISIBLE(next.host));
    *url = next;
    return TNF_OK;
}

/* Repeats a request to a bucket in another region, or with the server's time if clocks differ. */
static tnf_status fix_request(tnf_redirects *w, bool *again, tnf_error *e)
{
    const tnf_answer *a = &w->x->answer;
    bool s3 = w->place->service == TNF_S3 && w->hops == 0 && !w->from_route;
    *again = false;
    if (s3 && !w->moved && a->region[0] && strcmp(a->region, w->place->region) != 0 &&
        (a->status == 301 || a->status == 307 || a->status == 400 || a->status == 403)) {
        w->moved = *again = true;
        return tnf_place_move(w->place, a->region, e);
    }
    if (s3 && !w->clocked && a->status == 403 && a->date &&
        strstr(tnf_excerpt((char[512]) { 0 }, 512, a->excerpt, a->nexcerpt),
               "RequestTimeTooSkewed")) {
        w->clocked = *again = true;
        pthread_mutex_lock(&w->session->lock);
        w->session->skew = a->date - (int64_t)time(NULL);
        pthread_mutex_unlock(&w->session->lock);
    }
    return TNF_OK;
}

tnf_status tnf_redirects_follow(tnf_redirects *w, tnf_error *e)
{
    tnf_url url = w->from_route ? w->start : w->place->url;
    for (;;) {
        bool again;
        TNF_TRY(step_exchange(w, &url, e));
        if (w->x->code != TNF_CURLE_OK)
            return TNF_OK;
        int status = w->x->answer.status;
        if (w->from_route && (status == 401 || status == 403 || status == 410)) {
            w->from_route = false; /* the signed URL has expired: request a new one */
            w->hops = 0;
            url = w->place->url;
            continue;
        }
        TNF_TRY(fix_request(w, &again, e));
        if (again) {
            url = w->place->url;
            continue;
        }
        if (!is_redirect(status))
            return TNF_OK;
        TNF_TRY(next_hop(w, &url, e));
        w->hops++;
    }
}

/* ------------------------------------------------------------------ others */

tnf_status tnf_place_request(tnf_session *s, tnf_place *place, tnf_exchange *x, tnf_error *e)
{
    for (unsigned attempt = 1;; attempt++) {
        tnf_redirects w = { .session = s, .place = place, .x = x };
        TNF_TRY(tnf_redirects_follow(&w, e));
        int status = x->answer.status;
        bool answered = x->code == TNF_CURLE_OK;
        if (answered && status >= 200 && status < 300)
            return TNF_OK;
        bool again = answered ? tnf_status_transient(status) : tnf_exchange_transient(x);
        if (!again || attempt >= s->how.attempts)
            return answered ? tnf_place_refused(place, s, x, e) : tnf_exchange_fail(x, e);
        TNF_TRY(tnf_session_pause(s, attempt - 1, &x->answer, e));
    }
}
