/* SPDX-License-Identifier: MIT */
/* AWS Signature Version 4. It is implemented here, since libcurl's signatures differ between
 * versions, and fail for keys with '=' and for queries that are not sorted. */
#ifndef TNF_REMOTE_SIGV4_H
#define TNF_REMOTE_SIGV4_H

#include "base/error.h"
#include "remote/url.h"

#define TNF_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

typedef struct tnf_signing {
    const char *method;
    const tnf_url *url;
    const char *id, *secret, *region, *service;
    const char *payload; /* SHA-256 of the body in hex */
    int64_t now;         /* seconds since 1970 */
    /* The signed headers, "name:value" with the name in lower case, in ascending order. Host is one
     * of them. */
    const char *const *headers;
    size_t nheaders;
} tnf_signing;

/* "20130524T000000Z" */
void tnf_amz_date(char out[17], int64_t now);
/* The value of the header Authorization. */
tnf_status tnf_sigv4(char *out, size_t room, const tnf_signing *s, tnf_error *e);

void tnf_hmac_sha256(uint8_t out[32], const void *key, size_t nkey, const void *text, size_t n);

#endif
