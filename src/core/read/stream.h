/* SPDX-License-Identifier: MIT */
/* The decoded bytes of a part; the decoder is kept from one read to the next. */
#ifndef TNF_CORE_READ_STREAM_H
#define TNF_CORE_READ_STREAM_H

#include "base/digest.h"
#include "codec/codec.h"
#include "core/core.h"

/* A multiple of every element's width, including three times four (f6 packs four in three
 * bytes). */
#define TNF_SCAN_BLOCK ((size_t)3 << 18)

typedef struct tnf_stream {
    const tnf_part *part;
    tnf_decoder *decoder;      /* for an encoded part */
    struct tnf_cursor *cursor; /* for a virtual part */
    void *kept;                /* what its format keeps between reads; or NULL */
    bool cannot_read;          /* reading the file failed, rather than decoding its content */
    tnf_digester check;        /* of the bytes read from the beginning on, if they are checked */
    uint64_t checked;          /* number of those bytes */
} tnf_stream;

/* The stream must not be moved after this call. */
tnf_status tnf_stream_open(tnf_stream *s, const tnf_part *part, tnf_error *e);
/* Does its format decode it chunk by chunk, so that unneeded chunks should not be read? */
bool tnf_part_in_chunks(const tnf_part *part);
/* Reads n decoded bytes from `offset` on; going forward is cheap. */
tnf_status tnf_stream_read(tnf_stream *s, uint64_t offset, void *dst, size_t n, tnf_error *e);
/* Announces reading it completely and in order: tnf_stream_end() then compares its digest. */
tnf_status tnf_stream_check(tnf_stream *s, tnf_error *e);
/* Ends that, since the bytes will not be read in order. */
void tnf_stream_uncheck(tnf_stream *s);
/* Announces that a part will be read completely and in order: a source over the network may request
 * much of it at once. */
void tnf_expect_part(const tnf_part *part);
/* Call this after the last byte was read in order: an encoded part must not contain more. */
tnf_status tnf_stream_end(tnf_stream *s, tnf_error *e);
void tnf_stream_close(tnf_stream *s);

/* virtual_cursor.c: the same for the part of a virtual tensor. */
tnf_status tnf_cursor_open(struct tnf_cursor **out, const tnf_part *part, tnf_error *e);
tnf_status tnf_cursor_read(struct tnf_cursor *c, uint64_t offset, uint8_t *dst, size_t n,
                           tnf_error *e);
tnf_status tnf_cursor_end(struct tnf_cursor *c, tnf_error *e);
void tnf_cursor_close(struct tnf_cursor *c);
/* Can several threads read it at any position, at the same cost? */
bool tnf_part_anywhere(const tnf_part *part);

/* slice_read.c: is the part too large to decode completely, but n bytes of it are not? Then `out`
 * becomes the same part, but readable. */
bool tnf_slice_of_much(tnf_part *out, const tnf_part *part, uint64_t n);
/* slice_read.c: like tnf_read_slice(), for a tensor whose only part is already open. */
tnf_status tnf_stream_slice(tnf_stream *from, const tnf_object *object, const tnf_slice *slices,
                            void *dst, size_t n, tnf_error *e);
/* slice_read.c: is a slice of at least one element inside a dimension? */
tnf_status tnf_slice_check(const tnf_slice *x, uint64_t dim, tnf_error *e);
/* slice_read.c: copies nbits from bit `from` of src to bit `to` of dst, which must be zeros. */
void tnf_copy_bits(uint8_t *dst, uint64_t to, const uint8_t *src, uint64_t from, uint64_t nbits);

/* Like tnf_scan(), but a thread of its own reads a large part, or decodes it, a few blocks ahead of
 * `take`, which the calling thread calls. This helps if `take` is slow, as writing is. */
tnf_status tnf_scan_ahead(const tnf_part *part, tnf_take_fn take, void *ctx, tnf_error *e);

/* The same for any part; its bytes are made at their destination (io/sink.h; NULL: in blocks of its
 * own), by as many threads as can read it. False if no thread could be started: then nothing was
 * done. */
bool tnf_scan_room(const tnf_part *part, const struct tnf_room *room, tnf_take_fn take, void *ctx,
                   tnf_status *status, tnf_error *e);

/* The bytes, if they are in memory and cannot disappear, as those of a mapped file can; or NULL. */
const uint8_t *tnf_part_in_memory(const tnf_part *part);

#endif
