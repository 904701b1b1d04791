/* SPDX-License-Identifier: MIT */
/* Shared by zTensor 0.1 and 1.x: blobs at multiples of 64 with a checksum of their stored bytes,
 * and a CBOR index after them. */
#ifndef TNF_ZTENSOR_OLD_H
#define TNF_ZTENSOR_OLD_H

#include "format.h"
#include "formats/ztensor_old/digest_text.h"
#include "wire/cbor.h"

#define ZT_ALIGN     64u
#define ZT_HEAD      8u
#define ZT_MAX_INDEX ((uint64_t)1 << 30) /* for writing; the handle's limits apply to reading */

/* ---------------------------------------------------------------- reading */

/* A field with one of a few values: by text, or by position in a list (which released readers of
 * 0.1 also accept). */
typedef struct zt_word {
    tnf_str text; /* p is NULL: missing */
    uint64_t number;
    bool by_number;
} zt_word;

/* Reads text, a number if `numbers`, or null for none. */
bool tnf_zt_read_word(tnf_cbor *c, zt_word *out, bool numbers);
/* Reads numbers up to the end of an array; *dims grows in the arena. */
bool tnf_zt_read_shape(tnf_cbor *c, uint64_t **dims, size_t *capacity, uint32_t *rank,
                       tnf_arena *scratch);
/* Reads a tree that outlives the index. */
bool tnf_zt_read_value(tnf_cbor *c, tnf_value *out, tnf_arena *arena);

/* Reads the n bytes of an index that ends at `end`, and sets a CBOR reader over them. */
tnf_status tnf_zt_open_index(tnf_reader *r, tnf_cbor *c, uint64_t end, uint64_t n, tnf_error *e);
/* Reads the checksum of a blob; *out remains NULL if there is none. */
tnf_status tnf_zt_read_digest(tnf_reader *r, const tnf_digest **out, tnf_str name, tnf_str text,
                              bool big_x, uint64_t at, tnf_error *e);
/* Checks the place of a blob: a multiple of 64, before the index. */
tnf_status tnf_zt_check_place(tnf_reader *r, tnf_str name, uint64_t offset, uint64_t n,
                              uint64_t index_start, uint64_t at, tnf_error *e);
/* Adds a tensor. If its sizes do not match, it is an error, or in lenient mode listed but not
 * readable. */
tnf_status tnf_zt_add(tnf_reader *r, tnf_object *o, tnf_part *parts, uint64_t at, tnf_error *e);
/* An unknown type: its name is kept. NULL: out of memory. */
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
    const char *digest; /* text of the digest, or NULL */
    char text[TNF_ZT_DIGEST_TEXT];
} zt_blob;

/* The order of the blobs: that of the file to imitate, or NULL: that of the catalog. */
tnf_status tnf_zt_order(tnf_writer *w, const uint32_t **out, tnf_error *e);
/* Writes padding, then the bytes of a part. The `keep` options mean the form of the source, as far
 * as this format supports it; then stored bytes are copied unchanged. *out must not be moved. */
tnf_status tnf_zt_put_blob(tnf_writer *w, const tnf_part *part, const zt_how *how, zt_blob *out,
                           tnf_error *e);
/* Called after all blobs; in place, everything up to the index remains. */
tnf_status tnf_zt_put_rest(tnf_writer *w, tnf_error *e);
void tnf_zt_put_shape(tnf_buf *b, const tnf_object *o);

#endif
