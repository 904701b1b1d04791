/* SPDX-License-Identifier: MIT */
/* Lists the files in a directory of a bucket or of a repository.
 *
 *   s3, gs   GET /?list-type=2&prefix=…&delimiter=/   <Contents><Key>…</Key></Contents> …
 *   az       GET /container?comp=list&prefix=…        <Blob><Name>…</Name></Blob> …
 *   hf       GET /api/models/ORG/NAME/tree/REV/path   [{"type":"file","path":…,"size":…}, …]
 */
#include "remote/listing.h"
#include "base/buf.h"
#include "base/str.h"
#include "remote/list.h"
#include "remote/redirect.h"
#include "remote/web.h"
#include "wire/json.h"
#include "wire/xml.h"

#include <string.h>

#define MOST_BYTES (64u << 20) /* the largest listing */
#define MOST_PAGES 1000u

static bool on_body(void *ctx, const void *bytes, size_t n)
{
    tnf_buf_put(ctx, bytes, n);
    return ((tnf_buf *)ctx)->status == TNF_OK;
}

/* Gets the complete answer to a GET. */
static tnf_status get_text(tnf_session *s, tnf_place *place, tnf_exchange *x, tnf_buf *out,
                           tnf_error *e)
{
    *x = (tnf_exchange) { .method = "GET", .take = on_body, .ctx = out };
    out->n = 0;
    TNF_TRY(tnf_place_request(s, place, x, e));
    return tnf_buf_status(out, "the listing", e);
}

static tnf_status too_many(tnf_error *e)
{
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the directory has too many files");
}

/* ---------------------------------------------------------------------- s3 */

static tnf_status bad_listing(tnf_error *e)
{
    return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "the server sent a malformed listing");
}

static tnf_status take_key(tnf_page *p, tnf_str text, uint64_t size, tnf_error *e)
{
    char key[2048];
    size_t n = tnf_xml_unescape(key, sizeof key, text), skip = strlen(p->prefix);
    if (n == SIZE_MAX || n < skip || memcmp(key, p->prefix, skip) != 0)
        return bad_listing(e);
    bool marker = size == 0 && n > 0 && key[n - 1] == '/'; /* it stands for a directory */
    return n == skip || marker ? TNF_OK : p->take(p->ctx, key + skip, size, e);
}

/* The XML element names of a service. */
struct words {
    const char *entry, *key, *size, *next;
};

static const struct words bucket_words = { "Contents", "Key", "Size", "NextContinuationToken" };
static const struct words blob_words = { "Blob", "Name", "Content-Length", "NextMarker" };

/* An entry of a listing that is being read. */
struct entry {
    tnf_str key;
    uint64_t size;
    bool inside, folder;
};

/* Takes the text of a relevant element. */
static void take_text(struct entry *x, const struct words *w, tnf_str name, tnf_str text)
{
    const char *p = text.p;
    if (!x->inside)
        return;
    if (tnf_str_is(name, w->key) && x->key.n == 0)
        x->key = text;
    else if (tnf_str_is(name, w->size))
        x->size = tnf_take_digits(&p, p + text.n);
    else if (tnf_str_is(name, "ResourceType")) /* az with real directories */
        x->folder = tnf_str_is(text, "directory");
}

static tnf_status read_page(tnf_page *p, const struct words *w, const char *text, size_t n,
                            tnf_error *e)
{
    tnf_xml x;
    tnf_str piece, name = { "", 0 };
    struct entry entry = { .key = { "", 0 } };
    bool cut = false;
    p->token[0] = 0;
    tnf_xml_init(&x, text, n);
    for (tnf_xml_kind kind; (kind = tnf_xml_next(&x, &piece)) != TNF_XML_END;) {
        if (kind == TNF_XML_OPEN) {
            name = piece;
            if (tnf_str_is(piece, w->entry))
                entry = (struct entry) { .key = { "", 0 }, .inside = true };
        } else if (kind == TNF_XML_TEXT && tnf_str_is(name, w->next)) {
            if (tnf_xml_unescape(p->token, sizeof p->token, piece) == SIZE_MAX)
                return bad_listing(e);
        } else if (kind == TNF_XML_TEXT && tnf_str_is(name, "IsTruncated")) {
            cut = tnf_str_is(piece, "true");
        } else if (kind == TNF_XML_TEXT) {
            take_text(&entry, w, name, piece);
        } else {
            name = (tnf_str) { "", 0 };
            if (!tnf_str_is(piece, w->entry))
                continue;
            entry.inside = false;
            if (!entry.folder)
                TNF_TRY(take_key(p, entry.key, entry.size, e));
        }
    }
    return x.bad || (cut && !p->token[0]) ? bad_listing(e) : TNF_OK;
}

tnf_status tnf_page_bucket(tnf_page *p, const char *text, size_t n, tnf_error *e)
{
    return read_page(p, &bucket_words, text, n, e);
}

tnf_status tnf_page_blobs(tnf_page *p, const char *text, size_t n, tnf_error *e)
{
    return read_page(p, &blob_words, text, n, e);
}

/* Makes the request for a page of s3 or gs. */
static tnf_status ask_bucket(tnf_url *u, const tnf_page *p, bool deep, tnf_error *e)
{
    u->query[0] = 0;
    if (p->token[0])
        TNF_TRY(tnf_url_add_query(u, "continuation-token", p->token, e));
    if (!deep)
        TNF_TRY(tnf_url_add_query(u, "delimiter", "/", e));
    TNF_TRY(tnf_url_add_query(u, "list-type", "2", e));
    return tnf_url_add_query(u, "prefix", p->prefix, e);
}

/* The same for az, where a signature in the URL is valid for the container. */
static tnf_status ask_container(tnf_url *u, const tnf_page *p, bool deep, tnf_error *e)
{
    u->path[strlen(u->path) - 1] = 0; /* the path of the container has no slash at its end */
    TNF_TRY(tnf_url_add_query(u, "restype", "container", e));
    TNF_TRY(tnf_url_add_query(u, "comp", "list", e));
    TNF_TRY(tnf_url_add_query(u, "prefix", p->prefix, e));
    if (!deep)
        TNF_TRY(tnf_url_add_query(u, "delimiter", "/", e));
    return p->token[0] ? tnf_url_add_query(u, "marker", p->token, e) : TNF_OK;
}

static tnf_status list_bucket(tnf_session *s, const tnf_place *folder, bool deep, tnf_page *p,
                              tnf_buf *text, tnf_error *e)
{
    tnf_exchange x;
    bool az = folder->service == TNF_AZ;
    tnf_url_decode(p->prefix, sizeof p->prefix, folder->url.path + folder->root);
    p->token[0] = 0;
    for (unsigned page = 0; page < MOST_PAGES; page++) {
        tnf_place root = *folder;
        root.url.path[folder->root] = 0;
        TNF_TRY(az ? ask_container(&root.url, p, deep, e) : ask_bucket(&root.url, p, deep, e));
        TNF_TRY(get_text(s, &root, &x, text, e));
        TNF_TRY(az ? tnf_page_blobs(p, (const char *)text->p, text->n, e)
                   : tnf_page_bucket(p, (const char *)text->p, text->n, e));
        if (!p->token[0])
            return TNF_OK;
    }
    return too_many(e);
}

/* --------------------------------------------------------------------- hub */

/* [{"type": "file", "path": "a/b", "size": 3, "lfs": {…}}, …] */
tnf_status tnf_page_tree(tnf_page *p, const char *text, size_t n, const tnf_allocator *alloc,
                         tnf_error *e)
{
    tnf_arena arena;
    tnf_json j;
    tnf_value v = { 0 };
    tnf_status status = TNF_OK;
    size_t skip = strlen(p->prefix);
    tnf_arena_init(&arena, alloc, 256u << 20);
    tnf_json_init(&j, text, n, 0, &arena, 16, NULL);
    if (!tnf_json_value(&j, &v) || tnf_json_end(&j) != TNF_OK || v.kind != TNF_ARRAY)
        status = bad_listing(e);
    for (size_t i = 0; i < v.n && status == TNF_OK; i++) {
        const tnf_value *type = tnf_value_get(&v.as.items[i], "type");
        const tnf_value *path = tnf_value_get(&v.as.items[i], "path");
        const tnf_value *size = tnf_value_get(&v.as.items[i], "size");
        if (!type || type->kind != TNF_STRING || !path || path->kind != TNF_STRING ||
            (path->n && memchr(path->as.s, 0, path->n)))
            status = bad_listing(e);
        else if (tnf_value_is(type, "file") && path->n > skip &&
                 memcmp(path->as.s, p->prefix, skip) == 0)
            status = p->take(p->ctx, path->as.s + skip,
                             size && size->kind == TNF_INT ? (uint64_t)size->as.i : 0, e);
    }
    tnf_arena_free(&arena);
    return status;
}

/* The API address of a directory's listing. */
static tnf_status tree_place(tnf_place *api, const tnf_place *folder, bool deep, tnf_error *e)
{
    bool model = strncmp(folder->repo, "datasets/", 9) != 0 &&
                 strncmp(folder->repo, "spaces/", 7) != 0;
    char inside[1024];
    size_t n = strlen(folder->inside);
    *api = *folder;
    const char *resolve = strstr(api->url.path, "/resolve/");
    if (!resolve)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "not a URL of a file on the hub");
    size_t before = strlen(api->url.path) - strlen(resolve) - strlen(folder->repo) - 1;
    memcpy(inside, folder->inside, n + 1);
    while (n > 0 && inside[n - 1] == '/')
        inside[--n] = 0;
    api->url.path[before] = 0;
    TNF_TRY(tnf_url_add_path(&api->url, model ? "/api/models/" : "/api/", model ? 12 : 5, e));
    TNF_TRY(tnf_url_add_path(&api->url, folder->repo, strlen(folder->repo), e));
    TNF_TRY(tnf_url_add_path(&api->url, "/tree/", 6, e));
    const char *revision = strstr(folder->url.path, "/resolve/") + 9; /* encoded */
    size_t r = strcspn(revision, "/"), at = strlen(api->url.path);
    if (at + r >= sizeof api->url.path)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the URL is too long");
    memcpy(api->url.path + at, revision, r);
    api->url.path[at + r] = 0;
    if (n > 0)
        TNF_TRY(tnf_url_add_path(&api->url, "/", 1, e));
    TNF_TRY(tnf_url_add_path(&api->url, inside, n, e));
    return deep ? tnf_url_add_query(&api->url, "recursive", "true", e) : TNF_OK;
}

/* The next page, which the answer names. It must be on the same host, since the request contains
 * the token. */
static tnf_status next_page(tnf_place *api, const tnf_answer *a, tnf_error *e)
{
    tnf_url next;
    if (!a->next[0] || tnf_url_follow(&next, &api->url, a->next, NULL) != TNF_OK ||
        strcmp(next.host, api->url.host) != 0)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "the server's listing continues at an unusable URL");
    /* Behind a proxy, the server may give a URL without TLS or with another port. */
    memcpy(api->url.path, next.path, sizeof next.path);
    memcpy(api->url.query, next.query, sizeof next.query);
    return TNF_OK;
}

/* Gets all pages: a page has at most about a thousand files. */
static tnf_status list_repo(tnf_session *s, const tnf_place *folder, bool deep, tnf_page *p,
                            tnf_buf *text, tnf_error *e)
{
    tnf_place api;
    tnf_exchange x;
    TNF_TRY(tree_place(&api, folder, deep, e));
    memcpy(p->prefix, folder->inside, sizeof folder->inside);
    for (unsigned page = 0; page < MOST_PAGES; page++) {
        TNF_TRY(get_text(s, &api, &x, text, e));
        TNF_TRY(tnf_page_tree(p, (const char *)text->p, text->n, &s->alloc, e));
        if (!x.answer.more)
            return TNF_OK;
        TNF_TRY(next_page(&api, &x.answer, e));
    }
    return too_many(e);
}

tnf_status tnf_list_folder(tnf_session *s, const tnf_place *folder, bool deep, bool *listed,
                           tnf_listed_fn take, void *ctx, tnf_error *e)
{
    tnf_page p = { .take = take, .ctx = ctx };
    tnf_buf text;
    tnf_status status = TNF_OK;
    *listed = folder->service != TNF_WEB && (folder->service == TNF_HUB || folder->root > 0);
    tnf_buf_init(&text, &s->alloc, MOST_BYTES);
    if (folder->service == TNF_HUB)
        status = list_repo(s, folder, deep, &p, &text, e);
    else if (*listed)
        status = list_bucket(s, folder, deep, &p, &text, e);
    tnf_buf_free(&text);
    return status;
}

/* --------------------------------------------------------------- for core/ */

struct names {
    tnf_remote_name_fn take;
    void *ctx;
};

static tnf_status pass_name(void *ctx, const char *name, uint64_t size, tnf_error *e)
{
    struct names *n = ctx;
    (void)size;
    return strchr(name, '/') ? TNF_OK : n->take(n->ctx, name, e);
}

tnf_status tnf_remote_names(const char *url, const tnf_url_options *how, bool *listed,
                            tnf_remote_name_fn take, void *ctx, tnf_error *e)
{
    tnf_session *s;
    tnf_place place;
    struct names n = { take, ctx };
    TNF_TRY(tnf_session_new(&s, how, NULL, e));
    tnf_status status = tnf_place_parse(&place, s, url, e);
    if (status == TNF_OK)
        status = tnf_list_folder(s, &place, false, listed, pass_name, &n, e);
    tnf_session_drop(s);
    return status;
}

tnf_status tnf_remote_list(const tnf_source *near, bool *listed, tnf_remote_file_fn take, void *ctx,
                           tnf_error *e)
{
    tnf_remote *f = tnf_web_remote(near);
    tnf_place folder;
    *listed = false;
    if (!f)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "a directory of a file that is not remote");
    pthread_mutex_lock(&f->lock);
    tnf_status status = tnf_place_sibling(&folder, &f->place, "", 0, e);
    pthread_mutex_unlock(&f->lock);
    return status == TNF_OK ? tnf_list_folder(f->session, &folder, true, listed, take, ctx, e)
                            : status;
}

/* Decides by the text: it ends with a slash, or has no path within the bucket or repository. */
bool tnf_remote_folder(const char *url)
{
    size_t hub = tnf_url_scheme(url, "hf"), n = strlen(url);
    size_t bucket = tnf_url_scheme(url, "s3") + tnf_url_scheme(url, "gs") +
                    tnf_url_scheme(url, "az") + tnf_url_scheme(url, "abfs") +
                    tnf_url_scheme(url, "abfss");
    size_t web = tnf_url_scheme(url, "http") + tnf_url_scheme(url, "https");
    if (web)
        n = strcspn(url, "?#");
    if (n > 0 && url[n - 1] == '/')
        return true;
    if (bucket)
        return !strchr(url + bucket, '/');
    if (web)
        return !memchr(url + web, '/', n - web);
    const char *p = url + hub;
    p += strncmp(p, "datasets/", 9) == 0 ? 9 : strncmp(p, "spaces/", 7) == 0 ? 7 : 0;
    const char *name = strchr(p, '/'), *path = name ? strchr(name + 1, '/') : NULL;
    return hub && !path;
}
