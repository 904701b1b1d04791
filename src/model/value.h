/* SPDX-License-Identifier: MIT */
/* Building attribute trees. Every node is in an arena; maps keep the order of insertion. */
#ifndef TNF_MODEL_VALUE_H
#define TNF_MODEL_VALUE_H

#include "base/arena.h"
#include "base/str.h"
#include <tenfold/types.h>

/* A map under construction. Zero-initialise everything except arena. */
typedef struct tnf_attrs {
    tnf_arena *arena;
    tnf_member *members;
    size_t n, capacity;
    /* If there are many keys: a table of positions + 1, made on the first search and rebuilt when
     * it is half full. */
    uint32_t *slots;
    size_t nslots, hashed; /* number of members in the table */
    uint64_t seed[2];
} tnf_attrs;

/* Sets a key. The key is copied, the value is taken as it is. An existing key keeps its position.
 * TNF_ENOMEM or TNF_ELIMIT from the arena. */
tnf_status tnf_attrs_set(tnf_attrs *m, const char *key, size_t key_n, tnf_value value,
                         tnf_error *e);
/* The same for a key that outlives the map (a literal) and is known to be new: no copy and no
 * search. */
tnf_status tnf_attrs_push(tnf_attrs *m, const char *literal, tnf_value value, tnf_error *e);
/* The member of this key, or NULL. TNF_ENOMEM or TNF_ELIMIT from the arena. */
tnf_status tnf_attrs_find(tnf_attrs *m, const char *key, size_t key_n, tnf_member **out,
                          tnf_error *e);
/* The `key` of tnf_hash_init() for attributes: the key of the member at a position. */
tnf_str tnf_attrs_key_at(const void *attrs, uint32_t position);
void tnf_attrs_remove(tnf_attrs *m, tnf_str key);
/* Must be called after the caller has reordered the members. */
void tnf_attrs_moved(tnf_attrs *m);
tnf_value tnf_attrs_value(const tnf_attrs *m);

/* How deep a value is, is the number of arrays and maps that are inside each other, as readers
 * count them: 0 for a number, 1 for an array of numbers. */
bool tnf_value_within(const tnf_value *v, unsigned depth);
/* Fails if a value that the caller has made is impossible, or deeper than `depth`. JSON documents
 * are not parsed. */
tnf_status tnf_value_check(const tnf_value *v, unsigned depth, tnf_error *e);
/* Deep copy into an arena, no deeper than `depth`. Integers without a type get one of 64 bits. */
tnf_status tnf_value_copy(tnf_value *out, const tnf_value *v, tnf_arena *arena, unsigned depth,
                          tnf_error *e);
/* For qsort() over tnf_member: compares the bytes of the keys. */
int tnf_member_compare(const void *a, const void *b);
/* Is this a possible `dtype` of an array? */
bool tnf_value_mark_ok(unsigned mark);
bool tnf_value_equal(const tnf_value *a, const tnf_value *b);

/* Is it an empty array that has a type mark? Two such arrays with different marks differ. */
static inline bool tnf_value_told_empty(const tnf_value *v)
{
    return v->kind == TNF_ARRAY && v->n == 0 && v->dtype != 0;
}

/* Make scalars; strings are borrowed. */
tnf_value tnf_value_str(tnf_kind kind, const char *p, size_t n);
tnf_value tnf_value_number(tnf_dtype dtype, const void *little_endian);
/* A string if the text is UTF-8, else bytes. */
tnf_value tnf_value_utf8(tnf_str text);
/* TNF_UINT unless it is negative, as whole numbers of files are listed. */
tnf_value tnf_value_integer(int64_t i);

/* Gets a whole number that is not negative. Leaves *out unchanged if it is something else, a float
 * as well, or NULL. */
bool tnf_value_whole(uint64_t *out, const tnf_value *v);

#endif
