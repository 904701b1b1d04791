/* SPDX-License-Identifier: MIT */
/* The blocks of a VS file, one after the other, through a window that a function fills.
 *
 *   header │ block │ block │ block │ … │ $
 *                  └─ window ──┘
 *
 * While blocks are small the window moves along in large steps; a large block is jumped over.
 */
#ifndef TNF_FORMATS_VS_CHAIN_H
#define TNF_FORMATS_VS_CHAIN_H

#include "formats/vs/block.h"

/* Reads exactly n bytes at offset, or fails. */
typedef tnf_status (*tnf_vs_fetch)(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);

/* A deletion that was begun (vs_note.h); no offsets: none. */
typedef struct tnf_vs_note {
    uint64_t *offsets; /* ascending */
    size_t n;
    uint64_t flags, end; /* end: where '$' stands */
} tnf_vs_note;

typedef struct tnf_vs_chain {
    tnf_vs_fetch fetch;
    void *ctx;
    uint64_t size;  /* of the file */
    uint64_t until; /* nothing from here on is worth reading ahead */
    bool msb;
    tnf_allocator alloc;

    uint64_t at; /* of the block looked at; where the file ends, at the end */
    uint64_t next;
    uint64_t previous; /* the block before that one, if the walk came over it; else 0 */
    uint32_t length;
    uint8_t type;  /* TNF_VS_END also where there is no more file */
    bool terminal; /* a '$' stands at `at`, the end was not merely implied */

    uint8_t *window;
    uint64_t base; /* its place in the file */
    size_t n, capacity;
    tnf_vs_note note; /* its points are shown as blanks */
} tnf_vs_chain;

/* The next block will be the one at `from`, TNF_VS_HEADER for the first. */
void tnf_vs_chain_init(tnf_vs_chain *c, tnf_vs_fetch fetch, void *ctx, uint64_t size, uint64_t from,
                       const tnf_allocator *alloc);
void tnf_vs_chain_free(tnf_vs_chain *c);

/* Signature and version. */
tnf_status tnf_vs_chain_header(tnf_vs_chain *c, tnf_error *e);
/* Moves to the next block, which lies within the file; at the end c->type is TNF_VS_END. */
tnf_status tnf_vs_chain_next(tnf_vs_chain *c, tnf_error *e);
/* Fills the window, for the next function. */
tnf_status tnf_vs_chain_fill(tnf_vs_chain *c, uint64_t offset, size_t n, const uint8_t **out,
                             tnf_error *e);
/* n bytes from offset on, there until the next call; they must be within the file. */
static inline tnf_status tnf_vs_chain_bytes(tnf_vs_chain *c, uint64_t offset, size_t n,
                                            const uint8_t **out, tnf_error *e)
{
    uint64_t skip = offset - c->base; /* huge if it lies before */
    if (skip > c->n || n > c->n - skip || n == 0)
        return tnf_vs_chain_fill(c, offset, n, out, e);
    *out = c->window + skip;
    return TNF_OK;
}
/* The block looked at, as a point. */
tnf_status tnf_vs_chain_point(tnf_vs_chain *c, tnf_vs_point *out, tnf_error *e);
/* The same, checked against the space: sizes, and that application data is one MessagePack value
 * if it is not compressed. */
tnf_status tnf_vs_chain_checked(tnf_vs_chain *c, const tnf_vs_meta *m, tnf_vs_point *out,
                                tnf_error *e);
/* Is it a point of the plainest kind: nothing compressed, at most 127 bytes of application data
 * (not looked at), the vector of the right size? Most are. `block` is all of the block in memory.
 */
static inline bool tnf_vs_is_plain(const uint8_t *block, uint32_t length, uint64_t vector_bytes)
{
    if (length < 2 + TNF_VS_VECTOR || (block[5] & TNF_VS_CODE) != TNF_VS_RAW || block[6] > 127)
        return false;
    uint32_t head = 7u + block[6]; /* of the vector */
    uint64_t end = head + TNF_VS_VECTOR + vector_bytes;
    return end <= TNF_VS_HEAD + (uint64_t)length && (block[head] & TNF_VS_CODE) == TNF_VS_RAW &&
           tnf_le32(block + head + 1) == vector_bytes;
}
/* Where its vector begins. */
static inline uint32_t tnf_vs_plain_vector(const uint8_t *block)
{
    return 7u + block[6] + TNF_VS_VECTOR;
}
/* The block looked at, as the meta block; what it borrows is copied to the arena. */
tnf_status tnf_vs_chain_meta(tnf_vs_chain *c, tnf_vs_meta *out, tnf_arena *arena, tnf_error *e);

#endif
