/* SPDX-License-Identifier: MIT */
#include "rename.h"
#include "out.h"
#include "regex.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct expression {
    regex *regex;
    const char *given;
    char *text; /* what is put instead */
    bool all;   /* g */
    bool met;   /* it has matched */
} expression;

typedef struct line {
    char *old, *new; /* old owns both */
    bool met;        /* a tensor has that name */
} line;

struct renaming {
    const char *map;
    line *lines; /* by old */
    size_t nlines;
    expression *expressions;
    size_t n;
    struct kept *kept; /* names that were made */
};

struct kept {
    struct kept *next;
    char name[];
};

/* -------------------------------------------------------------------- map */

static int by_old(const void *a, const void *b)
{
    return strcmp(((const line *)a)->old, ((const line *)b)->old);
}

/* Cuts "OLD<tab>NEW" in two; false if the line is different. */
static bool cut(line *out, char *text)
{
    size_t n = strcspn(text, "\t");
    if (!text[n])
        n = strcspn(text, " ");
    if (!text[n] || n == 0)
        return false;
    text[n] = 0;
    out->met = false;
    out->old = text;
    out->new = text + n + 1 + strspn(text + n + 1, " \t");
    return *out->new != 0;
}

static int add_line(renaming *r, const char *text, const char *path, size_t number)
{
    line *more = realloc(r->lines, (r->nlines + 1) * sizeof *more);
    char *copy = more ? strdup(text) : NULL;
    if (more)
        r->lines = more;
    if (!copy)
        return usage_error("out of memory");
    if (cut(&r->lines[r->nlines], copy)) {
        r->nlines++;
        return EXIT_DONE;
    }
    free(copy);
    return usage_error("%s: line %zu is not 'OLD NEW'", path, number);
}

static int read_map(renaming *r, const char *path)
{
    char *text = NULL;
    size_t room = 0, number = 0;
    int code = EXIT_DONE;
    FILE *f = fopen(path, "r");
    if (!f) {
        file_message(path, "", TNF_NO_OFFSET, strerror(errno));
        return EXIT_IO;
    }
    for (ssize_t n; code == EXIT_DONE && (n = getline(&text, &room, f)) >= 0;) {
        number++;
        while (n > 0 && strchr("\r\n ", text[n - 1]))
            text[--n] = 0;
        if (n > 0)
            code = add_line(r, text, path, number);
    }
    if (code == EXIT_DONE && !feof(f)) {
        file_message(path, "", TNF_NO_OFFSET, strerror(errno));
        code = EXIT_IO;
    }
    free(text);
    fclose(f);
    if (r->nlines > 1)
        qsort(r->lines, r->nlines, sizeof *r->lines, by_old);
    for (size_t i = 1; code == EXIT_DONE && i < r->nlines; i++)
        if (!strcmp(r->lines[i - 1].old, r->lines[i].old))
            code = usage_error("%s: '%s' has two new names", path, r->lines[i].old);
    return code;
}

/* ------------------------------------------------------------ expressions */

/* The text up to the next delimiter; the delimiter itself is written with a backslash. */
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

static bool parse(expression *x, const char *text, char why[128])
{
    bool good = text[0] == 's' && text[1] && text[1] != '\\';
    const char *p = good ? text + 2 : text;
    bool any_case = false;
    char *pattern = good ? take_until(&p, text[1]) : NULL;
    x->given = text;
    x->text = pattern ? take_until(&p, text[1]) : NULL;
    snprintf(why, 128, "it should look like s/REGEX/TEXT/");
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

static void substitute(FILE *to, expression *x, const char *name)
{
    regex_group m[REGEX_GROUPS];
    size_t n = strlen(name), at = 0, from = 0; /* from: what is not written yet */
    while (at <= n && regex_find(x->regex, name, n, at, m)) {
        fwrite(name + from, 1, m[0].from - from, to);
        put_text(to, x->text, name, m);
        x->met = true;
        from = m[0].to;
        at = m[0].to + (m[0].to == m[0].from); /* nothing was matched: on by one */
        if (!x->all)
            break;
    }
    fputs(name + from, to);
}

/* NULL: no memory. */
static const char *keep_name(renaming *r, expression *x, const char *name)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return NULL;
    substitute(to, x, name);
    bool good = fclose(to) == 0;
    struct kept *k = good ? malloc(sizeof *k + n + 1) : NULL;
    if (k) {
        memcpy(k->name, text, n + 1);
        k->next = r->kept;
        r->kept = k;
    }
    free(text);
    return k ? k->name : NULL;
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
    line *known = r->nlines ? bsearch(&(line) { .old = (char *)(uintptr_t)now }, r->lines,
                                      r->nlines, sizeof *r->lines, by_old)
                            : NULL;
    if (known) {
        known->met = true;
        now = known->new;
    }
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
        return usage_error("out of memory");
    for (; r->n < list->n; r->n++)
        if (!parse(&r->expressions[r->n], list->items[r->n], why))
            return usage_error("--rename '%s': %s", list->items[r->n], why);
    return EXIT_DONE;
}

int renaming_open(renaming **out, const char *map, const opt_list *expressions)
{
    *out = NULL;
    if (!map && expressions->n == 0)
        return EXIT_DONE;
    renaming *r = calloc(1, sizeof *r);
    if (!r)
        return usage_error("out of memory");
    r->map = map;
    int code = map ? read_map(r, map) : EXIT_DONE;
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
                return usage_error("out of memory");
            counts->all++;
            counts->renamed += name.n != o->name.n || memcmp(name.p, o->name.p, name.n) != 0;
        }
    for (size_t i = 0; r && counts->all && i < r->n; i++)
        if (!r->expressions[i].met)
            return usage_error("--rename '%s' matches no tensor", r->expressions[i].given);
    bool any = !r || r->nlines == 0 || counts->all == 0;
    for (size_t i = 0; !any && i < r->nlines; i++)
        any = r->lines[i].met;
    return any ? EXIT_DONE : usage_error("--map: no tensor has one of the names in %s", r->map);
}

void renaming_notes(const renaming *r, const cli_state *cli, const renaming_counts *counts)
{
    char text[512];
    const char *first = NULL;
    size_t n = 0;
    if (!r || cli->quiet)
        return;
    for (size_t i = 0; i < r->nlines; i++)
        if (!r->lines[i].met && n++ == 0)
            first = r->lines[i].old;
    if (n > 0) {
        snprintf(text, sizeof text, "no tensor is called '%.400s'%s", first,
                 n > 1 ? " (the same holds for other lines)" : "");
        file_message(r->map, "", TNF_NO_OFFSET, text);
    }
    fprintf(stderr, "tenfold: %zu of %zu tensor%s renamed\n", counts->renamed, counts->all,
            counts->all == 1 ? "" : "s");
}

void renaming_free(renaming *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->nlines; i++)
        free(r->lines[i].old);
    for (size_t i = 0; i < r->n; i++) {
        regex_free(r->expressions[i].regex);
        free(r->expressions[i].text);
    }
    for (struct kept *k = r->kept, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(r->lines);
    free(r->expressions);
    free(r);
}
