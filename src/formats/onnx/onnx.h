/* SPDX-License-Identifier: MIT */
/* Shared by the files of this format: the walk through a model, and edits of its bytes. */
#ifndef TNF_FORMATS_ONNX_H
#define TNF_FORMATS_ONNX_H

#include "format.h"
#include "wire/protobuf.h"

#define OX_MODEL    "onnx.model"
#define OX_KIND     "onnx.kind"
#define OX_DEPTH    64u
#define OX_MAX_NAME 65536u
#define OX_MAX_KEPT ((uint64_t)64 << 20)

/* Fields of a TensorProto. */
enum {
    OX_DIMS = 1,
    OX_TYPE = 2,
    OX_SEGMENT = 3,
    OX_FLOATS = 4,
    OX_INT32S = 5,
    OX_STRINGS = 6,
    OX_INT64S = 7,
    OX_NAME = 8,
    OX_RAW = 9,
    OX_DOUBLES = 10,
    OX_UINT64S = 11,
    OX_EXTERNAL = 13,
    OX_LOCATION = 14
};

typedef struct ox_type {
    const char *type; /* Tenfold's name; NULL: no such type */
    uint8_t field;    /* the field of values that are not raw */
    uint8_t bits;     /* bits of one value in that field */
    uint8_t per;      /* values per element in that field; 0: one per byte */
} ox_type;

const ox_type *tnf_ox_type(uint64_t number);
uint64_t tnf_ox_number(const tnf_type *type);

/* -------------------------------------------------------------------- edits */

/* An edit: at `at`, `cut` bytes are removed and others inserted: `bytes`, and the data of an
 * object. */
typedef struct ox_edit {
    uint64_t at, cut;
    uint8_t bytes[24];
    uint8_t n;
    const tnf_object *object; /* writing: the object whose data follow the bytes */
    uint64_t outside;         /* OX_PLACE: offset of its data in their own file */
    uint8_t what;             /* which of its data */
} ox_edit;

enum { OX_DATA, OX_TEXTS, OX_VALUES, OX_LINEAR, OX_COORDS, OX_PLACE };

/* --------------------------------------------------------------------- walk */

/* A tensor of the model: a TensorProto, or a SparseTensorProto. */
typedef struct ox_site {
    tnf_str name; /* complete, in the arena of the walk */
    const char *kind;
    bool sparse;
    tnf_protobuf message;
    uint64_t at;
} ox_site;

typedef struct ox_walk ox_walk;
struct ox_walk {
    tnf_protobuf_in *in;
    tnf_arena *arena;
    tnf_reader *r; /* for warnings; NULL when writing */
    tnf_attrs used;
    tnf_buf edits; /* ox_edit */
    unsigned depth;
    /* Called for each tensor; adds to *more the number of bytes by which its message grows. */
    tnf_status (*tensor)(void *ctx, ox_walk *walk, const ox_site *site, int64_t *more,
                         tnf_error *e);
    void *ctx;
};

tnf_status tnf_ox_walk(ox_walk *w, tnf_error *e);
tnf_status tnf_ox_edit(ox_walk *w, const ox_edit *edit, tnf_error *e);
/* Edits a length that changed; *more also grows by the growth of the length's own bytes. */
tnf_status tnf_ox_relength(ox_walk *w, const tnf_protobuf_field *f, int64_t *more, tnf_error *e);
void tnf_ox_sort(ox_walk *w);

/* --------------------------------------------------------------------- data */

/* Consecutive values in the file: of fixed width, or varints. */
typedef struct ox_run {
    uint64_t at, n;        /* bytes */
    uint64_t first, count; /* values */
} ox_run;

/* Data that only the format can produce. */
typedef struct ox_data {
    enum { OX_RUNS, OX_VARINTS, OX_OFFSETS, OX_BYTES, OX_INDICES } form;
    const ox_run *runs;
    size_t n;
    uint8_t bits;           /* bits of a value */
    const uint64_t *ends;   /* strings: where each ends */
    const int64_t *indices; /* sparse: one linear index, or `rank` indices, per value */
    const uint64_t *shape;
    uint32_t rank;
    uint64_t count; /* of values */
    bool linear;
} ox_data;

/* The checksum that a model gives for a data file. */
typedef struct ox_sum {
    const struct tnf_origin *origin;
    tnf_str text, file;
    uint64_t size, at;
} ox_sum;

typedef struct ox_state {
    ox_data *items;
    size_t n, capacity;
    ox_sum *sums; /* sums.c */
    size_t nsums, room;
    tnf_attrs linked; /* data files that were already checked for hard links, by name */
} ox_state;

tnf_status tnf_ox_push(tnf_reader *r, ox_data data, uint64_t *key, tnf_error *e);
tnf_status tnf_ox_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);

/* -------------------------------------------------------------------- tensor */

/* The fields of a TensorProto. */
typedef struct ox_tensor {
    tnf_str name;
    uint64_t *shape;
    uint64_t type, elements, at;
    const ox_type *known;
    tnf_protobuf_field raw; /* number 0: none */
    uint64_t external;      /* 1: in another file */
    tnf_str location, offset, length, checksum;
    tnf_buf runs; /* of ox_run, for all typed fields */
    uint64_t nvalues;
    uint32_t rank;
    uint8_t typed; /* the field that has the values; 0: none */
    bool located;
} ox_tensor;

/* Reads and checks a tensor. The caller frees its buffer. */
tnf_status tnf_ox_read(ox_tensor *t, tnf_reader *r, const tnf_protobuf *message, tnf_error *e);
/* Adds dimensions: one, or packed ones. */
tnf_status tnf_ox_dims(ox_tensor *t, tnf_reader *r, tnf_protobuf m, tnf_error *e);
/* Places its data. */
tnf_status tnf_ox_place(tnf_part *part, const ox_tensor *t, tnf_reader *r, tnf_error *e);
tnf_status tnf_ox_strings(tnf_part parts[2], const ox_tensor *t, tnf_reader *r, tnf_error *e);

/* --------------------------------------------------------------------- sums */

/* Keeps the checksum of a tensor's data file, if the model has one. */
tnf_status tnf_ox_keep_sum(tnf_reader *r, const ox_tensor *t, const struct tnf_origin *origin,
                           uint64_t size, tnf_error *e);
tnf_status tnf_ox_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);

/* ------------------------------------------------------------------- outside */

#define OX_MAX_FILE     ((uint64_t)INT32_MAX) /* limit of protobuf */
#define OX_MAX_LOCATION 255u
#define OX_MAX_PLACE    (OX_MAX_LOCATION + 160u) /* largest size of the fields of a place */

/* A second file for data. */
typedef struct ox_outside {
    tnf_str location; /* its name; n is 0: no second file */
    uint64_t least;   /* least size of a tensor that goes there */
    uint64_t align, end;
    tnf_buf objects; /* const tnf_object *, in the order of the file */
} ox_outside;

/* Decides whether there is a second file, its name, and which tensors go there. */
tnf_status tnf_ox_choose_place(ox_outside *x, tnf_writer *w, const tnf_value *model, tnf_error *e);
bool tnf_ox_is_outside(const ox_outside *x, const tnf_object *o);
/* Adds the next tensor of the second file; *at is its offset. */
tnf_status tnf_ox_go_outside(uint64_t *at, ox_outside *x, const tnf_object *o, tnf_error *e);
/* Writes the fields of a tensor whose data are there; returns their size. */
size_t tnf_ox_put_place(uint8_t out[OX_MAX_PLACE], const ox_outside *x, uint64_t offset,
                        uint64_t n);
tnf_status tnf_ox_put_outside(tnf_writer *w, const ox_outside *x, tnf_error *e);
tnf_status tnf_ox_too_large(tnf_error *e);

/* --------------------------------------------------------------------- write */

enum { OX_WRITE_BARE, OX_WRITE_EXTERNAL, OX_WRITE_LOCATION, OX_WRITE_ALIGN };
extern const tnf_option_info tnf_ox_write_options[];
tnf_status tnf_ox_fits(tnf_fit *fit, tnf_error *e);
/* Makes a model with these tensors as initializers, without their data, as the reader would keep
 * it.
 */
tnf_status tnf_ox_bare(tnf_buf *b, const tnf_catalog *c, const tnf_allocator *alloc, tnf_error *e);
tnf_status tnf_ox_write(tnf_writer *w, tnf_error *e);

#endif
