/* SPDX-License-Identifier: MIT */
/* The JSON writer: strings, and trees whose exact types can be read back. */
#include "base/utf8.h"
#include "model/dtype.h"
#include "model/value.h"
#include "wire/json.h"
#include <tenfold/value.h>

#include <string.h>

/* Trees deeper than any reader builds are refused. */
#define DEEPEST 512u

/* How a byte is escaped: 0 not at all, 'u' by number, else by that letter. */
static char escape_of(uint8_t c)
{
    static const char controls[] = "uuuuuuuubtnufr";
    if (c < 0x20)
        return c < sizeof controls - 1 ? controls[c] : 'u';
    return c == '"' || c == '\\' ? (char)c : 0;
}

void tnf_json_put_string(tnf_buf *b, const char *p, size_t n)
{
    size_t from = 0;
    tnf_buf_put(b, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        char how = escape_of((uint8_t)p[i]);
        if (!how)
            continue;
        tnf_buf_put(b, p + from, i - from);
        from = i + 1;
        if (how == 'u')
            tnf_buf_printf(b, "\\u%04x", (unsigned)(uint8_t)p[i]);
        else
            tnf_buf_put(b, (char[]) { '\\', how }, 2);
    }
    tnf_buf_put(b, p + from, n - from);
    tnf_buf_put(b, "\"", 1);
}

static void put_hex(tnf_buf *b, const char *type, const char *p, size_t n)
{
    tnf_buf_printf(b, "{\"$%s\":\"", type);
    tnf_buf_hex(b, p, n);
    tnf_buf_puts(b, "\"}");
}

/* The id of the value's dtype, if it is between first and last; else that of the fallback. */
static const char *dtype_id(const tnf_value *v, tnf_dtype first, tnf_dtype last, tnf_dtype fallback)
{
    tnf_dtype d = (tnf_dtype)v->dtype;
    return tnf_type_of(d >= first && d <= last ? d : fallback)->id;
}

static void put_float(tnf_buf *b, const tnf_value *v)
{
    const char *id = dtype_id(v, TNF_F64, TNF_BF16, TNF_F64);
    if (v->dtype == TNF_F32) {
        uint32_t bits;
        memcpy(&bits, &v->as.f32, sizeof bits);
        tnf_buf_printf(b, "{\"$%s\":\"%08lx\"}", id, (unsigned long)bits);
    } else {
        uint64_t bits;
        memcpy(&bits, &v->as.f64, sizeof bits);
        tnf_buf_printf(b, "{\"$%s\":\"%016llx\"}", id, (unsigned long long)bits);
    }
}

static void put_int(tnf_buf *b, const tnf_value *v)
{
    const char *id = dtype_id(v, TNF_I64, TNF_I8, TNF_I64);
    if (strcmp(id, "i64") == 0)
        tnf_buf_printf(b, "%lld", (long long)v->as.i);
    else
        tnf_buf_printf(b, "{\"$%s\":%lld}", id, (long long)v->as.i);
}

/* Text that is not UTF-8 is not allowed in JSON, so it is written as bytes. */
static void put_text(tnf_buf *b, const tnf_value *v)
{
    if (v->kind == TNF_BYTES) {
        put_hex(b, "bytes", v->as.s, v->n);
    } else if (!tnf_utf8_valid(NULL, v->as.s, v->n)) {
        if (v->kind == TNF_JSON)
            b->status = TNF_EINVAL;
        put_hex(b, "string", v->as.s, v->n);
    } else if (v->kind == TNF_JSON) {
        tnf_buf_puts(b, "{\"$json\":");
        tnf_json_put_string(b, v->as.s, v->n);
        tnf_buf_puts(b, "}");
    } else {
        tnf_json_put_string(b, v->as.s, v->n);
    }
}

static void put_tree(tnf_buf *b, const tnf_value *v, unsigned depth);

/* {"$array":"u32"}: an empty array with a type. */
static void put_told(tnf_buf *b, const tnf_value *v)
{
    char type[16];
    tnf_value_type(type, sizeof type, v); /* "array<u32>" */
    type[strlen(type) - 1] = 0;
    tnf_buf_printf(b, "{\"$array\":\"%s\"}", type + sizeof "array<" - 1);
}

static void put_array(tnf_buf *b, const tnf_value *v, unsigned depth)
{
    if (tnf_value_told_empty(v)) {
        put_told(b, v);
        return;
    }
    tnf_buf_puts(b, "[");
    for (size_t i = 0; i < v->n; i++) {
        if (i)
            tnf_buf_puts(b, ",");
        put_tree(b, &v->as.items[i], depth - 1);
    }
    tnf_buf_puts(b, "]");
}

static void put_map(tnf_buf *b, const tnf_value *v, unsigned depth)
{
    bool wrap = v->n && v->as.members[0].key.n && v->as.members[0].key.p[0] == '$';
    tnf_buf_puts(b, wrap ? "{\"$map\":{" : "{");
    for (size_t i = 0; i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        if (i)
            tnf_buf_puts(b, ",");
        if (!tnf_utf8_valid(NULL, m->key.p, m->key.n))
            b->status = TNF_EINVAL;
        tnf_json_put_string(b, m->key.p, m->key.n);
        tnf_buf_puts(b, ":");
        put_tree(b, &m->value, depth - 1);
    }
    tnf_buf_puts(b, wrap ? "}}" : "}");
}

static void put_tree(tnf_buf *b, const tnf_value *v, unsigned depth)
{
    switch ((tnf_kind)v->kind) {
    case TNF_NULL:
        tnf_buf_puts(b, "null");
        break;
    case TNF_BOOL:
        tnf_buf_puts(b, v->as.b ? "true" : "false");
        break;
    case TNF_INT:
        put_int(b, v);
        break;
    case TNF_UINT:
        tnf_buf_printf(b, "{\"$%s\":%llu}", dtype_id(v, TNF_U64, TNF_U8, TNF_U64),
                       (unsigned long long)v->as.u);
        break;
    case TNF_FLOAT:
        put_float(b, v);
        break;
    case TNF_STRING:
    case TNF_BYTES:
    case TNF_JSON:
        put_text(b, v);
        break;
    case TNF_ARRAY:
    case TNF_MAP:
        if (depth == 0 && b->status == TNF_OK)
            b->status = TNF_ELIMIT;
        if (b->status == TNF_OK)
            (v->kind == TNF_ARRAY ? put_array : put_map)(b, v, depth);
        break;
    }
}

void tnf_json_put_typed(tnf_buf *b, const tnf_value *v)
{
    put_tree(b, v, DEEPEST);
}

/* ------------------------------------------------------------------ ASCII */

static void put_escape(tnf_buf *b, uint32_t c)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const char *at = c && c < 0x80 ? strchr(from, (int)c) : NULL;
    if (at)
        tnf_buf_printf(b, "\\%c", to[at - from]);
    else if (c >= 0x20 && c < 0x80)
        tnf_buf_u8(b, (uint8_t)c);
    else if (c < 0x10000)
        tnf_buf_printf(b, "\\u%04x", (unsigned)c);
    else
        tnf_buf_printf(b, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                       (unsigned)(0xdc00 + (c & 0x3ff)));
}

void tnf_json_put_ascii(tnf_buf *b, const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    tnf_buf_u8(b, '"');
    while (p < end) {
        uint32_t c = *p++;
        unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
        c = more ? c & (0x3fu >> more) : c;
        for (; more && p < end; more--)
            c = c << 6 | (*p++ & 0x3fu);
        put_escape(b, c);
    }
    tnf_buf_u8(b, '"');
}
