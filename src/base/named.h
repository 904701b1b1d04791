/* SPDX-License-Identifier: MIT */
/* A list of records of one size with a table of their names. Every record begins with its name, a
 * tnf_str; the list does not copy the bytes of names. */
#ifndef TNF_BASE_NAMED_H
#define TNF_BASE_NAMED_H

#include "base/buf.h"
#include "base/hash.h"

typedef struct tnf_named {
    tnf_buf records;
    size_t size;
    tnf_hash names;
} tnf_named;

/* The records may take at most `max` bytes. The struct must not be moved after this call. */
void tnf_named_init(tnf_named *list, size_t size, const tnf_allocator *alloc, uint64_t max);
void tnf_named_free(tnf_named *list);

uint32_t tnf_named_count(const tnf_named *list);
/* The position of a name, or TNF_HASH_NONE. */
uint32_t tnf_named_find(const tnf_named *list, tnf_str name);
/* The record at a position. The pointer is valid until another record is added. */
void *tnf_named_at(const tnf_named *list, uint32_t position);

/* Adds a copy unless the list has its name: *previous is the position of that record, or
 * TNF_HASH_NONE. */
tnf_status tnf_named_add(tnf_named *list, const void *record, uint32_t *previous, tnf_error *e);

#endif
