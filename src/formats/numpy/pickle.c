/* SPDX-License-Identifier: MIT */
/* Lists the names that a pickle would call, with the machine that reads pickles as data. If the
 * pickle is invalid, or longer than the limit, the names before that point are listed. */
#include "formats/numpy/pickle.h"

#include "wire/pickle.h"

#include <stdio.h>
#include <string.h>

#define MOST_TOLD 32u

typedef struct name_list {
    char *out;
    size_t n, size;
    bool full; /* more names than fit */
} name_list;

/* Names that every object array needs; they are not reported. */
static bool is_usual(const char *call)
{
    static const char *const usual[] = {
        "numpy._core.multiarray._reconstruct",
        "numpy.core.multiarray._reconstruct",
        "numpy.ndarray",
        "numpy.dtype",
    };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(call, usual[i]) == 0)
            return true;
    return false;
}

/* Adds a name, unless it is already in the text. */
static void add_name(name_list *w, tnf_str module, tnf_str name)
{
    char text[140];
    int n = snprintf(text, sizeof text, "%.*s.%.*s", (int)(module.n < 60 ? module.n : 60),
                     module.n ? module.p : "", (int)(name.n < 60 ? name.n : 60),
                     name.n ? name.p : "");
    tnf_str call = { text, n < 0 ? 0 : strlen(text) };
    const char *quoted = TNF_QUOTED(call);
    if (is_usual(text) || w->full || strstr(w->out, quoted))
        return;
    w->full = w->n + strlen(quoted) + sizeof ", , …" > w->size;
    if (w->full)
        quoted = "…";
    w->n += (size_t)snprintf(w->out + w->n, w->size - w->n, "%s%s", w->n ? ", " : "", quoted);
}

tnf_status tnf_np_pickle_calls(tnf_cur c, tnf_arena *arena, char *out, size_t size, tnf_error *e)
{
    name_list w = { .out = out, .size = size };
    tnf_pickle p;
    out[0] = 0;
    tnf_status status = tnf_pickle_read(&p, c.p, tnf_left(&c), tnf_where(&c), arena, NULL);
    if (status == TNF_ENOMEM)
        return tnf_arena_fail(arena, "a pickle", e);
    for (size_t i = 0; i < p.globals.n; i++)
        add_name(&w, p.globals.nodes[i]->as.global->module, p.globals.nodes[i]->as.global->name);
    if (w.n == 0)
        snprintf(out, size, "only names that NumPy needs itself");
    return TNF_OK;
}

static bool same_name(const tnf_pickle_global *a, const tnf_pickle_global *b)
{
    return tnf_str_compare(a->module, b->module) == 0 && tnf_str_compare(a->name, b->name) == 0;
}

tnf_status tnf_np_pickle_danger(tnf_cur c, tnf_str array, tnf_arena *arena, tnf_tell tell,
                                void *ctx, tnf_error *e)
{
    tnf_pickle p;
    const tnf_pickle_global *told[MOST_TOLD];
    size_t n = 0;
    tnf_status status = tnf_pickle_read(&p, c.p, tnf_left(&c), tnf_where(&c), arena, NULL);
    if (status == TNF_ENOMEM)
        return tnf_arena_fail(arena, "a pickle", e);
    for (size_t i = 0; i < p.globals.n && n < MOST_TOLD; i++) {
        const tnf_pickle_global *g = p.globals.nodes[i]->as.global;
        tnf_error why = { .offset = TNF_NO_OFFSET };
        size_t k = 0;
        while (k < n && !same_name(told[k], g))
            k++;
        if (k < n || !tnf_pickle_dangerous(p.globals.nodes[i]))
            continue;
        told[n++] = g;
        (void)tnf_fail(&why, TNF_EFORMAT, tnf_where(&c) + p.globals.nodes[i]->at,
                       "in %s: loading it with pickle imports %.*s.%.*s", TNF_QUOTED(array),
                       (int)(g->module.n < 60 ? g->module.n : 60), g->module.n ? g->module.p : "",
                       (int)(g->name.n < 60 ? g->name.n : 60), g->name.n ? g->name.p : "");
        why.rule = "PickleCall";
        tell(ctx, &why, (tnf_str) { NULL, 0 });
    }
    return TNF_OK;
}
