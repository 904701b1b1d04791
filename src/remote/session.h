/* SPDX-License-Identifier: MIT */
/* One caller's use of the network: settings, connections, what was asked so far. Shared by the
 * sources of a model, and counted.
 *
 *   source ─┐                      ┌─ connection (libcurl, kept alive)
 *   source ─┼─> session ─ lends ─>─┼─ connection
 *   source ─┘   settings, counts   └─ …   as many as the server bears
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

/* Keys of AWS, or of what speaks its language. */
typedef struct tnf_keys_aws {
    char id[160], secret[160], token[4096];
    bool found;       /* else requests are not signed */
    bool looked;      /* for them, everywhere */
    const char *from; /* where they were found, for messages */
    int64_t until;    /* they end then; 0: never */
} tnf_keys_aws;

/* A token for "Authorization: Bearer". */
typedef struct tnf_bearer {
    char text[4096]; /* "": none */
    bool looked;     /* for it, everywhere */
    int64_t until;   /* it ends then; 0: never */
} tnf_bearer;

typedef struct tnf_session {
    const tnf_curl *curl;
    tnf_allocator alloc;
    tnf_url_options how;   /* pointers point into `kept` */
    tnf_progress_fn watch; /* may stop everything; with a context of its own */
    void *watcher;
    char *kept;
    size_t nkept;
    atomic_uint users;
    atomic_uint_least64_t requests, bytes, retries;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t free;
    void *idle[TNF_MAX_CONNECTIONS];
    unsigned nidle, lent, allowed; /* allowed: at a time, less after the server complained */
    unsigned successes;            /* since it complained */
    tnf_keys_aws keys;
    tnf_bearer bearer;
    int64_t skew; /* the server's clock less ours */
    bool insecure_told;

    pthread_mutex_t talk; /* one at a time to the caller's functions */
} tnf_session;

tnf_status tnf_session_new(tnf_session **out, const tnf_url_options *how,
                           const tnf_allocator *alloc, tnf_error *e);
void tnf_session_share(tnf_session *s);
/* Another function for progress than the caller's. */
void tnf_session_watch(tnf_session *s, tnf_progress_fn watch, void *ctx);
void tnf_session_drop(tnf_session *s);

/* What to ask, and what to do with what comes. */
typedef struct tnf_exchange {
    const char *method; /* GET, PUT, POST, DELETE, HEAD */
    tnf_url url;
    const char *headers[24]; /* "Name: value", for as long as the call */
    unsigned nheaders;
    const void *body; /* PUT and POST */
    size_t nbody;
    bool guarded; /* reached by a redirect from a public host: no private address */
    bool quick;   /* a second is enough: for what may not be there at all */
    bool direct;  /* by no proxy: it is this machine's own affair */
    bool netrc;   /* with the name and password that .netrc has for the host */
    /* Takes bytes of a body, whose headers are in `answer`. False ends the transfer, and that is no
     * failure of it: `stopped` is set. NULL: the beginning is kept in answer.excerpt. */
    bool (*take)(void *ctx, const void *bytes, size_t n);
    void *ctx;

    tnf_answer answer;
    int code; /* of libcurl; TNF_CURLE_OK: an answer came, whatever it says */
    bool stopped, too_many_headers, cancelled, refused_address;
    char reason[TNF_CURL_ERROR_TEXT];
    char peer[64]; /* the address that answered … */
    bool by_proxy; /* … which is a proxy's */

    tnf_session *session; /* set by tnf_exchange_run() */
    uint64_t before;      /* bytes of the session when it began */
} tnf_exchange;

/* Adds a header; at most 24. */
void tnf_exchange_header(tnf_exchange *x, const char *line);
/* Asks and waits for the answer. TNF_OK: there is an answer, or `code` says why not. TNF_ECANCELLED
 * and TNF_ENOMEM else. */
tnf_status tnf_exchange_run(tnf_session *s, tnf_exchange *x, tnf_error *e);
/* The same failure may not come again. */
bool tnf_exchange_transient(const tnf_exchange *x);
/* The sentence for an exchange without an answer. */
tnf_status tnf_exchange_fail(const tnf_exchange *x, tnf_error *e);

/* Sleeps before attempt n + 1, or as long as the server asked for. Counts a retry. */
tnf_status tnf_session_pause(tnf_session *s, unsigned attempt, const tnf_answer *a, tnf_error *e);
/* The server complains of too much, or is content. */
void tnf_session_slower(tnf_session *s);
void tnf_session_content(tnf_session *s);
/* Call the caller's functions, one thread at a time. */
void tnf_session_trace(tnf_session *s, const char *format, ...) TNF_PRINTF(2, 3);
void tnf_session_warn(tnf_session *s, const char *message);

#endif
