/* SPDX-License-Identifier: MIT */
/* Shared by the kinds of virtual tensors. Such a tensor is a plan that does not change. Each reader
 * has a cursor, with the streams of the sources and a little memory.
 *
 *   bytes [offset, offset + n)      ░░░░▓▓▓▓████████████████▓▓▓▓░░░░
 *   units                           └──┴──┴──┴──┴──┴──┴──┴──┴──┴──┘
 *
 * Whole units are made directly in the caller's buffer, those at the edges in the cursor's block.
 */
#ifndef TNF_CORE_READ_VIRTUAL_H
#define TNF_CORE_READ_VIRTUAL_H

#include "core/read/stream.h"
#include <tenfold/virtual.h>

#include <stdatomic.h>

#define TNF_INPUTS 3u

/* A source's part that is being read, with a buffer for its bytes. */
typedef struct tnf_input {
    tnf_stream stream;
    const tnf_part *part; /* NULL: no part is open */
    uint64_t reached;     /* the end of the bytes that were read in order */
    uint8_t *room;
    size_t size;
} tnf_input;

struct tnf_cursor {
    const struct tnf_virtual *v;
    tnf_allocator alloc;
    tnf_input inputs[TNF_INPUTS];
    uint8_t *block; /* the unit that begins at element block_at; NULL: none */
    uint64_t block_at;
    size_t block_n; /* bytes in it; 0: it is empty */
    void *own;      /* memory of the kind, own_size bytes */
    size_t own_size;
    tnf_source *spool; /* a temporary file with the bytes of a source; or NULL */
};

/* Makes elements [first, first + n): whole units, except for the last one of the tensor. */
typedef tnf_status (*tnf_make_fn)(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                                  tnf_error *e);

struct tnf_virtual {
    tnf_allocator alloc;
    tnf_arena arena;
    struct tnf_origin origin;
    tnf_object object;
    tnf_part part;
    const tnf_object *sources; /* n copies */
    size_t n;
    tnf_make_fn make;
    uint64_t elements;
    uint64_t unit, window; /* the minimum and the maximum number of elements made at a time */
    void *plan;            /* of the kind, in the arena */
    bool sequential;
    bool once;   /* a source can be read only once: see tnf_part_once() */
    bool scaled; /* it is the product with scales */
    /* Blocks: 1 + an element in whose block a scale became infinite; 0: none yet. */
    _Atomic uint64_t overflow;
    struct tnf_virtual *inner; /* a source that is freed with it; or NULL */
};

/* Reads n bytes of a part into the input's buffer. */
tnf_status tnf_input_read(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                          uint64_t offset, size_t n, const uint8_t **out, tnf_error *e);
/* The same into another buffer. */
tnf_status tnf_input_read_to(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                             uint64_t offset, void *dst, size_t n, tnf_error *e);
/* Reads elements [first, first + n) of a part into the input's buffer: they begin *skip elements
 * into *out. */
tnf_status tnf_input_elements(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                              uint64_t first, size_t n, const uint8_t **out, size_t *skip,
                              tnf_error *e);
/* Memory of the kind for the life of the cursor, zeroed; the same on each call. */
void *tnf_cursor_own(struct tnf_cursor *c, size_t size, tnf_error *e);

/* The kinds: each checks its sources and fills in v->make, the object and the plan. */
tnf_status tnf_virtual_cast(struct tnf_virtual *v, const tnf_type *type, tnf_error *e);
tnf_status tnf_virtual_values(struct tnf_virtual *v, tnf_error *e);
tnf_status tnf_virtual_decode(struct tnf_virtual *v, tnf_error *e);
tnf_status tnf_virtual_encode(struct tnf_virtual *v, const tnf_layout *layout, tnf_error *e);
tnf_status tnf_virtual_scaled(struct tnf_virtual *v, const uint64_t *block, tnf_error *e);
tnf_status tnf_virtual_slice(struct tnf_virtual *v, const tnf_slice *slices, tnf_error *e);
tnf_status tnf_virtual_order(struct tnf_virtual *v, tnf_order order, tnf_error *e);
tnf_status tnf_virtual_join(struct tnf_virtual *v, uint32_t axis, tnf_error *e);
tnf_status tnf_virtual_grid(struct tnf_virtual *v, const tnf_virtual_how *how, tnf_error *e);

/* virtual_cast.c: can numbers be cast to this type, and from it? */
bool tnf_can_cast_to(const tnf_type *type);
bool tnf_can_cast_from(const tnf_type *type);

/* Makes the dense tensor one of this type and shape. */
tnf_status tnf_virtual_becomes(struct tnf_virtual *v, const tnf_type *type, const uint64_t *shape,
                               uint32_t rank, tnf_error *e);
/* Makes it the first source as stored, since nothing has to be computed. */
void tnf_virtual_same(struct tnf_virtual *v);
/* Checks that source i exists, is dense, and has numbers of known width. */
tnf_status tnf_virtual_dense(const struct tnf_virtual *v, size_t i, tnf_error *e);
/* Memory for the plan. */
void *tnf_virtual_plan(struct tnf_virtual *v, uint64_t count, size_t size, tnf_error *e);

#endif
