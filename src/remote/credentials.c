/* SPDX-License-Identifier: MIT */
#include "remote/credentials.h"

#include "remote/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *tnf_setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool tnf_setting_true(const char *name)
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

/* Finds a token without network requests. */
static void settled_bearer(const tnf_session *s, tnf_service service, tnf_bearer *out)
{
    const char *google = tnf_setting("GOOGLE_OAUTH_ACCESS_TOKEN");
    if (s->how.token)
        snprintf(out->text, sizeof out->text, "%s", s->how.token);
    else if (service == TNF_HUB)
        hub_token(out->text, sizeof out->text);
    else if (service == TNF_GS && google)
        snprintf(out->text, sizeof out->text, "%s", google);
}

void tnf_find_bearer(tnf_session *s, tnf_service service, char *out, size_t room)
{
    int64_t soon = (int64_t)time(NULL) + 60;
    out[0] = 0;
    if (s->how.anonymous)
        return;
    pthread_mutex_lock(&s->lock);
    tnf_bearer b = s->bearer;
    pthread_mutex_unlock(&s->lock);
    if (!b.looked || (b.until && soon >= b.until)) {
        b = (tnf_bearer) { .looked = true };
        settled_bearer(s, service, &b);
        if (!b.text[0] && service != TNF_HUB)
            tnf_role_bearer(s, service, &b);
        if (strpbrk(b.text, "\r\n"))
            b.text[0] = 0;
        pthread_mutex_lock(&s->lock);
        s->bearer = b;
        pthread_mutex_unlock(&s->lock);
    }
    snprintf(out, room, "%s", b.text);
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

bool tnf_profile_find(FILE *f, const char *profile, const char *key, char *out, size_t room)
{
    char line[5000];
    bool inside = false, found = false;
    size_t k = strlen(key);
    out[0] = 0;
    while (!found && fgets(line, sizeof line, f)) {
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
    return found && *out;
}

/* The same for the file at `path`, which may be missing. */
static bool profile_value(const char *path, const char *profile, const char *key, char *out,
                          size_t room)
{
    FILE *f = fopen(path, "re");
    out[0] = 0;
    bool found = f && tnf_profile_find(f, profile, key, out, room);
    if (f)
        (void)fclose(f);
    return found;
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

/* Fails if the profile requires an unsupported way to get keys. */
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
                            "the AWS profile '%s' uses %s, which is not supported; export "
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

tnf_status tnf_find_keys(tnf_session *s, tnf_keys_aws *out, tnf_error *e)
{
    tnf_keys_aws k = { 0 };
    int64_t soon = (int64_t)time(NULL) + 60;
    pthread_mutex_lock(&s->lock);
    *out = s->keys;
    pthread_mutex_unlock(&s->lock);
    if (out->looked && (!out->until || soon < out->until))
        return TNF_OK;
    if (!s->how.anonymous && !tnf_setting_true("AWS_NO_SIGN_REQUEST")) {
        k.found = environment_keys(&k) || profile_keys(&k);
        if (!k.found)
            TNF_TRY(check_profile(e));
        /* With a custom endpoint the machine is probably not in the cloud, so it has no role. */
        bool own = s->how.endpoint || tnf_setting("AWS_ENDPOINT_URL_S3") ||
                   tnf_setting("AWS_ENDPOINT_URL");
        if (!k.found)
            TNF_TRY(tnf_role_keys(&k, s, !own, e));
    }
    k.looked = true;
    pthread_mutex_lock(&s->lock);
    s->keys = k;
    pthread_mutex_unlock(&s->lock);
    *out = k;
    return TNF_OK;
}
