/* SPDX-License-Identifier: MIT */
#include "remote/url.h"

#include "base/hex.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static tnf_status too_long(tnf_error *e)
{
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the URL is too long");
}

/* Copies n bytes of an encoded text; refuses characters that a request must not contain. */
static tnf_status copy_text(char *out, size_t room, const char *p, size_t n, tnf_error *e)
{
    if (n >= room)
        return too_long(e);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f)
            return tnf_fail(
                e, TNF_EINVAL, TNF_NO_OFFSET,
                "a URL must not contain spaces or control characters; write a space as %%20");
    memcpy(out, p, n);
    out[n] = 0;
    return TNF_OK;
}

/* Copies a host name, in lower case, or [an IPv6 address]. */
static tnf_status copy_host(tnf_url *u, const char *p, size_t n, tnf_error *e)
{
    bool bad = n == 0 || n >= sizeof u->host, bracket = n > 2 && p[0] == '[' && p[n - 1] == ']';
    for (size_t i = bracket; i < n - (bracket ? 1u : 0u) && !bad; i++)
        bad = bracket ? tnf_hex_digit(p[i]) < 0 && p[i] != ':' && p[i] != '.'
                      : !is_unreserved(p[i]) || p[i] == '~';
    if (bad)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the URL has no valid host name");
    for (size_t i = 0; i < n; i++)
        u->host[i] = tnf_lower_case(p[i]);
    u->host[n] = 0;
    return TNF_OK;
}

static tnf_status copy_port(tnf_url *u, const char *p, size_t n, tnf_error *e)
{
    unsigned port = 0;
    for (size_t i = 0; i < n; i++) {
        port = p[i] >= '0' && p[i] <= '9' && port <= 65535 ? port * 10 + (unsigned)(p[i] - '0')
                                                           : 65536;
    }
    if (port > 65535 || (n > 0 && port == 0))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the URL has no valid port");
    u->port = port == (u->secure ? 443u : 80u) ? 0 : (uint16_t)port;
    return TNF_OK;
}

/* Parses host[:port], of n bytes. */
static tnf_status take_authority(tnf_url *u, const char *p, size_t n, tnf_error *e)
{
    if (memchr(p, '@', n))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the URL contains a name or a password, which would be shown; put it into "
                        "the file of TENFOLD_HTTP_HEADER_FILE instead");
    size_t host = n;
    while (host > 0 && p[host - 1] >= '0' && p[host - 1] <= '9')
        host--;
    if (host == 0 || p[host - 1] != ':')
        host = n + 1;
    TNF_TRY(copy_host(u, p, host - 1, e));
    return copy_port(u, p + host, host <= n ? n - host : 0, e);
}

/* Parses [/path][?query][#fragment]. */
static tnf_status take_path(tnf_url *u, const char *p, tnf_error *e)
{
    size_t path = strcspn(p, "?#"), query = 0;
    if (p[path] == '?')
        query = strcspn(p + path + 1, "#");
    if (path == 0)
        memcpy(u->path, "/", 2);
    else
        TNF_TRY(copy_text(u->path, sizeof u->path, p, path, e));
    return copy_text(u->query, sizeof u->query, p + path + (query ? 1 : 0), query, e);
}

tnf_status tnf_url_parse(tnf_url *out, const char *text, tnf_error *e)
{
    size_t secure = tnf_url_scheme(text, "https"), plain = tnf_url_scheme(text, "http");
    if (!secure && !plain)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "this is not a URL of http or https");
    const char *p = text + secure + plain;
    size_t n = strcspn(p, "/?#");
    out->secure = secure != 0;
    TNF_TRY(take_authority(out, p, n, e));
    return take_path(out, p + n, e);
}

/* Removes "." and ".." from a path, as a browser does. */
static void plain_path(char *path)
{
    char *to = path;
    for (const char *p = path; *p;) {
        size_t n = 1 + strcspn(p + 1, "/");
        bool up = n == 3 && p[1] == '.' && p[2] == '.', here = n == 2 && p[1] == '.';
        bool last = !p[n];
        while (up && to > path && *--to != '/')
            ;
        if (!up && !here) {
            memmove(to, p, n);
            to += n;
        }
        p += n;
        if (last && (up || here))
            *to++ = '/';
    }
    *to = 0;
}

tnf_status tnf_url_follow(tnf_url *out, const tnf_url *from, const char *location, tnf_error *e)
{
    const char *colon = strstr(location, "://");
    size_t word = strcspn(location, "/?#:");
    if (colon && location + word == colon)
        return tnf_url_parse(out, location, e);
    *out = *from;
    if (location[0] == '/' && location[1] == '/') {
        size_t n = strcspn(location + 2, "/?#");
        TNF_TRY(take_authority(out, location + 2, n, e));
        return take_path(out, location + 2 + n, e);
    }
    if (location[word] == ':' && word > 0)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "the server redirects to an invalid web address");
    if (location[0] != '/') {
        char whole[TNF_URL_PATH + TNF_URL_QUERY];
        size_t keep = location[0] == '?' ? strlen(from->path)
                                         : (size_t)(strrchr(from->path, '/') + 1 - from->path);
        int n = snprintf(whole, sizeof whole, "%.*s%s", (int)keep, from->path, location);
        if (n < 0 || (size_t)n >= sizeof whole)
            return too_long(e);
        TNF_TRY(take_path(out, whole, e));
    } else {
        TNF_TRY(take_path(out, location, e));
    }
    plain_path(out->path);
    return TNF_OK;
}

static tnf_status add_encoded(char *out, size_t room, const char *raw, size_t n, bool slashes,
                              tnf_error *e)
{
    size_t at = strlen(out);
    for (size_t i = 0; i < n; i++) {
        bool plain = is_unreserved(raw[i]) || (slashes && raw[i] == '/');
        if (at + 4 > room)
            return too_long(e);
        if (raw[i] == 0)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a name must not contain a NUL");
        if (plain) {
            out[at++] = raw[i];
        } else {
            tnf_hex_percent(out + at, raw[i]);
            at += 3;
        }
    }
    out[at] = 0;
    return TNF_OK;
}

tnf_status tnf_url_add_path(tnf_url *u, const char *raw, size_t n, tnf_error *e)
{
    return add_encoded(u->path, sizeof u->path, raw, n, true, e);
}

void tnf_url_decode(char *out, size_t room, const char *path)
{
    size_t at = 0;
    for (; *path && at + 1 < room; path++) {
        int hi = path[0] == '%' ? tnf_hex_digit(path[1]) : -1;
        int lo = hi >= 0 ? tnf_hex_digit(path[2]) : -1;
        out[at++] = lo >= 0 ? (char)(hi << 4 | lo) : *path;
        path += lo >= 0 ? 2 : 0;
    }
    out[at] = 0;
}

tnf_status tnf_url_add_query(tnf_url *u, const char *key, const char *value, tnf_error *e)
{
    size_t n = strlen(u->query);
    if (n + 2 >= sizeof u->query)
        return too_long(e);
    if (n > 0)
        memcpy(u->query + n, "&", 2);
    TNF_TRY(add_encoded(u->query, sizeof u->query, key, strlen(key), false, e));
    n = strlen(u->query);
    if (n + 2 >= sizeof u->query)
        return too_long(e);
    memcpy(u->query + n, "=", 2);
    return add_encoded(u->query, sizeof u->query, value, strlen(value), false, e);
}

bool tnf_url_query_value(const tnf_url *u, const char *key, char *out, size_t room)
{
    size_t k = strlen(key);
    for (const char *p = u->query; *p;) {
        size_t n = strcspn(p, "&");
        if (n > k && p[k] == '=' && memcmp(p, key, k) == 0 && n - k - 1 < room) {
            memcpy(out, p + k + 1, n - k - 1);
            out[n - k - 1] = 0;
            return true;
        }
        p += n + (p[n] == '&');
    }
    return false;
}

bool tnf_url_same_host(const tnf_url *a, const tnf_url *b)
{
    return a->secure == b->secure && a->port == b->port && strcmp(a->host, b->host) == 0;
}

void tnf_url_authority(char *out, size_t room, const tnf_url *u)
{
    if (u->port)
        snprintf(out, room, "%s:%u", u->host, (unsigned)u->port);
    else
        snprintf(out, room, "%s", u->host);
}

void tnf_url_text(char out[TNF_URL_TEXT], const tnf_url *u)
{
    char authority[TNF_URL_HOST + 8];
    tnf_url_authority(authority, sizeof authority, u);
    snprintf(out, TNF_URL_TEXT, "%s://%s%s%s%s", u->secure ? "https" : "http", authority, u->path,
             *u->query ? "?" : "", u->query);
}

const char *tnf_url_shown(char *out, size_t room, const tnf_url *u)
{
    char authority[TNF_URL_HOST + 8], whole[TNF_URL_HOST + TNF_URL_PATH + 8];
    tnf_url_authority(authority, sizeof authority, u);
    snprintf(whole, sizeof whole, "%s%s", authority, u->path);
    return tnf_visible(out, room, whole);
}

/* -------------------------------------------------------------- addresses */

static bool private_four(const uint8_t *b)
{
    return b[0] == 0 || b[0] == 10 || b[0] == 127 || b[0] >= 224 ||
           (b[0] == 172 && b[1] >= 16 && b[1] < 32) || (b[0] == 192 && b[1] == 168) ||
           (b[0] == 169 && b[1] == 254) || (b[0] == 100 && b[1] >= 64 && b[1] < 128) ||
           (b[0] == 192 && b[1] == 0 && b[2] == 0) || (b[0] == 198 && (b[1] & 0xfe) == 18);
}

bool tnf_address_private(const uint8_t *b, size_t n)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff },
                         nat[12] = { 0, 0x64, 0xff, 0x9b };
    static const uint8_t zeros[15];
    if (n == 4)
        return private_four(b);
    if (memcmp(b, mapped, 12) == 0 || memcmp(b, nat, 12) == 0)
        return private_four(b + 12);
    return (memcmp(b, zeros, 15) == 0 && b[15] <= 1) || (b[0] & 0xfe) == 0xfc || b[0] == 0xff ||
           (b[0] == 0xfe && (b[1] & 0x80));
}

bool tnf_host_private(const char *text)
{
    uint8_t bytes[16];
    char inner[64];
    size_t n = strlen(text);
    if (inet_pton(AF_INET, text, bytes) == 1)
        return tnf_address_private(bytes, 4);
    if (n > 2 && n < sizeof inner && text[0] == '[') {
        memcpy(inner, text + 1, n - 2);
        inner[n - 2] = 0;
        text = inner;
    }
    return inet_pton(AF_INET6, text, bytes) == 1 && tnf_address_private(bytes, 16);
}
