/* SPDX-License-Identifier: MIT */
/* Writes zTensor 0.1 with the same bytes as the released 0.1.4, unless options say otherwise.
 * Entries have these fields in this order:
 *
 *   name offset size dtype (layout) shape encoding (data_endianness) (checksum) custom ones …
 *
 * Only raw elements of more than a byte have data_endianness.
 */
#include "formats/ztensor_old/ztensor0.h"

#include <string.h>

enum { LAYOUT, ENCODING, LEVEL, CHECKSUM, ENDIAN, MAPS };
enum { MAPS_INDEFINITE, MAPS_DEFINITE };

static int probe_ztensor0(const tnf_probe *p)
{
    return p->nhead >= ZT_HEAD && memcmp(p->head, ZT0_MAGIC, ZT_HEAD) == 0 ? TNF_PROBE_MAGIC
                                                                           : TNF_PROBE_NO;
}

/* The custom fields of a tensor, if they can be fields of its entry; else they are a normal
 * attribute. */
static const tnf_value *custom_of(const tnf_object *o)
{
    const tnf_value *custom = tnf_value_get(o->attrs, ZT0_CUSTOM);
    if (!custom || custom->kind != TNF_MAP || custom->n == 0)
        return NULL;
    for (size_t i = 0; i < custom->n; i++) {
        tnf_str key = custom->as.members[i].key;
        if (tnf_zt0_is_field(key) || tnf_str_is(key, ZT0_ATTRS) || tnf_str_is(key, ZT0_FILE) ||
            tnf_str_is(key, ZT0_EMPTY))
            return NULL;
    }
    return custom;
}

/* The declared layout of the tensor in its source, if that was zTensor 0.1. */
static const char *layout_of(const tnf_object *o)
{
    const tnf_value *v = tnf_value_get(o->attrs, ZT0_LAYOUT);
    tnf_str s = { v && v->kind == TNF_STRING ? v->as.s : "", v ? v->n : 0 };
    if (!v || v->kind != TNF_STRING)
        return "dense";
    return tnf_str_is(s, "sparsecoo")   ? "sparsecoo"
           : tnf_str_is(s, "sparsecsr") ? "sparsecsr"
                                        : "dense";
}

/* The entry of one tensor in the index. */
typedef struct entry {
    tnf_writer *w;
    tnf_buf *b;
    const tnf_object *o;
    zt_blob blob;
    const tnf_value *custom;
    const char *layout;
    size_t others;     /* attributes without a field of their own */
    bool first, empty; /* first: with the file's attributes; empty: only with them */
} entry;

static void put_word(tnf_buf *b, const char *key, const char *word)
{
    tnf_cbor_put_string(b, key);
    tnf_cbor_put_string(b, word);
}

static const char *dtype_of(const tnf_type *type)
{
    size_t i = 0;
    while (i + 1 < ZT0_TYPES && strcmp(tnf_zt0_types[i], type->id) != 0)
        i++;
    return tnf_zt0_dtypes[i]; /* the core passes only the types that .can lists */
}

static bool has_layout(const entry *t)
{
    return t->w->options[LAYOUT].u || *t->layout != 'd';
}

/* Does the attribute have its own field? */
static bool is_field(const entry *t, tnf_str key)
{
    return (t->custom && tnf_str_is(key, ZT0_CUSTOM)) ||
           (*t->layout != 'd' && tnf_str_is(key, ZT0_LAYOUT));
}

static bool has_endianness(const entry *t)
{
    return !t->blob.zstd && tnf_dtype_size(t->o->parts[0].type->storage) > 1;
}

static uint64_t count_pairs(const entry *t)
{
    return 6 + (uint64_t)has_layout(t) + has_endianness(t) + (t->blob.digest != NULL) +
           (t->custom ? t->custom->n : 0) + (t->others > 0) +
           (t->first && t->w->catalog->attrs.n > 0) + t->empty;
}

/* Writes attributes; those of an entry without the ones that have their own fields. */
static tnf_status put_members(tnf_buf *b, const tnf_member *members, size_t n, const entry *of,
                              tnf_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (of && is_field(of, members[i].key))
            continue;
        tnf_cbor_put_text(b, members[i].key.p, members[i].key.n);
        TNF_TRY(tnf_cbor_put_value(b, &members[i].value, TNF_CBOR_LENIENT, TNF_TREE_DEEPEST, e));
    }
    return TNF_OK;
}

static tnf_status put_custom(const entry *t, tnf_error *e)
{
    const tnf_attrs *file = &t->w->catalog->attrs;
    if (t->custom)
        TNF_TRY(put_members(t->b, t->custom->as.members, t->custom->n, NULL, e));
    if (t->others) {
        tnf_cbor_put_string(t->b, ZT0_ATTRS);
        tnf_cbor_put_map(t->b, t->others);
        TNF_TRY(put_members(t->b, t->o->attrs->as.members, t->o->attrs->n, t, e));
    }
    if (t->empty) {
        tnf_cbor_put_string(t->b, ZT0_EMPTY);
        tnf_cbor_put_bool(t->b, true);
    }
    if (!t->first || file->n == 0)
        return TNF_OK;
    tnf_cbor_put_string(t->b, ZT0_FILE);
    tnf_cbor_put_map(t->b, file->n);
    return put_members(t->b, file->members, file->n, NULL, e);
}

static tnf_status put_entry(const entry *t, tnf_error *e)
{
    tnf_buf *b = t->b;
    bool open = t->w->options[MAPS].u == MAPS_INDEFINITE;
    if (open)
        tnf_cbor_put_open_map(b);
    else
        tnf_cbor_put_map(b, count_pairs(t));
    tnf_cbor_put_string(b, "name");
    tnf_cbor_put_text(b, t->o->name.p, t->o->name.n);
    tnf_cbor_put_string(b, "offset");
    tnf_cbor_put_uint(b, t->blob.offset);
    tnf_cbor_put_string(b, "size");
    tnf_cbor_put_uint(b, t->blob.stored);
    put_word(b, "dtype", dtype_of(t->o->parts[0].type));
    if (has_layout(t))
        put_word(b, "layout", t->layout);
    tnf_zt_put_shape(b, t->o);
    put_word(b, "encoding", t->blob.zstd ? "zstd" : "raw");
    if (has_endianness(t))
        put_word(b, "data_endianness", t->blob.big_endian ? "big" : "little");
    if (t->blob.digest)
        put_word(b, "checksum", t->blob.digest);
    TNF_TRY(put_custom(t, e));
    if (open)
        tnf_cbor_put_break(b);
    return tnf_buf_status(b, "the index", e);
}

static tnf_status put_tensor(tnf_writer *w, tnf_buf *b, const tnf_object *o, bool first,
                             tnf_error *e)
{
    const tnf_option_value *v = w->options;
    zt_how how = { .encoding = v[ENCODING].u,
                   .digest = v[CHECKSUM].u,
                   .endian = v[ENDIAN].u,
                   .level = v[LEVEL].u };
    entry t = { .w = w, .b = b, .o = o, .custom = custom_of(o), .first = first };
    t.layout = layout_of(o);
    for (size_t i = 0; o->attrs && i < o->attrs->n; i++)
        t.others += !is_field(&t, o->attrs->as.members[i].key);
    TNF_TRY(tnf_zt_put_blob(w, &o->parts[0], &how, &t.blob, e));
    return put_entry(&t, e);
}

/* The format has no place for attributes of the file. If there is no tensor, an empty one holds
 * them. */
static tnf_status put_no_tensor(tnf_writer *w, tnf_buf *b, tnf_error *e)
{
    static const uint64_t shape[] = { 0 };
    const tnf_part part = { .role = "data", .type = tnf_type_of(TNF_U8), .payload = TNF_MEMORY };
    const tnf_object o = { .name = { ZT0_FILE, sizeof ZT0_FILE - 1 },
                           .shape = shape,
                           .layout = &tnf_layout_dense,
                           .parts = &part,
                           .rank = 1,
                           .nparts = 1 };
    entry t = { .w = w, .b = b, .o = &o, .layout = "dense", .first = true, .empty = true };
    t.blob.offset = ZT_ALIGN;
    TNF_TRY(tnf_put_fill(w, 0, ZT_ALIGN - ZT_HEAD, e));
    return put_entry(&t, e);
}

static tnf_status put_all(tnf_writer *w, tnf_buf *b, tnf_error *e)
{
    size_t n = w->catalog->n;
    bool alone = n == 0 && w->catalog->attrs.n > 0;
    if (w->in_place)
        TNF_TRY(tnf_need_places(w, e));
    tnf_cbor_put_array(b, alone ? 1 : n);
    if (alone)
        TNF_TRY(put_no_tensor(w, b, e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(put_tensor(w, b, &w->catalog->objects[i], i == 0, e));
    TNF_TRY(tnf_buf_status(b, "the index", e));
    TNF_TRY(tnf_zt_put_rest(w, e));
    TNF_TRY(tnf_put(w, b->p, b->n, e));
    return tnf_put_u64(w, b->n, e);
}

static tnf_status write_ztensor0(tnf_writer *w, tnf_error *e)
{
    tnf_buf b;
    TNF_TRY(tnf_put(w, ZT0_MAGIC, ZT_HEAD, e));
    tnf_buf_init(&b, &w->scratch->alloc, ZT_MAX_INDEX);
    tnf_status status = put_all(w, &b, e);
    tnf_buf_free(&b);
    return status;
}

static const tnf_option_info write_options[] = {
    { "layout", TNF_OPTION_BOOL, NULL, "yes",
      "write the field layout: it is not in the 0.1.0 specification, but every released reader "
      "needs it" },
    { "encoding", TNF_OPTION_CHOICE, "keep|raw|zstd", "keep",
      "encoding of the bytes; keep: zstd where the source has zstd" },
    { "level", TNF_OPTION_UINT, NULL, "0", "level of zstd, 1 to 22; 0: zstd's own default" },
    { "checksum", TNF_OPTION_CHOICE, "keep|none|crc32c|sha256", "keep",
      "checksum of the stored bytes; keep: where the source has one" },
    { "endian", TNF_OPTION_CHOICE, "keep|little|big", "keep",
      "byte order of raw elements; readers of 1.x read big as little" },
    { "maps", TNF_OPTION_CHOICE, "indefinite|definite", "indefinite",
      "how maps are written: indefinite, as the released writer does, or definite, which is "
      "shorter" },
    { 0 },
};

const tnf_format tnf_format_ztensor0 = {
    .name = "ztensor0",
    .title = "zTensor 0.1",
    .extensions = "zt",
    .family = "ztensor",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_EDIT,
    .rules = TNF_RULE_DATA_START | TNF_RULE_OVERLAP_WRONG | TNF_RULE_NAMES_MAY_REPEAT,
    .can = { .types = "f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 bool",
             .layouts = "dense",
             .zero_rank = true,
             .utf8_names = true,
             .attrs = TNF_HOLDS_TYPED,
             .attr_levels = 3,
             .object_attr_levels = 3 },
    .write_options = write_options,
    .probe = probe_ztensor0,
    .index = tnf_zt0_index,
    .write = TNF_WRITES(write_ztensor0),
};
