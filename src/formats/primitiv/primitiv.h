/* SPDX-License-Identifier: MIT */
/* Shared by the files of the primitiv format.
 *
 * A parameter's path and its tensor's name are equivalent: see formats/primitiv/path.h. The
 * attributes of tensors and of the file are in formats/primitiv/marks.h.
 */
#ifndef TNF_PRIMITIV_H
#define TNF_PRIMITIV_H

#include "format.h"
#include "formats/primitiv/marks.h"
#include "formats/primitiv/path.h"

/* data_type of the header, divided by 0x100. */
typedef enum prim_type {
    PRIM_SHAPE,
    PRIM_TENSOR,
    PRIM_PARAMETER,
    PRIM_MODEL,
    PRIM_OPTIMIZER,
    PRIM_TYPES
} prim_type;

extern const char *const tnf_prim_type_names[PRIM_TYPES];

#define PRIM_TRAILING "primitiv.trailing"

tnf_status tnf_prim_index(tnf_reader *r, tnf_error *e);
tnf_status tnf_prim_write(tnf_writer *w, tnf_error *e);
tnf_fate tnf_prim_takes(const tnf_object *o, const char **reason);
tnf_status tnf_prim_fits(tnf_fit *fit, tnf_error *e);
/* The kind of file for a catalog, by the options and its content. Content that `fit` drops does not
 * count. */
prim_type tnf_prim_type_for(const tnf_catalog *c, const tnf_option_value *options,
                            const tnf_fit *fit);

/* Positions in the write options. */
enum { PRIM_OPTION_TYPE, PRIM_OPTION_ORDER, PRIM_OPTION_SORT };
enum { PRIM_ORDER_PATH, PRIM_ORDER_FILE };
#define PRIM_TYPE_AUTO 0u /* value of PRIM_OPTION_TYPE; others are 1 + prim_type */

#endif
