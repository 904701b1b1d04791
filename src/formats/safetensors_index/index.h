/* SPDX-License-Identifier: MIT */
/* Reading (index.c) and writing (write.c) of an index, for the formats of kinds.c. */
#ifndef TNF_FORMATS_SAFETENSORS_INDEX_H
#define TNF_FORMATS_SAFETENSORS_INDEX_H

#include "format.h"

/* The format of the shards, and the names of the attributes. */
typedef struct tnf_index_kind {
    const char *format, *shards, *total_size, *metadata;
} tnf_index_kind;

tnf_status tnf_index_shards(tnf_reader *r, const tnf_index_kind *k, tnf_error *e);
tnf_status tnf_index_names(tnf_str text, uint32_t depth, tnf_arena *arena,
                           void (*take)(void *ctx, tnf_str name), void *ctx, tnf_error *e);
tnf_status tnf_verify_shards(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e);

tnf_status tnf_write_safetensors_index(tnf_writer *w, tnf_error *e);

int tnf_probe_safetensors_index(const tnf_probe *p);
int tnf_probe_pytorch_index(const tnf_probe *p);
int tnf_probe_flax_index(const tnf_probe *p);

#endif
