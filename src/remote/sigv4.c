/* SPDX-License-Identifier: MIT */
#include "remote/sigv4.h"

#include "base/buf.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_PARAMETERS 64u

void tnf_hmac_sha256(uint8_t out[32], const void *key, size_t nkey, const void *text, size_t n)
{
    uint8_t block[64] = { 0 }, pad[64];
    tnf_sha256 s;
    if (nkey > sizeof block) {
        tnf_sha256_begin(&s);
        tnf_sha256_update(&s, key, nkey);
        tnf_sha256_end(&s, block);
    } else if (nkey) {
        memcpy(block, key, nkey);
    }
    for (size_t i = 0; i < sizeof pad; i++)
        pad[i] = block[i] ^ 0x36;
    tnf_sha256_begin(&s);
    tnf_sha256_update(&s, pad, sizeof pad);
    tnf_sha256_update(&s, text, n);
    tnf_sha256_end(&s, out);
    for (size_t i = 0; i < sizeof pad; i++)
        pad[i] = block[i] ^ 0x5c;
    tnf_sha256_begin(&s);
    tnf_sha256_update(&s, pad, sizeof pad);
    tnf_sha256_update(&s, out, 32);
    tnf_sha256_end(&s, out);
}

void tnf_amz_date(char out[17], int64_t now)
{
    time_t t = (time_t)now;
    struct tm tm;
    gmtime_r(&t, &tm);
    if (strftime(out, 17, "%Y%m%dT%H%M%SZ", &tm) == 0)
        out[0] = 0;
}

static int by_text(const void *a, const void *b)
{
    const tnf_str *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int c = memcmp(x->p, y->p, n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* Writes the parameters in ascending order, each with its '='. They are already encoded. */
static tnf_status put_query(tnf_buf *b, const char *query, tnf_error *e)
{
    tnf_str parts[MOST_PARAMETERS];
    size_t count = 0;
    for (const char *p = query; *p;) {
        size_t n = strcspn(p, "&");
        if (count == MOST_PARAMETERS)
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the URL has too many parameters");
        parts[count++] = (tnf_str) { p, n };
        p += n + (p[n] == '&');
    }
    qsort(parts, count, sizeof *parts, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            tnf_buf_u8(b, '&');
        tnf_buf_put(b, parts[i].p, parts[i].n);
        if (!memchr(parts[i].p, '=', parts[i].n))
            tnf_buf_u8(b, '=');
    }
    tnf_buf_u8(b, '\n');
    return TNF_OK;
}

static void put_names(tnf_buf *b, const tnf_signing *s)
{
    for (size_t i = 0; i < s->nheaders; i++) {
        if (i > 0)
            tnf_buf_u8(b, ';');
        tnf_buf_put(b, s->headers[i], strcspn(s->headers[i], ":"));
    }
}

/* The canonical form of the request, which both sides hash. */
static tnf_status canonical_request(tnf_buf *b, const tnf_signing *s, tnf_error *e)
{
    tnf_buf_printf(b, "%s\n%s\n", s->method, s->url->path);
    TNF_TRY(put_query(b, s->url->query, e));
    for (size_t i = 0; i < s->nheaders; i++)
        tnf_buf_printf(b, "%s\n", s->headers[i]);
    tnf_buf_u8(b, '\n');
    put_names(b, s);
    tnf_buf_printf(b, "\n%s", s->payload);
    return tnf_buf_status(b, "the request", e);
}

static void signing_key(uint8_t key[32], const tnf_signing *s, const char *day)
{
    char first[256];
    int n = snprintf(first, sizeof first, "AWS4%s", s->secret);
    tnf_hmac_sha256(key, first, n > 0 ? (size_t)n : 0, day, 8);
    tnf_hmac_sha256(key, key, 32, s->region, strlen(s->region));
    tnf_hmac_sha256(key, key, 32, s->service, strlen(s->service));
    tnf_hmac_sha256(key, key, 32, "aws4_request", 12);
}

static tnf_status sign_request(tnf_buf *b, char *out, size_t room, const tnf_signing *s,
                               tnf_error *e)
{
    uint8_t digest[32], key[32];
    char hex[65], when[17], text[512];
    tnf_sha256 h;
    TNF_TRY(canonical_request(b, s, e));
    tnf_sha256_begin(&h);
    tnf_sha256_update(&h, b->p, b->n);
    tnf_sha256_end(&h, digest);
    *tnf_hex_put(hex, digest, 32) = 0;
    tnf_amz_date(when, s->now);
    int n = snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", when,
                     when, s->region, s->service, hex);
    if (n < 0 || (size_t)n >= sizeof text)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the region is too long");
    signing_key(key, s, when);
    tnf_hmac_sha256(digest, key, 32, text, (size_t)n);
    *tnf_hex_put(hex, digest, 32) = 0;
    b->n = 0;
    put_names(b, s);
    TNF_TRY(tnf_buf_status(b, "the request", e));
    n = snprintf(out, room,
                 "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=%.*s, "
                 "Signature=%s",
                 s->id, when, s->region, s->service, (int)b->n, (const char *)b->p, hex);
    if (n < 0 || (size_t)n >= room)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the access key is too long");
    return TNF_OK;
}

tnf_status tnf_sigv4(char *out, size_t room, const tnf_signing *s, tnf_error *e)
{
    tnf_buf b;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_buf_init(&b, &a, 65536);
    tnf_status status = sign_request(&b, out, room, s, e);
    tnf_buf_free(&b);
    return status;
}
