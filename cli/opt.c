/* SPDX-License-Identifier: MIT */
/* Parses command lines by a table: --name, --name=value, --name value, -n, -nvalue, -abc; -- ends
 * the options. */
#include "opt.h"
#include "cmd.h"
#include "out.h"
#include "suggest.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct found {
    const opt *o;
    void *values;
} found;

/* The state of a parse. */
typedef struct parse {
    const opt_set *sets;
    size_t nsets;
    char **argv;
    int argc, at;
} parse;

size_t opt_word(const char *words, size_t i, const char **out)
{
    const char *p = words;
    for (; i > 0; i--) {
        p = strchr(p, '|');
        if (!p)
            return 0;
        p++;
    }
    *out = p;
    return strcspn(p, "|");
}

bool opt_is_old(const opt *o)
{
    return !o->help;
}

static bool find_long(const parse *p, const char *name, size_t n, found *out)
{
    for (size_t s = 0; s < p->nsets; s++)
        for (const opt *o = p->sets[s].table; o && o->name; o++)
            if (strlen(o->name) == n && !memcmp(o->name, name, n)) {
                *out = (found) { o, p->sets[s].values };
                return true;
            }
    return false;
}

static bool find_short(const parse *p, char letter, found *out)
{
    for (size_t s = 0; s < p->nsets; s++)
        for (const opt *o = p->sets[s].table; o && o->name; o++)
            if (o->letter == letter && !opt_is_old(o)) {
                *out = (found) { o, p->sets[s].values };
                return true;
            }
    return false;
}

/* Finds the old meaning of a letter that has a new meaning now. The old one counts only if one of
 * the old option's words follows. *value is the text that follows, or NULL. */
static bool find_old(const parse *p, const char *letters, found *out, const char **value)
{
    for (size_t s = 0; s < p->nsets; s++)
        for (const opt *o = p->sets[s].table; o && o->name; o++) {
            if (!opt_is_old(o) || o->letter != *letters)
                continue;
            *value = letters[1] ? letters + 1 : p->at < p->argc ? p->argv[p->at] : NULL;
            *out = (found) { o, p->sets[s].values };
            if (!o->words)
                return true;
            return *value && opt_position(o->words, *value, strlen(*value)) >= 0;
        }
    return false;
}

static bool unknown_long(const parse *p, const char *name, size_t n)
{
    suggestion best;
    suggest_begin(&best, name, n);
    for (size_t s = 0; s < p->nsets; s++)
        for (const opt *o = p->sets[s].table; o && o->name; o++)
            suggest_offer(&best, o->name, strlen(o->name));
    if (best.n > 0)
        usage_error("unknown option '--%.*s'; did you mean '--%s'?", (int)n, name, best.near[0].p);
    else
        usage_error("unknown option '--%.*s'", (int)n, name);
    return false;
}

int opt_position(const char *words, const char *text, size_t n)
{
    const char *word;
    size_t length;
    for (size_t i = 0; (length = opt_word(words, i, &word)) > 0; i++)
        if (length == n && !memcmp(word, text, n))
            return (int)i;
    return -1;
}

bool opt_count(unsigned *out, const char *text)
{
    size_t n = strspn(text, "0123456789");
    unsigned long number = n > 0 && n < 6 && !text[n] ? strtoul(text, NULL, 10) : 0;
    *out = (unsigned)number;
    return number >= 1 && number <= 1000;
}

static bool set_choice(const opt *o, int *to, const char *value)
{
    int position = opt_position(o->words, value, strlen(value));
    if (position < 0)
        usage_error("--%s takes one of %s, not '%s'", o->name, o->words, value);
    else
        *to = position;
    return position >= 0;
}

static bool append_value(opt_list *list, const char *value)
{
    const char **more = realloc(list->items, (list->n + 1) * sizeof *more);
    if (!more)
        exit(memory_error()); /* nothing is open yet */
    list->items = more;
    list->items[list->n++] = value;
    return true;
}

/* value is NULL for an option given without one. */
static bool set_option(const found *f, const char *value)
{
    void *to = (char *)f->values + f->o->at;
    switch (f->o->kind) {
    case OPT_FLAG:
        *(bool *)to = true;
        return true;
    case OPT_TEXT:
        *(const char **)to = value;
        return true;
    case OPT_MAYBE:
        *(opt_maybe *)to = (opt_maybe) { true, value };
        return true;
    case OPT_LIST:
        return append_value(to, value);
    case OPT_CHOICE:
        return set_choice(f->o, to, value);
    }
    return false;
}

static bool wants_value(const opt *o)
{
    return o->kind == OPT_TEXT || o->kind == OPT_LIST || o->kind == OPT_CHOICE;
}

/* The value of an option, from the next argument. */
static const char *next_value(parse *p, const opt *o)
{
    if (p->at >= p->argc) {
        usage_error("--%s needs a value: %s", o->name, o->arg);
        return NULL;
    }
    return p->argv[p->at++];
}

static bool parse_long(parse *p, const char *text)
{
    size_t n = strcspn(text, "=");
    const char *value = text[n] ? text + n + 1 : NULL;
    found f;
    if (!find_long(p, text, n, &f))
        return unknown_long(p, text, n);
    if (value && f.o->kind == OPT_FLAG) {
        usage_error("--%s takes no value", f.o->name);
        return false;
    }
    if (!value && wants_value(f.o) && !(value = next_value(p, f.o)))
        return false;
    return set_option(&f, value);
}

static bool parse_short(parse *p, const char *letters)
{
    for (; *letters; letters++) {
        found f;
        const char *after;
        bool old = find_old(p, letters, &f, &after);
        if (!old && !find_short(p, *letters, &f)) {
            uint32_t c;
            size_t n = tnf_utf8_next(&c, letters, strlen(letters));
            usage_error("unknown option '-%.*s'", n ? (int)n : 1, letters);
            return false;
        }
        if (!wants_value(f.o)) {
            if (!set_option(&f, NULL))
                return false;
            continue;
        }
        const char *value = letters[1] ? letters + 1 : next_value(p, f.o);
        return value && set_option(&f, value);
    }
    return true;
}

bool opt_parse(const opt_set *sets, size_t nsets, int argc, char **argv, bool leading, int *nargs)
{
    parse p = { sets, nsets, argv, argc, 0 };
    int kept = 0;
    while (p.at < argc) {
        char *arg = argv[p.at++];
        if (!strcmp(arg, "--")) {
            while (p.at < argc)
                argv[kept++] = argv[p.at++];
        } else if (arg[0] == '-' && arg[1] == '-') {
            if (!parse_long(&p, arg + 2))
                return false;
        } else if (arg[0] == '-' && arg[1]) {
            if (!parse_short(&p, arg + 1))
                return false;
        } else {
            argv[kept++] = arg;
            while (leading && p.at < argc)
                argv[kept++] = argv[p.at++];
        }
    }
    *nargs = kept;
    return true;
}

void opt_release(const opt_set *set)
{
    for (const opt *o = set->table; o && o->name; o++) {
        if (o->kind != OPT_LIST)
            continue;
        opt_list *list = (void *)((char *)set->values + o->at);
        free(list->items);
        *list = (opt_list) { NULL, 0 }; /* two options may share a list */
    }
}

bool opt_tolerance(double *out, const char *of, const char *option, const char *text)
{
    char *end = NULL;
    if (!text)
        return true;
    *out = strtod(text, &end);
    if (*text && !*end && isfinite(*out) && *out >= 0)
        return true;
    usage_error("%s: --%s takes a number of at least 0, not '%s'", of, option, text);
    return false;
}
