/* SPDX-License-Identifier: MIT */
#include "wire/protobuf.h"

#include "base/bytes.h"
#include "base/error.h"

#define BEHIND_JUMP ((size_t)512)

void tnf_protobuf_init(tnf_protobuf_in *in, tnf_protobuf_fetch fetch, void *ctx, uint64_t size,
                       uint8_t *window, size_t room)
{
    *in = (tnf_protobuf_in) {
        .fetch = fetch, .ctx = ctx, .size = size, .window = window, .room = room, .step = room
    };
}

tnf_status tnf_protobuf_over(tnf_protobuf_in **out, tnf_protobuf_fetch fetch, void *ctx,
                             uint64_t size, tnf_arena *arena, tnf_error *e)
{
    size_t room = size < TNF_PROTOBUF_WINDOW ? (size_t)size : TNF_PROTOBUF_WINDOW;
    *out = tnf_arena_raw(arena, sizeof **out);
    uint8_t *window = *out ? tnf_arena_raw(arena, room) : NULL;
    if (!window)
        return tnf_arena_fail(arena, "a window of the file", e);
    tnf_protobuf_init(*out, fetch, ctx, size, window, room);
    return TNF_OK;
}

tnf_protobuf tnf_protobuf_all(tnf_protobuf_in *in)
{
    return (tnf_protobuf) { in, 0, in->size };
}

tnf_protobuf tnf_protobuf_inside(const tnf_protobuf *m, const tnf_protobuf_field *f)
{
    return (tnf_protobuf) { m->in, f->offset, f->offset + f->n };
}

/* Returns how many bytes to fetch. After a jump over weights these are few, because often only a
 * few bytes separate them from the next weights; then ever more. */
static size_t next_step(tnf_protobuf_in *in, uint64_t at)
{
    bool jump = in->n && (at < in->start || at > in->start + in->n + BEHIND_JUMP);
    if (jump)
        in->step = BEHIND_JUMP;
    else if (in->n)
        in->step = in->step > in->room / 2 ? in->room : 2 * in->step;
    return in->step < in->room ? in->step : in->room;
}

/* Gets n bytes, which are in the file, at a position; n is small. */
static tnf_status look_at(tnf_protobuf_in *in, uint64_t at, size_t n, const uint8_t **out,
                          tnf_error *e)
{
    if (at < in->start || at + n > in->start + in->n) {
        uint64_t left = in->size - at;
        size_t want = next_step(in, at);
        want = want < n ? n : want;
        want = left < want ? (size_t)left : want;
        in->n = 0; /* the window is empty if the fetch fails */
        in->start = at;
        TNF_TRY(in->fetch(in->ctx, at, in->window, want, e));
        in->n = want;
    }
    *out = in->window + (at - in->start);
    return TNF_OK;
}

static tnf_status ends_early(const tnf_protobuf *m, uint64_t at, uint64_t need, tnf_error *e)
{
    if (m->end == m->in->size)
        return tnf_fail(e, TNF_ETRUNCATED, m->in->size,
                        "the file ends inside a field: %s missing (cut short?)",
                        TNF_BYTES_ARE(need - (m->end - at)));
    return tnf_fail(e, TNF_EFORMAT, at, "a field runs %llu bytes past its message",
                    (unsigned long long)(need - (m->end - at)));
}

tnf_status tnf_protobuf_varint(tnf_protobuf *m, uint64_t *out, tnf_error *e)
{
    const uint8_t *p;
    uint64_t at = m->pos, v = 0;
    for (unsigned i = 0; i < 10; i++) {
        if (m->pos >= m->end)
            return ends_early(m, m->pos, 1, e);
        TNF_TRY(look_at(m->in, m->pos, 1, &p, e));
        m->pos++;
        v |= (uint64_t)(*p & 0x7F) << 7 * i;
        if (*p < 0x80) {
            if (i == 9 && *p > 1)
                break;
            *out = v;
            return TNF_OK;
        }
    }
    return tnf_fail(e, TNF_EFORMAT, at, "a number has more than 64 bits");
}

static tnf_status read_fixed(tnf_protobuf *m, tnf_protobuf_field *f, size_t n, tnf_error *e)
{
    const uint8_t *p;
    if (m->end - m->pos < n)
        return ends_early(m, m->pos, n, e);
    TNF_TRY(look_at(m->in, m->pos, n, &p, e));
    f->value = n == 8 ? tnf_le64(p) : tnf_le32(p);
    f->n = n;
    m->pos += n;
    return TNF_OK;
}

tnf_status tnf_protobuf_next(tnf_protobuf *m, tnf_protobuf_field *f, tnf_error *e)
{
    uint64_t tag, length;
    *f = (tnf_protobuf_field) { .at = m->pos };
    TNF_TRY(tnf_protobuf_varint(m, &tag, e));
    f->type = tag & 7;
    if (tag >> 3 == 0 || tag >> 3 >= 1u << 29)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a field has the invalid number %llu",
                        (unsigned long long)(tag >> 3));
    f->number = (uint32_t)(tag >> 3);
    f->offset = f->length_at = m->pos;
    switch (f->type) {
    case TNF_PROTOBUF_VARINT:
        TNF_TRY(tnf_protobuf_varint(m, &f->value, e));
        f->n = m->pos - f->offset;
        return TNF_OK;
    case TNF_PROTOBUF_FIXED64:
        return read_fixed(m, f, 8, e);
    case TNF_PROTOBUF_FIXED32:
        return read_fixed(m, f, 4, e);
    case TNF_PROTOBUF_LENGTH:
        TNF_TRY(tnf_protobuf_varint(m, &length, e));
        f->offset = m->pos;
        f->n = length;
        if (length > m->end - m->pos)
            return ends_early(m, m->pos, length, e);
        m->pos += length;
        return TNF_OK;
    default:
        return tnf_fail(e, TNF_EFORMAT, f->at, "a field has the unknown wire type %u", f->type);
    }
}

tnf_status tnf_protobuf_text(const tnf_protobuf *m, const tnf_protobuf_field *f, uint64_t max,
                             tnf_arena *arena, tnf_str *out, tnf_error *e)
{
    const uint8_t *p;
    if (f->n > max)
        return tnf_fail(e, TNF_ELIMIT, f->offset, "a text has %llu bytes; the limit is %llu",
                        (unsigned long long)f->n, (unsigned long long)max);
    char *copy = tnf_arena_raw(arena, f->n + 1);
    if (!copy)
        return tnf_arena_fail(arena, "a text", e);
    for (uint64_t done = 0; done < f->n;) {
        uint64_t left = f->n - done;
        size_t some = left < m->in->room ? (size_t)left : m->in->room;
        TNF_TRY(look_at(m->in, f->offset + done, some, &p, e));
        for (size_t i = 0; i < some; i++)
            copy[done + i] = (char)p[i];
        done += some;
    }
    copy[f->n] = 0;
    *out = (tnf_str) { copy, (size_t)f->n };
    return TNF_OK;
}

size_t tnf_protobuf_put(uint8_t out[10], uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    return n;
}
