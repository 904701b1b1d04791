/* SPDX-License-Identifier: MIT */
#include "remote/session.h"

#include "base/sigpipe.h"
#include "base/sized.h"
#include "remote/credentials.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DEFAULT_CONNECTIONS 16u
#define DEFAULT_CACHE       (64u << 20)
#define DEFAULT_ATTEMPTS    6u
#define DEFAULT_DELAY       200u   /* milliseconds */
#define LONGEST_PAUSE       20000u /* milliseconds, if the server requests no pause */
#define LONGEST_ASKED       300u   /* seconds, the longest pause that a server may request */
#define NAP                 50u    /* milliseconds between checks for cancellation */
#define ENOUGH_SUCCESSES    16u    /* successes after which one more connection is tried */

/* --------------------------------------------------------------- settings */

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *keep_text(char **to, const char *text)
{
    char *begin = *to;
    size_t n = text_size(text);
    if (!text)
        return NULL;
    memcpy(begin, text, n);
    *to += n;
    return begin;
}

/* Copies the caller's texts, which the caller may free. */
static tnf_status keep_settings(tnf_session *s, tnf_error *e)
{
    tnf_url_options *how = &s->how;
    size_t n = text_size(how->token) + text_size(how->region) + text_size(how->endpoint);
    for (size_t i = 0; i < how->nheaders; i++)
        n += text_size(how->headers[i]);
    s->nkept = n + how->nheaders * sizeof(char *) + 1;
    s->kept = tnf_alloc0(&s->alloc, s->nkept);
    if (!s->kept)
        return tnf_no_memory("a connection", e);
    const char **headers = (const char **)(void *)s->kept;
    char *to = s->kept + how->nheaders * sizeof(char *);
    for (size_t i = 0; i < how->nheaders; i++)
        headers[i] = keep_text(&to, how->headers[i]);
    how->headers = headers;
    how->token = keep_text(&to, how->token);
    how->region = keep_text(&to, how->region);
    how->endpoint = keep_text(&to, how->endpoint);
    return TNF_OK;
}

static tnf_status check_settings(tnf_url_options *how, tnf_error *e)
{
    if (how->connections > TNF_MAX_CONNECTIONS)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "at most %u connections are allowed",
                        TNF_MAX_CONNECTIONS);
    TNF_TRY(tnf_need_array(how->headers, how->nheaders, "headers", e));
    for (size_t i = 0; i < how->nheaders; i++) {
        TNF_TRY(tnf_need(how->headers[i], "headers", e));
        if (!strchr(how->headers[i], ':') || strpbrk(how->headers[i], "\r\n"))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "a header must be one line, 'Name: value'");
    }
    how->connections = how->connections ? how->connections : DEFAULT_CONNECTIONS;
    how->cache_bytes = how->cache_bytes ? how->cache_bytes : DEFAULT_CACHE;
    how->attempts = how->attempts ? how->attempts : DEFAULT_ATTEMPTS;
    how->delay_ms = how->delay_ms ? how->delay_ms : DEFAULT_DELAY;
    return TNF_OK;
}

tnf_status tnf_session_new(tnf_session **out, const tnf_url_options *how,
                           const tnf_allocator *alloc, tnf_error *e)
{
    const tnf_curl *curl;
    tnf_url_options copy;
    tnf_allocator a = tnf_allocator_or_default(alloc);
    *out = NULL;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_url_options, &copy, how, e));
    TNF_TRY(check_settings(&copy, e));
    TNF_TRY(tnf_curl_load(&curl, e));
    tnf_session *s = tnf_alloc0(&a, sizeof *s);
    if (!s)
        return tnf_no_memory("a connection", e);
    s->alloc = a;
    s->curl = curl;
    s->how = copy;
    s->watch = copy.progress;
    s->watcher = copy.ctx;
    s->allowed = copy.connections;
    atomic_init(&s->users, 1);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->callback_lock, NULL);
    pthread_cond_init(&s->free, NULL);
    tnf_status status = keep_settings(s, e);
    if (status != TNF_OK)
        tnf_session_drop(s);
    else
        *out = s;
    return status;
}

void tnf_session_watch(tnf_session *s, tnf_progress_fn watch, void *ctx)
{
    s->watch = watch;
    s->watcher = ctx;
}

void tnf_session_share(tnf_session *s)
{
    atomic_fetch_add(&s->users, 1);
}

/* TLS sends a last message, perhaps to a server that does not exist any more. */
static void end_connection(const tnf_session *s, void *easy)
{
    const tnf_sigpipe held = tnf_sigpipe_hold();
    s->curl->cleanup(easy);
    tnf_sigpipe_release(&held);
}

void tnf_session_drop(tnf_session *s)
{
    if (!s || atomic_fetch_sub(&s->users, 1) != 1)
        return;
    for (unsigned i = 0; i < s->nidle; i++)
        end_connection(s, s->idle[i]);
    pthread_cond_destroy(&s->free);
    pthread_mutex_destroy(&s->callback_lock);
    pthread_mutex_destroy(&s->lock);
    tnf_allocator a = s->alloc;
    tnf_free(&a, s->kept, s->nkept);
    memset(&s->keys, 0, sizeof s->keys);
    memset(&s->bearer, 0, sizeof s->bearer);
    tnf_free(&a, s, sizeof *s);
}

/* ---------------------------------------------------------------- callbacks */

void tnf_session_trace(tnf_session *s, const char *format, ...)
{
    if (!s->how.trace)
        return;
    char line[400];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pthread_mutex_lock(&s->callback_lock);
    s->how.trace(s->how.ctx, TNF_NO_OFFSET, line);
    pthread_mutex_unlock(&s->callback_lock);
}

void tnf_session_warn(tnf_session *s, const char *message)
{
    if (!s->how.warn)
        return;
    tnf_warning warning = { TNF_NO_OFFSET, message };
    pthread_mutex_lock(&s->callback_lock);
    s->how.warn(s->how.ctx, &warning);
    pthread_mutex_unlock(&s->callback_lock);
}

static bool may_go_on(tnf_session *s)
{
    if (!s->watch)
        return true;
    pthread_mutex_lock(&s->callback_lock);
    uint64_t done = atomic_load(&s->bytes);
    bool go_on = s->watch(s->watcher, done, 0);
    pthread_mutex_unlock(&s->callback_lock);
    return go_on;
}

/* ------------------------------------------------------------ connections */

/* Returns an idle or a new connection; waits if too many are in use. */
static void *borrow_connection(tnf_session *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->lent >= s->allowed)
        pthread_cond_wait(&s->free, &s->lock);
    s->lent++;
    void *easy = s->nidle ? s->idle[--s->nidle] : NULL;
    pthread_mutex_unlock(&s->lock);
    return easy ? easy : s->curl->easy_init();
}

static void return_connection(tnf_session *s, void *easy)
{
    pthread_mutex_lock(&s->lock);
    s->lent--;
    bool keep = easy && s->nidle < TNF_MAX_CONNECTIONS;
    if (keep)
        s->idle[s->nidle++] = easy;
    pthread_cond_signal(&s->free);
    pthread_mutex_unlock(&s->lock);
    if (easy && !keep)
        end_connection(s, easy);
}

void tnf_session_slow_down(tnf_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->allowed = s->allowed > 1 ? s->allowed / 2 : 1;
    s->successes = 0;
    pthread_mutex_unlock(&s->lock);
}

void tnf_session_succeeded(tnf_session *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->allowed < s->how.connections && ++s->successes >= ENOUGH_SUCCESSES) {
        s->allowed++;
        s->successes = 0;
        pthread_cond_signal(&s->free);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ----------------------------------------------------------------- pauses */

static uint64_t random_below(uint64_t n)
{
    static atomic_uint_least64_t state;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t x = atomic_fetch_add(&state, 0x9e3779b97f4a7c15u) + (uint64_t)now.tv_nsec;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u; /* random enough to spread clients */
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return n ? (x ^ (x >> 31)) % n : 0;
}

tnf_status tnf_session_pause(tnf_session *s, unsigned attempt, const tnf_answer *a, tnf_error *e)
{
    uint64_t longest = (uint64_t)s->how.delay_ms << (attempt < 16 ? attempt : 16);
    uint64_t wait = random_below((longest < LONGEST_PAUSE ? longest : LONGEST_PAUSE) + 1);
    if (a && a->retry_after != TNF_NOT_TOLD) {
        if (a->retry_after > LONGEST_ASKED)
            return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                            "the server requests a retry after %llu seconds",
                            (unsigned long long)a->retry_after);
        wait = a->retry_after * 1000;
    }
    atomic_fetch_add(&s->retries, 1);
    while (wait > 0) {
        uint64_t nap = wait < NAP ? wait : NAP;
        struct timespec t = { 0, (long)nap * 1000000L };
        nanosleep(&t, NULL);
        wait -= nap;
        if (!may_go_on(s))
            return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
    }
    return TNF_OK;
}

/* --------------------------------------------------------------- exchange */

void tnf_exchange_header(tnf_exchange *x, const char *line)
{
    if (x->nheaders < sizeof x->headers / sizeof *x->headers)
        x->headers[x->nheaders++] = line;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    tnf_exchange *x = ctx;
    n *= size;
    tnf_answer_line(&x->answer, p, n);
    x->too_many_headers = x->answer.header_bytes > TNF_ANSWER_HEADERS;
    return x->too_many_headers ? 0 : n;
}

static void keep_excerpt(tnf_answer *a, const char *p, size_t n)
{
    size_t room = sizeof a->excerpt - a->nexcerpt;
    size_t part = n < room ? n : room;
    memcpy(a->excerpt + a->nexcerpt, p, part);
    a->nexcerpt += part;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    tnf_exchange *x = ctx;
    n *= size;
    atomic_fetch_add(&x->session->bytes, n);
    if (x->take) {
        x->stopped = !x->take(x->ctx, p, n);
    } else {
        keep_excerpt(&x->answer, p, n);
        x->stopped = x->answer.nexcerpt == sizeof x->answer.excerpt;
    }
    return x->stopped ? 0 : n;
}

static int on_progress(void *ctx, int64_t down_all, int64_t down, int64_t up_all, int64_t up)
{
    tnf_exchange *x = ctx;
    (void)down_all, (void)down, (void)up_all, (void)up;
    x->cancelled = !may_go_on(x->session);
    return x->cancelled;
}

/* An address with another port than the URL is that of a proxy, so it says nothing about the
 * server. */
static bool is_proxy(const tnf_exchange *x, unsigned port)
{
    return port != 0 && port != (x->url.port ? x->url.port : x->url.secure ? 443u : 80u);
}

/* libcurl calls this before it connects. The address is checked here, since a public name may
 * resolve to any address. */
static int on_socket(void *ctx, int purpose, tnf_curl_address *to)
{
    tnf_exchange *x = ctx;
    union {
        struct sockaddr *any;
        const uint8_t *bytes;
    } address = { .any = &to->address };
    (void)purpose;
    bool close_by = false;
    if (to->family == AF_INET && to->n >= 8)
        close_by = tnf_address_private(address.bytes + 4, 4);
    else if (to->family == AF_INET6 && to->n >= 24)
        close_by = tnf_address_private(address.bytes + 8, 16);
    unsigned port = (unsigned)address.bytes[2] << 8 | address.bytes[3]; /* in both families */
    if (x->guarded && close_by && !is_proxy(x, port)) {
        x->refused_address = true;
        return TNF_CURL_BAD_SOCKET;
    }
    int kind = to->kind;
#ifdef SOCK_CLOEXEC
    kind |= SOCK_CLOEXEC;
#endif
    return socket(to->family, kind, to->protocol);
}

struct reading {
    const char *p;
    size_t left, all;
};

static size_t on_read(char *out, size_t size, size_t n, void *ctx)
{
    struct reading *r = ctx;
    n *= size;
    n = n < r->left ? n : r->left;
    memcpy(out, r->p, n);
    r->p += n;
    r->left -= n;
    return n;
}

/* libcurl itself sends a body again if a kept-alive connection was closed. */
static int on_seek(void *ctx, int64_t to, int from)
{
    struct reading *r = ctx;
    if (from != SEEK_SET || to < 0 || (uint64_t)to > r->all)
        return TNF_CURL_CANNOT_SEEK;
    r->p += (int64_t)r->left - (int64_t)(r->all - (uint64_t)to);
    r->left = r->all - (size_t)to;
    return 0;
}

static const char *certificate_file(void)
{
    static const char *const names[] = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "AWS_CA_BUNDLE" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = tnf_setting(names[i]);
        if (path)
            return path;
    }
    return NULL;
}

static void set_safety(const tnf_curl *c, void *easy, tnf_session *s)
{
    const char *bundle = certificate_file(), *insecure = tnf_setting("TENFOLD_INSECURE_TLS");
    if (c->setopt(easy, TNF_CURL_PROTOCOLS_STR, "http,https") != TNF_CURLE_OK)
        c->setopt(easy, TNF_CURL_PROTOCOLS, (long)TNF_CURL_HTTP_AND_HTTPS); /* before 7.85 */
    c->setopt(easy, TNF_CURL_FOLLOWLOCATION, 0L);
    if (bundle)
        c->setopt(easy, TNF_CURL_CAINFO, bundle);
    if (insecure && strcmp(insecure, "1") == 0) {
        c->setopt(easy, TNF_CURL_SSL_VERIFYPEER, 0L);
        c->setopt(easy, TNF_CURL_SSL_VERIFYHOST, 0L);
        pthread_mutex_lock(&s->lock);
        bool tell = !s->insecure_told;
        s->insecure_told = true;
        pthread_mutex_unlock(&s->lock);
        if (tell)
            tnf_session_warn(s, "TENFOLD_INSECURE_TLS is set, so the server is not authenticated");
    }
}

/* Credentials from ~/.netrc, or from the file that NETRC names. The file may be missing. */
static void set_netrc(const tnf_curl *c, void *easy)
{
    const char *path = tnf_setting("NETRC");
    c->setopt(easy, TNF_CURL_NETRC, (long)TNF_CURL_NETRC_OPTIONAL);
    if (path)
        c->setopt(easy, TNF_CURL_NETRC_FILE, path);
}

static void set_patience(const tnf_curl *c, void *easy, bool quick)
{
    c->setopt(easy, TNF_CURL_NOSIGNAL, 1L);
    c->setopt(easy, TNF_CURL_CONNECTTIMEOUT_MS, quick ? 1000L : 10000L);
    if (quick)
        c->setopt(easy, TNF_CURL_TIMEOUT_MS, 2000L);
    c->setopt(easy, TNF_CURL_LOW_SPEED_LIMIT, 1024L);
    c->setopt(easy, TNF_CURL_LOW_SPEED_TIME, 20L);
    c->setopt(easy, TNF_CURL_TCP_NODELAY, 1L);
    c->setopt(easy, TNF_CURL_BUFFERSIZE, 262144L);
    c->setopt(easy, TNF_CURL_HTTP_VERSION, (long)TNF_CURL_HTTP_1_1);
}

static void set_callbacks(const tnf_curl *c, void *easy, tnf_exchange *x)
{
    c->setopt(easy, TNF_CURL_HEADERFUNCTION, on_header);
    c->setopt(easy, TNF_CURL_HEADERDATA, x);
    c->setopt(easy, TNF_CURL_SUPPRESS_CONNECT_HEADERS, 1L);
    c->setopt(easy, TNF_CURL_WRITEFUNCTION, on_body);
    c->setopt(easy, TNF_CURL_WRITEDATA, x);
    c->setopt(easy, TNF_CURL_XFERINFOFUNCTION, on_progress);
    c->setopt(easy, TNF_CURL_XFERINFODATA, x);
    c->setopt(easy, TNF_CURL_NOPROGRESS, x->session->watch ? 0L : 1L);
    c->setopt(easy, TNF_CURL_OPENSOCKETFUNCTION, on_socket);
    c->setopt(easy, TNF_CURL_OPENSOCKETDATA, x);
    c->setopt(easy, TNF_CURL_ERRORBUFFER, x->reason);
}

static void set_method(const tnf_curl *c, void *easy, const tnf_exchange *x, struct reading *body)
{
    if (strcmp(x->method, "PUT") == 0) {
        c->setopt(easy, TNF_CURL_UPLOAD, 1L);
        c->setopt(easy, TNF_CURL_READFUNCTION, on_read);
        c->setopt(easy, TNF_CURL_READDATA, body);
        c->setopt(easy, TNF_CURL_SEEKFUNCTION, on_seek);
        c->setopt(easy, TNF_CURL_SEEKDATA, body);
        c->setopt(easy, TNF_CURL_INFILESIZE_LARGE, (int64_t)x->nbody);
    } else if (strcmp(x->method, "POST") == 0) {
        c->setopt(easy, TNF_CURL_POST, 1L);
        c->setopt(easy, TNF_CURL_POSTFIELDSIZE_LARGE, (int64_t)x->nbody);
        c->setopt(easy, TNF_CURL_POSTFIELDS, x->body ? x->body : "");
    } else if (strcmp(x->method, "HEAD") == 0) {
        c->setopt(easy, TNF_CURL_NOBODY, 1L);
    } else {
        c->setopt(easy, TNF_CURL_HTTPGET, 1L);
        if (strcmp(x->method, "GET") != 0)
            c->setopt(easy, TNF_CURL_CUSTOMREQUEST, x->method);
    }
}

/* All headers of the request; NULL if there is no memory. */
static struct tnf_curl_slist *make_headers(const tnf_curl *c, const tnf_exchange *x)
{
    static const char *const always[] = {
        "Accept-Encoding: identity", /* ranges of compressed data are useless */
        "User-Agent: tenfold",
        "Accept: */*",
        "Expect:",
    };
    struct tnf_curl_slist *list = NULL;
    for (size_t i = 0; i < sizeof always / sizeof *always + x->nheaders; i++) {
        const char *line = i < x->nheaders ? x->headers[i] : always[i - x->nheaders];
        struct tnf_curl_slist *more = c->append(list, line);
        if (!more) {
            c->free_all(list);
            return NULL;
        }
        list = more;
    }
    return list;
}

static void trace_exchange(const tnf_exchange *x, const struct timespec *began)
{
    struct timespec now;
    const char *range = "";
    if (!x->session->how.trace)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (unsigned i = 0; i < x->nheaders; i++)
        if (strncmp(x->headers[i], "Range: ", 7) == 0)
            range = x->headers[i] + 6;
    long ms = (long)(now.tv_sec - began->tv_sec) * 1000 + (now.tv_nsec - began->tv_nsec) / 1000000;
    if (x->code != TNF_CURLE_OK && !x->stopped)
        tnf_session_trace(x->session, "%s %s%s: %s, %ld ms", x->method, TNF_URL_SHOWN(&x->url),
                          range, x->session->curl->strerror(x->code), ms);
    else
        tnf_session_trace(x->session, "%s %s%s: %d, %ld ms", x->method, TNF_URL_SHOWN(&x->url),
                          range, x->answer.status, ms);
}

static void perform_exchange(tnf_exchange *x, void *easy, struct tnf_curl_slist *headers)
{
    const tnf_curl *c = x->session->curl;
    char text[TNF_URL_TEXT];
    struct timespec began;
    struct reading body = { x->body, x->nbody, x->nbody };
    clock_gettime(CLOCK_MONOTONIC, &began);
    tnf_url_text(text, &x->url);
    c->reset(easy);
    set_safety(c, easy, x->session);
    set_patience(c, easy, x->quick);
    set_callbacks(c, easy, x);
    set_method(c, easy, x, &body);
    if (x->direct)
        c->setopt(easy, TNF_CURL_NOPROXY, "*");
    if (x->netrc)
        set_netrc(c, easy);
    c->setopt(easy, TNF_CURL_URL, text);
    c->setopt(easy, TNF_CURL_PATH_AS_IS, 1L);
    c->setopt(easy, TNF_CURL_HTTPHEADER, headers);
    atomic_fetch_add(&x->session->requests, 1);
    const tnf_sigpipe held = tnf_sigpipe_hold();
    x->code = c->perform(easy);
    tnf_sigpipe_release(&held);
    const char *ip = NULL;
    if (c->getinfo(easy, TNF_CURL_INFO_IP, &ip) == TNF_CURLE_OK && ip)
        snprintf(x->peer, sizeof x->peer, "%s", ip);
    long port = 0;
    if (c->getinfo(easy, TNF_CURL_INFO_PORT, &port) == TNF_CURLE_OK && port > 0 && port < 65536)
        x->by_proxy = is_proxy(x, (unsigned)port);
    trace_exchange(x, &began);
    c->reset(easy); /* its options point into this frame */
}

tnf_status tnf_exchange_run(tnf_session *s, tnf_exchange *x, tnf_error *e)
{
    x->session = s;
    x->stopped = x->too_many_headers = x->cancelled = x->refused_address = x->by_proxy = false;
    x->reason[0] = x->peer[0] = 0;
    x->answer.header_bytes = 0;
    tnf_answer_begin(&x->answer);
    struct tnf_curl_slist *headers = make_headers(s->curl, x);
    void *easy = headers ? borrow_connection(s) : NULL;
    if (!easy) {
        if (headers)
            return_connection(s, NULL);
        s->curl->free_all(headers);
        return tnf_no_memory("a connection", e);
    }
    perform_exchange(x, easy, headers);
    return_connection(s, easy);
    s->curl->free_all(headers);
    if (x->cancelled)
        return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
    if (x->stopped)
        x->code = TNF_CURLE_OK;
    return TNF_OK;
}

bool tnf_exchange_transient(const tnf_exchange *x)
{
    if (x->refused_address || x->too_many_headers)
        return false;
    switch (x->code) {
    case TNF_CURLE_PROXY:
    case TNF_CURLE_CONNECT:
    case TNF_CURLE_PARTIAL:
    case TNF_CURLE_TIMEOUT:
    case TNF_CURLE_TLS:
    case TNF_CURLE_EMPTY:
    case TNF_CURLE_SEND:
    case TNF_CURLE_RECEIVE:
    case TNF_CURLE_REWIND:
    case TNF_CURLE_STREAM:
        return true;
    default:
        return false;
    }
}

tnf_status tnf_exchange_fail(const tnf_exchange *x, tnf_error *e)
{
    if (x->refused_address)
        return tnf_fail(
            e, TNF_ENET, TNF_NO_OFFSET,
            "the server redirects from a public host to a private address (%s), which is "
            "refused; -o private=yes allows it",
            TNF_VISIBLE(x->url.host));
    if (x->too_many_headers)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "%s answers with more than %u bytes of headers",
                        TNF_VISIBLE(x->url.host), TNF_ANSWER_HEADERS);
    const char *why = x->reason[0] ? x->reason : x->session->curl->strerror(x->code);
    char text[120];
    return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "no answer from %s: %s", TNF_VISIBLE(x->url.host),
                    tnf_excerpt(text, sizeof text, why, strlen(why)));
}
