/* SPDX-License-Identifier: MIT */
/* Remote objects as sources. A file and its shards share a session. */
#include "base/pool.h"
#include "base/sized.h"
#include "io/fs.h"
#include "remote/cache.h"
#include "remote/credentials.h"
#include "remote/list.h"
#include "remote/web.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GAP    (1u << 20) /* ranges with a smaller gap are read together */
#define BATCH  (8u << 20) /* most bytes of one request for several ranges */
#define DIRECT (1u << 20) /* a range of this length gets its own request */

/* ------------------------------------------------------------------ reading */

static tnf_status read_spool(const tnf_remote *f, uint64_t offset, void *dst, size_t n,
                             tnf_error *e)
{
    size_t got = 0;
    TNF_TRY(tnf_fs_read_at(f->spool, dst, n, offset, &got, e));
    return got == n ? TNF_OK
                    : tnf_fail(e, TNF_ETRUNCATED, offset + got, "the temporary file is truncated");
}

static tnf_status read_without_ranges(const tnf_remote *f, uint64_t offset, void *dst, size_t n,
                                      tnf_error *e)
{
    if (f->spool >= 0)
        return read_spool(f, offset, dst, n, e);
    if (offset + n > f->nhead)
        return tnf_fail(e, TNF_ENET, offset,
                        "the server does not support ranges (the file has %llu bytes); download it "
                        "first, or use -o stream=yes",
                        (unsigned long long)f->pin.total);
    memcpy(dst, f->head + offset, n);
    return TNF_OK;
}

static tnf_status web_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    tnf_web *w = ctx;
    if (w->remote.no_ranges)
        return read_without_ranges(&w->remote, offset, dst, n, e);
    return tnf_cache_read(&w->cache, offset, dst, n, e);
}

/* The ranges first, first + 1 … of one request. */
struct batch {
    size_t first, n;
};

struct many {
    tnf_web *web;
    tnf_budget budget;
    const tnf_range *ranges;
    const struct batch *batches;
};

static tnf_status read_batch(void *ctx, size_t i, tnf_error *e)
{
    struct many *m = ctx;
    const tnf_range *r = m->ranges + m->batches[i].first;
    size_t count = m->batches[i].n;
    tnf_remote *f = &m->web->remote;
    if (count == 1 && r->n >= BATCH)
        return tnf_remote_get_long(f, r->offset, r->dst, r->n, e);
    if (count == 1 && tnf_cache_peek(&m->web->cache, r->offset, r->dst, r->n))
        return TNF_OK;
    if (count == 1)
        return tnf_remote_get(f, &m->budget, r->offset, r->dst, r->n, e);
    uint64_t at = r->offset;
    size_t n = (size_t)(r[count - 1].offset + r[count - 1].n - at);
    uint8_t *bytes = tnf_alloc(&f->session->alloc, n);
    if (!bytes)
        return tnf_no_memory("reading", e);
    tnf_status status = tnf_cache_peek(&m->web->cache, at, bytes, n)
                            ? TNF_OK
                            : tnf_remote_get(f, &m->budget, at, bytes, n, e);
    for (size_t k = 0; k < count && status == TNF_OK; k++)
        memcpy(r[k].dst, bytes + (size_t)(r[k].offset - at), r[k].n);
    tnf_free(&f->session->alloc, bytes, n);
    return status;
}

/* Joins neighbours; returns the number of batches. */
static size_t join_ranges(struct batch *out, const tnf_range *r, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (r[i].n == 0)
            continue;
        struct batch *b = count ? &out[count - 1] : NULL;
        const tnf_range *last = b ? &r[b->first + b->n - 1] : NULL;
        uint64_t end = last ? last->offset + last->n : 0;
        bool near = last && b->first + b->n == i && r[i].offset >= end && r[i].offset - end < GAP &&
                    r[i].n < DIRECT && r[b->first].n < DIRECT &&
                    r[i].offset + r[i].n - r[b->first].offset <= BATCH;
        if (near)
            b->n++;
        else
            out[count++] = (struct batch) { i, 1 };
    }
    return count;
}

static tnf_status web_read_many(void *ctx, const tnf_range *ranges, size_t n, tnf_error *e)
{
    tnf_web *w = ctx;
    const tnf_allocator *a = &w->remote.session->alloc;
    unsigned most = w->remote.session->how.connections;
    if (w->remote.no_ranges || n == 1) {
        for (size_t i = 0; i < n; i++)
            TNF_TRY(web_read(ctx, ranges[i].offset, ranges[i].dst, ranges[i].n, e));
        return TNF_OK;
    }
    struct batch *batches = n < SIZE_MAX / sizeof *batches ? tnf_alloc(a, n * sizeof *batches)
                                                           : NULL;
    if (!batches)
        return tnf_no_memory("reading", e);
    struct many m = { .web = w, .ranges = ranges, .batches = batches };
    atomic_init(&m.budget.left, TNF_RETRIES);
    size_t count = join_ranges(batches, ranges, n);
    tnf_status status = tnf_pool_run(count < most ? (unsigned)count : most, count, read_batch, &m,
                                     e);
    tnf_free(a, batches, n * sizeof *batches);
    return status;
}

static void web_advise(void *ctx, uint64_t offset, uint64_t n, tnf_advice advice)
{
    tnf_web *w = ctx;
    if (advice == TNF_WILL_NEED && !w->remote.no_ranges)
        tnf_cache_announce(&w->cache, offset, n);
}

static void web_close(void *ctx)
{
    tnf_web *w = ctx;
    for (tnf_expected *x = w->expected, *next; x; x = next) {
        next = x->next;
        tnf_source_close(x->source);
        tnf_free(&w->remote.session->alloc, x, sizeof *x);
    }
    tnf_allocator a = w->remote.session->alloc;
    tnf_cache_end(&w->cache);
    pthread_mutex_destroy(&w->lock);
    tnf_remote_end(&w->remote);
    tnf_free(&a, w, sizeof *w);
}

/* ------------------------------------------------------------------ opening */

static const tnf_source_ops web_ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = web_read,
                                        .read_many = web_read_many,
                                        .advise = web_advise,
                                        .close = web_close };

static tnf_web *web_of(const tnf_source *s)
{
    return s && s->ops.read_at == web_read ? s->ctx : NULL;
}

tnf_remote *tnf_web_remote(const tnf_source *s)
{
    tnf_web *w = web_of(s);
    return w ? &w->remote : NULL;
}

/* Uses a file in the local cache of huggingface_hub, if it has the server's digest:
 *
 *   HF_HOME/hub/models--ORG--NAME/blobs/ETAG
 */
static void use_local_blob(tnf_remote *f)
{
    char home[3000], repo[300], path[4096];
    const char *etag = f->linked_etag[0] ? f->linked_etag : f->pin.etag;
    size_t n = strlen(etag), at = 0;
    bool model = strncmp(f->place.repo, "datasets/", 9) != 0 &&
                 strncmp(f->place.repo, "spaces/", 7) != 0;
    struct stat st;
    for (const char *p = f->place.repo; *p && at + 3 < sizeof repo; p++) {
        repo[at++] = *p == '/' ? '-' : *p;
        if (*p == '/')
            repo[at++] = '-';
    }
    repo[at] = 0;
    if (n < 42 || etag[0] != '"' || strcspn(etag + 1, "\"/.") != n - 2 ||
        !tnf_hub_home(home, sizeof home))
        return;
    const char *cache = tnf_setting("HF_HUB_CACHE");
    int m = snprintf(path, sizeof path, "%s%s/%s%s/blobs/%.*s", cache ? cache : home,
                     cache ? "" : "/hub", model ? "models--" : "", repo, (int)n - 2, etag + 1);
    int fd = m > 0 && (size_t)m < sizeof path ? tnf_fs_open(path, O_RDONLY, 0) : -1;
    if (fd < 0)
        return;
    if (f->spool < 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size == f->pin.total) {
        f->spool = fd;
        f->no_ranges = f->local = true;
        return;
    }
    close(fd);
}

tnf_status tnf_web_open(tnf_source **out, tnf_session *s, const tnf_place *place, tnf_error *e)
{
    *out = NULL;
    tnf_web *w = tnf_alloc0(&s->alloc, sizeof *w);
    if (!w)
        return tnf_no_memory("a connection", e);
    tnf_status status = tnf_remote_begin(&w->remote, s, place, e);
    if (status != TNF_OK) {
        tnf_free(&s->alloc, w, sizeof *w);
        return status;
    }
    if (place->service == TNF_HUB)
        use_local_blob(&w->remote);
    tnf_cache_begin(&w->cache, &w->remote);
    pthread_mutex_init(&w->lock, NULL);
    status = tnf_source_new(out, &web_ops, w, w->remote.pin.total, &s->alloc, e);
    if (status != TNF_OK) {
        web_close(w);
        return status;
    }
    (*out)->network = true;
    (*out)->remote = true;
    (*out)->version = w->remote.pin.etag[0] ? w->remote.pin.etag : NULL;
    (*out)->map_why = "it is read over the network";
    return TNF_OK;
}

tnf_status tnf_remote_open(tnf_source **out, const char *url, const tnf_url_options *how,
                           const tnf_allocator *alloc, tnf_error *e)
{
    tnf_session *s;
    tnf_place place;
    *out = NULL;
    TNF_TRY(tnf_session_new(&s, how, alloc, e));
    tnf_status status = tnf_place_parse(&place, s, url, e);
    if (status == TNF_OK && place.folder)
        status = tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                          "the URL names a directory; give the URL of a file");
    if (status == TNF_OK)
        status = tnf_web_open(out, s, &place, e);
    tnf_session_drop(s);
    return status;
}

tnf_status tnf_source_url(tnf_source **out, const char *url, const tnf_url_options *options,
                          tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(url, "url", e));
    return tnf_remote_open(out, url, options, NULL, e);
}

/* ----------------------------------------------------------------- siblings */

/* Takes a source that tnf_remote_expect() has already opened. */
static tnf_source *take_expected(tnf_web *w, tnf_str name)
{
    tnf_source *found = NULL;
    pthread_mutex_lock(&w->lock);
    for (tnf_expected **p = &w->expected; *p && !found; p = &(*p)->next) {
        tnf_expected *x = *p;
        if (strlen(x->name) != name.n || memcmp(x->name, name.p, name.n) != 0)
            continue;
        found = x->source;
        *p = x->next;
        tnf_free(&w->remote.session->alloc, x, sizeof *x);
        break;
    }
    pthread_mutex_unlock(&w->lock);
    return found;
}

/* The place of a file in the same folder, and of the same commit, if the service has commits. */
static tnf_status sibling_place(tnf_place *out, tnf_web *w, tnf_str name, tnf_error *e)
{
    pthread_mutex_lock(&w->remote.lock);
    tnf_status status = tnf_place_sibling(out, &w->remote.place, name.p, name.n, e);
    pthread_mutex_unlock(&w->remote.lock);
    return status;
}

tnf_status tnf_remote_sibling(tnf_source **out, const tnf_source *near, tnf_str name, tnf_error *e)
{
    tnf_web *w = web_of(near);
    tnf_place place;
    *out = NULL;
    if (!w)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "the other file is not remote");
    *out = take_expected(w, name);
    if (*out)
        return TNF_OK;
    TNF_TRY(sibling_place(&place, w, name, e));
    return tnf_web_open(out, w->remote.session, &place, e);
}

struct expecting {
    tnf_web *web;
    const tnf_str *names;
};

/* Errors are ignored: opening the file later reports them. */
static tnf_status expect_one(void *ctx, size_t i, tnf_error *e)
{
    struct expecting *x = ctx;
    tnf_str name = x->names[i];
    tnf_expected *entry;
    tnf_source *source;
    tnf_place place;
    (void)e;
    if (name.n >= sizeof entry->name || sibling_place(&place, x->web, name, NULL) != TNF_OK ||
        tnf_web_open(&source, x->web->remote.session, &place, NULL) != TNF_OK)
        return TNF_OK;
    entry = tnf_alloc0(&x->web->remote.session->alloc, sizeof *entry);
    if (!entry) {
        tnf_source_close(source);
        return TNF_OK;
    }
    memcpy(entry->name, name.p, name.n);
    entry->source = source;
    pthread_mutex_lock(&x->web->lock);
    entry->next = x->web->expected;
    x->web->expected = entry;
    pthread_mutex_unlock(&x->web->lock);
    return TNF_OK;
}

void tnf_remote_expect(const tnf_source *near, const tnf_str *names, size_t n)
{
    tnf_web *w = web_of(near);
    struct expecting x = { w, names };
    if (w && n > 1)
        (void)tnf_pool_run(w->remote.session->how.connections, n, expect_one, &x, NULL);
}

/* --------------------------------------------------------------------- URLs */

char *tnf_remote_shown(tnf_arena *arena, const char *url)
{
    bool web = tnf_url_scheme(url, "http") || tnf_url_scheme(url, "https");
    const char *version = web ? NULL : strstr(url, "?versionId=");
    size_t n = web ? strcspn(url, "?#") : version ? (size_t)(version - url) : strlen(url);
    return tnf_arena_str(arena, url, n);
}

char *tnf_remote_join(tnf_arena *arena, const char *folder, const char *name)
{
    bool web = tnf_url_scheme(folder, "http") || tnf_url_scheme(folder, "https");
    size_t n = web ? strcspn(folder, "?#") : strlen(folder), m = strlen(name);
    size_t slash = n > 0 && folder[n - 1] == '/' ? 0 : 1, rest = strlen(folder + n);
    char *out = tnf_arena_alloc(arena, n + slash + m + rest + 1);
    if (!out)
        return NULL;
    memcpy(out, folder, n);
    out[n] = '/';
    memcpy(out + n + slash, name, m);
    memcpy(out + n + slash + m, folder + n, rest + 1);
    return out;
}

bool tnf_remote_traffic(tnf_traffic *out, const tnf_source *source)
{
    const tnf_web *w = web_of(source);
    if (!w)
        return false;
    out->requests = atomic_load(&w->remote.session->requests);
    out->bytes = atomic_load(&w->remote.session->bytes);
    out->retries = atomic_load(&w->remote.session->retries);
    return true;
}

/* ------------------------------------------------------------------ options */

static bool parse_yes(const char *value, bool *out)
{
    *out = strcmp(value, "yes") == 0;
    return *out || strcmp(value, "no") == 0;
}

/* Is this a network option? *ok: its value is valid. */
static bool set_option(tnf_url_options *how, const tnf_option *o, bool *ok)
{
    char *end;
    *ok = true;
    if (strcmp(o->key, "anonymous") == 0) {
        *ok = parse_yes(o->value, &how->anonymous);
    } else if (strcmp(o->key, "private") == 0) {
        *ok = parse_yes(o->value, &how->private_hosts);
    } else if (strcmp(o->key, "stream") == 0) {
        *ok = parse_yes(o->value, &how->stream);
    } else if (strcmp(o->key, "netrc") == 0) {
        *ok = parse_yes(o->value, &how->netrc);
    } else if (strcmp(o->key, "region") == 0) {
        how->region = o->value;
    } else if (strcmp(o->key, "endpoint") == 0) {
        how->endpoint = o->value;
    } else if (strcmp(o->key, "connections") == 0) {
        unsigned long n = strtoul(o->value, &end, 10);
        *ok = *o->value && !*end && n > 0 && n <= TNF_MAX_CONNECTIONS;
        how->connections = (unsigned)n;
    } else {
        return false;
    }
    return true;
}

tnf_status tnf_remote_how(tnf_url_options *how, const tnf_url_options *given, tnf_option *options,
                          size_t *noptions, tnf_error *e)
{
    size_t kept = 0;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_url_options, how, given, e));
    for (size_t i = 0; i < *noptions; i++) {
        bool ok;
        TNF_TRY(tnf_need(options[i].key, "options", e));
        TNF_TRY(tnf_need(options[i].value, "options", e));
        if (!set_option(how, &options[i], &ok))
            options[kept++] = options[i];
        else if (!ok)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "option %s: invalid value '%s'",
                            options[i].key, TNF_VISIBLE(options[i].value));
    }
    *noptions = kept;
    return TNF_OK;
}
