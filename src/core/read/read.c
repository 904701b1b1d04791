/* SPDX-License-Identifier: MIT */
/* Reading parts: directly from their source, through the format's decoder, or from memory. The
 * result is always little-endian. */
#include "core/read/place.h"
#include "core/read/stream.h"

#include <string.h>

static tnf_status check_want(const tnf_part *part, uint64_t offset, uint64_t n, tnf_error *e)
{
    TNF_TRY(tnf_need_part(part, e));
    if (part->origin && part->origin->missing)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        "the tensor is in the file %s, which is missing",
                        TNF_VISIBLE(part->origin->label));
    if (part->flags & TNF_PART_UNREADABLE)
        return tnf_fail(e, TNF_EUNSUPPORTED, part->offset,
                        "this tensor can be listed but not read: %s",
                        part->origin && part->origin->unreadable ? part->origin->unreadable
                                                                 : "see the warnings of the file");
    if (offset > part->nbytes || n > part->nbytes - offset)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%llu bytes were requested from byte %llu on, but the tensor has only %llu",
                        (unsigned long long)n, (unsigned long long)offset,
                        (unsigned long long)part->nbytes);
    return TNF_OK;
}

/* ---------------------------------------------------------------- streams */

static tnf_status read_stored(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    tnf_stream *s = ctx;
    tnf_status status = tnf_source_read(s->part->origin->source, s->part->offset + offset, dst, n,
                                        e);
    s->cannot_read = status != TNF_OK;
    return status;
}

/* A decoder counts offsets from the start of the stored bytes. Messages need offsets from the start
 * of the file, and the name of the file. */
static tnf_status place_error(const tnf_stream *s, tnf_status status, tnf_error *e)
{
    const tnf_part *part = s->part;
    if (status == TNF_OK || !e)
        return status;
    if (s->decoder && !s->cannot_read && e->offset != TNF_NO_OFFSET)
        e->offset += part->offset;
    if (part->origin && part->origin->label)
        tnf_error_prefix(e, part->origin->label);
    return status;
}

bool tnf_part_in_chunks(const tnf_part *part)
{
    const struct tnf_origin *o = part->payload == TNF_OPAQUE ? part->origin : NULL;
    return o && !o->made && o->format && o->format->decode_on;
}

static void drop_kept(tnf_stream *s)
{
    const tnf_format *format = s->kept ? s->part->origin->format : NULL;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!format)
        return;
    format->forget(s->kept);
    tnf_free(&a, s->kept, format->keeps);
    s->kept = NULL;
}

tnf_status tnf_stream_open(tnf_stream *s, const tnf_part *part, tnf_error *e)
{
    *s = (tnf_stream) { .part = part };
    TNF_TRY(check_want(part, 0, 0, e));
    if (part->payload == TNF_OPAQUE && part->origin->made)
        return tnf_cursor_open(&s->cursor, part, e);
    if (tnf_part_in_chunks(part)) {
        tnf_allocator a = tnf_allocator_or_default(NULL);
        s->kept = tnf_alloc0(&a, part->origin->format->keeps);
        return s->kept ? TNF_OK : tnf_no_memory("reading", e);
    }
    if (part->payload != TNF_ENCODED)
        return TNF_OK;
    uint64_t whole = part->origin->whole ? part->origin->whole : part->nbytes;
    tnf_encoded from = { read_stored, s, part->stored, whole };
    tnf_status status = tnf_decoder_open(&s->decoder, part->codec, &from, NULL, e);
    if (status != TNF_OK && !s->cannot_read && e && e->offset != TNF_NO_OFFSET)
        e->offset += part->offset;
    return place_error(s, status, e);
}

void tnf_stream_close(tnf_stream *s)
{
    tnf_decoder_close(s->decoder);
    tnf_cursor_close(s->cursor);
    drop_kept(s);
    s->decoder = NULL;
    s->cursor = NULL;
    tnf_stream_uncheck(s);
}

static const tnf_digest_ops *checks_of(const tnf_part *part)
{
    const tnf_format *format = part->origin ? part->origin->format : NULL;
    return format ? format->check_reads : NULL;
}

bool tnf_part_cuts(const tnf_part *part)
{
    if (part->payload == TNF_ENCODED)
        return part->codec == TNF_CODEC_ZSTD_SEEKABLE;
    return part->payload != TNF_OPAQUE && (part->payload != TNF_MEMORY || part->memory);
}

bool tnf_checks_reads(const tnf_part *part)
{
    const tnf_digest *d = part->digest;
    const tnf_digest_ops *ops = checks_of(part);
    return ops && part->payload <= TNF_ENCODED && d && d->algorithm &&
           d->n == ops->size(d->algorithm);
}

tnf_status tnf_stream_check(tnf_stream *s, tnf_error *e)
{
    if (!tnf_checks_reads(s->part) ||
        checks_of(s->part)->begin(&s->check, s->part->digest->algorithm))
        return TNF_OK;
    return tnf_no_memory("reading", e);
}

void tnf_stream_uncheck(tnf_stream *s)
{
    if (s->check.algorithm)
        checks_of(s->part)->end(&s->check, NULL);
    s->check = (tnf_digester) { .algorithm = NULL };
}

static tnf_status compare_check(tnf_stream *s, tnf_error *e)
{
    uint8_t found[TNF_DIGEST_MAX];
    const tnf_digest *d = s->part->digest;
    if (!s->check.state || s->checked != s->part->nbytes)
        return TNF_OK;
    checks_of(s->part)->end(&s->check, found);
    if (memcmp(found, d->bytes, d->n) == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EDIGEST, s->part->offset, "the bytes do not match their %s",
                    d->algorithm);
}

/* Does its stream end with the part? Otherwise bytes that do not belong to it may follow. */
static bool is_last(const tnf_part *part)
{
    const struct tnf_origin *o = part->origin;
    return o->whole == 0 || o->skip + part->nbytes == o->whole;
}

tnf_status tnf_stream_end(tnf_stream *s, tnf_error *e)
{
    uint8_t last;
    if (s->cursor)
        return tnf_cursor_end(s->cursor, e);
    if (s->decoder && s->part->nbytes == 0 && s->part->origin->skip) /* nothing was read yet */
        TNF_TRY(place_error(s, tnf_decoder_read(s->decoder, s->part->origin->skip - 1, &last, 1, e),
                            e));
    if (s->decoder && is_last(s->part))
        TNF_TRY(place_error(s, tnf_decoder_end(s->decoder, e), e));
    return compare_check(s, e);
}

/* Reads bytes in stored byte order, but decoded. */
static tnf_status read_bytes(tnf_stream *s, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const tnf_part *part = s->part;
    const struct tnf_origin *o = part->origin;
    switch (part->payload) {
    case TNF_AT:
        return tnf_source_read(o->source, part->offset + offset, dst, n, e);
    case TNF_ENCODED:
        return tnf_decoder_read(s->decoder, o->skip + offset, dst, n, e);
    case TNF_OPAQUE:
        if (s->cursor)
            return tnf_cursor_read(s->cursor, offset, dst, n, e);
        if (s->kept)
            return o->format->decode_on(o->reader, s->kept, part->offset, offset, dst, n, e);
        return o->format->decode(o->reader, part->offset, offset, dst, n, e);
    default:
        if (!part->memory) {
            tnf_status status;
            TNF_CALL(status, e, o->fetch, o->ctx, offset, dst, n);
            return status;
        }
        memcpy(dst, (const uint8_t *)part->memory + offset, n);
        return TNF_OK;
    }
}

static tnf_status read_plain(tnf_stream *s, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    TNF_TRY(read_bytes(s, offset, dst, n, e));
    if (s->check.state && offset == s->checked) {
        checks_of(s->part)->update(&s->check, dst, n);
        s->checked += n;
    }
    return TNF_OK;
}

/* Elements that the edges of the range cut are read completely into a separate buffer. */
static tnf_status read_edge(tnf_stream *s, uint64_t element, size_t width, size_t skip,
                            uint8_t *dst, size_t n, tnf_error *e)
{
    uint8_t whole[16];
    TNF_TRY(read_plain(s, element, whole, width, e));
    tnf_reverse(whole, width, width);
    memcpy(dst, whole + skip, n);
    return TNF_OK;
}

static tnf_status read_big_endian(tnf_stream *s, uint64_t offset, uint8_t *dst, size_t n,
                                  tnf_error *e)
{
    size_t width = tnf_part_swap(s->part);
    size_t skip = (size_t)(offset % width);
    if (skip) {
        size_t part_n = n < width - skip ? n : width - skip;
        TNF_TRY(read_edge(s, offset - skip, width, skip, dst, part_n, e));
        offset += part_n;
        dst += part_n;
        n -= part_n;
    }
    size_t middle = n / width * width;
    TNF_TRY(middle ? read_plain(s, offset, dst, middle, e) : TNF_OK);
    tnf_reverse(dst, middle, width);
    if (n > middle)
        return read_edge(s, offset + middle, width, 0, dst + middle, n - middle, e);
    return TNF_OK;
}

tnf_status tnf_stream_read(tnf_stream *s, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    TNF_TRY(check_want(s->part, offset, n, e));
    if (n == 0)
        return TNF_OK;
    bool swap = s->part->flags & TNF_PART_BIG_ENDIAN && tnf_part_swap(s->part) > 1 &&
                s->part->payload <= TNF_ENCODED;
    return place_error(
        s, swap ? read_big_endian(s, offset, dst, n, e) : read_plain(s, offset, dst, n, e), e);
}

tnf_status tnf_read_part(void *dst, size_t n, const tnf_part *part, uint64_t offset, tnf_error *e)
{
    tnf_stream s;
    TNF_TRY(check_want(part, offset, n, e));
    if (n == 0)
        return TNF_OK;
    TNF_TRY(tnf_need(dst, "dst", e));
    tnf_status status = tnf_stream_open(&s, part, e);
    if (status == TNF_OK && n == part->nbytes)
        status = tnf_stream_check(&s, e);
    if (status == TNF_OK)
        status = tnf_stream_read(&s, offset, dst, n, e);
    if (status == TNF_OK && offset + n == part->nbytes)
        status = tnf_stream_end(&s, e);
    tnf_stream_close(&s);
    return status;
}

const uint8_t *tnf_part_in_memory(const tnf_part *part)
{
    if (part->flags & (TNF_PART_BIG_ENDIAN | TNF_PART_UNREADABLE))
        return NULL;
    if (part->payload == TNF_MEMORY)
        return part->memory;
    const tnf_source *source = part->payload == TNF_AT ? part->origin->source : NULL;
    return source && source->fd < 0 && part->nbytes
               ? tnf_source_map(source, part->offset, part->nbytes)
               : NULL;
}

/* Bytes in memory are passed without a copy, in pieces that stay in the CPU's cache while they are
 * digested and written. */
static tnf_status scan_memory(const tnf_part *part, const uint8_t *bytes, tnf_take_fn take,
                              void *ctx, tnf_error *e)
{
    tnf_stream s = { .part = part };
    TNF_TRY(tnf_stream_check(&s, e));
    tnf_status status = check_want(part, 0, 0, e);
    for (uint64_t at = 0; at < part->nbytes && status == TNF_OK; at += TNF_SCAN_BLOCK) {
        size_t n = part->nbytes - at < TNF_SCAN_BLOCK ? (size_t)(part->nbytes - at)
                                                      : TNF_SCAN_BLOCK;
        if (s.check.state)
            checks_of(part)->update(&s.check, bytes + at, n);
        s.checked += n;
        TNF_CALL(status, e, take, ctx, bytes + at, n);
    }
    if (status == TNF_OK)
        status = compare_check(&s, e);
    tnf_stream_close(&s);
    return status;
}

/* A source over the network can then request all of it at once. */
void tnf_expect_part(const tnf_part *part)
{
    if (part->payload <= TNF_ENCODED && part->origin && part->origin->source->remote)
        tnf_source_advise(part->origin->source, part->offset, part->stored, TNF_WILL_NEED);
}

tnf_status tnf_scan(const tnf_part *part, tnf_take_fn take, void *ctx, tnf_error *e)
{
    TNF_TRY(tnf_need(take, "take", e));
    TNF_TRY(check_want(part, 0, 0, e));
    const uint8_t *there = part->payload == TNF_MEMORY ? part->memory : tnf_part_in_memory(part);
    if (there)
        return scan_memory(part, there, take, ctx, e);
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = part->nbytes < TNF_SCAN_BLOCK ? (size_t)part->nbytes : TNF_SCAN_BLOCK;
    size += size == 0;
    tnf_stream s;
    tnf_expect_part(part);
    tnf_status status = tnf_stream_open(&s, part, e);
    if (status == TNF_OK)
        status = tnf_stream_check(&s, e);
    uint8_t *block = status == TNF_OK ? tnf_alloc(&a, size) : NULL;
    if (status == TNF_OK && !block)
        status = tnf_no_memory("reading", e);
    for (uint64_t at = 0; at < part->nbytes && status == TNF_OK; at += size) {
        size_t n = part->nbytes - at < size ? (size_t)(part->nbytes - at) : size;
        status = tnf_stream_read(&s, at, block, n, e);
        if (status == TNF_OK)
            TNF_CALL(status, e, take, ctx, block, n);
    }
    if (status == TNF_OK)
        status = tnf_stream_end(&s, e);
    tnf_free(&a, block, size);
    tnf_stream_close(&s);
    return status;
}

const char *tnf_codec_name(uint8_t codec)
{
    return tnf_codec_id(codec);
}

const char *tnf_why_unreadable(const tnf_object *object)
{
    for (uint16_t i = 0; object && object->parts && i < object->nparts; i++) {
        const tnf_part *p = &object->parts[i];
        if (p->flags & TNF_PART_UNREADABLE)
            return p->origin && p->origin->unreadable ? p->origin->unreadable : "";
    }
    return NULL;
}

tnf_status tnf_read(void *dst, size_t n, const tnf_object *object, tnf_error *e)
{
    TNF_TRY(tnf_object_there(object, e));
    if (object->nparts != 1)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s has the layout %s with %u parts: read them one by one",
                        TNF_QUOTED(object->name), object->layout->id, object->nparts);
    if (n != object->parts->nbytes)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has %llu bytes, but the buffer has %zu",
                        TNF_QUOTED(object->name), (unsigned long long)object->parts->nbytes, n);
    return tnf_read_part(dst, n, object->parts, 0, e);
}

/* ------------------------------------------------------------------ views */

tnf_status tnf_map(const void **out, const tnf_part *part, tnf_error *e)
{
    *out = NULL;
    TNF_TRY(check_want(part, 0, 0, e));
    if (part->payload == TNF_ENCODED || part->payload == TNF_OPAQUE)
        return tnf_cannot_map(part->origin && part->origin->made
                                  ? "the values are computed"
                                  : "the bytes are encoded in the file",
                              e);
    if (part->flags & TNF_PART_BIG_ENDIAN)
        return tnf_cannot_map("the bytes are big-endian in the file", e);
    if (part->payload == TNF_MEMORY && part->nbytes && !part->memory)
        return tnf_cannot_map("the bytes come from a function", e);
    if (part->nbytes == 0) {
        *out = "";
        return TNF_OK;
    }
    const void *p = part->payload == TNF_MEMORY
                        ? part->memory
                        : tnf_source_map(part->origin->source, part->offset, part->nbytes);
    if (!p) {
        const char *why = part->origin->source->map_why;
        return tnf_cannot_map(why ? why : "the system would not map the file", e);
    }
    if ((uintptr_t)p % tnf_type_align(part->type) != 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, part->offset,
                        "the bytes cannot be mapped, only read: they begin at %llu, which is not "
                        "a multiple of %zu as %s requires",
                        (unsigned long long)part->offset, tnf_type_align(part->type),
                        part->type->id);
    *out = p;
    return TNF_OK;
}

static void advise_part(const tnf_part *part, tnf_advice advice)
{
    if (part && part->payload <= TNF_ENCODED && part->origin)
        tnf_source_advise(part->origin->source, part->offset, part->stored, advice);
}

void tnf_prefetch(const tnf_part *part)
{
    advise_part(part, TNF_WILL_NEED);
}

void tnf_evict(const tnf_part *part)
{
    advise_part(part, TNF_WONT_NEED);
}
