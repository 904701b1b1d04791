/* SPDX-License-Identifier: MIT */
/* Reading virtual tensors: cursors, and the inputs through which they read their sources. This is
 * separate from making such tensors, so that a program that only reads files links no kernels. */
#include "base/ieee.h"
#include "core/read/virtual.h"

#include <string.h>

/* ----------------------------------------------------------------- inputs */

static void close_input(tnf_input *in)
{
    if (in->part)
        tnf_stream_close(&in->stream);
    in->part = NULL;
}

static tnf_status open_input(tnf_input *in, const tnf_part *part, tnf_error *e)
{
    if (in->part == part)
        return TNF_OK;
    close_input(in);
    tnf_status status = tnf_stream_open(&in->stream, part, e);
    if (status != TNF_OK) {
        tnf_stream_close(&in->stream);
        return status;
    }
    in->part = part;
    in->reached = 0;
    return TNF_OK;
}

tnf_status tnf_input_read_to(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                             uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)c;
    TNF_TRY(open_input(in, part, e));
    TNF_TRY(tnf_stream_read(&in->stream, offset, dst, n, e));
    in->reached = offset + n;
    return TNF_OK;
}

tnf_status tnf_input_read(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                          uint64_t offset, size_t n, const uint8_t **out, tnf_error *e)
{
    if (n > in->size || !in->room) {
        tnf_free(&c->alloc, in->room, in->size);
        in->size = n + (n == 0);
        in->room = tnf_alloc(&c->alloc, in->size);
        if (!in->room) {
            in->size = 0;
            return tnf_no_memory("a virtual tensor", e);
        }
    }
    *out = in->room;
    return tnf_input_read_to(c, in, part, offset, in->room, n, e);
}

/* Eight elements of any type begin at a byte. */
tnf_status tnf_input_elements(struct tnf_cursor *c, tnf_input *in, const tnf_part *part,
                              uint64_t first, size_t n, const uint8_t **out, size_t *skip,
                              tnf_error *e)
{
    uint64_t bits = part->type->bits, end = first + n, begin = bits % 8 ? first - first % 8 : first;
    uint64_t from = begin / 8 * bits + begin % 8 * bits / 8;
    uint64_t to = end / 8 * bits + (end % 8 * bits + 7) / 8;
    *skip = (size_t)(first - begin);
    return tnf_input_read(c, in, part, from, (size_t)(to - from), out, e);
}

void *tnf_cursor_own(struct tnf_cursor *c, size_t size, tnf_error *e)
{
    if (!c->own && (c->own = tnf_alloc0(&c->alloc, size)))
        c->own_size = size;
    if (!c->own)
        (void)tnf_no_memory("a virtual tensor", e);
    return c->own;
}

/* ---------------------------------------------------------------- cursors */

tnf_status tnf_cursor_open(struct tnf_cursor **out, const tnf_part *part, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    struct tnf_cursor *c = tnf_alloc0(&a, sizeof *c);
    if (!c)
        return tnf_no_memory("a virtual tensor", e);
    c->v = part->origin->made;
    c->alloc = a;
    *out = c;
    return TNF_OK;
}

void tnf_cursor_close(struct tnf_cursor *c)
{
    if (!c)
        return;
    tnf_allocator a = c->alloc;
    for (size_t i = 0; i < TNF_INPUTS; i++) {
        close_input(&c->inputs[i]);
        tnf_free(&a, c->inputs[i].room, c->inputs[i].size);
    }
    size_t unit = c->block ? (size_t)(c->v->unit * c->v->part.type->bits / 8) : 0;
    tnf_free(&a, c->block, unit);
    tnf_free(&a, c->own, c->own_size);
    tnf_source_close(c->spool);
    tnf_free(&a, c, sizeof *c);
}

/* A source that was read to its end must not contain more. */
tnf_status tnf_cursor_end(struct tnf_cursor *c, tnf_error *e)
{
    for (size_t i = 0; i < TNF_INPUTS; i++) {
        tnf_input *in = &c->inputs[i];
        if (in->part && in->reached == in->part->nbytes)
            TNF_TRY(tnf_stream_end(&in->stream, e));
    }
    return TNF_OK;
}

/* The number of elements from `first` to the end of its unit. */
static uint64_t unit_length(const struct tnf_virtual *v, uint64_t first)
{
    return v->elements - first < v->unit ? v->elements - first : v->unit;
}

/* Bytes of n elements; n is a unit, or everything up to the last element of the tensor. */
static size_t bytes_of(const struct tnf_virtual *v, uint64_t n)
{
    uint64_t bytes = 0;
    (void)tnf_type_bytes(&bytes, v->part.type, n);
    return (size_t)bytes;
}

static tnf_status make_block(struct tnf_cursor *c, uint64_t first, tnf_error *e)
{
    const struct tnf_virtual *v = c->v;
    uint64_t n = unit_length(v, first);
    if (c->block_n > 0 && c->block_at == first)
        return TNF_OK;
    if (!c->block && !(c->block = tnf_alloc(&c->alloc, bytes_of(v, v->unit))))
        return tnf_no_memory("a virtual tensor", e);
    c->block_n = 0; /* until the block is complete */
    TNF_TRY(v->make(c, first, (size_t)n, c->block, e));
    c->block_at = first;
    c->block_n = bytes_of(v, n);
    return TNF_OK;
}

/* The number of elements of whole units, from `first` on, that fit in n bytes; 0: not even one
 * unit. */
static uint64_t whole_units(const struct tnf_virtual *v, uint64_t first, size_t n)
{
    uint64_t left = v->elements - first;
    uint64_t fit = n / bytes_of(v, v->unit) * v->unit;
    if (n == bytes_of(v, left))
        fit = left;
    fit = fit < left ? fit : left / v->unit * v->unit;
    return fit < v->window ? fit : v->window;
}

static tnf_status make_bytes(struct tnf_cursor *c, uint64_t offset, uint8_t *dst, size_t n,
                             tnf_error *e)
{
    const struct tnf_virtual *v = c->v;
    size_t unit = bytes_of(v, v->unit);
    while (n > 0) {
        uint64_t first = offset / unit * v->unit;
        size_t skip = (size_t)(offset % unit), here;
        uint64_t whole = skip == 0 ? whole_units(v, first, n) : 0;
        if (whole > 0) {
            here = bytes_of(v, whole);
            TNF_TRY(v->make(c, first, (size_t)whole, dst, e));
        } else {
            TNF_TRY(make_block(c, first, e));
            here = c->block_n - skip < n ? c->block_n - skip : n;
            memcpy(dst, c->block + skip, here);
        }
        dst += here;
        offset += here;
        n -= here;
    }
    return TNF_OK;
}

tnf_status tnf_cursor_read(struct tnf_cursor *c, uint64_t offset, uint8_t *dst, size_t n,
                           tnf_error *e)
{
    const uint32_t mode = tnf_enter_ieee();
    tnf_status status = make_bytes(c, offset, dst, n, e);
    tnf_leave_ieee(mode);
    return status;
}

bool tnf_part_once(const tnf_part *part)
{
    if (part->origin && part->origin->made)
        return part->origin->made->once;
    return part->payload == TNF_MEMORY && !part->memory && part->nbytes > 0;
}

bool tnf_part_anywhere(const tnf_part *part)
{
    if (part->origin && part->origin->made)
        return !part->origin->made->sequential;
    return part->payload == TNF_AT || (part->payload == TNF_MEMORY && part->memory);
}
