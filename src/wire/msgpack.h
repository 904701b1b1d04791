/* SPDX-License-Identifier: MIT */
/* A pulling MessagePack reader, and a MessagePack writer with exact widths.
 *
 *     tnf_msgpack r;
 *     tnf_msgpack_scope dims;
 *     tnf_msgpack_init(&r, bytes, n, file_position, arena, depth, e);
 *     tnf_msgpack_enter_array(&r, &dims);
 *     while (tnf_msgpack_item(&r, &dims))
 *         tnf_msgpack_exact_u32(&r, &dim[rank++]);
 *     if (r.status != TNF_OK) …
 *
 * Errors are sticky: after the first one everything returns false, and r.status is the reason. Only
 * trees take memory. Several objects may follow each other: tnf_msgpack_end() checks that none
 * does.
 *
 * TNF_ETRUNCATED always means that bytes are missing at the end, and nothing else does. So a caller
 * with a window of a file can try again with a larger window.
 */
#ifndef TNF_WIRE_MSGPACK_H
#define TNF_WIRE_MSGPACK_H

#include "base/arena.h"
#include "base/buf.h"
#include <tenfold/types.h>

typedef enum tnf_msgpack_kind {
    TNF_MSGPACK_END, /* nothing follows, or there is an error */
    TNF_MSGPACK_NIL,
    TNF_MSGPACK_BOOL,
    TNF_MSGPACK_UINT, /* 00–7f cc cd ce cf */
    TNF_MSGPACK_INT,  /* e0–ff d0 d1 d2 d3, whatever the sign of the value */
    TNF_MSGPACK_FLOAT,
    TNF_MSGPACK_STR,
    TNF_MSGPACK_BIN,
    TNF_MSGPACK_ARRAY,
    TNF_MSGPACK_MAP,
    TNF_MSGPACK_EXT /* includes timestamps: type -1 */
} tnf_msgpack_kind;

typedef struct tnf_msgpack {
    const uint8_t *start, *p, *end;
    uint64_t base; /* file position of start */
    tnf_arena *arena;
    unsigned depth, max_depth; /* containers around the next item; their maximum */
    bool no_widths;            /* tnf_msgpack_value(): integers are u64, or i64 if negative */
    tnf_status status;
    tnf_error *e;
} tnf_msgpack;

/* An item inside max_depth containers can still be read; the outermost item is inside none. The
 * arena is for tnf_msgpack_value(); without that function it may be NULL. */
void tnf_msgpack_init(tnf_msgpack *r, const void *bytes, size_t n, uint64_t base, tnf_arena *arena,
                      unsigned max_depth, tnf_error *e);

/* File position of the next byte. */
uint64_t tnf_msgpack_where(const tnf_msgpack *r);
/* The kind of the next item, whose head must be complete; and its first byte, or -1 at the end. */
tnf_msgpack_kind tnf_msgpack_peek(tnf_msgpack *r);
int tnf_msgpack_marker(const tnf_msgpack *r);

/* ------------------------------------------------------------- containers */

typedef struct tnf_msgpack_scope {
    uint64_t left; /* items or pairs still to come; just after entering: all of them */
    tnf_str key;   /* the last key, as encoded */
} tnf_msgpack_scope;

/* The count was checked against the remaining bytes (each item takes at least one), so it is a safe
 * bound. */
bool tnf_msgpack_enter_array(tnf_msgpack *r, tnf_msgpack_scope *scope);
bool tnf_msgpack_enter_map(tnf_msgpack *r, tnf_msgpack_scope *scope);
/* In an array: true if an item follows (then read or skip it), false past the end or on an
 * error. */
bool tnf_msgpack_item(tnf_msgpack *r, tnf_msgpack_scope *scope);
/* In a map: the next key (then read or skip its value), or false past the end or on an error. For a
 * key that is not a str, key->p is NULL. Duplicate keys are allowed: formats differ in which one
 * they use. */
bool tnf_msgpack_key(tnf_msgpack *r, tnf_msgpack_scope *scope, tnf_str *key);

/* ------------------------------------------------------------------ items */

/* Any integer of any width that fits; TNF_EFORMAT if it is negative, TNF_ELIMIT beyond 64 bits. */
bool tnf_msgpack_u64(tnf_msgpack *r, uint64_t *out);
bool tnf_msgpack_i64(tnf_msgpack *r, int64_t *out);
bool tnf_msgpack_f64(tnf_msgpack *r, double *out); /* ca or cb; not an integer */
/* Accept only ce, and only ca; the value bit for bit. */
bool tnf_msgpack_exact_u32(tnf_msgpack *r, uint32_t *out);
bool tnf_msgpack_exact_f32(tnf_msgpack *r, float *out);
bool tnf_msgpack_bool(tnf_msgpack *r, bool *out);
/* Skips a nil and returns true. Returns false, without an error, if the next item is not nil. */
bool tnf_msgpack_nil(tnf_msgpack *r);
/* Borrows the bytes, with any width of the header. A str is not checked to be UTF-8. */
bool tnf_msgpack_str(tnf_msgpack *r, tnf_str *out);
bool tnf_msgpack_bin(tnf_msgpack *r, tnf_str *out);
bool tnf_msgpack_ext(tnf_msgpack *r, int8_t *type, tnf_str *out);
/* Reads the head of a bin only: for callers that do not have all its bytes. */
bool tnf_msgpack_bin_head(tnf_msgpack *r, uint64_t *n);
/* Skips any item, and checks it; *raw, if not NULL, becomes its encoding. */
bool tnf_msgpack_skip(tnf_msgpack *r, tnf_str *raw);
/* Any item as a tree. Integers become TNF_UINT or TNF_INT with the dtype of their marker (u8 and i8
 * for those of one byte), unless r->no_widths is set; floats become TNF_FLOAT of f32 or f64, bin
 * TNF_BYTES. What a tree cannot express is wrapped in a map of one key:
 *
 *     {"$ext": [type, bytes]}        an ext
 *     {"$str": bytes}                a str that is not UTF-8
 *     {"$pairs": [[key, value], …]}  a map with duplicate keys, or a key that is not a UTF-8 str
 *     {"$map": {…}}                  a map that looks like one of these four
 *
 * and tnf_msgpack_put_value() writes it back: bytes in their shortest form come back unchanged.
 * Because of "$pairs", a tree may be three times as deep as the nesting of its bytes. */
bool tnf_msgpack_value(tnf_msgpack *r, tnf_value *out);
/* Fails if any bytes remain. */
tnf_status tnf_msgpack_end(tnf_msgpack *r);
/* Raises an error at `offset`, or at the next byte if that is TNF_NO_OFFSET. The result is false.
 * It is a macro, so that static analysis of the caller sees this. */
#define tnf_msgpack_fail(r, status, offset, ...)                                                   \
    (tnf_msgpack_say(r, status, offset, __VA_ARGS__), false)
void tnf_msgpack_say(tnf_msgpack *r, tnf_status status, uint64_t offset, const char *format, ...)
    TNF_PRINTF(4, 5);

/* -------------------------------------------------------------------- out */

void tnf_msgpack_put_nil(tnf_buf *b);
void tnf_msgpack_put_bool(tnf_buf *b, bool v);
void tnf_msgpack_put_uint(tnf_buf *b, uint64_t v); /* in as few bytes as possible */
void tnf_msgpack_put_int(tnf_buf *b, int64_t v);   /* likewise; as unsigned if it is not negative */
/* Always with the marker of that dtype: cc cd ce cf, d0 to d3, ca, cb. The value is the low
 * bits. */
void tnf_msgpack_put_exact(tnf_buf *b, tnf_dtype dtype, uint64_t bits);
void tnf_msgpack_put_u32(tnf_buf *b, uint32_t v); /* always ce */
void tnf_msgpack_put_f32(tnf_buf *b, float v);    /* always ca, bit for bit */
void tnf_msgpack_put_f64(tnf_buf *b, double v);   /* always cb, bit for bit */
/* With the shortest possible head. A length above 2^32-1 makes b's status TNF_ELIMIT. */
void tnf_msgpack_put_str(tnf_buf *b, const char *p, size_t n);
void tnf_msgpack_put_bin(tnf_buf *b, const void *p, size_t n);
void tnf_msgpack_put_bin_head(tnf_buf *b, uint64_t n); /* the caller writes the n bytes */
void tnf_msgpack_put_ext(tnf_buf *b, int8_t type, const void *p, size_t n);
void tnf_msgpack_put_array(tnf_buf *b, uint64_t n); /* then n items */
void tnf_msgpack_put_map(tnf_buf *b, uint64_t n);   /* then n pairs */
/* Writes a complete tree, from tnf_msgpack_value() or built by the caller: integers in as few bytes
 * as possible, floats by dtype (ca for f32, else cb), TNF_JSON as str, members in the given order.
 * TNF_ELIMIT for a tree that is too deep or a string that is too long; else as tnf_buf_status(). */
tnf_status tnf_msgpack_put_value(tnf_buf *b, const tnf_value *v, unsigned max_depth, tnf_error *e);

#endif
