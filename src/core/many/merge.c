/* SPDX-License-Identifier: MIT */
/* Merges many open files into one builder. Nothing is lost silently: if two files have something
 * under the same name, it is equal, or a rule decides, or merging fails with the names of both
 * files. */
#include "core/look/diff.h"

#include "base/sized.h"
#include "core/save/save.h"
#include <tenfold/shards.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RENAMED 0x80000000u /* the tensor has another name in its file */

struct merging {
    tnf_builder *b;
    tnf_merge_options options;
    const tnf_file *const *files;
    const char *const *names;
    /* For the builder's tensors from `before` on: the number of the file, and RENAMED. */
    uint32_t *owners;
    size_t room, before;
    size_t now;        /* the current file */
    uint32_t *of_attr; /* the same for the builder's attributes; UINT32_MAX if older */
    size_t nattrs;
    tnf_hash attr_names; /* of the builder's attributes */
    size_t extras;       /* of the builder before merging */
};

/* The name of a file for messages; in `out` if it has no name. */
static const char *file_name(const struct merging *m, uint32_t i, char out[32])
{
    if (i != UINT32_MAX && m->names && m->names[i])
        return m->names[i];
    if (i == UINT32_MAX)
        return "the builder";
    snprintf(out, 32, "file %" PRIu32, i + 1);
    return out;
}

static tnf_status fail_clash(const struct merging *m, const char *what, tnf_str name,
                             uint32_t first, const char *rest, tnf_error *e)
{
    char one[32], two[32];
    if (first == m->now)
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "more than one %s of %s has the name %s%s",
                        what, file_name(m, first, one), TNF_QUOTED(name),
                        m->options.rename ? ", after renaming" : "");
    return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "the %s %s is in %s and in %s%s", what,
                    TNF_QUOTED(name), file_name(m, first, one), file_name(m, (uint32_t)m->now, two),
                    rest);
}

/* ---------------------------------------------------------------- tensors */

static tnf_status note_owner(struct merging *m, bool renamed, tnf_error *e)
{
    size_t at = m->b->catalog.n - 1 - m->before;
    uint32_t *p = tnf_grow(&m->b->alloc, m->owners, at, &m->room, sizeof *p, 64);
    if (!p)
        return tnf_no_memory("merging", e);
    m->owners = p;
    m->owners[at] = (uint32_t)m->now | (renamed ? RENAMED : 0);
    return TNF_OK;
}

static uint32_t owner_of(const struct merging *m, size_t position, bool *renamed)
{
    *renamed = false;
    if (position < m->before || !m->owners)
        return UINT32_MAX;
    *renamed = m->owners[position - m->before] & RENAMED;
    return m->owners[position - m->before] & ~RENAMED;
}

static bool same_name(tnf_str a, tnf_str b)
{
    return a.n == b.n && (a.p == b.p || memcmp(a.p, b.p, a.n) == 0);
}

/* A tensor that keeps its name is borrowed from the file without a copy. */
static tnf_status add_tensor(struct merging *m, const tnf_object *o, tnf_str name, unsigned policy,
                             tnf_error *e)
{
    tnf_object copy = *o;
    bool own = name.p == o->name.p && name.n == o->name.n;
    copy.name = name;
    TNF_TRY(tnf_catalog_add(&m->b->catalog, &copy, policy | (own ? TNF_BORROWED : 0u), e));
    return note_owner(m, !same_name(name, o->name), e);
}

/* Adds it as NAME.2, NAME.3 …, the first free name. */
static tnf_status add_renamed(struct merging *m, const tnf_object *o, tnf_str name, tnf_error *e)
{
    char *text = tnf_arena_alloc(&m->b->arena, name.n + 24);
    if (!text)
        return tnf_arena_fail(&m->b->arena, "a name", e);
    memcpy(text, name.p, name.n);
    for (uint64_t i = 2;; i++) {
        int n = snprintf(text + name.n, 24, ".%" PRIu64, i);
        tnf_str fresh = { text, name.n + (size_t)n };
        if (!tnf_catalog_find(&m->b->catalog, fresh.p, fresh.n))
            return add_tensor(m, o, fresh, TNF_NAMES_ONCE, e);
    }
}

static tnf_status replace_object(struct merging *m, size_t position, const tnf_object *o)
{
    tnf_object *there = &m->b->catalog.objects[position];
    tnf_str name = there->name;
    *there = *o;
    there->name = name;
    if (position >= m->before)
        m->owners[position - m->before] = (uint32_t)m->now;
    return TNF_OK;
}

/* Applies the rule for a tensor whose name is taken. */
static tnf_status settle_duplicate(struct merging *m, const tnf_object *known, const tnf_object *o,
                                   tnf_str name, tnf_error *e)
{
    size_t position = (size_t)(known - m->b->catalog.objects);
    bool same = false, renamed;
    uint32_t owner = owner_of(m, position, &renamed);
    /* A file with a duplicate name keeps both tensors. */
    if (owner == m->now && !renamed && same_name(name, o->name)) {
        bool later = o > tnf_find_n(m->files[m->now], name.p, name.n);
        return add_tensor(m, o, name, later ? TNF_NAMES_FIRST_FOUND : TNF_NAMES_LATER_FOUND, e);
    }
    switch (m->options.tensors) {
    case TNF_CLASH_FIRST:
        return TNF_OK;
    case TNF_CLASH_LAST:
        return replace_object(m, position, o);
    case TNF_CLASH_RENAME:
        return add_renamed(m, o, name, e);
    case TNF_CLASH_SAME:
        TNF_TRY(tnf_same_tensor(&same, known, o, &m->b->alloc, e));
        return same ? TNF_OK : fail_clash(m, "tensor", name, owner, ", and they differ", e);
    default:
        return fail_clash(m, "tensor", name, owner, "", e);
    }
}

static tnf_status merge_tensors(struct merging *m, const tnf_file *file, tnf_error *e)
{
    for (size_t i = 0; i < file->catalog.n; i++) {
        const tnf_object *o = &file->catalog.objects[i];
        tnf_str name = o->name;
        if (m->options.select && !m->options.select(m->options.ctx, name))
            continue;
        TNF_TRY(tnf_name_renamed(&name, m->options.rename, m->options.ctx, e));
        const tnf_object *known = tnf_catalog_find(&m->b->catalog, name.p, name.n);
        TNF_TRY(known ? settle_duplicate(m, known, o, name, e)
                      : add_tensor(m, o, name, TNF_NAMES_ONCE, e));
    }
    return TNF_OK;
}

/* ------------------------------------------------------------- attributes */

/* Adds an entry to a map under construction, or fails with a clash. */
static tnf_status merge_entry(struct merging *m, tnf_attrs *to, tnf_hash *keys,
                              const tnf_member *entry, uint32_t owner, tnf_error *e)
{
    uint32_t at = tnf_hash_find(keys, entry->key.p, entry->key.n);
    if (at == TNF_HASH_NONE) {
        uint32_t previous;
        TNF_TRY(tnf_attrs_push(to, entry->key.p, entry->value, e));
        to->members[to->n - 1].key.n = entry->key.n;
        if (!tnf_hash_add(keys, (uint32_t)to->n - 1, false, &previous))
            return tnf_no_memory("merging", e);
        return TNF_OK;
    }
    if (tnf_value_equal(&to->members[at].value, &entry->value) ||
        m->options.attrs == TNF_CLASH_FIRST)
        return TNF_OK;
    if (m->options.attrs != TNF_CLASH_LAST)
        return fail_clash(m, "metadata entry", entry->key, owner, ", with different values", e);
    to->members[at].value = entry->value;
    return TNF_OK;
}

/* Merges two text maps. */
static tnf_status merge_maps(struct merging *m, tnf_value *into, const tnf_value *more,
                             uint32_t owner, tnf_error *e)
{
    tnf_attrs all = { .arena = &m->b->arena };
    tnf_hash keys;
    tnf_status status = TNF_OK;
    tnf_hash_init(&keys, &m->b->alloc, tnf_attrs_key_at, &all);
    for (size_t i = 0; i < into->n && status == TNF_OK; i++)
        status = merge_entry(m, &all, &keys, &into->as.members[i], owner, e);
    for (size_t i = 0; i < more->n && status == TNF_OK; i++)
        status = merge_entry(m, &all, &keys, &more->as.members[i], owner, e);
    tnf_hash_free(&keys);
    if (status == TNF_OK)
        *into = tnf_attrs_value(&all);
    return status;
}

static tnf_member *find_attr(const struct merging *m, tnf_str key)
{
    uint32_t at = tnf_hash_find(&m->attr_names, key.p, key.n);
    return at == TNF_HASH_NONE ? NULL : &m->b->catalog.attrs.members[at];
}

static tnf_status enter_attr(struct merging *m, size_t position, tnf_error *e)
{
    uint32_t previous;
    if (!tnf_hash_add(&m->attr_names, (uint32_t)position, false, &previous))
        return tnf_no_memory("merging", e);
    return TNF_OK;
}

static tnf_status add_attr(struct merging *m, const tnf_member *attr, tnf_error *e)
{
    tnf_attrs *all = &m->b->catalog.attrs;
    const char *key = tnf_arena_str(all->arena, attr->key.p, attr->key.n);
    if (!key)
        return tnf_arena_fail(all->arena, "an attribute's name", e);
    TNF_TRY(tnf_attrs_push(all, key, attr->value, e));
    all->members[all->n - 1].key.n = attr->key.n;
    m->of_attr[all->n - 1] = (uint32_t)m->now;
    return enter_attr(m, all->n - 1, e);
}

static uint32_t *attr_owner(const struct merging *m, const tnf_member *attr)
{
    return &m->of_attr[attr - m->b->catalog.attrs.members];
}

static tnf_status merge_attr(struct merging *m, const tnf_member *attr, tnf_error *e)
{
    tnf_member *known = find_attr(m, attr->key);
    if (!known)
        return add_attr(m, attr, e);
    if (tnf_value_equal(&known->value, &attr->value))
        return TNF_OK;
    uint32_t owner = *attr_owner(m, known);
    if (tnf_is_text_map(known) && tnf_is_text_map(attr))
        return merge_maps(m, &known->value, &attr->value, owner, e);
    /* Attributes that readers compute need no rule. */
    if (m->options.attrs == TNF_CLASH_FIRST ||
        (tnf_registry_derives(known) && tnf_registry_derives(attr)))
        return TNF_OK;
    if (m->options.attrs != TNF_CLASH_LAST)
        return fail_clash(m, "attribute", attr->key, owner, ", with different values", e);
    known->value = attr->value;
    *attr_owner(m, known) = (uint32_t)m->now;
    return TNF_OK;
}

/* Makes room to store the file of each attribute. */
static tnf_status count_attrs(struct merging *m, size_t n, tnf_error *e)
{
    m->nattrs = m->b->catalog.attrs.n;
    for (size_t i = 0; i < n; i++)
        m->nattrs += m->files[i]->info.attrs->n;
    m->of_attr = tnf_arena_array(&m->b->arena, m->nattrs + 1, sizeof *m->of_attr);
    if (!m->of_attr)
        return tnf_arena_fail(&m->b->arena, "attributes", e);
    for (size_t i = 0; i < m->b->catalog.attrs.n; i++) {
        m->of_attr[i] = UINT32_MAX;
        TNF_TRY(enter_attr(m, i, e));
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- extras */

static tnf_status merge_extra(struct merging *m, const tnf_extra *extra, size_t known, tnf_error *e)
{
    tnf_catalog *c = &m->b->catalog;
    for (size_t i = m->extras; i < known; i++) {
        bool same;
        if (tnf_str_compare(c->extras[i].key, extra->key) != 0)
            continue;
        TNF_TRY(tnf_parts_equal(&same, &c->extras[i].bytes, &extra->bytes, e));
        if (same || m->options.attrs == TNF_CLASH_FIRST)
            return TNF_OK;
        if (m->options.attrs != TNF_CLASH_LAST)
            return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET,
                            "the extra %s is in several files, with different bytes",
                            TNF_QUOTED(extra->key));
        c->extras[i].bytes = extra->bytes;
        return TNF_OK;
    }
    return tnf_builder_add_extra(m->b, extra, e);
}

/* ------------------------------------------------------------------ whole */

/* Is it a shard of another file in the list? Then it is merged with that file. */
static bool is_shard_of_other(const struct merging *m, size_t n)
{
    const tnf_source *source = m->files[m->now]->source;
    struct stat st;
    if (!source || source->fd < 0 || m->files[m->now]->siblings || fstat(source->fd, &st) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (i != m->now && m->files[i]->siblings &&
            tnf_sibling_is(m->files[i], (uint64_t)st.st_dev, (uint64_t)st.st_ino))
            return true;
    return false;
}

static tnf_status merge_file(struct merging *m, const tnf_file *file, tnf_error *e)
{
    size_t known = m->b->catalog.nextras;
    TNF_TRY(merge_tensors(m, file, e));
    if (m->options.tensors_only)
        return TNF_OK;
    for (size_t i = 0; i < file->info.attrs->n; i++)
        TNF_TRY(merge_attr(m, &file->info.attrs->as.members[i], e));
    for (size_t i = 0; i < file->info.nextras; i++)
        TNF_TRY(merge_extra(m, &file->info.extras[i], known, e));
    return TNF_OK;
}

tnf_status tnf_builder_merge(tnf_builder *b, const tnf_file *const *files, const char *const *names,
                             size_t n, const tnf_merge_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(b, "builder", e));
    TNF_TRY(tnf_need_array(files, n, "files", e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_need(files[i], "files[i]", e));
    struct merging m = { .b = b, .files = files, .names = names };
    m.before = b->catalog.n;
    m.extras = b->catalog.nextras;
    if (n >= RENAMED)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%zu files are too many to merge", n);
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_merge_options, &m.options, options, e));
    TNF_TRY(tnf_check_choice(m.options.tensors, TNF_CLASH_RENAME, "tensors", e));
    TNF_TRY(tnf_check_choice(m.options.attrs, TNF_CLASH_RENAME, "attrs", e));
    if (m.options.attrs == TNF_CLASH_SAME || m.options.attrs == TNF_CLASH_RENAME)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "if attributes clash, they can only be refused, or the first or the last "
                        "one is kept (TNF_CLASH_REFUSE, TNF_CLASH_FIRST, TNF_CLASH_LAST)");
    tnf_hash_init(&m.attr_names, &b->alloc, tnf_attrs_key_at, &b->catalog.attrs);
    tnf_status status = count_attrs(&m, n, e);
    for (; m.now < n && status == TNF_OK; m.now++) {
        status = tnf_builder_uses(b, files[m.now], e);
        if (status == TNF_OK && !is_shard_of_other(&m, n))
            status = merge_file(&m, files[m.now], e);
    }
    tnf_hash_free(&m.attr_names);
    tnf_free(&b->alloc, m.owners, m.room * sizeof *m.owners);
    return status;
}

/* ------------------------------------------------------------------ files */

bool tnf_file_reads(const tnf_file *file, const char *path)
{
    struct stat wanted, here;
    if (!file || !path || stat(path, &wanted) != 0)
        return false;
    if (file->source && file->source->fd >= 0 && fstat(file->source->fd, &here) == 0 &&
        here.st_dev == wanted.st_dev && here.st_ino == wanted.st_ino)
        return true;
    return tnf_sibling_is(file, (uint64_t)wanted.st_dev, (uint64_t)wanted.st_ino);
}
