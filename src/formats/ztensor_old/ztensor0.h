/* SPDX-License-Identifier: MIT */
/* zTensor 0.1: what its reader and its writer must agree on. */
#ifndef TNF_ZTENSOR0_H
#define TNF_ZTENSOR0_H

#include "formats/ztensor_old/old.h"

#define ZT0_MAGIC  "ZTEN0001"

/* A layout that is not dense, though the bytes are. */
#define ZT0_LAYOUT "ztensor.layout"
/* Fields of an entry that the format does not know, as one attribute … */
#define ZT0_CUSTOM "ztensor.custom"
/* … and what Tenfold puts among them: the attributes of the tensor, those of the file (in the first
 * entry) and, in a file without tensors, that the entry is there for nothing else. */
#define ZT0_ATTRS  "tenfold.attrs"
#define ZT0_FILE   "tenfold.file"
#define ZT0_EMPTY  "tenfold.empty"

#define ZT0_TYPES  13
/* Names of types and of their counterparts here, in the order of the released readers' list. */
extern const char *const tnf_zt0_dtypes[ZT0_TYPES], *const tnf_zt0_types[ZT0_TYPES];

/* Is it a field that entries have by themselves? */
bool tnf_zt0_is_field(tnf_str key);

tnf_status tnf_zt0_index(tnf_reader *r, tnf_error *e);

#endif
