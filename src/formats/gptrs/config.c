/* SPDX-License-Identifier: MIT */
/* Reads, checks and makes the config of a gpt.rs checkpoint. See the header for its form. */
#include "formats/gptrs/config.h"

#include "base/error.h"
#include "base/str.h"
#include "base/utf8.h"
#include "wire/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define METADATA    "tenfold.metadata"
#define PLACEHOLDER "{\"kind\":\"unknown\",\"config\":{}}"
#define MAX_DEPTH   512u

/* A bare GPT config has all of these; older versions of gpt.rs then assume the kind "gpt". */
static const char *const gpt_fields[] = { "vocab_size", "context_length", "embed_dim", "num_layers",
                                          "num_heads",  "mlp_ratio",      "dropout" };
#define NGPT    (sizeof gpt_fields / sizeof gpt_fields[0])
#define DROPOUT 6u /* the only one that may be a fraction */

/* The document while it is read. */
typedef struct parse {
    tnf_gptrs_config *out;
    tnf_arena *scratch;
    unsigned depth;
    unsigned gpt_good;     /* bit i: gpt_fields[i] occurred and was valid */
    unsigned gpt_bad;      /* … was invalid, or occurred twice */
    const char *cut, *end; /* the last member with its comma, if it is Tenfold's */
} parse;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void report_fault(parse *p, uint64_t offset, bool unusual, const char *format, ...)
    TNF_PRINTF(4, 5);

static void report_fault(parse *p, uint64_t offset, bool unusual, const char *format, ...)
{
    tnf_gptrs_config *c = p->out;
    if (c->nfindings == sizeof c->findings / sizeof c->findings[0])
        return;
    tnf_gptrs_finding *f = &c->findings[c->nfindings++];
    f->offset = offset;
    f->unusual = unusual;
    va_list list;
    va_start(list, format);
    vsnprintf(f->message, sizeof f->message, format, list);
    va_end(list);
}

/* ---------------------------------------------------------------- values */

/* A JSON reader over the text of one value, which is already known to be valid. */
static tnf_json reader_over(const parse *p, tnf_str text, uint64_t at)
{
    tnf_json j;
    tnf_json_init(&j, text.p, text.n, at, p->scratch, p->depth, NULL);
    return j;
}

static bool is_uint(const parse *p, tnf_str text)
{
    uint64_t u;
    tnf_json j = reader_over(p, text, 0);
    return tnf_json_peek(&j) == '0' && tnf_json_u64(&j, &u) && tnf_json_end(&j) == TNF_OK;
}

static bool is_number(tnf_str text)
{
    return text.p[0] == '-' || (text.p[0] >= '0' && text.p[0] <= '9');
}

static bool is_fraction(const parse *p, tnf_str text)
{
    tnf_value v;
    tnf_json j = reader_over(p, text, 0);
    if (!tnf_json_value(&j, &v))
        return false;
    if (v.kind == TNF_FLOAT)
        return v.as.f64 >= 0 && v.as.f64 <= 1;
    return (v.kind == TNF_INT && v.as.i >= 0 && v.as.i <= 1) || (v.kind == TNF_UINT && v.as.u <= 1);
}

/* Reads the next member of an object: its key, the text of its value, and the value's position. */
static bool next_member(tnf_json *j, tnf_str *key, tnf_str *text, uint64_t *at)
{
    if (!tnf_json_key(j, key))
        return false;
    tnf_json_peek(j);
    *at = tnf_json_where(j);
    return tnf_json_skip(j, text);
}

/* --------------------------------------------------------------- runtime */

/* "", "benchmark", "benchmark(cache=N)" with N above zero, "force=NAME". */
static bool is_override(tnf_str s)
{
    static const char cached[] = "benchmark(cache=";
    const size_t n = sizeof cached - 1;
    if (s.n == 0 || tnf_str_is(s, "benchmark") || (s.n > 6 && memcmp(s.p, "force=", 6) == 0))
        return true;
    if (s.n < n + 2 || memcmp(s.p, cached, n) != 0 || s.p[s.n - 1] != ')')
        return false;
    bool above_zero = false;
    for (size_t i = n; i < s.n - 1; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        above_zero = above_zero || s.p[i] != '0';
    }
    return above_zero;
}

static void check_overrides(parse *p, tnf_str text, uint64_t at)
{
    if (text.p[0] != '{') {
        report_fault(p, at, false, "runtime.functional_overrides is not an object");
        return;
    }
    tnf_json j = reader_over(p, text, at);
    tnf_str key, value;
    tnf_json_enter(&j, '{');
    while (next_member(&j, &key, &value, &at)) {
        tnf_str s;
        tnf_json v = reader_over(p, value, at);
        if (value.p[0] != '"' || !tnf_json_string(&v, &s))
            report_fault(p, at, false, "runtime.functional_overrides has %s that is not a string",
                         TNF_QUOTED(key));
        else if (!is_override(s))
            report_fault(p, at, true,
                         "runtime.functional_overrides has %s: %s, which gpt.rs does not support",
                         TNF_QUOTED(key), TNF_QUOTED(s));
    }
}

static void check_streaming(parse *p, tnf_str text, uint64_t at)
{
    /* b: true or false, u: a whole number, f: a number from 0 to 1; all but the first may be null.
     */
    static const struct {
        const char *name;
        char type;
    } knobs[] = { { "enabled", 'b' },
                  { "device_budget_bytes", 'u' },
                  { "device_weights_percent", 'f' },
                  { "cache_budget_cap_bytes", 'u' },
                  { "prefetch_layers", 'u' },
                  { "small_param_persist_threshold", 'u' } };
    bool off = false, any = false;
    uint64_t whole = at;
    if (text.p[0] != '{') {
        report_fault(p, at, false, "runtime.weight_streaming is not an object");
        return;
    }
    tnf_json j = reader_over(p, text, at);
    tnf_str key, value;
    tnf_json_enter(&j, '{');
    while (next_member(&j, &key, &value, &at)) {
        size_t i = 0;
        while (i < sizeof knobs / sizeof knobs[0] && !tnf_str_is(key, knobs[i].name))
            i++;
        if (i == sizeof knobs / sizeof knobs[0] || (i > 0 && tnf_str_is(value, "null")))
            continue;
        any = any || i > 0;
        off = off || (i == 0 && tnf_str_is(value, "false"));
        const char *want = knobs[i].type == 'b'   ? "true or false"
                           : knobs[i].type == 'u' ? "a whole number"
                                                  : "a number";
        if (knobs[i].type == 'b'   ? !tnf_str_is(value, "true") && !tnf_str_is(value, "false")
            : knobs[i].type == 'u' ? !is_uint(p, value)
                                   : !is_number(value))
            report_fault(p, at, false, "runtime.weight_streaming.%s is not %s", knobs[i].name,
                         want);
        else if (knobs[i].type == 'f' && !is_fraction(p, value))
            report_fault(p, at, true, "runtime.weight_streaming.%s is not between 0 and 1",
                         knobs[i].name);
    }
    if (off && any)
        report_fault(
            p, whole, true,
            "runtime.weight_streaming is off but has settings; gpt.rs will not load such a model");
}

static void check_runtime(parse *p, tnf_str text, uint64_t at)
{
    if (tnf_str_is(text, "null"))
        return;
    if (text.p[0] != '{') {
        report_fault(p, at, false, "the config's runtime is neither an object nor null");
        return;
    }
    tnf_json j = reader_over(p, text, at);
    tnf_str key, value;
    tnf_json_enter(&j, '{');
    while (next_member(&j, &key, &value, &at)) {
        if (tnf_str_is(key, "functional_overrides") && !tnf_str_is(value, "null"))
            check_overrides(p, value, at);
        else if (tnf_str_is(key, "weight_streaming"))
            check_streaming(p, value, at);
    }
}

/* -------------------------------------------------------------- document */

static bool is_text_map(const parse *p, tnf_str text, uint64_t at)
{
    if (text.p[0] != '{')
        return false;
    tnf_json j = reader_over(p, text, at);
    tnf_str key, value;
    tnf_json_enter(&j, '{');
    while (next_member(&j, &key, &value, &at))
        if (value.p[0] != '"')
            return false;
    return true;
}

static void set_once(parse *p, tnf_str *slot, tnf_str value, const char *name, uint64_t at)
{
    if (slot->p)
        report_fault(p, at, false, "the config has two members \"%s\"", name);
    *slot = value;
}

static void note_gpt_field(parse *p, tnf_str key, tnf_str value)
{
    for (unsigned i = 0; i < NGPT; i++) {
        if (!tnf_str_is(key, gpt_fields[i]))
            continue;
        bool right = i == DROPOUT ? is_number(value) : is_uint(p, value);
        if (right && !(p->gpt_good & 1u << i))
            p->gpt_good |= 1u << i;
        else
            p->gpt_bad |= 1u << i;
    }
}

/* One member. `before` is the end of the previous member. */
static void read_member(parse *p, const char *before, tnf_str key, tnf_str value, uint64_t at)
{
    tnf_gptrs_config *c = p->out;
    p->cut = NULL;
    if (tnf_str_is(key, "kind") && value.p[0] == '"') {
        tnf_str kind = { NULL, 0 };
        tnf_json j = reader_over(p, value, at);
        if (tnf_json_string(&j, &kind))
            set_once(p, &c->kind, kind, "kind", at);
    } else if (tnf_str_is(key, "config")) {
        set_once(p, &c->config, value, "config", at);
    } else if (tnf_str_is(key, "runtime")) {
        set_once(p, &c->runtime, value, "runtime", at);
        check_runtime(p, value, at);
    } else if (tnf_str_is(key, METADATA) && is_text_map(p, value, at)) {
        while (is_space(*before))
            before++;
        p->cut = before;
        p->end = value.p + value.n;
        c->metadata = value;
        c->metadata_at = at;
    } else {
        note_gpt_field(p, key, value);
    }
}

/* A config without a kind must be a bare GPT config. */
static void judge_kind(parse *p, uint64_t base)
{
    tnf_gptrs_config *c = p->out;
    if (c->kind.p)
        return;
    unsigned good = p->gpt_good & ~p->gpt_bad;
    for (unsigned i = 0; i < NGPT; i++)
        if (!(good & 1u << i)) {
            report_fault(
                p, base, false,
                "the config names no kind of model and is not a bare GPT config: its %s is %s",
                gpt_fields[i], p->gpt_bad & 1u << i ? "wrong" : "missing");
            return;
        }
    c->untagged = true;
    c->kind = (tnf_str) { "gpt", 3 };
    c->config = c->text;
    c->runtime = (tnf_str) { NULL, 0 };
}

/* Cuts Tenfold's own member off the document, if it is the last one. */
static tnf_status cut_metadata(parse *p, tnf_error *e)
{
    tnf_gptrs_config *c = p->out;
    if (!p->cut) {
        c->metadata = (tnf_str) { NULL, 0 };
        return TNF_OK;
    }
    size_t head = (size_t)(p->cut - c->text.p), tail = (size_t)(c->text.p + c->text.n - p->end);
    char *text = tnf_arena_str(p->scratch, c->text.p, c->text.n);
    if (!text)
        return tnf_arena_fail(p->scratch, "config", e);
    memmove(text + head, p->end, tail);
    c->text = (tnf_str) { text, head + tail };
    return TNF_OK;
}

/* All bytes of the config are present, so JSON that ends too early is invalid, not truncated. */
static tnf_status not_json(tnf_error *e)
{
    if (e)
        e->status = TNF_EFORMAT;
    tnf_error_prefix(e, "config");
    return TNF_EFORMAT;
}

tnf_status tnf_gptrs_config_parse(tnf_gptrs_config *out, const char *text, size_t n, uint64_t base,
                                  tnf_arena *scratch, unsigned depth, tnf_error *e)
{
    *out = (tnf_gptrs_config) { 0 };
    while (n > 0 && text[n - 1] == ' ')
        n--;
    if (n == 0)
        return tnf_fail(e, TNF_EFORMAT, base, "the config is empty; it must be a JSON object");
    out->text = (tnf_str) { text, n };
    parse p = { .out = out, .scratch = scratch, .depth = depth };
    tnf_json j;
    tnf_json_init(&j, text, n, base, scratch, depth, e);
    bool object = tnf_json_peek(&j) == '{';
    if (object) {
        tnf_str key, value;
        uint64_t at;
        tnf_json_enter(&j, '{');
        const char *before = (const char *)j.p;
        for (; next_member(&j, &key, &value, &at); before = (const char *)j.p)
            read_member(&p, before, key, value, at);
    } else {
        report_fault(&p, base, false, "the config is not a JSON object");
        tnf_json_skip(&j, NULL);
    }
    tnf_status status = j.status != TNF_OK ? j.status : tnf_json_end(&j);
    if (status == TNF_EFORMAT || status == TNF_ETRUNCATED)
        return not_json(e);
    TNF_TRY(status);
    TNF_TRY(cut_metadata(&p, e));
    if (object)
        judge_kind(&p, base);
    out->placeholder = tnf_str_is(out->text, PLACEHOLDER);
    return TNF_OK;
}

/* --------------------------------------------------------------- writing */

static tnf_status check_json(tnf_str text, const char *what, tnf_arena *scratch, tnf_error *e)
{
    tnf_json j;
    tnf_json_init(&j, text.p, text.n, 0, scratch, MAX_DEPTH, NULL);
    if (!tnf_json_skip(&j, NULL) || tnf_json_end(&j) != TNF_OK)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is not JSON", what);
    return TNF_OK;
}

/* {"kind":K,"config":C} from the options, or else from the source. */
static tnf_status put_new(tnf_buf *b, const tnf_gptrs_recipe *r, const tnf_gptrs_config *source,
                          tnf_arena *scratch, tnf_error *e)
{
    tnf_str kind = { r->kind, strlen(r->kind) }, config = { r->config, strlen(r->config) };
    if (!tnf_utf8_valid(NULL, kind.p, kind.n))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the option kind is not UTF-8");
    if (config.n > 0)
        TNF_TRY(check_json(config, "the option config", scratch, e));
    else
        config = source->config.p || source->kind.p ? source->config : source->text;
    if (kind.n == 0)
        kind = source->kind.p ? source->kind : (tnf_str) { "unknown", 7 };
    tnf_buf_puts(b, "{\"kind\":");
    tnf_json_put_string(b, kind.p, kind.n);
    tnf_buf_puts(b, ",\"config\":");
    if (config.p)
        tnf_buf_put(b, config.p, config.n);
    else
        tnf_buf_puts(b, source->text.p ? "null" : "{}");
    if (r->config[0] == '\0' && source->runtime.p) {
        tnf_buf_puts(b, ",\"runtime\":");
        tnf_buf_put(b, source->runtime.p, source->runtime.n);
    }
    tnf_buf_puts(b, "}");
    return TNF_OK;
}

/* The position after the last byte of [start, n) that is not white space. */
static size_t trimmed_end(const tnf_buf *b, size_t start, size_t n)
{
    while (n > start && is_space((char)b->p[n - 1]))
        n--;
    return n;
}

/* Replaces the closing brace of the document by one more member and a brace. */
static tnf_status put_metadata(tnf_buf *b, size_t start, const tnf_gptrs_recipe *r,
                               tnf_arena *scratch, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(b, "the config", e));
    size_t brace = trimmed_end(b, start, b->n);
    tnf_str tail = { tnf_arena_str(scratch, b->p + brace, b->n - brace), b->n - brace };
    if (!tail.p)
        return tnf_arena_fail(scratch, "config", e);
    if (brace == start || b->p[brace - 1] != '}')
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the config is not a JSON object, so there is no place for metadata");
    size_t last = trimmed_end(b, start, --brace);
    b->n = brace;
    tnf_buf_puts(b, last > start && b->p[last - 1] == '{' ? "\"" METADATA "\":{"
                                                          : ",\"" METADATA "\":{");
    for (size_t i = 0; i < r->ntext; i++) {
        if (i > 0)
            tnf_buf_puts(b, ",");
        tnf_json_put_string(b, r->text[i].key.p, r->text[i].key.n);
        tnf_buf_puts(b, ":");
        tnf_json_put_string(b, r->text[i].value.as.s, r->text[i].value.n);
    }
    tnf_buf_puts(b, "}}");
    tnf_buf_put(b, tail.p, tail.n);
    return TNF_OK;
}

tnf_status tnf_gptrs_config_put(tnf_buf *b, const tnf_gptrs_recipe *recipe, tnf_arena *scratch,
                                tnf_error *e)
{
    const size_t start = b->n;
    tnf_gptrs_config source = { 0 };
    if (recipe->source.p) {
        TNF_TRY(check_json(recipe->source, "the attribute gptrs.config", scratch, e));
        TNF_TRY(tnf_gptrs_config_parse(&source, recipe->source.p, recipe->source.n, 0, scratch,
                                       MAX_DEPTH, e));
    }
    if (recipe->kind[0] != '\0' || recipe->config[0] != '\0')
        TNF_TRY(put_new(b, recipe, &source, scratch, e));
    else if (recipe->source.p)
        tnf_buf_put(b, recipe->source.p, recipe->source.n);
    else
        tnf_buf_puts(b, PLACEHOLDER);
    if (recipe->ntext > 0)
        TNF_TRY(put_metadata(b, start, recipe, scratch, e));
    return tnf_buf_status(b, "the config", e);
}
