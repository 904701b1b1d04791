/* SPDX-License-Identifier: MIT */
/* What reading shares: the walk through the tree, and the arrays on the way. */
#ifndef TNF_FORMATS_FLAX_WALK_H
#define TNF_FORMATS_FLAX_WALK_H

#include "formats/flax/flax.h"

/* A map or an array that is not at its end. */
struct fx_frame {
    bool map;
    uint64_t left, done;
    tnf_attrs keys; /* of a map, so that none comes twice */
};

/* Values one after the other, in an arena. */
struct fx_row {
    tnf_value *items;
    size_t n, capacity;
};

struct fx_walk {
    tnf_reader *r;
    fx_in in;
    struct fx_frame *frames;
    tnf_value *keys; /* from the root down to the item */
    unsigned depth, room;
    tnf_attrs leaves, paths;
    struct fx_row lists, order;
    fx_state *state;
    size_t tensors;
};

/* An array as its ext says. */
struct fx_array {
    const fx_type *type;
    tnf_str name; /* of the type */
    uint64_t *shape;
    uint32_t rank;
    uint64_t at, elements; /* where the ext begins */
    fx_piece data;
};

/* read.c: keys that a name split at slashes would not give back; the keys as they are; joined. */
bool tnf_fx_needs_path(const struct fx_walk *x);
tnf_status tnf_fx_keep_path(tnf_value *out, const struct fx_walk *x, tnf_error *e);
tnf_status tnf_fx_join(tnf_str *out, const struct fx_walk *x, bool escape, tnf_error *e);

/* arrays.c: the content of an ext 1 or 3, whose head is read; adds it, or an array in pieces. */
tnf_status tnf_fx_array(struct fx_walk *x, const fx_head *ext, struct fx_array *a, tnf_error *e);
tnf_status tnf_fx_add(struct fx_walk *x, const struct fx_array *a, fx_data d, bool scalar,
                      bool chunked, tnf_error *e);
/* Is the map, whose head is read, an array in pieces? Then read it so. */
tnf_status tnf_fx_is_chunked(struct fx_walk *x, const fx_head *map, bool *out, tnf_error *e);
tnf_status tnf_fx_chunked(struct fx_walk *x, const fx_head *map, tnf_error *e);

#endif
