/* SPDX-License-Identifier: MIT */
/* What the files of the VS format share.
 *
 * A file shows two tensors, row i of one belonging to row i of the other:
 *
 *   points   [n, dims…]  dense      the vectors, decoded
 *   appdata  [n]         strings/1  the application data: MessagePack as stored, but uncompressed
 *
 * Both are OPAQUE: their bytes lie between block heads. What is kept in memory for each point is
 * where its block begins, and where its application data begins among all of it.
 */
#ifndef TNF_VS_H
#define TNF_VS_H

#include "format.h"
#include "formats/vs/chain.h"

#define VS_POINTS  "points"
#define VS_APPDATA "appdata"

/* Keys of extras. Whole blocks of types nobody knows: before the meta block, and before point N;
 * bytes behind what is known of a block; all blocks of a space without numbers. */
#define VS_BEFORE  "vs.before"
#define VS_BLOCK   "vs.block."
#define VS_META    "vs.meta.extra"
#define VS_POINT   "vs.point."
#define VS_BLOCKS  "vs.blocks"

/* Attributes. */
#define VS_OPTIONS "vs.options" /* of a tensor: the option byte of each row, or that of all */

/* Numbers in pieces of a fixed size, so that a million of them grow without being moved. */
#define VS_PIECE   256u

typedef struct vs_column {
    uint64_t **pieces;
    size_t npieces, capacity;
    uint64_t n;
} vs_column;

tnf_status tnf_vs_column_push(vs_column *c, uint64_t v, tnf_arena *arena, tnf_error *e);

static inline uint64_t vs_column_at(const vs_column *c, uint64_t i)
{
    return c->pieces[i / VS_PIECE][i % VS_PIECE];
}

/* Of an open file. */
typedef struct vs_state {
    tnf_vs_meta meta;
    bool msb;
    uint64_t n;       /* points */
    vs_column blocks; /* where they are */
    vs_column app;    /* where application data begins, n + 1 numbers; empty if there is none */
    uint64_t app_bytes;
} vs_state;

/* Keys of decode(): no offset in any file is that large. */
#define VS_KEY         ((uint64_t)1 << 62)
#define VS_KEY_POINTS  VS_KEY
#define VS_KEY_OFFSETS (VS_KEY + 1)
#define VS_KEY_BYTES   (VS_KEY + 2)

tnf_status tnf_vs_index(tnf_reader *r, tnf_error *e);
tnf_status tnf_vs_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
tnf_status tnf_vs_write(tnf_writer *w, tnf_error *e);
tnf_fate tnf_vs_takes(const tnf_object *o, const char **reason);
tnf_status tnf_vs_fits(tnf_fit *fit, tnf_error *e);

/* decode.c: the bytes of a point's vector, decoded, in the window or the spare buffer. */
tnf_status tnf_vs_vector(tnf_vs_chain *c, const tnf_vs_meta *meta, const tnf_vs_point *p,
                         tnf_buf *spare, const uint8_t **out, tnf_error *e);
/* Application data of a point in memory, decompressed; *spare may be used, and grows. */
tnf_status tnf_vs_app(tnf_vs_chain *c, const tnf_vs_point *p, uint64_t max, tnf_buf *spare,
                      tnf_str *out, tnf_error *e);

/* In the order of the options. */
enum { VS_READ_VARINT, VS_READ_LOCK };
enum { VS_WRITE_COMPRESS, VS_WRITE_APP, VS_WRITE_VARINT };

#endif
