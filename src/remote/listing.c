/* SPDX-License-Identifier: MIT */
/* What lies in a folder of a bucket or of a repository.
 *
 *   s3, gs   GET /?list-type=2&prefix=…&delimiter=/   <Contents><Key>…</Key></Contents> …
 *   hf       GET /api/models/ORG/NAME/tree/REV/path   [{"type":"file","path":…,"size":…}, …]
 */
#include "remote/listing.h"
#include "base/buf.h"
#include "remote/list.h"
#include "remote/way.h"
#include "wire/json.h"
#include "wire/xml.h"

#include <string.h>

#define MOST_BYTES (64u << 20) /* of a listing */
#define MOST_PAGES 1000u

static bool on_body(void *ctx, const void *bytes, size_t n)
{
    tnf_buf_put(ctx, bytes, n);
    return ((tnf_buf *)ctx)->status == TNF_OK;
}

/* The whole answer to a GET. */
static tnf_status get_text(tnf_session *s, tnf_place *place, tnf_buf *out, tnf_error *e)
{
    tnf_exchange x = { .method = "GET", .take = on_body, .ctx = out };
    out->n = 0;
    TNF_TRY(tnf_far_ask(s, place, &x, e));
    return tnf_buf_status(out, "listing", e);
}

/* ---------------------------------------------------------------------- s3 */

struct page {
    char prefix[TNF_URL_PATH]; /* raw */
    tnf_listed_fn take;
    void *ctx;
    char token[2048];
};

static bool is_named(tnf_str s, const char *name)
{
    return s.n == strlen(name) && memcmp(s.p, name, s.n) == 0;
}

static tnf_status bad_listing(tnf_error *e)
{
    return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "the server's listing is not what it should be");
}

static tnf_status take_key(struct page *p, tnf_str text, uint64_t size, tnf_error *e)
{
    char key[2048];
    size_t n = tnf_xml_unescape(key, sizeof key, text), skip = strlen(p->prefix);
    if (n == SIZE_MAX || n < skip || memcmp(key, p->prefix, skip) != 0)
        return bad_listing(e);
    return key[skip] ? p->take(p->ctx, key + skip, size, e) : TNF_OK;
}

static uint64_t number_of(tnf_str s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && n < UINT64_MAX / 16; i++)
        n = n * 10 + (uint64_t)(s.p[i] - '0');
    return n;
}

static tnf_status take_page(struct page *p, const tnf_buf *text, tnf_error *e)
{
    tnf_xml x;
    tnf_str piece, name = { "", 0 }, key = { "", 0 };
    uint64_t size = 0;
    bool inside = false;
    p->token[0] = 0;
    tnf_xml_init(&x, (const char *)text->p, text->n);
    for (tnf_xml_kind kind; (kind = tnf_xml_next(&x, &piece)) != TNF_XML_END;) {
        if (kind == TNF_XML_OPEN) {
            name = piece;
            inside = inside || is_named(piece, "Contents");
        } else if (kind == TNF_XML_TEXT && inside && is_named(name, "Key")) {
            key = piece;
        } else if (kind == TNF_XML_TEXT && inside && is_named(name, "Size")) {
            size = number_of(piece);
        } else if (kind == TNF_XML_TEXT && is_named(name, "NextContinuationToken")) {
            if (tnf_xml_unescape(p->token, sizeof p->token, piece) == SIZE_MAX)
                return bad_listing(e);
        } else if (kind == TNF_XML_CLOSE) {
            name = (tnf_str) { "", 0 };
            if (!is_named(piece, "Contents"))
                continue;
            inside = false;
            TNF_TRY(take_key(p, key, size, e));
        }
    }
    return x.bad ? bad_listing(e) : TNF_OK;
}

/* The raw key that an encoded path stands for: what we have encoded ourselves. */
static void decode_key(char *out, size_t room, const char *path)
{
    size_t at = 0;
    for (; *path && at + 1 < room; path++) {
        unsigned hi = (unsigned char)path[0] == '%' ? (unsigned)path[1] : 0;
        if (!hi || !path[2]) {
            out[at++] = *path;
            continue;
        }
        unsigned lo = (unsigned)path[2];
        out[at++] = (char)((hi >= 'A' ? hi - 'A' + 10 : hi - '0') << 4 |
                           (lo >= 'A' ? lo - 'A' + 10 : lo - '0'));
        path += 2;
    }
    out[at] = 0;
}

static tnf_status list_bucket(tnf_session *s, const tnf_place *folder, bool deep, struct page *p,
                              tnf_buf *text, tnf_error *e)
{
    decode_key(p->prefix, sizeof p->prefix, folder->url.path + folder->root);
    p->token[0] = 0;
    for (unsigned page = 0; page < MOST_PAGES; page++) {
        tnf_place root = *folder;
        root.url.path[folder->root] = 0;
        root.url.query[0] = 0;
        if (p->token[0])
            TNF_TRY(tnf_url_add_query(&root.url, "continuation-token", p->token, e));
        if (!deep)
            TNF_TRY(tnf_url_add_query(&root.url, "delimiter", "/", e));
        TNF_TRY(tnf_url_add_query(&root.url, "list-type", "2", e));
        TNF_TRY(tnf_url_add_query(&root.url, "prefix", p->prefix, e));
        TNF_TRY(get_text(s, &root, text, e));
        TNF_TRY(take_page(p, text, e));
        if (!p->token[0])
            return TNF_OK;
    }
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the folder has too many files");
}

/* --------------------------------------------------------------------- hub */

/* [{"type": "file", "path": "a/b", "size": 3, "lfs": {…}}, …] */
static tnf_status take_tree(struct page *p, const tnf_buf *text, const tnf_session *s, tnf_error *e)
{
    tnf_arena arena;
    tnf_json j;
    tnf_value v = { 0 };
    tnf_status status = TNF_OK;
    size_t skip = strlen(p->prefix);
    tnf_arena_init(&arena, &s->alloc, 256u << 20);
    tnf_json_init(&j, text->p, text->n, 0, &arena, 16, NULL);
    if (!tnf_json_value(&j, &v) || tnf_json_end(&j) != TNF_OK || v.kind != TNF_ARRAY)
        status = bad_listing(e);
    for (size_t i = 0; i < v.n && status == TNF_OK; i++) {
        const tnf_value *type = tnf_value_get(&v.as.items[i], "type");
        const tnf_value *path = tnf_value_get(&v.as.items[i], "path");
        const tnf_value *size = tnf_value_get(&v.as.items[i], "size");
        if (!type || type->kind != TNF_STRING || !path || path->kind != TNF_STRING)
            status = bad_listing(e);
        else if (type->n == 4 && memcmp(type->as.s, "file", 4) == 0 && path->n > skip &&
                 memcmp(path->as.s, p->prefix, skip) == 0)
            status = p->take(p->ctx, path->as.s + skip,
                             size && size->kind == TNF_INT ? (uint64_t)size->as.i : 0, e);
    }
    tnf_arena_free(&arena);
    return status;
}

static tnf_status list_repo(tnf_session *s, const tnf_place *folder, bool deep, struct page *p,
                            tnf_buf *text, tnf_error *e)
{
    tnf_place api = *folder;
    char *resolve = strstr(api.url.path, "/resolve/");
    bool model = strncmp(folder->repo, "datasets/", 9) != 0 &&
                 strncmp(folder->repo, "spaces/", 7) != 0;
    size_t before = strlen(api.url.path) - (resolve ? strlen(resolve) : 0) - strlen(folder->repo) -
                    1;
    char inside[1024];
    size_t n = strlen(folder->inside);
    if (!resolve)
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "not a place of the hub");
    memcpy(inside, folder->inside, n + 1);
    while (n > 0 && inside[n - 1] == '/')
        inside[--n] = 0;
    api.url.path[before] = 0;
    TNF_TRY(tnf_url_add_path(&api.url, model ? "/api/models/" : "/api/", model ? 12 : 5, e));
    TNF_TRY(tnf_url_add_path(&api.url, folder->repo, strlen(folder->repo), e));
    TNF_TRY(tnf_url_add_path(&api.url, "/tree/", 6, e));
    const char *revision = strstr(folder->url.path, "/resolve/") + 9; /* encoded */
    size_t r = strcspn(revision, "/"), at = strlen(api.url.path);
    if (at + r >= sizeof api.url.path)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the URL is too long");
    memcpy(api.url.path + at, revision, r);
    api.url.path[at + r] = 0;
    if (n > 0)
        TNF_TRY(tnf_url_add_path(&api.url, "/", 1, e));
    TNF_TRY(tnf_url_add_path(&api.url, inside, n, e));
    if (deep)
        TNF_TRY(tnf_url_add_query(&api.url, "recursive", "true", e));
    memcpy(p->prefix, folder->inside, sizeof folder->inside);
    TNF_TRY(get_text(s, &api, text, e));
    return take_tree(p, text, s, e);
}

tnf_status tnf_list_folder(tnf_session *s, const tnf_place *folder, bool deep, bool *listed,
                           tnf_listed_fn take, void *ctx, tnf_error *e)
{
    struct page p = { .take = take, .ctx = ctx };
    tnf_buf text;
    tnf_status status = TNF_OK;
    *listed = folder->service == TNF_S3 || folder->service == TNF_GS || folder->service == TNF_HUB;
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

/* By the text alone: a slash at its end, or no path within the bucket or repository. */
bool tnf_remote_folder(const char *url)
{
    size_t hub = tnf_url_scheme(url, "hf"), n = strlen(url);
    size_t bucket = tnf_url_scheme(url, "s3") + tnf_url_scheme(url, "gs") +
                    tnf_url_scheme(url, "az") + tnf_url_scheme(url, "abfs");
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
