/* SPDX-License-Identifier: MIT */
/* The content of a file: objects in order, found by name, with attributes and extras. */
#ifndef TNF_MODEL_CATALOG_H
#define TNF_MODEL_CATALOG_H

#include "base/arena.h"
#include "base/hash.h"
#include "model/value.h"
#include <tenfold/types.h>

typedef struct tnf_catalog {
    tnf_arena *arena; /* names, shapes, parts, attributes */
    tnf_object *objects;
    size_t n, capacity;
    tnf_hash names;
    tnf_attrs attrs;
    tnf_extra *extras;
    size_t nextras, extras_capacity;
} tnf_catalog;

/* A part of n bytes in memory. */
static inline tnf_part tnf_part_over(const char *role, tnf_dtype type, const void *p, uint64_t n)
{
    tnf_part part = { .role = role, .type = tnf_type_of(type), .payload = TNF_MEMORY, .memory = p };
    part.stored = part.nbytes = n;
    return part;
}

void tnf_catalog_init(tnf_catalog *c, tnf_arena *arena);
void tnf_catalog_free(tnf_catalog *c);

/* What happens to a second object of the same name: TNF_EEXISTS; or both are listed, and a lookup
 * finds the later or the first. */
enum tnf_name_policy { TNF_NAMES_ONCE, TNF_NAMES_LATER_FOUND, TNF_NAMES_FIRST_FOUND };
/* A flag for the policy: name, shape and parts outlive the catalog and need no copies. */
#define TNF_BORROWED 4u

/* Adds a copy of the object. Name, shape and parts are copied into the arena unless they are
 * borrowed; attrs are taken as they are. Only the name is checked. */
tnf_status tnf_catalog_add(tnf_catalog *c, const tnf_object *object, unsigned policy, tnf_error *e);
/* Makes room for n objects, if n is known in advance. */
tnf_status tnf_catalog_reserve(tnf_catalog *c, size_t n, tnf_error *e);
tnf_status tnf_catalog_add_extra(tnf_catalog *c, const tnf_extra *extra, tnf_error *e);
/* The `key` of tnf_hash_init() for a catalog: the name of the object at a position. */
tnf_str tnf_catalog_name_at(const void *catalog, uint32_t position);
const tnf_object *tnf_catalog_find(const tnf_catalog *c, const char *name, size_t n);
/* An attribute of the file, or NULL. */
const tnf_value *tnf_catalog_attr(const tnf_catalog *c, const char *key);
/* Rebuilds the table of names, after the objects were reordered. */
tnf_status tnf_catalog_reindex(tnf_catalog *c, bool later_found, tnf_error *e);
/* Frees unused capacity. */
void tnf_catalog_shrink(tnf_catalog *c);

/* The attributes of a tensor that is not in the file, but that its reader shows because programs
 * look for it. It is not part of the content and is not saved. */
extern const tnf_value tnf_filler;
bool tnf_is_filler(const tnf_object *object);

#endif
