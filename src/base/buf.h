/* SPDX-License-Identifier: MIT */
/* A growable buffer with a maximum size. Failures are sticky: after one, writes are no-ops, and
 * tnf_buf_status() reports it. */
#ifndef TNF_BASE_BUF_H
#define TNF_BASE_BUF_H

#include "base/alloc.h"

typedef struct tnf_buf {
    tnf_allocator alloc;
    uint8_t *p;
    size_t n, capacity;
    uint64_t max;
    tnf_status status;
} tnf_buf;

void tnf_buf_init(tnf_buf *b, const tnf_allocator *alloc, uint64_t max);
void tnf_buf_free(tnf_buf *b);
void tnf_buf_put(tnf_buf *b, const void *p, size_t n);
void tnf_buf_puts(tnf_buf *b, const char *s);
void tnf_buf_printf(tnf_buf *b, const char *format, ...) TNF_PRINTF(2, 3);
void tnf_buf_u8(tnf_buf *b, uint8_t v);
void tnf_buf_u32(tnf_buf *b, uint32_t v); /* little-endian */
void tnf_buf_u64(tnf_buf *b, uint64_t v); /* little-endian */
/* Two lower-case hexadecimal digits for each byte. */
void tnf_buf_hex(tnf_buf *b, const void *bytes, size_t n);
/* Appends `first`, then the low `width` bytes of v (up to 8), most significant first. */
void tnf_buf_wide(tnf_buf *b, unsigned first, uint64_t v, unsigned width);
/* TNF_OK, TNF_ENOMEM or TNF_ELIMIT ("what" is over its maximum). */
tnf_status tnf_buf_status(const tnf_buf *b, const char *what, tnf_error *e);

#endif
