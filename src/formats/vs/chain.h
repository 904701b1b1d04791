/* SPDX-License-Identifier: MIT */
/* The blocks of a VS file, one after the other, through a window that a function fills.
 *
 *   header │ block │ block │ block │ … │ $
 *                  └─ window ──┘
 *
 * While blocks are small, the window moves in large steps; large blocks are skipped.
 */
#ifndef TNF_FORMATS_VS_CHAIN_H
#define TNF_FORMATS_VS_CHAIN_H

#include "formats/vs/block.h"

/* Reads exactly n bytes at offset, or fails. */
typedef tnf_status (*tnf_vs_fetch)(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e);

/* An unfinished deletion (note.h); no offsets: none. */
typedef struct tnf_vs_note {
    uint64_t *offsets; /* ascending */
    size_t n;
    uint64_t flags, end; /* end: offset of '$' */
} tnf_vs_note;

typedef struct tnf_vs_chain {
    tnf_vs_fetch fetch;
    void *ctx;
    uint64_t size;  /* of the file */
    uint64_t until; /* do not read ahead beyond this offset */
    bool msb;
    tnf_allocator alloc;

    uint64_t at; /* of the current block; at the end, the end of the blocks */
    uint64_t next;
    uint64_t previous; /* offset of the previous block if the walk passed it; else 0 */
    uint32_t length;
    uint8_t type;  /* TNF_VS_END also at the end of the file */
    bool terminal; /* a '$' is at `at`; false: the file just ends */

    uint8_t *window;
    uint64_t base; /* its file offset */
    size_t n, capacity;
    tnf_vs_note note; /* its points appear as blanks */
} tnf_vs_chain;

/* Begins with the block at `from`; TNF_VS_HEADER is the first. */
void tnf_vs_chain_init(tnf_vs_chain *c, tnf_vs_fetch fetch, void *ctx, uint64_t size, uint64_t from,
                       const tnf_allocator *alloc);
void tnf_vs_chain_free(tnf_vs_chain *c);

/* Signature and version. */
tnf_status tnf_vs_chain_header(tnf_vs_chain *c, tnf_error *e);
/* Moves to the next block, which must be completely in the file. At the end c->type is
 * TNF_VS_END. */
tnf_status tnf_vs_chain_next(tnf_vs_chain *c, tnf_error *e);
/* Fills the window, for the next function. */
tnf_status tnf_vs_chain_fill(tnf_vs_chain *c, uint64_t offset, size_t n, const uint8_t **out,
                             tnf_error *e);
/* Returns n bytes at offset, valid until the next call. They must be inside the file. */
static inline tnf_status tnf_vs_chain_bytes(tnf_vs_chain *c, uint64_t offset, size_t n,
                                            const uint8_t **out, tnf_error *e)
{
    uint64_t skip = offset - c->base; /* huge if offset is before the window */
    if (skip > c->n || n > c->n - skip || n == 0)
        return tnf_vs_chain_fill(c, offset, n, out, e);
    *out = c->window + skip;
    return TNF_OK;
}
/* Reads the current block as a point. */
tnf_status tnf_vs_chain_point(tnf_vs_chain *c, tnf_vs_point *out, tnf_error *e);
/* The same, checked against the space: sizes, and that application data is one MessagePack value
 * if it is not compressed. */
tnf_status tnf_vs_chain_checked(tnf_vs_chain *c, const tnf_vs_meta *m, tnf_vs_point *out,
                                tnf_error *e);
/* Is it a plain point: not compressed, at most 127 bytes of application data (not checked), a
 * vector of the right size? Most points are. `block` is the complete block in memory.
 */
static inline bool tnf_vs_is_plain(const uint8_t *block, uint32_t length, uint64_t vector_bytes)
{
    if (length < 2 + TNF_VS_VECTOR || (block[5] & TNF_VS_CODE) != TNF_VS_RAW || block[6] > 127)
        return false;
    uint32_t head = 7u + block[6]; /* position of the vector's head */
    uint64_t end = head + TNF_VS_VECTOR + vector_bytes;
    return end <= TNF_VS_HEAD + (uint64_t)length && (block[head] & TNF_VS_CODE) == TNF_VS_RAW &&
           tnf_le32(block + head + 1) == vector_bytes;
}
/* The position of its vector. */
static inline uint32_t tnf_vs_plain_vector(const uint8_t *block)
{
    return 7u + block[6] + TNF_VS_VECTOR;
}
/* Reads the current block as the meta block; borrowed bytes are copied to the arena. */
tnf_status tnf_vs_chain_meta(tnf_vs_chain *c, tnf_vs_meta *out, tnf_arena *arena, tnf_error *e);

#endif
