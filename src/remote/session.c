/* SPDX-License-Identifier: MIT */
/* Sessions: settings, connections, the functions of the caller, pauses before retries. exchange.c
 * sends requests through them. */
#include "remote/session.h"

#include "base/sigpipe.h"
#include "base/sized.h"

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

bool tnf_session_goes_on(tnf_session *s)
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

void *tnf_session_lend(tnf_session *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->lent >= s->allowed)
        pthread_cond_wait(&s->free, &s->lock);
    s->lent++;
    void *easy = s->nidle ? s->idle[--s->nidle] : NULL;
    pthread_mutex_unlock(&s->lock);
    return easy ? easy : s->curl->easy_init();
}

void tnf_session_return(tnf_session *s, void *easy)
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
        if (!tnf_session_goes_on(s))
            return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "cancelled by the caller");
    }
    return TNF_OK;
}
