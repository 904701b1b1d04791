/* SPDX-License-Identifier: MIT */
/* Decides what can be stored of a catalog: names are paths, and a path is a group or an array. */
#include "container/path.h"
#include "formats/zarr/write.h"

#include <stdlib.h>
#include <string.h>

static bool is_reserved(const char *p, size_t n)
{
    static const char *const words[] = { "zarr.json", ".zarray", ".zgroup", ".zattrs",
                                         ".zmetadata" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n == strlen(words[i]) && memcmp(p, words[i], n) == 0)
            return true;
    return n >= 2 && p[0] == '_' && p[1] == '_';
}

bool tnf_zr_good_path(tnf_str name)
{
    size_t from = 0;
    if (name.n == 0 || name.n > 1500 || tnf_path_check(name, NULL) != TNF_OK)
        return false;
    for (size_t i = 0; i <= name.n; i++) {
        if (i < name.n && name.p[i] != '/')
            continue;
        if (is_reserved(name.p + from, i - from) || i - from > 255)
            return false;
        from = i + 1;
    }
    return true;
}

tnf_fate tnf_zr_takes(const tnf_object *o, const char **reason)
{
    *reason =
        "its name is not a valid path in a store (., .., an empty part, a leading __, a document)";
    return tnf_zr_good_path(o->name) ? TNF_NATIVE : TNF_DROPPED;
}

bool tnf_zr_no_place(const tnf_member *attr, const tnf_option_value *options)
{
    return options[ZR_WRITE_VERSION].u == 1 && tnf_str_is(attr->key, "zarr.dimension_names");
}

/* Is a name also the directory of another one? */
static bool is_folder(const tnf_str *names, size_t n, tnf_str name, tnf_arena *arena)
{
    char *prefix = tnf_arena_raw(arena, name.n + 1);
    size_t low = 0, high = n;
    if (!prefix)
        return false;
    memcpy(prefix, name.p, name.n);
    prefix[name.n] = '/';
    tnf_str key = { prefix, name.n + 1 };
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tnf_str_compare(names[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && names[low].n > key.n && memcmp(names[low].p, prefix, key.n) == 0;
}

tnf_status tnf_zr_fits(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    tnf_str *names = tnf_arena_array(fit->scratch, c->n, sizeof *names);
    bool v2 = fit->options[ZR_WRITE_VERSION].u == 1;
    if (!names)
        return tnf_arena_fail(fit->scratch, "names", e);
    for (size_t i = 0; i < c->n; i++)
        names[i] = c->objects[i].name;
    if (c->n)
        qsort(names, c->n, sizeof *names, tnf_str_order);
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (fit->objects[i].fate == TNF_DROPPED)
            continue;
        if (is_folder(names, c->n, o->name, fit->scratch))
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED,
                                              "its name is also the directory of another tensor" };
        else if (v2 && o->nparts && strcmp(o->parts->type->id, "f4_e2m1") == 0)
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, "Zarr 2 has no name for its type" };
    }
    return TNF_OK;
}
