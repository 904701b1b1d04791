/* SPDX-License-Identifier: MIT */
/* finalfusion embeddings (.fifu): words, a matrix with a row for each, perhaps rows for parts of
 * words, perhaps norms. Little-endian.
 *
 *   "FiFu"  u32 version 0  u32 n  u32 ids[n]
 *   chunks: u32 id  u64 length  data
 *
 * Two dialects are read and written: that of finalfusion's own tools (in Rust and in Python), and
 * the literal text of the document "The finalfusion format v0", which no tool ever wrote. R2V, from
 * before the first release, is only read. See chunks.c for how they are distinguished.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

/* A single chunk without a header: is its length correct, and does it begin like a chunk? */
static bool is_chunk(const tnf_probe *p)
{
    if (p->nhead < FF_FRAME + 16 || tnf_le64(p->head + 4) != p->size - FF_FRAME)
        return false;
    const uint8_t *body = p->head + FF_FRAME;
    uint64_t room = (p->size - FF_FRAME) / 4;
    switch (tnf_le32(p->head)) {
    case FF_SIMPLE:
    case FF_BUCKET:
    case FF_FASTTEXT:
        return tnf_le64(body) <= room;
    case FF_EXPLICIT:
        return tnf_le64(body) <= room && tnf_le64(body + 8) <= room;
    case FF_DENSE:
        return tnf_ff_type_of(tnf_le32(body + 12)) != NULL;
    case FF_NORMS:
        return tnf_le32(body + 8) == FF_TYPE_F32;
    case FF_QUANTIZED:
        return p->nhead >= FF_FRAME + 36 && tnf_le32(body + 28) == FF_TYPE_U8 &&
               tnf_le32(body + 32) == FF_TYPE_F32;
    case FF_FLORET:
        return p->nhead >= FF_FRAME + 24 && tnf_le32(body + 16) - 1 < 4;
    default:
        return false;
    }
}

static int probe_finalfusion(const tnf_probe *p)
{
    if (p->nhead >= 4 && memcmp(p->head, FF_MAGIC, 4) == 0)
        return TNF_PROBE_MAGIC;
    if (p->nhead >= 11 && memcmp(p->head, FF_R2V_MAGIC "\0\0\0\0", 7) == 0)
        return TNF_PROBE_MAGIC;
    return is_chunk(p) ? TNF_PROBE_STRUCTURE : TNF_PROBE_NO;
}

static const tnf_option_info write_options[] = {
    { "dialect", TNF_OPTION_CHOICE, "real|seed", "real",
      "real: chunks as finalfusion's tools write them; seed: exactly as its document describes "
      "them" },
    { "reserve", TNF_OPTION_UINT, NULL, "0",
      "leave this many bytes of room in the metadata for later edits" },
    { 0 },
};

/* A file keeps its dialect. */
static void follow_dialect(const tnf_reader *like, tnf_option_value *options)
{
    const tnf_value attrs = tnf_attrs_value(&like->catalog->attrs);
    const tnf_value *d = tnf_value_get(&attrs, FF_ATTR("dialect"));
    tnf_option_value *o = &options[FF_OPTION_DIALECT];
    if (o->s == write_options[FF_OPTION_DIALECT].fallback)
        o->u = tnf_value_is(d, "seed");
}

const tnf_format tnf_format_finalfusion = {
    .name = "finalfusion",
    .title = "finalfusion embeddings",
    .extensions = "fifu",
    .family = "finalfusion",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_EDIT,
    .can = { .types = "f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 i128 u128",
             .layouts = "dense strings/1 pq/1",
             .zero_rank = true,
             .extras = true,
             .attrs = TNF_HOLDS_TYPED,
             .file_attrs = "finalfusion.metadata finalfusion.vocab finalfusion.min_n "
                           "finalfusion.max_n finalfusion.buckets finalfusion.hashes "
                           "finalfusion.seed finalfusion.bow finalfusion.eow " FF_BARE,
             .spelling = FF_BARE,
             .object_attrs = FF_PIECES,
             .derived = "finalfusion.chunks finalfusion.dialect finalfusion.words "
                        "finalfusion.vocab=simple",
             .unit_rows = tnf_ff_unit_rows,
             .folds = TNF_FOLD_FINALFUSION,
             .document = FF_ATTR("metadata"),
             .fits = tnf_ff_fits },
    .write_options = write_options,
    .probe = probe_finalfusion,
    .index = tnf_ff_index,
    .decode = tnf_ff_decode,
    .strings = tnf_ff_strings,
    .write = TNF_WRITES(tnf_ff_write),
    .follow = follow_dialect,
};
