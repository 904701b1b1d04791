/* SPDX-License-Identifier: MIT */
/* The entries of tensors:
 *
 *   name    text
 *   n       u32, at most 4
 *   dims    n times u64 (version 1: u32), the fastest first: the shape reversed
 *   type    u32
 *   offset  u64, from the start of the data
 */
#include "formats/gguf/gguf.h"

static tnf_status read_shape(gguf_in *in, gguf_file *g, gguf_entry *t, tnf_error *e)
{
    tnf_reader *r = in->r;
    uint64_t at = in->at;
    TNF_TRY(tnf_gguf_u32(in, &t->rank, e));
    if (t->rank > GGUF_MAX_RANK) {
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, at,
                             "%s has %u dimensions; the format allows at most %u",
                             TNF_QUOTED(t->name), t->rank, GGUF_MAX_RANK));
        g->deep = g->deep.p ? g->deep : t->name;
    }
    TNF_TRY(tnf_check_rank(r, t->name, t->rank, at, e));
    t->shape = tnf_arena_array(r->scratch, t->rank + 1, sizeof *t->shape);
    if (!t->shape)
        return tnf_arena_fail(r->scratch, "a shape", e);
    for (uint32_t i = t->rank; i-- > 0;) {
        at = in->at;
        TNF_TRY(tnf_gguf_length(in, &t->shape[i], e));
        if (t->shape[i] > GGUF_MOST)
            return tnf_fail(e, TNF_EFORMAT, at, "a dimension of %s is beyond 2^63",
                            TNF_QUOTED(t->name));
    }
    return TNF_OK;
}

/* The number of elements without zero dimensions: a zero must not hide an overflow. */
static bool multiply_shape(uint64_t *all, bool *zero, const gguf_entry *t)
{
    *all = 1;
    *zero = false;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0)
            *zero = true;
        else if (!tnf_ckd_mul(all, *all, t->shape[i]) || *all > GGUF_MOST)
            return false;
    }
    return true;
}

static tnf_status measure_entry(const gguf_entry *t, uint64_t *nbytes, tnf_error *e)
{
    uint64_t all, bytes, row = t->rank ? t->shape[t->rank - 1] : 1;
    bool zero;
    if (!multiply_shape(&all, &zero, t))
        return tnf_fail(e, TNF_EFORMAT, t->at, "the dimensions of %s multiply to more than 2^63",
                        TNF_QUOTED(t->name));
    if (!t->type)
        return TNF_OK;
    const tnf_layout *layout = t->type->dense ? NULL : tnf_gguf_layout(t->type);
    uint64_t per = layout ? layout->block_elements : 1;
    uint64_t width = layout ? layout->block_bytes : tnf_type_named(t->type->name)->bits / 8;
    if (row % per != 0)
        return tnf_fail(e, TNF_EFORMAT, t->at,
                        "%s has rows of %llu elements, which are not whole blocks of %s (%llu)",
                        TNF_QUOTED(t->name), (unsigned long long)row, t->type->name,
                        (unsigned long long)per);
    if (!tnf_ckd_mul(&bytes, all / per, width) || bytes > GGUF_MOST)
        return tnf_fail(e, TNF_EFORMAT, t->at, "%s has more than 2^63 bytes", TNF_QUOTED(t->name));
    *nbytes = zero ? 0 : bytes;
    return TNF_OK;
}

static tnf_status read_entry(gguf_in *in, gguf_file *g, gguf_entry *t, tnf_error *e)
{
    t->at = in->at;
    TNF_TRY(tnf_gguf_text(in, &t->name, e));
    TNF_TRY(read_shape(in, g, t, e));
    uint64_t at = in->at;
    TNF_TRY(tnf_gguf_u32(in, &t->id, e));
    t->type = tnf_gguf_type(t->id);
    if (!t->type)
        TNF_TRY(tnf_stricter(in->r, e, TNF_EUNSUPPORTED, at, "%s has the type %u: %s",
                             TNF_QUOTED(t->name), t->id, tnf_gguf_type_gone(t->id)));
    TNF_TRY(tnf_gguf_u64(in, &t->offset, e));
    if (t->name.n > GGUF_MAX_NAME)
        tnf_warn(in->r, t->at, "%s has a name of %zu bytes: llama.cpp will not load this",
                 TNF_QUOTED(t->name), t->name.n);
    else if (t->name.n == 0)
        tnf_warn(in->r, t->at, "a tensor has an empty name");
    else if (memchr(t->name.p, 0, t->name.n))
        tnf_warn(in->r, t->at, "the name %s contains a NUL: llama.cpp reads it only up to the NUL",
                 TNF_QUOTED(t->name));
    else if (!tnf_utf8_valid(NULL, t->name.p, t->name.n))
        tnf_warn(in->r, t->at, "the name %s is not UTF-8", TNF_QUOTED(t->name));
    return measure_entry(t, &t->nbytes, e);
}

/* Grows the list as entries are read. Memory is never reserved by a count in the file. */
static tnf_status make_room(tnf_reader *r, gguf_file *g, size_t *room, tnf_error *e)
{
    gguf_entry *entries = tnf_arena_grow(r->scratch, g->entries, g->n, room, sizeof *entries, 64);
    if (!entries)
        return tnf_arena_fail(r->scratch, "the list of tensors", e);
    g->entries = entries;
    return TNF_OK;
}

tnf_status tnf_gguf_entries(gguf_in *in, gguf_file *g, uint64_t n, tnf_error *e)
{
    size_t room = 0;
    in->what = "the entries of tensors";
    for (uint64_t i = 0; i < n; i++) {
        TNF_TRY(make_room(in->r, g, &room, e));
        TNF_TRY(read_entry(in, g, &g->entries[g->n], e));
        g->n++;
    }
    if (in->text_end)
        *in->text_end = 0;
    return TNF_OK;
}
