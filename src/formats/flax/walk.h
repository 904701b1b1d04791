/* SPDX-License-Identifier: MIT */
/* Shared by the reading files: the walk through the tree, and its arrays. */
#ifndef TNF_FORMATS_FLAX_WALK_H
#define TNF_FORMATS_FLAX_WALK_H

#include "formats/flax/flax.h"

/* A map or an array that is being read. */
struct fx_frame {
    bool map;
    uint64_t left, done;
    tnf_attrs keys; /* of a map, to find duplicates */
};

/* A growing array of values, in an arena. */
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

/* An array as its ext describes it. */
struct fx_array {
    const fx_type *type;
    tnf_str name; /* of the type */
    uint64_t *shape;
    uint32_t rank;
    uint64_t at, elements; /* where the ext begins */
    fx_piece data;
};

/* read.c: returns true if splitting the name at slashes would not restore the keys. */
bool tnf_fx_needs_path(const struct fx_walk *x);
/* Makes an array of the keys. */
tnf_status tnf_fx_keep_path(tnf_value *out, const struct fx_walk *x, tnf_error *e);
/* Joins the keys by slashes. */
tnf_status tnf_fx_join(tnf_str *out, const struct fx_walk *x, bool escape, tnf_error *e);

/* arrays.c: reads the content of an ext 1 or 3, whose head was read. Adds an array. */
tnf_status tnf_fx_array(struct fx_walk *x, const fx_head *ext, struct fx_array *a, tnf_error *e);
tnf_status tnf_fx_add(struct fx_walk *x, const struct fx_array *a, fx_data d, bool scalar,
                      bool chunked, tnf_error *e);
/* Is the map, whose head was read, an array in pieces? Reads such a map. */
tnf_status tnf_fx_is_chunked(struct fx_walk *x, const fx_head *map, bool *out, tnf_error *e);
tnf_status tnf_fx_chunked(struct fx_walk *x, const fx_head *map, tnf_error *e);

#endif
