/* SPDX-License-Identifier: MIT */
/* zTensor 1.x: what its reader and its writer must agree on. */
#ifndef TNF_ZTENSOR1_H
#define TNF_ZTENSOR1_H

#include "formats/ztensor_old/old.h"

#define ZT1_MAGIC "ZTEN1000"

/* Layouts and types that have another name in the file than here. */
typedef struct zt1_name {
    const char *file, *here;
} zt1_name;

extern const zt1_name tnf_zt1_layouts[], tnf_zt1_types[]; /* end with NULL */
/* The types a part can have by itself, "bool" among them. */
#define ZT1_DTYPES "f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 bool"

tnf_status tnf_zt1_index(tnf_reader *r, tnf_error *e);

#endif
