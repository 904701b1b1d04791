/* SPDX-License-Identifier: MIT */
/* Writes zTensor 1.2 with the same bytes as the 1.2 library. Blobs are in the order of the source,
 * and parts in the order of their layout. The manifest has names and components in byte order:
 *
 *   { version, (attributes), objects: { name: { shape, format, (attributes), components: { role:
 *     { dtype, (type), offset, length, (uncompressed_length), (encoding), (digest) } } } } }
 */
#include "formats/ztensor_old/ztensor1.h"

#include <stdlib.h>
#include <string.h>

enum { ENCODING, LEVEL, CHECKSUM };

static int probe_ztensor1(const tnf_probe *p)
{
    return p->nhead >= ZT_HEAD && memcmp(p->head, ZT1_MAGIC, ZT_HEAD) == 0 ? TNF_PROBE_MAGIC
                                                                           : TNF_PROBE_NO;
}

static void put_word(tnf_buf *b, const char *key, const char *word)
{
    tnf_cbor_put_string(b, key);
    tnf_cbor_put_string(b, word);
}

static void put_number(tnf_buf *b, const char *key, uint64_t number)
{
    tnf_cbor_put_string(b, key);
    tnf_cbor_put_uint(b, number);
}

static const char *renamed_file(const zt1_name *names, const char *id)
{
    for (; names->file; names++)
        if (strcmp(names->here, id) == 0)
            return names->file;
    return id;
}

/* Indices in 1.x are u64. A tensor with other indices keeps Tenfold's name of its layout, which
 * readers of 1.x do not confuse with theirs. */
static const char *format_of(const tnf_object *o)
{
    for (uint16_t i = 0; i < o->nparts; i++)
        if (o->parts[i].type != tnf_type_of(TNF_U64) && strcmp(o->parts[i].role, "values") != 0)
            return o->layout->id;
    return renamed_file(tnf_zt1_layouts, o->layout->id);
}

static tnf_status put_attrs(tnf_writer *w, tnf_buf *b, const tnf_member *members, size_t n,
                            tnf_error *e)
{
    const tnf_value map = { .kind = TNF_MAP, .n = n, .as.members = members };
    tnf_member *sorted = tnf_arena_array(w->scratch, n, sizeof *sorted);
    if (!sorted)
        return tnf_arena_fail(w->scratch, "attributes", e);
    memcpy(sorted, members, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, tnf_member_compare);
    tnf_cbor_put_string(b, "attributes");
    if (tnf_cbor_is_wrapper(&map, TNF_CBOR_LENIENT)) /* a map that a tree cannot represent */
        return tnf_cbor_put_value(b, &map, TNF_CBOR_LENIENT, TNF_TREE_DEEPEST, e);
    tnf_cbor_put_map(b, n);
    for (size_t i = 0; i < n; i++) {
        tnf_cbor_put_text(b, sorted[i].key.p, sorted[i].key.n);
        TNF_TRY(tnf_cbor_put_value(b, &sorted[i].value, TNF_CBOR_LENIENT, TNF_TREE_DEEPEST, e));
    }
    return TNF_OK;
}

static void put_component(tnf_buf *b, const tnf_part *p, const zt_blob *blob)
{
    bool logical = !tnf_list_has(ZT1_DTYPES, p->type->id);
    tnf_cbor_put_string(b, p->role);
    tnf_cbor_put_map(b, 3 + (uint64_t)logical + (blob->zstd ? 2 : 0) + (blob->digest != NULL));
    put_word(b, "dtype", logical ? tnf_type_of(p->type->storage)->id : p->type->id);
    if (logical)
        put_word(b, "type", renamed_file(tnf_zt1_types, p->type->id));
    put_number(b, "offset", blob->offset);
    put_number(b, "length", blob->stored);
    if (blob->zstd) {
        put_number(b, "uncompressed_length", p->nbytes);
        put_word(b, "encoding", "zstd");
    }
    if (blob->digest)
        put_word(b, "digest", blob->digest);
}

/* A component and its index in the object. */
typedef struct component {
    const tnf_part *part;
    const zt_blob *blob;
} component;

static int by_role(const void *a, const void *b)
{
    return strcmp(((const component *)a)->part->role, ((const component *)b)->part->role);
}

static tnf_status put_components(tnf_writer *w, tnf_buf *b, const tnf_object *o,
                                 const zt_blob *blobs, tnf_error *e)
{
    component *sorted = tnf_arena_array(w->scratch, o->nparts, sizeof *sorted);
    if (!sorted)
        return tnf_arena_fail(w->scratch, "the manifest", e);
    for (uint16_t i = 0; i < o->nparts; i++)
        sorted[i] = (component) { &o->parts[i], &blobs[i] };
    qsort(sorted, o->nparts, sizeof *sorted, by_role);
    tnf_cbor_put_string(b, "components");
    tnf_cbor_put_map(b, o->nparts);
    for (uint16_t i = 0; i < o->nparts; i++) {
        if (i > 0 && by_role(&sorted[i - 1], &sorted[i]) == 0)
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s has two parts '%s'",
                            TNF_QUOTED(o->name), sorted[i].part->role);
        put_component(b, sorted[i].part, sorted[i].blob);
    }
    return tnf_buf_status(b, "the manifest", e);
}

static tnf_status put_object(tnf_writer *w, tnf_buf *b, const tnf_object *o, const zt_blob *blobs,
                             tnf_error *e)
{
    size_t attrs = o->attrs ? o->attrs->n : 0;
    tnf_cbor_put_text(b, o->name.p, o->name.n);
    tnf_cbor_put_map(b, attrs ? 4 : 3);
    tnf_zt_put_shape(b, o);
    put_word(b, "format", format_of(o));
    if (attrs)
        TNF_TRY(put_attrs(w, b, o->attrs->as.members, attrs, e));
    return put_components(w, b, o, blobs, e);
}

static tnf_status put_blobs(tnf_writer *w, zt_blob **blobs, tnf_error *e)
{
    zt_how how = { .encoding = w->options[ENCODING].u,
                   .digest = w->options[CHECKSUM].u,
                   .endian = ZT_ENDIAN_LITTLE,
                   .level = w->options[LEVEL].u,
                   .big_x = true };
    const uint32_t *order;
    TNF_TRY(tnf_zt_order(w, &order, e));
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, order, i);
        zt_blob **own = &blobs[o - w->catalog->objects];
        *own = tnf_arena_array(w->scratch, o->nparts, sizeof **own);
        if (!*own)
            return tnf_arena_fail(w->scratch, "the manifest", e);
        for (uint16_t k = 0; k < o->nparts; k++)
            TNF_TRY(tnf_zt_put_blob(w, &o->parts[k], &how, &(*own)[k], e));
    }
    return tnf_zt_put_rest(w, e);
}

static tnf_status put_manifest(tnf_writer *w, tnf_buf *b, zt_blob *const *blobs, tnf_error *e)
{
    const tnf_catalog *c = w->catalog;
    const uint32_t *order;
    TNF_TRY(tnf_sorted(w, &order, NULL, e));
    tnf_cbor_put_map(b, c->attrs.n ? 3 : 2);
    put_word(b, "version", "1.2.0");
    if (c->attrs.n)
        TNF_TRY(put_attrs(w, b, c->attrs.members, c->attrs.n, e));
    tnf_cbor_put_string(b, "objects");
    tnf_cbor_put_map(b, c->n);
    for (size_t i = 0; i < c->n; i++)
        TNF_TRY(put_object(w, b, &c->objects[order[i]], blobs[order[i]], e));
    TNF_TRY(tnf_buf_status(b, "the manifest", e));
    TNF_TRY(tnf_put(w, b->p, b->n, e));
    TNF_TRY(tnf_put_u64(w, b->n, e));
    return tnf_put(w, ZT1_MAGIC, 8, e);
}

static tnf_status write_ztensor1(tnf_writer *w, tnf_error *e)
{
    tnf_buf b;
    zt_blob **blobs = tnf_arena_array(w->scratch, w->catalog->n, sizeof *blobs);
    if (!blobs)
        return tnf_arena_fail(w->scratch, "the manifest", e);
    TNF_TRY(tnf_put(w, ZT1_MAGIC, ZT_HEAD, e));
    TNF_TRY(put_blobs(w, blobs, e));
    tnf_buf_init(&b, &w->scratch->alloc, ZT_MAX_INDEX);
    tnf_status status = put_manifest(w, &b, blobs, e);
    tnf_buf_free(&b);
    return status;
}

static const tnf_option_info write_options[] = {
    { "encoding", TNF_OPTION_CHOICE, "keep|raw|zstd", "keep",
      "encoding of the bytes; keep: zstd where the source has zstd" },
    { "level", TNF_OPTION_UINT, NULL, "0", "level of zstd, 1 to 22; 0: zstd's own default" },
    { "checksum", TNF_OPTION_CHOICE, "keep|none|crc32c|sha256", "keep",
      "checksum of the stored bytes; keep: where the source has one" },
    { 0 },
};

const tnf_format tnf_format_ztensor1 = {
    .name = "ztensor1",
    .title = "zTensor 1.x",
    .extensions = "zt",
    .family = "ztensor",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_EDIT,
    .rules = TNF_RULE_DATA_START | TNF_RULE_OVERLAP_ODD,
    .can = { .zero_rank = true,
             .utf8_names = true,
             .attrs = TNF_HOLDS_TYPED,
             .attr_levels = 2,
             .object_attr_levels = 4,
             .sorted_attrs = true },
    .write_options = write_options,
    .probe = probe_ztensor1,
    .index = tnf_zt1_index,
    .write = TNF_WRITES(write_ztensor1),
};
