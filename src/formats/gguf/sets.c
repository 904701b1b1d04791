/* SPDX-License-Identifier: MIT */
/* Models in several files, as gguf-split writes them:
 *
 *   model-00001-of-00003.gguf   all keys; split.no 0, split.count 3, split.tensors.count of all
 *   model-00002-of-00003.gguf   split.no 1, …
 *   model-00003-of-00003.gguf   split.no 2, …
 *
 * Each is a complete GGUF file with its own header. Opening the first by its name opens the set;
 * any other is opened alone.
 */
#include "formats/gguf/gguf.h"
#include <tenfold/value.h>

#include <stdio.h>

#define MOST_MISSING 1000u /* each costs memory, and a short name may claim 65,535 files */

#define FIRST        "-00001-of-"
#define DIGITS       5u

/* The number of files of a set, by the name of its first file, and the length of the prefix before
 * the number; 0: not such a name. */
static uint64_t count_in_name(const char *stem, size_t *prefix)
{
    size_t n = stem ? strlen(stem) : 0, end = sizeof FIRST - 1 + DIGITS;
    uint64_t count = 0;
    if (n <= end || memcmp(stem + n - end, FIRST, sizeof FIRST - 1) != 0)
        return 0;
    for (size_t i = n - DIGITS; i < n; i++) {
        if (stem[i] < '0' || stem[i] > '9')
            return 0;
        count = 10 * count + (uint64_t)(stem[i] - '0');
    }
    *prefix = n - end;
    return count;
}

static bool key_number(const tnf_value *attrs, const char *key, uint64_t *out)
{
    char name[64];
    snprintf(name, sizeof name, GGUF_PREFIX GGUF_SPLIT "%s", key);
    return tnf_value_as_uint(out, tnf_value_get(attrs, name));
}

/* Fails unless the file's keys agree with its name. */
static tnf_status check_shard(const tnf_value *attrs, const char *name, uint64_t no, uint64_t count,
                              tnf_error *e)
{
    uint64_t said = UINT64_MAX;
    if (!key_number(attrs, "no", &said) || said != no)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "%s should have split.no %llu, as its name says", TNF_VISIBLE(name),
                        (unsigned long long)no);
    if (!key_number(attrs, "count", &said) || said != count)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "%s should have split.count %llu, as its name says", TNF_VISIBLE(name),
                        (unsigned long long)count);
    return TNF_OK;
}

/* The first file's keys are those of the model. Warns if a later file has others. */
static void compare_keys(tnf_reader *r, const tnf_value *later, const char *name)
{
    static const char describing[] = "gguf_file.";
    for (size_t i = 0; i < later->n; i++) {
        const tnf_member *m = &later->as.members[i];
        if (tnf_str_begins(m->key, GGUF_PREFIX GGUF_SPLIT) || tnf_str_begins(m->key, describing) ||
            tnf_str_is(m->key, GGUF_PREFIX GGUF_ALIGNMENT))
            continue;
        const tnf_value all = tnf_attrs_value(&r->catalog->attrs);
        const tnf_value *first = tnf_value_get_n(&all, m->key.p, m->key.n);
        if (!first || !tnf_value_equal(first, &m->value)) {
            tnf_warn(
                r, TNF_NO_OFFSET,
                "%s has the key %s, which the first file %s: the keys of the first file are used",
                TNF_VISIBLE(name), TNF_QUOTED(m->key),
                first ? "has with another value" : "does not have");
            return; /* one warning is enough */
        }
    }
}

static tnf_status add_tensors(tnf_reader *r, const tnf_file *file, tnf_error *e)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)) != NULL; i++)
        TNF_TRY(tnf_add_object(r, o, TNF_NO_OFFSET, e));
    return TNF_OK;
}

/* *there is false if the file is missing and this is allowed. */
static tnf_status add_shard(tnf_reader *r, const char *name, uint64_t no, uint64_t count,
                            bool *there, tnf_error *e)
{
    const tnf_file *file = NULL;
    const struct missing_file *missing;
    tnf_str text = { name, strlen(name) };
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_open_sibling(r, &file, text, "gguf", &why);
    *there = status == TNF_OK;
    if (status == TNF_ENOTFOUND && r->incomplete)
        return tnf_miss(r, &missing, text, TNF_NO_OFFSET, e);
    if (status == TNF_ENOTFOUND)
        status = tnf_fail(&why, TNF_ETRUNCATED, 0, "the file %s of the model is missing",
                          TNF_QUOTED(text));
    if (status != TNF_OK && tnf_lose(r, status, &why))
        return TNF_OK;
    if (status != TNF_OK) {
        if (e)
            *e = why;
        return status;
    }
    const tnf_value *attrs = tnf_file_info(file)->attrs;
    TNF_TRY(check_shard(attrs, name, no, count, e));
    compare_keys(r, attrs, name);
    return add_tensors(r, file, e);
}

/* The keys of a set describe its files, not the model, so they are dropped. */
static void drop_split_keys(tnf_attrs *attrs)
{
    size_t kept = 0;
    for (size_t i = 0; i < attrs->n; i++)
        if (!tnf_str_begins(attrs->members[i].key, GGUF_PREFIX GGUF_SPLIT))
            attrs->members[kept++] = attrs->members[i];
    attrs->n = kept;
    tnf_attrs_moved(attrs);
}

static tnf_status open_set(tnf_reader *r, uint64_t count, size_t prefix, tnf_error *e)
{
    const tnf_value own = tnf_attrs_value(&r->catalog->attrs);
    uint64_t total = 0;
    uint64_t missing = 0;
    bool told = key_number(&own, "tensors.count", &total);
    size_t size = prefix + 64;
    char *name = tnf_arena_alloc(r->scratch, size);
    if (!name)
        return tnf_arena_fail(r->scratch, "a file's name", e);
    TNF_TRY(check_shard(&own, r->stem, 0, count, e));
    for (uint64_t i = 1; i < count && missing < MOST_MISSING; i++) {
        bool there = false;
        snprintf(name, size, "%.*s-%05llu-of-%05llu.gguf", (int)prefix, r->stem,
                 (unsigned long long)i + 1, (unsigned long long)count);
        TNF_TRY(add_shard(r, name, i, count, &there, e));
        missing += !there;
    }
    bool whole = missing == 0;
    if (missing == MOST_MISSING)
        tnf_warn(r, TNF_NO_OFFSET, "%u files of the model are missing: the search stops here",
                 MOST_MISSING);
    if (whole && (!told || total != r->catalog->n))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "split.tensors.count is %llu, but the files have %zu tensors",
                        (unsigned long long)total, r->catalog->n);
    if (!whole && total > r->catalog->n) {
        r->unnamed = total - r->catalog->n;
        tnf_warn(r, TNF_NO_OFFSET, "files of the model are missing, with %llu tensor%s not known",
                 (unsigned long long)r->unnamed,
                 r->unnamed == 1 ? " whose name is" : "s whose names are");
    }
    drop_split_keys(&r->catalog->attrs);
    return TNF_OK;
}

tnf_status tnf_gguf_set(tnf_reader *r, gguf_file *g, tnf_error *e)
{
    const tnf_value own = tnf_attrs_value(&r->catalog->attrs);
    uint64_t said = 0, no = 0, count;
    size_t prefix = 0;
    if (!key_number(&own, "count", &said) || said < 1 || r->sibling ||
        r->options[GGUF_OPTION_SHARDS].u == GGUF_SHARDS_NONE)
        return TNF_OK;
    count = count_in_name(r->stem, &prefix);
    g->later = said > 1 && key_number(&own, "no", &no) && no > 0;
    if (count > 0)
        return open_set(r, count, prefix, e);
    if (said > 1)
        tnf_warn(r, TNF_NO_OFFSET,
                 "this is file %llu of %llu of a model, opened alone: the first file opens the "
                 "whole model",
                 (unsigned long long)(key_number(&own, "no", &no) ? no + 1 : 0),
                 (unsigned long long)said);
    return TNF_OK;
}

/* ------------------------------------------------------------------ splitting */

tnf_status tnf_gguf_shard_attrs(tnf_attrs *attrs, const tnf_catalog *whole, size_t i, size_t n,
                                tnf_error *e)
{
    static const char alignment[] = GGUF_PREFIX GGUF_ALIGNMENT;
    static const char no[] = GGUF_PREFIX GGUF_SPLIT "no", count[] = GGUF_PREFIX GGUF_SPLIT "count",
                      tensors[] = GGUF_PREFIX GGUF_SPLIT "tensors.count";
    const tnf_value *said = tnf_catalog_attr(whole, alignment);
    const tnf_value number = { .kind = TNF_UINT, .dtype = TNF_U16, .as.u = i };
    const tnf_value all = { .kind = TNF_UINT, .dtype = TNF_U16, .as.u = n };
    const tnf_value total = { .kind = TNF_INT, .dtype = TNF_I32, .as.i = (int64_t)whole->n };
    if (n > UINT16_MAX || whole->n > INT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a set has at most 65535 files");
    drop_split_keys(attrs);
    if (i > 0 && said)
        TNF_TRY(tnf_attrs_set(attrs, alignment, sizeof alignment - 1, *said, e));
    TNF_TRY(tnf_attrs_set(attrs, no, sizeof no - 1, number, e));
    TNF_TRY(tnf_attrs_set(attrs, count, sizeof count - 1, all, e));
    return tnf_attrs_set(attrs, tensors, sizeof tensors - 1, total, e);
}
