/* SPDX-License-Identifier: MIT */
/* Shared by the files of this format: bytes of the file, object headers, groups, types, data. */
#ifndef TNF_FORMATS_H5_H
#define TNF_FORMATS_H5_H

#include "base/hash.h"
#include "format.h"

#define H5_NOWHERE   UINT64_MAX /* the undefined address */
#define H5_RANK      32u
#define H5_DEPTH     1024u /* most levels of groups */
#define H5_NESTED    16u   /* most levels of types */
#define H5_MESSAGES  65535u
#define H5_BLOCKS    4096u /* most continuations of a header */
#define H5_FILTERS   32u
#define H5_CHUNK     ((uint64_t)1 << 30) /* size of the largest chunk that is decoded */

#define H5_ATTRS     "hdf5.attrs"
#define H5_GROUPS    "hdf5.groups"
#define H5_LINKS     "hdf5.links"
#define H5_NULL      "hdf5.null"
#define H5_TYPES     "hdf5.types"
#define H5_ALIAS     "hdf5.alias"
#define H5_WIDTH     "hdf5.width"
#define H5_TYPE      "hdf5.type"
#define H5_ENUM      "hdf5.enum"
/* Attributes that are written natively, and those that the reader derives. */
#define H5_OF_FILE   H5_ATTRS " " H5_GROUPS " " H5_LINKS " " H5_NULL " hdf5.metadata"
#define H5_OF_TENSOR H5_ATTRS " " H5_ENUM
#define H5_DERIVED   H5_ALIAS " " H5_TYPES " " H5_WIDTH " " H5_TYPE
/* Prefixes of root attributes that hold metadata of other formats. */
#define H5_OWN       "tenfold."
#define H5_METADATA  "tenfold.metadata."

/* ------------------------------------------------------------------- bytes */

enum { H5_WINDOWS = 4, H5_WINDOW = 16384, H5_HEAPS = 4 };

/* A cached piece of the file, since requests are close together. */
typedef struct h5_window {
    uint8_t *bytes;
    uint64_t at, used;
    size_t n;
} h5_window;

/* A visited object: its address and its tensor. */
typedef struct h5_seen {
    uint8_t address[8];
    uint32_t object; /* UINT32_MAX: none */
    bool damaged;
} h5_seen;

/* A collection of the global heap. */
typedef struct h5_heap {
    uint64_t address;
    const uint8_t *bytes; /* NULL: none */
    size_t n;
    uint32_t *places; /* places of objects, by number - 1 if numbers are consecutive */
    uint32_t nplaces;
    tnf_arena arena;
} h5_heap;

typedef struct h5_data h5_data;

typedef struct h5_state {
    h5_data **items;
    size_t n, capacity;
    struct h5_lost *lost; /* damaged objects, which verify() reports */
    size_t nlost, lost_capacity;
} h5_state;

typedef struct h5_lost {
    tnf_str name;
    tnf_error why;
} h5_lost;

/* State while the file is read. */
typedef struct h5_file {
    tnf_reader *r;
    uint64_t base, end;  /* of the HDF5 file in the source: addresses are relative to base */
    uint64_t work, most; /* bytes of metadata read so far, and the limit */
    tnf_arena temp;      /* memory of the object that is being read */
    h5_window windows[H5_WINDOWS];
    uint64_t clock;
    h5_seen *seen;
    size_t nseen, seen_capacity;
    tnf_hash objects; /* addresses of objects, to positions in `seen` */
    uint64_t *nodes;  /* addresses of visited nodes; each may occur once */
    size_t nnodes, nodes_capacity;
    tnf_hash once;
    h5_heap heaps[H5_HEAPS];
    uint64_t heap_clock;
    tnf_buf path;
    tnf_attrs groups, links, nulls, types;
} h5_file;

/* Reads n bytes at an address into h->temp, with a cursor over them. */
tnf_status tnf_h5_get(h5_file *h, uint64_t address, uint64_t n, const char *what, tnf_cur *out,
                      tnf_error *e);
/* The same for a node that begins with a signature of four letters; the cursor is after it. */
tnf_status tnf_h5_node(h5_file *h, uint64_t address, uint64_t n, const char *signature,
                       tnf_cur *out, tnf_error *e);
/* The head of a node of an old B-tree; `of` names the tree. *level is the expected level, or
 * UINT_MAX for any; it becomes the node's own. n: its children. */
tnf_status tnf_h5_tree_node(h5_file *h, uint64_t address, unsigned kind, unsigned *level,
                            uint64_t *n, const char *of, tnf_error *e);
/* Fails unless the checksum of the first n bytes follows them. */
tnf_status tnf_h5_sum(const tnf_cur *c, uint64_t n, const char *what, tnf_error *e);
uint32_t tnf_h5_lookup3(const void *bytes, size_t n);
/* Marks a node as visited. A second visit is an error: a loop. */
tnf_status tnf_h5_once(h5_file *h, uint64_t address, tnf_error *e);
uint64_t tnf_h5_uint(tnf_cur *c, unsigned n);
unsigned tnf_h5_bytes_for(uint64_t v); /* bytes that hold v */
unsigned tnf_h5_log(uint64_t v);       /* the position of its highest bit */
tnf_status tnf_h5_bad(const tnf_cur *c, const char *what, tnf_error *e);

/* ---------------------------------------------------------------- messages */

enum {
    H5_DATASPACE = 1,
    H5_LINK_INFO = 2,
    H5_DATATYPE = 3,
    H5_OLD_FILL = 4,
    H5_FILL = 5,
    H5_LINK = 6,
    H5_EXTERNAL = 7,
    H5_LAYOUT = 8,
    H5_PIPELINE = 0x0B,
    H5_ATTRIBUTE = 0x0C,
    H5_CONTINUED = 0x10,
    H5_SYMBOLS = 0x11,
    H5_ATTR_INFO = 0x15
};

typedef struct h5_message {
    uint16_t type, order; /* order: creation order of attributes */
    uint8_t flags;
    tnf_cur body;
} h5_message;

typedef struct h5_header {
    uint64_t at; /* in the source */
    h5_message *items;
    size_t n, capacity;
    bool ordered;
} h5_header;

tnf_status tnf_h5_header(h5_header *out, h5_file *h, uint64_t address, tnf_error *e);
const h5_message *tnf_h5_find(const h5_header *x, uint16_t type);
/* The body of a message, which may be stored in the header of a committed type. */
tnf_status tnf_h5_body(tnf_cur *out, h5_file *h, const h5_message *m, tnf_error *e);
tnf_status tnf_h5_shared(tnf_cur *out, h5_file *h, tnf_cur *c, uint16_t type, tnf_error *e);

/* --------------------------------------------------- new B-trees and heaps */

/* Calls take() for every record of a B-tree of version 2, in their order. */
typedef tnf_status (*h5_take)(void *ctx, h5_file *h, tnf_cur *record, tnf_error *e);
tnf_status tnf_h5_records(h5_file *h, uint64_t address, unsigned type, h5_take take, void *ctx,
                          tnf_error *e);

/* A fractal heap. */
typedef struct h5_fractal {
    uint64_t at, id_length, start, direct, root, huge;
    uint32_t max_managed;
    unsigned bits, width, rows;
    uint64_t block, block_offset, block_size; /* the last block that was found */
} h5_fractal;

tnf_status tnf_h5_fractal(h5_fractal *f, h5_file *h, uint64_t address, tnf_error *e);
/* Reads the object of an id into h->temp. */
tnf_status tnf_h5_object(tnf_cur *out, h5_file *h, h5_fractal *f, tnf_cur id, tnf_error *e);
/* Returns an object of the global heap; valid until the next call. */
tnf_status tnf_h5_global(tnf_str *out, h5_file *h, uint64_t collection, uint32_t index,
                         tnf_error *e);

/* ------------------------------------------------------------------- links */

typedef struct h5_link {
    tnf_str name;
    enum { H5_HARD, H5_SOFT, H5_ELSEWHERE, H5_OTHER_LINK } kind;
    uint64_t address;
    tnf_str target, file;
    uint64_t order;
} h5_link;

typedef struct h5_links {
    h5_link *items; /* in r->scratch */
    size_t n, capacity;
    bool ordered;
} h5_links;

tnf_status tnf_h5_links(h5_links *out, h5_file *h, const h5_header *x, tnf_error *e);

/* ------------------------------------------------------------------- types */

typedef struct h5_type {
    enum { H5_DENSE, H5_FIXED_TEXT, H5_VLEN_TEXT, H5_UNREAD } form;
    const tnf_type *type;
    uint64_t size; /* bytes of an element in the file */
    uint8_t cls, pad;
    bool big, opaque, reference;
    uint32_t naxes; /* axes after those of the dataspace */
    uint64_t axes[H5_RANK];
    const char *name;        /* H5_UNREAD: its name, in r->arena */
    const char *text;        /* hdf5.type, or NULL; in r->arena */
    const tnf_value *values; /* of an enum: name to number; or NULL */
} h5_type;

tnf_status tnf_h5_type(h5_type *out, h5_file *h, tnf_cur *c, tnf_error *e);

typedef struct h5_space {
    bool null;
    uint32_t rank;
    uint64_t shape[H5_RANK], max[H5_RANK];
    uint64_t elements;
} h5_space;

tnf_status tnf_h5_space(h5_space *s, tnf_cur *c, tnf_error *e);
/* The length of a text in a field of fixed size, by its padding. */
size_t tnf_h5_text_length(const h5_type *t, const uint8_t *p);

/* -------------------------------------------------------------- attributes */

/* All attributes of an object: a map in r->arena, which may be empty. */
tnf_status tnf_h5_attrs(tnf_attrs *out, h5_file *h, const h5_header *x, tnf_error *e);

/* -------------------------------------------------------------------- data */

typedef struct h5_chunk {
    uint64_t number; /* in row-major order over the grid of the dataset */
    uint64_t at, stored;
    uint32_t mask; /* filters that were skipped */
} h5_chunk;

typedef struct h5_filter {
    uint16_t id;
    uint32_t width; /* width of shuffle */
} h5_filter;

/* Data that only the format can decode. */
struct h5_data {
    enum { H5_FILLED, H5_PLACED, H5_CHUNKED } form;
    uint32_t rank;
    const uint64_t *shape, *chunk, *grid; /* shape of the data, of a chunk, of the grid of chunks */
    const uint64_t *most;                 /* grid of chunks of the largest shape */
    uint64_t width;                       /* bytes of an element */
    uint64_t nbytes, at;
    uint64_t chunk_bytes;
    uint32_t swap;       /* width of numbers whose bytes are reversed; 0: none */
    const uint8_t *fill; /* of one element, little-endian; NULL: zeros */
    h5_filter filters[H5_FILTERS];
    uint32_t nfilters;
    bool whole_edges; /* chunks at the edge are not filtered */
    h5_chunk *chunks; /* by number */
    size_t nchunks, capacity;
    uint64_t stored; /* bytes of all chunks */
};

/* layout.c: fills in the layout and all chunks. *why: the reason if the data cannot be read. */
tnf_status tnf_h5_layout(h5_data *d, h5_file *h, const h5_header *x, const h5_space *space,
                         const char **why, tnf_error *e);
/* chunks.c */
tnf_status tnf_h5_chunk_tree(h5_data *d, h5_file *h, uint64_t address, tnf_error *e);
tnf_status tnf_h5_chunk_index(h5_data *d, h5_file *h, tnf_cur *c, unsigned flags,
                              const h5_space *space, tnf_error *e);
tnf_status tnf_h5_add_chunk(h5_data *d, h5_file *h, const uint64_t *place, h5_chunk chunk,
                            tnf_error *e);
/* arrays.c: the fixed and the extensible array. */
tnf_status tnf_h5_fixed_array(h5_data *d, h5_file *h, uint64_t address, tnf_error *e);
tnf_status tnf_h5_extensible_array(h5_data *d, h5_file *h, uint64_t address, uint32_t unlimited,
                                   tnf_error *e);
/* chunks.c: adds a chunk by its number in the grid. */
tnf_status tnf_h5_add_numbered(h5_data *d, h5_file *h, uint64_t number, uint32_t front,
                               h5_chunk chunk, tnf_error *e);

/* filters.c: decodes a stored chunk to d->chunk_bytes at dst. */
tnf_status tnf_h5_unfilter(const h5_data *d, const h5_chunk *chunk, bool plain, uint8_t *stored,
                           uint8_t *dst, tnf_error *e);
const char *tnf_h5_filter_name(unsigned id);
bool tnf_h5_filter_known(unsigned id);
/* Does the filter compress? */
bool tnf_h5_filter_packs(unsigned id);

/* data.c */
tnf_status tnf_h5_raw(const tnf_reader *r, const h5_data *d, uint64_t offset, void *dst, size_t n,
                      tnf_error *e);
tnf_status tnf_h5_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
tnf_status tnf_h5_decode_on(tnf_reader *r, void *kept, uint64_t key, uint64_t offset, void *dst,
                            size_t n, tnf_error *e);
void tnf_h5_forget(void *p);
#define H5_KEEPS 128u

/* dataset.c */
/* *own: the failure is in the object's own header, not in shared structures. */
tnf_status tnf_h5_dataset(h5_file *h, const h5_header *header, tnf_str name, bool *own,
                          tnf_error *e);

/* lost.c: handles a damaged object at h->path. The object is listed without a type, a warning and
 * verify() say why, and reading continues. Fails if reading cannot continue. */
tnf_status tnf_h5_lose(h5_file *h, tnf_status status, const tnf_error *why, tnf_error *e);
tnf_status tnf_h5_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);

/* hdf5.c: reads the file of `size` bytes at `start` of the source. */
tnf_status tnf_h5_read(tnf_reader *r, uint64_t start, uint64_t size, tnf_error *e);

/* tree.c, write.c */
#define H5_WRITES                                                                                  \
    "f32 f64 f16 bf16 i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 bool c64 c128 f8_e5m2 f8_e4m3fn"
extern const tnf_option_info tnf_h5_write_options[];
tnf_status tnf_h5_fits(tnf_fit *fit, tnf_error *e);
tnf_fate tnf_h5_takes(const tnf_object *object, const char **reason);
tnf_status tnf_h5_write(tnf_writer *w, tnf_error *e);

#endif
