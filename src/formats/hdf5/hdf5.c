/* SPDX-License-Identifier: MIT */
/* HDF5: h5py's files, Keras' .h5 and .weights.h5, MATLAB 7.3, netCDF 4.
 *
 *   superblock    89 'HDF' 0D 0A 1A 0A at byte 0, 512, 1024, 2048 …; the base of all addresses
 *     0, 1        ver … sizes of addresses and lengths @13 … base end-of-file … root's header
 *     2, 3        ver sizes flags base extension end-of-file root's header lookup3
 *   object        a header of messages (header.c): a group, a dataset or a type
 *   group         links to objects (links.c); a graph, which may have loops
 *   dataset       shape and type (types.c), place of its bytes (layout.c, chunks.c, arrays.c)
 *   attributes    of groups and datasets (attrs.c)
 *
 * Groups are walked depth first, each once. No other file is ever opened.
 */
#include "formats/hdf5/put.h"

#include <string.h>

#define LINKS_LOOKED_AT 64u /* checking one scans all names */

static const uint8_t signature[8] = { 0x89, 'H', 'D', 'F', 0x0D, 0x0A, 0x1A, 0x0A };

/* -------------------------------------------------------------------- probe */

static int probe_hdf5(const tnf_probe *p)
{
    if (p->nhead >= 8 && memcmp(p->head, signature, 8) == 0)
        return TNF_PROBE_MAGIC;
    for (size_t at = 512; at + 8 <= p->nhead; at *= 2)
        if (memcmp(p->head + at, signature, 8) == 0)
            return TNF_PROBE_STRUCTURE + 5;
    bool named = strcmp(p->ext, "h5") == 0 || strcmp(p->ext, "hdf5") == 0;
    return named && p->nhead > 0 ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

/* --------------------------------------------------------------- superblock */

typedef struct superblock {
    unsigned version, flags;
    uint64_t base, end, root;
} superblock;

/* Finds the superblock in the source, in `size` bytes at `start`. */
static tnf_status find_signature(uint64_t *out, tnf_reader *r, uint64_t start, uint64_t size,
                                 tnf_error *e)
{
    uint8_t eight[8];
    for (uint64_t at = 0; size >= 8 && at <= size - 8; at = at ? at * 2 : 512) {
        TNF_TRY(tnf_source_read(r->source, start + at, eight, 8, e));
        if (memcmp(eight, signature, 8) == 0) {
            *out = start + at;
            return TNF_OK;
        }
        if (at > UINT64_MAX / 2)
            break;
    }
    return tnf_fail(e, TNF_EFORMAT, start, "there is no HDF5 superblock");
}

static tnf_status read_superblock(superblock *s, tnf_reader *r, uint64_t at, uint64_t end,
                                  tnf_error *e)
{
    tnf_cur c;
    uint64_t room = end - at;
    TNF_TRY(tnf_read_range(r, "superblock", at, 9, 9, &c, e));
    (void)tnf_bytes(&c, 8);
    s->version = tnf_u8(&c);
    if (s->version > 3)
        return tnf_fail(e, TNF_EUNSUPPORTED, at + 8, "unsupported version %u of the superblock",
                        s->version);
    bool old = s->version < 2;
    uint64_t n = old ? (s->version ? 100 : 96) : 48;
    if (n > room)
        return tnf_fail(e, TNF_ETRUNCATED, end,
                        "the file ends inside the superblock: %s missing (cut short?)",
                        TNF_BYTES_ARE(n - room));
    TNF_TRY(tnf_read_range(r, "superblock", at, n, n, &c, e));
    const uint8_t *p = c.start;
    unsigned addresses = p[old ? 13 : 9], lengths = p[old ? 14 : 10];
    if (addresses != 8 || lengths != 8)
        return tnf_fail(e, TNF_EUNSUPPORTED, at,
                        "addresses have %u bytes and lengths have %u bytes; only 8 are supported",
                        addresses, lengths);
    size_t more = s->version == 1 ? 4 : 0;
    s->base = tnf_le64(p + (old ? 24 + more : 12));
    s->end = tnf_le64(p + (old ? 40 + more : 28));
    s->root = tnf_le64(p + (old ? 64 + more : 36));
    s->flags = old ? 0 : p[11];
    return old ? TNF_OK : tnf_h5_sum(&c, 44, "the superblock", e);
}

/* --------------------------------------------------------------------- walk */

static tnf_str seen_key(const void *ctx, uint32_t i)
{
    return (tnf_str) { (const char *)((const h5_file *)ctx)->seen[i].address, 8 };
}

static tnf_str node_key(const void *ctx, uint32_t i)
{
    return (tnf_str) { (const char *)&((const h5_file *)ctx)->nodes[i], 8 };
}

/* Records an object. *known: it was visited before; *at is its position. */
static tnf_status record_object(h5_file *h, uint64_t address, uint32_t *at, bool *known,
                                tnf_error *e)
{
    uint32_t previous;
    h5_seen *seen = tnf_arena_grow(h->r->scratch, h->seen, h->nseen, &h->seen_capacity,
                                   sizeof *seen, 64);
    if (!seen)
        return tnf_arena_fail(h->r->scratch, "objects", e);
    h->seen = seen;
    h->seen[h->nseen].object = UINT32_MAX;
    h->seen[h->nseen].damaged = false;
    memcpy(h->seen[h->nseen].address, &address, 8);
    if (!tnf_hash_add(&h->objects, (uint32_t)h->nseen, false, &previous))
        return tnf_no_memory("objects", e);
    *known = previous != TNF_HASH_NONE;
    *at = *known ? previous : (uint32_t)h->nseen++;
    return TNF_OK;
}

/* Adds another name of a dataset that was visited before. */
static tnf_status add_alias(h5_file *h, uint32_t of, tnf_str name, tnf_error *e)
{
    tnf_object o = h->r->catalog->objects[of];
    tnf_attrs attrs = { .arena = h->r->arena };
    for (size_t i = 0; o.attrs && i < o.attrs->n; i++)
        TNF_TRY(
            tnf_attrs_push(&attrs, o.attrs->as.members[i].key.p, o.attrs->as.members[i].value, e));
    TNF_TRY(tnf_attrs_push(&attrs, H5_ALIAS, tnf_value_str(TNF_STRING, o.name.p, o.name.n), e));
    tnf_value *map = tnf_arena_alloc(h->r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(h->r->arena, "attributes", e);
    *map = tnf_attrs_value(&attrs);
    o.attrs = map;
    o.name = name;
    h->work += 64;
    return tnf_add_object(h->r, &o, TNF_NO_OFFSET, e);
}

static tnf_str path_of(const h5_file *h)
{
    return (tnf_str) { (const char *)h->path.p, h->path.n };
}

static tnf_status note_link(h5_file *h, const h5_link *l, tnf_error *e)
{
    tnf_value v, file;
    TNF_TRY(tnf_text_value(h->r, &v, l->target, e));
    if (l->kind == H5_ELSEWHERE) {
        tnf_attrs both = { .arena = h->r->arena };
        TNF_TRY(tnf_text_value(h->r, &file, l->file, e));
        TNF_TRY(tnf_attrs_push(&both, "file", file, e));
        TNF_TRY(tnf_attrs_push(&both, "path", v, e));
        v = tnf_attrs_value(&both);
        tnf_warn(h->r, TNF_NO_OFFSET, "%s is a link into the file %s, which is not followed",
                 TNF_QUOTED(path_of(h)), TNF_QUOTED(l->file));
    }
    return tnf_attrs_set(&h->links, (const char *)h->path.p, h->path.n, v, e);
}

static tnf_status visit_object(h5_file *h, uint64_t address, unsigned depth, tnf_error *e);

static tnf_status follow_link(h5_file *h, const h5_link *l, unsigned depth, tnf_error *e)
{
    size_t before = h->path.n;
    if (before)
        tnf_buf_u8(&h->path, '/');
    tnf_buf_put(&h->path, l->name.p, l->name.n);
    TNF_TRY(tnf_buf_status(&h->path, "a path", e));
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = l->kind == H5_HARD ? visit_object(h, l->address, depth + 1, &why)
                                           : note_link(h, l, &why);
    if (status != TNF_OK && !tnf_lose(h->r, status, &why)) {
        if (e)
            *e = why;
        return status;
    }
    h->path.n = before;
    return TNF_OK;
}

/* Takes attributes of the root that belong to the core, or are metadata of another format. */
static tnf_status take_own(h5_file *h, tnf_attrs *attrs, tnf_error *e)
{
    tnf_attrs rest = { .arena = h->r->arena };
    size_t own = sizeof H5_OWN - 1, meta = sizeof H5_METADATA - 1;
    for (size_t i = 0; i < attrs->n; i++) {
        tnf_member m = attrs->members[i];
        bool ours = m.value.kind == TNF_STRING && m.key.n > own &&
                    memcmp(m.key.p, H5_OWN, own) == 0 && tnf_utf8_valid(NULL, m.key.p, m.key.n);
        if (!ours) {
            TNF_TRY(tnf_attrs_set(&rest, m.key.p, m.key.n, m.value, e));
            continue;
        }
        if (m.key.n >= meta && memcmp(m.key.p, H5_METADATA, meta) == 0)
            m.key = (tnf_str) { m.key.p + meta, m.key.n - meta };
        TNF_TRY(tnf_set_text(h->r, m.key, (tnf_str) { m.value.as.s, m.value.n }, e));
    }
    *attrs = rest;
    return TNF_OK;
}

static tnf_status visit_group(h5_file *h, const h5_header *x, unsigned depth, tnf_error *e)
{
    tnf_attrs attrs;
    h5_links links;
    if (depth > H5_DEPTH)
        return tnf_fail(e, TNF_ELIMIT, x->at, "groups are nested deeper than %u", H5_DEPTH);
    TNF_TRY(tnf_h5_attrs(&attrs, h, x, e));
    TNF_TRY(tnf_h5_links(&links, h, x, e));
    if (depth == 0) {
        TNF_TRY(take_own(h, &attrs, e));
        if (attrs.n)
            TNF_TRY(tnf_set_attr(h->r, H5_ATTRS, tnf_attrs_value(&attrs), e));
    } else if (attrs.n || links.n == 0) {
        TNF_TRY(tnf_attrs_set(&h->groups, (const char *)h->path.p, h->path.n,
                              tnf_attrs_value(&attrs), e));
    }
    for (size_t i = 0; i < links.n; i++)
        TNF_TRY(follow_link(h, &links.items[i], depth, e));
    return TNF_OK;
}

static tnf_status visit_type(h5_file *h, const h5_header *x, tnf_error *e)
{
    tnf_cur c;
    h5_type t;
    const h5_message *m = tnf_h5_find(x, H5_DATATYPE);
    if (!m)
        return TNF_OK;
    TNF_TRY(tnf_h5_body(&c, h, m, e));
    TNF_TRY(tnf_h5_type(&t, h, &c, e));
    const char *name = t.text ? t.text : t.type ? t.type->id : t.name ? t.name : "string";
    return tnf_attrs_set(&h->types, (const char *)h->path.p, h->path.n, tnf_value_string(name), e);
}

/* `own`: only this object is damaged; other damage, as of a B-tree, concerns the whole file. The
 * part of a group that was read before remains. */
static tnf_status lose_object(h5_file *h, uint32_t at, bool own, tnf_status status,
                              const tnf_error *why, tnf_error *e)
{
    if (!own && status != TNF_EDIGEST) {
        if (e)
            *e = *why;
        return status;
    }
    h->seen[at].damaged = true;
    return tnf_h5_lose(h, status, why, e);
}

/* Reads an object below the root, by its header. */
static tnf_status visit_below(h5_file *h, const h5_header *x, uint32_t at, unsigned depth,
                              tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    size_t before = h->r->catalog->n, path = h->path.n;
    tnf_status status;
    bool own = false, group = tnf_h5_find(x, H5_SYMBOLS) || tnf_h5_find(x, H5_LINK_INFO) ||
                              tnf_h5_find(x, H5_LINK);
    if (tnf_h5_find(x, H5_LAYOUT)) {
        status = tnf_h5_dataset(h, x, path_of(h), &own, &why);
        if (status == TNF_OK && h->r->catalog->n > before)
            h->seen[at].object = (uint32_t)before;
    } else {
        status = group ? visit_group(h, x, depth, &why) : visit_type(h, x, &why);
        own = !group;
    }
    h->path.n = path;
    return status == TNF_OK ? TNF_OK : lose_object(h, at, own, status, &why, e);
}

static tnf_status visit_object(h5_file *h, uint64_t address, unsigned depth, tnf_error *e)
{
    h5_header x;
    uint32_t at;
    bool known;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    TNF_TRY(record_object(h, address, &at, &known, e));
    if (known && h->seen[at].object != UINT32_MAX)
        return add_alias(h, h->seen[at].object, path_of(h), e);
    if (known && h->seen[at].damaged) {
        tnf_status again = tnf_fail(&why, TNF_EFORMAT, h->base + address, "it is damaged");
        return tnf_h5_lose(h, again, &why, e);
    }
    if (known)
        return TNF_OK;
    tnf_arena_reset(&h->temp);
    if (depth == 0) {
        TNF_TRY(tnf_h5_header(&x, h, address, e));
        return visit_group(h, &x, depth, e);
    }
    tnf_status status = tnf_h5_header(&x, h, address, &why);
    return status == TNF_OK ? visit_below(h, &x, at, depth, e)
                            : lose_object(h, at, true, status, &why, e);
}
/* --------------------------------------------------------------------- links */

static bool is_there(const h5_file *h, tnf_str path)
{
    const char *p = path.p;
    return path.n == 0 || tnf_catalog_find(h->r->catalog, p, path.n) ||
           tnf_value_get_n(
               &(tnf_value) { .kind = TNF_MAP, .n = h->groups.n, .as.members = h->groups.members },
               p, path.n);
}

/* Is there a tensor below the path? A linear search suffices, since there are few soft links. */
static bool is_group(const h5_file *h, tnf_str path)
{
    for (size_t i = 0; i < h->r->catalog->n; i++) {
        tnf_str name = h->r->catalog->objects[i].name;
        if (name.n > path.n && name.p[path.n] == '/' && memcmp(name.p, path.p, path.n) == 0)
            return true;
    }
    return false;
}

/* Warns of dangling soft links. */
static tnf_status check_links(h5_file *h, tnf_error *e)
{
    for (size_t i = 0; i < h->links.n && i < LINKS_LOOKED_AT; i++) {
        const tnf_member *m = &h->links.members[i];
        tnf_str to = { m->value.as.s, m->value.n };
        if (m->value.kind != TNF_STRING)
            continue;
        h->path.n = 0;
        if (to.n && to.p[0] == '/') {
            to = (tnf_str) { to.p + 1, to.n - 1 };
        } else {
            size_t folder = m->key.n;
            while (folder > 0 && m->key.p[folder - 1] != '/')
                folder--;
            tnf_buf_put(&h->path, m->key.p, folder);
        }
        tnf_buf_put(&h->path, to.p, to.n);
        TNF_TRY(tnf_buf_status(&h->path, "a path", e));
        if (!is_there(h, path_of(h)) && !is_group(h, path_of(h)))
            tnf_warn(h->r, TNF_NO_OFFSET, "%s is a link to %s, which does not exist",
                     TNF_QUOTED(m->key), TNF_QUOTED(path_of(h)));
    }
    return TNF_OK;
}

static tnf_status set_maps(h5_file *h, tnf_error *e)
{
    const struct {
        const char *key;
        const tnf_attrs *map;
    } all[] = { { H5_GROUPS, &h->groups },
                { H5_LINKS, &h->links },
                { H5_NULL, &h->nulls },
                { H5_TYPES, &h->types } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].map->n)
            TNF_TRY(tnf_set_attr(h->r, all[i].key, tnf_attrs_value(all[i].map), e));
    return TNF_OK;
}

/* --------------------------------------------------------------------- index */

static tnf_status read_all(h5_file *h, uint64_t root, tnf_error *e)
{
    TNF_TRY(visit_object(h, root, 0, e));
    TNF_TRY(check_links(h, e));
    return set_maps(h, e);
}

static void free_all(h5_file *h)
{
    tnf_arena_free(&h->temp);
    for (int i = 0; i < H5_HEAPS; i++)
        tnf_arena_free(&h->heaps[i].arena);
    tnf_hash_free(&h->objects);
    tnf_hash_free(&h->once);
    tnf_buf_free(&h->path);
}

static void init_all(h5_file *h, tnf_reader *r)
{
    const tnf_allocator *a = &r->scratch->alloc;
    tnf_arena_init(&h->temp, a, r->scratch->limit);
    for (int i = 0; i < H5_HEAPS; i++)
        tnf_arena_init(&h->heaps[i].arena, a, r->scratch->limit);
    tnf_hash_init(&h->objects, a, seen_key, h);
    tnf_hash_init(&h->once, a, node_key, h);
    tnf_buf_init(&h->path, a, r->limits.name_bytes);
    h->groups.arena = h->links.arena = h->nulls.arena = h->types.arena = r->arena;
}

/* A wrong checksum of the file's structure is a format error, not a digest error. */
static tnf_status plain_fault(tnf_status status, tnf_error *e)
{
    if (status == TNF_EDIGEST && e)
        e->status = TNF_EFORMAT;
    return status == TNF_EDIGEST ? TNF_EFORMAT : status;
}

tnf_status tnf_h5_read(tnf_reader *r, uint64_t start, uint64_t size, tnf_error *e)
{
    superblock s;
    uint64_t at, limit = start + size, end;
    static const char *const versions[] = { "0", "1", "2", "3" };
    TNF_TRY(find_signature(&at, r, start, size, e));
    tnf_status head = read_superblock(&s, r, at, limit, e);
    if (head != TNF_OK)
        return plain_fault(head, e);
    r->version = versions[s.version];
    if (s.end < s.base || !tnf_ckd_add(&end, s.end - s.base, at))
        return tnf_fail(e, TNF_EFORMAT, at,
                        "the superblock says that the file ends at %llu, which is before its "
                        "beginning, %llu, or beyond 2^64",
                        (unsigned long long)s.end, (unsigned long long)s.base);
    if (end > limit)
        TNF_TRY(tnf_stricter(r, e, TNF_ETRUNCATED, limit, "the file is truncated: %s missing",
                             TNF_BYTES_ARE(end - limit)));
    if (s.flags & 5u)
        tnf_warn(r, at, "the file is still open for writing, or was not closed");
    h5_file h = { .r = r, .base = at, .end = limit };
    if (!tnf_ckd_mul(&h.most, size, 64) || !tnf_ckd_add(&h.most, h.most, (uint64_t)16 << 20))
        h.most = UINT64_MAX;
    r->state = tnf_arena_alloc(r->arena, sizeof(h5_state));
    if (!r->state)
        return tnf_arena_fail(r->arena, "the index", e);
    init_all(&h, r);
    tnf_status status = read_all(&h, s.root, e);
    free_all(&h);
    return plain_fault(status, e);
}

static tnf_status index_hdf5(tnf_reader *r, tnf_error *e)
{
    return tnf_h5_read(r, 0, r->source->size, e);
}

const tnf_format tnf_format_hdf5 = {
    .name = "hdf5",
    .title = "HDF5, Keras weights (.h5, .hdf5, .weights.h5)",
    .extensions = "h5 hdf5",
    .family = "hdf5",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = H5_WRITES,
             .layouts = "dense strings/1",
             .zero_rank = true,
             .sorts = tnf_h5_compare,
             .attrs = TNF_HOLDS_TEXT,
             .file_attrs = H5_OF_FILE,
             .object_attrs = H5_OF_TENSOR,
             .derived = H5_DERIVED,
             .takes = tnf_h5_takes,
             .fits = tnf_h5_fits },
    .write_options = tnf_h5_write_options,
    .probe = probe_hdf5,
    .index = index_hdf5,
    .decode = tnf_h5_decode,
    .decode_on = tnf_h5_decode_on,
    .forget = tnf_h5_forget,
    .keeps = H5_KEEPS,
    .verify = tnf_h5_verify,
    .write = TNF_WRITES(tnf_h5_write),
};
