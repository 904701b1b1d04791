/* SPDX-License-Identifier: MIT */
#ifndef TNF_MODEL_DTYPE_H
#define TNF_MODEL_DTYPE_H

#include <tenfold/types.h>

/* Bytes of n elements packed without gaps; false on overflow or for a type of unknown width. */
bool tnf_type_bytes(uint64_t *out, const tnf_type *type, uint64_t n);
/* A known type by an id that need not be NUL-terminated, or NULL. */
const tnf_type *tnf_type_find(const char *id, size_t n);
/* Width in bytes of a storage dtype. */
size_t tnf_dtype_size(tnf_dtype dtype);
/* Is `id` one of the words of `list` (separated by spaces)? A NULL list contains everything. */
bool tnf_list_has(const char *list, const char *id);
/* Where numbers have the other byte order: how many bytes of this type are reversed together. */
size_t tnf_type_swap(const tnf_type *type);
/* The same for a part. With this flag it has a type of 8 bytes, but the pairs are integers of 16
 * bytes, for which the format has no type (core/save/adapt.c); it is not public. */
#define TNF_PART_PAIRS 4u
size_t tnf_part_swap(const tnf_part *part);
/* The alignment that a typed pointer to elements needs: the storage's width. */
size_t tnf_type_align(const tnf_type *type);

#endif
