/* SPDX-License-Identifier: MIT */
/* Changes one value within the text of a JSON document, and no other byte of it. The document is
 * known to be valid, so the code looks only at brackets, quotes and commas.
 *
 *   {"kind": "gpt", "config": {"dropout": 0.0}}
 *    └lead┘└key┘  └─value─┘
 */
#include "meta.h"
#include <stdlib.h>
#include <string.h>

/* A member of an object or an item of an array. */
typedef struct member {
    const char *lead;   /* just after the bracket or comma */
    tnf_str key, value; /* key: with its quotes; p is NULL in an array */
} member;

/* Iterates over an object or an array. */
typedef struct walk {
    const char *p, *end;
    bool array;
} walk;

static const char *past_space(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n", *p))
        p++;
    return p;
}

static const char *past_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\' && end - p > 1;
    return p < end ? p + 1 : end;
}

static const char *past_value(const char *p, const char *end)
{
    size_t depth = 0;
    do {
        if (*p == '"') {
            p = past_string(p, end);
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        else if (*p == '}' || *p == ']')
            depth--;
        else if (depth == 0)
            return p + strcspn(p, ",}] \t\r\n"); /* a number or a word; a NUL ends the text */
        p++;
    } while (p < end && depth > 0);
    return p;
}

/* Returns false if the value is neither an object nor an array. */
static bool walk_begin(walk *w, tnf_str value)
{
    const char *p = past_space(value.p, value.p + value.n);
    *w = (walk) { .p = p + 1, .end = value.p + value.n };
    w->array = p < w->end && *p == '[';
    return p < w->end && (*p == '{' || *p == '[');
}

static bool walk_next(walk *w, member *out)
{
    *out = (member) { .lead = w->p };
    const char *p = past_space(w->p, w->end);
    if (p >= w->end || *p == '}' || *p == ']')
        return false;
    if (!w->array) {
        const char *key = p;
        p = past_string(p, w->end);
        out->key = (tnf_str) { key, (size_t)(p - key) };
        p = past_space(past_space(p, w->end) + 1, w->end); /* the colon */
    }
    const char *value = p;
    p = past_value(p, w->end);
    out->value = (tnf_str) { value, (size_t)(p - value) };
    p = past_space(p, w->end);
    w->p = p < w->end && *p == ',' ? p + 1 : p;
    return true;
}

/* ------------------------------------------------------------------- paths */

/* A key without quotes and escapes. */
static bool plain_key(meta_editor *m, tnf_str *out, tnf_str quoted)
{
    tnf_value v;
    tnf_error error;
    if (!memchr(quoted.p, '\\', quoted.n)) {
        *out = (tnf_str) { quoted.p + 1, quoted.n - 2 };
        return true;
    }
    if (tnf_builder_parse(&v, m->builder, quoted.p, quoted.n, &error) != TNF_OK)
        return meta_fail(m, "%s", error.message);
    *out = (tnf_str) { v.as.s, v.n };
    return true;
}

static bool has_inside(tnf_str value)
{
    return value.n > 0 && (value.p[0] == '{' || value.p[0] == '[');
}

/* Finds the child of an object or array that the path leads through; returns false if there is
 * none. *last is the last child (lead NULL: no children). */
static bool find_child(meta_editor *m, tnf_str value, tnf_str path, member *out, tnf_str *rest,
                       member *last)
{
    walk w;
    member one;
    bool found = false;
    size_t wanted, at = 0, longest = 0;
    *last = (member) { 0 };
    if (!walk_begin(&w, value))
        return false;
    if (w.array && !meta_index(path, &wanted, rest))
        return false;
    for (; walk_next(&w, &one); *last = one, at++) {
        tnf_str key = { 0 }, behind;
        if (w.array) {
            if (at == wanted)
                *out = one, found = true;
            continue;
        }
        if (!plain_key(m, &key, one.key) || !meta_begins(path, key, &behind) ||
            (behind.p && !has_inside(one.value)) || (found && key.n < longest))
            continue;
        *out = one;
        *rest = behind;
        longest = key.n;
        found = true;
    }
    return found;
}

static bool no_such(meta_editor *m, tnf_str path)
{
    return meta_fail(m, "no attribute '%.*s' in the JSON document", (int)path.n, path.p);
}

bool meta_json_get(meta_editor *m, tnf_str *out, tnf_str value, tnf_str path)
{
    member found, last;
    while (find_child(m, value, path, &found, &path, &last)) {
        value = found.value;
        if (!path.p) {
            *out = value;
            return true;
        }
    }
    return no_such(m, path);
}

/* ------------------------------------------------------------------ changes */

/* A copy of the document with the bytes from..to replaced. */
static bool replace_bytes(meta_editor *m, tnf_str *out, tnf_str d, const char *from, const char *to,
                          tnf_str by)
{
    size_t before = (size_t)(from - d.p), after = (size_t)(d.p + d.n - to);
    char *text = meta_take(m, before + by.n + after);
    if (!text)
        return false;
    memcpy(text, d.p, before);
    memcpy(text + before, by.p, by.n);
    memcpy(text + before + by.n, to, after);
    *out = (tnf_str) { text, before + by.n + after };
    return true;
}

/* The text as a JSON string. */
static bool quote_text(meta_editor *m, tnf_str *out, const char *text, size_t n)
{
    char *made = NULL;
    size_t made_n = 0;
    json j = { open_memstream(&made, &made_n), false };
    if (j.to)
        json_str(&j, (tnf_str) { text, n });
    bool ok = j.to && fclose(j.to) == 0;
    char *kept = ok ? meta_take(m, made_n) : NULL;
    if (kept)
        memcpy(kept, made, made_n);
    free(made);
    *out = (tnf_str) { kept, made_n };
    m->no_memory = m->no_memory || !kept;
    return kept != NULL;
}

/* The kind of a value: { [ " t n, or '0' for a number. */
static char kind_of(tnf_str value)
{
    char c = value.n > 0 ? value.p[0] : 0;
    return c == 'f' ? 't' : strchr("{[\"tn", c) ? c : '0';
}

/* Converts typed text to JSON of the kind of the existing value (p NULL: there is none). */
static bool typed_as_json(meta_editor *m, tnf_str *out, tnf_str like, const char *text)
{
    tnf_value v;
    tnf_error error;
    size_t n = strlen(text);
    if (!tnf_utf8_valid(NULL, text, n))
        return meta_fail(m, "the value is not UTF-8");
    bool is_json = !m->as_text && tnf_builder_parse(&v, m->builder, text, n, &error) == TNF_OK;
    const char *p = past_space(text, text + n);
    *out = (tnf_str) { p, is_json ? (size_t)(past_value(p, text + n) - p) : 0 };
    char kind = like.p ? kind_of(like) : 'n';
    if (is_json && (kind == 'n' || kind == kind_of(*out)))
        return true;
    if (kind == 'n' || kind == '"' || m->as_text)
        return quote_text(m, out, text, n);
    return meta_fail(m, "the value does not fit; the JSON document has %s there",
                     kind == '{'   ? "an object"
                     : kind == '[' ? "an array"
                     : kind == 't' ? "true or false"
                                   : "a number");
}

/* Adds a member, with the same spacing as the last one. */
static bool add_member(meta_editor *m, tnf_str *out, tnf_str d, tnf_str object, const member *last,
                       tnf_str key, tnf_str value)
{
    tnf_str name;
    if (!quote_text(m, &name, key.p, key.n))
        return false;
    const char *at = last->lead ? last->value.p + last->value.n : object.p + 1;
    tnf_str lead = { last->lead, last->lead ? (size_t)(last->key.p - last->lead) : 0 };
    tnf_str colon = { ":", 1 };
    if (last->lead) {
        colon.p = last->key.p + last->key.n;
        colon.n = (size_t)(last->value.p - colon.p);
    }
    char *text = meta_take(m, 1 + lead.n + name.n + colon.n + value.n);
    if (!text)
        return false;
    char *p = text;
    if (last->lead)
        *p++ = ',';
    const tnf_str pieces[] = { lead, name, colon, value };
    for (size_t i = 0; i < 4; i++) {
        if (pieces[i].n > 0)
            memcpy(p, pieces[i].p, pieces[i].n);
        p += pieces[i].n;
    }
    return replace_bytes(m, out, d, at, at, (tnf_str) { text, (size_t)(p - text) });
}

bool meta_json_set(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path, const char *text)
{
    const char *start = past_space(document.p, document.p + document.n);
    tnf_str value = { start, (size_t)(document.p + document.n - start) }, by = { 0 };
    member found, last;
    tnf_str rest = path;
    while (find_child(m, value, path, &found, &rest, &last)) {
        value = found.value;
        if (!rest.p)
            return typed_as_json(m, &by, value, text) &&
                   replace_bytes(m, out, document, value.p, value.p + value.n, by);
        path = rest;
    }
    if (value.p[0] != '{')
        return no_such(m, path);
    return typed_as_json(m, &by, (tnf_str) { 0 }, text) &&
           add_member(m, out, document, value, &last, path, by);
}

bool meta_json_remove(meta_editor *m, tnf_str *out, tnf_str document, tnf_str path)
{
    const char *start = past_space(document.p, document.p + document.n);
    tnf_str value = { start, (size_t)(document.p + document.n - start) };
    member found, last;
    tnf_str rest = path;
    while (find_child(m, value, path, &found, &rest, &last)) {
        const char *from = found.lead, *to = found.value.p + found.value.n;
        const char *next = past_space(to, document.p + document.n);
        if (rest.p) {
            value = found.value;
            path = rest;
            continue;
        }
        if (from[-1] == ',')
            from--; /* removes the comma before the value; the text after the value stays */
        else if (*next == ',')
            to = next + 1;
        return replace_bytes(m, out, document, from, to, (tnf_str) { "", 0 });
    }
    return no_such(m, path);
}
