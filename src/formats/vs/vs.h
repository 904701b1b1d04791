/* SPDX-License-Identifier: MIT */
/* Shared by the files of the VS format.
 *
 * A file has two tensors, whose rows i belong together:
 *
 *   points   [n, dims…]  dense      the vectors, decoded; strings/1 for texts
 *   appdata  [n]         strings/1  the application data: MessagePack as stored, but uncompressed
 *
 * Both are OPAQUE: their bytes are between block heads. For each point two offsets are kept in
 * memory: that of its block, and that of its application data in `appdata`.
 */
#ifndef TNF_VS_H
#define TNF_VS_H

#include "format.h"
#include "formats/vs/texts.h"
#include "io/share.h"

#define VS_POINTS  "points"
#define VS_APPDATA "appdata"

/* Keys of extras: complete blocks of unknown types, before the meta block or before point N;
 * unknown bytes at the end of a block; all blocks of a space without numbers. */
#define VS_BEFORE  "vs.before"
#define VS_BLOCK   "vs.block."
#define VS_META    "vs.meta.extra"
#define VS_POINT   "vs.point."
#define VS_BLOCKS  "vs.blocks"

/* Attributes. */
#define VS_OPTIONS "vs.options" /* of a tensor: the option byte of each row, or that of all */
#define VS_JSON    "tenfold.messagepack" /* of `points`: true if the strings are MessagePack */

/* A list of numbers in pieces of fixed size, so growing it moves no numbers. */
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

/* The state of an open file. */
typedef struct vs_state {
    tnf_vs_meta meta;
    bool msb;
    uint64_t n;       /* points */
    vs_column blocks; /* their offsets */
    vs_column app;    /* offsets of application data, n + 1 numbers; empty: none */
    vs_column texts;  /* offsets of the texts of all vectors, and their end; empty: no texts */
    uint64_t app_bytes;
    tnf_share share; /* of the threads that read */
} vs_state;

/* Keys of decode(). Smaller ones are offsets in the file, those of extras: no file has so many
 * bytes. */
#define VS_KEY         ((uint64_t)1 << 62)
#define VS_KEY_POINTS  VS_KEY
#define VS_KEY_OFFSETS (VS_KEY + 1)
#define VS_KEY_BYTES   (VS_KEY + 2)
#define VS_KEY_STARTS  (VS_KEY + 3) /* of texts */
#define VS_KEY_TEXTS   (VS_KEY + 4)

tnf_status tnf_vs_index(tnf_reader *r, tnf_error *e);
tnf_status tnf_vs_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e);
void tnf_vs_close(tnf_reader *r);
/* read.c: a shared lock for reading, which may be requested by several threads; and its end. */
tnf_status tnf_vs_lock(const tnf_reader *r, tnf_error *e);
void tnf_vs_unlock(const tnf_reader *r);
tnf_status tnf_vs_write(tnf_writer *w, tnf_error *e);
tnf_fate tnf_vs_takes(const tnf_object *o, const char **reason);
tnf_status tnf_vs_fits(tnf_fit *fit, tnf_error *e);

/* decode.c: decodes a point's vector; its bytes are in the window or in the spare buffer. */
tnf_status tnf_vs_vector(tnf_vs_chain *c, const tnf_vs_meta *meta, const tnf_vs_point *p,
                         tnf_buf *spare, const uint8_t **out, tnf_error *e);
/* Returns the decompressed application data of a point; *spare may be used and may grow. */
tnf_status tnf_vs_app(tnf_vs_chain *c, const tnf_vs_point *p, uint64_t max, tnf_buf *spare,
                      tnf_str *out, tnf_error *e);

/* Positions in the options. */
enum { VS_READ_VARINT, VS_READ_LOCK };
enum { VS_WRITE_COMPRESS, VS_WRITE_APP, VS_WRITE_VARINT };

#endif
