/* SPDX-License-Identifier: MIT */
/* Arrays of text: of a fixed number of bytes (without trailing NULs) or of UCS-4 characters, or of
 * any length:
 *
 *   chunk of vlen-utf8:   u32 count   ( u32 length   its bytes )…
 *
 * All strings are read on opening, since their lengths are not stored elsewhere. */
#include "formats/zarr/zr.h"

#include <string.h>

static tnf_status put_ucs4(tnf_buf *b, const uint8_t *p, size_t n, tnf_error *e)
{
    while (n > 0 && tnf_le32(p + n - 4) == 0)
        n -= 4;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t c = tnf_le32(p + i);
        if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "a text has an invalid character");
        char text[4];
        tnf_buf_put(b, text, tnf_utf8_put(text, c));
    }
    return TNF_OK;
}

/* Reads elements of fixed size. */
static tnf_status fixed_strings(tnf_buf *text, uint64_t *ends, tnf_reader *r, const zr_array *a,
                                uint64_t n, tnf_error *e)
{
    size_t w = a->read->width;
    uint8_t *all = tnf_arena_raw(r->scratch, n * w);
    if (!all)
        return tnf_arena_fail(r->scratch, "strings", e);
    if (n)
        TNF_TRY(tnf_zr_decode(r, a->number, 0, all, (size_t)(n * w), e));
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *p = all + i * w;
        size_t length = w;
        if (a->text == ZR_TEXT_UCS4) {
            TNF_TRY(put_ucs4(text, p, w, e));
        } else {
            while (length > 0 && p[length - 1] == 0)
                length--;
            tnf_buf_put(text, p, length);
        }
        ends[i + 1] = text->n;
    }
    return tnf_buf_status(text, "the strings", e);
}

/* The position of element k of a chunk in the array; false: beyond the edge. */
static bool place_of(uint64_t *out, const zr_array *a, const uint64_t *at, uint64_t k)
{
    uint64_t place = 0, size = 1;
    for (uint32_t i = a->rank; i-- > 0;) {
        uint64_t within = k / a->read->stride[i] % a->read->chunk[i];
        uint64_t index = at[i] * a->read->chunk[i] + within;
        if (index >= a->shape[i])
            return false;
        place += index * size;
        size *= a->shape[i];
    }
    *out = place;
    return true;
}

static tnf_status take_chunk(tnf_str *strings, tnf_reader *r, const zr_array *a, const uint64_t *at,
                             const zr_bytes *b, tnf_error *e)
{
    uint8_t *kept = tnf_arena_raw(r->scratch, b->n);
    uint64_t place;
    if (!kept)
        return tnf_arena_fail(r->scratch, "strings", e);
    memcpy(kept, b->p, b->n);
    tnf_cur c = tnf_cur_over(kept, b->n, 0);
    uint64_t n = tnf_u32(&c);
    if (c.bad || n != a->read->elements)
        return tnf_fail(e, TNF_EFORMAT, 0, "a chunk has %llu strings instead of %llu",
                        (unsigned long long)n, (unsigned long long)a->read->elements);
    for (uint64_t k = 0; k < n; k++) {
        size_t length = tnf_u32(&c);
        const void *p = tnf_bytes(&c, length);
        if (c.bad)
            return tnf_fail(e, TNF_EFORMAT, tnf_where(&c), "a chunk of strings ends too early");
        if (place_of(&place, a, at, k))
            strings[place] = (tnf_str) { p, length };
    }
    return TNF_OK;
}

static tnf_status read_chunk(tnf_str *strings, tnf_reader *r, const zr_array *a, const uint64_t *at,
                             tnf_error *e)
{
    const zr_state *s = r->state;
    zr_bytes stored, plain;
    TNF_TRY(tnf_zr_fetch(&stored, a, s->cache, at, e));
    if (!stored.p)
        return TNF_OK;
    TNF_TRY(tnf_zr_unpack(&plain, a->read, NULL, 0, stored, e));
    tnf_status status = take_chunk(strings, r, a, at, &plain, e);
    tnf_zr_free(&plain);
    return status;
}

static tnf_status loose_strings(tnf_buf *text, uint64_t *ends, tnf_reader *r, const zr_array *a,
                                uint64_t n, tnf_error *e)
{
    uint64_t at[ZR_MAX_RANK] = { 0 }, chunks = n > 0;
    tnf_str *strings = tnf_arena_array(r->scratch, n, sizeof *strings);
    if (!strings)
        return tnf_arena_fail(r->scratch, "strings", e);
    for (uint64_t i = 0; i < n; i++)
        strings[i] = a->fill_text;
    for (uint32_t i = 0; i < a->rank; i++)
        chunks *= a->count[i];
    for (uint64_t k = 0; k < chunks; k++) {
        TNF_TRY(read_chunk(strings, r, a, at, e));
        for (uint32_t i = a->rank; i-- > 0 && ++at[i] == a->count[i];)
            at[i] = 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        tnf_buf_put(text, strings[i].p, strings[i].n);
        ends[i + 1] = text->n;
    }
    return tnf_buf_status(text, "the strings", e);
}

tnf_status tnf_zr_strings(tnf_part parts[2], tnf_reader *r, zr_array *a, tnf_error *e)
{
    uint64_t n;
    tnf_buf text;
    if (!tnf_shape_elements(&n, a->shape, a->rank) || n > UINT64_MAX / 16)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "an array has too many strings");
    uint64_t *ends = tnf_arena_array(r->arena, n + 1, sizeof *ends);
    if (!ends)
        return tnf_arena_fail(r->arena, "strings", e);
    tnf_buf_init(&text, &r->scratch->alloc, r->limits.memory);
    tnf_status status = a->text == ZR_TEXT_VLEN ? loose_strings(&text, ends, r, a, n, e)
                                                : fixed_strings(&text, ends, r, a, n, e);
    char *kept = status == TNF_OK
                     ? tnf_arena_str(r->arena, text.n ? (const void *)text.p : "", text.n)
                     : NULL;
    if (status == TNF_OK && !kept)
        status = tnf_arena_fail(r->arena, "strings", e);
    uint64_t total = text.n;
    tnf_buf_free(&text);
    tnf_swap_le(ends, n + 1, sizeof *ends);
    parts[0] = tnf_part_over("offsets", TNF_U64, ends, 8 * (n + 1));
    parts[1] = tnf_part_over("bytes", TNF_U8, kept, total);
    return status;
}
