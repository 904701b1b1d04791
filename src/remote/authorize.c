/* SPDX-License-Identifier: MIT */
/* Adds credentials to requests, and makes the error messages for refusals. */
#include "base/hex.h"
#include "base/sha256.h"
#include "remote/credentials.h"
#include "remote/place.h"
#include "remote/sigv4.h"
#include "wire/xml.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static tnf_status add_line(tnf_auth_lines *auth, tnf_exchange *x, const char *name,
                           const char *value, tnf_error *e)
{
    size_t i = auth->n;
    if (i == sizeof auth->line / sizeof *auth->line)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "too many headers");
    int n = snprintf(auth->line[i], sizeof auth->line[i], "%s: %s", name, value);
    if (n < 0 || (size_t)n >= sizeof auth->line[i] || strpbrk(value, "\r\n"))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the credentials are too long, or not text");
    tnf_exchange_header(x, auth->line[i]);
    auth->n++;
    return TNF_OK;
}

/* The value of the request header "Name: ", or NULL. */
static const char *header_value(const tnf_exchange *x, const char *name)
{
    for (unsigned i = 0; i < x->nheaders; i++)
        if (strncmp(x->headers[i], name, strlen(name)) == 0)
            return x->headers[i] + strlen(name);
    return NULL;
}

static void body_hash(char out[65], const tnf_exchange *x)
{
    uint8_t digest[32];
    tnf_sha256 s;
    tnf_sha256_begin(&s);
    if (x->nbody)
        tnf_sha256_update(&s, x->body, x->nbody);
    tnf_sha256_end(&s, digest);
    *tnf_hex_put(out, digest, 32) = 0;
}

/* host;[range;][x-amz-checksum-mode;]x-amz-content-sha256;x-amz-date[;x-amz-security-token] */
static tnf_status authorize_s3(const tnf_place *p, tnf_session *s, tnf_exchange *x,
                               tnf_auth_lines *auth, tnf_error *e)
{
    tnf_keys_aws keys;
    char host[300], range[120], sha[90], date[64], token[4200], hash[65], when[17], line[1024];
    const char *signed_[6], *asked = header_value(x, "Range: ");
    const char *mode = header_value(x, "x-amz-checksum-mode: ");
    size_t n = 0;
    TNF_TRY(tnf_find_keys(s, &keys, e));
    if (!keys.found)
        return TNF_OK;
    pthread_mutex_lock(&s->lock);
    int64_t now = (int64_t)time(NULL) + s->skew;
    pthread_mutex_unlock(&s->lock);
    char authority[TNF_URL_HOST + 8];
    tnf_url_authority(authority, sizeof authority, &x->url);
    body_hash(hash, x);
    tnf_amz_date(when, now);
    snprintf(host, sizeof host, "host:%s", authority);
    snprintf(range, sizeof range, "range:%s", asked ? asked : "");
    snprintf(sha, sizeof sha, "x-amz-content-sha256:%s", hash);
    snprintf(date, sizeof date, "x-amz-date:%s", when);
    snprintf(token, sizeof token, "x-amz-security-token:%s", keys.token);
    signed_[n++] = host;
    if (asked)
        signed_[n++] = range;
    if (mode)
        signed_[n++] = "x-amz-checksum-mode:ENABLED";
    signed_[n++] = sha;
    signed_[n++] = date;
    if (keys.token[0])
        signed_[n++] = token;
    tnf_signing how = { .method = x->method,
                        .url = &x->url,
                        .id = keys.id,
                        .secret = keys.secret,
                        .region = p->region,
                        .service = "s3",
                        .payload = hash,
                        .now = now,
                        .headers = signed_,
                        .nheaders = n };
    TNF_TRY(tnf_sigv4(line, sizeof line, &how, e));
    TNF_TRY(add_line(auth, x, "x-amz-content-sha256", hash, e));
    TNF_TRY(add_line(auth, x, "x-amz-date", when, e));
    if (keys.token[0])
        TNF_TRY(add_line(auth, x, "x-amz-security-token", keys.token, e));
    return add_line(auth, x, "Authorization", line, e);
}

static tnf_status authorize_bearer(tnf_session *s, tnf_service service, tnf_exchange *x,
                                   tnf_auth_lines *auth, tnf_error *e)
{
    char value[4200] = "Bearer ";
    tnf_find_bearer(s, service, value + 7, sizeof value - 7);
    return value[7] ? add_line(auth, x, "Authorization", value, e) : TNF_OK;
}

static tnf_status authorize_az(tnf_session *s, tnf_exchange *x, tnf_auth_lines *auth, tnf_error *e)
{
    const char *sas = s->how.anonymous ? NULL : tnf_setting("AZURE_STORAGE_SAS_TOKEN");
    TNF_TRY(add_line(auth, x, "x-ms-version", "2021-12-02", e));
    size_t n = strlen(x->url.query);
    if (strstr(x->url.query, "sig=") && !s->how.token)
        return TNF_OK;
    if (!sas || s->how.token)
        return authorize_bearer(s, TNF_AZ, x, auth, e);
    sas += *sas == '?';
    int put = snprintf(x->url.query + n, sizeof x->url.query - n, "%s%s", n ? "&" : "", sas);
    if (put < 0 || (size_t)put >= sizeof x->url.query - n || strpbrk(sas, " \r\n\t#"))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "AZURE_STORAGE_SAS_TOKEN is not a SAS token");
    return TNF_OK;
}

/* Adds the headers for this host from the lines "host: Name: value" of the file in
 * TENFOLD_HTTP_HEADER_FILE. */
static tnf_status authorize_by_file(const tnf_place *p, tnf_exchange *x, tnf_auth_lines *auth,
                                    tnf_error *e)
{
    const char *path = tnf_setting("TENFOLD_HTTP_HEADER_FILE");
    char line[4200], authority[TNF_URL_HOST + 8];
    FILE *f = path ? fopen(path, "re") : NULL;
    tnf_status status = TNF_OK;
    if (path && !f)
        return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET, "cannot open TENFOLD_HTTP_HEADER_FILE");
    tnf_url_authority(authority, sizeof authority, &p->url);
    size_t n = strlen(authority);
    while (f && status == TNF_OK && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = 0;
        char *name = line + n + 1, *colon;
        if (strncmp(line, authority, n) != 0 || line[n] != ':' ||
            !(colon = strchr(name += strspn(name, " \t"), ':')))
            continue;
        *colon = 0;
        status = add_line(auth, x, name, colon + 1 + strspn(colon + 1, " \t"), e);
    }
    if (f)
        (void)fclose(f);
    return status;
}

static tnf_status authorize_web(const tnf_place *p, tnf_session *s, tnf_exchange *x,
                                tnf_auth_lines *auth, tnf_error *e)
{
    char value[4200];
    x->netrc = s->how.netrc && !s->how.token && !s->how.anonymous;
    if (!s->how.token)
        return s->how.anonymous ? TNF_OK : authorize_by_file(p, x, auth, e);
    snprintf(value, sizeof value, "Bearer %s", s->how.token);
    return add_line(auth, x, "Authorization", value, e);
}

tnf_status tnf_place_authorize(const tnf_place *p, tnf_session *s, tnf_exchange *x,
                               tnf_auth_lines *auth, tnf_error *e)
{
    for (size_t i = 0; i < s->how.nheaders; i++)
        tnf_exchange_header(x, s->how.headers[i]);
    switch (p->service) {
    case TNF_S3:
        return authorize_s3(p, s, x, auth, e);
    case TNF_GS:
    case TNF_HUB:
        return authorize_bearer(s, p->service, x, auth, e);
    case TNF_AZ:
        return authorize_az(s, x, auth, e);
    default:
        return authorize_web(p, s, x, auth, e);
    }
}

/* ---------------------------------------------------------------- refusals */

/* Advice for a refusal, as the end of a sentence. */
static const char *refusal_advice(const tnf_place *p, tnf_session *s, int status)
{
    if (status != 401 && status != 403)
        return "";
    pthread_mutex_lock(&s->lock);
    bool keys = s->keys.found, token = s->bearer.text[0] != 0 || s->how.token;
    pthread_mutex_unlock(&s->lock);
    switch (p->service) {
    case TNF_S3:
        return keys ? ""
                    : "; no credentials were sent, because none were found (set AWS_ACCESS_KEY_ID "
                      "…)";
    case TNF_HUB:
        return token ? "; the token gives no access"
                     : "; no token was sent, because none was found (set HF_TOKEN)";
    case TNF_GS:
        return token ? "" : "; no token was sent (set GOOGLE_OAUTH_ACCESS_TOKEN)";
    case TNF_AZ:
        return token ? "; the identity of this machine has no access"
                     : "; set AZURE_STORAGE_SAS_TOKEN to a signature";
    default:
        return status != 401  ? ""
               : s->how.netrc ? "; .netrc has no password for this host, or a wrong one"
                              : "; set TENFOLD_HTTP_HEADER_FILE to a file with a header for this "
                                "host, or use a password of .netrc with -o netrc=yes";
    }
}

/* The service's own error code: <Code> of S3, x-error-code of the Hub. */
static void find_code(char *out, size_t room, const tnf_answer *a)
{
    tnf_str code;
    out[0] = 0;
    if (a->code[0])
        (void)tnf_excerpt(out, room, a->code, strlen(a->code));
    else if (tnf_xml_text(a->excerpt, a->nexcerpt, "Code", &code))
        (void)tnf_excerpt(out, room, code.p, code.n);
}

tnf_status tnf_place_refused(const tnf_place *p, tnf_session *s, const tnf_exchange *x,
                             tnf_error *e)
{
    const tnf_answer *a = &x->answer;
    char code[64], begin[120];
    tnf_status status = a->status == 404 || a->status == 410 ? TNF_ENOTFOUND : TNF_ENET;
    find_code(code, sizeof code, a);
    const char *words = a->status == 401   ? "requires credentials (401)"
                        : a->status == 403 ? "denies access (403)"
                        : a->status == 404 ? "has no such file (404)"
                        : a->status == 410 ? "no longer has this file (410)"
                        : a->status == 429 ? "gets too many requests (429)"
                                           : NULL;
    if (words) {
        (void)tnf_fail(e, status, TNF_NO_OFFSET, "%s %s%s%s%s", TNF_VISIBLE(x->url.host), words,
                       code[0] ? ": " : "", code, refusal_advice(p, s, a->status));
    } else {
        (void)tnf_excerpt(begin, sizeof begin, a->excerpt, a->nexcerpt < 200 ? a->nexcerpt : 200);
        const char *text = code[0] ? code : begin;
        (void)tnf_fail(e, status, TNF_NO_OFFSET, "%s answers %d%s%s", TNF_VISIBLE(x->url.host),
                       a->status, text[0] ? ": " : "", text);
    }
    if (e)
        e->sys = a->status;
    return status;
}
