/* SPDX-License-Identifier: MIT */
/* Names of things on other machines, in pieces.
 *
 *   https://host:443/path/of/it?query#fragment
 *   │       │    │   │          │     └ ours alone: never sent
 *   │       │    │   │          └ may hold a signature: sent, never shown
 *   │       │    │   └ percent-encoded, begins with '/'
 *   └ http or https
 */
#ifndef TNF_REMOTE_URL_H
#define TNF_REMOTE_URL_H

#include "base/error.h"

#define TNF_URL_HOST  256u
#define TNF_URL_PATH  4096u
#define TNF_URL_QUERY 6144u
#define TNF_URL_TEXT  (TNF_URL_HOST + TNF_URL_PATH + TNF_URL_QUERY + 32u)

typedef struct tnf_url {
    bool secure;
    uint16_t port; /* 0: the usual one */
    char host[TNF_URL_HOST];
    char path[TNF_URL_PATH];
    char query[TNF_URL_QUERY]; /* without '?' */
} tnf_url;

/* address.c: does the text begin with that scheme, in any case? The length with "://", or 0. */
size_t tnf_url_scheme(const char *text, const char *scheme);

/* Of http:// and https://, whose path is encoded already. */
tnf_status tnf_url_parse(tnf_url *out, const char *text, tnf_error *e);
/* Where a redirect leads to: a whole URL, or one relative to `from`. */
tnf_status tnf_url_follow(tnf_url *out, const tnf_url *from, const char *location, tnf_error *e);
/* Puts raw text at the end of the path, percent-encoded: all but unreserved characters and '/'. */
tnf_status tnf_url_add_path(tnf_url *u, const char *raw, size_t n, tnf_error *e);
/* The raw text that an encoded path stands for, as far as there is room. */
void tnf_url_decode(char *out, size_t room, const char *path);
/* Adds KEY=VALUE to the query, percent-encoded with '/' as well. */
tnf_status tnf_url_add_query(tnf_url *u, const char *key, const char *value, tnf_error *e);
/* A value of the query by its key, still encoded; false: there is none. */
bool tnf_url_query_value(const tnf_url *u, const char *key, char *out, size_t room);

/* Scheme, host and port are the same. */
bool tnf_url_same_host(const tnf_url *a, const tnf_url *b);
/* "host" or "host:port", as the header Host has it. */
void tnf_url_authority(char *out, size_t room, const tnf_url *u);
/* All of it, for sending. */
void tnf_url_text(char out[TNF_URL_TEXT], const tnf_url *u);
/* host/path, for people; shortened. */
const char *tnf_url_shown(char *out, size_t room, const tnf_url *u);
#define TNF_URL_SHOWN(u) tnf_url_shown((char[160]) { 0 }, 160, (u))

/* Of an address, 4 or 16 bytes in network order: of this machine, of a local network, of a link, or
 * nothing that a public name should lead to. */
bool tnf_address_private(const uint8_t *bytes, size_t n);
/* The same for the text of an address; false if it is none. */
bool tnf_host_private(const char *text);

#endif
