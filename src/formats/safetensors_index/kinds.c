/* SPDX-License-Identifier: MIT */
/* The formats whose models in several files have such an index. */
#include "formats/safetensors_index/index.h"

static const tnf_index_kind safetensors = { "safetensors", "safetensors.shards",
                                            "safetensors.total_size",
                                            "safetensors.index_metadata" };
static const tnf_index_kind pytorch = { "pytorch", "pytorch.shards", "pytorch.total_size",
                                        "pytorch.index_metadata" };
static const tnf_index_kind flax = { "flax", "flax.shards", "flax.total_size",
                                     "flax.index_metadata" };

static tnf_status index_safetensors(tnf_reader *r, tnf_error *e)
{
    return tnf_index_shards(r, &safetensors, e);
}

static tnf_status index_pytorch(tnf_reader *r, tnf_error *e)
{
    return tnf_index_shards(r, &pytorch, e);
}

static tnf_status index_flax(tnf_reader *r, tnf_error *e)
{
    return tnf_index_shards(r, &flax, e);
}

const tnf_format tnf_format_safetensors_index = {
    .name = "safetensors-index",
    .title = "safetensors in several files, by its index",
    .extensions = "json",
    .family = "safetensors",
    .caps = TNF_CAN_READ,
    .stands_for_shards = true,
    .index_suffix = ".index.json",
    .index_names = tnf_index_names,
    .can = { .attrs = TNF_HOLDS_TEXT,
             .file_attrs = "safetensors.metadata safetensors.index_metadata",
             .derived = "safetensors.shards safetensors.total_size" },
    .probe = tnf_probe_safetensors_index,
    .index = index_safetensors,
    .write_index = TNF_WRITES(tnf_write_safetensors_index),
    .index_name = ".safetensors.index.json",
    .verify = tnf_verify_shards,
};

const tnf_format tnf_format_pytorch_index = {
    .name = "pytorch-index",
    .title = "PyTorch checkpoints in several files, by their index",
    .extensions = "json",
    .family = "pytorch",
    .caps = TNF_CAN_READ,
    .stands_for_shards = true,
    .index_suffix = ".index.json",
    .index_names = tnf_index_names,
    .shown_as_index = true,
    .can = { .file_attrs = "pytorch.index_metadata",
             .derived = "pytorch.shards pytorch.total_size pytorch.calls" },
    .probe = tnf_probe_pytorch_index,
    .index = index_pytorch,
    .write_index = TNF_WRITES(tnf_write_safetensors_index),
    .index_name = ".bin.index.json",
    .verify = tnf_verify_shards,
};

const tnf_format tnf_format_flax_index = {
    .name = "flax-index",
    .title = "Flax's msgpack in several files, by its index",
    .extensions = "json",
    .family = "flax",
    .caps = TNF_CAN_READ,
    .stands_for_shards = true,
    .index_suffix = ".index.json",
    .index_names = tnf_index_names,
    .shown_as_index = true,
    .can = { .file_attrs = "flax.index_metadata", .derived = "flax.shards flax.total_size" },
    .probe = tnf_probe_flax_index,
    .index = index_flax,
    .verify = tnf_verify_shards,
};
