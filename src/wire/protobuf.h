/* SPDX-License-Identifier: MIT */
/* A pulling reader of protobuf's wire format. It fetches bytes when they are needed: messages may
 * be larger than memory, and positions of fields are positions in the file.
 *
 *     tnf_protobuf m = tnf_protobuf_all(&in);
 *     while (tnf_protobuf_more(&m)) {
 *         TNF_TRY(tnf_protobuf_next(&m, &field, e));
 *         if (field.number == 7 && field.type == TNF_PROTOBUF_LENGTH)
 *             inner = tnf_protobuf_inside(&m, &field);
 *     }
 *
 * tag = varint (number << 3 | type); then, by type: 0 a varint, 1 eight bytes, 2 a varint length
 * and that many bytes, 5 four bytes. Groups (3, 4) are refused: they have been obsolete for twenty
 * years.
 */
#ifndef TNF_WIRE_PROTOBUF_H
#define TNF_WIRE_PROTOBUF_H

#include "base/arena.h"
#include <tenfold/types.h>

enum {
    TNF_PROTOBUF_VARINT = 0,
    TNF_PROTOBUF_FIXED64 = 1,
    TNF_PROTOBUF_LENGTH = 2,
    TNF_PROTOBUF_FIXED32 = 5
};

#define TNF_PROTOBUF_WINDOW ((size_t)16 << 10) /* the maximum */

typedef tnf_status (*tnf_protobuf_fetch)(void *ctx, uint64_t at, void *dst, size_t n, tnf_error *e);

/* The origin of the bytes, and a window of them. */
typedef struct tnf_protobuf_in {
    tnf_protobuf_fetch fetch;
    void *ctx;
    uint64_t size;
    uint64_t start; /* of the window */
    size_t n, room;
    size_t step; /* bytes of the next fetch: few after a jump, then more and more */
    uint8_t *window;
} tnf_protobuf_in;

/* The rest of a message. */
typedef struct tnf_protobuf {
    tnf_protobuf_in *in;
    uint64_t pos, end;
} tnf_protobuf;

typedef struct tnf_protobuf_field {
    uint32_t number;
    uint8_t type;
    uint64_t at;        /* of its tag */
    uint64_t length_at; /* of its length */
    uint64_t offset, n; /* of its content */
    uint64_t value;     /* of a number: its bits */
} tnf_protobuf_field;

/* Uses the caller's window, which must have room for at least 8 bytes. */
void tnf_protobuf_init(tnf_protobuf_in *in, tnf_protobuf_fetch fetch, void *ctx, uint64_t size,
                       uint8_t *window, size_t room);
/* Uses a window in the arena, no larger than the file. */
tnf_status tnf_protobuf_over(tnf_protobuf_in **out, tnf_protobuf_fetch fetch, void *ctx,
                             uint64_t size, tnf_arena *arena, tnf_error *e);
tnf_protobuf tnf_protobuf_all(tnf_protobuf_in *in);

static inline bool tnf_protobuf_more(const tnf_protobuf *m)
{
    return m->pos < m->end;
}

/* Reads the next field; the message continues after its content. TNF_ETRUNCATED if the file ends,
 * TNF_EFORMAT if a length exceeds the message. */
tnf_status tnf_protobuf_next(tnf_protobuf *m, tnf_protobuf_field *f, tnf_error *e);
/* The content of a field as a message, or as packed numbers. */
tnf_protobuf tnf_protobuf_inside(const tnf_protobuf *m, const tnf_protobuf_field *f);
/* Reads a number of a packed field. */
tnf_status tnf_protobuf_varint(tnf_protobuf *m, uint64_t *out, tnf_error *e);
/* Copies the content of a field to the arena, NUL-terminated; TNF_ELIMIT above max. */
tnf_status tnf_protobuf_text(const tnf_protobuf *m, const tnf_protobuf_field *f, uint64_t max,
                             tnf_arena *arena, tnf_str *out, tnf_error *e);

/* Writes a varint of up to 10 bytes. Returns its length. */
size_t tnf_protobuf_put(uint8_t out[10], uint64_t v);

#endif
