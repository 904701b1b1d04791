/* SPDX-License-Identifier: MIT */
/* What the files of the primitiv format share.
 *
 * A parameter's path is an array of names; a tensor has one name. They are the same thing said
 * twice: names are joined with dots, and a dot that is part of a name is written "\.". Backslashes
 * count only before a dot, where each is doubled, so every name is some path and every path some
 * name:
 *
 *   ["encoder","w"]  encoder.w        ["a.b"]    a\.b         ["a\","b"]  a\\.b
 *   [""]             (empty)          ["",""]    .            ["a\b"]     a\b
 *
 * A statistic "m" of w is the tensor "w@m", with the attribute primitiv.stat = "m".
 */
#ifndef TNF_PRIMITIV_H
#define TNF_PRIMITIV_H

#include "format.h"

/* data_type of the header, divided by 0x100. */
typedef enum prim_type {
    PRIM_SHAPE,
    PRIM_TENSOR,
    PRIM_PARAMETER,
    PRIM_MODEL,
    PRIM_OPTIMIZER,
    PRIM_TYPES
} prim_type;

extern const char *const prim_type_names[PRIM_TYPES];

#define PRIM_MAX_DIMS 8u
#define PRIM_VALUE    "value" /* the tensor of a Tensor or Parameter file, which has no path */
#define PRIM_TRAILING "primitiv.trailing"

/* A name, read as a path: one symbol after the other. */
typedef struct prim_path {
    const char *p, *end;
    size_t slashes; /* backslashes still to come */
    bool dot;       /* then a dot that is data */
} prim_path;

enum { PRIM_END = -2, PRIM_NEXT = -1 }; /* no more; the next element begins; else a byte */

prim_path prim_path_of(tnf_str name);
int prim_path_next(prim_path *path);
/* How many elements; at least one. */
uint64_t prim_path_elements(tnf_str name);
/* The other way: one element more. `last`: none follows, otherwise a dot is put after it. */
void prim_path_put(tnf_buf *name, tnf_str element, bool last);
/* By elements, each by its bytes, as primitiv orders the parameters of a model. */
int prim_path_compare(const tnf_object *a, const tnf_object *b);

/* ------------------------------------------------------ marks.c: attributes */

tnf_str prim_text_of(const tnf_value *v); /* text or bytes; p is NULL if it is neither */
bool prim_number_of(const tnf_value *v, uint64_t *out);
int prim_compare_keys(tnf_str a, tnf_str b);
bool prim_is_stat(const tnf_object *o);
uint64_t prim_batch_of(const tnf_object *o); /* above 1 only if the last axis is the batch */
uint32_t prim_dims_of(const tnf_object *o);
/* The name of the parameter that a statistic belongs to: "w" for "w@m"; p NULL if none. */
tnf_str prim_owner_of(const tnf_object *o);

/* A map of configs, or its other form, {"$pairs": [[key, value], …]}; from NULL: neither. */
typedef struct prim_configs {
    const tnf_value *from;
    size_t n;
} prim_configs;

typedef struct prim_config {
    tnf_str key;
    const tnf_value *value;
} prim_config;

prim_configs prim_configs_of(const tnf_value *map);
bool prim_config_at(prim_config *out, const prim_configs *all, size_t i);
bool prim_config_u32(const tnf_value *v, uint32_t *out);
bool prim_config_f32(const tnf_value *v, float *out, bool *rounded);

/* primitiv.dims and primitiv.batch of a file; false if they are no shape. */
typedef struct prim_dims {
    uint64_t dims[PRIM_MAX_DIMS], batch;
    uint32_t n;
} prim_dims;

bool prim_shape_of(prim_dims *out, const tnf_value *dims, const tnf_value *batch);

/* ---------------------------------------------------------------- the format */

tnf_status prim_index(tnf_reader *r, tnf_error *e);
tnf_status prim_write(tnf_writer *w, tnf_error *e);
tnf_fate prim_takes(const tnf_object *o, const char **reason);
tnf_status prim_fits(tnf_fit *fit, tnf_error *e);
/* The kind of file that a catalog makes, by the options and by what it holds. With a fit, what is
 * to be dropped does not count. */
prim_type prim_type_for(const tnf_catalog *c, const tnf_option_value *options, const tnf_fit *fit);

/* In the order of the write options. */
enum { PRIM_OPTION_TYPE, PRIM_OPTION_ORDER, PRIM_OPTION_SORT };
enum { PRIM_ORDER_PATH, PRIM_ORDER_FILE };
#define PRIM_TYPE_AUTO 0u /* of PRIM_OPTION_TYPE; then 1 + prim_type */

#endif
