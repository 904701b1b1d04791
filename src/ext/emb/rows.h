/* SPDX-License-Identifier: MIT */
/* The rows of a matrix as floats, independent of their storage. */
#ifndef TNF_EXT_EMB_ROWS_H
#define TNF_EXT_EMB_ROWS_H

#include "base/alloc.h"
#include "kernels/dot.h"

typedef enum tnf_rows_kind {
    TNF_ROWS_F32,   /* used in place: aligned, in the byte order of the machine */
    TNF_ROWS_LOOSE, /* f32 in the file's byte order or unaligned: copied a block at a time */
    TNF_ROWS_F16,   /* widened by the kernels */
    TNF_ROWS_BF16,  /* widened by the kernels */
    TNF_ROWS_SMALL, /* any other type that fits into floats: decoded */
    TNF_ROWS_WIDE,  /* f64 and integers of 32 and 64 bits: decoded to doubles */
    TNF_ROWS_PQ
} tnf_rows_kind;

/* A part of the tensor: mapped by the file, or read. */
typedef struct tnf_lent {
    const void *p;
    void *owned;
    size_t size;
} tnf_lent;

typedef struct tnf_rows {
    tnf_rows_kind kind;
    const tnf_type *type;
    const tnf_kernels *kernels;
    tnf_allocator alloc;
    uint64_t n;
    size_t d;
    tnf_lent data; /* dense: the elements */
    /* The parts with the elements, the codes and the norms of rows, if they are mapped. With
     * `reads`, rows are read from the file and not from the mapping. That is slower, but a
     * truncated file gives an error and not a signal. */
    const tnf_part *data_at, *codes_at, *norms_at;
    bool reads;
    /* pq: code m of a row means the centroid codebooks[m][code], d / m floats. */
    tnf_lent codes, codebooks, projection, norms;
    size_t m, k;
} tnf_rows;

/* The caller frees the rows even after an error. Allocates at most *memory bytes, and subtracts
 * them from *memory. */
tnf_status tnf_rows_open(tnf_rows *r, const tnf_object *object, const tnf_kernels *kernels,
                         const tnf_allocator *alloc, uint64_t *memory, tnf_error *e);
void tnf_rows_free(tnf_rows *r);

/* Reads a part. */
tnf_status tnf_lent_read(tnf_lent *out, const tnf_part *part, const tnf_allocator *alloc,
                         uint64_t *memory, tnf_error *e);
/* Lends a part, or reads it. */
tnf_status tnf_lend(tnf_lent *out, const tnf_part *part, const tnf_allocator *alloc,
                    uint64_t *memory, tnf_error *e);
void tnf_lent_free(tnf_lent *l, const tnf_allocator *alloc);

/* Rows as floats: in place, or in `room` for count x d floats. Not for wide rows and pq. */
const float *tnf_rows_block(const tnf_rows *r, uint64_t first, size_t count, float *room);
/* The same as doubles, for any kind except pq. */
void tnf_rows_wide(const tnf_rows *r, uint64_t first, size_t count, double *room);

/* One row as doubles, for any kind except pq; with `reads`, from the file. */
tnf_status tnf_rows_get_wide(const tnf_rows *r, uint64_t row, double *dst, tnf_error *e);
/* One row as floats, reconstructed if necessary. */
tnf_status tnf_rows_get(const tnf_rows *r, uint64_t row, float *dst, tnf_error *e);
/* The sum of some rows. */
tnf_status tnf_rows_sum(const tnf_rows *r, const uint64_t *rows, size_t n, float *dst,
                        tnf_error *e);

/* pq.c */
tnf_status tnf_pq_open(tnf_rows *r, const tnf_object *object, uint64_t *memory, tnf_error *e);
/* Adds a row, before the projection and times its norm, to dst. */
tnf_status tnf_pq_add(const tnf_rows *r, uint64_t row, float *dst, tnf_error *e);
/* The same for codes and a norm from elsewhere. */
tnf_status tnf_pq_add_codes(const tnf_rows *r, uint64_t row, const uint8_t *codes, float norm,
                            float *dst, tnf_error *e);
/* dst = src times the transposed projection; src has TNF_PADDED(d) floats and is aligned. */
void tnf_pq_rotate(const tnf_rows *r, const float *src, float *dst);
/* out = query times the projection, from which tables are made. */
void tnf_pq_rotate_query(const tnf_rows *r, const float *query, float *out);
/* tables[m * 256 + c] is the dot product of a rotated query with centroid c of piece m (with NULL,
 * of the centroid with itself); NaN for codes without a centroid. */
void tnf_pq_tables(const tnf_rows *r, const float *rotated, float *tables);
/* Does the projection keep lengths? Then the length of a row follows from its codes. */
bool tnf_pq_keeps_lengths(const tnf_rows *r);

#endif
