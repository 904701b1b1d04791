/* SPDX-License-Identifier: MIT */
/* Files of torch before 0.1.10: a tar archive of four members.
 *
 *   sys_info   a pickle
 *   storages   pickle n | n × (pickle (key, place, type) | i64 count | elements) | pickle of views
 *   tensors    pickle n | n × (pickle (key, storage, type) | i32 rank | i32 0 | sizes | strides |
 *                              i64 offset), all i64
 *   pickle     the object; a tensor is a persistent id, which is its key
 *
 * Tensors become calls of _rebuild_tensor_v2 in the tree, as in later files.
 */
#include "formats/pytorch/emit.h"
#include "formats/pytorch/pt.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 512u

typedef struct member {
    uint64_t at, end;
} member;

enum { SYS_INFO, STORAGES, TENSORS, PICKLE, MEMBERS };
static const char *const names[MEMBERS] = { "sys_info", "storages", "tensors", "pickle" };

/* The meaning of a persistent id in the object's pickle. */
typedef struct record {
    tnf_str key; /* must be first, for tnf_named */
    tnf_pickle_node *node;
} record;

typedef struct tar {
    pt_file *f;
    member members[MEMBERS];
    tnf_named records;
    tnf_pickle_node *rebuild, *no, *hooks;
    tnf_error *e;
} tar;

/* ---------------------------------------------------------------- members */

static bool read_octal(uint64_t *out, const uint8_t *p, size_t n)
{
    *out = 0;
    for (size_t i = 0; i < n && p[i] && p[i] != ' '; i++) {
        if (p[i] < '0' || p[i] > '7')
            return false;
        *out = *out * 8 + (p[i] - '0');
    }
    return true;
}

static tnf_status take_member(tar *t, const uint8_t *head, uint64_t at, uint64_t size)
{
    char name[101] = "";
    memcpy(name, head, 100);
    const char *plain = strncmp(name, "./", 2) == 0 ? name + 2 : name;
    bool file = head[156] == '0' || head[156] == 0;
    for (size_t i = 0; file && i < MEMBERS; i++)
        if (strcmp(plain, names[i]) == 0) {
            t->members[i] = (member) { at, at + size };
            return TNF_OK;
        }
    return file ? tnf_pt_scan_source(t->f, at, at + size, "another member", t->e) : TNF_OK;
}

static tnf_status find_members(tar *t)
{
    const tnf_source *source = t->f->r->source;
    uint8_t head[BLOCK];
    uint64_t size;
    for (uint64_t at = 0; at < source->size && source->size - at >= BLOCK;) {
        TNF_TRY(tnf_source_read(source, at, head, BLOCK, t->e));
        if (head[0] == 0)
            break;
        if (memcmp(head + 257, "ustar", 5) != 0 || !read_octal(&size, head + 124, 12))
            return tnf_fail(t->e, TNF_EFORMAT, at, "the tar archive has an invalid header here");
        at += BLOCK;
        if (size > source->size - at)
            return tnf_fail(t->e, TNF_ETRUNCATED, source->size,
                            "the tar archive ends inside a member (cut short?)");
        TNF_TRY(take_member(t, head, at, size));
        at += (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    for (size_t i = 0; i < MEMBERS; i++)
        if (!t->members[i].end && i != SYS_INFO)
            return tnf_fail(t->e, TNF_EFORMAT, 0,
                            "the tar archive has no %s, so it is not a file of PyTorch", names[i]);
    return TNF_OK;
}

static tnf_pickle_node *new_tuple(const tar *t, tnf_pickle_node *const *items, size_t n)
{
    return tnf_pt_new_list(t->f->r->scratch, TNF_PICKLE_TUPLE, items, n);
}

static tnf_status no_memory(tar *t)
{
    return tnf_arena_fail(t->f->r->scratch, "a tensor", t->e);
}

/* ---------------------------------------------------------------- records */

static tnf_status key_text(tar *t, const tnf_pickle_node *node, tnf_str *out)
{
    char text[24];
    tnf_str key;
    if (node->kind == TNF_PICKLE_TEXT)
        key = (tnf_str) { node->as.s, node->n };
    else if (node->kind == TNF_PICKLE_INT)
        key = (tnf_str) { text,
                          (size_t)snprintf(text, sizeof text, "%lld", (long long)node->as.i) };
    else
        return tnf_fail(t->e, TNF_EFORMAT, t->f->base + node->at,
                        "a key of the tar archive is neither a number nor a text");
    *out = (tnf_str) { tnf_arena_str(t->f->r->arena, key.p, key.n), key.n };
    return out->p ? TNF_OK : tnf_arena_fail(t->f->r->arena, "a key", t->e);
}

static tnf_status add_record(tar *t, const tnf_pickle_node *key, tnf_pickle_node *node)
{
    uint32_t known;
    record r = { .node = node };
    if (!node)
        return no_memory(t);
    TNF_TRY(key_text(t, key, &r.key));
    return tnf_named_add(&t->records, &r, &known, t->e);
}

/* *out is NULL: no record has this key. */
static tnf_status find_record(tar *t, const tnf_pickle_node *key, tnf_pickle_node **out)
{
    tnf_str name;
    TNF_TRY(key_text(t, key, &name));
    uint32_t i = tnf_named_find(&t->records, name);
    *out = i == TNF_HASH_NONE ? NULL : ((const record *)tnf_named_at(&t->records, i))->node;
    return TNF_OK;
}

/* Reads the number of items that follow. */
static tnf_status read_count(tar *t, uint64_t *at, uint64_t end, uint64_t *n)
{
    tnf_pickle p;
    TNF_TRY(tnf_pt_next_pickle(t->f, &p, at, end, "a pickle of the tar archive", t->e));
    if (p.root->kind != TNF_PICKLE_INT || p.root->as.i < 0)
        return tnf_fail(t->e, TNF_EFORMAT, *at, "a count in the tar archive is not a number");
    *n = (uint64_t)p.root->as.i;
    return TNF_OK;
}

static tnf_status read_triple(tar *t, uint64_t *at, uint64_t end, tnf_pickle_node **out)
{
    tnf_pickle p;
    TNF_TRY(tnf_pt_next_pickle(t->f, &p, at, end, "a pickle of the tar archive", t->e));
    if (p.root->kind != TNF_PICKLE_TUPLE || p.root->n < 3 ||
        p.root->as.items[2]->kind != TNF_PICKLE_GLOBAL)
        return tnf_fail(t->e, TNF_EFORMAT, *at, "a record of the tar archive is invalid");
    *out = p.root;
    return TNF_OK;
}

static tnf_pickle_node *storage_node(tar *t, tnf_pickle_node *triple, tnf_str key, uint64_t count)
{
    tnf_pickle_node *id = new_tuple(
        t,
        (tnf_pickle_node *[]) { tnf_pt_new_text(t->f->r->scratch, "storage", 7),
                                triple->as.items[2],
                                tnf_pt_new_text(t->f->r->scratch, key.p, key.n),
                                triple->as.items[1], tnf_pt_new_int(t->f->r->scratch, count) },
        5);
    tnf_pickle_node *one = id ? new_tuple(t, &id, 1) : NULL;
    if (one)
        one->kind = TNF_PICKLE_PERSISTENT;
    return one;
}

static tnf_status read_storage(tar *t, uint64_t *at, uint64_t end)
{
    tnf_pickle_node *triple;
    uint8_t count[8];
    uint64_t bytes;
    TNF_TRY(read_triple(t, at, end, &triple));
    const pt_type *type = tnf_pt_type_of_storage(triple->as.items[2]->as.global->name);
    tnf_str key;
    if (!type)
        return tnf_fail(t->e, TNF_EUNSUPPORTED, *at, "a storage has an unknown type");
    TNF_TRY(key_text(t, triple->as.items[0], &key));
    TNF_TRY(tnf_source_read(t->f->r->source, *at, count, sizeof count, t->e));
    *at += sizeof count;
    uint64_t elements = tnf_le64(count);
    if (!tnf_ckd_mul(&bytes, elements, type->width) || *at > end || bytes > end - *at)
        return tnf_fail(t->e, TNF_EFORMAT, *at, "the storage %s runs past its member",
                        TNF_QUOTED(key));
    pt_storage s = { .key = key, .offset = *at, .size = bytes, .stored = bytes, .located = true };
    TNF_TRY(tnf_pt_add_storage(t->f, &s, t->e));
    *at += bytes;
    return add_record(t, triple->as.items[0], storage_node(t, triple, key, elements));
}

/* Reads views of other storages: (key, key of the other, offset, number of elements). */
static tnf_status read_views(tar *t, uint64_t *at, uint64_t end)
{
    tnf_pickle p;
    TNF_TRY(tnf_pt_next_pickle(t->f, &p, at, end, "a pickle of the tar archive", t->e));
    for (size_t i = 0; p.root->kind == TNF_PICKLE_LIST && i < p.root->n; i++) {
        const tnf_pickle_node *v = p.root->as.items[i];
        if (v->kind != TNF_PICKLE_TUPLE || v->n < 4)
            return tnf_fail(t->e, TNF_EFORMAT, *at, "a view of the tar archive is invalid");
        tnf_pickle_node *root;
        TNF_TRY(find_record(t, v->as.items[1], &root));
        if (!root || root->kind != TNF_PICKLE_PERSISTENT)
            return tnf_fail(t->e, TNF_EFORMAT, *at, "a view refers to a missing storage");
        tnf_pickle_node *const *id = root->as.items[0]->as.items;
        tnf_pickle_node *view = new_tuple(
            t, (tnf_pickle_node *[]) { v->as.items[0], v->as.items[2], v->as.items[3] }, 3);
        tnf_pickle_node *all = new_tuple(
            t, (tnf_pickle_node *[]) { id[0], id[1], id[2], id[3], id[4], view }, 6);
        tnf_pickle_node *one = all ? new_tuple(t, &all, 1) : NULL;
        if (one)
            one->kind = TNF_PICKLE_PERSISTENT;
        TNF_TRY(add_record(t, v->as.items[0], one));
    }
    return TNF_OK;
}

static tnf_status read_storages(tar *t)
{
    uint64_t at = t->members[STORAGES].at, end = t->members[STORAGES].end, n;
    TNF_TRY(read_count(t, &at, end, &n));
    for (uint64_t i = 0; i < n; i++)
        TNF_TRY(read_storage(t, &at, end));
    return read_views(t, &at, end);
}

/* ---------------------------------------------------------------- tensors */

static tnf_pickle_node *read_numbers(tar *t, tnf_cur *c, uint32_t n)
{
    tnf_pickle_node *items[PT_RANK];
    for (uint32_t i = 0; i < n; i++)
        items[i] = tnf_pt_new_int(t->f->r->scratch, tnf_u64(c));
    return new_tuple(t, items, n);
}

static tnf_status read_tensor(tar *t, uint64_t *at, uint64_t end)
{
    tnf_pickle_node *triple;
    tnf_cur c;
    TNF_TRY(read_triple(t, at, end, &triple));
    TNF_TRY(tnf_read_range(t->f->r, "tensor", *at, 8, 8, &c, t->e));
    uint32_t rank = tnf_u32(&c);
    if (rank > PT_RANK)
        return tnf_fail(t->e, TNF_ELIMIT, *at,
                        "a tensor has %u dimensions; torch allows at most 64", rank);
    uint64_t n = (2 * (uint64_t)rank + 1) * 8;
    TNF_TRY(tnf_read_range(t->f->r, "tensor", *at + 8, n, n, &c, t->e));
    *at += 8 + n;
    tnf_pickle_node *size = read_numbers(t, &c, rank), *stride = read_numbers(t, &c, rank);
    tnf_pickle_node *storage;
    TNF_TRY(find_record(t, triple->as.items[1], &storage));
    if (!storage)
        return tnf_fail(t->e, TNF_EFORMAT, *at, "a tensor refers to a missing storage");
    tnf_pickle_node *args = new_tuple(
        t,
        (tnf_pickle_node *[]) { storage, tnf_pt_new_int(t->f->r->scratch, tnf_u64(&c)), size,
                                stride, t->no, t->hooks },
        6);
    return add_record(t, triple->as.items[0], tnf_pt_new_call(t->f->r->scratch, t->rebuild, args));
}

static tnf_status read_tensors(tar *t)
{
    uint64_t at = t->members[TENSORS].at, end = t->members[TENSORS].end, n;
    t->rebuild = tnf_pt_new_global(t->f->r->scratch, "torch._utils", "_rebuild_tensor_v2");
    t->no = tnf_pt_new_plain(t->f->r->scratch, TNF_PICKLE_BOOL, 0);
    t->hooks = tnf_pt_new_call(t->f->r->scratch,
                               tnf_pt_new_global(t->f->r->scratch, "collections", "OrderedDict"),
                               new_tuple(t, NULL, 0));
    if (!t->rebuild || !t->no || !t->hooks)
        return no_memory(t);
    TNF_TRY(read_count(t, &at, end, &n));
    for (uint64_t i = 0; i < n; i++)
        TNF_TRY(read_tensor(t, &at, end));
    return TNF_OK;
}

static tnf_status read_object(tar *t)
{
    tnf_pickle p;
    uint64_t at = t->members[PICKLE].at, end = t->members[PICKLE].end;
    TNF_TRY(tnf_pt_next_pickle(t->f, &p, &at, end, "the object's pickle", t->e));
    for (size_t i = 0; i < p.persistent.n; i++) {
        tnf_pickle_node *node = p.persistent.nodes[i];
        tnf_pickle_node *what;
        TNF_TRY(find_record(t, node->as.items[0], &what));
        if (!what)
            return tnf_fail(t->e, TNF_EFORMAT, t->f->base + node->at,
                            "the pickle names a tensor that is not in the file");
        *node = *what; /* tied tensors share their storage */
    }
    TNF_TRY(tnf_set_attr(t->f->r, "pytorch.protocol", tnf_value_uint(p.protocol), t->e));
    TNF_TRY(tnf_pt_walk(t->f, p.root, NULL, p.used, t->e));
    TNF_TRY(tnf_pt_scan_source(t->f, at, end, "the bytes after the pickle", t->e));
    return tnf_pt_keep_tree(t->f, &p, t->e);
}

static tnf_status read_all(tar *t)
{
    TNF_TRY(find_members(t));
    if (t->members[SYS_INFO].end) {
        tnf_pickle p;
        uint64_t at = t->members[SYS_INFO].at;
        uint64_t end = t->members[SYS_INFO].end;
        TNF_TRY(tnf_pt_next_pickle(t->f, &p, &at, end, "sys_info", t->e));
        TNF_TRY(tnf_pt_scan_source(t->f, at, end, "the bytes after sys_info", t->e));
    }
    TNF_TRY(read_storages(t));
    TNF_TRY(read_tensors(t));
    return read_object(t);
}

tnf_status tnf_pt_index_tar(pt_file *f, tnf_error *e)
{
    tar *t = tnf_arena_alloc(f->r->scratch, sizeof *t);
    if (!t)
        return tnf_arena_fail(f->r->scratch, "the archive", e);
    t->f = f;
    t->e = e;
    f->kind = f->r->version = "tar";
    tnf_named_init(&t->records, sizeof(record), &f->r->scratch->alloc, f->r->limits.memory);
    tnf_status status = read_all(t);
    tnf_named_free(&t->records);
    return status;
}
