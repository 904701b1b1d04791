/* SPDX-License-Identifier: MIT */
/* Finds values by the last words of their keys: "step" for "safetensors.metadata.step". */
#include "meta.h"
#include <stdlib.h>
#include <string.h>

#define NAMED 3u /* in a message */

typedef struct search {
    meta_editor *editor;
    tnf_str words;
    size_t found;
    tnf_value value;
    char names[NAMED][100];
} search;

/* Does a key end with the words, after a dot? */
static bool ends_with(tnf_str key, tnf_str words)
{
    if (key.n < words.n || memcmp(key.p + key.n - words.n, words.p, words.n) != 0)
        return false;
    return key.n == words.n || key.p[key.n - words.n - 1] == '.';
}

static void note_found(search *s, const char *path, tnf_value value)
{
    if (s->found < NAMED)
        snprintf(s->names[s->found], sizeof s->names[0], "%s", path);
    if (s->found++ == 0)
        s->value = value;
}

static void look_in(search *s, const tnf_value *v, const char *path);

/* In a JSON document, the words may also be a path from the root. */
static void look_in_json(search *s, const tnf_value *v, const char *path)
{
    tnf_str inside;
    char *name = NULL;
    size_t n = strlen(path) + s->words.n + 2;
    if (!meta_json_get(s->editor, &inside, (tnf_str) { v->as.s, v->n }, s->words) ||
        !(name = malloc(n)))
        return;
    snprintf(name, n, "%s.%.*s", path, (int)s->words.n, s->words.p);
    note_found(s, name, (tnf_value) { .kind = TNF_JSON, .n = inside.n, .as.s = inside.p });
    free(name);
}

/* The recursion is bounded, since readers limit the depth of trees. */
static void look_at(search *s, const tnf_member *m, const char *parent)
{
    size_t before = strlen(parent), n = before + m->key.n + 2;
    char *path = malloc(n);
    if (!path)
        return;
    snprintf(path, n, "%s%s%.*s", parent, before ? "." : "", (int)m->key.n, m->key.p);
    if (ends_with((tnf_str) { path, strlen(path) }, s->words))
        note_found(s, path, m->value);
    else
        look_in(s, &m->value, path);
    free(path);
}

static void look_in(search *s, const tnf_value *v, const char *path)
{
    if (v->kind == TNF_JSON)
        look_in_json(s, v, path);
    for (size_t i = 0; v->kind == TNF_MAP && i < v->n; i++)
        look_at(s, &v->as.members[i], path);
}

bool meta_find(meta_editor *m, tnf_value *out, const tnf_value *tree, tnf_str words)
{
    search s = { .editor = m, .words = words };
    look_in(&s, tree, "");
    *out = s.value;
    if (s.found == 0)
        return meta_fail(m, "no attribute '%.*s'", (int)words.n, words.p);
    if (s.found == 1)
        return true;
    return meta_fail(m, "several keys end with '%.*s': %s, %s%s%s%s", (int)words.n, words.p,
                     s.names[0], s.names[1], s.found > 2 ? ", " : "", s.found > 2 ? s.names[2] : "",
                     s.found > NAMED ? " ..." : "");
}
