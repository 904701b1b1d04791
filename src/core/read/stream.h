/* SPDX-License-Identifier: MIT */
/* The decoded bytes of a part, with the decoder kept from one read to the next. */
#ifndef TNF_CORE_READ_STREAM_H
#define TNF_CORE_READ_STREAM_H

#include "base/digest.h"
#include "codec/codec.h"
#include "core/core.h"

/* A multiple of every element's width, three times four included (f6 packs four in three bytes). */
#define TNF_SCAN_BLOCK ((size_t)3 << 18)

typedef struct tnf_stream {
    const tnf_part *part;
    tnf_decoder *decoder;      /* of an encoded part */
    struct tnf_cursor *cursor; /* of a virtual one */
    void *kept;                /* what its format keeps between reads; or NULL */
    bool cannot_read;          /* it was the file that failed, not what is in it */
    tnf_digester check;        /* of what was read from the beginning on, if that is checked */
    uint64_t checked;          /* how much that is */
} tnf_stream;

/* The stream must not be moved afterwards. */
tnf_status tnf_stream_open(tnf_stream *s, const tnf_part *part, tnf_error *e);
/* Does its format decode it chunk by chunk, so that what is not asked for is not to be read? */
bool tnf_part_in_chunks(const tnf_part *part);
/* n decoded bytes from `offset` on; going forward is cheap. */
tnf_status tnf_stream_read(tnf_stream *s, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* All of it will be read in order: if its digest is one that is then compared, the end does. */
tnf_status tnf_stream_check(tnf_stream *s, tnf_error *e);
/* All of a part will be read, in order: a source over the network may ask for much of it at once.
 */
void tnf_expect_part(const tnf_part *part);
/* When the last byte was read in order: an encoded part may hold no more. */
tnf_status tnf_stream_end(tnf_stream *s, tnf_error *e);
void tnf_stream_close(tnf_stream *s);

/* virtual.c: the same of the part of a virtual tensor. */
tnf_status tnf_cursor_open(struct tnf_cursor **out, const tnf_part *part, tnf_error *e);
tnf_status tnf_cursor_read(struct tnf_cursor *c, uint64_t offset, uint8_t *dst, size_t n,
                           tnf_error *e);
tnf_status tnf_cursor_end(struct tnf_cursor *c, tnf_error *e);
void tnf_cursor_close(struct tnf_cursor *c);
/* Can it be read anywhere, by several threads, at the same cost? */
bool tnf_part_anywhere(const tnf_part *part);

/* slice_read.c: is the part too much as a whole only, and n bytes of it are not? `out` is the same
 * part then, and readable. */
bool tnf_slice_of_much(tnf_part *out, const tnf_part *part, uint64_t n);
/* slice_read.c: as tnf_read_slice(), of a tensor whose only part is already open. */
tnf_status tnf_stream_slice(tnf_stream *from, const tnf_object *object, const tnf_slice *slices,
                            void *dst, size_t n, tnf_error *e);
/* slice_read.c: does a slice of at least one element lie within a dimension? */
tnf_status tnf_slice_check(const tnf_slice *x, uint64_t dim, tnf_error *e);
/* slice_read.c: nbits from bit `from` of src to bit `to` of dst, where dst holds zeros. */
void tnf_copy_bits(uint8_t *dst, uint64_t to, const uint8_t *src, uint64_t from, uint64_t nbits);

/* As tnf_scan(), but a large part is read, or decoded by its format, on a thread of its own, a few
 * blocks ahead of `take`, which this one calls: for what has a long way, like writing. */
tnf_status tnf_scan_ahead(const tnf_part *part, tnf_take_fn take, void *ctx, tnf_error *e);

/* The same of any part, made where it is to go (io/sink.h; NULL: in blocks of its own), from as
 * many threads as it can be read by. False if none could be started: then nothing was done. */
bool tnf_scan_room(const tnf_part *part, const struct tnf_room *room, tnf_take_fn take, void *ctx,
                   tnf_status *status, tnf_error *e);

/* Bytes that are in memory already and cannot go away, as those of a mapped file can: or NULL. */
const uint8_t *tnf_part_in_memory(const tnf_part *part);

#endif
