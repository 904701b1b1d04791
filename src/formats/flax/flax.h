/* SPDX-License-Identifier: MIT */
/* Shared by the files of this format: MessagePack heads in a file of any size, types, paths. */
#ifndef TNF_FORMATS_FLAX_H
#define TNF_FORMATS_FLAX_H

#include "format.h"
#include "wire/msgpack.h"

#define FX_DEPTH  128u
#define FX_CHUNK  ((uint64_t)1 << 30) /* larger arrays are cut into pieces of this many bytes */
#define FX_MARK   "__msgpack_chunked_array__"
#define FX_LONE   "data"

#define FX_LEAVES "flax.leaves"
#define FX_LISTS  "flax.lists"
#define FX_PATHS  "flax.paths"
#define FX_ORDER  "flax.order"
#define FX_PATH   "flax.path"
#define FX_KIND   "flax.kind"
#define FX_CHUNKS "flax.chunked"
#define FX_SCALAR "scalar"

enum { FX_NDARRAY = 1, FX_COMPLEX = 2, FX_NPSCALAR = 3 };

/* ------------------------------------------------------------------- types */

typedef struct fx_type {
    const char *name; /* name in numpy or ml_dtypes */
    const char *type; /* Tenfold's name; NULL: listed, but not read */
    uint8_t width;    /* bytes of an element in the file */
    bool read_only;   /* read, never written */
} fx_type;

const fx_type *tnf_fx_type(tnf_str name);
const fx_type *tnf_fx_type_of(const tnf_type *type);

/* -------------------------------------------------------------------- heads */

/* A position in the file, with a window of what is around it. */
typedef struct fx_in {
    tnf_reader *r;
    uint64_t pos, size;
    uint8_t *window;
    uint64_t start; /* where the window begins */
    size_t n;
    uint64_t taken; /* bytes of heads, keys and values so far; arrays' data do not count */
} fx_in;

/* The head of an item. The content of str, bin and ext is n bytes at in->pos; the file has all of
 * them. */
typedef struct fx_head {
    tnf_msgpack_kind kind;
    uint64_t at, n;  /* at: position of the head; n: bytes, items or pairs */
    tnf_value value; /* of nil, bool, numbers */
    int8_t ext;
} fx_head;

tnf_status tnf_fx_in(fx_in *in, tnf_reader *r, tnf_error *e);
tnf_status tnf_fx_head(fx_in *in, fx_head *h, tnf_error *e);
/* Returns n bytes at the position and moves it to their end. They are valid until the next call. */
tnf_status tnf_fx_bytes(fx_in *in, uint64_t n, const uint8_t **out, tnf_error *e);

/* The length of a head and its kind, by its first byte `b`; 0: no head begins so. */
unsigned tnf_fx_shape(uint8_t b, tnf_msgpack_kind *kind);
/* Fills kind, n, value and ext from the complete head. */
void tnf_fx_parse(const uint8_t *p, fx_head *h);

/* --------------------------------------------------------------------- data */

/* The bytes of an array: consecutive pieces of the file. */
typedef struct fx_piece {
    uint64_t at, n;
} fx_piece;

typedef struct fx_data {
    const fx_piece *pieces;
    size_t n;
    uint8_t bits;      /* bits of an element that takes a byte in the file; 0: no packing */
    uint64_t elements; /* if bits */
} fx_data;

typedef struct fx_state {
    fx_data *items;
    size_t n, capacity;
} fx_state;

tnf_status tnf_fx_index(tnf_reader *r, tnf_error *e);
tnf_status tnf_fx_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);

/* ------------------------------------------------------------------ writing */

extern const tnf_option_info tnf_fx_write_options[];
tnf_status tnf_fx_fits(tnf_fit *fit, tnf_error *e);
tnf_status tnf_fx_write(tnf_writer *w, tnf_error *e);

/* The tree to be written, built from names and leaves. */
typedef struct fx_node {
    tnf_value key;            /* a string, or an integer */
    const tnf_object *tensor; /* a leaf, or … */
    const tnf_value *leaf;    /* … a value; neither: a map or a list */
    struct fx_node *first, *last, *next;
    size_t n;       /* children */
    tnf_attrs keys; /* of the children, to their nodes */
    bool list;
} fx_node;

typedef struct fx_tree {
    tnf_arena *arena;
    fx_node root;
    const char *why; /* why the last path could not be added */
} fx_tree;

/* Adds a leaf. If its path does not fit, `why` is set and TNF_OK is returned. */
tnf_status tnf_fx_grow(fx_tree *t, const tnf_value *path, fx_node **out, tnf_error *e);
/* The path of a tensor, as an array of keys: its attribute, or its name split at slashes. */
tnf_status tnf_fx_path(const tnf_value **out, tnf_str name, const tnf_value *attr, tnf_arena *arena,
                       tnf_error *e);
/* Is the attribute an array of strings and integers? */
bool tnf_fx_is_path(const tnf_value *v);
bool tnf_fx_is_leaf(const tnf_value *v);

#endif
