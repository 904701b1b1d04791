/* SPDX-License-Identifier: MIT */
/* Datatypes and dataspaces.
 *
 *   datatype    version<<4 | class, 3 bytes of bits, size u32, then by class:
 *     0 integer   offset precision u16           bits: 0 big-endian, 3 signed
 *     1 float     offset precision u16, exponent at size u8, mantissa at size u8, bias u32
 *     3 string    -                              bits: 0-3 padding
 *     5 opaque    tag
 *     6 compound  members: name, offset, type
 *     8 enum      base type, names, values
 *     9 vlen      base type                      bits: 0-3 1: string
 *    10 array     rank, dimensions u32, base type
 *   dataspace   1 rank flags 0×5 dims [max] · 2 rank flags kind dims [max]
 */
#include "formats/hdf5/h5.h"

#include <stdio.h>
#include <string.h>

#define OWN_NAME 48u

typedef struct float_kind {
    uint8_t size, exponent_at, exponent, mantissa;
    uint32_t bias;
    const char *type;
} float_kind;

static const float_kind float_kinds[] = {
    { 4, 23, 8, 23, 127, "f32" }, { 8, 52, 11, 52, 1023, "f64" }, { 2, 10, 5, 10, 15, "f16" },
    { 2, 7, 8, 7, 127, "bf16" },  { 1, 2, 5, 2, 15, "f8_e5m2" },  { 1, 3, 4, 3, 7, "f8_e4m3fn" },
};

static tnf_status read_type(h5_type *t, h5_file *h, tnf_cur *c, unsigned depth, tnf_error *e);

static tnf_status not_read(h5_type *t, h5_file *h, const char *name, tnf_error *e)
{
    t->form = H5_UNREAD;
    t->name = tnf_arena_str(h->r->arena, name, strlen(name));
    return t->name ? TNF_OK : tnf_arena_fail(h->r->arena, "a type", e);
}

/* The type becomes opaque bytes. */
static void as_bytes(h5_type *t)
{
    t->form = H5_DENSE;
    t->type = tnf_type_of(TNF_U8);
    t->big = false;
    t->naxes = 1;
    t->axes[0] = t->size;
}

static tnf_status read_integer(h5_type *t, h5_file *h, tnf_cur *c, uint32_t bits, tnf_error *e)
{
    static const char *const unsigned_[] = { "u8", "u16", "u32", "u64", "u128" };
    static const char *const signed_[] = { "i8", "i16", "i32", "i64", "i128" };
    char name[OWN_NAME];
    unsigned offset = tnf_u16(c), precision = tnf_u16(c), k = 0;
    bool is_signed = bits & 8u && t->cls == 0;
    while (k < 5 && t->size != (uint64_t)1 << k)
        k++;
    t->big = bits & 1u;
    if (k == 5 || (k == 4 && t->cls != 0) || offset != 0 || precision != 8 * t->size) {
        snprintf(name, sizeof name, "hdf5.%s%u", is_signed || t->cls ? "int" : "uint", precision);
        return not_read(t, h, name, e);
    }
    t->type = tnf_type_named(is_signed ? signed_[k] : unsigned_[k]);
    return TNF_OK;
}

static tnf_status read_float(h5_type *t, h5_file *h, tnf_cur *c, uint32_t bits, tnf_error *e)
{
    char name[OWN_NAME];
    unsigned offset = tnf_u16(c), precision = tnf_u16(c);
    unsigned exponent_at = tnf_u8(c), exponent = tnf_u8(c), mantissa_at = tnf_u8(c);
    unsigned mantissa = tnf_u8(c);
    uint32_t bias = tnf_u32(c);
    bool plain = !(bits & 0x40u) && (bits >> 4 & 3u) == 2 && offset == 0 && mantissa_at == 0 &&
                 precision == 8 * t->size && (bits >> 8 & 0xFFu) == precision - 1;
    t->big = bits & 1u;
    for (size_t i = 0; plain && i < sizeof float_kinds / sizeof *float_kinds; i++) {
        const float_kind *k = &float_kinds[i];
        if (t->size == k->size && exponent_at == k->exponent_at && exponent == k->exponent &&
            mantissa == k->mantissa && bias == k->bias) {
            t->type = tnf_type_named(k->type);
            return TNF_OK;
        }
    }
    snprintf(name, sizeof name, "hdf5.float%u", precision);
    return not_read(t, h, name, e);
}

/* Reads a NUL-terminated name; in versions 1 and 2 it is padded to a multiple of 8. */
static tnf_str read_name(tnf_cur *c, unsigned version)
{
    const uint8_t *end = tnf_left(c) ? memchr(c->p, 0, tnf_left(c)) : NULL;
    size_t n = end ? (size_t)(end - c->p) : 0;
    size_t all = version < 3 ? (n + 8) / 8 * 8 : n + 1;
    const char *p = tnf_bytes(c, end ? all : SIZE_MAX);
    return (tnf_str) { p ? p : "", p ? n : 0 };
}

static void type_text(tnf_buf *b, const h5_type *t)
{
    if (t->text)
        tnf_buf_puts(b, t->text);
    else if (t->form == H5_FIXED_TEXT)
        tnf_buf_printf(b, "string%llu", (unsigned long long)t->size);
    else
        tnf_buf_puts(b, t->form == H5_VLEN_TEXT ? "string" : t->type ? t->type->id : t->name);
    if (t->form == H5_DENSE && !t->text)
        for (uint32_t i = 0; i < t->naxes; i++)
            tnf_buf_printf(b, "[%llu]", (unsigned long long)t->axes[i]);
    if (t->big)
        tnf_buf_puts(b, " big-endian");
}

static tnf_status take_text(h5_type *t, h5_file *h, tnf_buf *b, tnf_error *e)
{
    tnf_status status = tnf_buf_status(b, "a type", e);
    if (status == TNF_OK && !(t->text = tnf_arena_str(h->r->arena, b->p ? (char *)b->p : "", b->n)))
        status = tnf_arena_fail(h->r->arena, "a type", e);
    return status;
}

/* Is it {r, i} of equal floats, h5py's form of complex numbers? */
static bool is_complex(const h5_type *t, const h5_type *first, const h5_type *second,
                       const tnf_str names[2], const uint64_t offsets[2])
{
    return first->form == H5_DENSE && second->form == H5_DENSE && first->type == second->type &&
           first->naxes == 0 && second->naxes == 0 && first->big == second->big &&
           names[0].n == 1 && names[1].n == 1 && names[0].p[0] == 'r' && names[1].p[0] == 'i' &&
           offsets[0] == 0 && offsets[1] == first->size && t->size == 2 * first->size &&
           (first->size == 4 || first->size == 8) && first->cls == 1;
}

static tnf_status read_members(h5_type *t, h5_file *h, tnf_cur *c, tnf_buf *b, unsigned version,
                               unsigned n, unsigned depth, tnf_error *e)
{
    h5_type first = { 0 };
    tnf_str names[2] = { { "", 0 }, { "", 0 } };
    uint64_t offsets[2] = { 0 };
    bool complex = false;
    tnf_buf_printf(b, "compound%llu {", (unsigned long long)t->size);
    for (unsigned i = 0; i < n; i++) {
        h5_type own;
        tnf_str name = read_name(c, version);
        uint64_t offset = version >= 3 ? tnf_h5_uint(c, tnf_h5_bytes_for(t->size)) : tnf_u32(c);
        if (version == 1)
            (void)tnf_bytes(c, 28);
        if (c->bad)
            return tnf_h5_bad(c, "a compound type is truncated", e);
        TNF_TRY(read_type(&own, h, c, depth + 1, e));
        tnf_buf_printf(b, "%s%.*s @%llu ", i ? ", " : "", (int)(name.n < 200 ? name.n : 200),
                       name.p, (unsigned long long)offset);
        type_text(b, &own);
        if (i < 2) {
            names[i] = name;
            offsets[i] = offset;
        }
        if (i == 0)
            first = own;
        complex = n == 2 && i == 1 && is_complex(t, &first, &own, names, offsets);
    }
    tnf_buf_puts(b, "}");
    if (!complex) {
        as_bytes(t);
        return take_text(t, h, b, e);
    }
    t->type = tnf_type_named(first.size == 4 ? "c64" : "c128");
    t->big = first.big;
    return TNF_OK;
}

static tnf_status read_compound(h5_type *t, h5_file *h, tnf_cur *c, unsigned version, unsigned n,
                                unsigned depth, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &h->r->scratch->alloc, (uint64_t)1 << 20);
    tnf_status status = read_members(t, h, c, &b, version, n, depth, e);
    tnf_buf_free(&b);
    return status;
}

static tnf_status read_enum(h5_type *t, h5_file *h, tnf_cur *c, unsigned version, unsigned n,
                            unsigned depth, tnf_error *e)
{
    h5_type base;
    tnf_attrs names = { .arena = h->r->arena };
    TNF_TRY(read_type(&base, h, c, depth + 1, e));
    if (base.form != H5_DENSE || base.cls != 0 || base.size != t->size || base.size > 8)
        return not_read(t, h, "hdf5.enum", e);
    tnf_str *keys = tnf_arena_array(&h->temp, n + 1, sizeof *keys);
    if (!keys)
        return tnf_arena_fail(&h->temp, "an enum", e);
    for (unsigned i = 0; i < n; i++)
        keys[i] = read_name(c, version);
    for (unsigned i = 0; i < n; i++) {
        uint8_t number[8] = { 0 };
        const void *p = tnf_bytes(c, base.size);
        if (!p)
            return tnf_h5_bad(c, "an enum is truncated", e);
        memcpy(number, p, (size_t)base.size);
        if (base.big)
            tnf_reverse(number, base.size, (size_t)base.size);
        TNF_TRY(tnf_attrs_set(&names, keys[i].p, keys[i].n,
                              tnf_value_number(base.type->storage, number), e));
    }
    t->type = base.type;
    t->big = base.big;
    tnf_value *map = tnf_arena_alloc(h->r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(h->r->arena, "an enum", e);
    *map = tnf_attrs_value(&names);
    const tnf_value *no = tnf_value_get(map, "FALSE"), *yes = tnf_value_get(map, "TRUE");
    bool is_bool = n == 2 && t->size == 1 && no && yes && no->as.u == 0 && yes->as.u == 1;
    if (is_bool)
        t->type = tnf_type_named("bool");
    else
        t->values = map;
    return TNF_OK;
}

static tnf_status read_array(h5_type *t, h5_file *h, tnf_cur *c, unsigned version, unsigned depth,
                             tnf_error *e)
{
    h5_type base;
    uint64_t dims[H5_RANK], size = t->size;
    unsigned rank = tnf_u8(c);
    if (version < 3)
        (void)tnf_bytes(c, 3);
    if (rank == 0 || rank > H5_RANK)
        return tnf_h5_bad(c, "an array type has no dimensions, or too many", e);
    for (unsigned i = 0; i < rank; i++)
        dims[i] = tnf_u32(c);
    if (version < 3)
        (void)tnf_bytes(c, 4 * (uint64_t)rank);
    TNF_TRY(read_type(&base, h, c, depth + 1, e));
    uint64_t all = base.size;
    for (unsigned i = 0; i < rank; i++)
        if (dims[i] == 0 || !tnf_ckd_mul(&all, all, dims[i]))
            return tnf_h5_bad(c, "an array type has no elements, or too many", e);
    if (all != size)
        return tnf_h5_bad(c, "the size of an array type differs from that of its elements", e);
    if (base.form != H5_DENSE || base.naxes + rank > H5_RANK)
        return not_read(t, h, "hdf5.array", e);
    *t = base;
    t->size = size;
    memmove(t->axes + rank, base.axes, base.naxes * sizeof *t->axes);
    memcpy(t->axes, dims, rank * sizeof *dims);
    t->naxes += rank;
    return TNF_OK;
}

static tnf_status read_opaque(h5_type *t, h5_file *h, tnf_cur *c, uint32_t bits, tnf_error *e)
{
    tnf_buf b;
    size_t n = bits & 0xFFu;
    const char *tag = tnf_bytes(c, (n + 7) / 8 * 8);
    if (!tag)
        return tnf_h5_bad(c, "an opaque type is truncated", e);
    as_bytes(t);
    t->opaque = true;
    tnf_buf_init(&b, &h->r->scratch->alloc, 4096);
    tnf_buf_printf(&b, "opaque%llu", (unsigned long long)t->size);
    size_t shown = 0;
    while (shown < n && tag[shown])
        shown++;
    if (shown)
        tnf_buf_printf(&b, " %.*s", (int)shown, tag);
    tnf_status status = take_text(t, h, &b, e);
    tnf_buf_free(&b);
    return status;
}

static tnf_status read_vlen(h5_type *t, h5_file *h, tnf_cur *c, uint32_t bits, unsigned depth,
                            tnf_error *e)
{
    h5_type base;
    TNF_TRY(read_type(&base, h, c, depth + 1, e));
    if ((bits & 15u) != 1 || t->size != 16)
        return not_read(t, h, "hdf5.vlen", e);
    t->form = H5_VLEN_TEXT;
    return TNF_OK;
}

/* Complex numbers of HDF5 2.0: the type of both components follows. */
static tnf_status read_complex(h5_type *t, h5_file *h, tnf_cur *c, unsigned depth, tnf_error *e)
{
    h5_type base;
    TNF_TRY(read_type(&base, h, c, depth + 1, e));
    bool fits = base.form == H5_DENSE && base.cls == 1 && base.naxes == 0 &&
                (base.size == 4 || base.size == 8) && t->size == 2 * base.size;
    if (!fits)
        return not_read(t, h, "hdf5.complex", e);
    t->type = tnf_type_named(base.size == 4 ? "c64" : "c128");
    t->big = base.big;
    return TNF_OK;
}

static tnf_status read_type(h5_type *t, h5_file *h, tnf_cur *c, unsigned depth, tnf_error *e)
{
    unsigned head = tnf_u8(c), version = head >> 4;
    uint32_t bits = (uint32_t)tnf_h5_uint(c, 3), n = bits & 0xFFFFu;
    *t = (h5_type) { .form = H5_DENSE, .cls = head & 15u, .size = tnf_u32(c) };
    if (c->bad || version < 1 || version > 5 || t->size == 0)
        return tnf_h5_bad(c, "a datatype is invalid", e);
    if (depth > H5_NESTED)
        return tnf_fail(e, TNF_ELIMIT, tnf_where(c), "datatypes are nested deeper than %u",
                        H5_NESTED);
    switch (t->cls) {
    case 0:
    case 4:
        return read_integer(t, h, c, bits, e);
    case 1:
        return read_float(t, h, c, bits, e);
    case 2:
        (void)tnf_u16(c);
        return not_read(t, h, "hdf5.time", e);
    case 3:
        t->form = H5_FIXED_TEXT;
        t->pad = bits & 15u;
        return TNF_OK;
    case 5:
        return read_opaque(t, h, c, bits, e);
    case 6:
        return read_compound(t, h, c, version, n, depth, e);
    case 7:
        as_bytes(t);
        t->reference = true;
        t->text = "reference";
        return TNF_OK;
    case 8:
        return read_enum(t, h, c, version, n, depth, e);
    case 9:
        return read_vlen(t, h, c, bits, depth, e);
    case 10:
        return read_array(t, h, c, version, depth, e);
    case 11:
        return read_complex(t, h, c, depth, e);
    default:
        return tnf_fail(e, TNF_EUNSUPPORTED, tnf_where(c),
                        "a datatype has the unsupported class %u", t->cls);
    }
}

tnf_status tnf_h5_type(h5_type *out, h5_file *h, tnf_cur *c, tnf_error *e)
{
    TNF_TRY(read_type(out, h, c, 0, e));
    return c->bad ? tnf_h5_bad(c, "a datatype is truncated", e) : TNF_OK;
}

/* --------------------------------------------------------------- dataspace */

tnf_status tnf_h5_space(h5_space *s, tnf_cur *c, tnf_error *e)
{
    unsigned version = tnf_u8(c), rank = tnf_u8(c), flags = tnf_u8(c), kind = tnf_u8(c);
    *s = (h5_space) { .rank = rank };
    if (version == 1)
        (void)tnf_u32(c);
    if (version < 1 || version > 2 || (version == 2 && kind > 2))
        return tnf_h5_bad(c, "a dataspace is invalid", e);
    if (rank > H5_RANK)
        return tnf_fail(e, TNF_ELIMIT, tnf_where(c),
                        "a dataset has %u dimensions; at most %u are allowed", rank, H5_RANK);
    s->null = version == 2 && kind == 2;
    for (unsigned i = 0; i < rank; i++)
        s->shape[i] = s->max[i] = tnf_u64(c);
    for (unsigned i = 0; flags & 1u && i < rank; i++)
        s->max[i] = tnf_u64(c);
    if (c->bad)
        return tnf_h5_bad(c, "a dataspace is truncated", e);
    if (!tnf_shape_elements(&s->elements, s->shape, s->rank))
        return tnf_h5_bad(c, "a shape has more than 2^64 elements", e);
    return TNF_OK;
}

size_t tnf_h5_text_length(const h5_type *t, const uint8_t *p)
{
    size_t n = (size_t)t->size;
    const uint8_t *end = t->pad == 2 ? NULL : memchr(p, 0, n);
    if (end)
        return (size_t)(end - p);
    while (t->pad == 2 && n > 0 && p[n - 1] == ' ')
        n--;
    return n;
}
