/* SPDX-License-Identifier: MIT */
/* Varints, meta blocks and points of VS files, in memory. */
#include "formats/vs/block.h"

#include "base/ckd.h"
#include "base/error.h"
#include "model/dtype.h"
#include "wire/msgpack.h"

/* ----------------------------------------------------------------- varints */

static tnf_status varint_fail(const char *what, unsigned bits, uint64_t at, bool too_long,
                              tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, at, "varint too long: %s has %s %u bits", what,
                    too_long ? "more bytes than a number of" : "a value beyond", bits);
}

tnf_status tnf_vs_varint(tnf_cur *c, unsigned bits, bool msb, const char *what, uint64_t *out,
                         tnf_error *e)
{
    uint64_t at = tnf_where(c), v = 0;
    unsigned most = (bits + 6) / 7;
    for (unsigned i = 0; i < most; i++) {
        const uint8_t *p = tnf_bytes(c, 1);
        if (!p)
            return tnf_fail(e, TNF_ETRUNCATED, at, "truncated: %s is missing", what);
        uint64_t group = *p & 0x7f;
        unsigned shift = msb ? 7 : 7 * i;
        if (msb ? v >> 57 != 0 : shift == 63 && group > 1)
            return varint_fail(what, bits, at, false, e);
        v = msb ? v << shift | group : v | group << shift;
        if (*p & 0x80)
            continue;
        if (bits < 64 && v >> bits != 0)
            return varint_fail(what, bits, at, false, e);
        *out = v;
        return TNF_OK;
    }
    return varint_fail(what, bits, at, true, e);
}

size_t tnf_vs_put_varint(uint8_t out[10], uint64_t v, bool msb)
{
    size_t n = 1;
    for (uint64_t rest = v >> 7; rest && n < 10; rest >>= 7) /* 10 suffice; gcc needs the check */
        n++;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)((v >> 7 * (msb ? n - 1 - i : i) & 0x7f) | (i + 1 < n ? 0x80 : 0));
    return n;
}

uint64_t tnf_vs_zigzag(int64_t v)
{
    uint64_t u = (uint64_t)v;
    return u << 1 ^ (0 - (u >> 63));
}

int64_t tnf_vs_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

/* -------------------------------------------------------------------- meta */

/* The codes of the document, and f16, which a later revision of its author added. */
static const struct {
    int8_t code;
    bool written;
    const char *name; /* a type's id, or a name for messages */
} resolutions[] = {
    { 0, true, "bit" },   { 1, true, "u8" },     { -1, true, "i8" },       { 2, true, "u16" },
    { -2, true, "i16" },  { 3, true, "u32" },    { -3, true, "i32" },      { 4, true, "u64" },
    { -4, true, "i64" },  { 11, true, "f32" },   { 12, true, "f64" },      { 10, true, "f16" },
    { 13, false, "f80" }, { 14, false, "f128" }, { TNF_VS_STRING, false, "string" }, { TNF_VS_JSON, false, "json" },
};

enum { RESOLUTIONS = sizeof resolutions / sizeof resolutions[0] };

bool tnf_vs_resolution(const tnf_type *type, int8_t *out)
{
    for (size_t i = 0; i < RESOLUTIONS; i++)
        if (resolutions[i].written && tnf_type_named(resolutions[i].name) == type) {
            *out = resolutions[i].code;
            return true;
        }
    return false;
}

tnf_status tnf_vs_meta_measure(tnf_vs_meta *m, uint64_t at, tnf_error *e)
{
    m->elements = 1;
    for (uint32_t i = 0; i < m->rank; i++) {
        if (m->dims[i] == 0)
            return tnf_fail(e, TNF_EFORMAT, at, "invalid dimension 0: a point would be empty");
        if (!tnf_ckd_mul(&m->elements, m->elements, m->dims[i]))
            return tnf_fail(e, TNF_EFORMAT, at,
                            "element count overflow: the dimensions make more than 2^64");
    }
    m->type_name = NULL;
    for (size_t i = 0; i < RESOLUTIONS; i++)
        if (resolutions[i].code == m->resolution)
            m->type_name = resolutions[i].name;
    if (!m->type_name)
        return tnf_fail(e, TNF_EUNSUPPORTED, at, "unsupported resolution %d", m->resolution);
    m->type = tnf_type_named(m->type_name);
    m->vector_bytes = 0;
    if (m->type && (!tnf_type_bytes(&m->vector_bytes, m->type, m->elements) ||
                    m->vector_bytes > UINT32_MAX - 2 - TNF_VS_VECTOR))
        return tnf_fail(e, TNF_EFORMAT, at,
                        "element count overflow: a vector of %llu %s does not fit a block",
                        (unsigned long long)m->elements, m->type_name);
    return TNF_OK;
}

static tnf_status parse_dims(tnf_vs_meta *m, tnf_cur *c, bool msb, tnf_arena *arena, tnf_error *e)
{
    uint64_t rank = 0, at = tnf_where(c);
    TNF_TRY(tnf_vs_varint(c, 32, msb, "the meta block's rank", &rank, e));
    if (rank > tnf_left(c))
        return tnf_fail(e, TNF_EFORMAT, at, "the meta block says a rank of %llu, but only %s in it",
                        (unsigned long long)rank, TNF_BYTES_FOLLOW(tnf_left(c)));
    uint64_t *dims = tnf_arena_array(arena, rank, sizeof *dims);
    if (!dims)
        return tnf_arena_fail(arena, "dimensions", e);
    for (uint64_t i = 0; i < rank; i++)
        TNF_TRY(tnf_vs_varint(c, 32, msb, "a dimension of the meta block", &dims[i], e));
    m->dims = dims;
    m->rank = (uint32_t)rank;
    return TNF_OK;
}

tnf_status tnf_vs_meta_parse(tnf_vs_meta *out, tnf_cur *c, bool msb, tnf_arena *arena, tnf_error *e)
{
    uint64_t at = tnf_where(c), n = 0;
    *out = (tnf_vs_meta) { .rank = 0 };
    TNF_TRY(parse_dims(out, c, msb, arena, e));
    out->resolution = (int8_t)tnf_u8(c);
    out->pack = tnf_u8(c);
    out->paging = tnf_u8(c);
    if (c->bad)
        return tnf_fail(e, TNF_ETRUNCATED, tnf_where(c),
                        "truncated meta: the block ends before resolution, pack and paging");
    TNF_TRY(tnf_vs_meta_measure(out, at, e));
    if (tnf_left(c) == 0)
        return tnf_fail(e, TNF_ETRUNCATED, tnf_where(c),
                        "truncated meta: attributes length missing");
    TNF_TRY(tnf_vs_varint(c, 32, msb, "the length of the meta block's attributes", &n, e));
    if (n > tnf_left(c))
        return tnf_fail(e, TNF_EFORMAT, tnf_where(c),
                        "attributes of %llu bytes exceed the meta block, which has %zu left",
                        (unsigned long long)n, tnf_left(c));
    out->attributes_at = tnf_where(c);
    out->attributes = (tnf_str) { tnf_bytes(c, n), (size_t)n };
    out->extra_n = tnf_left(c);
    out->extra = tnf_bytes(c, out->extra_n);
    return n ? tnf_vs_check_app(out->attributes.p, out->attributes.n, out->attributes_at, e)
             : TNF_OK;
}

static void put_varint(tnf_buf *b, uint64_t v, bool msb)
{
    uint8_t bytes[10];
    tnf_buf_put(b, bytes, tnf_vs_put_varint(bytes, v, msb));
}

void tnf_vs_put_meta(tnf_buf *b, const tnf_vs_meta *m, bool msb)
{
    size_t head = b->n;
    tnf_buf_u8(b, TNF_VS_META);
    tnf_buf_u32(b, 0);
    put_varint(b, m->rank, msb);
    for (uint32_t i = 0; i < m->rank; i++)
        put_varint(b, m->dims[i], msb);
    tnf_buf_u8(b, (uint8_t)m->resolution);
    tnf_buf_u8(b, m->pack);
    tnf_buf_u8(b, m->paging);
    put_varint(b, m->attributes.n, msb);
    if (m->attributes.n)
        tnf_buf_put(b, m->attributes.p, m->attributes.n);
    if (m->extra_n)
        tnf_buf_put(b, m->extra, m->extra_n);
    uint64_t length = b->n - head - TNF_VS_HEAD;
    if (b->status == TNF_OK && length > UINT32_MAX)
        b->status = TNF_ELIMIT;
    if (b->status == TNF_OK)
        tnf_put_le32(b->p + head + 1, (uint32_t)length);
}

/* ------------------------------------------------------------------ points */

/* Most varints have one byte; only others need the function. */
static tnf_status app_length(tnf_cur *c, bool msb, uint64_t *out, tnf_error *e)
{
    if (tnf_left(c) > 0 && *c->p < 0x80) {
        *out = *c->p++;
        return TNF_OK;
    }
    return tnf_vs_varint(c, 32, msb, "the length of a point's application data", out, e);
}

tnf_status tnf_vs_point_begin(tnf_vs_point *out, const uint8_t *payload, bool msb,
                              uint64_t *vector_head, tnf_error *e)
{
    uint64_t start = out->at + TNF_VS_HEAD, app = 0;
    if (out->length == 0)
        return tnf_fail(e, TNF_EFORMAT, start, "a point has no bytes, so its option is missing");
    size_t n = out->length < TNF_VS_POINT_HEAD ? out->length : TNF_VS_POINT_HEAD;
    tnf_cur c = tnf_cur_over(payload, n, start);
    out->option = *c.p++;
    TNF_TRY(app_length(&c, msb, &app, e));
    out->app_at = tnf_where(&c);
    uint64_t left = out->length - (out->app_at - start);
    if (app > left)
        return tnf_fail(e, TNF_EFORMAT, start + 1,
                        "application data exceeds block: its length is %llu, but only %s",
                        (unsigned long long)app, TNF_BYTES_FOLLOW(left));
    out->app_n = (uint32_t)app;
    *vector_head = out->app_at + app;
    if (left - app < TNF_VS_VECTOR)
        return tnf_fail(e, TNF_EFORMAT, *vector_head,
                        "truncated point: its block ends before the vector's option and length");
    return TNF_OK;
}

tnf_status tnf_vs_point_vector(tnf_vs_point *out, const uint8_t head[TNF_VS_VECTOR],
                               uint64_t vector_head, tnf_error *e)
{
    uint64_t left = out->at + TNF_VS_HEAD + out->length - vector_head - TNF_VS_VECTOR;
    out->vector_option = head[0];
    out->vector_n = tnf_le32(head + 1);
    out->vector_at = vector_head + TNF_VS_VECTOR;
    if (out->vector_n > left)
        return tnf_fail(e, TNF_EFORMAT, vector_head,
                        "vector exceeds block: its length is %u, but only %s", out->vector_n,
                        TNF_BYTES_FOLLOW(left));
    out->extra_n = (uint32_t)(left - out->vector_n);
    return TNF_OK;
}

static tnf_status fits_snappy(const tnf_vs_point *p, const tnf_vs_meta *m, const uint8_t *first,
                              tnf_error *e)
{
    size_t n = p->vector_n < TNF_VS_FITS_FIRST ? p->vector_n : TNF_VS_FITS_FIRST;
    tnf_cur c = tnf_cur_over(first, n, p->vector_at);
    uint64_t said = 0;
    TNF_TRY(tnf_vs_varint(&c, 32, false, "the size of snappy data", &said, e));
    if (said != m->vector_bytes)
        return tnf_fail(e, TNF_EFORMAT, p->vector_at,
                        "a vector in snappy has %llu bytes, but the space has vectors of %llu",
                        (unsigned long long)said, (unsigned long long)m->vector_bytes);
    return TNF_OK;
}

/* Checks the ratio before memory is reserved: gzip repeats 258 bytes with two bits, and a snappy
 * copy of 64 bytes takes three. */
static tnf_status can_grow(const tnf_vs_point *p, const tnf_vs_meta *m, uint64_t times,
                           tnf_error *e)
{
    if (m->vector_bytes <= (uint64_t)p->vector_n * times + 64)
        return TNF_OK;
    return tnf_fail(e, TNF_EFORMAT, p->vector_at,
                    "%u compressed bytes cannot decode to a vector of %llu bytes", p->vector_n,
                    (unsigned long long)m->vector_bytes);
}

tnf_status tnf_vs_point_fits(const tnf_vs_point *p, const tnf_vs_meta *m, const uint8_t *first,
                             tnf_error *e)
{
    unsigned code = p->vector_option & TNF_VS_CODE;
    if (!m->type)
        return TNF_OK;
    if (code > TNF_VS_SNAPPY)
        return tnf_fail(e, TNF_EUNSUPPORTED, p->vector_at - TNF_VS_VECTOR,
                        "unsupported vector compression %u", code);
    if (code == TNF_VS_SNAPPY)
        TNF_TRY(fits_snappy(p, m, first, e));
    if (code == TNF_VS_GZIP && (p->vector_n < 2 || first[0] != 0x1f || first[1] != 0x8b))
        return tnf_fail(e, TNF_EFORMAT, p->vector_at, "corrupt gzip: a vector is not gzip data");
    if (code != TNF_VS_RAW)
        TNF_TRY(can_grow(p, m, code == TNF_VS_GZIP ? 1040 : 22, e));
    if (code == TNF_VS_RAW && p->vector_n != m->vector_bytes)
        return tnf_fail(e, TNF_EFORMAT, p->vector_at - TNF_VS_VECTOR,
                        "a vector has %u bytes, but the space needs %llu (if the file was made "
                        "with the other order of varints, open it with varint=msb)",
                        p->vector_n, (unsigned long long)m->vector_bytes);
    return TNF_OK;
}

tnf_status tnf_vs_put_point(tnf_buf *b, uint8_t option, tnf_str app, uint8_t vector_option,
                            uint64_t vector_n, uint64_t extra_n, bool msb, tnf_error *e)
{
    uint8_t varint[10];
    size_t n = tnf_vs_put_varint(varint, app.n, msb);
    uint64_t length;
    if (!tnf_ckd_add(&length, app.n, vector_n) || !tnf_ckd_add(&length, length, extra_n) ||
        !tnf_ckd_add(&length, length, 1 + n + TNF_VS_VECTOR) || length > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a point of more than 4 GiB does not fit a block");
    tnf_buf_u8(b, TNF_VS_POINT);
    tnf_buf_u32(b, (uint32_t)length);
    tnf_buf_u8(b, option);
    tnf_buf_put(b, varint, n);
    if (app.n)
        tnf_buf_put(b, app.p, app.n);
    tnf_buf_u8(b, vector_option);
    tnf_buf_u32(b, (uint32_t)vector_n);
    return tnf_buf_status(b, "the point", e);
}

tnf_status tnf_vs_check_app(const void *bytes, size_t n, uint64_t at, tnf_error *e)
{
    tnf_msgpack m;
    tnf_error why = { .offset = at };
    tnf_msgpack_init(&m, bytes, n, at, NULL, TNF_VS_DEPTH, &why);
    bool one = tnf_msgpack_skip(&m, NULL);
    if (one && tnf_msgpack_where(&m) == at + n)
        return TNF_OK;
    if (one)
        return tnf_fail(e, TNF_EFORMAT, tnf_msgpack_where(&m),
                        "application data is not one MessagePack value: bytes follow it");
    return tnf_fail(e, m.status == TNF_ELIMIT ? TNF_ELIMIT : TNF_EFORMAT, why.offset,
                    "application data is not one MessagePack value: %s", why.message);
}
