/* SPDX-License-Identifier: MIT */
/* The hashes of tensors, from which content_hash.c computes the hash of a file. */
#ifndef TNF_CORE_LOOK_LEAVES_H
#define TNF_CORE_LOOK_LEAVES_H

#include "base/digest.h"
#include "core/core.h"
#include "core/look/progress.h"

#define TNF_HASH_BYTES 32u

static inline uint64_t tnf_count_leaves(const tnf_part *part)
{
    return part->nbytes / TNF_LEAF_BYTES + (part->nbytes % TNF_LEAF_BYTES != 0);
}

/* The position of the first leaf of part `k` among the leaves of its tensor. */
uint64_t tnf_leaves_before(const tnf_object *o, uint16_t k);

/* The elements of every hash: a number is a u64, little-endian; a text is its length and its
 * bytes. */
tnf_status tnf_content_begin(tnf_digester *d, const char *title, tnf_error *e);
void tnf_content_number(tnf_digester *d, uint64_t v);
void tnf_content_text(tnf_digester *d, const void *p, size_t n);

/* Hashes all tensors of a file, in file order; `out` has room for one hash each. Reports leaves,
 * tensors and progress as the options request. */
tnf_status tnf_content_tensors(uint8_t (*out)[TNF_HASH_BYTES], const tnf_file *file,
                               const tnf_hash_options *options, tnf_arena *arena, tnf_error *e);

/* For hashing in several places: can the leaves of part `k` be hashed separately? */
bool tnf_content_cuts(const tnf_object *o, uint16_t k);
/* Hashes n leaves of a part, from `first` on, in the calling thread; all of them if the part cannot
 * be divided. For an empty part, tries to read it. `progress` reports on this call only. */
tnf_status tnf_content_some(uint8_t *out, const tnf_file *file, size_t object, uint16_t k,
                            uint64_t first, uint64_t n, const tnf_progress *progress, tnf_error *e);
/* The hash of a tensor from the hashes of its leaves, those of its first part first. */
tnf_status tnf_content_of_leaves(uint8_t out[TNF_HASH_BYTES], const tnf_object *o,
                                 const uint8_t *leaves, tnf_error *e);
/* The hash of a file from the hashes of its tensors, in file order. */
tnf_status tnf_content_of_tensors(uint8_t out[TNF_HASH_BYTES], const tnf_file *file,
                                  const uint8_t (*tensors)[TNF_HASH_BYTES], tnf_error *e);

#endif
