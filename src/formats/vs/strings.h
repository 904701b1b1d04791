/* SPDX-License-Identifier: MIT */
/* The strings of a strings/1 tensor in order, through a window of offsets and one of bytes. */
#ifndef TNF_VS_STRINGS_H
#define TNF_VS_STRINGS_H

#include "format.h"

typedef struct vs_strings {
    const tnf_part *offsets, *bytes; /* NULL: every string is empty */
    uint64_t count;
    tnf_allocator alloc;
    uint64_t first, n; /* strings in the window */
    uint64_t *at;      /* n + 1 offsets */
    size_t at_room;
    uint8_t *text;
    size_t text_room;
} vs_strings;

/* object may be NULL. */
void tnf_vs_strings_init(vs_strings *s, const tnf_object *object, const tnf_allocator *alloc);
void tnf_vs_strings_free(vs_strings *s);
/* Returns the string of a row, valid until the next call. Rows must be requested in ascending
 * order. */
tnf_status tnf_vs_strings_at(vs_strings *s, uint64_t row, tnf_str *out, tnf_error *e);

#endif
