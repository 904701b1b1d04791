/* SPDX-License-Identifier: MIT */
/* Checks "key=value" pairs against a format's table, once, so that formats get typed values. */
#include "base/str.h"
#include "core/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_bool(uint64_t *out, const char *s)
{
    static const char *const yes[] = { "yes", "true", "on", "1" };
    static const char *const no[] = { "no", "false", "off", "0" };
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(s, yes[i]) == 0 || strcmp(s, no[i]) == 0) {
            *out = strcmp(s, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

static bool parse_uint(uint64_t *out, const char *s)
{
    if (*s < '0' || *s > '9')
        return false;
    char *end;
    errno = 0;
    uint64_t v = strtoull(s, &end, 10);
    if (errno)
        return false;
    const char *const units = "KMG";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit)
        end++;
    *out = v;
    return *end == 0 &&
           (!unit || tnf_ckd_mul(out, v, (uint64_t)1 << 10 * (unsigned)(unit - units + 1)));
}

static bool parse_choice(uint64_t *out, const char *choices, const char *s)
{
    int position = tnf_str_position(choices, s);
    *out = position < 0 ? 0 : (uint64_t)position;
    return position >= 0;
}

static tnf_status parse_one(tnf_option_value *out, const tnf_option_info *o, const char *s,
                            tnf_error *e)
{
    out->s = s;
    switch (o->kind) {
    case TNF_OPTION_BOOL:
        if (parse_bool(&out->u, s))
            return TNF_OK;
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "option %s must be yes or no, not '%s'",
                        o->name, s);
    case TNF_OPTION_UINT:
        if (parse_uint(&out->u, s))
            return TNF_OK;
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "option %s must be a whole number (K, M, G may follow), not '%s'", o->name,
                        s);
    case TNF_OPTION_CHOICE:
        if (parse_choice(&out->u, o->choices, s))
            return TNF_OK;
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "option %s must be one of %s, not '%s'",
                        o->name, o->choices, s);
    default:
        return TNF_OK;
    }
}

/* `user`: "reader" or "writer". */
static tnf_status unknown_option(const tnf_option_info *table, const char *key, const char *user,
                                 tnf_error *e)
{
    char names[128] = "";
    size_t n = 0;
    for (const tnf_option_info *o = table; o && o->name && n < sizeof names; o++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", o->name);
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                    "unknown option '%s'; the %s of this format has %s", key, user,
                    n ? names : "no options");
}

tnf_status tnf_options_parse(const tnf_option_value **out, const tnf_option_info *table,
                             const char *user, const tnf_option *given, size_t n, tnf_arena *arena,
                             tnf_error *e)
{
    size_t count = 0;
    TNF_TRY(tnf_need_array(given, n, "options", e));
    while (table && table[count].name)
        count++;
    tnf_option_value *values = tnf_arena_array(arena, count, sizeof *values);
    if (!values)
        return tnf_arena_fail(arena, "options", e);
    for (size_t i = 0; i < count; i++)
        TNF_TRY(parse_one(&values[i], &table[i], table[i].fallback, e));
    for (size_t g = 0; g < n; g++) {
        size_t i = 0;
        TNF_TRY(tnf_need(given[g].key, "options", e));
        while (i < count && strcmp(table[i].name, given[g].key) != 0)
            i++;
        if (i == count)
            return unknown_option(table, given[g].key, user, e);
        if (!given[g].value)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the option '%s' has no value",
                            given[g].key);
        TNF_TRY(parse_one(&values[i], &table[i], given[g].value, e));
    }
    *out = values;
    return TNF_OK;
}
