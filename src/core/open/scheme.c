/* SPDX-License-Identifier: MIT */
/* URL schemes that the program has registered: the only state here that calls share. An entry never
 * changes and is never removed. */
#include "base/sized.h"
#include "core/core.h"
#include "remote/list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MOST_SCHEMES 32u
#define MOST_NAME    31u

struct scheme {
    char name[MOST_NAME + 1];
    tnf_scheme_open_fn open;
    void *ctx;
};

static struct scheme schemes[MOST_SCHEMES];
static atomic_uint nschemes; /* those below it are complete */
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* As RFC 3986 requires, in lower case. */
static bool is_name(const char *name)
{
    size_t n = strnlen(name, MOST_NAME + 1);
    bool good = n >= 2 && n <= MOST_NAME && name[0] >= 'a' && name[0] <= 'z';
    return good && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == n;
}

static const struct scheme *find_scheme(const char *url)
{
    const char *colon = strstr(url, "://");
    size_t n = colon ? (size_t)(colon - url) : 0;
    for (unsigned i = 0, all = n ? atomic_load(&nschemes) : 0; i < all; i++)
        if (strlen(schemes[i].name) == n && memcmp(schemes[i].name, url, n) == 0)
            return &schemes[i];
    return NULL;
}

bool tnf_scheme_has(const char *path)
{
    return find_scheme(path) != NULL;
}

tnf_status tnf_scheme_source(tnf_source **out, const char *url, tnf_error *e)
{
    const struct scheme *s = find_scheme(url);
    *out = NULL;
    if (!s)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "no handler is registered for this URL scheme");
    tnf_status status;
    TNF_CALL(status, e, s->open, s->ctx, out, url);
    if (status != TNF_OK) {
        *out = NULL;
        return status;
    }
    if (!*out)
        return tnf_fail(
            e, TNF_EINVAL, TNF_NO_OFFSET,
            "the function of the custom URL scheme returned neither a source nor an error");
    (*out)->remote = true; /* files next to it are found by their URLs */
    return TNF_OK;
}

static tnf_status add_scheme(const tnf_scheme *s, tnf_error *e)
{
    char url[MOST_NAME + 4];
    unsigned n = atomic_load(&nschemes);
    size_t length = strlen(s->name);
    memcpy(url, s->name, length);
    memcpy(url + length, "://", 4);
    if (tnf_is_remote(url) || find_scheme(url))
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "the scheme '%s' already exists", s->name);
    if (n == MOST_SCHEMES)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "there are more than %u schemes",
                        MOST_SCHEMES);
    memcpy(schemes[n].name, s->name, length + 1);
    schemes[n].open = s->open;
    schemes[n].ctx = s->ctx;
    atomic_store(&nschemes, n + 1);
    return TNF_OK;
}

tnf_status tnf_scheme_add(const tnf_scheme *scheme, tnf_error *e)
{
    TNF_TRY(tnf_need(scheme, "scheme", e));
    tnf_scheme s;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_scheme, &s, scheme, e));
    if (!s.open || !s.name || !is_name(s.name))
        return tnf_fail(
            e, TNF_EINVAL, TNF_NO_OFFSET,
            "a scheme needs the function `open`, and a name of 2 to %u lower-case letters, "
            "digits, '+', '-' and '.' that begins with a letter",
            MOST_NAME);
    pthread_mutex_lock(&adding);
    tnf_status status = add_scheme(&s, e);
    pthread_mutex_unlock(&adding);
    return status;
}
