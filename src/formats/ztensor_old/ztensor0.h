/* SPDX-License-Identifier: MIT */
/* Shared by the reader and the writer of zTensor 0.1. */
#ifndef TNF_ZTENSOR0_H
#define TNF_ZTENSOR0_H

#include "formats/ztensor_old/old.h"

#define ZT0_MAGIC  "ZTEN0001"

/* The declared layout of a tensor whose bytes are dense. */
#define ZT0_LAYOUT "ztensor.layout"
/* Unknown fields of an entry, as one attribute … */
#define ZT0_CUSTOM "ztensor.custom"
/* … and the fields that Tenfold adds: the attributes of the tensor, those of the file (in the first
 * entry), and in a file without tensors a mark that the entry is only for them. */
#define ZT0_ATTRS  "tenfold.attrs"
#define ZT0_FILE   "tenfold.file"
#define ZT0_EMPTY  "tenfold.empty"

#define ZT0_TYPES  13
/* Names of types in files and in Tenfold, in the order of the released readers' list. */
extern const char *const tnf_zt0_dtypes[ZT0_TYPES], *const tnf_zt0_types[ZT0_TYPES];

/* Is it a field of the format? */
bool tnf_zt0_is_field(tnf_str key);

tnf_status tnf_zt0_index(tnf_reader *r, tnf_error *e);

#endif
