/* SPDX-License-Identifier: MIT */
#include "remote/place.h"

#include "remote/credentials.h"

#include <stdio.h>
#include <string.h>

static tnf_status bad_url(tnf_error *e, const char *form)
{
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the URL is not of the form %s", form);
}

/* Splits "bucket/key"; the key may be empty. */
static tnf_status split_bucket(tnf_place *p, const char **key, const char *text, const char *form,
                               tnf_error *e)
{
    size_t n = strcspn(text, "/");
    if (n == 0 || n >= sizeof p->bucket || strcspn(text, "?#@:%") < n)
        return bad_url(e, form);
    memcpy(p->bucket, text, n);
    p->bucket[n] = 0;
    *key = text + n + (text[n] == '/');
    return TNF_OK;
}

/* Parses an origin ("https://host:port[/path]") without its last slash. */
static tnf_status set_origin(tnf_url *u, const char *origin, tnf_error *e)
{
    TNF_TRY(tnf_url_parse(u, origin, e));
    size_t n = strlen(u->path);
    while (n > 0 && u->path[n - 1] == '/')
        u->path[--n] = 0;
    u->query[0] = 0;
    return TNF_OK;
}

/* ---------------------------------------------------------------------- s3 */

static const char *s3_endpoint(const tnf_session *s)
{
    const char *end = s->how.endpoint;
    end = end ? end : tnf_setting("AWS_ENDPOINT_URL_S3");
    return end ? end : tnf_setting("AWS_ENDPOINT_URL");
}

static tnf_status set_s3_host(tnf_place *p, const char *endpoint, tnf_error *e)
{
    char origin[400];
    p->path_style = endpoint != NULL || strchr(p->bucket, '.') != NULL;
    if (endpoint)
        return set_origin(&p->url, endpoint, e);
    int n = p->path_style
                ? snprintf(origin, sizeof origin, "https://s3.%s.amazonaws.com", p->region)
                : snprintf(origin, sizeof origin, "https://%s.s3.%s.amazonaws.com", p->bucket,
                           p->region);
    if (n < 0 || (size_t)n >= sizeof origin)
        return bad_url(e, "s3://BUCKET/KEY");
    return set_origin(&p->url, origin, e);
}

/* The key is raw; "?versionId=" after it becomes the query. */
static tnf_status parse_s3(tnf_place *p, const tnf_session *s, const char *text, tnf_error *e)
{
    const char *key, *version = strstr(text, "?versionId=");
    TNF_TRY(split_bucket(p, &key, text, "s3://BUCKET/KEY", e));
    size_t n = version ? (size_t)(version - key) : strlen(key);
    p->service = TNF_S3;
    tnf_find_region(s, p->region, sizeof p->region);
    TNF_TRY(set_s3_host(p, s3_endpoint(s), e));
    if (p->path_style) {
        TNF_TRY(tnf_url_add_path(&p->url, "/", 1, e));
        TNF_TRY(tnf_url_add_path(&p->url, p->bucket, strlen(p->bucket), e));
    }
    TNF_TRY(tnf_url_add_path(&p->url, "/", 1, e));
    p->root = strlen(p->url.path);
    TNF_TRY(tnf_url_add_path(&p->url, key, n, e));
    p->folder = n == 0 || key[n - 1] == '/';
    return version ? tnf_url_add_query(&p->url, "versionId", version + 11, e) : TNF_OK;
}

tnf_status tnf_place_move(tnf_place *p, const char *region, tnf_error *e)
{
    tnf_place old = *p;
    if (strlen(region) >= sizeof p->region || strpbrk(region, "/.@:?#%"))
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "the server gave an invalid region");
    memcpy(p->region, region, strlen(region) + 1);
    if (strstr(old.url.host, ".amazonaws.com") == NULL)
        return TNF_OK; /* a custom endpoint: only the signature changes */
    TNF_TRY(set_s3_host(p, NULL, e));
    memcpy(p->url.path, old.url.path, sizeof p->url.path);
    memcpy(p->url.query, old.url.query, sizeof p->url.query);
    return TNF_OK;
}

/* ---------------------------------------------------------------- gs and az */

static tnf_status add_bucket_path(tnf_place *p, const char *key, tnf_error *e)
{
    TNF_TRY(tnf_url_add_path(&p->url, "/", 1, e));
    TNF_TRY(tnf_url_add_path(&p->url, p->bucket, strlen(p->bucket), e));
    TNF_TRY(tnf_url_add_path(&p->url, "/", 1, e));
    p->root = strlen(p->url.path);
    size_t n = strlen(key);
    p->folder = n == 0 || key[n - 1] == '/';
    return tnf_url_add_path(&p->url, key, n, e);
}

static tnf_status parse_gs(tnf_place *p, const char *text, tnf_error *e)
{
    const char *key, *emulator = tnf_setting("STORAGE_EMULATOR_HOST");
    char origin[400] = "https://storage.googleapis.com";
    p->service = TNF_GS;
    TNF_TRY(split_bucket(p, &key, text, "gs://BUCKET/OBJECT", e));
    if (emulator)
        snprintf(origin, sizeof origin, "%s%s", strstr(emulator, "://") ? "" : "http://", emulator);
    TNF_TRY(set_origin(&p->url, origin, e));
    return add_bucket_path(p, key, e);
}

static const char blob_host[] = ".blob.core.windows.net";

/* Splits "container@ACCOUNT.dfs.core.windows.net/path", which is Hadoop's form, into
 * "container/path" and the account. Returns false for other forms. */
static bool split_account(char *plain, char *account, size_t room, const char *text)
{
    size_t n = strcspn(text, "/"), at = strcspn(text, "@");
    const char *host = text + at + 1;
    size_t name = at < n ? strcspn(host, "./") : 0;
    if (name == 0 || name >= room || strlen(text) >= TNF_URL_PATH ||
        (strncmp(host + name, ".dfs.core.windows.net", 21) != 0 &&
         strncmp(host + name, blob_host, 22) != 0) ||
        strcspn(host, "/") != name + (host[name + 1] == 'd' ? 21u : 22u))
        return false;
    memcpy(account, host, name);
    account[name] = 0;
    snprintf(plain, TNF_URL_PATH, "%.*s%s", (int)at, text, text + n);
    return true;
}

static tnf_status parse_az(tnf_place *p, const char *text, tnf_error *e)
{
    const char *key, *account = tnf_setting("AZURE_STORAGE_ACCOUNT");
    const char *emulator = tnf_setting("AZURE_STORAGE_ENDPOINT");
    char origin[400], plain[TNF_URL_PATH], named[64];
    p->service = TNF_AZ;
    if (split_account(plain, named, sizeof named, text)) {
        text = plain;
        account = named;
    }
    TNF_TRY(split_bucket(p, &key, text, "az://CONTAINER/BLOB", e));
    if (!account && !emulator)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "az:// needs the account's name in AZURE_STORAGE_ACCOUNT");
    snprintf(origin, sizeof origin, "https://%s%s", account ? account : "", blob_host);
    TNF_TRY(set_origin(&p->url, emulator ? emulator : origin, e));
    return add_bucket_path(p, key, e);
}

/* The https URL of a blob is complete; the container is the first piece of the path. */
static void take_blob_url(tnf_place *p)
{
    size_t host = strlen(p->url.host), end = sizeof blob_host - 1;
    if (host <= end || strcmp(p->url.host + host - end, blob_host) != 0)
        return;
    size_t n = strcspn(p->url.path + 1, "/");
    p->service = TNF_AZ;
    p->root = n > 0 && p->url.path[1 + n] == '/' ? n + 2 : 0;
}

/* --------------------------------------------------------------------- hub */

static tnf_status set_hub_path(tnf_place *p, tnf_error *e)
{
    const char *end = tnf_setting("HF_ENDPOINT");
    size_t n = strlen(p->inside);
    TNF_TRY(set_origin(&p->url, end ? end : "https://huggingface.co", e));
    TNF_TRY(tnf_url_add_path(&p->url, "/", 1, e));
    TNF_TRY(tnf_url_add_path(&p->url, p->repo, strlen(p->repo), e));
    TNF_TRY(tnf_url_add_path(&p->url, "/resolve/", 9, e));
    /* A revision with slashes (refs/pr/1) is one piece of the path. */
    for (const char *r = p->revision; *r; r++) {
        if (*r != '/') {
            TNF_TRY(tnf_url_add_path(&p->url, r, 1, e));
            continue;
        }
        size_t at = strlen(p->url.path);
        if (at + 4 > sizeof p->url.path)
            return bad_url(e, "hf://ORG/NAME[@REVISION]/PATH");
        memcpy(p->url.path + at, "%2F", 4);
    }
    TNF_TRY(tnf_url_add_path(&p->url, "/", 1, e));
    p->folder = n == 0 || p->inside[n - 1] == '/';
    return tnf_url_add_path(&p->url, p->inside, n, e);
}

static tnf_status parse_hub(tnf_place *p, const char *text, tnf_error *e)
{
    static const char form[] = "hf://[datasets/|spaces/]ORG/NAME[@REVISION]/PATH";
    size_t kind = strncmp(text, "datasets/", 9) == 0 ? 9 : strncmp(text, "spaces/", 7) == 0 ? 7 : 0;
    size_t org = strcspn(text + kind, "/");
    const char *name = text + kind + org + 1;
    if (org == 0 || !text[kind + org])
        return bad_url(e, form);
    size_t n = strcspn(name, "/@"), repo = (size_t)(name - text) + n;
    const char *path = name + n;
    if (n == 0 || repo >= sizeof p->repo)
        return bad_url(e, form);
    memcpy(p->repo, text, repo);
    p->repo[repo] = 0;
    memcpy(p->revision, "main", 5);
    if (*path == '@') {
        /* refs/pr/N and refs/convert/X are revisions with slashes. */
        size_t r = strcspn(path + 1, "/");
        if (strncmp(path + 1, "refs/", 5) == 0) {
            r += 1 + strcspn(path + 2 + r, "/");
            r += path[1 + r] == '/' ? 1 + strcspn(path + 2 + r, "/") : 0;
        }
        if (r == 0 || r >= sizeof p->revision)
            return bad_url(e, form);
        memcpy(p->revision, path + 1, r);
        p->revision[r] = 0;
        path += 1 + r;
    }
    path += *path == '/';
    if (strlen(path) >= sizeof p->inside)
        return bad_url(e, form);
    memcpy(p->inside, path, strlen(path) + 1);
    p->service = TNF_HUB;
    return set_hub_path(p, e);
}

tnf_status tnf_place_pin(tnf_place *p, const char *commit, tnf_error *e)
{
    size_t n = strlen(commit);
    for (size_t i = 0; i < n; i++)
        if (!((commit[i] >= '0' && commit[i] <= '9') || (commit[i] >= 'a' && commit[i] <= 'f')))
            return TNF_OK; /* not a commit */
    if (n == 0 || n >= sizeof p->revision)
        return TNF_OK;
    memcpy(p->revision, commit, n + 1);
    return set_hub_path(p, e);
}

/* ---------------------------------------------------------------- any form */

tnf_status tnf_place_parse(tnf_place *out, tnf_session *s, const char *text, tnf_error *e)
{
    size_t n;
    memset(out, 0, sizeof *out);
    if ((n = tnf_url_scheme(text, "s3")))
        return parse_s3(out, s, text + n, e);
    if ((n = tnf_url_scheme(text, "gs")))
        return parse_gs(out, text + n, e);
    if ((n = tnf_url_scheme(text, "az")) || (n = tnf_url_scheme(text, "abfs")) ||
        (n = tnf_url_scheme(text, "abfss")))
        return parse_az(out, text + n, e);
    if ((n = tnf_url_scheme(text, "hf")))
        return parse_hub(out, text + n, e);
    TNF_TRY(tnf_url_parse(&out->url, text, e));
    out->folder = out->url.path[strlen(out->url.path) - 1] == '/';
    take_blob_url(out);
    return TNF_OK;
}

tnf_status tnf_place_sibling(tnf_place *out, const tnf_place *near, const char *name, size_t n,
                             tnf_error *e)
{
    *out = *near;
    if (near->service == TNF_HUB) {
        char *slash = strrchr(out->inside, '/');
        size_t at = slash ? (size_t)(slash + 1 - out->inside) : 0;
        if (at + n >= sizeof out->inside)
            return bad_url(e, "hf://ORG/NAME/PATH");
        memcpy(out->inside + at, name, n);
        out->inside[at + n] = 0;
        return set_hub_path(out, e);
    }
    strrchr(out->url.path, '/')[1] = 0;
    if (near->service != TNF_AZ) /* a version is for one object, but a SAS for a container */
        out->url.query[0] = 0;
    out->folder = n == 0 || name[n - 1] == '/';
    return tnf_url_add_path(&out->url, name, n, e);
}

bool tnf_place_trusts(const tnf_place *p, const tnf_url *to)
{
    static const char hub[] = "huggingface.co", other[] = "hf.co";
    if (tnf_url_same_host(&p->url, to))
        return true;
    bool from = strcmp(p->url.host, hub) == 0 || strcmp(p->url.host, other) == 0;
    return p->service == TNF_HUB && from && to->secure && to->port == 0 &&
           (strcmp(to->host, hub) == 0 || strcmp(to->host, other) == 0);
}
