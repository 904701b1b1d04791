/* SPDX-License-Identifier: MIT */
/* Finds the data of a dataset and their filters.
 *
 *   08   3 class: 0 compact u16 bytes · 1 contiguous address u64 size u64
 *                 2 chunked rank+1, B-tree u64, dims u32 each
 *        4, 5: the same, except chunked: flags rank+1 width, dims, index kind and its parameters
 *   0B   1 n 0×6, each: id u16 name u16 flags u16 values u16, name, values u32, padding to 8
 *        2 n, each: id u16 [name u16 if id ≥ 256] flags u16 values u16 name values
 *   05   1, 2: alloc write defined [size u32 bytes] · 3: flags [size u32 bytes]
 *   04   size u32 bytes
 */
#include "formats/hdf5/h5.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------- filters */

static tnf_status set_reason(const char **why, h5_file *h, const char *text, tnf_error *e)
{
    if (*why)
        return TNF_OK;
    *why = tnf_arena_str(h->r->arena, text, strlen(text));
    return *why ? TNF_OK : tnf_arena_fail(h->r->arena, "a reason", e);
}

static tnf_status read_filter(h5_data *d, h5_file *h, tnf_cur *c, unsigned version,
                              const char **why, tnf_error *e)
{
    char text[160];
    h5_filter f = { .id = tnf_u16(c) };
    size_t length = version == 1 || f.id >= 256 ? tnf_u16(c) : 0;
    (void)tnf_u16(c);
    size_t values = tnf_u16(c), padded = version == 1 ? (length + 7) / 8 * 8 : length;
    const char *name = tnf_bytes(c, padded);
    for (size_t i = 0; i < values; i++) {
        uint32_t v = tnf_u32(c);
        f.width = i == 0 ? v : f.width;
    }
    if (version == 1 && values % 2)
        (void)tnf_u32(c);
    if (c->bad)
        return tnf_h5_bad(c, "the filters of a dataset are truncated", e);
    d->filters[d->nfilters++] = f;
    if (f.id == 2 && f.width == 0)
        d->filters[d->nfilters - 1].width = (uint32_t)d->width;
    if (tnf_h5_filter_known(f.id))
        return TNF_OK;
    const char *known = tnf_h5_filter_name(f.id);
    tnf_str own = { name, length };
    while (own.n && own.p[own.n - 1] == 0)
        own.n--;
    snprintf(text, sizeof text, "its chunks have the filter %u (%s), which is not supported", f.id,
             known   ? known
             : own.n ? TNF_QUOTED(own)
                     : "without a name");
    return set_reason(why, h, text, e);
}

static tnf_status read_filters(h5_data *d, h5_file *h, const h5_header *x, const char **why,
                               tnf_error *e)
{
    tnf_cur c;
    const h5_message *m = tnf_h5_find(x, H5_PIPELINE);
    unsigned packers = 0;
    if (!m)
        return TNF_OK;
    TNF_TRY(tnf_h5_body(&c, h, m, e));
    unsigned version = tnf_u8(&c), n = tnf_u8(&c);
    if (version == 1)
        (void)tnf_bytes(&c, 6);
    if (version < 1 || version > 2 || n > H5_FILTERS)
        return tnf_h5_bad(&c, "the filters of a dataset are invalid", e);
    for (unsigned i = 0; i < n; i++)
        TNF_TRY(read_filter(d, h, &c, version, why, e));
    for (unsigned i = 0; i < d->nfilters; i++)
        packers += tnf_h5_filter_packs(d->filters[i].id);
    return packers < 2 ? TNF_OK : set_reason(why, h, "its chunks were compressed twice", e);
}

/* -------------------------------------------------------------------- fill */

static tnf_status read_fill(h5_data *d, h5_file *h, const h5_header *x, tnf_error *e)
{
    tnf_cur c;
    const h5_message *m = tnf_h5_find(x, H5_FILL), *old = tnf_h5_find(x, H5_OLD_FILL);
    bool defined = true;
    if (!m && !old)
        return TNF_OK;
    TNF_TRY(tnf_h5_body(&c, h, m ? m : old, e));
    if (m) {
        unsigned version = tnf_u8(&c);
        if (version == 3) {
            defined = tnf_u8(&c) & 0x20u;
        } else {
            (void)tnf_u16(&c);
            defined = tnf_u8(&c) != 0;
        }
        if (version < 1 || version > 3)
            return tnf_h5_bad(&c, "a fill value has an unknown version", e);
    }
    uint64_t n = defined && tnf_left(&c) >= 4 ? tnf_u32(&c) : 0;
    if (n == 0 || n == UINT32_MAX)
        return TNF_OK;
    const uint8_t *p = tnf_bytes(&c, n);
    if (!p || n != d->width)
        return tnf_h5_bad(&c, "a fill value is not as large as an element", e);
    uint8_t *fill = tnf_arena_raw(h->r->arena, n);
    if (!fill)
        return tnf_arena_fail(h->r->arena, "a fill value", e);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t in = d->swap ? i % d->swap : 0;
        fill[i] = d->swap ? p[i - in + (d->swap - 1 - in)] : p[i];
    }
    d->fill = fill;
    return TNF_OK;
}

/* ------------------------------------------------------------------ layout */

/* Places contiguous data; `at` is relative to the source. */
static tnf_status place_data(h5_data *d, h5_file *h, uint64_t at, uint64_t size, uint64_t where,
                             tnf_error *e)
{
    if (size < d->nbytes)
        return tnf_fail(e, TNF_EFORMAT, where, "a dataset of %llu bytes has only %llu in the file",
                        (unsigned long long)d->nbytes, (unsigned long long)size);
    if (at > h->end || d->nbytes > h->end - at)
        return tnf_stricter(h->r, e, TNF_EFORMAT, where,
                            "the data of a dataset are outside the file");
    d->form = H5_PLACED;
    d->at = at;
    d->stored = d->nbytes;
    return TNF_OK;
}

/* Computes the shape of chunks and their number on each axis, now and at most. */
static tnf_status measure_chunks(h5_data *d, h5_file *h, const uint64_t *chunk, uint32_t n,
                                 const h5_space *s, const tnf_cur *c, tnf_error *e)
{
    uint64_t *all = tnf_arena_array(h->r->arena, 3 * (uint64_t)s->rank + 1, sizeof *all);
    uint64_t elements = 1, total = 1;
    if (!all)
        return tnf_arena_fail(h->r->arena, "chunks", e);
    if (n != s->rank + 1 || s->rank == 0 || chunk[s->rank] != d->width)
        return tnf_h5_bad(c, "the chunks of a dataset do not have its dimensions", e);
    for (uint32_t i = 0; i < s->rank; i++) {
        if (chunk[i] == 0 || !tnf_ckd_mul(&elements, elements, chunk[i]))
            return tnf_h5_bad(c, "a chunk has no elements, or too many", e);
        all[i] = chunk[i];
        all[s->rank + i] = s->shape[i] / chunk[i] + (s->shape[i] % chunk[i] != 0);
        all[2 * s->rank + i] = s->max[i] == H5_NOWHERE
                                   ? H5_NOWHERE
                                   : s->max[i] / chunk[i] + (s->max[i] % chunk[i] != 0);
        if (!tnf_ckd_mul(&total, total, all[s->rank + i]))
            return tnf_h5_bad(c, "a dataset has more than 2^64 chunks", e);
    }
    if (!tnf_ckd_mul(&d->chunk_bytes, elements, d->width))
        return tnf_h5_bad(c, "a chunk has more than 2^64 bytes", e);
    d->chunk = all;
    d->grid = all + s->rank;
    d->most = all + 2 * s->rank;
    d->form = H5_CHUNKED;
    return TNF_OK;
}

static tnf_status read_chunked(h5_data *d, h5_file *h, tnf_cur *c, const h5_space *s,
                               unsigned version, tnf_error *e)
{
    uint64_t chunk[H5_RANK + 1] = { 0 }, tree = H5_NOWHERE;
    unsigned flags = version > 3 ? tnf_u8(c) : 0;
    uint32_t n = tnf_u8(c);
    unsigned width = version > 3 ? tnf_u8(c) : 4;
    if (version == 3)
        tree = tnf_u64(c);
    if (n == 0 || n > H5_RANK + 1 || width == 0 || width > 8)
        return tnf_h5_bad(c, "the chunks of a dataset have no dimensions, or too many", e);
    for (uint32_t i = 0; i < n; i++)
        chunk[i] = tnf_h5_uint(c, width);
    if (c->bad)
        return tnf_h5_bad(c, "a layout is truncated", e);
    TNF_TRY(measure_chunks(d, h, chunk, n, s, c, e));
    d->whole_edges = flags & 1u;
    if (version == 3)
        return tree == H5_NOWHERE ? TNF_OK : tnf_h5_chunk_tree(d, h, tree, e);
    return tnf_h5_chunk_index(d, h, c, flags, s, e);
}

static tnf_status read_layout(h5_data *d, h5_file *h, tnf_cur *c, const h5_space *s,
                              const char **why, tnf_error *e)
{
    unsigned version = tnf_u8(c), kind = tnf_u8(c);
    uint64_t where = c->base;
    if (version == 1 || version == 2)
        return set_reason(why, h, "its layout has a version that was abandoned in 2003", e);
    if (version < 3 || version > 5)
        return tnf_fail(e, TNF_EUNSUPPORTED, where, "a layout has the unsupported version %u",
                        version);
    if (kind == 0) {
        uint64_t n = tnf_u16(c), at = tnf_where(c);
        if (!tnf_bytes(c, n) && n)
            return tnf_h5_bad(c, "compact data are truncated", e);
        return place_data(d, h, at, n, where, e);
    }
    if (kind == 1) {
        uint64_t at = tnf_u64(c), n = tnf_u64(c), place;
        if (c->bad)
            return tnf_h5_bad(c, "a layout is truncated", e);
        if (at == H5_NOWHERE)
            return TNF_OK;
        if (!tnf_ckd_add(&place, at, h->base))
            return tnf_h5_bad(c, "the data of a dataset are outside the file", e);
        return place_data(d, h, place, n, where, e);
    }
    if (kind == 2)
        return read_chunked(d, h, c, s, version, e);
    if (kind == 3)
        return set_reason(
            why, h,
            "it is a virtual dataset, which refers to other files, and these are never opened", e);
    return tnf_fail(e, TNF_EUNSUPPORTED, where, "a layout has the class %u", kind);
}

tnf_status tnf_h5_layout(h5_data *d, h5_file *h, const h5_header *x, const h5_space *s,
                         const char **why, tnf_error *e)
{
    tnf_cur c;
    d->form = H5_FILLED;
    if (tnf_h5_find(x, H5_EXTERNAL))
        return set_reason(why, h, "its data are in other files, which are never opened", e);
    TNF_TRY(read_filters(d, h, x, why, e));
    TNF_TRY(read_fill(d, h, x, e));
    const h5_message *m = tnf_h5_find(x, H5_LAYOUT);
    if (!m)
        return tnf_fail(e, TNF_EFORMAT, x->at, "a dataset has no layout");
    TNF_TRY(tnf_h5_body(&c, h, m, e));
    TNF_TRY(read_layout(d, h, &c, s, why, e));
    if (d->form == H5_CHUNKED && d->chunk_bytes > H5_CHUNK)
        return set_reason(why, h, "its chunks have more than 1 GiB", e);
    return TNF_OK;
}
