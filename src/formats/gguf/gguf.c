/* SPDX-License-Identifier: MIT */
/* GGUF (ggml, llama.cpp), versions 1, 2 and 3, in both byte orders:
 *
 *   magic      "GGUF"
 *   version    u32: 1, 2 or 3; in the wrong byte order its low 16 bits are 0
 *   n_tensors  u64 (version 1: u32, like all lengths, counts and dimensions)
 *   n_keys     u64
 *   keys       see the drawing in keys.c
 *   entries    see the drawing in entries.c
 *   padding    to a multiple of general.alignment (a key; 32 without it)
 *   data       see the drawing in places.c
 *
 * Version 3 differs from version 2 only by its number. The byte order applies to everything:
 * header, tensors, and fields of blocks. The only exception: in some big-endian files the fields of
 * blocks are little-endian, because the blocks were made on another machine (blocks=little).
 */
#include "formats/gguf/gguf.h"

#include <stdlib.h>

#define MAGIC   "GGUF"
#define MAGIC_N 4u

static int probe_gguf(const tnf_probe *p)
{
    return p->nhead >= MAGIC_N && memcmp(p->head, MAGIC, MAGIC_N) == 0 ? TNF_PROBE_MAGIC
                                                                       : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- reading */

static tnf_status read_version(gguf_in *in, gguf_file *g, tnf_error *e)
{
    static const char *const versions[] = { "", "1", "2", "3" };
    TNF_TRY(tnf_gguf_need(in, MAGIC_N, e));
    if (memcmp(in->p, MAGIC, MAGIC_N) != 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "the file does not begin with GGUF");
    in->p += MAGIC_N;
    in->at += MAGIC_N;
    TNF_TRY(tnf_gguf_need(in, 4, e));
    in->big = tnf_le16(in->p) == 0 && tnf_le16(in->p + 2) != 0;
    TNF_TRY(tnf_gguf_u32(in, &g->version, e));
    if (g->version < 1 || g->version > 3)
        return tnf_fail(e, TNF_EUNSUPPORTED, MAGIC_N, "unsupported version %u of GGUF", g->version);
    in->v1 = g->version == 1;
    in->version = g->version;
    g->big = in->big;
    in->r->version = versions[g->version];
    return TNF_OK;
}

static tnf_status set_facts(tnf_reader *r, const gguf_file *g, tnf_error *e)
{
    const tnf_value version = { .kind = TNF_UINT, .dtype = TNF_U32, .as.u = g->version };
    if (g->version != 3)
        TNF_TRY(tnf_set_attr(r, "gguf_file.version", version, e));
    if (g->big)
        TNF_TRY(tnf_set_attr(r, "gguf_file.endian", tnf_value_string("big"), e));
    return TNF_OK;
}

static tnf_status read_header(gguf_in *in, gguf_file *g, tnf_error *e)
{
    uint64_t tensors, keys, at = 8;
    in->what = "the header";
    TNF_TRY(read_version(in, g, e));
    TNF_TRY(tnf_gguf_length(in, &tensors, e));
    TNF_TRY(tnf_gguf_length(in, &keys, e));
    uint64_t key = in->v1 ? 9 : 13, entry = in->v1 ? 20 : 24; /* least sizes */
    TNF_TRY(tnf_gguf_count(in, tensors, entry, "tensors", at, e));
    TNF_TRY(tnf_gguf_count(in, keys, key, "keys", at + (in->v1 ? 4 : 8), e));
    TNF_TRY(tnf_gguf_keys(in, g, keys, e));
    TNF_TRY(tnf_gguf_entries(in, g, tensors, e));
    g->header_end = in->at;
    return TNF_OK;
}

static tnf_status index_gguf(tnf_reader *r, tnf_error *e)
{
    gguf_in in = { .r = r, .size = r->source->size };
    gguf_file *g = tnf_arena_alloc(r->arena, sizeof *g);
    if (!g)
        return tnf_arena_fail(r->arena, "the header", e);
    g->blocks_little = r->options[GGUF_OPTION_BLOCKS].u == GGUF_BLOCKS_LITTLE;
    TNF_TRY(read_header(&in, g, e));
    /* The order must be kept for models of ggml. A file without an architecture only holds tensors
     * of another format, so its order does not matter. */
    r->ordered = tnf_gguf_attr(&r->catalog->attrs, "general.architecture") != NULL;
    TNF_TRY(set_facts(r, g, e));
    r->state = g;
    TNF_TRY(tnf_gguf_places(r, g, e));
    TNF_TRY(tnf_gguf_set(r, g, e));
    g->entries = NULL; /* they are in scratch memory */
    return TNF_OK;
}

/* -------------------------------------------------- blocks in the other order */

static int by_start(const void *a, const void *b)
{
    uint64_t key = *(const uint64_t *)a, at = (*(const gguf_entry *const *)b)->offset;
    return key < at ? -1 : key > at;
}

/* Reads bytes at `offset` that begin or end inside a block. */
static tnf_status read_cut(tnf_reader *r, const gguf_entry *t, size_t block, uint64_t offset,
                           uint8_t *dst, size_t n, tnf_error *e)
{
    uint8_t whole[512];
    size_t skip = (size_t)(offset % block);
    TNF_TRY(tnf_source_read(r->source, t->offset + offset - skip, whole, block, e));
    tnf_gguf_swap(t->type, block, whole, block);
    memcpy(dst, whole + skip, n);
    return TNF_OK;
}

static tnf_status decode_gguf(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                              tnf_error *e)
{
    const gguf_file *g = r->state;
    const gguf_entry *const *found = bsearch(&key, g->by_place, g->nblocks, sizeof *g->by_place,
                                             by_start);
    if (!found)
        return tnf_fail(e, TNF_EBUG, key, "no blocks begin at this offset");
    const gguf_entry *t = *found;
    size_t block = tnf_gguf_layout(t->type)->block_bytes;
    uint8_t *to = dst;
    for (size_t part; n > 0; offset += part, to += part, n -= part) {
        size_t skip = (size_t)(offset % block);
        if (skip == 0 && n >= block) {
            part = n / block * block;
            TNF_TRY(tnf_source_read(r->source, t->offset + offset, to, part, e));
            tnf_gguf_swap(t->type, block, to, part);
            continue;
        }
        part = n < block - skip ? n : block - skip;
        TNF_TRY(read_cut(r, t, block, offset, to, part, e));
    }
    return TNF_OK;
}

static const tnf_option_info read_options[] = {
    { "blocks", TNF_OPTION_CHOICE, "big|little", "big",
      "byte order of the blocks in a big-endian file: little if they were quantized on a "
      "little-endian machine" },
    { "shards", TNF_OPTION_CHOICE, "beside|none", "beside",
      "where to look for the other files of the model; none: only this file" },
    { 0 },
};

const tnf_format tnf_format_gguf = {
    .name = "gguf",
    .title = "GGUF (ggml, llama.cpp)",
    .extensions = "gguf",
    .family = "gguf",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_EDIT,
    .can_shift = true,
    .rules = TNF_RULE_DATA_START | TNF_RULE_NO_OVERLAP,
    .can = { .types = "f32 f16 bf16 f64 i8 i16 i32 i64",
             .layouts = "dense gguf.q4_0/1 gguf.q4_1/1 gguf.q5_0/1 gguf.q5_1/1 gguf.q8_0/1 "
                        "gguf.q8_1/1 gguf.q2_k/1 gguf.q3_k/1 gguf.q4_k/1 gguf.q5_k/1 gguf.q6_k/1 "
                        "gguf.q8_k/1 gguf.iq2_xxs/1 gguf.iq2_xs/1 gguf.iq3_xxs/1 gguf.iq1_s/1 "
                        "gguf.iq4_nl/1 gguf.iq3_s/1 gguf.iq2_s/1 gguf.iq4_xs/1 gguf.iq1_m/1 "
                        "gguf.tq1_0/1 gguf.tq2_0/1 gguf.mxfp4/1 gguf.nvfp4/1 gguf.q1_0/1 "
                        "gguf.q2_0/1",
             .zero_rank = true,
             .unsigned_as_signed = true,
             .max_rank = GGUF_MAX_RANK,
             .attrs = TNF_HOLDS_TYPED,
             .holds_attr = tnf_gguf_holds_attr,
             .own_prefix = GGUF_PREFIX,
             .narrow_numbers = true,
             .takes = tnf_gguf_takes,
             .fits = tnf_gguf_fits,
             .derived = "gguf_file.version gguf_file.endian gguf_file.end gguf_file.padding "
                        "gguf_file.offsets" },
    .read_options = read_options,
    .write_options = tnf_gguf_write_options,
    .probe = probe_gguf,
    .index = index_gguf,
    .decode = decode_gguf,
    .write = TNF_WRITES(tnf_gguf_write),
    .programs = "llama.cpp gguf-py",
    .loads = tnf_gguf_loads,
    .opens_sets = true,
    .shard_attrs = tnf_gguf_shard_attrs,
};
