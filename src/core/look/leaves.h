/* SPDX-License-Identifier: MIT */
/* The hashes of tensors, of which content_hash.c makes that of a file. */
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

/* Before the part `k`: where its leaves stand among those of its tensor. */
uint64_t tnf_leaves_before(const tnf_object *o, uint16_t k);

/* What every hash is put together of: a number is a u64, little-endian, a text its length and its
 * bytes. */
tnf_status tnf_hash_begin(tnf_digester *d, const char *title, tnf_error *e);
void tnf_hash_number(tnf_digester *d, uint64_t v);
void tnf_hash_text(tnf_digester *d, const void *p, size_t n);

/* Of all tensors of a file, in its order, into room for one hash each. Tells leaves, tensors and
 * progress as the options wish. */
tnf_status tnf_hash_tensors(uint8_t (*out)[TNF_HASH_BYTES], const tnf_file *file,
                            const tnf_hash_options *options, tnf_arena *arena, tnf_error *e);

/* For hashing in several places: can the leaves of part `k` be hashed separately? */
bool tnf_hash_cuts(const tnf_object *o, uint16_t k);
/* The hashes of n leaves of a part, from `first` on, by the calling thread; of all of them if it
 * cannot be cut. An empty part is tried to be read. `progress` is told of this call alone. */
tnf_status tnf_hash_some(uint8_t *out, const tnf_file *file, size_t object, uint16_t k,
                         uint64_t first, uint64_t n, const tnf_progress *progress, tnf_error *e);
/* The hash of a tensor from the hashes of its leaves, those of its first part first. */
tnf_status tnf_hash_of_leaves(uint8_t out[TNF_HASH_BYTES], const tnf_object *o,
                              const uint8_t *leaves, tnf_error *e);
/* The hash of a file from the hashes of its tensors, in file order. */
tnf_status tnf_hash_of_tensors(uint8_t out[TNF_HASH_BYTES], const tnf_file *file,
                               const uint8_t (*tensors)[TNF_HASH_BYTES], tnf_error *e);

#endif
