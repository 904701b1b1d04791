/* SPDX-License-Identifier: MIT */
#include "rename.h"
#include "out.h"
#include "regex.h"
#include "rename_map.h"
#include <stdlib.h>
#include <string.h>

typedef struct expression {
    regex *regex;
    const char *given;
    char *text; /* the replacement */
    bool all;   /* the flag g */
    bool met;   /* it has matched a name */
} expression;

struct renaming {
    const char *given; /* the argument of --map */
    name_map *map;     /* or NULL */
    expression *expressions;
    size_t n;
    kept_name *kept; /* owns the new names */
};

/* ------------------------------------------------------------ expressions */

/* The text up to the next delimiter. A delimiter in the text has a backslash before it. */
static char *take_until(const char **p, char end)
{
    char *out = malloc(strlen(*p) + 1), *to = out;
    while (out && **p && **p != end) {
        if (**p == '\\' && (*p)[1] == end) {
            ++*p;
        } else if (**p == '\\' && (*p)[1]) {
            *to++ = *(*p)++;
        }
        *to++ = *(*p)++;
    }
    if (out)
        *to = 0;
    if (out && **p == end) {
        ++*p;
        return out;
    }
    free(out);
    return NULL;
}

static bool parse_expression(expression *x, const char *text, char why[128])
{
    bool good = text[0] == 's' && text[1] && text[1] != '\\';
    const char *p = good ? text + 2 : text;
    bool any_case = false;
    char *pattern = good ? take_until(&p, text[1]) : NULL;
    x->given = text;
    x->text = pattern ? take_until(&p, text[1]) : NULL;
    snprintf(why, 128, "expected s/REGEX/TEXT/");
    good = good && pattern && *pattern && x->text && p[strspn(p, "gi")] == 0;
    for (; good && *p; p++) {
        x->all = x->all || *p == 'g';
        any_case = any_case || *p == 'i';
    }
    x->regex = good ? regex_new(pattern, any_case, why) : NULL;
    if (!x->regex)
        free(x->text);
    free(pattern);
    return x->regex != NULL;
}

/* ---------------------------------------------------------------- renaming */

static void put_text(FILE *to, const char *text, const char *from, const regex_group *m)
{
    for (; *text; text++) {
        int group = *text == '&' ? 0 : -1;
        if (*text == '\\' && text[1]) {
            text++;
            group = *text >= '0' && *text <= '9' ? *text - '0' : -1;
        }
        if (group < 0)
            putc(*text, to);
        else if (m[group].from != REGEX_NONE)
            fwrite(from + m[group].from, 1, m[group].to - m[group].from, to);
    }
}

/* The length of a character in bytes; 1 for an invalid byte. */
static size_t next_character(const char *p, size_t n)
{
    uint32_t c;
    size_t length = tnf_utf8_next(&c, p, n);
    return length ? length : 1;
}

static void put_substituted(FILE *to, expression *x, const char *name)
{
    regex_group m[REGEX_GROUPS];
    size_t n = strlen(name), at = 0, from = 0; /* from: the first byte that is not written yet */
    while (at <= n && regex_find(x->regex, name, n, at, m)) {
        fwrite(name + from, 1, m[0].from - from, to);
        put_text(to, x->text, name, m);
        x->met = true;
        from = m[0].to;
        at = m[0].to;
        if (m[0].to == m[0].from) /* an empty match: advance by one character */
            at += next_character(name + at, n - at);
        if (!x->all)
            break;
    }
    fputs(name + from, to);
}

/* Returns NULL if there is no memory. */
static const char *keep_name(renaming *r, expression *x, const char *name)
{
    name_maker m;
    name_begin(&m);
    if (!m.to)
        return NULL;
    put_substituted(m.to, x, name);
    return name_end(&m, &r->kept);
}

tnf_status renaming_step(void *ctx, tnf_str *out, tnf_str name, tnf_error *error)
{
    return renaming_apply(ctx, out, name, error);
}

tnf_status renaming_apply(renaming *r, tnf_str *out, tnf_str name, tnf_error *error)
{
    const char *now = name.p;
    *out = name;
    if (!r || memchr(name.p, 0, name.n))
        return TNF_OK;
    const char *known = NULL;
    if (r->map && !name_map_find(r->map, &known, now))
        now = NULL;
    now = known ? known : now;
    for (size_t i = 0; now && i < r->n; i++)
        now = keep_name(r, &r->expressions[i], now);
    if (!now) {
        *error = (tnf_error) { .status = TNF_ENOMEM, .offset = TNF_NO_OFFSET };
        snprintf(error->message, sizeof error->message, "out of memory for names");
        return TNF_ENOMEM;
    }
    *out = (tnf_str) { now, strlen(now) };
    return TNF_OK;
}

/* --------------------------------------------------------------- beginning */

static int add_expressions(renaming *r, const opt_list *list)
{
    char why[128];
    r->expressions = calloc(list->n + 1, sizeof *r->expressions);
    if (!r->expressions)
        return memory_error();
    for (; r->n < list->n; r->n++)
        if (!parse_expression(&r->expressions[r->n], list->items[r->n], why))
            return strcmp(why, "out of memory") == 0
                       ? memory_error()
                       : usage_error("--rename '%s': %s", list->items[r->n], why);
    return EXIT_DONE;
}

int renaming_open(renaming **out, const char *map, const opt_list *expressions)
{
    *out = NULL;
    if (!map && expressions->n == 0)
        return EXIT_DONE;
    renaming *r = calloc(1, sizeof *r);
    if (!r)
        return memory_error();
    r->given = map;
    int code = map ? name_map_open(&r->map, map) : EXIT_DONE;
    if (code == EXIT_DONE)
        code = add_expressions(r, expressions);
    if (code == EXIT_DONE)
        *out = r;
    else
        renaming_free(r);
    return code;
}

int renaming_check(renaming *r, const tnf_file *const *files, size_t n, const renaming_choice *only,
                   renaming_counts *counts)
{
    const tnf_object *o;
    tnf_str name;
    tnf_error error;
    *counts = (renaming_counts) { 0 };
    for (size_t f = 0; r && f < n; f++)
        for (size_t i = 0; (o = tnf_at(files[f], i)); i++) {
            if (!glob_any(only->select, o->name) ||
                (only->exclude->n && glob_any(only->exclude, o->name)))
                continue;
            if (renaming_apply(r, &name, o->name, &error) != TNF_OK)
                return memory_error();
            bool same = name.n == o->name.n && memcmp(name.p, o->name.p, name.n) == 0;
            counts->all++;
            counts->renamed += !same;
            if (same && counts->unknown++ == 0)
                snprintf(counts->first_unknown, sizeof counts->first_unknown, "%.*s",
                         (int)(name.n < 300 ? name.n : 300), name.p);
        }
    for (size_t i = 0; r && counts->all && i < r->n; i++)
        if (!r->expressions[i].met)
            return usage_error("--rename '%s' matches no tensor", r->expressions[i].given);
    bool any = !r || !r->map || counts->all == 0 || name_map_used(r->map);
    return any ? EXIT_DONE : usage_error("--map: no tensor has one of the names in %s", r->given);
}

/* Reports names of a list that no tensor has. name_map_unused() ignores lines with {n} or {end}. */
static void note_unused(const renaming *r)
{
    char text[512];
    const char *first = NULL;
    size_t n = r->map ? name_map_unused(r->map, &first) : 0;
    if (n == 0)
        return;
    snprintf(text, sizeof text, "no tensor has the name '%.400s'%s", first,
             n > 1 ? " (other lines match no tensor, either)" : "");
    file_message(r->given, "", TNF_NO_OFFSET, text);
}

static void note_unknown(const renaming *r, const renaming_counts *counts)
{
    char text[512];
    if (!r->map || !name_map_is_table(r->map) || counts->unknown == 0)
        return;
    snprintf(text, sizeof text,
             "%zu tensor%s kept %s name, since the map has no new name for '%.300s'%s",
             counts->unknown, counts->unknown == 1 ? "" : "s",
             counts->unknown == 1 ? "its" : "their", counts->first_unknown,
             counts->unknown > 1 ? " and others" : "");
    file_message(r->given, "", TNF_NO_OFFSET, text);
}

void renaming_notes(const renaming *r, const cli_state *cli, const renaming_counts *counts)
{
    if (!r || cli->quiet)
        return;
    note_unused(r);
    note_unknown(r, counts);
    fprintf(stderr, "tenfold: %zu of %zu tensor%s renamed\n", counts->renamed, counts->all,
            counts->all == 1 ? "" : "s");
}

void renaming_free(renaming *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++) {
        regex_free(r->expressions[i].regex);
        free(r->expressions[i].text);
    }
    names_free(r->kept);
    name_map_free(r->map);
    free(r->expressions);
    free(r);
}
