/* SPDX-License-Identifier: MIT */
/* Layouts: which parts a tensor has and what their sizes must be. There is one table; ids are open,
 * so a file may contain one that is not in it. */
#ifndef TNF_MODEL_LAYOUT_H
#define TNF_MODEL_LAYOUT_H

#include "base/arena.h"
#include <string.h>
#include <tenfold/types.h>

typedef struct tnf_layout_part {
    const char *role;
    bool optional;
} tnf_layout_part;

/* Reads n bytes of a part, from `offset` on. Validators read data through this, so they do not
 * depend on io. */
typedef tnf_status (*tnf_part_reader)(void *dst, size_t n, const tnf_part *part, uint64_t offset,
                                      tnf_error *e);

struct tnf_layout {
    const char *id;
    /* Blocks of a fixed number of elements and bytes, in one part `data` of u8; 0: no blocks. */
    uint16_t block_elements, block_bytes;
    const char *name;             /* the common name; NULL: its id */
    const tnf_layout_part *parts; /* ends with a NULL role; NULL: any parts (unknown layout) */
    const char *attrs; /* attributes that say how to read it, separated by spaces; or NULL */
    const char *block; /* the kind of its blocks (kernels/blocks.h), or NULL */
    /* Do roles, types and sizes fit the shape? NULL: nothing beyond the roles. */
    tnf_status (*check)(const tnf_object *object, tnf_error *e);
    /* Does the data follow the layout's rules (offsets ascend, indices in range …)? May be NULL. */
    tnf_status (*check_data)(const tnf_object *object, tnf_part_reader read, tnf_error *e);
};

extern const tnf_layout tnf_layout_dense;
/* The layout of a tensor of which only the name is known, since its file is missing. It is not in
 * the table. */
extern const tnf_layout tnf_layout_missing;

/* The i-th of the layouts of blocks, or NULL past the last. */
const tnf_layout *tnf_layout_block_at(size_t i);

/* A known layout, or NULL. */
const tnf_layout *tnf_layout_named(const char *id, size_t n);
/* An unknown layout, kept by name. NULL: no memory. */
const tnf_layout *tnf_layout_unknown(tnf_arena *arena, const char *id, size_t n);
const tnf_layout *tnf_layout_at(size_t i);

/* Checks that each role of the layout is there once and no other, then calls the layout's own
 * check. */
tnf_status tnf_layout_check(const tnf_object *object, tnf_error *e);
/* Does the object have a layout, all dimensions and parts that it counts, and parts with roles and
 * types? Objects that a caller built may lack them. */
bool tnf_object_complete(const tnf_object *object);
/* Product of the dimensions; false on overflow. A zero anywhere gives zero. */
bool tnf_shape_elements(uint64_t *out, const uint64_t *shape, uint32_t rank);

static inline bool tnf_same_shape(const tnf_object *a, const tnf_object *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

#endif
