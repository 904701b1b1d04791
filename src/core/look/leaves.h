/* SPDX-License-Identifier: MIT */
/* The hashes of tensors, of which content_hash.c makes that of a file. */
#ifndef TNF_CORE_LOOK_LEAVES_H
#define TNF_CORE_LOOK_LEAVES_H

#include "base/digest.h"
#include "core/core.h"

#define TNF_HASH_BYTES 32u

/* What every hash is put together of: a number is a u64, little-endian, a text its length and its
 * bytes. */
tnf_status tnf_hash_begin(tnf_digester *d, const char *title, tnf_error *e);
void tnf_hash_number(tnf_digester *d, uint64_t v);
void tnf_hash_text(tnf_digester *d, const void *p, size_t n);

/* Of all tensors of a file, in its order, into room for one hash each. Tells leaves, tensors and
 * progress as the options wish. */
tnf_status tnf_hash_tensors(uint8_t (*out)[TNF_HASH_BYTES], const tnf_file *file,
                            const tnf_hash_options *options, tnf_arena *arena, tnf_error *e);

#endif
