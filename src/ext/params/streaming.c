/* SPDX-License-Identifier: MIT */
/* The options of a source from the config of a gpt.rs checkpoint.
 *
 *   {"kind": "gpt", "config": {…}, "runtime": {"weight_streaming": {"enabled": true, …}}}
 *
 * The rules are those of gpt.rs: a runtime that is null or missing has the defaults, and settings
 * without `enabled` are an error. A config without a string `kind` is a bare GPT config, which has
 * no runtime. Two cases are stricter: gpt.rs ignores settings with unknown names, which may be
 * misspelt or belong to a later version, and uses the last of two members with the same key.
 */
#include "base/error.h"
#include "base/sized.h"
#include "base/str.h"
#include <tenfold/build.h>
#include <tenfold/params.h>

#include <string.h>

#define PLACE "runtime.weight_streaming"

/* The settings of a config. */
struct settings {
    tnf_params_options *options;
    bool enabled;
    const char *knob; /* the name of one that is set, apart from `enabled` */
};

static tnf_status wrong_value(const char *name, const char *wanted, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the config's " PLACE ".%s is not %s", name,
                    wanted);
}

static tnf_status take_whole(uint64_t *out, const char *name, const tnf_value *v, tnf_error *e)
{
    if ((v->kind != TNF_INT && v->kind != TNF_UINT) || !tnf_value_as_uint(out, v))
        return wrong_value(name, "a whole number from 0 to 2^64 - 1", e);
    return TNF_OK;
}

/* gpt.rs keeps the fraction as an f32. */
static tnf_status take_fraction(double *out, const char *name, const tnf_value *v, tnf_error *e)
{
    float f = -1;
    if (v->kind == TNF_FLOAT)
        f = (float)v->as.f64;
    else if (v->kind == TNF_INT)
        f = (float)v->as.i;
    else if (v->kind == TNF_UINT)
        f = (float)v->as.u;
    if (!(f >= 0 && f <= 1))
        return wrong_value(name, "a number from 0 to 1", e);
    *out = f;
    return TNF_OK;
}

static tnf_status take_enabled(struct settings *s, const tnf_value *v, tnf_error *e)
{
    return tnf_value_as_bool(&s->enabled, v) ? TNF_OK : wrong_value("enabled", "true or false", e);
}

/* A budget of 0 is written into a member where 0 means "not set", so it needs the flag, too. */
static tnf_status take_budget(struct settings *s, uint64_t *out, const char *name,
                              const tnf_value *v, tnf_error *e)
{
    TNF_TRY(take_whole(out, name, v, e));
    s->options->budget_zero = s->options->budget_zero || *out == 0;
    return TNF_OK;
}

static tnf_status take_percent(struct settings *s, const char *name, const tnf_value *v,
                               tnf_error *e)
{
    tnf_params_options *o = s->options;
    TNF_TRY(take_fraction(&o->budget_percent, name, v, e));
    o->budget_zero = o->budget_zero || o->budget_percent == 0;
    return TNF_OK;
}

static tnf_status take_knob(struct settings *s, const char *name, const tnf_value *v, tnf_error *e)
{
    tnf_params_options *o = s->options;
    if (strcmp(name, "device_budget_bytes") == 0)
        return take_budget(s, &o->budget, name, v, e);
    if (strcmp(name, "cache_budget_cap_bytes") == 0)
        return take_budget(s, &o->budget_cap, name, v, e);
    if (strcmp(name, "device_weights_percent") == 0)
        return take_percent(s, name, v, e);
    if (strcmp(name, "prefetch_layers") == 0)
        return take_whole(&o->prefetch_layers, name, v, e);
    return take_whole(&o->small_bytes, name, v, e);
}

static const char *known_knob(tnf_str key)
{
    static const char *const knobs[] = { "device_budget_bytes", "device_weights_percent",
                                         "cache_budget_cap_bytes", "prefetch_layers",
                                         "small_param_persist_threshold" };
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++)
        if (tnf_str_is(key, knobs[i]))
            return knobs[i];
    return NULL;
}

static tnf_status take_settings(struct settings *s, const tnf_value *streaming, tnf_error *e)
{
    if (streaming->kind != TNF_MAP)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the config's " PLACE " is not an object");
    for (size_t i = 0; i < streaming->n; i++) {
        const tnf_member *m = &streaming->as.members[i];
        const char *name = known_knob(m->key);
        if (!name && !tnf_str_is(m->key, "enabled"))
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "the config's " PLACE " has the unknown setting %s",
                            TNF_QUOTED(m->key));
        const tnf_value *v = &m->value;
        if (!name)
            TNF_TRY(take_enabled(s, v, e));
        if (!name || v->kind == TNF_NULL) /* null: not set */
            continue;
        TNF_TRY(take_knob(s, name, v, e));
        s->knob = name;
    }
    return TNF_OK;
}

/* The value of runtime.weight_streaming, in *out, or NULL. */
static tnf_status find_streaming(const tnf_value **out, const tnf_value *config, tnf_error *e)
{
    *out = NULL;
    if (config->kind != TNF_MAP)
        return TNF_OK;
    const tnf_value *kind = tnf_value_get(config, "kind"),
                    *runtime = tnf_value_get(config, "runtime");
    if (!kind || kind->kind != TNF_STRING || !runtime || runtime->kind == TNF_NULL)
        return TNF_OK;
    if (runtime->kind != TNF_MAP)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the config's runtime is neither an object nor null");
    *out = tnf_value_get(runtime, "weight_streaming");
    return TNF_OK;
}

static tnf_status read_settings(struct settings *s, const tnf_value *config, tnf_error *e)
{
    const tnf_value *streaming;
    TNF_TRY(find_streaming(&streaming, config, e));
    if (streaming)
        TNF_TRY(take_settings(s, streaming, e));
    if (!s->enabled && s->knob)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the config's " PLACE " sets %s, but %s.enabled is not true", s->knob,
                        PLACE);
    if (!s->enabled)
        s->options->budget = UINT64_MAX; /* gpt.rs then loads all parameters once, and keeps them */
    return TNF_OK;
}

/* The builder only lends its memory for the parsed text. */
static tnf_status parse_settings(struct settings *s, const tnf_value *text, tnf_error *e)
{
    tnf_builder *b;
    tnf_value config;
    TNF_TRY(tnf_builder_new(&b, &s->options->allocator, e));
    tnf_status status = tnf_builder_parse(&config, b, text->as.s, text->n, e);
    if (status != TNF_OK)
        tnf_error_prefix(e, "gptrs.config");
    else
        status = read_settings(s, &config, e);
    tnf_builder_free(b);
    return status;
}

tnf_status tnf_params_options_from_config(tnf_params_options *options, const tnf_file *file,
                                          tnf_error *e)
{
    tnf_params_options o;
    TNF_TRY(tnf_need(file, "file", e));
    TNF_TRY(tnf_need(options, "options", e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_params_options, &o, options, e));
    struct settings s = { .options = &o };
    const tnf_value none = { .kind = TNF_NULL };
    o.budget = o.budget_cap = o.small_bytes = o.prefetch_layers = 0;
    o.budget_percent = 0;
    o.budget_zero = false;
    const tnf_value *config = tnf_value_get(tnf_file_info(file)->attrs, "gptrs.config");
    if (config && (config->kind == TNF_JSON || config->kind == TNF_STRING))
        TNF_TRY(parse_settings(&s, config, e));
    else
        TNF_TRY(read_settings(&s, &none, e));
    tnf_result_fill(options, &o, sizeof o);
    return TNF_OK;
}
