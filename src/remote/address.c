/* SPDX-License-Identifier: MIT */
/* Recognises URLs, and shows them without secrets. This file is part of every library, since even
 * a library without network support names URLs in its messages.
 *
 *   https://name:password@host/path/of/it?query#fragment
 *           └ not shown ┘                └ not shown ──
 */
#include "base/str.h"
#include "remote/list.h"
#include "remote/url.h"

#include <string.h>

size_t tnf_url_scheme(const char *text, const char *scheme)
{
    size_t n = strlen(scheme);
    if (strlen(text) < n || !tnf_str_alike(text, scheme, n))
        return 0;
    return strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

bool tnf_is_remote(const char *path)
{
    static const char *const schemes[] = {
        "http", "https", "s3", "gs", "az", "abfs", "abfss", "hf"
    };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (tnf_url_scheme(path, schemes[i]))
            return true;
    return false;
}

bool tnf_is_url(const char *path)
{
    return path && tnf_is_remote(path);
}

/* The length of "scheme://" at the beginning of a text, or 0. */
static size_t any_scheme(const char *text)
{
    size_t n = strcspn(text, ":/?#@");
    return n > 0 && strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

/* Is there a colon among n bytes that does not begin a port? Colons of "[an IPv6 address]" do not
 * count. */
static bool has_password(const char *p, size_t n)
{
    const char *end = memchr(p, ']', n), *colon = end && *p == '[' ? end : p;
    colon = memchr(colon, ':', n - (size_t)(colon - p));
    return colon && strspn(colon + 1, "0123456789") < n - (size_t)(colon + 1 - p);
}

/* The length of "name:password@" after a scheme. A password may contain a character that should
 * have been encoded and seems to end the host. In other schemes than http, a name without a
 * password is part of the address: abfs://container@account. */
static size_t secret_before_host(const char *p, bool web)
{
    size_t n = strcspn(p, "/?#");
    if (!memchr(p, '@', n))
        n = has_password(p, n) ? strlen(p) : 0;
    while (n > 0 && p[n - 1] != '@')
        n--;
    return web || memchr(p, ':', n) ? n : 0;
}

size_t tnf_show_url(char *out, size_t n, const char *url)
{
    const char *text = url ? url : "";
    size_t scheme = any_scheme(text), skip = 0, end = strlen(text);
    if (scheme) {
        bool web = tnf_url_scheme(text, "http") || tnf_url_scheme(text, "https");
        skip = secret_before_host(text + scheme, web);
        end = scheme + skip + strcspn(text + scheme + skip, "?#");
    }
    size_t length = end - skip;
    for (size_t i = 0; i + 1 < n && i < length; i++)
        out[i] = text[i < scheme ? i : i + skip];
    if (n > 0)
        out[length < n ? length : n - 1] = 0;
    return length;
}
