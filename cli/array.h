/* SPDX-License-Identifier: MIT */
/* A selection of a tensor, read in bounded blocks, and its elements as text. */
#ifndef TENFOLD_CLI_ARRAY_H
#define TENFOLD_CLI_ARRAY_H

#include "out.h"

#ifndef BLOCK_BYTES /* tests use smaller blocks */
#define BLOCK_BYTES ((size_t)8 << 20)
#endif

/* The user's selection: a tensor (or one part of it, flat) and a slice of each dimension. */
typedef struct view {
    tnf_object object; /* a copy: its shape and parts may be the two below */
    const tnf_type *type;
    tnf_slice *slices; /* object.rank of them */
    uint64_t *shape;   /* of the result; dimensions with a plain index are removed */
    uint32_t rank;
    uint64_t elements;
    uint64_t flat; /* shape and part of a view of one part */
    tnf_part part;
} view;

/* A view of a complete object, or of one of its parts as a row of elements. */
tnf_status view_object(view *v, const tnf_object *object, tnf_error *error);
tnf_status view_part(view *v, const tnf_object *object, const tnf_part *part, tnf_error *error);
/* Narrows a complete view to a slice such as "0:4,:,-1". */
tnf_status view_slice(view *v, const char *text, tnf_error *error);
void view_free(view *v);

/* Goes through a view in C order, at most BLOCK_BYTES at a time. */
typedef struct blocks {
    const view *view;
    tnf_slice *now;     /* the block, as slices of the tensor */
    uint64_t *position; /* in each dimension of the tensor */
    uint32_t axis;      /* a block is a run of this dimension and all of the later ones */
    uint64_t run;
    bool done;
    unsigned char *bytes;
    size_t n;        /* bytes of this block */
    size_t elements; /* elements of this block */
} blocks;

tnf_status blocks_begin(blocks *b, const view *v, tnf_error *error);
/* Reads the next block; `elements` is 0 at the end. */
tnf_status blocks_next(blocks *b, tnf_error *error);
void blocks_end(blocks *b);
/* Reads `count` elements along the last dimension of the result, from `position` on. */
tnf_status view_row(const view *v, const uint64_t *position, uint64_t count, void *dst, size_t n,
                    tnf_error *error);

#define ELEMENT_TEXT 72
#define DECODED      512u

/* Packed elements. They are decoded in runs, as the caller requests them in order. */
typedef struct element_run {
    const tnf_type *type;
    const unsigned char *packed;
    size_t n, from, to;
    const tnf_object *times; /* the tensor if its elements are shown as texts; NULL: as numbers */
    double numbers[2 * DECODED];
} element_run;

/* Can elements of this type be shown as numbers? */
bool type_readable(const tnf_type *type);
void elements_begin(element_run *e, const tnf_type *type, const void *packed, size_t n);
/* The same for a view, whose elements may be times. */
void elements_of(element_run *e, const view *v, const void *packed, size_t n);
void element_json(element_run *e, size_t i, json *j);
int element_text(element_run *e, size_t i, char out[ELEMENT_TEXT]);

/* cat_text.c: human-readable text with brackets; the middle is left out unless `all`. */
tnf_status put_array(FILE *to, const view *v, bool all, tnf_error *error);
/* cat_strings.c: a tensor of strings, as JSON or with one string per line. */
bool is_strings(const tnf_object *object);
tnf_status json_strings(json *j, const view *v, tnf_error *error);
tnf_status csv_strings(FILE *to, const view *v, tnf_error *error);
tnf_status put_strings(FILE *to, const view *v, bool all, tnf_error *error);
/* Writes a text as a CSV cell. On a terminal, control characters are escaped. */
void csv_cell(FILE *to, tnf_str s);

/* cat_words.c: a tensor of texts, whose last dimension holds the characters of each text. */
bool is_words(const view *v);
tnf_status json_texts(json *j, const view *v, tnf_error *error);
tnf_status csv_words(FILE *to, const view *v, tnf_error *error);
tnf_status put_words(FILE *to, const view *v, bool all, tnf_error *error);

/* Fills in an error of the command itself, and returns its status. */
#define cat_fail(error, status, ...) (cat_message(error, status, __VA_ARGS__), (status))
void cat_message(tnf_error *error, tnf_status status, const char *format, ...) TNF_PRINTF(3, 4);

#endif
