/* SPDX-License-Identifier: MIT */
/* Writes the simple form of HDF5, which h5py, Keras, MATLAB and R read.
 *
 *   superblock   version 2, 48 bytes
 *   headers      OHDR, one for each group and dataset, by path, with its links and attributes
 *   GCOL …       strings of attributes
 *   data         contiguous, each at a multiple of 64; for strings: references, then their GCOL …
 *
 * No size depends on an address. So headers are made twice: first to measure them, then to write
 * them.
 */
#include "formats/hdf5/tree.h"

#include <stdlib.h>
#include <string.h>

#define SUPERBLOCK 48u
#define ALIGN      64u
#define BLOCK      ((size_t)64 << 10)

enum { BF16_AUTO, BF16_HDF5, BF16_KERAS };

const tnf_option_info tnf_h5_write_options[] = {
    { "bf16", TNF_OPTION_CHOICE, "auto|hdf5|keras", "auto",
      "how bf16 is written: hdf5: as a float, which h5py returns as f32; keras: as two bytes with "
      "an attribute dtype; auto: as in the source file, else hdf5" },
    { 0 },
};

typedef struct writing {
    tnf_writer *w;
    h5_tree t;
    tnf_buf b;
    h5_strings strings;
    h5_spot spot;
    uint64_t start; /* of the file in the sink */
    uint64_t heap, end;
    unsigned order; /* of the next attribute in a header */
} writing;

/* ------------------------------------------------------------------ messages */

static size_t begin_message(tnf_buf *b, unsigned type, unsigned order)
{
    tnf_buf_u8(b, (uint8_t)type);
    tnf_h5_put_u16(b, 0);
    tnf_buf_u8(b, 0);
    tnf_h5_put_u16(b, order);
    return b->n;
}

static tnf_status end_message(tnf_buf *b, size_t body, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(b, "an object header", e));
    size_t n = b->n - body;
    if (n > UINT16_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a message of an object header has %zu bytes; at most 65535 are allowed",
                        n);
    b->p[body - 5] = (uint8_t)n;
    b->p[body - 4] = (uint8_t)(n >> 8);
    return TNF_OK;
}

static tnf_status put_attr(writing *x, tnf_str key, const tnf_value *v, tnf_error *e)
{
    size_t body = begin_message(&x->b, H5_ATTRIBUTE, x->order++);
    TNF_TRY(tnf_h5_put_attr(&x->b, key, v, &x->strings, &x->spot, e));
    return end_message(&x->b, body, e);
}

static tnf_status put_attrs(writing *x, const tnf_value *map, tnf_error *e)
{
    for (size_t i = 0; map && i < map->n; i++)
        TNF_TRY(put_attr(x, map->as.members[i].key, &map->as.members[i].value, e));
    return TNF_OK;
}

/* Writes that the creation order of attributes is tracked. */
static tnf_status put_attr_info(writing *x, size_t n, tnf_error *e)
{
    if (n == 0)
        return TNF_OK;
    if (n > UINT16_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "an object has %zu attributes, more than 65535", n);
    size_t body = begin_message(&x->b, H5_ATTR_INFO, 0);
    tnf_h5_put_u16(&x->b, 0x100);
    tnf_h5_put_u16(&x->b, (unsigned)n);
    tnf_buf_u64(&x->b, H5_NOWHERE);
    tnf_buf_u64(&x->b, H5_NOWHERE);
    x->order = 0;
    return end_message(&x->b, body, e);
}

static void begin_header(tnf_buf *b)
{
    b->n = 0;
    tnf_buf_put(b, "OHDR\2\6\0\0\0\0", 10);
}

static tnf_status end_header(tnf_buf *b, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(b, "an object header", e));
    if (b->n > UINT32_MAX - 64)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a group is too large for one header");
    tnf_put_le32(b->p + 6, (uint32_t)(b->n - 10));
    tnf_buf_u32(b, tnf_h5_lookup3(b->p, b->n));
    for (size_t left = (8 - b->n % 8) % 8; left > 0; left--) /* b->n may stop growing */
        tnf_buf_u8(b, 0);
    return tnf_buf_status(b, "an object header", e);
}

/* -------------------------------------------------------------------- groups */

static void put_text(tnf_buf *b, const tnf_value *v)
{
    tnf_buf_put(b, v->as.s, v->n);
}

static tnf_status put_link(writing *x, const h5_node *child, tnf_error *e)
{
    tnf_buf *b = &x->b;
    const tnf_value *v = child->entry.kind == H5_LINKED ? child->entry.value : NULL;
    unsigned width = child->name.n < 256 ? 0 : 1;
    size_t body = begin_message(b, H5_LINK, 0);
    tnf_buf_u8(b, 1);
    tnf_buf_u8(b, (uint8_t)(0x10u | width | (v ? 8u : 0)));
    if (v)
        tnf_buf_u8(b, v->kind == TNF_MAP ? 64 : 1);
    tnf_buf_u8(b, 1);
    tnf_buf_u8(b, (uint8_t)child->name.n);
    if (width)
        tnf_buf_u8(b, (uint8_t)(child->name.n >> 8));
    tnf_buf_put(b, child->name.p, child->name.n);
    if (!v) {
        tnf_buf_u64(b, child->same == H5_NONE ? child->at : x->t.nodes[child->same].at);
    } else if (v->kind == TNF_MAP) {
        const tnf_value *file = tnf_value_get(v, "file"), *path = tnf_value_get(v, "path");
        tnf_h5_put_u16(b, (unsigned)(file->n + path->n + 3));
        tnf_buf_u8(b, 0);
        put_text(b, file);
        tnf_buf_u8(b, 0);
        put_text(b, path);
        tnf_buf_u8(b, 0);
    } else {
        tnf_h5_put_u16(b, (unsigned)v->n);
        put_text(b, v);
    }
    return end_message(b, body, e);
}

/* Metadata that the core must keep become attributes of the root. */
static tnf_status put_metadata(writing *x, tnf_error *e)
{
    size_t own = sizeof H5_OWN - 1, meta = sizeof H5_METADATA - 1;
    for (size_t i = 0; i < x->w->ntext; i++) {
        const tnf_member *m = &x->w->text[i];
        bool plain = m->key.n > own && memcmp(m->key.p, H5_OWN, own) == 0 &&
                     !(m->key.n >= meta && memcmp(m->key.p, H5_METADATA, meta) == 0);
        char *key = tnf_arena_raw(x->w->scratch, m->key.n + meta + 1);
        if (!key)
            return tnf_arena_fail(x->w->scratch, "metadata", e);
        memcpy(key, H5_METADATA, meta);
        if (m->key.n)
            memcpy(key + meta, m->key.p, m->key.n);
        tnf_str name = plain ? m->key : (tnf_str) { key, m->key.n + meta };
        const char *why = tnf_h5_attr_why(name, &m->value);
        if (why)
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "the metadata %s cannot be stored: %s", TNF_QUOTED(m->key), why);
        TNF_TRY(put_attr(x, name, &m->value, e));
    }
    return TNF_OK;
}

static tnf_status make_group(writing *x, size_t at, tnf_error *e)
{
    const h5_node *g = &x->t.nodes[at];
    const tnf_value *attrs = at ? g->entry.value : tnf_catalog_attr(x->w->catalog, H5_ATTRS);
    size_t body = begin_message(&x->b, H5_LINK_INFO, 0);
    tnf_h5_put_u16(&x->b, 0);
    tnf_buf_u64(&x->b, H5_NOWHERE);
    tnf_buf_u64(&x->b, H5_NOWHERE);
    TNF_TRY(end_message(&x->b, body, e));
    body = begin_message(&x->b, 0x0A, 0);
    tnf_h5_put_u16(&x->b, 0);
    TNF_TRY(end_message(&x->b, body, e));
    TNF_TRY(put_attr_info(x, (attrs ? attrs->n : 0) + (at ? 0 : x->w->ntext), e));
    TNF_TRY(put_attrs(x, attrs, e));
    if (at == 0)
        TNF_TRY(put_metadata(x, e));
    for (size_t i = g->first; i != H5_NONE; i = x->t.nodes[i].next)
        TNF_TRY(put_link(x, &x->t.nodes[i], e));
    return TNF_OK;
}

/* ------------------------------------------------------------------ datasets */

static bool is_marked_bfloat16(const tnf_object *o)
{
    return tnf_value_is(tnf_value_get(tnf_value_get(o->attrs, H5_ATTRS), "dtype"), "bfloat16");
}

static bool as_keras(const writing *x, const tnf_object *o)
{
    uint64_t how = x->w->options[0].u;
    return o->parts[0].type == tnf_type_of(TNF_BF16) &&
           (how == BF16_KERAS || (how == BF16_AUTO && is_marked_bfloat16(o)));
}

static const tnf_type *null_type(const tnf_value *v)
{
    char id[32] = "";
    memcpy(id, v->as.s, v->n < sizeof id ? v->n : 0);
    return tnf_type_named(id);
}

static void put_dataset_type(writing *x, const h5_node *n)
{
    tnf_buf *b = &x->b;
    const tnf_object *o = n->entry.object;
    const tnf_type *type = o ? o->parts[0].type : null_type(n->entry.value);
    const tnf_value *names = o ? tnf_value_get(o->attrs, H5_ENUM) : NULL;
    if (!type || (o && o->nparts > 1))
        tnf_h5_put_text_type(b);
    else if (o && as_keras(x, o))
        tnf_h5_put_opaque(b, 2);
    else if (names)
        tnf_h5_put_enum(b, type, names);
    else
        tnf_h5_put_type(b, type);
}

static uint64_t strings_of(const tnf_object *o)
{
    return tnf_object_part(o, "offsets")->nbytes / 8 - 1;
}

/* The size of a dataset without the strings that it refers to. */
static uint64_t bytes_of(const tnf_object *o)
{
    return !o ? 0 : o->nparts > 1 ? 16 * strings_of(o) : o->parts[0].nbytes;
}

static tnf_status make_dataset(writing *x, const h5_node *n, tnf_error *e)
{
    tnf_buf *b = &x->b;
    const tnf_object *o = n->entry.object;
    const tnf_value *attrs = o ? tnf_value_get(o->attrs, H5_ATTRS) : NULL;
    bool dtype = o && as_keras(x, o) && !tnf_value_get(attrs, "dtype");
    uint64_t bytes = bytes_of(o);
    size_t body = begin_message(b, H5_DATASPACE, 0);
    tnf_h5_put_space(b, !o ? 2 : o->rank ? 1 : 0, o ? o->shape : NULL, o ? o->rank : 0);
    TNF_TRY(end_message(b, body, e));
    body = begin_message(b, H5_DATATYPE, 0);
    put_dataset_type(x, n);
    TNF_TRY(end_message(b, body, e));
    body = begin_message(b, H5_FILL, 0);
    tnf_h5_put_u16(b, 0x0A03);
    TNF_TRY(end_message(b, body, e));
    body = begin_message(b, H5_LAYOUT, 0);
    tnf_h5_put_u16(b, 0x0103);
    tnf_buf_u64(b, bytes ? n->data : H5_NOWHERE);
    tnf_buf_u64(b, bytes);
    TNF_TRY(end_message(b, body, e));
    TNF_TRY(put_attr_info(x, (attrs ? attrs->n : 0) + dtype, e));
    TNF_TRY(put_attrs(x, attrs, e));
    tnf_value text = tnf_value_string("bfloat16");
    return dtype ? put_attr(x, (tnf_str)TNF_STR("dtype"), &text, e) : TNF_OK;
}

static bool has_header(const h5_node *n)
{
    return n->entry.kind != H5_LINKED && n->same == H5_NONE;
}

static tnf_status make_header(writing *x, size_t i, tnf_error *e)
{
    const h5_node *n = &x->t.nodes[i];
    begin_header(&x->b);
    TNF_TRY(n->entry.kind == H5_GROUP ? make_group(x, i, e) : make_dataset(x, n, e));
    return end_header(&x->b, e);
}

/* ------------------------------------------------------------------- aliases */

static bool same_form(const tnf_object *a, const tnf_object *b)
{
    const tnf_value *x = tnf_value_get(a->attrs, H5_ATTRS), *y = tnf_value_get(b->attrs, H5_ATTRS);
    return tnf_same_shape(a, b) && a->layout == b->layout &&
           (a->nparts > 1 || a->parts[0].type == b->parts[0].type) &&
           (x && y ? tnf_value_equal(x, y) : x == y);
}

static size_t find_node(const h5_tree *t, tnf_str path)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tnf_h5_compare_paths(t->nodes[middle].entry.path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < t->n && tnf_h5_compare_paths(t->nodes[low].entry.path, path) == 0;
    return found ? low : H5_NONE;
}

/* Restores a second name of a dataset, if both tensors are still equal. */
static tnf_status find_alias(writing *x, h5_node *n, tnf_error *e)
{
    const tnf_object *o = n->entry.object;
    const tnf_value *v = o ? tnf_value_get(o->attrs, H5_ALIAS) : NULL;
    if (!v || v->kind != TNF_STRING)
        return TNF_OK;
    size_t at = find_node(&x->t, (tnf_str) { v->as.s, v->n });
    const h5_node *other = at == H5_NONE ? NULL : &x->t.nodes[at];
    if (!other || other == n || !other->entry.object || other->same != H5_NONE || other > n ||
        !same_form(o, other->entry.object))
        return TNF_OK;
    bool equal = true;
    for (uint16_t i = 0; i < o->nparts && equal; i++) {
        const tnf_part *one = &o->parts[i];
        const tnf_part *two = tnf_object_part(other->entry.object, one->role);
        equal = !tnf_part_once(one) && !tnf_part_once(two);
        if (equal)
            TNF_TRY(tnf_parts_equal(&equal, one, two, e));
    }
    if (equal)
        n->same = at;
    return TNF_OK;
}

/* ------------------------------------------------------------------- strings */

static tnf_status load_ends(writing *x, h5_node *n, tnf_error *e)
{
    const tnf_object *o = n->entry.object;
    uint64_t many = strings_of(o) + 1, *ends = tnf_arena_array(x->w->scratch, many, sizeof *ends);
    if (!ends)
        return tnf_arena_fail(x->w->scratch, "strings", e);
    const tnf_part *bytes = tnf_object_part(o, "bytes");
    TNF_TRY(tnf_read_part(ends, (size_t)(8 * many), tnf_object_part(o, "offsets"), 0, e));
    for (uint64_t i = 0; i < many; i++) {
        ends[i] = tnf_le64(&ends[i]);
        if (ends[i] < (i ? ends[i - 1] : 0) || ends[i] > bytes->nbytes ||
            (i && ends[i] - ends[i - 1] > UINT32_MAX))
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the strings of %s are invalid",
                            TNF_QUOTED(o->name));
    }
    n->ends = ends;
    return TNF_OK;
}

/* The size of all collections of a dataset. */
static uint64_t heap_size(const h5_node *n)
{
    h5_spot s = { 0 };
    uint64_t ended;
    for (uint64_t i = 0, many = strings_of(n->entry.object); i < many; i++)
        if (n->ends[i + 1] > n->ends[i])
            (void)tnf_h5_next_spot(&s, n->ends[i + 1] - n->ends[i], &ended);
    return s.start + (s.index ? tnf_h5_collection(s.used) : 0);
}

static tnf_status flush_buffer(writing *x, tnf_error *e)
{
    return tnf_put_buf(x->w, &x->b, "the strings", e);
}

static tnf_status put_references(writing *x, const h5_node *n, tnf_error *e)
{
    h5_spot s = { .start = n->data + bytes_of(n->entry.object) };
    uint64_t ended;
    x->b.n = 0;
    for (uint64_t i = 0, many = strings_of(n->entry.object); i < many; i++) {
        uint64_t length = n->ends[i + 1] - n->ends[i];
        if (length)
            (void)tnf_h5_next_spot(&s, length, &ended);
        tnf_h5_put_reference(&x->b, length, &s);
        if (x->b.n >= BLOCK)
            TNF_TRY(flush_buffer(x, e));
    }
    return flush_buffer(x, e);
}

/* Writes the collection of strings [from, to), of which `used` bytes are taken. */
static tnf_status put_collection(writing *x, const h5_node *n, uint64_t from, uint64_t to,
                                 uint64_t used, tnf_error *e)
{
    tnf_allocator a = x->w->scratch->alloc;
    uint64_t size = n->ends[to] - n->ends[from];
    uint32_t index = 0;
    char *bytes = tnf_alloc(&a, (size_t)size + 1);
    if (!bytes)
        return tnf_no_memory("strings", e);
    tnf_status status = tnf_read_part(bytes, (size_t)size,
                                      tnf_object_part(n->entry.object, "bytes"), n->ends[from], e);
    x->b.n = 0;
    tnf_h5_put_head(&x->b, tnf_h5_collection(used));
    for (uint64_t i = from; status == TNF_OK && i < to; i++)
        if (n->ends[i + 1] > n->ends[i])
            tnf_h5_put_string(&x->b, bytes + (n->ends[i] - n->ends[from]),
                              n->ends[i + 1] - n->ends[i], ++index);
    tnf_h5_put_end(&x->b, used);
    tnf_free(&a, bytes, (size_t)size + 1);
    return status == TNF_OK ? flush_buffer(x, e) : status;
}

static tnf_status put_strings(writing *x, const h5_node *n, tnf_error *e)
{
    h5_spot s = { 0 };
    uint64_t from = 0, many = strings_of(n->entry.object), ended;
    TNF_TRY(put_references(x, n, e));
    for (uint64_t i = 0; i < many; i++) {
        h5_spot before = s;
        if (n->ends[i + 1] == n->ends[i] ||
            !tnf_h5_next_spot(&s, n->ends[i + 1] - n->ends[i], &ended))
            continue;
        if (before.index)
            TNF_TRY(put_collection(x, n, from, i, before.used, e));
        from = i;
    }
    return s.index ? put_collection(x, n, from, many, s.used, e) : TNF_OK;
}

/* Strings of attributes. */
static tnf_status put_heap(writing *x, tnf_error *e)
{
    h5_spot s = { 0 };
    uint64_t ended;
    size_t from = 0;
    for (size_t i = 0; i <= x->strings.n; i++) {
        h5_spot before = s;
        bool last = i == x->strings.n;
        if (!last && !tnf_h5_next_spot(&s, x->strings.items[i].n, &ended))
            continue;
        if (before.index) {
            x->b.n = 0;
            tnf_h5_put_head(&x->b, tnf_h5_collection(before.used));
            for (size_t k = from; k < i; k++)
                tnf_h5_put_string(&x->b, x->strings.items[k].p, x->strings.items[k].n,
                                  (uint32_t)(k - from + 1));
            tnf_h5_put_end(&x->b, before.used);
            TNF_TRY(flush_buffer(x, e));
        }
        from = i;
    }
    return TNF_OK;
}

/* -------------------------------------------------------------------- layout */

static tnf_status too_large(tnf_error *e)
{
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would exceed 2^63 bytes");
}

static tnf_status place_headers(writing *x, tnf_error *e)
{
    uint64_t at = SUPERBLOCK;
    for (size_t i = 0; i < x->t.n; i++) {
        TNF_TRY(find_alias(x, &x->t.nodes[i], e));
        if (!has_header(&x->t.nodes[i]))
            continue;
        TNF_TRY(make_header(x, i, e));
        x->t.nodes[i].at = at;
        at += x->b.n;
    }
    x->heap = at;
    x->end = at + x->spot.start + (x->spot.index ? tnf_h5_collection(x->spot.used) : 0);
    return TNF_OK;
}

static tnf_status place_data(writing *x, tnf_error *e)
{
    for (size_t i = 0; i < x->t.n; i++) {
        h5_node *n = &x->t.nodes[i];
        uint64_t bytes = bytes_of(n->entry.object);
        if (!has_header(n) || bytes == 0)
            continue;
        if (!tnf_ckd_align(&x->end, x->end, ALIGN))
            return too_large(e);
        n->data = x->end;
        if (n->entry.object->nparts > 1) {
            TNF_TRY(load_ends(x, n, e));
            bytes += heap_size(n);
        }
        if (!tnf_ckd_add(&x->end, x->end, bytes) || x->end > INT64_MAX)
            return too_large(e);
    }
    return TNF_OK;
}

static tnf_status put_superblock(writing *x, tnf_error *e)
{
    tnf_buf *b = &x->b;
    b->n = 0;
    tnf_buf_put(b, "\211HDF\r\n\032\n\2\10\10", 12);
    tnf_buf_u64(b, 0);
    tnf_buf_u64(b, H5_NOWHERE);
    tnf_buf_u64(b, x->end);
    tnf_buf_u64(b, x->t.nodes[0].at);
    TNF_TRY(tnf_buf_status(b, "the superblock", e));
    tnf_buf_u32(b, tnf_h5_lookup3(b->p, b->n));
    return flush_buffer(x, e);
}

static tnf_status put_data(writing *x, const h5_node *n, tnf_error *e)
{
    uint64_t at = x->w->sink->written - x->start;
    TNF_TRY(tnf_put_fill(x->w, 0, n->data - at, e));
    if (n->entry.object->nparts > 1)
        return put_strings(x, n, e);
    return tnf_put_data(x->w, &n->entry.object->parts[0], e);
}

static tnf_status put_all(writing *x, tnf_error *e)
{
    TNF_TRY(tnf_h5_tree(&x->t, x->w->catalog, x->w->scratch, e));
    TNF_TRY(place_headers(x, e));
    TNF_TRY(place_data(x, e));
    TNF_TRY(put_superblock(x, e));
    x->strings.n = 0;
    x->spot = (h5_spot) { .start = x->heap };
    for (size_t i = 0; i < x->t.n; i++)
        if (has_header(&x->t.nodes[i])) {
            TNF_TRY(make_header(x, i, e));
            TNF_TRY(flush_buffer(x, e));
        }
    TNF_TRY(put_heap(x, e));
    for (size_t i = 0; i < x->t.n; i++)
        if (has_header(&x->t.nodes[i]) && bytes_of(x->t.nodes[i].entry.object))
            TNF_TRY(put_data(x, &x->t.nodes[i], e));
    return TNF_OK;
}

tnf_status tnf_h5_write(tnf_writer *w, tnf_error *e)
{
    writing x = { .w = w, .start = w->sink->written };
    x.strings.arena = w->scratch;
    tnf_buf_init(&x.b, &w->scratch->alloc, UINT32_MAX);
    tnf_status status = put_all(&x, e);
    tnf_buf_free(&x.b);
    return status;
}
