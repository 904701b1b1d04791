/* SPDX-License-Identifier: MIT */
/* The syntax of VS files: varints, the meta block, points. Bytes in memory only.
 *
 *   file    "VS" u16 version 0, blocks, '$', any bytes
 *   block   u8 type  u32 length  payload[length]
 *   '^'     varuint32 rank  varuint32 dim[rank]  i8 resolution  u8 pack  u8 paging  JSON  extra
 *   'P'     u8 option  JSON  vector  extra
 *   vector  u8 option  u32 length  bytes[length]
 *   JSON    varuint32 length  MessagePack[length]      no bytes: none
 *   '0'     a deleted block of any type
 *
 * Everything is little-endian. docs/formats/vs.md has the rules and where they come from.
 */
#ifndef TNF_FORMATS_VS_BLOCK_H
#define TNF_FORMATS_VS_BLOCK_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/cursor.h"
#include <tenfold/types.h>

enum { TNF_VS_META = '^', TNF_VS_POINT = 'P', TNF_VS_BLANK = '0', TNF_VS_END = '$' };

/* Resolutions that are not numbers. */
enum { TNF_VS_STRING = 100, TNF_VS_JSON = 101 };

#define TNF_VS_HEADER     4u /* signature and version */
#define TNF_VS_HEAD       5u /* of a block: type and length */
#define TNF_VS_VECTOR     5u /* of a vector: option and length */

/* The low three bits of an option. Vectors and application data use different codes. */
#define TNF_VS_CODE       7u
#define TNF_VS_RAW        0u
#define TNF_VS_GZIP       1u /* only vectors */
#define TNF_VS_SNAPPY     2u /* of vectors */
#define TNF_VS_APP_SNAPPY 1u /* of application data, and of the meta block's `pack` */

/* ----------------------------------------------------------------- varints */

/* Reads groups of seven bits, the least significant first as in Protocol Buffers, or the most
 * significant first with `msb`. bits is 16, 32 or 64; a varint has at most 3, 5 or 10 bytes.
 * TNF_EFORMAT if it is longer or overflows; TNF_ETRUNCATED if the cursor ends. `what` names the
 * field for messages. */
tnf_status tnf_vs_varint(tnf_cur *c, unsigned bits, bool msb, const char *what, uint64_t *out,
                         tnf_error *e);
/* Writes the shortest form; returns its length. */
size_t tnf_vs_put_varint(uint8_t out[10], uint64_t v, bool msb);
/* Signed numbers; no field of version 0 has one. */
uint64_t tnf_vs_zigzag(int64_t v);
int64_t tnf_vs_unzigzag(uint64_t v);

/* -------------------------------------------------------------------- meta */

typedef struct tnf_vs_meta {
    const uint64_t *dims;
    uint32_t rank;
    int8_t resolution; /* as stored */
    uint8_t pack, paging;
    const tnf_type *type; /* NULL: a resolution without numbers (STRING, JSON …) */
    const char *type_name;
    uint64_t vector_bytes; /* size of a raw vector; 0 without a type */
    uint64_t elements;
    tnf_str attributes;     /* MessagePack in place; n is 0: none */
    uint64_t attributes_at; /* in the file */
    const uint8_t *extra;   /* unknown bytes at the end */
    size_t extra_n;
} tnf_vs_meta;

/* Parses the payload. dims are in the arena; other pointers are borrowed. */
tnf_status tnf_vs_meta_parse(tnf_vs_meta *out, tnf_cur *c, bool msb, tnf_arena *arena,
                             tnf_error *e);
/* Computes type and sizes from resolution and dims, which must be set. */
tnf_status tnf_vs_meta_measure(tnf_vs_meta *m, uint64_t at, tnf_error *e);
/* Writes the complete block. */
void tnf_vs_put_meta(tnf_buf *b, const tnf_vs_meta *m, bool msb);
/* The code of a type, or false. */
bool tnf_vs_resolution(const tnf_type *type, int8_t *out);

/* ------------------------------------------------------------------ points */

/* The file offsets of everything in a point. */
typedef struct tnf_vs_point {
    uint64_t at;     /* of the block */
    uint32_t length; /* of its payload */
    uint32_t app_n, vector_n, extra_n;
    uint64_t app_at, vector_at; /* extra bytes follow the vector */
    uint8_t option, vector_option;
} tnf_vs_point;

#define TNF_VS_POINT_HEAD 6u /* bytes that tnf_vs_point_begin() may read */

/* The first function reads the option and the place of application data from the first (up to) six
 * bytes of the payload. The second reads the vector's from the five bytes at *vector_head. out->at
 * and out->length must be set. */
tnf_status tnf_vs_point_begin(tnf_vs_point *out, const uint8_t *payload, bool msb,
                              uint64_t *vector_head, tnf_error *e);
tnf_status tnf_vs_point_vector(tnf_vs_point *out, const uint8_t head[TNF_VS_VECTOR],
                               uint64_t vector_head, tnf_error *e);
/* Checks the vector against the space, by its first bytes (up to 10). */
tnf_status tnf_vs_point_fits(const tnf_vs_point *p, const tnf_vs_meta *m, const uint8_t *first,
                             tnf_error *e);
#define TNF_VS_FITS_FIRST 10u
/* Writes a point up to the vector's bytes: block head, option, application data, vector head.
 * TNF_ELIMIT if the block would have more than 2^32-1 bytes. */
tnf_status tnf_vs_put_point(tnf_buf *b, uint8_t option, tnf_str app, uint8_t vector_option,
                            uint64_t vector_n, uint64_t extra_n, bool msb, tnf_error *e);

/* Checks that the bytes are exactly one MessagePack value; `at` is their file offset. */
tnf_status tnf_vs_check_app(const void *bytes, size_t n, uint64_t at, tnf_error *e);
#define TNF_VS_DEPTH 64u

#endif
