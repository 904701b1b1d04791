/* SPDX-License-Identifier: MIT */
/* What the readers of binary syntaxes share when they build trees.
 *
 * Values gather on one growing stack, a map's members as key, value, key, value, and move to the
 * arena, at their exact size, when their container closes: a count that a file claims is never
 * what memory is taken for.
 */
#ifndef TNF_WIRE_TREE_H
#define TNF_WIRE_TREE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"

/* The deepest nesting any reader follows, whatever its limit says; it bounds recursion. */
#define TNF_TREE_DEEPEST 256u

/* ------------------------------------------------------------------- keys */

#define TNF_KEYS_FEW     8u

/* The keys of one map while it is read: compared one by one while few, hashed when many. Begin with
 * tnf_keys_init(); needs no freeing, for what it takes is the arena's; must not be moved. */
typedef struct tnf_keys {
    tnf_arena *arena;
    tnf_str few[TNF_KEYS_FEW], *many; /* many holds them all once they are more than a few */
    uint32_t n, capacity;
    tnf_hash hash;
} tnf_keys;

void tnf_keys_init(tnf_keys *k, tnf_arena *arena);
/* Takes in a key, whose bytes stay where they are. *twice: it was there already. TNF_ENOMEM or
 * TNF_ELIMIT from the arena. */
tnf_status tnf_keys_add(tnf_keys *k, tnf_str key, bool *twice, tnf_error *e);

/* ------------------------------------------------------------------ trees */

typedef struct tnf_tree {
    tnf_arena *arena;
    tnf_buf stack; /* of tnf_value */
} tnf_tree;

void tnf_tree_init(tnf_tree *t, tnf_arena *arena);
void tnf_tree_free(tnf_tree *t);

/* Where the next container begins: hand it to the functions below when the container closes. */
size_t tnf_tree_mark(const tnf_tree *t);
/* Forgets what was pushed since the mark. */
void tnf_tree_drop(tnf_tree *t, size_t mark);
tnf_status tnf_tree_push(tnf_tree *t, const tnf_value *v, tnf_error *e);
/* All that was pushed since the mark, as an array; */
tnf_status tnf_tree_array(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e);
/* as a map, where every other value is a TNF_STRING, the key of the one after it; */
tnf_status tnf_tree_map(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e);
/* and as an array of arrays of two. */
tnf_status tnf_tree_pairs(tnf_tree *t, size_t mark, tnf_value *out, tnf_error *e);

/* A string of that kind, copied to the arena. */
tnf_status tnf_tree_text(tnf_tree *t, tnf_kind kind, tnf_str text, tnf_value *out, tnf_error *e);
/* {key: *inner}, how something is written down for which the model has no word. The key is a
 * literal. */
tnf_status tnf_tree_wrap(tnf_tree *t, const char *key, const tnf_value *inner, tnf_value *out,
                         tnf_error *e);
/* The value of a map whose only key is that one, or NULL. */
const tnf_value *tnf_tree_wrapped(const tnf_value *v, const char *key);

#endif
