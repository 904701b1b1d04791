/* SPDX-License-Identifier: MIT */
/* safetensors (Hugging Face). Little-endian, row-major, header first:
 *
 *   u64 n
 *   header: n bytes of JSON, padded with spaces at the end
 *     {"__metadata__":{"key":"text",…},
 *      "name":{"dtype":"F32","shape":[2,3],"data_offsets":[begin,end]},…}
 *   data:   offsets count from here; the tensors tile it without holes or overlaps, in any order
 *
 * The Rust crate is the reference. It ignores some faults (a repeated name, white space before the
 * header, a metadata map that is null); this reader ignores them only in lenient mode. The writer
 * writes the same bytes as the crate.
 */
#include "format.h"
#include "wire/json.h"

#include <string.h>

#define HEAD       8u
#define MAX_HEADER 100000000u /* the crate's limit, in bytes */
#define METADATA   "__metadata__"
#define MAPPED     64u /* least alignment of data that are meant to be mapped */
#define TRAILING   "safetensors.trailing"
#define FIELDS     "safetensors.fields"

/* In the crate's order. Its writer sorts tensors from the last type to the first. */
static const struct {
    tnf_str name;
    const char *id;
} dtypes[] = {
#define D(name, id)                                                                                \
    {                                                                                              \
        { name, sizeof name - 1 }, id                                                              \
    }
    D("BOOL", "bool"),
    D("F4", "f4_e2m1"),
    D("F6_E2M3", "f6_e2m3"),
    D("F6_E3M2", "f6_e3m2"),
    D("U8", "u8"),
    D("I8", "i8"),
    D("F8_E5M2", "f8_e5m2"),
    D("F8_E4M3", "f8_e4m3fn"),
    D("F8_E8M0", "f8_e8m0"),
    D("F8_E4M3FNUZ", "f8_e4m3fnuz"),
    D("F8_E5M2FNUZ", "f8_e5m2fnuz"),
    D("I16", "i16"),
    D("U16", "u16"),
    D("F16", "f16"),
    D("BF16", "bf16"),
    D("I32", "i32"),
    D("U32", "u32"),
    D("F32", "f32"),
    D("C64", "c64"),
    D("F64", "f64"),
    D("I64", "i64"),
    D("U64", "u64"),
#undef D
};
#define NDTYPES (sizeof dtypes / sizeof *dtypes)

static bool is_word(tnf_str s, const char *word, size_t n)
{
    return s.n == n && memcmp(s.p, word, n) == 0;
}

#define IS(str, literal) is_word(str, literal, sizeof literal - 1)

/* ---------------------------------------------------------------- probing */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Could these bytes begin a header? No JSON text has control characters outside white space. */
static bool like_header(const uint8_t *p, size_t n)
{
    if (n >= 1 && p[0] != '{')
        return false;
    if (n >= 2 && p[1] != '"' && p[1] != '}' && !is_space(p[1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (p[i] < 0x20 && !is_space(p[i]))
            return false;
    return true;
}

static int probe_safetensors(const tnf_probe *p)
{
    bool named = strcmp(p->ext, "safetensors") == 0;
    if (p->nhead < HEAD)
        return TNF_PROBE_NO;
    const uint8_t *text = p->head + HEAD;
    uint64_t n = tnf_le64(p->head), here = p->size - HEAD;
    size_t seen = p->nhead - HEAD;
    for (; named && seen && is_space(*text); seen--) /* an error, but this format reports it best */
        text++;
    if (!like_header(text, seen < 2 ? seen : 2) || (n == 0 && seen == 0))
        return TNF_PROBE_NO;
    if (n >= 2 && seen >= 2 && like_header(text, n < seen ? (size_t)n : seen)) {
        if (n <= here)
            return TNF_PROBE_STRUCTURE;
        if (n <= MAX_HEADER) /* truncated */
            return TNF_PROBE_PLAUSIBLE;
    }
    return named ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- reading */

typedef struct parser {
    tnf_reader *r;
    tnf_json j;
    const tnf_type *types[NDTYPES];
    size_t last_dtype;
    uint64_t *dims; /* of the entry being read, in scratch */
    size_t room;
    uint64_t end; /* where the data of all entries so far end, in the file */
    bool metadata;
} parser;

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_OTHERS = 8 };

/* A tensor's entry while it is being read. */
typedef struct entry {
    tnf_dense d;
    unsigned has;
    uint64_t begin, end; /* relative to the data */
    uint64_t offsets_at; /* of the pair in the file */
} entry;

static uint64_t value_at(tnf_json *j)
{
    (void)tnf_json_peek(j);
    return tnf_json_where(j);
}

static bool read_dtype(parser *p, entry *t)
{
    tnf_str name;
    uint64_t at = value_at(&p->j);
    if (!tnf_json_string(&p->j, &name))
        return false;
    size_t i = p->last_dtype; /* usually the same as the last one */
    for (size_t tried = 0; tried < NDTYPES; tried++, i = (i + 1) % NDTYPES) {
        if (!is_word(name, dtypes[i].name.p, dtypes[i].name.n))
            continue;
        t->d.type = p->types[i];
        p->last_dtype = i;
        return true;
    }
    return tnf_json_fail(&p->j, TNF_EUNSUPPORTED, at, "%s has the unknown dtype %s",
                         TNF_QUOTED(t->d.name), TNF_QUOTED(name));
}

static bool room_for_dimension(parser *p, uint32_t rank)
{
    uint64_t *dims = tnf_arena_grow(p->r->scratch, p->dims, rank, &p->room, sizeof *dims, 16);
    if (!dims) {
        p->j.status = tnf_arena_fail(p->r->scratch, "a shape", p->j.e);
        return false;
    }
    p->dims = dims;
    return true;
}

static bool read_shape(parser *p, entry *t)
{
    uint32_t rank = 0;
    if (!tnf_json_enter(&p->j, '['))
        return false;
    while (tnf_json_item(&p->j)) {
        if (rank == p->r->limits.rank)
            return tnf_json_fail(&p->j, TNF_ELIMIT, TNF_NO_OFFSET, "%s has more than %u dimensions",
                                 TNF_QUOTED(t->d.name), rank);
        if (!room_for_dimension(p, rank) || !tnf_json_u64(&p->j, &p->dims[rank++]))
            return false;
    }
    t->d.rank = rank;
    return p->j.status == TNF_OK;
}

static bool read_offsets(parser *p, entry *t)
{
    tnf_json *j = &p->j;
    t->offsets_at = value_at(j);
    if (!tnf_json_enter(j, '['))
        return false;
    bool two = tnf_json_item(j) && tnf_json_u64(j, &t->begin) && tnf_json_item(j) &&
               tnf_json_u64(j, &t->end) && !tnf_json_item(j);
    return (two && j->status == TNF_OK) ||
           tnf_json_fail(j, TNF_EFORMAT, t->offsets_at,
                         "the data_offsets of %s are not two numbers", TNF_QUOTED(t->d.name));
}

static bool read_field(parser *p, entry *t, tnf_str key, uint64_t at)
{
    unsigned bit = IS(key, "dtype")          ? HAS_DTYPE
                   : IS(key, "shape")        ? HAS_SHAPE
                   : IS(key, "data_offsets") ? HAS_OFFSETS
                                             : HAS_OTHERS;
    if (bit != HAS_OTHERS && t->has & bit)
        return tnf_json_fail(&p->j, TNF_EFORMAT, at, "the entry of %s has %s twice",
                             TNF_QUOTED(t->d.name), TNF_QUOTED(key));
    t->has |= bit;
    switch (bit) {
    case HAS_DTYPE:
        return read_dtype(p, t);
    case HAS_SHAPE:
        return read_shape(p, t);
    case HAS_OFFSETS:
        return read_offsets(p, t);
    default:
        return tnf_json_skip(&p->j, NULL);
    }
}

/* Fields that the format does not define: the crate ignores them, this reader keeps them as an
 * attribute. The entry is parsed again, as a tree, which also finds duplicate fields. */
static tnf_status keep_fields(parser *p, entry *t, tnf_json again, tnf_error *e)
{
    tnf_reader *r = p->r;
    tnf_attrs fields = { .arena = r->arena }, attrs = { .arena = r->arena };
    tnf_value all;
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    again.arena = r->arena;
    if (!tnf_json_value(&again, &all))
        return again.status;
    for (size_t i = 0; i < all.n; i++) {
        const tnf_member *m = &all.as.members[i];
        if (IS(m->key, "dtype") || IS(m->key, "shape") || IS(m->key, "data_offsets"))
            continue;
        TNF_TRY(tnf_attrs_push(&fields, m->key.p, m->value, e));
        fields.members[fields.n - 1].key.n = m->key.n;
    }
    tnf_warn(r, t->d.at, "the entry of %s has unknown fields", TNF_QUOTED(t->d.name));
    TNF_TRY(tnf_attrs_push(&attrs, FIELDS, tnf_attrs_value(&fields), e));
    *map = tnf_attrs_value(&attrs);
    t->d.attrs = map;
    return TNF_OK;
}

/* The crate checks more than the size equation. It multiplies the dimensions in order, so the
 * product may overflow before a zero comes. It also requires whole bytes. */
static bool multiply_in_order(uint64_t *product, const uint64_t *shape, uint32_t rank)
{
    *product = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (!tnf_ckd_mul(product, *product, shape[i]))
            return false;
    return true;
}

static tnf_status check_shape(parser *p, const entry *t, tnf_error *e)
{
    uint64_t product;
    if (!multiply_in_order(&product, t->d.shape, t->d.rank))
        return tnf_stricter(p->r, e, TNF_EFORMAT, t->d.at,
                            "the dimensions of %s multiply to more than 2^64",
                            TNF_QUOTED(t->d.name));
    if (product % 8 * t->d.type->bits % 8 != 0)
        return tnf_stricter(p->r, e, TNF_EFORMAT, t->d.at,
                            "%s has %llu elements of %u bits, which is not a whole number of bytes",
                            TNF_QUOTED(t->d.name), (unsigned long long)product, t->d.type->bits);
    return TNF_OK;
}

static tnf_status add_entry(parser *p, entry *t, tnf_error *e)
{
    unsigned all = HAS_DTYPE | HAS_SHAPE | HAS_OFFSETS;
    if ((t->has & all) != all)
        return tnf_fail(e, TNF_EFORMAT, t->d.at, "the entry of %s has no %s", TNF_QUOTED(t->d.name),
                        !(t->has & HAS_DTYPE)   ? "dtype"
                        : !(t->has & HAS_SHAPE) ? "shape"
                                                : "data_offsets");
    uint64_t end;
    if (t->end < t->begin)
        return tnf_fail(e, TNF_EFORMAT, t->offsets_at, "%s ends at %llu, before it begins at %llu",
                        TNF_QUOTED(t->d.name), (unsigned long long)t->end,
                        (unsigned long long)t->begin);
    if (!tnf_ckd_add(&t->d.offset, p->r->data_start, t->begin) ||
        !tnf_ckd_add(&end, p->r->data_start, t->end))
        return tnf_fail(e, TNF_EFORMAT, t->offsets_at, "the end of %s is beyond 2^64",
                        TNF_QUOTED(t->d.name));
    t->d.length = t->end - t->begin;
    t->d.shape = p->dims;
    p->end = end > p->end ? end : p->end;
    TNF_TRY(check_shape(p, t, e));
    return tnf_add_dense(p->r, &t->d, e);
}

static tnf_status read_entry(parser *p, tnf_str name, uint64_t at, tnf_error *e)
{
    entry t = { .d = { .name = name, .at = at } };
    tnf_json start = p->j;
    tnf_str key;
    if (!tnf_json_enter(&p->j, '{'))
        return p->j.status;
    for (uint64_t key_at; key_at = tnf_json_next_key_at(&p->j), tnf_json_key(&p->j, &key);)
        if (!read_field(p, &t, key, key_at))
            return p->j.status;
    if (p->j.status != TNF_OK)
        return p->j.status;
    if (t.has & HAS_OTHERS)
        TNF_TRY(keep_fields(p, &t, start, e));
    return add_entry(p, &t, e);
}

/* Reads the map twice: first for strings and their offsets, then as a tree, which finds duplicate
 * keys. */
static tnf_status read_metadata(parser *p, uint64_t at, tnf_error *e)
{
    tnf_json *j = &p->j;
    tnf_str key, text;
    tnf_value all;
    if (p->metadata)
        return tnf_fail(e, TNF_EFORMAT, at, METADATA " occurs twice");
    p->metadata = true;
    if (tnf_json_peek(j) == 'n') {
        TNF_TRY(tnf_stricter(p->r, e, TNF_EFORMAT, tnf_json_where(j),
                             METADATA " is null instead of a map of strings"));
        tnf_json_skip(j, NULL);
        return j->status;
    }
    tnf_json again = *j;
    if (!tnf_json_enter(j, '{'))
        return j->status;
    while (tnf_json_key(j, &key)) {
        char c = tnf_json_peek(j);
        if (c && c != '"')
            tnf_json_fail(j, TNF_EFORMAT, TNF_NO_OFFSET, "the metadata entry %s is not a string",
                          TNF_QUOTED(key));
        tnf_json_string(j, &text);
    }
    if (j->status != TNF_OK || !tnf_json_value(&again, &all))
        return j->status != TNF_OK ? j->status : again.status;
    for (size_t i = 0; i < all.n; i++) {
        const tnf_member *m = &all.as.members[i];
        TNF_TRY(tnf_set_text(p->r, m->key, (tnf_str) { m->value.as.s, m->value.n }, e));
    }
    return TNF_OK;
}

static tnf_status read_header(parser *p, tnf_error *e)
{
    tnf_json *j = &p->j;
    tnf_str name;
    if (!tnf_json_enter(j, '{'))
        return j->status;
    for (uint64_t at; at = tnf_json_next_key_at(j), tnf_json_key(j, &name);) {
        if (IS(name, METADATA))
            TNF_TRY(read_metadata(p, at, e));
        else
            TNF_TRY(read_entry(p, name, at, e));
    }
    if (j->status != TNF_OK)
        return j->status;
    uint64_t at = tnf_json_where(j);
    const uint8_t *rest = j->p;
    TNF_TRY(tnf_json_end(j));
    while (rest < j->end && *rest == ' ')
        rest++;
    if (rest < j->end)
        tnf_warn(p->r, at, "the header is padded with white space other than spaces");
    return TNF_OK;
}

static tnf_status open_header(tnf_reader *r, tnf_cur *c, tnf_error *e)
{
    TNF_TRY(tnf_read_range(r, "header length", 0, HEAD, HEAD, c, e));
    uint64_t n = tnf_u64(c);
    if (n < 2)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the header has a length of %llu bytes; even an empty one has 2",
                        (unsigned long long)n);
    if (n > MAX_HEADER)
        TNF_TRY(tnf_stricter(r, e, TNF_ELIMIT, 0,
                             "the header has a length of %llu bytes; the format allows 100,000,000",
                             (unsigned long long)n));
    TNF_TRY(tnf_read_range(r, "header", HEAD, n, UINT64_MAX, c, e));
    r->data_start = HEAD + n;
    if (is_space(*c->p))
        return tnf_stricter(r, e, TNF_EFORMAT, HEAD, "the header begins with white space, not '{'");
    if (*c->p != '{')
        return tnf_fail(e, TNF_EFORMAT, HEAD, "the header does not begin with '{'");
    return TNF_OK;
}

static tnf_status index_safetensors(tnf_reader *r, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(open_header(r, &c, e));
    parser *p = tnf_arena_alloc(r->scratch, sizeof *p);
    if (!p)
        return tnf_arena_fail(r->scratch, "the header", e);
    p->r = r;
    p->end = r->data_start;
    for (size_t i = 0; i < NDTYPES; i++)
        p->types[i] = tnf_type_named(dtypes[i].id);
    tnf_json_init(&p->j, c.p, tnf_left(&c), HEAD, r->scratch, r->limits.depth, e);
    TNF_TRY(read_header(p, e));
    /* The core refuses trailing bytes. In lenient mode they must not be lost. */
    if (r->lenient && p->end < r->source->size)
        return tnf_add_extra(r, TRAILING, p->end, r->source->size - p->end, e);
    return TNF_OK;
}

/* ---------------------------------------------------------------- writing */

enum { WRITE_ALIGN, WRITE_RESERVE, WRITE_ORDER, WRITE_EMPTY };
enum { ORDER_CANONICAL, ORDER_FILE };

static const tnf_option_info write_options[] = {
    { "align", TNF_OPTION_UINT, NULL, "8",
      "the data begins at a multiple of this (a power of two, at most 65536)" },
    { "reserve", TNF_OPTION_UINT, NULL, "0",
      "leave this many bytes of room in the header for later edits of the metadata" },
    { "order", TNF_OPTION_CHOICE, "canonical|file", "canonical",
      "order of the tensors: as the safetensors package sorts them, or as in the source" },
    { "empty_metadata", TNF_OPTION_BOOL, NULL, "no", "write the metadata map even if it is empty" },
    { 0 },
};

static size_t dtype_of(const tnf_type *type)
{
    size_t i = 0;
    while (i + 1 < NDTYPES && strcmp(dtypes[i].id, type->id) != 0)
        i++;
    return i; /* the core passes only the types that .can lists */
}

/* Widest first, so that all stay aligned; then by name. */
static int canonical_order(const tnf_object *a, const tnf_object *b)
{
    const tnf_type *left = a->parts[0].type, *right = b->parts[0].type;
    if (left != right)
        return dtype_of(left) > dtype_of(right) ? -1 : 1;
    return tnf_compare_names(a, b);
}

static tnf_fate takes_safetensors(const tnf_object *o, const char **reason)
{
    uint64_t elements;
    *reason = "its dimensions multiply to more than 2^64 before its zero dimension";
    if (!multiply_in_order(&elements, o->shape, o->rank))
        return TNF_DROPPED;
    *reason = "its elements do not fill its last byte";
    if (elements % 8 * o->parts[0].type->bits % 8 != 0)
        return TNF_DROPPED;
    *reason = "";
    return TNF_NATIVE;
}

static void put_metadata(tnf_buf *b, const tnf_writer *w)
{
    tnf_buf_puts(b, "\"" METADATA "\":{");
    for (size_t i = 0; i < w->ntext; i++) {
        const tnf_member *m = &w->text[i];
        if (i)
            tnf_buf_u8(b, ',');
        tnf_json_put_string(b, m->key.p, m->key.n);
        tnf_buf_u8(b, ':');
        tnf_json_put_string(b, m->value.as.s, m->value.n);
    }
    tnf_buf_u8(b, '}');
}

static void put_entry(tnf_buf *b, const tnf_object *o, uint64_t begin, uint64_t end)
{
    tnf_json_put_string(b, o->name.p, o->name.n);
    tnf_buf_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", dtypes[dtype_of(o->parts[0].type)].name.p);
    for (uint32_t i = 0; i < o->rank; i++)
        tnf_buf_printf(b, "%s%llu", i ? "," : "", (unsigned long long)o->shape[i]);
    tnf_buf_printf(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                   (unsigned long long)end);
}

/* Where each tensor of the catalog begins if the data are in this order. */
static tnf_status place_tensors(uint64_t **out, tnf_writer *w, const uint32_t *order, tnf_error *e)
{
    uint64_t end = 0, *begins = tnf_arena_array(w->scratch, w->catalog->n, sizeof *begins);
    if (!begins)
        return tnf_arena_fail(w->scratch, "the header", e);
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, order, i);
        begins[o - w->catalog->objects] = end;
        if (!tnf_ckd_add(&end, end, o->parts[0].nbytes))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would exceed 2^64 bytes");
    }
    *out = begins;
    return TNF_OK;
}

/* `order` is the order of the data, `entries` that of the header's entries. */
static tnf_status make_header(tnf_buf *b, tnf_writer *w, const uint32_t *order,
                              const uint32_t *entries, tnf_error *e)
{
    uint64_t *begins = NULL;
    TNF_TRY(place_tensors(&begins, w, order, e));
    tnf_buf_u8(b, '{');
    bool metadata = w->ntext || w->options[WRITE_EMPTY].u;
    if (metadata)
        put_metadata(b, w);
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, entries, i);
        uint64_t begin = begins[o - w->catalog->objects];
        if (i || metadata)
            tnf_buf_u8(b, ',');
        put_entry(b, o, begin, begin + o->parts[0].nbytes);
    }
    tnf_buf_u8(b, '}');
    return tnf_buf_status(b, "the header", e);
}

/* Writes the header and the spaces that align the data and leave room for edits. */
static tnf_status put_header(tnf_writer *w, const tnf_buf *b, tnf_error *e)
{
    uint64_t align = w->options[WRITE_ALIGN].u, data;
    if (tnf_follows(w, WRITE_ALIGN) && w->like->data_start % MAPPED == 0)
        align = MAPPED; /* the source was aligned on purpose, or the alignment costs little */
    if (align == 0 || align > 65536 || (align & (align - 1)) != 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "align must be a power of two, at most 65536, not %llu",
                        (unsigned long long)align);
    if (w->in_place) {
        data = w->like->data_start;
        if (HEAD + b->n > data)
            return tnf_no_room(HEAD + b->n - data, "the header", e);
    } else if (!tnf_ckd_add(&data, HEAD + b->n, w->options[WRITE_RESERVE].u) ||
               !tnf_ckd_align(&data, data, align) || data - HEAD > MAX_HEADER)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the header would exceed the 100,000,000 bytes that the format allows");
    TNF_TRY(tnf_put_u64(w, data - HEAD, e));
    TNF_TRY(tnf_put(w, b->p, b->n, e));
    return tnf_put_fill(w, ' ', data - HEAD - b->n, e);
}

static tnf_status write_safetensors(tnf_writer *w, tnf_error *e)
{
    const uint32_t *order = NULL;
    tnf_buf b;
    bool like = tnf_follows(w, WRITE_ORDER) && tnf_has_places(w);
    if (like || w->options[WRITE_ORDER].u == ORDER_CANONICAL)
        TNF_TRY(tnf_sorted(w, &order, like ? tnf_compare_places : canonical_order, e));
    tnf_buf_init(&b, &w->scratch->alloc, MAX_HEADER);
    tnf_status status = make_header(&b, w, order, like ? NULL : order, e);
    if (status == TNF_OK)
        status = put_header(w, &b, e);
    tnf_buf_free(&b);
    for (size_t i = 0; status == TNF_OK && i < w->catalog->n; i++)
        status = tnf_put_data(w, &tnf_nth(w, order, i)->parts[0], e);
    return status;
}

const tnf_format tnf_format_safetensors = {
    .name = "safetensors",
    .title = "safetensors",
    .extensions = "safetensors",
    .family = "safetensors",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_EDIT,
    .rules = TNF_RULE_DATA_START | TNF_RULE_NO_OVERLAP | TNF_RULE_NO_HOLES,
    .can = { .types = "bool f4_e2m1 f6_e2m3 f6_e3m2 u8 i8 f8_e5m2 f8_e4m3fn f8_e8m0 f8_e4m3fnuz "
                      "f8_e5m2fnuz i16 u16 f16 bf16 i32 u32 f32 c64 f64 i64 u64",
             .layouts = "dense",
             .zero_rank = true,
             .utf8_names = true,
             .sorts = canonical_order,
             .reserved = METADATA,
             .takes = takes_safetensors,
             .attrs = TNF_HOLDS_TEXT,
             .file_attrs = "safetensors.metadata" },
    .write_options = write_options,
    .probe = probe_safetensors,
    .index = index_safetensors,
    .write = TNF_WRITES(write_safetensors),
};
