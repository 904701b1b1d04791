/* SPDX-License-Identifier: MIT */
/* Shared by the reader and the writer of zTensor 1.x. */
#ifndef TNF_ZTENSOR1_H
#define TNF_ZTENSOR1_H

#include "formats/ztensor_old/old.h"

#define ZT1_MAGIC "ZTEN1000"

/* Layouts and types whose names in files differ from Tenfold's. */
typedef struct zt1_name {
    const char *file, *here;
} zt1_name;

extern const zt1_name tnf_zt1_layouts[], tnf_zt1_types[]; /* terminated by NULL */
/* The types of a part without a logical type; "bool" is one of them. */
#define ZT1_DTYPES "f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 bool"

tnf_status tnf_zt1_index(tnf_reader *r, tnf_error *e);

#endif
