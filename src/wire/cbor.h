/* SPDX-License-Identifier: MIT */
/* A pulling CBOR (RFC 8949) reader with two profiles, and a CBOR writer.
 *
 *     tnf_cbor r;
 *     tnf_cbor_scope map;
 *     tnf_cbor_init(&r, bytes, n, file_position, arena, depth, TNF_CBOR_STRICT, e);
 *     tnf_cbor_enter_map(&r, &map);
 *     for (tnf_str key; tnf_cbor_key(&r, &map, &key);)
 *         if (is_word(key, "size"))
 *             tnf_cbor_u64(&r, &size);
 *         else
 *             tnf_cbor_skip(&r, NULL);
 *     if (tnf_cbor_end(&r) != TNF_OK) …
 *
 * Errors are sticky: after the first one everything returns false; r.status is the reason, r.rule
 * the broken rule. Memory is only allocated, in the arena, for copies of strings that come in
 * chunks, for trees, and for a table of keys of lenient maps with more than a few keys.
 */
#ifndef TNF_WIRE_CBOR_H
#define TNF_WIRE_CBOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/tree.h"
#include <tenfold/types.h>

typedef enum tnf_cbor_profile {
    /* Accepts what common readers accept: indefinite lengths, tags (skipped, but kept by _skip and
     * _value), heads longer than needed, keys in any order, floats of any width, `undefined` as
     * null. */
    TNF_CBOR_LENIENT,
    /* Accepts only deterministic encoding: one way to write each item. */
    TNF_CBOR_STRICT
} tnf_cbor_profile;

/* The rule that an error is about. */
typedef enum tnf_cbor_rule {
    TNF_CBOR_FINE,          /* no error, or one of memory */
    TNF_CBOR_SYNTAX,        /* bytes that are not CBOR, end early, or are outside the profile */
    TNF_CBOR_DETERMINISM,   /* strict: not the deterministic encoding */
    TNF_CBOR_DUPLICATE_KEY, /* strict: the same bytes; lenient: the same text */
    TNF_CBOR_DEPTH,         /* nested deeper than the limit */
    TNF_CBOR_SCHEMA         /* valid CBOR, but not the requested kind of item */
} tnf_cbor_rule;

/* "CborSyntax", "CborDeterminism", "CborDuplicateKey", "CborDepth", "Schema"; "" for none. */
const char *tnf_cbor_rule_name(tnf_cbor_rule rule);

typedef enum tnf_cbor_kind {
    TNF_CBOR_END, /* nothing follows, or there is an error */
    TNF_CBOR_UINT,
    TNF_CBOR_NEGATIVE,
    TNF_CBOR_BYTES,
    TNF_CBOR_TEXT,
    TNF_CBOR_ARRAY,
    TNF_CBOR_MAP,
    TNF_CBOR_FLOAT,
    TNF_CBOR_BOOL,
    TNF_CBOR_NULL
} tnf_cbor_kind;

typedef struct tnf_cbor {
    const uint8_t *start, *p, *end;
    uint64_t base; /* file position of start */
    tnf_arena *arena;
    unsigned depth, max_depth; /* containers around the next item; their maximum */
    tnf_cbor_profile profile;
    tnf_cbor_rule rule;
    tnf_status status;
    tnf_error *e;
} tnf_cbor;

/* An item inside max_depth containers can still be read; the outermost item is inside none. */
void tnf_cbor_init(tnf_cbor *r, const void *bytes, size_t n, uint64_t base, tnf_arena *arena,
                   unsigned max_depth, tnf_cbor_profile profile, tnf_error *e);

/* File position of the next byte. */
uint64_t tnf_cbor_where(const tnf_cbor *r);
/* The kind of the next item, after its tags. TNF_CBOR_END also in a container of indefinite length
 * if the next byte closes it. */
tnf_cbor_kind tnf_cbor_peek(tnf_cbor *r);

/* ------------------------------------------------------------- containers */

#define TNF_CBOR_OPEN UINT64_MAX

typedef struct tnf_cbor_level {
    uint64_t left; /* items or pairs still to come; TNF_CBOR_OPEN for an indefinite length */
    bool map;
    const uint8_t *key; /* the beginning of the current key, or NULL */
    tnf_str previous;   /* the key before it, as encoded; while its value is read: the key itself */
} tnf_cbor_level;

/* A container that is being read. It must not be moved. */
typedef struct tnf_cbor_scope {
    tnf_cbor_level level; /* .left just after entering: the number of items */
    tnf_keys keys;
} tnf_cbor_scope;

bool tnf_cbor_enter_array(tnf_cbor *r, tnf_cbor_scope *scope);
bool tnf_cbor_enter_map(tnf_cbor *r, tnf_cbor_scope *scope);
/* In an array: true if an item follows (then read or skip it), false past the end or on an error.
 * The count was checked against the remaining bytes, so it is a safe bound. */
bool tnf_cbor_item(tnf_cbor *r, tnf_cbor_scope *scope);
/* In a map: the next key (then read or skip its value), or false past the end or on an error. For a
 * key that is not text, key->p is NULL and scope->level.previous is its encoding. A duplicate key
 * is an error (keys that are not text are compared in STRICT only). */
bool tnf_cbor_key(tnf_cbor *r, tnf_cbor_scope *scope, tnf_str *key);

/* ------------------------------------------------------------------ items */

bool tnf_cbor_text(tnf_cbor *r, tnf_str *out); /* UTF-8; in the bytes, or in the arena if chunked */
bool tnf_cbor_bytes(tnf_cbor *r, tnf_str *out); /* likewise */
bool tnf_cbor_u64(tnf_cbor *r, uint64_t *out);
bool tnf_cbor_i64(tnf_cbor *r, int64_t *out); /* TNF_ELIMIT beyond 64 bits */
bool tnf_cbor_f64(tnf_cbor *r, double *out);  /* a float of any width, exactly; not an integer */
bool tnf_cbor_bool(tnf_cbor *r, bool *out);
/* Skips a null and returns true. Returns false, without an error, if the next item is not null. */
bool tnf_cbor_null(tnf_cbor *r);
/* Skips any item and checks it completely (except for duplicate keys in LENIENT). *raw, if not
 * NULL, becomes its encoding with tags. */
bool tnf_cbor_skip(tnf_cbor *r, tnf_str *raw);
/* Any item as a tree. Integers become TNF_UINT (u64), negative ones TNF_INT (i64); floats become
 * TNF_FLOAT (f64) whatever their width, since in deterministic CBOR the width only says that the
 * value fits; NaNs keep their bits. Items that a tree cannot express are kept as encoded:
 *
 *     {"$cbor": bytes}      a map with a key that is not text, an integer below -2^63, a tagged
 *                           item, `undefined`
 *     {"$map": {…}}         a map that looks like one of these two
 *
 * and tnf_cbor_put_value() of the same profile writes it so. */
bool tnf_cbor_value(tnf_cbor *r, tnf_value *out);
/* Fails if any bytes remain. */
tnf_status tnf_cbor_end(tnf_cbor *r);
/* Raises an error at `offset`, or at the next byte if that is TNF_NO_OFFSET. The result is false.
 * It is a macro, so that static analysis of the caller sees this. */
#define tnf_cbor_fail(r, rule, status, offset, ...)                                                \
    (tnf_cbor_say(r, rule, status, offset, __VA_ARGS__), false)
void tnf_cbor_say(tnf_cbor *r, tnf_cbor_rule rule, tnf_status status, uint64_t offset,
                  const char *format, ...) TNF_PRINTF(5, 6);

/* -------------------------------------------------------------------- out */

/* Everything in its shortest form, as deterministic encoding requires. */
void tnf_cbor_put_uint(tnf_buf *b, uint64_t v);
void tnf_cbor_put_int(tnf_buf *b, int64_t v);
void tnf_cbor_put_text(tnf_buf *b, const char *p, size_t n); /* the caller guarantees UTF-8 */
void tnf_cbor_put_string(tnf_buf *b, const char *s);
void tnf_cbor_put_bytes(tnf_buf *b, const void *p, size_t n);
void tnf_cbor_put_array(tnf_buf *b, uint64_t n); /* then n items */
void tnf_cbor_put_map(tnf_buf *b, uint64_t n);   /* then n pairs, sorted by tnf_cbor_compare() */
void tnf_cbor_put_bool(tnf_buf *b, bool v);
void tnf_cbor_put_null(tnf_buf *b);
/* As half, single or double: the first that can express the value; every NaN as f9 7e00. */
void tnf_cbor_put_f64(tnf_buf *b, double v);
/* A map of indefinite length: pairs, then the end. */
void tnf_cbor_put_open_map(tnf_buf *b);
void tnf_cbor_put_break(tnf_buf *b);

/* The order of text keys in a deterministic map, which is that of their encodings: shorter keys
 * first, else byte by byte. */
int tnf_cbor_compare(tnf_str a, tnf_str b);

/* Writes a complete tree, from tnf_cbor_value() or built by the caller. STRICT: maps in
 * deterministic order; LENIENT: members in the given order, NaNs with their bits. TNF_JSON is
 * written as text, TNF_F32 by its value. TNF_EINVAL for text that is not UTF-8 and for a duplicate
 * key (in LENIENT the caller must avoid these), TNF_ELIMIT for a tree that is too deep; else as
 * tnf_buf_status(). */
tnf_status tnf_cbor_put_value(tnf_buf *b, const tnf_value *v, tnf_cbor_profile profile,
                              unsigned max_depth, tnf_error *e);
/* Would put_value() write this map as something other than a map? */
bool tnf_cbor_is_wrapper(const tnf_value *v, tnf_cbor_profile profile);

#endif
