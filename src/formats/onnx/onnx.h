/* SPDX-License-Identifier: MIT */
/* What the files of this format share: the walk through a model, and edits of its bytes. */
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
    const char *type; /* ours; NULL: there is no such type */
    uint8_t field;    /* where values stand that are not raw */
    uint8_t bits;     /* of one value there: as it is read */
    uint8_t per;      /* values of that field for an element; 0: one for each byte */
} ox_type;

const ox_type *tnf_ox_type(uint64_t number);
uint64_t tnf_ox_number(const tnf_type *type);

/* -------------------------------------------------------------------- edits */

/* At a place, so many bytes are left out and others are put in: a few, or a part's. */
typedef struct ox_edit {
    uint64_t at, cut;
    uint8_t bytes[24];
    uint8_t n;
    const tnf_object *object; /* writing: whose data follow the bytes */
    uint64_t outside;         /* OX_PLACE: where its data are in their own file */
    uint8_t what;             /* which of them */
} ox_edit;

enum { OX_DATA, OX_TEXTS, OX_VALUES, OX_LINEAR, OX_COORDS, OX_PLACE };

/* --------------------------------------------------------------------- walk */

/* A tensor of the model: a TensorProto, or a SparseTensorProto. */
typedef struct ox_site {
    tnf_str name; /* whole, in the arena of the walk */
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
    /* Tells of a tensor; *more is how many bytes its message grows by. */
    tnf_status (*tensor)(void *ctx, ox_walk *walk, const ox_site *site, int64_t *more,
                         tnf_error *e);
    void *ctx;
};

tnf_status tnf_ox_walk(ox_walk *w, tnf_error *e);
tnf_status tnf_ox_edit(ox_walk *w, const ox_edit *edit, tnf_error *e);
/* A length that has changed; *more grows by what its own bytes grow by. */
tnf_status tnf_ox_relength(ox_walk *w, const tnf_protobuf_field *f, int64_t *more, tnf_error *e);
void tnf_ox_sort(ox_walk *w);

/* --------------------------------------------------------------------- data */

/* Values one after the other in the file: bytes of a fixed width, or varints. */
typedef struct ox_run {
    uint64_t at, n;        /* bytes */
    uint64_t first, count; /* values */
} ox_run;

/* What only the format can produce. */
typedef struct ox_data {
    enum { OX_RUNS, OX_VARINTS, OX_OFFSETS, OX_BYTES, OX_INDICES } form;
    const ox_run *runs;
    size_t n;
    uint8_t bits;           /* of a value as it is read */
    const uint64_t *ends;   /* strings: where each ends */
    const int64_t *indices; /* sparse: linear, or rank of them for each value */
    const uint64_t *shape;
    uint32_t rank;
    uint64_t count; /* of values */
    bool linear;
} ox_data;

/* What a model says of a file with data. */
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
    tnf_attrs linked; /* data files that were looked at for other names, by their names */
} ox_state;

tnf_status tnf_ox_push(tnf_reader *r, ox_data data, uint64_t *key, tnf_error *e);
tnf_status tnf_ox_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);

/* -------------------------------------------------------------------- tensor */

/* A TensorProto's fields. */
typedef struct ox_tensor {
    tnf_str name;
    uint64_t *shape;
    uint64_t type, elements, at;
    const ox_type *known;
    tnf_protobuf_field raw; /* number 0: there is none */
    uint64_t external;      /* 1: elsewhere */
    tnf_str location, offset, length, checksum;
    tnf_buf runs; /* ox_run: of all typed fields */
    uint64_t nvalues;
    uint32_t rank;
    uint8_t typed; /* which field the values are of; 0: none */
    bool located;
} ox_tensor;

/* Reads it; what it says must be whole. Its buffer is the caller's to free. */
tnf_status tnf_ox_read(ox_tensor *t, tnf_reader *r, const tnf_protobuf *message, tnf_error *e);
/* Adds dimensions: one, or packed ones. */
tnf_status tnf_ox_dims(ox_tensor *t, tnf_reader *r, tnf_protobuf m, tnf_error *e);
/* Where its data are. */
tnf_status tnf_ox_place(tnf_part *part, const ox_tensor *t, tnf_reader *r, tnf_error *e);
tnf_status tnf_ox_strings(tnf_part parts[2], const ox_tensor *t, tnf_reader *r, tnf_error *e);

/* --------------------------------------------------------------------- sums */

/* Notes the checksum of the file that a tensor is in, if it has one. */
tnf_status tnf_ox_keep_sum(tnf_reader *r, const ox_tensor *t, const struct tnf_origin *origin,
                           uint64_t size, tnf_error *e);
tnf_status tnf_ox_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e);

/* ------------------------------------------------------------------- outside */

#define OX_MAX_FILE     ((uint64_t)INT32_MAX) /* what protobuf takes */
#define OX_MAX_LOCATION 255u
#define OX_MAX_PLACE    (OX_MAX_LOCATION + 160u) /* its name at first is a little longer */

/* A second file for data. */
typedef struct ox_outside {
    tnf_str location; /* its name; n is 0: there is none */
    uint64_t least;   /* bytes of a tensor that goes there */
    uint64_t align, end;
    tnf_buf objects; /* const tnf_object *, one after the other in the file */
} ox_outside;

/* Which tensors go there, if any do, and what it is called. */
tnf_status tnf_ox_choose_place(ox_outside *x, tnf_writer *w, const tnf_value *model, tnf_error *e);
bool tnf_ox_is_outside(const ox_outside *x, const tnf_object *o);
/* The next tensor of it, and where it will be. */
tnf_status tnf_ox_go_outside(uint64_t *at, ox_outside *x, const tnf_object *o, tnf_error *e);
/* The fields of a tensor whose data are there; gives their bytes. */
size_t tnf_ox_put_place(uint8_t out[OX_MAX_PLACE], const ox_outside *x, uint64_t offset,
                        uint64_t n);
tnf_status tnf_ox_put_outside(tnf_writer *w, const ox_outside *x, tnf_error *e);
tnf_status tnf_ox_too_large(tnf_error *e);

/* --------------------------------------------------------------------- write */

enum { OX_WRITE_BARE, OX_WRITE_EXTERNAL, OX_WRITE_LOCATION, OX_WRITE_ALIGN };
extern const tnf_option_info tnf_ox_write_options[];
tnf_status tnf_ox_fits(tnf_fit *fit, tnf_error *e);
/* A model of these tensors as initializers, without their data: what would have been kept of one.
 */
tnf_status tnf_ox_bare(tnf_buf *b, const tnf_catalog *c, const tnf_allocator *alloc, tnf_error *e);
tnf_status tnf_ox_write(tnf_writer *w, tnf_error *e);

#endif
