/* SPDX-License-Identifier: MIT */
/* A pulling JSON reader: strictly RFC 8259, with byte offsets of everything. It allocates memory
 * only for strings with escapes, and never recurses beyond its depth limit.
 *
 *     tnf_json j;
 *     tnf_json_init(&j, text, n, file_position, arena, depth, e);
 *     if (tnf_json_enter(&j, '{'))
 *         for (tnf_str key; tnf_json_key(&j, &key);)
 *             tnf_json_skip(&j, NULL);
 *     return tnf_json_end(&j);
 *
 * Errors are sticky: after the first one everything returns false, and j.status is the reason.
 */
#ifndef TNF_WIRE_JSON_H
#define TNF_WIRE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include <tenfold/types.h>

typedef struct tnf_json {
    const uint8_t *start, *p, *end;
    uint64_t base;    /* file position of start */
    tnf_arena *arena; /* for strings that need unescaping, and for trees */
    unsigned depth, max_depth;
    bool first; /* the container was just entered, so no comma is expected */
    tnf_status status;
    tnf_error *e;
} tnf_json;

void tnf_json_init(tnf_json *j, const void *text, size_t n, uint64_t base, tnf_arena *arena,
                   unsigned max_depth, tnf_error *e);

/* File position of the next byte. */
uint64_t tnf_json_where(const tnf_json *j);
/* The first character of the next value: { [ " 0 (any number) t f n, or 0 at the end or after an
 * error. Skips white space. */
char tnf_json_peek(tnf_json *j);

/* Consumes the opening { or [ ; fails if there is something else. */
bool tnf_json_enter(tnf_json *j, char opener);
/* In an object: the next key (then read or skip its value), or false at its end, which is consumed,
 * or on an error. */
bool tnf_json_key(tnf_json *j, tnf_str *key);
/* The position of the next key, after white space and comma. */
uint64_t tnf_json_next_key_at(const tnf_json *j);
/* In an array: true if an element follows (then read or skip it), false at its end, which is
 * consumed, or on an error. */
bool tnf_json_item(tnf_json *j);

bool tnf_json_string(tnf_json *j, tnf_str *out); /* borrowed from the text, or in the arena */
bool tnf_json_u64(tnf_json *j, uint64_t *out);   /* digits only: no sign, point or exponent */
bool tnf_json_bool(tnf_json *j, bool *out);
/* Skips any value, and checks it; *out, if not NULL, becomes its text. */
bool tnf_json_skip(tnf_json *j, tnf_str *out);
/* Any value as a tree: integers that fit become TNF_INT (i64) or TNF_UINT (u64), other numbers
 * TNF_FLOAT (f64). A duplicate key is an error. */
bool tnf_json_value(tnf_json *j, tnf_value *out);
/* Fails unless only white space remains. */
tnf_status tnf_json_end(tnf_json *j);
/* Raises an error at the next byte, or at `offset`. Returns false. */
bool tnf_json_fail(tnf_json *j, tnf_status status, uint64_t offset, const char *format, ...)
    TNF_PRINTF(4, 5);

/* Writes a JSON string in quotes: UTF-8 unchanged, with only the necessary escapes. */
void tnf_json_put_string(tnf_buf *b, const char *p, size_t n);
/* The same as Python's json.dumps(): ASCII only. The text is UTF-8. */
void tnf_json_put_ascii(tnf_buf *b, const char *text, size_t n);
/* Writes a tree as compact JSON without loss, so that tnf_json_typed() can read it back. Values
 * that JSON cannot express are wrapped ({"$u8":3}, {"$f32":"7fc00000"} by bits, {"$bytes":"hex"},
 * {"$json":"…"}). null, bool, string, i64, array and map are plain, except that a map whose first
 * key starts with '$' is {"$map":{…}}. */
void tnf_json_put_typed(tnf_buf *b, const tnf_value *v);
bool tnf_json_typed(tnf_json *j, tnf_value *out);

#endif
