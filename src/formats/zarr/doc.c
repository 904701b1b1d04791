/* SPDX-License-Identifier: MIT */
/* Parses the JSON documents of a store, one level deep: each member's text is unchanged. */
#include "formats/zarr/zr.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH   64u
#define MAX_MEMBERS 100000u

/* Errors name the document; offsets are relative to it. */
static tnf_status in_doc(tnf_status status, const char *name, tnf_error *e)
{
    if (status != TNF_OK)
        tnf_error_prefix(e, TNF_VISIBLE(name));
    return status;
}

tnf_status tnf_zr_parse_doc(zr_doc *out, tnf_reader *r, tnf_str text, const char *name,
                            tnf_error *e)
{
    tnf_json j;
    zr_member *members = NULL;
    size_t capacity = 0;
    tnf_str key;
    *out = (zr_doc) { .name = name };
    tnf_json_init(&j, text.p, text.n, 0, r->scratch, MAX_DEPTH, e);
    if (tnf_json_enter(&j, '{'))
        while (tnf_json_key(&j, &key)) {
            zr_member m = { .key = key };
            if (!tnf_json_skip(&j, &m.text))
                break;
            zr_member *more = out->n < MAX_MEMBERS ? tnf_arena_grow(r->scratch, members, out->n,
                                                                    &capacity, sizeof m, 16)
                                                   : NULL;
            if (!more)
                return tnf_arena_fail(r->scratch, "a document", e);
            members = more;
            members[out->n++] = m;
        }
    out->members = members;
    return in_doc(tnf_json_end(&j), name, e);
}

bool tnf_zr_is_named(const char *path, size_t n, const char *name)
{
    size_t m = strlen(name);
    return n >= m && memcmp(path + n - m, name, m) == 0 && (n == m || path[n - m - 1] == '/');
}

bool tnf_zr_is_document(const char *name, size_t n)
{
    static const char *const names[] = { "zarr.json", ".zarray", ".zgroup", ".zattrs",
                                         ".zmetadata" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tnf_zr_is_named(name, n, names[i]))
            return true;
    return false;
}

tnf_status tnf_zr_read_text(tnf_str *out, tnf_reader *r, const zr_store *s, size_t key,
                            tnf_error *e)
{
    const zr_key *k = &s->keys[key];
    uint64_t most = r->limits.header_bytes < ZR_MAX_DOCUMENT ? r->limits.header_bytes
                                                             : ZR_MAX_DOCUMENT;
    if (k->size > most)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the document %s has %llu bytes; the limit is %llu", TNF_QUOTED(k->name),
                        (unsigned long long)k->size, (unsigned long long)most);
    *out = (tnf_str) { s->ahead ? s->ahead[key] : NULL, (size_t)k->size };
    if (out->p)
        return TNF_OK;
    char *text = tnf_arena_raw(r->scratch, k->size + 1);
    if (!text)
        return tnf_arena_fail(r->scratch, "a document", e);
    out->p = text;
    return s->read(s, k->index, 0, text, out->n, e);
}

tnf_status tnf_zr_read_doc(zr_doc *out, tnf_reader *r, const zr_store *s, size_t key, tnf_error *e)
{
    const zr_key *k = &s->keys[key];
    tnf_str text;
    TNF_TRY(tnf_zr_read_text(&text, r, s, key, e));
    char *name = tnf_arena_str(r->scratch, k->name.p, k->name.n);
    return name ? tnf_zr_parse_doc(out, r, text, name, e)
                : tnf_arena_fail(r->scratch, "a document", e);
}

/* If a key occurs several times, the last one counts, as in Python's json. */
tnf_str tnf_zr_get(const zr_doc *d, const char *key)
{
    for (size_t i = d->n; i-- > 0;)
        if (tnf_str_is(d->members[i].key, key))
            return d->members[i].text;
    return (tnf_str) { NULL, 0 };
}

tnf_status tnf_zr_tree(tnf_value *out, tnf_reader *r, const zr_doc *d, tnf_str text, tnf_error *e)
{
    tnf_json j;
    tnf_json_init(&j, text.p, text.n, 0, r->scratch, MAX_DEPTH, e);
    tnf_json_value(&j, out);
    return in_doc(tnf_json_end(&j), d->name, e);
}

tnf_value tnf_zr_json(tnf_reader *r, tnf_str text)
{
    return tnf_value_str(TNF_JSON, tnf_arena_str(r->arena, text.p, text.n), text.n);
}

/* ------------------------------------------------------------------- keys */

int tnf_zr_compare_keys(const void *a, const void *b)
{
    return tnf_str_compare(((const zr_key *)a)->name, ((const zr_key *)b)->name);
}

size_t tnf_zr_find(const zr_store *s, tnf_str name)
{
    zr_key key = { .name = name };
    const zr_key *found = s->n ? bsearch(&key, s->keys, s->n, sizeof key, tnf_zr_compare_keys)
                               : NULL;
    return found ? (size_t)(found - s->keys) : SIZE_MAX;
}

size_t tnf_zr_find_in(const zr_store *s, tnf_str prefix, const char *name)
{
    char few[512];
    size_t n = strlen(name), all = prefix.n + (prefix.n > 0) + n;
    if (all > sizeof few)
        return SIZE_MAX;
    memcpy(few, prefix.p, prefix.n);
    few[prefix.n] = '/';
    memcpy(few + all - n, name, n);
    return tnf_zr_find(s, (tnf_str) { few, all });
}
