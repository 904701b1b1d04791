/* SPDX-License-Identifier: MIT */
/* Tree building for the readers of binary syntaxes.
 *
 * Values are gathered on one growing stack, a map's members as key, value, key, value. When their
 * container closes, they move to the arena at their exact size. So memory is never allocated
 * because of a count that a file claims.
 */
#ifndef TNF_WIRE_TREE_H
#define TNF_WIRE_TREE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"

/* The deepest nesting of any reader, whatever its limit is; it bounds recursion. */
#define TNF_TREE_DEEPEST 256u

/* ------------------------------------------------------------------- keys */

#define TNF_KEYS_FEW     8u

/* The keys of one map during reading: a linear list if there are few, a hash table if many. Begin
 * with tnf_keys_init(). It needs no freeing, since its memory is the arena's. It must not be
 * moved. */
typedef struct tnf_keys {
    tnf_arena *arena;
    tnf_str few[TNF_KEYS_FEW], *many; /* `many` has all keys once they do not fit in `few` */
    uint32_t n, capacity;
    tnf_hash hash;
} tnf_keys;

void tnf_keys_init(tnf_keys *k, tnf_arena *arena);
/* Adds a key, whose bytes must stay in place. *twice: the key existed already. TNF_ENOMEM or
 * TNF_ELIMIT from the arena. */
tnf_status tnf_keys_add(tnf_keys *k, tnf_str key, bool *twice, tnf_error *e);

/* ------------------------------------------------------------------ trees */

typedef struct tnf_tree {
    tnf_arena *arena;
    tnf_buf stack; /* of tnf_value */
} tnf_tree;

void tnf_tree_init(tnf_tree *t, tnf_arena *arena);
void tnf_tree_free(tnf_tree *t);

/* The beginning of the next container: pass it to the functions below when the container closes. */
size_t tnf_tree_mark(const tnf_tree *t);
/* Drops the values pushed since the mark. */
void tnf_tree_drop(tnf_tree *t, size_t mark);
tnf_status tnf_tree_push(tnf_tree *t, const tnf_value *v, tnf_error *e);
/* Makes an array of the values pushed since the mark. */
tnf_status tnf_tree_array(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e);
/* Makes a map of them: every other value is a TNF_STRING, the key of the value after it. */
tnf_status tnf_tree_map(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e);
/* Makes an array of pairs of them; each pair is an array of two. */
tnf_status tnf_tree_pairs(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e);

/* A string of that kind, copied to the arena. */
tnf_status tnf_tree_text(tnf_tree *t, tnf_kind kind, tnf_str text, tnf_value *out, tnf_error *e);
/* Makes {key: *inner}, the notation for items that a tree cannot express. The key is a literal. */
tnf_status tnf_tree_wrap(tnf_tree *t, const char *key, const tnf_value *inner, tnf_value *out,
                         tnf_error *e);
/* The value of a map whose only key is that one, or NULL. */
const tnf_value *tnf_tree_wrapped(const tnf_value *v, const char *key);

#endif
