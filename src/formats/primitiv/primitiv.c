/* SPDX-License-Identifier: MIT */
/* primitiv files: a sequence of MessagePack objects without a container.
 *
 *   u32 0  u32 1                 version 0.1
 *   u32 type                     0x000 Shape … 0x400 Optimizer, then that object:
 *
 *   Shape      array of u32 dims, u32 batch
 *   Tensor     Shape, bin        float32, little-endian, the first dimension fastest
 *   Parameter  Tensor, u32 n, n × (str key, Tensor)        its value and its statistics
 *   Model      u32 n, n × (array of str path, Parameter)
 *   Optimizer  map of str to u32, map of str to float
 *
 * u32 is always ce and four bytes, big-endian; float is always ca: primitiv reads nothing else (in
 * lenient mode any integer is accepted). Heads of str, bin, array and map are written in the
 * shortest form and read in any width.
 */
#include "formats/primitiv/primitiv.h"

#include <string.h>

const char *const tnf_prim_type_names[PRIM_TYPES] = { "shape", "tensor", "parameter", "model",
                                                      "optimizer" };

static int probe_primitiv(const tnf_probe *p)
{
    int named = strcmp(p->ext, "primitiv") == 0 ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
    if (p->nhead < 15 || p->head[0] != 0xce || p->head[5] != 0xce || p->head[10] != 0xce)
        return named;
    uint32_t major = tnf_be32(p->head + 1), minor = tnf_be32(p->head + 6);
    uint32_t type = tnf_be32(p->head + 11);
    bool known = type % 0x100 == 0 && type / 0x100 < PRIM_TYPES;
    if (major == 0 && minor == 1)
        return known ? TNF_PROBE_MAGIC : TNF_PROBE_STRUCTURE;
    return known && major < 16 && minor < 16 ? TNF_PROBE_PLAUSIBLE : named;
}

static const tnf_option_info write_options[] = {
    { "type", TNF_OPTION_CHOICE, "auto|shape|tensor|parameter|model|optimizer", "auto",
      "kind of file; auto: the kind of the source, else a model" },
    { "order", TNF_OPTION_CHOICE, "path|file", "path",
      "order of a model's parameters: by path, as primitiv does, or as in the source" },
    { "sort", TNF_OPTION_BOOL, NULL, "no",
      "sort statistics and configs by key; no: keep the order of the source" },
    { 0 },
};

const tnf_format tnf_format_primitiv = {
    .name = "primitiv",
    .title = "primitiv parameters, models and optimizers",
    .extensions = "primitiv",
    .family = "primitiv",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_EDIT,
    .can = { .types = "f32",
             .layouts = "dense",
             .order_f = true,
             .only_f = true,
             .zero_rank = true,
             .extras = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = "primitiv.type primitiv.dims primitiv.batch primitiv.uint_configs "
                           "primitiv.float_configs",
             .object_attrs = "primitiv.path primitiv.stat primitiv.batch primitiv.order "
                             "primitiv.of",
             .derived = "primitiv.path primitiv.type=model",
             .takes = tnf_prim_takes,
             .fits = tnf_prim_fits },
    .write_options = write_options,
    .probe = probe_primitiv,
    .index = tnf_prim_index,
    .write = TNF_WRITES(tnf_prim_write),
};
