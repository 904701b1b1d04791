/* SPDX-License-Identifier: MIT */
/* One caller's use of the network: settings, connections, counts. The sources of a model share a
 * session, which is reference-counted.
 *
 *   source ─┐                      ┌─ connection (libcurl, kept alive)
 *   source ─┼─> session ─ lends ─>─┼─ connection
 *   source ─┘   settings, counts   └─ …   as many as the server accepts
 */
#ifndef TNF_REMOTE_SESSION_H
#define TNF_REMOTE_SESSION_H

#include "base/alloc.h"
#include "remote/answer.h"
#include "remote/curl.h"
#include "remote/url.h"
#include <pthread.h>
#include <stdatomic.h>
#include <tenfold/remote.h>

#define TNF_MAX_CONNECTIONS 64u

/* Keys of AWS, or of a compatible service. */
typedef struct tnf_keys_aws {
    char id[160], secret[160], token[4096];
    bool found;       /* else requests are not signed */
    bool looked;      /* all places have been searched */
    const char *from; /* where the keys were found, for messages */
    int64_t until;    /* when they expire; 0: never */
} tnf_keys_aws;

/* A token for "Authorization: Bearer". */
typedef struct tnf_bearer {
    char text[4096]; /* "": none */
    bool looked;     /* all places have been searched */
    int64_t until;   /* when it expires; 0: never */
} tnf_bearer;

typedef struct tnf_session {
    const tnf_curl *curl;
    tnf_allocator alloc;
    tnf_url_options how;   /* pointers point into `kept` */
    tnf_progress_fn watch; /* may cancel everything; has its own context */
    void *watcher;
    char *kept;
    size_t nkept;
    atomic_uint users;
    atomic_uint_least64_t requests, bytes, retries;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t free;
    void *idle[TNF_MAX_CONNECTIONS];
    unsigned nidle, lent,
        allowed;        /* allowed: at a time; fewer after the server said that it is overloaded */
    unsigned successes; /* since the server last said so */
    tnf_keys_aws keys;
    tnf_bearer bearer;
    int64_t skew; /* the server's clock minus the local clock */
    bool insecure_told;

    pthread_mutex_t callback_lock; /* serialises calls of the caller's functions */
} tnf_session;

tnf_status tnf_session_new(tnf_session **out, const tnf_url_options *how,
                           const tnf_allocator *alloc, tnf_error *e);
void tnf_session_share(tnf_session *s);
/* Replaces the caller's function for progress. */
void tnf_session_watch(tnf_session *s, tnf_progress_fn watch, void *ctx);
void tnf_session_drop(tnf_session *s);

/* A request, and its answer. */
typedef struct tnf_exchange {
    const char *method; /* GET, PUT, POST, DELETE, HEAD */
    tnf_url url;
    const char *headers[24]; /* "Name: value", valid during the call */
    unsigned nheaders;
    const void *body; /* for PUT and POST */
    size_t nbody;
    bool guarded; /* after a redirect from a public host: private addresses are refused */
    bool quick;   /* waits only a second, for services that might not exist */
    bool direct;  /* without a proxy, for services of this machine */
    bool netrc;   /* with the name and password that .netrc has for the host */
    /* Takes bytes of a body, whose headers are in `answer`. Returning false ends the transfer and
     * sets `stopped`, which is not an error. NULL: the beginning is kept in answer.excerpt. */
    bool (*take)(void *ctx, const void *bytes, size_t n);
    void *ctx;

    tnf_answer answer;
    int code; /* of libcurl; TNF_CURLE_OK: there is an answer, perhaps a refusal */
    bool stopped, too_many_headers, cancelled, refused_address;
    char reason[TNF_CURL_ERROR_TEXT];
    char peer[64]; /* the address that answered */
    bool by_proxy; /* that address is a proxy */

    tnf_session *session; /* set by tnf_exchange_run() */
    uint64_t before;      /* bytes of the session when the request began */
} tnf_exchange;

/* Adds a header; at most 24. */
void tnf_exchange_header(tnf_exchange *x, const char *line);
/* Sends the request and waits for the answer. TNF_OK: there is an answer, or `code` says why not.
 * Otherwise TNF_ECANCELLED or TNF_ENOMEM. */
tnf_status tnf_exchange_run(tnf_session *s, tnf_exchange *x, tnf_error *e);
/* May a retry succeed? */
bool tnf_exchange_transient(const tnf_exchange *x);
/* The error message for an exchange without an answer. */
tnf_status tnf_exchange_fail(const tnf_exchange *x, tnf_error *e);

/* Sleeps before attempt n + 1, or as long as the server requested. Counts a retry. */
tnf_status tnf_session_pause(tnf_session *s, unsigned attempt, const tnf_answer *a, tnf_error *e);
/* Uses fewer connections, because the server is overloaded; counts a success. */
void tnf_session_slow_down(tnf_session *s);
void tnf_session_succeeded(tnf_session *s);
/* Call the caller's functions, one thread at a time. */
void tnf_session_trace(tnf_session *s, const char *format, ...) TNF_PRINTF(2, 3);
void tnf_session_warn(tnf_session *s, const char *message);

#endif
