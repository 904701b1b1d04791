/* SPDX-License-Identifier: MIT */
#include "remote/credentials.h"

#include "base/arena.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INSTANCE "http://169.254.169.254"

const char *tnf_setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool setting_true(const char *name)
{
    const char *value = tnf_setting(name);
    return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0 ||
                     strcmp(value, "yes") == 0 || strcmp(value, "True") == 0);
}

bool tnf_read_line(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(out, (int)room, f) != NULL;
    (void)fclose(f);
    size_t n = ok ? strlen(out) : 0;
    while (n > 0 && (unsigned char)out[n - 1] <= ' ')
        out[--n] = 0;
    return n > 0 && n + 2 < room;
}

static bool home_path(char *out, size_t room, const char *below)
{
    const char *home = tnf_setting("HOME");
    int n = home ? snprintf(out, room, "%s/%s", home, below) : -1;
    return n > 0 && (size_t)n < room;
}

bool tnf_hub_home(char *out, size_t room)
{
    const char *set = tnf_setting("HF_HOME"), *cache = tnf_setting("XDG_CACHE_HOME");
    int n;
    if (set)
        n = snprintf(out, room, "%s", set);
    else if (cache)
        n = snprintf(out, room, "%s/huggingface", cache);
    else
        return home_path(out, room, ".cache/huggingface");
    return n > 0 && (size_t)n < room;
}

static void hub_token(char *out, size_t room)
{
    char path[4200], home[4096];
    const char *token = tnf_setting("HF_TOKEN"), *file = tnf_setting("HF_TOKEN_PATH");
    out[0] = 0;
    if (token) {
        snprintf(out, room, "%s", token);
        return;
    }
    if (file)
        snprintf(path, sizeof path, "%s", file);
    else if (tnf_hub_home(home, sizeof home))
        snprintf(path, sizeof path, "%s/token", home);
    else
        return;
    if (!tnf_read_line(path, out, room))
        out[0] = 0;
}

void tnf_find_bearer(tnf_session *s, bool hub, char *out, size_t room)
{
    out[0] = 0;
    if (s->how.anonymous)
        return;
    pthread_mutex_lock(&s->lock);
    if (!s->bearer_looked) {
        const char *google = tnf_setting("GOOGLE_OAUTH_ACCESS_TOKEN");
        if (s->how.token)
            snprintf(s->bearer, sizeof s->bearer, "%s", s->how.token);
        else if (hub)
            hub_token(s->bearer, sizeof s->bearer);
        else if (google)
            snprintf(s->bearer, sizeof s->bearer, "%s", google);
        if (strpbrk(s->bearer, "\r\n"))
            s->bearer[0] = 0;
        s->bearer_looked = true;
    }
    snprintf(out, room, "%s", s->bearer);
    pthread_mutex_unlock(&s->lock);
}

/* --------------------------------------------------------------- profiles */

/* "[name]" or "[profile name]" */
static bool is_section(const char *line, const char *profile)
{
    char plain[200], config[200];
    snprintf(plain, sizeof plain, "[%s]", profile);
    snprintf(config, sizeof config, "[profile %s]", profile);
    return strcmp(line, plain) == 0 || strcmp(line, config) == 0;
}

static char *trim_line(char *line)
{
    size_t n = strlen(line);
    while (n > 0 && (unsigned char)line[n - 1] <= ' ')
        line[--n] = 0;
    return line + strspn(line, " \t");
}

/* The value of a key of a profile in an ini file. */
static bool profile_value(const char *path, const char *profile, const char *key, char *out,
                          size_t room)
{
    char line[5000];
    bool inside = false, found = false;
    size_t k = strlen(key);
    FILE *f = fopen(path, "re");
    out[0] = 0;
    while (f && !found && fgets(line, sizeof line, f)) {
        char *p = trim_line(line);
        if (*p == '[') {
            inside = is_section(p, profile);
            continue;
        }
        if (!inside || strncmp(p, key, k) != 0)
            continue;
        p += k + strspn(p + k, " \t");
        if (*p++ != '=')
            continue;
        p += strspn(p, " \t");
        found = strlen(p) < room;
        if (found)
            memcpy(out, p, strlen(p) + 1);
    }
    if (f)
        (void)fclose(f);
    return found && *out;
}

static const char *profile_name(void)
{
    const char *name = tnf_setting("AWS_PROFILE");
    return name ? name : "default";
}

static bool profile_file(char *out, size_t room, const char *variable, const char *below)
{
    const char *set = tnf_setting(variable);
    if (!set)
        return home_path(out, room, below);
    int n = snprintf(out, room, "%s", set);
    return n > 0 && (size_t)n < room;
}

void tnf_find_region(const tnf_session *s, char *out, size_t room)
{
    char path[4200];
    const char *region = s->how.region;
    region = region ? region : tnf_setting("AWS_REGION");
    region = region ? region : tnf_setting("AWS_DEFAULT_REGION");
    if (region) {
        snprintf(out, room, "%s", region);
        return;
    }
    if (profile_file(path, sizeof path, "AWS_CONFIG_FILE", ".aws/config") &&
        profile_value(path, profile_name(), "region", out, room))
        return;
    snprintf(out, room, "us-east-1");
}

static bool profile_keys(tnf_keys_aws *k)
{
    char path[4200];
    const char *profile = profile_name();
    if (!profile_file(path, sizeof path, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"))
        return false;
    if (!profile_value(path, profile, "aws_access_key_id", k->id, sizeof k->id) ||
        !profile_value(path, profile, "aws_secret_access_key", k->secret, sizeof k->secret))
        return false;
    (void)profile_value(path, profile, "aws_session_token", k->token, sizeof k->token);
    k->from = "a profile";
    return true;
}

/* What the profile wants instead of keys, which we do not do. */
static tnf_status check_profile(tnf_error *e)
{
    static const char *const keys[] = { "credential_process", "sso_session", "sso_start_url" };
    char path[4200], value[256];
    if (!tnf_setting("AWS_PROFILE") ||
        !profile_file(path, sizeof path, "AWS_CONFIG_FILE", ".aws/config"))
        return TNF_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (profile_value(path, profile_name(), keys[i], value, sizeof value))
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "the AWS profile '%s' uses %s, which is not read here: export "
                            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (aws configure "
                            "export-credentials)",
                            TNF_VISIBLE(profile_name()), keys[i]);
    return TNF_OK;
}

static bool environment_keys(tnf_keys_aws *k)
{
    const char *id = tnf_setting("AWS_ACCESS_KEY_ID"),
               *secret = tnf_setting("AWS_SECRET_ACCESS_KEY");
    const char *token = tnf_setting("AWS_SESSION_TOKEN");
    if (!id || !secret || strlen(id) >= sizeof k->id || strlen(secret) >= sizeof k->secret ||
        (token && strlen(token) >= sizeof k->token))
        return false;
    snprintf(k->id, sizeof k->id, "%s", id);
    snprintf(k->secret, sizeof k->secret, "%s", secret);
    snprintf(k->token, sizeof k->token, "%s", token ? token : "");
    k->from = "the environment";
    return true;
}

/* ------------------------------------------------------------------ roles */

static void keep_member(const tnf_value *map, const char *key, char *out, size_t room)
{
    const tnf_value *v = tnf_value_get(map, key);
    out[0] = 0;
    if (v && v->kind == TNF_STRING && v->n < room && !memchr(v->as.s, '\n', v->n)) {
        memcpy(out, v->as.s, v->n);
        out[v->n] = 0;
    }
}

/* {"AccessKeyId": …, "SecretAccessKey": …, "Token": …, "Expiration": …} */
static bool parse_role(tnf_keys_aws *k, const tnf_session *s, const char *text, size_t n)
{
    tnf_arena arena;
    tnf_json j;
    tnf_value v;
    char end[32];
    tnf_arena_init(&arena, &s->alloc, 1u << 20);
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

/* A small answer of a service on this machine; false if it does not answer. */
static bool ask_locally(tnf_session *s, tnf_exchange *x, const char *url, const char *method)
{
    x->method = method;
    x->quick = true;
    if (tnf_url_parse(&x->url, url, NULL) != TNF_OK || tnf_exchange_run(s, x, NULL) != TNF_OK)
        return false;
    return x->code == TNF_CURLE_OK && x->answer.status == 200 &&
           x->answer.nexcerpt < sizeof x->answer.excerpt;
}

static bool container_keys(tnf_keys_aws *k, tnf_session *s)
{
    const char *full = tnf_setting("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *relative = tnf_setting("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *token = tnf_setting("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    char url[2200], line[2200];
    tnf_exchange x = { 0 };
    if (!full && !relative)
        return false;
    snprintf(url, sizeof url, "%s%s", full ? "" : "http://169.254.170.2", full ? full : relative);
    if (token) {
        snprintf(line, sizeof line, "Authorization: %s", token);
        tnf_exchange_header(&x, line);
    }
    k->from = "the container's role";
    return ask_locally(s, &x, url, "GET") && parse_role(k, s, x.answer.excerpt, x.answer.nexcerpt);
}

static bool instance_keys(tnf_keys_aws *k, tnf_session *s)
{
    static const char roles[] = INSTANCE "/latest/meta-data/iam/security-credentials/";
    char line[400], url[400];
    tnf_exchange x = { 0 };
    if (setting_true("AWS_EC2_METADATA_DISABLED"))
        return false;
    tnf_exchange_header(&x, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    if (!ask_locally(s, &x, INSTANCE "/latest/api/token", "PUT"))
        return false;
    snprintf(line, sizeof line, "X-aws-ec2-metadata-token: %.*s", (int)x.answer.nexcerpt,
             x.answer.excerpt);
    x.headers[0] = line;
    if (strpbrk(line, "\r\n") || !ask_locally(s, &x, roles, "GET"))
        return false;
    snprintf(url, sizeof url, "%s%.*s", roles, (int)x.answer.nexcerpt, x.answer.excerpt);
    url[strcspn(url, "\r\n")] = 0;
    k->from = "the instance's role";
    return ask_locally(s, &x, url, "GET") && parse_role(k, s, x.answer.excerpt, x.answer.nexcerpt);
}

tnf_status tnf_find_keys(tnf_session *s, tnf_keys_aws *out, tnf_error *e)
{
    tnf_keys_aws k = { 0 };
    int64_t soon = (int64_t)time(NULL) + 60;
    pthread_mutex_lock(&s->lock);
    *out = s->keys;
    pthread_mutex_unlock(&s->lock);
    if (out->looked && (!out->until || soon < out->until))
        return TNF_OK;
    if (!s->how.anonymous && !setting_true("AWS_NO_SIGN_REQUEST")) {
        k.found = environment_keys(&k) || profile_keys(&k);
        if (!k.found)
            TNF_TRY(check_profile(e));
        /* A role is for machines of the cloud: an endpoint of one's own has none. */
        bool own = s->how.endpoint || tnf_setting("AWS_ENDPOINT_URL_S3") ||
                   tnf_setting("AWS_ENDPOINT_URL");
        if (!k.found)
            k.found = container_keys(&k, s) || (!own && instance_keys(&k, s));
    }
    k.looked = true;
    pthread_mutex_lock(&s->lock);
    s->keys = k;
    pthread_mutex_unlock(&s->lock);
    *out = k;
    return TNF_OK;
}
