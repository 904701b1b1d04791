/* SPDX-License-Identifier: MIT */
/* URLs, split into their parts.
 *
 *   https://host:443/path/of/it?query#fragment
 *   │       │    │   │          │     └ never sent
 *   │       │    │   │          └ may contain a signature: sent, never shown
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
    uint16_t port; /* 0: the default port */
    char host[TNF_URL_HOST];
    char path[TNF_URL_PATH];
    char query[TNF_URL_QUERY]; /* without '?' */
} tnf_url;

/* address.c: the length of "scheme://" if the text begins with it, in any case; else 0. */
size_t tnf_url_scheme(const char *text, const char *scheme);

/* Parses a URL of http:// or https://, whose path is already encoded. */
tnf_status tnf_url_parse(tnf_url *out, const char *text, tnf_error *e);
/* Parses the target of a redirect: a complete URL, or one relative to `from`. */
tnf_status tnf_url_follow(tnf_url *out, const tnf_url *from, const char *location, tnf_error *e);
/* Appends raw text to the path, percent-encoded, except for unreserved characters and '/'. */
tnf_status tnf_url_add_path(tnf_url *u, const char *raw, size_t n, tnf_error *e);
/* Decodes an encoded path to raw text, as far as there is room. */
void tnf_url_decode(char *out, size_t room, const char *path);
/* Adds KEY=VALUE to the query, percent-encoded, including '/'. */
tnf_status tnf_url_add_query(tnf_url *u, const char *key, const char *value, tnf_error *e);
/* Finds a value of the query by its key, still encoded; returns false if there is none. */
bool tnf_url_query_value(const tnf_url *u, const char *key, char *out, size_t room);

/* Are scheme, host and port the same? */
bool tnf_url_same_host(const tnf_url *a, const tnf_url *b);
/* "host" or "host:port", as in the Host header. */
void tnf_url_authority(char *out, size_t room, const tnf_url *u);
/* The complete URL, for sending. */
void tnf_url_text(char out[TNF_URL_TEXT], const tnf_url *u);
/* host/path for messages; shortened. */
const char *tnf_url_shown(char *out, size_t room, const tnf_url *u);
#define TNF_URL_SHOWN(u) tnf_url_shown((char[160]) { 0 }, 160, (u))

/* Is an address (4 or 16 bytes in network order) that of this machine, of a local network or of a
 * link, or any other to which a public name should not resolve? */
bool tnf_address_private(const uint8_t *bytes, size_t n);
/* The same for the text of an address; false for any other text. */
bool tnf_host_private(const char *text);

#endif
