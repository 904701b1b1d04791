/* SPDX-License-Identifier: MIT */
/* The pulling MessagePack reader: one pass, no tree, exact offsets.
 *
 *   00–7f the integer itself   80–8f map    90–9f array   a0–bf str   e0–ff the integer itself
 *   c0 nil  c2 c3 bool   c4 c5 c6 bin   c7 c8 c9 ext   ca cb float   cc cd ce cf uint
 *   d0 d1 d2 d3 int   d4 … d8 ext of 1, 2, 4, 8, 16   d9 da db str   dc dd array   de df map
 *   then 1, 2, 4 or 8 bytes of number or length, big-endian; ext: its type; the content
 *
 * Lengths and counts are checked against the remaining bytes before they are used; each item of a
 * count takes at least one byte. Nesting is a counter and does not use the C stack.
 */
#include "wire/msgpack.h"

#include "base/bytes.h"
#include "base/error.h"
#include "wire/msgpack_wrapper.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tnf_msgpack_init(tnf_msgpack *r, const void *bytes, size_t n, uint64_t base, tnf_arena *arena,
                      unsigned max_depth, tnf_error *e)
{
    const uint8_t *start = n ? bytes : (const void *)"";
    *r = (tnf_msgpack) { .start = start,
                         .p = start,
                         .end = start + n,
                         .base = base,
                         .arena = arena,
                         .max_depth = max_depth < TNF_TREE_DEEPEST ? max_depth : TNF_TREE_DEEPEST,
                         .e = e };
}

/* ----------------------------------------------------------------- errors */

static uint64_t position_of(const tnf_msgpack *r, const uint8_t *p)
{
    return r->base + (uint64_t)(p - r->start);
}

uint64_t tnf_msgpack_where(const tnf_msgpack *r)
{
    return position_of(r, r->p);
}

void tnf_msgpack_say(tnf_msgpack *r, tnf_status status, uint64_t offset, const char *format, ...)
{
    if (r->status != TNF_OK)
        return;
    char message[sizeof r->e->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    r->status = tnf_fail(r->e, status, offset == TNF_NO_OFFSET ? tnf_msgpack_where(r) : offset,
                         "%s", message);
}

static size_t bytes_left(const tnf_msgpack *r)
{
    return (size_t)(r->end - r->p);
}

/* The bytes end early. */
#define cut_short(r, where)                                                                        \
    tnf_msgpack_fail(r, TNF_ETRUNCATED, position_of(r, (r)->end), "the MessagePack ends %s", where)
/* An item claims more bytes than remain. */
#define too_long(r, h, units)                                                                      \
    tnf_msgpack_fail(r, TNF_ETRUNCATED, position_of(r, (h)->at),                                   \
                     "the MessagePack claims %llu %s (bytes left: %zu)",                           \
                     (unsigned long long)(h)->argument, units, bytes_left(r))

/* ------------------------------------------------------------------ heads */

/* c0 to df: the kind, the number of bytes of the number or length that follow, the type of a
 * number. */
static const struct marker {
    uint8_t kind, width, dtype;
} markers[32] = {
    [0x00] = { .kind = TNF_MSGPACK_NIL },       [0x02] = { .kind = TNF_MSGPACK_BOOL },
    [0x03] = { .kind = TNF_MSGPACK_BOOL },      [0x04] = { TNF_MSGPACK_BIN, 1, 0 },
    [0x05] = { TNF_MSGPACK_BIN, 2, 0 },         [0x06] = { TNF_MSGPACK_BIN, 4, 0 },
    [0x07] = { TNF_MSGPACK_EXT, 1, 0 },         [0x08] = { TNF_MSGPACK_EXT, 2, 0 },
    [0x09] = { TNF_MSGPACK_EXT, 4, 0 },         [0x0a] = { TNF_MSGPACK_FLOAT, 4, TNF_F32 },
    [0x0b] = { TNF_MSGPACK_FLOAT, 8, TNF_F64 }, [0x0c] = { TNF_MSGPACK_UINT, 1, TNF_U8 },
    [0x0d] = { TNF_MSGPACK_UINT, 2, TNF_U16 },  [0x0e] = { TNF_MSGPACK_UINT, 4, TNF_U32 },
    [0x0f] = { TNF_MSGPACK_UINT, 8, TNF_U64 },  [0x10] = { TNF_MSGPACK_INT, 1, TNF_I8 },
    [0x11] = { TNF_MSGPACK_INT, 2, TNF_I16 },   [0x12] = { TNF_MSGPACK_INT, 4, TNF_I32 },
    [0x13] = { TNF_MSGPACK_INT, 8, TNF_I64 },   [0x14] = { .kind = TNF_MSGPACK_EXT },
    [0x15] = { .kind = TNF_MSGPACK_EXT },       [0x16] = { .kind = TNF_MSGPACK_EXT },
    [0x17] = { .kind = TNF_MSGPACK_EXT },       [0x18] = { .kind = TNF_MSGPACK_EXT },
    [0x19] = { TNF_MSGPACK_STR, 1, 0 },         [0x1a] = { TNF_MSGPACK_STR, 2, 0 },
    [0x1b] = { TNF_MSGPACK_STR, 4, 0 },         [0x1c] = { TNF_MSGPACK_ARRAY, 2, 0 },
    [0x1d] = { TNF_MSGPACK_ARRAY, 4, 0 },       [0x1e] = { TNF_MSGPACK_MAP, 2, 0 },
    [0x1f] = { TNF_MSGPACK_MAP, 4, 0 },
};

/* A head of one byte that contains a small number; the markers c0 to df do not. */
static tnf_msgpack_head short_head(const uint8_t *at)
{
    tnf_msgpack_head h = { .at = at };
    if (*at < 0x80)
        h.kind = TNF_MSGPACK_UINT, h.dtype = TNF_U8, h.argument = *at;
    else if (*at < 0x90)
        h.kind = TNF_MSGPACK_MAP, h.argument = *at & 15u;
    else if (*at < 0xa0)
        h.kind = TNF_MSGPACK_ARRAY, h.argument = *at & 15u;
    else if (*at < 0xc0)
        h.kind = TNF_MSGPACK_STR, h.argument = *at & 31u;
    else
        h.kind = TNF_MSGPACK_INT, h.dtype = TNF_I8, h.argument = *at | ~(uint64_t)0xff;
    return h;
}

/* Reads a number of 1, 2, 4 or 8 bytes; signed ones are extended to 64 bits. */
static uint64_t read_number(const uint8_t *p, unsigned width, bool is_signed)
{
    uint64_t v = width == 1   ? *p
                 : width == 2 ? tnf_be16(p)
                 : width == 4 ? tnf_be32(p)
                              : tnf_be64(p);
    uint64_t sign = is_signed ? (uint64_t)1 << (8 * width - 1) : 0;
    return (v ^ sign) - sign;
}

bool tnf_msgpack_next_head(tnf_msgpack *r, tnf_msgpack_head *h)
{
    if (r->status != TNF_OK)
        return false;
    if (r->depth > r->max_depth)
        return tnf_msgpack_fail(r, TNF_ELIMIT, TNF_NO_OFFSET,
                                "the MessagePack is nested deeper than %u levels", r->max_depth);
    if (r->p == r->end)
        return cut_short(r, "where an item should be");
    uint8_t first = *r->p;
    if (first < 0xc0 || first >= 0xe0) {
        *h = short_head(r->p++);
        return true;
    }
    const struct marker m = markers[first - 0xc0];
    if (m.kind == TNF_MSGPACK_END)
        return tnf_msgpack_fail(r, TNF_EFORMAT, TNF_NO_OFFSET,
                                "the MessagePack has the byte 0xc1, which is reserved");
    if (bytes_left(r) <= m.width)
        return cut_short(r, "inside the head of an item");
    *h = (tnf_msgpack_head) {
        .at = r->p, .kind = m.kind, .dtype = m.dtype, .argument = first & 1u
    };
    if (m.width)
        h->argument = read_number(r->p + 1, m.width, m.kind == TNF_MSGPACK_INT);
    else if (m.kind == TNF_MSGPACK_EXT)
        h->argument = (uint64_t)1 << (first - 0xd4);
    r->p += 1 + m.width;
    return true;
}

tnf_msgpack_kind tnf_msgpack_peek(tnf_msgpack *r)
{
    const uint8_t *start = r->p;
    tnf_msgpack_head h;
    if (r->p == r->end || !tnf_msgpack_next_head(r, &h))
        return TNF_MSGPACK_END;
    r->p = start;
    return (tnf_msgpack_kind)h.kind;
}

int tnf_msgpack_marker(const tnf_msgpack *r)
{
    return r->status == TNF_OK && r->p < r->end ? *r->p : -1;
}

static const char *kind_words(unsigned kind)
{
    static const char *const all[] = {
        [TNF_MSGPACK_END] = "nothing",    [TNF_MSGPACK_NIL] = "nil",
        [TNF_MSGPACK_BOOL] = "a bool",    [TNF_MSGPACK_UINT] = "an unsigned integer",
        [TNF_MSGPACK_INT] = "an integer", [TNF_MSGPACK_FLOAT] = "a float",
        [TNF_MSGPACK_STR] = "a str",      [TNF_MSGPACK_BIN] = "a bin",
        [TNF_MSGPACK_ARRAY] = "an array", [TNF_MSGPACK_MAP] = "a map",
        [TNF_MSGPACK_EXT] = "an ext",
    };
    return all[kind];
}

#define unexpected(r, h, wanted)                                                                   \
    tnf_msgpack_fail(r, TNF_EFORMAT, position_of(r, (h)->at),                                      \
                     "the MessagePack has %s (0x%02x) where %s should be", kind_words((h)->kind),  \
                     *(h)->at, wanted)

/* Reads the head of an item of that kind, or fails. */
static bool take_head(tnf_msgpack *r, tnf_msgpack_kind kind, tnf_msgpack_head *h)
{
    if (!tnf_msgpack_next_head(r, h))
        return false;
    return h->kind == kind || unexpected(r, h, kind_words(kind));
}

/* ---------------------------------------------------------------- numbers */

bool tnf_msgpack_u64(tnf_msgpack *r, uint64_t *out)
{
    tnf_msgpack_head h;
    if (!tnf_msgpack_next_head(r, &h))
        return false;
    bool negative = h.kind == TNF_MSGPACK_INT && h.argument > INT64_MAX;
    if (negative || (h.kind != TNF_MSGPACK_UINT && h.kind != TNF_MSGPACK_INT))
        return unexpected(r, &h, "an integer that is not negative");
    *out = h.argument;
    return true;
}

bool tnf_msgpack_i64(tnf_msgpack *r, int64_t *out)
{
    tnf_msgpack_head h;
    if (!tnf_msgpack_next_head(r, &h))
        return false;
    if (h.kind != TNF_MSGPACK_UINT && h.kind != TNF_MSGPACK_INT)
        return unexpected(r, &h, "an integer");
    if (h.kind == TNF_MSGPACK_UINT && h.argument > INT64_MAX)
        return tnf_msgpack_fail(
            r, TNF_ELIMIT, position_of(r, h.at),
            "the MessagePack has an integer too large for a signed 64-bit integer");
    memcpy(out, &h.argument, sizeof *out);
    return true;
}

static float to_f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}

bool tnf_msgpack_f64(tnf_msgpack *r, double *out)
{
    tnf_msgpack_head h;
    if (!take_head(r, TNF_MSGPACK_FLOAT, &h))
        return false;
    if (h.dtype == TNF_F32)
        *out = (double)to_f32(h.argument);
    else
        memcpy(out, &h.argument, sizeof *out);
    return true;
}

bool tnf_msgpack_exact_u32(tnf_msgpack *r, uint32_t *out)
{
    tnf_msgpack_head h;
    if (!tnf_msgpack_next_head(r, &h))
        return false;
    if (*h.at != 0xce)
        return unexpected(r, &h, "an unsigned integer of 32 bits (0xce)");
    *out = (uint32_t)h.argument;
    return true;
}

bool tnf_msgpack_exact_f32(tnf_msgpack *r, float *out)
{
    tnf_msgpack_head h;
    if (!tnf_msgpack_next_head(r, &h))
        return false;
    if (*h.at != 0xca)
        return unexpected(r, &h, "a float of 32 bits (0xca)");
    *out = to_f32(h.argument);
    return true;
}

bool tnf_msgpack_bool(tnf_msgpack *r, bool *out)
{
    tnf_msgpack_head h;
    if (!take_head(r, TNF_MSGPACK_BOOL, &h))
        return false;
    *out = h.argument;
    return true;
}

bool tnf_msgpack_nil(tnf_msgpack *r)
{
    tnf_msgpack_head h;
    return tnf_msgpack_peek(r) == TNF_MSGPACK_NIL && tnf_msgpack_next_head(r, &h);
}

/* ---------------------------------------------------------------- strings */

/* Reads as many bytes as the head says. */
static bool read_content(tnf_msgpack *r, const tnf_msgpack_head *h, tnf_str *out)
{
    if (h->argument > bytes_left(r))
        return too_long(r, h, "bytes");
    *out = (tnf_str) { (const char *)r->p, (size_t)h->argument };
    r->p += out->n;
    return true;
}

bool tnf_msgpack_str(tnf_msgpack *r, tnf_str *out)
{
    tnf_msgpack_head h;
    return take_head(r, TNF_MSGPACK_STR, &h) && read_content(r, &h, out);
}

bool tnf_msgpack_bin(tnf_msgpack *r, tnf_str *out)
{
    tnf_msgpack_head h;
    return take_head(r, TNF_MSGPACK_BIN, &h) && read_content(r, &h, out);
}

bool tnf_msgpack_bin_head(tnf_msgpack *r, uint64_t *n)
{
    tnf_msgpack_head h;
    if (!take_head(r, TNF_MSGPACK_BIN, &h))
        return false;
    *n = h.argument;
    return true;
}

/* Reads the type and the bytes of an ext, after its head. */
static bool ext_content(tnf_msgpack *r, const tnf_msgpack_head *h, int8_t *type, tnf_str *out)
{
    if (r->p == r->end)
        return cut_short(r, "where the type of an ext should be");
    memcpy(type, r->p++, 1);
    return read_content(r, h, out);
}

bool tnf_msgpack_ext(tnf_msgpack *r, int8_t *type, tnf_str *out)
{
    tnf_msgpack_head h;
    return take_head(r, TNF_MSGPACK_EXT, &h) && ext_content(r, &h, type, out);
}

/* ------------------------------------------------------------- containers */

/* Enters the array or map whose head was read. */
static bool enter_level(tnf_msgpack *r, const tnf_msgpack_head *h)
{
    bool map = h->kind == TNF_MSGPACK_MAP;
    if (h->argument > bytes_left(r) / (map ? 2 : 1))
        return too_long(r, h, map ? "pairs" : "items");
    r->depth++;
    return true;
}

static bool enter_scope(tnf_msgpack *r, tnf_msgpack_kind kind, tnf_msgpack_scope *scope)
{
    tnf_msgpack_head h;
    *scope = (tnf_msgpack_scope) { 0 };
    if (!take_head(r, kind, &h) || !enter_level(r, &h))
        return false;
    scope->left = h.argument;
    return true;
}

bool tnf_msgpack_enter_array(tnf_msgpack *r, tnf_msgpack_scope *scope)
{
    return enter_scope(r, TNF_MSGPACK_ARRAY, scope);
}

bool tnf_msgpack_enter_map(tnf_msgpack *r, tnf_msgpack_scope *scope)
{
    return enter_scope(r, TNF_MSGPACK_MAP, scope);
}

bool tnf_msgpack_item(tnf_msgpack *r, tnf_msgpack_scope *scope)
{
    if (r->status != TNF_OK)
        return false;
    bool ended = scope->left == 0;
    r->depth -= ended;
    scope->left -= !ended;
    return !ended;
}

bool tnf_msgpack_key(tnf_msgpack *r, tnf_msgpack_scope *scope, tnf_str *key)
{
    const uint8_t *start = r->p;
    *key = (tnf_str) { 0 };
    if (!tnf_msgpack_item(r, scope))
        return false;
    bool str = tnf_msgpack_peek(r) == TNF_MSGPACK_STR;
    if (str ? !tnf_msgpack_str(r, key) : !tnf_msgpack_skip(r, NULL))
        return false;
    scope->key = (tnf_str) { (const char *)start, (size_t)(r->p - start) };
    return true;
}

/* Skips the content of an item that is not a container. */
static bool skip_content(tnf_msgpack *r, const tnf_msgpack_head *h)
{
    int8_t type;
    tnf_str ignored;
    if (h->kind == TNF_MSGPACK_EXT)
        return ext_content(r, h, &type, &ignored);
    return (h->kind != TNF_MSGPACK_STR && h->kind != TNF_MSGPACK_BIN) ||
           read_content(r, h, &ignored);
}

bool tnf_msgpack_skip(tnf_msgpack *r, tnf_str *raw)
{
    uint64_t items[TNF_TREE_DEEPEST + 1]; /* remaining items of each open container */
    unsigned open = 0;
    const uint8_t *start = r->p;
    do {
        tnf_msgpack_head h;
        if (!tnf_msgpack_next_head(r, &h))
            return false;
        bool map = h.kind == TNF_MSGPACK_MAP, container = map || h.kind == TNF_MSGPACK_ARRAY;
        if (container ? !enter_level(r, &h) : !skip_content(r, &h))
            return false;
        if (container)
            items[open++] = map ? 2 * h.argument : h.argument; /* at most the remaining bytes */
        for (; open && items[open - 1] == 0; open--)
            r->depth--;
    } while (open && items[open - 1]-- > 0);
    if (raw)
        *raw = (tnf_str) { (const char *)start, (size_t)(r->p - start) };
    return true;
}

tnf_status tnf_msgpack_end(tnf_msgpack *r)
{
    if (r->status == TNF_OK && r->p < r->end)
        tnf_msgpack_say(r, TNF_EFORMAT, TNF_NO_OFFSET,
                        "other bytes follow the end of the MessagePack (bytes left: %zu)",
                        bytes_left(r));
    return r->status;
}
