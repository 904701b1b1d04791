/* SPDX-License-Identifier: MIT */
#include "remote/roles.h"

#include "base/arena.h"
#include "wire/json.h"
#include "wire/xml.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define METADATA "http://169.254.169.254"
#define LONGEST  (7 * 24 * 3600) /* the longest lifetime of a token, in seconds */

/* ----------------------------------------------------------------- answers */

static void keep_member(const tnf_value *map, const char *key, char *out, size_t room)
{
    const tnf_value *v = tnf_value_get(map, key);
    out[0] = 0;
    if (v && v->kind == TNF_STRING && v->n < room && !memchr(v->as.s, '\n', v->n) &&
        !memchr(v->as.s, 0, v->n)) {
        memcpy(out, v->as.s, v->n);
        out[v->n] = 0;
    }
}

/* {"AccessKeyId": …, "SecretAccessKey": …, "Token": …, "Expiration": …} */
bool tnf_role_parse(tnf_keys_aws *k, const tnf_allocator *alloc, const char *text, size_t n)
{
    tnf_arena arena;
    tnf_json j;
    tnf_value v;
    char end[32];
    tnf_arena_init(&arena, alloc, 1u << 20);
    tnf_json_init(&j, text, n, 0, &arena, 8, NULL);
    bool ok = tnf_json_value(&j, &v) && tnf_json_end(&j) == TNF_OK;
    if (ok) {
        keep_member(&v, "AccessKeyId", k->id, sizeof k->id);
        keep_member(&v, "SecretAccessKey", k->secret, sizeof k->secret);
        keep_member(&v, "Token", k->token, sizeof k->token);
        keep_member(&v, "Expiration", end, sizeof end);
        k->until = tnf_parse_stamp(end);
    }
    tnf_arena_free(&arena);
    return ok && k->id[0] && k->secret[0];
}

static bool keep_element(const char *text, size_t n, const char *name, char *out, size_t room)
{
    tnf_str value;
    out[0] = 0;
    if (tnf_xml_text(text, n, name, &value) && value.n < room &&
        tnf_xml_unescape(out, room, value) != SIZE_MAX && !strpbrk(out, "\r\n"))
        return out[0] != 0;
    out[0] = 0;
    return false;
}

/* <Credentials><AccessKeyId>…</AccessKeyId>…</Credentials> */
bool tnf_role_parse_sts(tnf_keys_aws *k, const char *text, size_t n)
{
    char end[32];
    bool ok = keep_element(text, n, "AccessKeyId", k->id, sizeof k->id) &&
              keep_element(text, n, "SecretAccessKey", k->secret, sizeof k->secret) &&
              keep_element(text, n, "SessionToken", k->token, sizeof k->token);
    (void)keep_element(text, n, "Expiration", end, sizeof end);
    k->until = tnf_parse_stamp(end);
    return ok;
}

/* {"access_token": …, "expires_in": 3599}; Azure writes the number as a string. */
bool tnf_role_parse_token(tnf_bearer *b, const tnf_allocator *alloc, const char *text, size_t n,
                          int64_t now)
{
    tnf_arena arena;
    tnf_json j;
    tnf_value v;
    char lasts[24] = "";
    long long seconds = 0;
    tnf_arena_init(&arena, alloc, 1u << 20);
    tnf_json_init(&j, text, n, 0, &arena, 8, NULL);
    bool ok = tnf_json_value(&j, &v) && tnf_json_end(&j) == TNF_OK;
    if (ok) {
        const tnf_value *number = tnf_value_get(&v, "expires_in");
        keep_member(&v, "access_token", b->text, sizeof b->text);
        keep_member(&v, "expires_in", lasts, sizeof lasts);
        seconds = number && number->kind == TNF_INT ? number->as.i : strtoll(lasts, NULL, 10);
    }
    tnf_arena_free(&arena);
    seconds = seconds < 0 ? 0 : seconds > LONGEST ? LONGEST : seconds;
    b->until = seconds ? now + seconds : 0;
    return ok && b->text[0];
}

/* ---------------------------------------------------------------- requests */

/* Gets a small answer from a service of this machine; returns false if it does not answer. */
static bool ask_local_service(tnf_session *s, tnf_exchange *x, const char *url, const char *method)
{
    x->method = method;
    x->quick = x->direct = true;
    if (tnf_url_parse(&x->url, url, NULL) != TNF_OK || tnf_exchange_run(s, x, NULL) != TNF_OK)
        return false;
    return x->code == TNF_CURLE_OK && x->answer.status == 200 &&
           x->answer.nexcerpt < sizeof x->answer.excerpt;
}

static const char *setting_or(const char *name, const char *other)
{
    const char *value = tnf_setting(name);
    return value ? value : other;
}

/* ------------------------------------------------------------------ Amazon */

/* Keys are sent unencrypted only within this machine and to the agents' own addresses. */
static bool may_ask_agent(const char *url)
{
    static const char *const agents[] = { "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
                                          "localhost", "[::1]" };
    tnf_url u;
    if (tnf_url_parse(&u, url, NULL) != TNF_OK)
        return false;
    for (size_t i = 0; i < sizeof agents / sizeof *agents; i++)
        if (strcmp(u.host, agents[i]) == 0)
            return true;
    return u.secure || (strncmp(u.host, "127.", 4) == 0 && tnf_host_private(u.host));
}

static tnf_status fail_agent(const char *why, tnf_error *e)
{
    return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                    "AWS_CONTAINER_CREDENTIALS_… names the container's role, but %s", why);
}

static tnf_status container_keys(tnf_keys_aws *k, tnf_session *s, tnf_error *e)
{
    const char *full = tnf_setting("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *relative = tnf_setting("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *token = tnf_setting("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    const char *file = tnf_setting("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    char url[2200], line[4200], kept[4096];
    tnf_exchange x = { 0 };
    if (!full && !relative)
        return TNF_OK;
    snprintf(url, sizeof url, "%s%s", relative ? "http://169.254.170.2" : "",
             relative ? relative : full);
    if (!may_ask_agent(url))
        return fail_agent("its address is neither https nor local", e);
    if (file && !tnf_read_line(file, kept, sizeof kept))
        return fail_agent("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read", e);
    token = file ? kept : token;
    if (token) {
        snprintf(line, sizeof line, "Authorization: %s", token);
        if (strpbrk(line, "\r\n"))
            return fail_agent("its token is not one line", e);
        tnf_exchange_header(&x, line);
    }
    k->found = ask_local_service(s, &x, url, "GET") &&
               tnf_role_parse(k, &s->alloc, x.answer.excerpt, x.answer.nexcerpt);
    k->from = "the container's role";
    return k->found ? TNF_OK : fail_agent("the service returned no credentials", e);
}

/* IMDSv2: a token first, then the role, then its keys. */
static bool instance_keys(tnf_keys_aws *k, tnf_session *s)
{
    const char *base = setting_or("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA);
    char line[400], url[800], roles[400];
    tnf_exchange x = { 0 };
    size_t n = strlen(base);
    while (n > 0 && base[n - 1] == '/')
        n--;
    if (tnf_setting_true("AWS_EC2_METADATA_DISABLED") || n > 250)
        return false;
    snprintf(roles, sizeof roles, "%.*s/latest/meta-data/iam/security-credentials/", (int)n, base);
    snprintf(url, sizeof url, "%.*s/latest/api/token", (int)n, base);
    tnf_exchange_header(&x, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    if (!ask_local_service(s, &x, url, "PUT"))
        return false;
    snprintf(line, sizeof line, "X-aws-ec2-metadata-token: %.*s", (int)x.answer.nexcerpt,
             x.answer.excerpt);
    x.headers[0] = line;
    if (strpbrk(line, "\r\n") || !ask_local_service(s, &x, roles, "GET"))
        return false;
    snprintf(url, sizeof url, "%s%.*s", roles, (int)x.answer.nexcerpt, x.answer.excerpt);
    url[strcspn(url, "\r\n")] = 0;
    k->from = "the instance's role";
    return ask_local_service(s, &x, url, "GET") &&
           tnf_role_parse(k, &s->alloc, x.answer.excerpt, x.answer.nexcerpt);
}

/* Sends a request to STS; the token in it is the only credential. */
static bool ask_sts(tnf_keys_aws *k, tnf_session *s, const char *body, const char *region)
{
    const char *end = tnf_setting("AWS_ENDPOINT_URL_STS");
    char url[600];
    tnf_exchange x = { .method = "POST", .body = body, .nbody = strlen(body) };
    int n = end ? snprintf(url, sizeof url, "%s", end)
                : snprintf(url, sizeof url, "https://sts.%s.amazonaws.com/", region);
    tnf_exchange_header(&x, "Content-Type: application/x-www-form-urlencoded");
    return n > 0 && (size_t)n < sizeof url && tnf_url_parse(&x.url, url, NULL) == TNF_OK &&
           tnf_exchange_run(s, &x, NULL) == TNF_OK && x.code == TNF_CURLE_OK &&
           x.answer.status == 200 && tnf_role_parse_sts(k, x.answer.excerpt, x.answer.nexcerpt);
}

/* Kubernetes pods (IRSA): a token from a file is exchanged for the keys of a role. */
static tnf_status identity_keys(tnf_keys_aws *k, tnf_session *s, tnf_error *e)
{
    const char *file = tnf_setting("AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *role = tnf_setting("AWS_ROLE_ARN");
    char token[4096], region[64];
    tnf_url form = { 0 }; /* only its query is used, as a form */
    if (!file || !role)
        return TNF_OK;
    if (!tnf_read_line(file, token, sizeof token))
        return tnf_fail(e, TNF_EIO, TNF_NO_OFFSET,
                        "AWS_WEB_IDENTITY_TOKEN_FILE names a file that cannot be read");
    tnf_find_region(s, region, sizeof region);
    TNF_TRY(tnf_url_add_query(&form, "Action", "AssumeRoleWithWebIdentity", e));
    TNF_TRY(tnf_url_add_query(&form, "Version", "2011-06-15", e));
    TNF_TRY(tnf_url_add_query(&form, "RoleArn", role, e));
    TNF_TRY(tnf_url_add_query(&form, "RoleSessionName",
                              setting_or("AWS_ROLE_SESSION_NAME", "tenfold"), e));
    TNF_TRY(tnf_url_add_query(&form, "WebIdentityToken", token, e));
    k->found = ask_sts(k, s, form.query, region);
    k->from = "a web identity";
    if (!k->found)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "AWS_WEB_IDENTITY_TOKEN_FILE is set, but STS returned no keys for it");
    return TNF_OK;
}

tnf_status tnf_role_keys(tnf_keys_aws *k, tnf_session *s, bool instance, tnf_error *e)
{
    instance = instance || tnf_setting("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    TNF_TRY(identity_keys(k, s, e));
    if (!k->found)
        TNF_TRY(container_keys(k, s, e));
    if (!k->found && instance)
        k->found = instance_keys(k, s);
    return TNF_OK;
}

/* -------------------------------------------------------- Google and Azure */

/* With an emulator the metadata server is used only if GCE_METADATA_HOST names it. */
static bool google_url(char *url, size_t room)
{
    const char *host = tnf_setting("GCE_METADATA_HOST");
    if (tnf_setting_true("NO_GCE_CHECK") || (!host && tnf_setting("STORAGE_EMULATOR_HOST")))
        return false;
    int n = snprintf(url, room,
                     "http://%s/computeMetadata/v1/instance/service-accounts/default/token",
                     host ? host : "metadata.google.internal");
    return n > 0 && (size_t)n < room;
}

static bool azure_url(tnf_url *u, const char **header, char *line, size_t room)
{
    const char *end = tnf_setting("IDENTITY_ENDPOINT"), *secret = tnf_setting("IDENTITY_HEADER");
    const char *host = tnf_setting("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    const char *client = tnf_setting("AZURE_CLIENT_ID");
    char url[600];
    bool service = end && secret && !strpbrk(secret, "\r\n");
    if (!service && !host && tnf_setting("AZURE_STORAGE_ENDPOINT"))
        return false;
    *header = service ? line : "Metadata: true";
    snprintf(line, room, "X-IDENTITY-HEADER: %s", service ? secret : "");
    int n = service ? snprintf(url, sizeof url, "%s", end)
                    : snprintf(url, sizeof url, "%s/metadata/identity/oauth2/token",
                               host ? host : METADATA);
    return n > 0 && (size_t)n < sizeof url && tnf_url_parse(u, url, NULL) == TNF_OK &&
           tnf_url_add_query(u, "api-version", service ? "2019-08-01" : "2018-02-01", NULL) ==
               TNF_OK &&
           tnf_url_add_query(u, "resource", "https://storage.azure.com/", NULL) == TNF_OK &&
           (!client || tnf_url_add_query(u, "client_id", client, NULL) == TNF_OK);
}

void tnf_role_bearer(tnf_session *s, tnf_service service, tnf_bearer *out)
{
    char text[TNF_URL_TEXT], line[600];
    const char *header = "Metadata-Flavor: Google";
    tnf_url u;
    tnf_exchange x = { 0 };
    tnf_bearer b = *out;
    if (service == TNF_GS) {
        if (!google_url(text, sizeof text))
            return;
    } else if (service == TNF_AZ && azure_url(&u, &header, line, sizeof line)) {
        tnf_url_text(text, &u);
    } else {
        return;
    }
    tnf_exchange_header(&x, header);
    if (ask_local_service(s, &x, text, "GET") &&
        tnf_role_parse_token(&b, &s->alloc, x.answer.excerpt, x.answer.nexcerpt,
                             (int64_t)time(NULL)))
        *out = b;
}
