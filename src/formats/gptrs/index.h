/* SPDX-License-Identifier: MIT */
/* The index of tensors in gpt.rs's checkpoints and archives, which is the same in both.
 *
 *   plain     u32 count, then per tensor
 *               u32 name_len, name, [16-byte id], u32 rank, u64 dim[rank],
 *               u32 type tag, u8 requires_grad, u64 offset, u64 length
 *   bincode   the same with u64 for count, name_len and rank (only for an hour on 2025-12-28)
 *   inline    version 1: no index, the same record without id and offset, followed by its data
 *
 * Checkpoints have ids (not in version 1), archives never. Everything is little-endian and nothing
 * is aligned. See docs/formats/gptrs.md for details.
 */
#ifndef TNF_FORMATS_GPTRS_INDEX_H
#define TNF_FORMATS_GPTRS_INDEX_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/cursor.h"
#include "model/catalog.h"
#include <tenfold/build.h>

#define TNF_GPTRS_ID 16u
/* Stands for "not stored". */
extern const uint8_t tnf_gptrs_no_id[TNF_GPTRS_ID];

/* One description. Its pointers are valid until the next one is read. */
typedef struct tnf_gptrs_entry {
    tnf_str name; /* UTF-8 */
    const uint8_t *id;
    const tnf_type *type;
    const uint64_t *shape;
    uint32_t rank;
    uint8_t requires_grad;
    uint64_t offset, length;
    /* File offsets of the description, the name, the rank, the tag and the byte for
     * requires_grad. */
    uint64_t at, name_at, rank_at, tag_at, grad_at;
} tnf_gptrs_entry;

/* Iterates over all descriptions of a file. Set the first group, then call a begin function. */
typedef struct tnf_gptrs_index {
    bool ids;
    tnf_arena *scratch;
    uint32_t max_rank, max_name;

    bool bincode, inlined;
    uint64_t count, done;
    uint64_t stored_ids; /* how many ids are not zero; 0 for version 1 */
    tnf_cur cur;         /* over the index; in version 1 over a window of the file */
    uint64_t *shape;
    size_t shape_capacity;

    tnf_fetch_fn fetch; /* version 1 only: */
    void *ctx;
    uint64_t at, end; /* the next description, the end of the file */
    uint8_t *window;
    size_t window_capacity;
} tnf_gptrs_index;

/* Begins reading the bytes of an index. Both syntaxes are tried; the one after which fewer bytes
 * are left is used, and the plain one if they are equal. */
tnf_status tnf_gptrs_index_begin(tnf_gptrs_index *x, tnf_cur index, tnf_error *e);
/* Begins with a file of version 1 of `size` bytes, whose first description is at `at`. */
void tnf_gptrs_inline_begin(tnf_gptrs_index *x, uint64_t at, uint64_t count, tnf_fetch_fn fetch,
                            void *ctx, uint64_t size);
/* Reads the next description; to be called `count` times. */
tnf_status tnf_gptrs_next(tnf_gptrs_index *x, tnf_gptrs_entry *out, tnf_error *e);

/* The id of a parameter, as stored: the first 16 bytes of the BLAKE3 hash of its name. */
void tnf_gptrs_base_id(uint8_t id[TNF_GPTRS_ID], tnf_str name);
void tnf_gptrs_hex(char out[2 * TNF_GPTRS_ID + 1], const uint8_t id[TNF_GPTRS_ID]);

/* ---------------------------------------------------------------- writing */

/* Bytes of the plain index of these objects. TNF_ELIMIT if its length does not fit the format. */
tnf_status tnf_gptrs_index_size(uint64_t *out, const tnf_catalog *catalog, bool ids, tnf_error *e);
/* Appends one description; id is NULL for an index without ids. The object must be dense and its
 * type must have a tag. */
void tnf_gptrs_put_entry(tnf_buf *b, const tnf_object *object, const uint8_t *id, uint64_t offset);
/* Places an object's data, if everything before it ends at `at`. Empty data are not aligned, so no
 * offset is beyond the end of the file. */
tnf_status tnf_gptrs_place(uint64_t *out, uint64_t at, const tnf_object *object, uint64_t align,
                           tnf_error *e);
/* Checks the writers' option `align`: TNF_EINVAL unless it is a power of two. */
tnf_status tnf_gptrs_check_align(uint64_t align, tnf_error *e);

#endif
