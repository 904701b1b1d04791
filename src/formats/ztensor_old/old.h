/* SPDX-License-Identifier: MIT */
/* What zTensor 0.1 and 1.x share: blobs at multiples of 64 with a checksum of their stored bytes,
 * an index in CBOR behind them, and how that index is walked through. */
#ifndef TNF_ZTENSOR_OLD_H
#define TNF_ZTENSOR_OLD_H

#include "format.h"
#include "formats/ztensor_old/digest_text.h"
#include "wire/cbor.h"

#define ZT_ALIGN     64u
#define ZT_HEAD      8u
#define ZT_MAX_INDEX ((uint64_t)1 << 30) /* what is written; what is read the limits say */

/* ---------------------------------------------------------------- reading */

/* A field that names one of a few things: by text, or (released 0.1 readers take that, too) by its
 * position in their list. */
typedef struct zt_word {
    tnf_str text; /* p == NULL: not there */
    uint64_t number;
    bool by_number;
} zt_word;

/* Text, a number if `numbers`, or null for nothing. */
bool tnf_zt_read_word(tnf_cbor *c, zt_word *out, bool numbers);
/* Numbers up to the end of an array; *dims grows in the arena. */
bool tnf_zt_read_shape(tnf_cbor *c, uint64_t **dims, size_t *capacity, uint32_t *rank,
                       tnf_arena *scratch);
/* A tree that outlives the index. */
bool tnf_zt_read_value(tnf_cbor *c, tnf_value *out, tnf_arena *arena);

/* The n bytes of an index that ends at `end`, and a reader over them. */
tnf_status tnf_zt_open_index(tnf_reader *r, tnf_cbor *c, uint64_t end, uint64_t n, tnf_error *e);
/* The checksum of a blob; *out stays NULL if there is none. */
tnf_status tnf_zt_read_digest(tnf_reader *r, const tnf_digest **out, tnf_str name, tnf_str text,
                              bool big_x, uint64_t at, tnf_error *e);
/* Where the blob lies: on a multiple of 64, before the index. */
tnf_status tnf_zt_check_place(tnf_reader *r, tnf_str name, uint64_t offset, uint64_t n,
                              uint64_t index_start, uint64_t at, tnf_error *e);
/* Adds it; one whose sizes do not fit is an error, or, to the lenient, listed but not readable. */
tnf_status tnf_zt_add(tnf_reader *r, tnf_object *o, tnf_part *parts, uint64_t at, tnf_error *e);
/* A type that is not known here: its name is kept. NULL: no memory. */
const tnf_type *tnf_zt_unknown_type(tnf_arena *arena, tnf_str id, tnf_dtype storage);

/* ---------------------------------------------------------------- writing */

enum { ZT_ENCODING_KEEP, ZT_ENCODING_RAW, ZT_ENCODING_ZSTD };
enum { ZT_DIGEST_KEEP, ZT_DIGEST_NONE, ZT_DIGEST_CRC32C, ZT_DIGEST_SHA256 };
enum { ZT_ENDIAN_KEEP, ZT_ENDIAN_LITTLE, ZT_ENDIAN_BIG };

typedef struct zt_how {
    uint64_t encoding, digest, endian, level;
    bool big_x; /* as in tnf_zt_digest_read() */
} zt_how;

typedef struct zt_blob {
    uint64_t offset, stored;
    bool zstd, big_endian;
    const char *digest; /* its text, or NULL */
    char text[TNF_ZT_DIGEST_TEXT];
} zt_blob;

/* The order of the blobs: as in the file that is followed, or NULL, the catalog's. */
tnf_status tnf_zt_order(tnf_writer *w, const uint32_t **out, tnf_error *e);
/* Padding, then the bytes of a part. `keep` means: as they are in the source, so far as this
 * format can say it; then stored bytes are copied as they are. Not to be moved. */
tnf_status tnf_zt_put_blob(tnf_writer *w, const tnf_part *part, const zt_how *how, zt_blob *out,
                           tnf_error *e);
/* When all are written; in place, everything stays up to the index. */
tnf_status tnf_zt_put_rest(tnf_writer *w, tnf_error *e);
void tnf_zt_put_shape(tnf_buf *b, const tnf_object *o);

#endif
