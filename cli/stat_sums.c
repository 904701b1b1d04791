/* SPDX-License-Identifier: MIT */
/* Sums over the listing of a file: by type, and by the beginning of names. No tensor is read. */
#include "stat.h"
#include <stdlib.h>
#include <string.h>

/* A tensor and the key of its group, for sorting. */
typedef struct entry {
    tnf_str key;
    size_t place;
    const tnf_object *object;
} entry;

static bool is_separator(char c)
{
    return c == '.' || c == '/';
}

static bool is_number(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    return n > 0;
}

/* The beginning of a name, which is the group of the tensor. */
tnf_str stat_prefix(tnf_str name, unsigned depth)
{
    size_t end = 0, before = name.n;
    for (unsigned piece = 1; end < name.n; piece++) {
        size_t from = end;
        while (end < name.n && !is_separator(name.p[end]))
            end++;
        if (depth ? piece == depth : is_number(name.p + from, end - from))
            return (tnf_str) { name.p, end };
        if (end == name.n && from > 0 && !depth)
            before = from - 1;
        end += end < name.n;
    }
    return (tnf_str) { name.p, before };
}

static int by_entry_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int c = compare_texts(x->key, y->key);
    return c ? c : x->place < y->place ? -1 : x->place > y->place;
}

/* A sum and the place of its first tensor, for sorting by place or size. */
typedef struct placed {
    stat_sum sum;
    size_t place;
    uint64_t of_type; /* bytes of sum.type */
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int by_bytes(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->sum.bytes != y->sum.bytes)
        return x->sum.bytes > y->sum.bytes ? -1 : 1;
    return by_place(a, b);
}

/* A majority vote: finds the type with more than half of the bytes, if there is one; else some
 * type. */
static void vote_type(placed *p, const char *type, uint64_t bytes)
{
    if (p->sum.type && !strcmp(p->sum.type, type)) {
        p->of_type += bytes;
    } else if (!p->sum.type || bytes > p->of_type) {
        p->of_type = p->sum.type ? bytes - p->of_type : bytes;
        p->sum.type = type;
    } else {
        p->of_type -= bytes;
    }
}

/* Adds up the entries of each key. Returns NULL if there is no memory. */
static stat_sum *add_up(entry *entries, size_t n, size_t *out_n,
                        int (*order)(const void *, const void *))
{
    placed *all = calloc(n + 1, sizeof *all);
    stat_sum *out = calloc(n + 1, sizeof *out);
    size_t k = 0;
    if (all && out) {
        qsort(entries, n, sizeof *entries, by_entry_key);
        for (size_t i = 0; i < n; i++) {
            const tnf_object *o = entries[i].object;
            if (i == 0 || compare_texts(entries[i - 1].key, entries[i].key) != 0)
                all[k++] = (placed) { .sum.name = entries[i].key, .place = entries[i].place };
            placed *p = &all[k - 1];
            vote_type(p, object_type(o)->id, object_bytes(o));
            p->sum.tensors++;
            p->sum.elements += tnf_elements(o);
            p->sum.bytes += object_bytes(o);
            p->sum.parameters += object_parameters(o);
        }
        qsort(all, k, sizeof *all, order);
        for (size_t i = 0; i < k; i++)
            out[i] = all[i].sum;
    }
    *out_n = k;
    free(all);
    return all ? out : (free(out), NULL);
}

bool stat_sums_make(stat_sums *s, const input *in, const opt_list *select, const opt_list *exclude,
                    unsigned depth)
{
    const tnf_object *o;
    size_t n = 0;
    *s = (stat_sums) { 0 };
    entry *entries = calloc(in->info->objects + 1, sizeof *entries);
    for (size_t i = 0; entries && (o = tnf_at(in->file, i)); i++) {
        if (!glob_chosen(select, exclude, o->name))
            continue;
        entries[n++] = (entry) { stat_prefix(o->name, depth), i, o };
        s->tensors++;
        s->bytes += object_bytes(o);
    }
    if (entries)
        s->groups = add_up(entries, n, &s->ngroups, by_place);
    for (size_t i = 0; entries && i < n; i++) {
        const char *kind = object_kind(entries[i].object);
        entries[i].key = (tnf_str) { kind, strlen(kind) };
    }
    if (entries)
        s->types = add_up(entries, n, &s->ntypes, by_bytes);
    free(entries);
    if (s->groups && s->types)
        return true;
    stat_sums_free(s);
    return false;
}

void stat_sums_free(stat_sums *s)
{
    free(s->groups);
    free(s->types);
    *s = (stat_sums) { 0 };
}

double stat_share(uint64_t part, uint64_t total)
{
    return total ? (double)part / (double)total : 0;
}

void stat_figure(char out[FIGURE_TEXT], double x)
{
    snprintf(out, FIGURE_TEXT, "%.4g", x);
}

size_t stat_shape(FILE *to, const tnf_object *o)
{
    size_t n = 2;
    if (to)
        putc_unlocked('[', to);
    for (uint32_t i = 0; i < o->rank; i++) {
        char dim[32];
        n += (size_t)snprintf(dim, sizeof dim, "%s%llu", i ? "," : "",
                              (unsigned long long)o->shape[i]);
        if (to)
            fputs(dim, to);
    }
    if (to)
        putc_unlocked(']', to);
    return n;
}
