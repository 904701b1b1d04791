/* SPDX-License-Identifier: MIT */
/* Bytes that only this format can produce: elements of less than a byte, ends of strings, tensors
 * in slices; and their checksums for verify(). */
#include "base/crc32c.h"
#include "formats/tensorbundle/bundle.h"

#include <string.h>

#define BLOCK 4096u

tnf_status tnf_tb_push(tnf_reader *r, tb_data data, uint64_t *key, tnf_error *e)
{
    tb_state *s = r->state;
    tb_data *items = tnf_arena_grow(r->arena, s->items, s->n, &s->capacity, sizeof *items, 8);
    if (!items)
        return tnf_arena_fail(r->arena, "tensors", e);
    s->items = items;
    *key = s->n;
    s->items[s->n++] = data;
    return TNF_OK;
}

tnf_status tnf_tb_check(tnf_reader *r, tb_check check, tnf_error *e)
{
    tb_state *s = r->state;
    tb_check *checks = tnf_arena_grow(r->arena, s->checks, s->nchecks, &s->checks_capacity,
                                      sizeof *checks, 8);
    if (!checks)
        return tnf_arena_fail(r->arena, "checksums", e);
    s->checks = checks;
    check.name.p = tnf_arena_str(r->arena, check.name.p, check.name.n);
    if (!check.name.p)
        return tnf_arena_fail(r->arena, "a name", e);
    s->checks[s->nchecks++] = check;
    return TNF_OK;
}

/* ------------------------------------------------------------------- decode */

static tnf_status read_packed(const tb_data *d, uint64_t offset, uint8_t *dst, size_t n,
                              tnf_error *e)
{
    uint8_t block[BLOCK];
    unsigned per = 8u / d->bits;
    uint64_t element = offset * per, end = (offset + n) * per;
    end = end < d->elements ? end : d->elements;
    memset(dst, 0, n);
    for (uint64_t at = element; at < end;) {
        size_t many = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        TNF_TRY(tnf_read_part(block, many, &d->part, at, e));
        for (size_t i = 0; i < many; i++, at++) {
            unsigned bits = block[i] & ((1u << d->bits) - 1);
            dst[(at - element) / per] |= (uint8_t)(bits << (at % per * d->bits));
        }
    }
    return TNF_OK;
}

/* Reads the bytes of a slice in [offset, offset + n) of the tensor, by runs that are contiguous in
 * both. */
static tnf_status read_slice(const tb_data *d, const tb_slice *s, uint64_t offset, uint8_t *dst,
                             size_t n, tnf_error *e)
{
    uint32_t axis = d->rank;
    uint64_t run = d->width, runs = 1, index[TB_MAX_RANK + 1] = { 0 };
    while (axis > 0 && s->length[axis - 1] == d->shape[axis - 1])
        run *= s->length[--axis];
    if (axis > 0)
        run *= s->length[--axis];
    for (uint32_t i = 0; i < axis; i++)
        runs *= s->length[i];
    for (uint64_t k = 0; k < runs; k++) {
        uint64_t to = 0;
        for (uint32_t i = 0; i < d->rank; i++)
            to = to * d->shape[i] + s->start[i] + (i < axis ? index[i] : 0);
        to *= d->width;
        uint64_t from = to > offset ? to : offset, end = to + run;
        end = end < offset + n ? end : offset + n;
        if (from < end)
            TNF_TRY(tnf_read_part(dst + (from - offset), (size_t)(end - from), &s->part,
                                  k * run + (from - to), e));
        for (uint32_t i = axis; i-- > 0 && ++index[i] == s->length[i];)
            index[i] = 0;
    }
    return TNF_OK;
}

tnf_status tnf_tb_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    const tb_state *s = r->state;
    const tb_data *d = &s->items[key];
    if (d->form == TB_PACKED)
        return read_packed(d, offset, dst, n, e);
    if (d->form == TB_ENDS) {
        tnf_copy_le(dst, d->ends, sizeof *d->ends, (size_t)offset, n);
        return TNF_OK;
    }
    if (d->form == TB_CUT)
        return tnf_fail(
            e, TNF_ETRUNCATED, d->part.offset,
            "the data file ends before its strings: %llu bytes are missing (cut short?)",
            (unsigned long long)d->part.nbytes);
    for (uint32_t i = 0; i < d->nslices; i++)
        TNF_TRY(read_slice(d, &d->slices[i], offset, dst, n, e));
    return TNF_OK;
}

/* ------------------------------------------------------------------- verify */

struct crc_of {
    uint32_t crc;
    uint64_t strings; /* number of lengths still to come; then 4 plain bytes and the text */
    uint64_t length;
    unsigned shift;
};

/* The checksum covers lengths as u32 (larger ones as u64), not as varints. */
static tnf_status take_block(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct crc_of *c = ctx;
    const uint8_t *p = bytes;
    (void)e;
    for (; n > 0 && c->strings > 0; p++, n--) {
        uint8_t number[8];
        c->length |= c->shift < 64 ? (uint64_t)(*p & 0x7F) << c->shift : 0;
        c->shift += 7;
        if (*p >= 0x80)
            continue;
        tnf_put_le64(number, c->length);
        c->crc = tnf_crc32c(c->crc, number, c->length > UINT32_MAX ? 8 : 4);
        c->strings--;
        c->length = c->shift = 0;
    }
    c->crc = tnf_crc32c(c->crc, p, n);
    return TNF_OK;
}

tnf_status tnf_tb_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e)
{
    const tb_state *s = r->state;
    (void)arena;
    (void)e;
    for (size_t i = 0; i < s->nchecks; i++) {
        const tb_check *k = &s->checks[i];
        struct crc_of c = { .strings = k->strings };
        tnf_error problem = { .offset = TNF_NO_OFFSET };
        tnf_status status = tnf_scan(&k->part, take_block, &c, &problem);
        if (status == TNF_OK && c.crc != k->crc)
            status = tnf_fail(&problem, TNF_EDIGEST, k->part.offset,
                              "the bytes do not match their crc32c");
        if (status != TNF_OK)
            tell(ctx, &problem, k->name);
    }
    return TNF_OK;
}
