/* SPDX-License-Identifier: MIT */
/* VS: points of a vector space with application data, in the order in which they were appended.
 *
 *   "VS" 00 00                                     signature, version 0
 *   '^' u32 length  rank dims… resolution pack paging attributes         one, before any point
 *   'P' u32 length  option appdata option u32 length vector              any number
 *   '0' u32 length  …                                                    deleted
 *   '$'                                                                  end; the rest is ignored
 *
 * This code reads and writes complete files; include/tenfold/points.h appends and deletes.
 * formats/vs/block.h has the bytes of each block.
 */
#include "formats/vs/vs.h"

static int probe_vs(const tnf_probe *p)
{
    if (p->nhead < TNF_VS_HEADER || p->head[0] != 'V' || p->head[1] != 'S')
        return TNF_PROBE_NO;
    bool named = strcmp(p->ext, "vsdb") == 0 || strcmp(p->ext, "vs") == 0;
    if (tnf_le16(p->head + 2) != 0) /* another version, or not a VS file */
        return named ? TNF_PROBE_STRUCTURE : TNF_PROBE_NO;
    return TNF_PROBE_MAGIC;
}

static const tnf_option_info read_options[] = {
    { "varint", TNF_OPTION_CHOICE, "lsb|msb", "lsb",
      "which seven bits of a number come first: the least significant ones, as in Protocol "
      "Buffers, or the most significant ones" },
    { "lock", TNF_OPTION_BOOL, NULL, "yes", "hold a shared lock while the file is read" },
    { 0 },
};

static const tnf_option_info write_options[] = {
    { "compress", TNF_OPTION_CHOICE, "auto|none|gzip|snappy", "auto",
      "compression of vectors; auto: as in the source, else as its `pack` says, else none" },
    { "app", TNF_OPTION_CHOICE, "auto|none|snappy", "auto",
      "compression of application data; auto: as in the source, else none" },
    { "varint", TNF_OPTION_CHOICE, "lsb|msb", "lsb",
      "which seven bits of a number come first; readers need the same option for msb" },
    { 0 },
};

const tnf_format tnf_format_vs = {
    .name = "vs",
    .title = "VS vector space",
    .extensions = "vsdb vs",
    .family = "vs",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = "bit u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64",
             .layouts = "dense strings/1",
             .max_rank = TNF_ANY_RANK,
             .extras = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = "vs.dims vs.resolution vs.pack vs.paging vs.attributes "
                           "vs.bare",
             .object_attrs = VS_OPTIONS " " VS_JSON,
             .json_attrs = "vs.attributes",
             .derived = "vs.points vs.blanks vs.dims vs.resolution vs.pack=0 vs.paging=0 "
                        "vs.attributes={}",
             .takes = tnf_vs_takes,
             .fits = tnf_vs_fits },
    .read_options = read_options,
    .write_options = write_options,
    .probe = probe_vs,
    .index = tnf_vs_index,
    .decode = tnf_vs_decode,
    .close = tnf_vs_close,
    .write = TNF_WRITES(tnf_vs_write),
};
