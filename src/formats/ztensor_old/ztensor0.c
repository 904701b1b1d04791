/* SPDX-License-Identifier: MIT */
/* Reads zTensor 0.1. Everything is little-endian, except data that an entry declares big-endian:
 *
 *   "ZTEN0001"
 *   blobs          each at a multiple of 64, with zeros between them
 *   index          CBOR: an array of maps, one per tensor
 *                    { name, offset, size, dtype, (layout), shape, encoding,
 *                      (data_endianness), (checksum), anything else }
 *   u64            bytes of the index
 *
 * There are two dialects: the specification of 0.1.0 has no layout; the released libraries (0.1.0
 * to 0.1.4) require it, and write maps of indefinite length. This reader accepts both. Unknown
 * types, encodings and layouts make a tensor unreadable, not the file.
 */
#include "formats/ztensor_old/ztensor0.h"

#include <string.h>

const char *const tnf_zt0_dtypes[ZT0_TYPES] = { "float64", "float32", "float16", "bfloat16",
                                                "int64",   "int32",   "int16",   "int8",
                                                "uint64",  "uint32",  "uint16",  "uint8",
                                                "bool" };
const char *const tnf_zt0_types[ZT0_TYPES] = { "f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                               "i8",  "u64", "u32", "u16",  "u8",  "bool" };
static const char *const layouts[] = { "dense", "sparsecoo", "sparsecsr" };
static const char *const encodings[] = { "raw", "zstd" };
static const char *const endians[] = { "little", "big" };

enum {
    NAME,
    OFFSET,
    SIZE,
    DTYPE,
    LAYOUT,
    SHAPE,
    ENCODING,
    ENDIANNESS,
    CHECKSUM,
    FIELDS,
    NOT_FOUND = -1
};
static const char *const fields[FIELDS] = { "name",     "offset",          "size",
                                            "dtype",    "layout",          "shape",
                                            "encoding", "data_endianness", "checksum" };

/* An entry of the index. */
typedef struct entry {
    uint64_t at; /* its position */
    tnf_str name;
    uint64_t offset, size;
    zt_word dtype, layout, encoding, endianness, checksum;
    uint32_t rank;
    unsigned has;     /* bits of the fields above */
    tnf_attrs custom; /* in the handle's arena */
    tnf_value attrs, file;
    bool empty;         /* exists only for the file's attributes */
    const char *sparse; /* its declared layout, if not dense */
} entry;

typedef struct parser {
    tnf_reader *r;
    tnf_cbor c;
    uint64_t index_start;
    uint64_t *dims;
    size_t capacity;
    uint64_t n;   /* entries so far */
    bool layouts; /* some tensor has a layout */
} parser;

static int find_word(tnf_str s, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (tnf_str_is(s, words[i]))
            return i;
    return NOT_FOUND;
}

#define FIND(s, words) find_word(s, words, (int)(sizeof(words) / sizeof *(words)))

bool tnf_zt0_is_field(tnf_str key)
{
    return FIND(key, fields) != NOT_FOUND;
}

/* ----------------------------------------------------------------- fields */

static bool push_custom(parser *p, entry *t, tnf_str key, const tnf_value *v)
{
    tnf_arena *arena = p->r->arena;
    const char *copy = tnf_arena_str(arena, key.p, key.n);
    t->custom.arena = arena;
    p->c.status = copy ? tnf_attrs_push(&t->custom, copy, *v, p->c.e)
                       : tnf_arena_fail(arena, "a field", p->c.e);
    if (p->c.status == TNF_OK)
        t->custom.members[t->custom.n - 1].key.n = key.n;
    return p->c.status == TNF_OK;
}

static bool read_custom(parser *p, entry *t, tnf_str key)
{
    tnf_value v;
    if (!tnf_zt_read_value(&p->c, &v, p->r->arena))
        return false;
    if (tnf_str_is(key, ZT0_ATTRS) && v.kind == TNF_MAP)
        t->attrs = v;
    else if (tnf_str_is(key, ZT0_FILE) && v.kind == TNF_MAP && p->n == 0)
        t->file = v;
    else if (tnf_str_is(key, ZT0_EMPTY) && v.kind == TNF_BOOL && v.as.b)
        t->empty = true;
    else
        return push_custom(p, t, key, &v);
    return true;
}

static bool read_field(parser *p, entry *t, int field)
{
    tnf_cbor *c = &p->c;
    t->has |= 1u << field;
    switch (field) {
    case NAME:
        return tnf_cbor_text(c, &t->name);
    case OFFSET:
        return tnf_cbor_u64(c, &t->offset);
    case SIZE:
        return tnf_cbor_u64(c, &t->size);
    case DTYPE:
        return tnf_zt_read_word(c, &t->dtype, true);
    case LAYOUT:
        return tnf_zt_read_word(c, &t->layout, true);
    case SHAPE:
        return tnf_zt_read_shape(c, &p->dims, &p->capacity, &t->rank, p->r->scratch);
    case ENCODING:
        return tnf_zt_read_word(c, &t->encoding, true);
    case ENDIANNESS:
        return tnf_zt_read_word(c, &t->endianness, true);
    default:
        return tnf_zt_read_word(c, &t->checksum, false);
    }
}

/* The document has only text keys; the released reader fails at any other. */
static bool other_key(parser *p, uint64_t at)
{
    p->c.status = tnf_stricter(p->r, p->c.e, TNF_EFORMAT, at, "a field has a key that is not text");
    return p->c.status == TNF_OK && tnf_cbor_skip(&p->c, NULL);
}

static bool read_entry(parser *p, entry *t)
{
    tnf_cbor_scope map;
    *t = (entry) { .at = tnf_cbor_where(&p->c) };
    tnf_cbor_enter_map(&p->c, &map);
    for (tnf_str key; tnf_cbor_key(&p->c, &map, &key);) {
        int field = key.p ? FIND(key, fields) : NOT_FOUND;
        bool ok = !key.p               ? other_key(p, tnf_cbor_where(&p->c))
                  : field != NOT_FOUND ? read_field(p, t, field)
                                       : read_custom(p, t, key);
        if (!ok)
            return false;
    }
    if (p->c.status != TNF_OK)
        return false;
    if (!t->dtype.text.p)
        t->has &= ~(1u << DTYPE);
    if (!t->encoding.text.p)
        t->has &= ~(1u << ENCODING);
    for (int i = 0; i < FIELDS; i++)
        if (i != LAYOUT && i != ENDIANNESS && i != CHECKSUM && !(t->has & 1u << i))
            return tnf_cbor_fail(&p->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, t->at,
                                 "the entry of %s has no %s", TNF_QUOTED(t->name), fields[i]);
    return true;
}

/* ------------------------------------------------------------------ words */

/* The index of the word in the list. Numbers count from 0, as in the released reader, and cause a
 * warning. */
static int which_word(parser *p, const entry *t, const zt_word *word, const char *field,
                      const char *const *words, int n)
{
    if (!word->by_number)
        return find_word(word->text, words, n);
    if (word->number >= (uint64_t)n)
        return NOT_FOUND;
    tnf_warn(p->r, t->at, "the %s of %s is number %d instead of '%s'", field, TNF_QUOTED(t->name),
             (int)word->number, words[word->number]);
    return (int)word->number;
}

#define WHICH(p, t, word, field, words)                                                            \
    which_word(p, t, word, field, words, (int)(sizeof(words) / sizeof *(words)))

static void not_known(parser *p, const entry *t, tnf_part *part, const char *what,
                      const zt_word *word)
{
    if (word->by_number)
        tnf_warn(p->r, t->at, "%s cannot be read: its %s, number %llu, is not supported",
                 TNF_QUOTED(t->name), what, (unsigned long long)word->number);
    else
        tnf_warn(p->r, t->at, "%s cannot be read: its %s, %s, is not supported",
                 TNF_QUOTED(t->name), what, TNF_QUOTED(word->text));
    part->flags |= TNF_PART_UNREADABLE;
}

static tnf_str word_text(const zt_word *word)
{
    return word->by_number ? (tnf_str) { "?", 1 } : word->text;
}

static tnf_status find_type(parser *p, const entry *t, tnf_part *part, tnf_error *e)
{
    int i = WHICH(p, t, &t->dtype, "dtype", tnf_zt0_dtypes);
    if (i != NOT_FOUND) {
        part->type = tnf_type_named(tnf_zt0_types[i]);
        return TNF_OK;
    }
    not_known(p, t, part, "dtype", &t->dtype);
    part->type = tnf_zt_unknown_type(p->r->arena, word_text(&t->dtype), TNF_U8);
    return part->type ? TNF_OK : tnf_arena_fail(p->r->arena, "a type", e);
}

/* The sparse layouts never worked: readers and writers require the bytes of a dense tensor and
 * return them so. The word is kept. */
static tnf_status find_layout(parser *p, entry *t, const tnf_layout **out, tnf_part *part,
                              tnf_error *e)
{
    *out = &tnf_layout_dense;
    if (!t->layout.text.p)
        return TNF_OK;
    p->layouts = true;
    int i = WHICH(p, t, &t->layout, "layout", layouts);
    if (i == NOT_FOUND) {
        tnf_str id = word_text(&t->layout);
        not_known(p, t, part, "layout", &t->layout);
        *out = tnf_layout_unknown(p->r->arena, id.p, id.n);
    } else if (i > 0) {
        tnf_warn(p->r, t->at, "the layout of %s is %s, but its bytes are those of a dense tensor",
                 TNF_QUOTED(t->name), layouts[i]);
        t->sparse = layouts[i];
    }
    return *out ? TNF_OK : tnf_arena_fail(p->r->arena, "a layout", e);
}

/* Raw elements of more than a byte have an order; for others the field has no meaning. */
static void find_endianness(parser *p, const entry *t, tnf_part *part)
{
    bool matters = part->payload == TNF_AT && tnf_dtype_size(part->type->storage) > 1;
    if (!t->endianness.text.p)
        return;
    int i = WHICH(p, t, &t->endianness, "data_endianness", endians);
    if (i == NOT_FOUND && matters)
        not_known(p, t, part, "data_endianness", &t->endianness);
    else if (i == 1 && matters)
        part->flags |= TNF_PART_BIG_ENDIAN;
    else if (i != 0)
        tnf_warn(p->r, t->at, "the data_endianness of %s is ignored: %s", TNF_QUOTED(t->name),
                 part->payload == TNF_AT ? "its elements are bytes" : "it is not raw");
}

/* Released readers require as many bytes as the shape needs, for every layout. */
static tnf_status find_size(parser *p, const entry *t, tnf_part *part, tnf_error *e)
{
    uint64_t elements, want = 0;
    part->nbytes = t->size;
    if (part->type->bits == 0)
        return TNF_OK;
    if (!tnf_shape_elements(&elements, p->dims, t->rank))
        return tnf_fail(e, TNF_EFORMAT, t->at, "the shape of %s has more than 2^64 elements",
                        TNF_QUOTED(t->name));
    bool fits = tnf_type_bytes(&want, part->type, elements);
    if (fits && (part->payload == TNF_ENCODED || want == t->size)) {
        part->nbytes = want;
        return TNF_OK;
    }
    if (part->flags & TNF_PART_UNREADABLE)
        return TNF_OK;
    part->flags |= TNF_PART_UNREADABLE;
    if (!fits)
        return tnf_stricter(p->r, e, TNF_EFORMAT, t->at,
                            "%s has %llu elements of %s, more than 2^64 bytes", TNF_QUOTED(t->name),
                            (unsigned long long)elements, part->type->id);
    return tnf_stricter(p->r, e, TNF_EFORMAT, t->at,
                        "%s has %llu bytes, but its %llu elements of %s need %llu",
                        TNF_QUOTED(t->name), (unsigned long long)t->size,
                        (unsigned long long)elements, part->type->id, (unsigned long long)want);
}

/* ------------------------------------------------------------------ entry */

static tnf_status make_attrs(parser *p, const entry *t, const tnf_value **out, tnf_error *e)
{
    tnf_attrs attrs = { .arena = p->r->arena };
    tnf_value *map;
    if (t->custom.n)
        TNF_TRY(tnf_attrs_push(&attrs, ZT0_CUSTOM, tnf_attrs_value(&t->custom), e));
    if (t->sparse)
        TNF_TRY(tnf_attrs_push(&attrs, ZT0_LAYOUT, tnf_value_string(t->sparse), e));
    for (size_t i = 0; i < t->attrs.n; i++) {
        const tnf_member *m = &t->attrs.as.members[i];
        if ((t->custom.n && tnf_str_is(m->key, ZT0_CUSTOM)) ||
            (t->sparse && tnf_str_is(m->key, ZT0_LAYOUT)))
            continue;
        TNF_TRY(tnf_attrs_push(&attrs, m->key.p, m->value, e));
        attrs.members[attrs.n - 1].key.n = m->key.n;
    }
    if (attrs.n == 0)
        return TNF_OK;
    if (!(map = tnf_arena_alloc(p->r->arena, sizeof *map)))
        return tnf_arena_fail(p->r->arena, "attributes", e);
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

static tnf_status take_file_attrs(parser *p, const entry *t, tnf_error *e)
{
    tnf_attrs *attrs = &p->r->catalog->attrs;
    for (size_t i = 0; i < t->file.n; i++) {
        const tnf_member *m = &t->file.as.members[i];
        TNF_TRY(tnf_attrs_push(attrs, m->key.p, m->value, e));
        attrs->members[attrs->n - 1].key.n = m->key.n;
    }
    return TNF_OK;
}

static tnf_status add_entry(parser *p, entry *t, tnf_error *e)
{
    tnf_part part = { .role = "data", .offset = t->offset, .stored = t->size };
    tnf_object o = { .name = t->name, .shape = p->dims, .rank = t->rank, .nparts = 1 };
    int encoding = WHICH(p, t, &t->encoding, "encoding", encodings);
    if (encoding == NOT_FOUND)
        not_known(p, t, &part, "encoding", &t->encoding);
    part.payload = encoding == 1 ? TNF_ENCODED : TNF_AT;
    part.codec = encoding == 1 ? TNF_CODEC_ZSTD : TNF_CODEC_RAW;
    TNF_TRY(find_type(p, t, &part, e));
    TNF_TRY(find_layout(p, t, &o.layout, &part, e));
    find_endianness(p, t, &part);
    TNF_TRY(find_size(p, t, &part, e));
    TNF_TRY(tnf_zt_check_place(p->r, t->name, t->offset, t->size, p->index_start, t->at, e));
    TNF_TRY(tnf_zt_read_digest(p->r, &part.digest, t->name, t->checksum.text, false, t->at, e));
    TNF_TRY(make_attrs(p, t, &o.attrs, e));
    return tnf_zt_add(p->r, &o, &part, t->at, e);
}

static tnf_status read_all(parser *p, tnf_error *e)
{
    tnf_cbor_scope array;
    entry t;
    tnf_cbor_enter_array(&p->c, &array);
    for (; tnf_cbor_item(&p->c, &array); p->n++) {
        if (!read_entry(p, &t))
            return p->c.status;
        TNF_TRY(take_file_attrs(p, &t, e));
        if (!t.empty || t.size != 0 || p->n != 0)
            TNF_TRY(add_entry(p, &t, e));
    }
    return tnf_cbor_end(&p->c);
}

tnf_status tnf_zt0_index(tnf_reader *r, tnf_error *e)
{
    tnf_cur head, tail;
    uint64_t size = r->source->size;
    TNF_TRY(tnf_read_range(r, "magic number", 0, ZT_HEAD, ZT_HEAD, &head, e));
    if (memcmp(head.p, ZT0_MAGIC, ZT_HEAD) != 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "the file does not begin with " ZT0_MAGIC);
    TNF_TRY(
        tnf_read_range(r, "length of the index", size < 16 ? ZT_HEAD : size - 8, 8, 8, &tail, e));
    parser p = { .r = r };
    uint64_t n = tnf_u64(&tail);
    r->version = "0.1";
    if (n == 0) { /* not in the document; released readers read any such file as empty */
        tnf_error cut;
        tnf_status status = tnf_fail(
            &cut, TNF_EFORMAT, size - 8,
            "the length of the index is 0, but %s before it (cut short?)",
            TNF_COUNTED(size - 16, "byte of data is", "bytes of data are"));
        if (size > 16 && !tnf_lose(r, status, &cut))
            TNF_TRY(tnf_stricter(r, e, status, size - 8, "%s", cut.message));
        return TNF_OK;
    }
    TNF_TRY(tnf_zt_open_index(r, &p.c, size - 8, n, e));
    p.index_start = size - 8 - n;
    TNF_TRY(read_all(&p, e));
    if (r->catalog->n > 0 && !p.layouts)
        r->version = "0.1-draft";
    return TNF_OK;
}
