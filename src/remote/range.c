/* SPDX-License-Identifier: MIT */
#include "remote/range.h"

#include "io/fs.h"
#include "io/source.h"
#include "remote/redirect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPOOL_MOST   (64u << 20) /* larger files are downloaded only if the caller allows it */
#define RENEW_BEFORE 30          /* seconds before the end of a signed URL */

/* ----------------------------------------------------------------- routes */

/* The time when a signed URL expires, in seconds since 1970; 0: unknown. */
static int64_t url_end(const tnf_url *u)
{
    char begin[32], lasts[32];
    if (tnf_url_query_value(u, "X-Amz-Date", begin, sizeof begin) &&
        tnf_url_query_value(u, "X-Amz-Expires", lasts, sizeof lasts)) {
        int64_t from = tnf_parse_stamp(begin);
        return from ? from + strtoll(lasts, NULL, 10) % (1 << 30) : 0;
    }
    if (tnf_url_query_value(u, "Expires", lasts, sizeof lasts))
        return strtoll(lasts, NULL, 10) % ((int64_t)1 << 40);
    return 0;
}

static bool url_bound(const tnf_url *u)
{
    char value[8];
    return tnf_url_query_value(u, "X-Xet-Signed-Range", value, sizeof value) ||
           strstr(u->query, "X-Xet-Signed-Range=") != NULL;
}

/* ----------------------------------------------------------------- intake */

/* Checks the bytes of one answer and stores them. */
struct intake {
    tnf_remote *remote;
    tnf_exchange *x;
    uint64_t offset; /* of the first byte of this attempt */
    uint64_t last;   /* the last requested byte */
    uint8_t *dst;    /* NULL: to the head, or the spool */
    size_t got;
    uint64_t due; /* bytes that are still missing from the answer */
    bool first, judged, spooling;
    tnf_status status;
    tnf_error error;
};

static tnf_status object_changed(const struct intake *in, const char *what, const char *was,
                                 const char *is, tnf_error *e)
{
    (void)in;
    return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                    "the file changed while it was read (%s: %s, then %s)", what, TNF_VISIBLE(was),
                    TNF_VISIBLE(is));
}

static tnf_status check_pin(const struct intake *in, tnf_error *e)
{
    const tnf_pin *pin = &in->remote->pin;
    const tnf_answer *a = &in->x->answer;
    const char *etag = tnf_answer_strong(a);
    if (!pin->set)
        return TNF_OK;
    if (pin->etag[0] && etag[0] && strcmp(pin->etag, etag) != 0)
        return object_changed(in, "ETag", pin->etag, etag, e);
    if (!pin->etag[0] && pin->modified[0] && a->modified[0] &&
        strcmp(pin->modified, a->modified) != 0)
        return object_changed(in, "modified", pin->modified, a->modified, e);
    if (a->total != TNF_NOT_TOLD && a->total != pin->total) {
        char was[24], is[24];
        snprintf(was, sizeof was, "%llu", (unsigned long long)pin->total);
        snprintf(is, sizeof is, "%llu", (unsigned long long)a->total);
        return object_changed(in, "bytes", was, is, e);
    }
    return TNF_OK;
}

static tnf_status check_encoding(const struct intake *in, tnf_error *e)
{
    if (!in->x->answer.encoded)
        return TNF_OK;
    return tnf_fail(
        e, TNF_ENET, TNF_NO_OFFSET,
        "the server compresses the data although the request forbids it%s, so ranges cannot be "
        "read; download the file first",
        in->remote->place.service == TNF_GS ? " (the file is stored with Content-Encoding gzip)"
                                            : "");
}

/* Checks that a range is the requested one. */
static tnf_status judge_part(struct intake *in, tnf_error *e)
{
    const tnf_answer *a = &in->x->answer;
    if (a->multipart || !a->ranges || a->first == TNF_NOT_TOLD)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "the server does not say which range it sends (206 without a usable "
                        "Content-Range)");
    TNF_TRY(check_pin(in, e));
    if (a->first != in->offset || a->last > in->last)
        return tnf_fail(e, TNF_ENET, in->offset,
                        "the server sends bytes %llu to %llu instead of %llu to %llu",
                        (unsigned long long)a->first, (unsigned long long)a->last,
                        (unsigned long long)in->offset, (unsigned long long)in->last);
    if (a->length != TNF_NOT_TOLD && a->length != a->last - a->first + 1)
        return tnf_fail(
            e, TNF_ENET, in->offset, "the server announces %llu bytes for a range of %llu",
            (unsigned long long)a->length, (unsigned long long)(a->last - a->first + 1));
    if (a->total == TNF_NOT_TOLD && in->first)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "the server does not say how long the file is");
    in->due = a->last - a->first + 1;
    if (in->first)
        in->remote->no_ranges = in->spooling = false;
    return TNF_OK;
}

/* Checks a complete object instead of a range, from a server without range requests. */
static tnf_status judge_whole(struct intake *in, tnf_error *e)
{
    const tnf_answer *a = &in->x->answer;
    TNF_TRY(check_pin(in, e));
    if (!in->first)
        return tnf_fail(e, TNF_ENET, in->offset,
                        "the server now sends the complete file instead of a range");
    in->due = a->length;
    in->remote->no_ranges = true;
    bool small = a->length <= SPOOL_MOST || a->length == TNF_NOT_TOLD;
    in->spooling = (small || in->remote->session->how.stream) && a->length != 0 &&
                   !(a->length <= TNF_REMOTE_HEAD);
    return in->spooling && in->remote->spool < 0 ? tnf_spool_open(&in->remote->spool, e) : TNF_OK;
}

static tnf_status judge_answer(struct intake *in, tnf_error *e)
{
    in->judged = true;
    TNF_TRY(check_encoding(in, e));
    return in->x->answer.status == 206 ? judge_part(in, e) : judge_whole(in, e);
}

static tnf_status spool_bytes(struct intake *in, const uint8_t *p, size_t n, tnf_error *e)
{
    uint64_t most = in->remote->session->how.stream ? UINT64_MAX : SPOOL_MOST;
    if (n > most - (uint64_t)in->got)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "the server does not support ranges, and the file is larger than %u bytes; "
                        "download it first, or use -o stream=yes",
                        SPOOL_MOST);
    TNF_TRY(tnf_fs_write_at(in->remote->spool, p, n, in->got, e));
    in->got += n;
    return TNF_OK;
}

static tnf_status take_bytes(struct intake *in, const uint8_t *p, size_t n, tnf_error *e)
{
    if (!in->judged)
        TNF_TRY(judge_answer(in, e));
    if (in->spooling)
        return spool_bytes(in, p, n, e);
    if (in->remote->no_ranges && n > TNF_REMOTE_HEAD - in->got)
        n = TNF_REMOTE_HEAD - in->got; /* only the head is needed, the rest is ignored */
    else if (n > in->due)
        return tnf_fail(e, TNF_ENET, in->offset, "the server sends more bytes than requested");
    memcpy(in->dst + in->got, p, n);
    in->got += n;
    in->due -= in->remote->no_ranges ? 0 : n;
    return TNF_OK;
}

static bool on_bytes(void *ctx, const void *bytes, size_t n)
{
    struct intake *in = ctx;
    tnf_answer *a = &in->x->answer;
    if (a->status != 200 && a->status != 206) { /* a refusal: the message quotes its beginning */
        size_t room = sizeof a->excerpt - a->nexcerpt, part = n < room ? n : room;
        memcpy(a->excerpt + a->nexcerpt, bytes, part);
        a->nexcerpt += part;
        return a->nexcerpt < sizeof a->excerpt;
    }
    in->status = take_bytes(in, bytes, n, &in->error);
    bool enough = in->remote->no_ranges && !in->spooling && in->got == TNF_REMOTE_HEAD;
    return in->status == TNF_OK && !enough;
}

/* ------------------------------------------------------------------ ranges */

static void begin_redirects(tnf_redirects *w, tnf_remote *f, tnf_place *place)
{
    pthread_mutex_lock(&f->lock);
    *place = f->place;
    int64_t now = (int64_t)time(NULL);
    bool good = f->route.known && !f->route.bound &&
                (!f->route.until || now + RENEW_BEFORE < f->route.until);
    w->from_route = good;
    if (good)
        w->start = f->route.url;
    w->origin_public = f->origin_public;
    pthread_mutex_unlock(&f->lock);
    w->place = place;
}

/* Stores what the redirects have shown: the address of the object, and its region. */
static void end_redirects(const tnf_redirects *w, tnf_remote *f)
{
    int status = w->x->answer.status;
    pthread_mutex_lock(&f->lock);
    if (w->moved)
        f->place = *w->place;
    if (w->origin_seen)
        f->origin_public = w->origin_public;
    if (!w->from_route && w->hops > 0 && (status == 200 || status == 206)) {
        f->route.known = true;
        f->route.url = w->x->url;
        f->route.until = url_end(&w->x->url);
        f->route.bound = url_bound(&w->x->url);
    }
    if (!f->pin.set && (status == 200 || status == 206)) {
        memcpy(f->linked_etag, w->linked, sizeof f->linked_etag);
        f->pin.redirected = w->hops > 0;
        if (w->commit[0])
            (void)tnf_place_pin(&f->place, w->commit, NULL);
    }
    pthread_mutex_unlock(&f->lock);
}

static tnf_status check_unchanged(tnf_remote *f, tnf_error *e)
{
    pthread_mutex_lock(&f->lock);
    bool changed = f->changed;
    if (changed && e)
        *e = f->why;
    pthread_mutex_unlock(&f->lock);
    return changed ? TNF_ECHANGED : TNF_OK;
}

/* Marks the object as changed. Further reads fail, since they would mix two versions. */
static tnf_status mark_changed(tnf_remote *f, const tnf_error *why, tnf_error *e)
{
    pthread_mutex_lock(&f->lock);
    if (!f->changed) {
        f->changed = true;
        f->why = *why;
    }
    if (e)
        *e = f->why;
    pthread_mutex_unlock(&f->lock);
    return TNF_ECHANGED;
}

static tnf_status too_short(const tnf_remote *f, const struct intake *in, tnf_error *e)
{
    uint64_t total = in->x->answer.total;
    if (total == TNF_NOT_TOLD)
        return tnf_fail(e, TNF_ETRUNCATED, in->offset,
                        "the server has no bytes at %llu, although the file should have %llu",
                        (unsigned long long)in->offset, (unsigned long long)f->pin.total);
    return tnf_fail(e, TNF_ETRUNCATED, total,
                    "the file has %llu bytes now, but had %llu when it was opened",
                    (unsigned long long)total, (unsigned long long)f->pin.total);
}

/* Makes one attempt. *again: another attempt may succeed. */
static tnf_status attempt_range(tnf_remote *f, struct intake *in, bool *again, tnf_error *e)
{
    tnf_place place;
    tnf_exchange *x = in->x;
    char range[80], condition[300];
    tnf_redirects w = { .session = f->session, .x = x, .range = range };
    *again = false;
    TNF_TRY(check_unchanged(f, e));
    snprintf(range, sizeof range, "Range: bytes=%llu-%llu", (unsigned long long)in->offset,
             (unsigned long long)in->last);
    if (f->pin.set && f->pin.etag[0]) {
        snprintf(condition, sizeof condition, "If-Match: %s", f->pin.etag);
        w.condition = condition;
        w.condition_redirected = f->pin.redirected;
    }
    begin_redirects(&w, f, &place);
    TNF_TRY(tnf_redirects_follow(&w, e));
    end_redirects(&w, f);
    int status = x->answer.status;
    if (in->status == TNF_OK && x->code == TNF_CURLE_OK && !in->judged &&
        (status == 206 || status == 200)) /* without a body */
        in->status = judge_answer(in, &in->error);
    if (in->status == TNF_ECHANGED)
        return mark_changed(f, &in->error, e);
    if (in->status != TNF_OK) {
        if (e)
            *e = in->error;
        return in->status;
    }
    if (x->code != TNF_CURLE_OK) {
        *again = tnf_exchange_transient(x);
        return tnf_exchange_fail(x, e);
    }
    if (status == 206 || status == 200) {
        tnf_session_succeeded(f->session);
        return TNF_OK;
    }
    if (status == 412) {
        (void)tnf_fail(&in->error, TNF_ECHANGED, TNF_NO_OFFSET,
                       "the file changed while it was read (its ETag is no longer %s)",
                       TNF_VISIBLE(f->pin.etag));
        return mark_changed(f, &in->error, e);
    }
    if (status == 416 && f->pin.set)
        return too_short(f, in, e);
    *again = tnf_status_transient(status);
    if (status == 429 || status == 503)
        tnf_session_slow_down(f->session);
    return tnf_place_refused(&place, f->session, x, e);
}

/* Tries until an attempt succeeds or none is left. Received bytes are kept: the next attempt
 * requests only the missing ones. */
static tnf_status get_with_retries(tnf_remote *f, tnf_budget *budget, struct intake *in, uint64_t n,
                                   tnf_error *e)
{
    for (unsigned attempt = 0;;) {
        tnf_error why = { .offset = TNF_NO_OFFSET };
        bool again;
        size_t before = in->got;
        in->judged = false;
        in->status = TNF_OK;
        tnf_status status = attempt_range(f, in, &again, &why);
        size_t more = in->got - before;
        if (in->status == TNF_OK && (in->got == n || (in->first && status == TNF_OK)))
            return TNF_OK;
        if (in->first)
            in->got = more = 0; /* the first request always starts from the beginning */
        in->offset += more;
        if (status == TNF_OK && more > 0) {
            attempt = 0; /* a server may send less than requested */
            continue;
        }
        if (status == TNF_OK) {
            status = tnf_fail(&why, TNF_ENET, in->offset, "the server sends no bytes");
            again = true;
        }
        attempt = more > 0 ? 1 : attempt + 1;
        if (!again || attempt >= f->session->how.attempts ||
            atomic_fetch_sub(&budget->left, 1) <= 0) {
            if (e)
                *e = why;
            return status;
        }
        TNF_TRY(tnf_session_pause(f->session, attempt - 1, &in->x->answer, e));
    }
}

tnf_status tnf_remote_get(tnf_remote *f, tnf_budget *budget, uint64_t offset, void *dst, size_t n,
                          tnf_error *e)
{
    tnf_exchange x = { .method = "GET", .take = on_bytes };
    struct intake in = {
        .remote = f, .x = &x, .offset = offset, .last = offset + n - 1, .dst = dst
    };
    x.ctx = &in;
    return n ? get_with_retries(f, budget, &in, n, e) : TNF_OK;
}

/* --------------------------------------------------------------- beginning */

/* Later requests name the version, if the service has names for versions. */
static tnf_status pin_version(tnf_remote *f, const tnf_answer *a, tnf_error *e)
{
    char value[8];
    tnf_url *u = &f->place.url;
    if (f->place.service == TNF_S3 && a->version[0] && strcmp(a->version, "null") != 0 &&
        !tnf_url_query_value(u, "versionId", value, sizeof value) && !strstr(u->query, "versionId"))
        return tnf_url_add_query(u, "versionId", a->version, e);
    if (f->place.service == TNF_GS && a->generation[0] && !strstr(u->query, "generation="))
        return tnf_url_add_query(u, "generation", a->generation, e);
    return TNF_OK;
}

static tnf_status pin_object(tnf_remote *f, const tnf_answer *a, uint64_t total, tnf_error *e)
{
    f->pin.total = total;
    memcpy(f->pin.etag, tnf_answer_strong(a), strlen(tnf_answer_strong(a)) + 1);
    memcpy(f->pin.modified, a->modified, sizeof f->pin.modified);
    f->pin.set = true;
    f->told = a->told;
    f->sealed = a->sealed;
    if (!f->pin.etag[0] && !f->no_ranges)
        tnf_session_warn(
            f->session, "the server gives no strong ETag, so a change of the file is detected only "
                        "by its date and size");
    return pin_version(f, a, e);
}

/* Determines the size of the object from the first answer. */
static tnf_status measure_object(tnf_remote *f, const struct intake *in, tnf_error *e)
{
    const tnf_answer *a = &in->x->answer;
    f->nhead = f->spool < 0 ? in->got : 0;
    if (a->status == 206 && in->due != 0)
        return tnf_fail(e, TNF_ENET, in->got, "the server sends fewer bytes than it announced");
    if (a->status == 206)
        return pin_object(f, a, a->total, e);
    if (in->spooling)
        return pin_object(f, a, in->got, e);
    return pin_object(f, a, a->length != TNF_NOT_TOLD ? a->length : in->got, e);
}

static tnf_status begin_object(tnf_remote *f, tnf_error *e)
{
    tnf_budget budget;
    tnf_exchange x = { .method = "GET", .take = on_bytes };
    struct intake in = {
        .remote = f, .x = &x, .last = TNF_REMOTE_HEAD - 1, .dst = f->head, .first = true
    };
    tnf_error why = { .offset = TNF_NO_OFFSET };
    x.ctx = &in;
    atomic_init(&budget.left, TNF_RETRIES);
    tnf_status status = get_with_retries(f, &budget, &in, TNF_REMOTE_HEAD, &why);
    if (status != TNF_OK && x.answer.status == 416 && x.answer.total == 0)
        return pin_object(f, &x.answer, 0, e); /* an empty object has no ranges */
    if (status == TNF_OK)
        return measure_object(f, &in, e);
    if (e)
        *e = why;
    return status;
}

/* -------------------------------------------------------------- checksums */

/* s3 returns its checksums only to a HEAD request for them. If HEAD is refused, there are none. */
static tnf_status ask_sums(tnf_remote *f, tnf_sum *out, tnf_error *e)
{
    tnf_exchange x = { .method = "HEAD" };
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_exchange_header(&x, "x-amz-checksum-mode: ENABLED");
    pthread_mutex_lock(&f->lock);
    tnf_place place = f->place;
    pthread_mutex_unlock(&f->lock);
    tnf_status status = tnf_place_request(f->session, &place, &x, &why);
    if (status == TNF_ECANCELLED || status == TNF_ENOMEM) {
        if (e)
            *e = why;
        return status;
    }
    if (status != TNF_OK)
        return TNF_OK;
    const char *etag = tnf_answer_strong(&x.answer);
    if (f->pin.etag[0] && etag[0] && strcmp(f->pin.etag, etag) != 0)
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                        "the file changed while it was read (ETag: %s, then %s)",
                        TNF_VISIBLE(f->pin.etag), TNF_VISIBLE(etag));
    if (x.answer.told.kind > out->kind)
        *out = x.answer.told;
    f->sealed = f->sealed || x.answer.sealed;
    return TNF_OK;
}

tnf_status tnf_remote_digest(tnf_remote *f, tnf_sum *out, tnf_error *e)
{
    static const char express[] = "--x-s3"; /* in these buckets ETags are not digests */
    const char *bucket = f->place.bucket;
    size_t n = strlen(bucket), end = sizeof express - 1;
    *out = f->told;
    if (f->linked_etag[0])
        (void)tnf_sum_quoted(out, TNF_SUM_SHA256, f->linked_etag);
    if (f->place.service != TNF_S3)
        return TNF_OK;
    TNF_TRY(ask_sums(f, out, e));
    if (!out->kind && !f->sealed && (n < end || strcmp(bucket + n - end, express) != 0))
        (void)tnf_sum_quoted(out, TNF_SUM_MD5, f->pin.etag);
    return TNF_OK;
}

/* ------------------------------------------------------------------- begin */

tnf_status tnf_remote_begin(tnf_remote *f, tnf_session *s, const tnf_place *place, tnf_error *e)
{
    memset(f, 0, sizeof *f);
    f->session = s;
    f->place = *place;
    f->spool = -1;
    pthread_mutex_init(&f->lock, NULL);
    tnf_session_share(s);
    f->head = tnf_alloc(&s->alloc, TNF_REMOTE_HEAD);
    tnf_status status = f->head ? begin_object(f, e) : tnf_no_memory("a connection", e);
    if (status != TNF_OK)
        tnf_remote_end(f);
    return status;
}

void tnf_remote_end(tnf_remote *f)
{
    if (f->spool >= 0)
        close(f->spool);
    tnf_free(&f->session->alloc, f->head, TNF_REMOTE_HEAD);
    pthread_mutex_destroy(&f->lock);
    tnf_session_drop(f->session);
}
