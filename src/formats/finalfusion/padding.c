/* SPDX-License-Identifier: MIT */
/* Element types, and where the data of a chunk begin.
 *
 *   fields │ padding │ data         the chunk's length counts them all
 *
 * The tools write 4 - P % 4 bytes of padding, where P is the file offset at which the fields end:
 * one to four bytes, and four if none are needed. The document puts the data at the next multiple
 * of their type's size. The chunk's length shows which rule was used. R2V did not count the padding
 * of a dense matrix, and at first had none: there the end of the file decides.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

const tnf_type *tnf_ff_type_of(uint32_t id)
{
    static const char *const types[FF_TYPES] = { "i8",  "u8",  "i16",  "u16",  "i32", "u32",
                                                 "i64", "u64", "i128", "u128", "f32", "f64" };
    return id < FF_TYPES ? tnf_type_named(types[id]) : NULL;
}

bool tnf_ff_type_id(uint32_t *out, const tnf_type *type)
{
    for (uint32_t id = 0; id < FF_TYPES; id++)
        if (strcmp(tnf_ff_type_of(id)->id, type->id) == 0) {
            *out = id;
            return true;
        }
    return false;
}

/* ---------------------------------------------------------------- padding */

ff_space tnf_ff_space_of(const ff_frame *c, uint64_t fields, uint64_t bytes, uint64_t align,
                         const char *what)
{
    ff_space s = { .from = c->body + fields, .bytes = bytes, .align = align, .what = what };
    s.fits = c->length >= fields && c->length - fields >= bytes;
    s.slack = s.fits ? c->length - fields - bytes : 0;
    return s;
}

static uint64_t tools_padding(const ff_space *s)
{
    return s->align - s->from % s->align;
}

static bool ends_file(const ff_reading *f, const ff_space *s, uint64_t padding)
{
    uint64_t end;
    return tnf_ckd_add(&end, s->from + padding, s->bytes) && end == f->r->source->size;
}

/* Is the slack a padding that a known writer produces? */
bool tnf_ff_find_padding(ff_reading *f, const ff_space *s, uint64_t *out)
{
    uint64_t tools = tools_padding(s);
    *out = tools;
    if (!s->fits)
        return false;
    if (s->slack == tools)
        return true;
    if (f->dialect == FF_R2V && s->slack == 0) { /* the padding is not counted, or missing */
        *out = ends_file(f, s, tools) ? tools : 0;
        return ends_file(f, s, *out);
    }
    *out = tools % s->align;
    return s->slack == *out && (f->dialect == FF_SEED || *out == 0);
}

static tnf_status check_zeros(ff_reading *f, uint64_t at, uint64_t n, tnf_error *e)
{
    uint8_t bytes[16] = { 0 };
    if (n == 0 || at > f->r->source->size || n > f->r->source->size - at)
        return TNF_OK; /* truncated: reported elsewhere */
    TNF_TRY(tnf_source_read(f->r->source, at, bytes, (size_t)n, e));
    for (uint64_t i = 0; i < n; i++)
        if (bytes[i])
            return tnf_stricter(f->r, e, TNF_EFORMAT, at + i, "padding is not zero");
    return TNF_OK;
}

/* Where the data begin. */
tnf_status tnf_ff_place(ff_reading *f, ff_frame *c, const ff_space *s, uint64_t *at, tnf_error *e)
{
    uint64_t padding;
    if (!tnf_ff_find_padding(f, s, &padding)) {
        padding = tools_padding(s);
        TNF_TRY(tnf_stricter(
            f->r, e, TNF_EFORMAT, c->at + 4,
            "the length of the %s in bytes is %llu, but its fields and data need %llu "
            "and its padding %llu",
            s->what, (unsigned long long)c->length,
            (unsigned long long)(s->from - c->body + s->bytes), (unsigned long long)padding));
    } else if (f->dialect == FF_REAL && padding == 0) {
        tnf_warn(f->r, c->at + 4,
                 "the data of the %s have no padding before them: finalfusion's own tools would "
                 "read them four bytes too late",
                 s->what);
    }
    TNF_TRY(check_zeros(f, s->from, padding, e));
    *at = s->from + padding;
    if (!tnf_ckd_add(&c->end, *at, s->bytes))
        return tnf_fail(e, TNF_EFORMAT, c->at, "the %s ends beyond 2^64", s->what);
    return TNF_OK;
}

tnf_status tnf_ff_too_large(const ff_frame *c, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, c->body, "the size of the %s exceeds 2^64 bytes", what);
}

tnf_status tnf_ff_read_fields(ff_reading *f, const ff_frame *c, uint64_t n, const char *what,
                              tnf_cur *out, tnf_error *e)
{
    if (c->length < n)
        return tnf_fail(e, TNF_EFORMAT, c->at + 4,
                        "the length of the %s in bytes is %llu, but its fields alone need %llu",
                        what, (unsigned long long)c->length, (unsigned long long)n);
    return tnf_read_range(f->r, what, c->body, n, n, out, e);
}

/* Checks that there are as many rows as the vocabulary requires. */
tnf_status tnf_ff_check_rows(ff_reading *f, uint64_t rows, uint64_t at, tnf_error *e)
{
    uint64_t want;
    if (!f->words_known)
        return TNF_OK;
    if (!tnf_ckd_add(&want, f->words, f->subwords))
        want = UINT64_MAX;
    if (rows == want)
        return TNF_OK;
    return tnf_stricter(f->r, e, TNF_EFORMAT, at,
                        "the matrix has %llu rows; %llu words and %llu rows for subwords need "
                        "%llu",
                        (unsigned long long)rows, (unsigned long long)f->words,
                        (unsigned long long)f->subwords, (unsigned long long)want);
}

tnf_part tnf_ff_part_at(const char *role, const tnf_type *type, uint64_t offset, uint64_t n)
{
    return (tnf_part) { .role = role, .type = type, .offset = offset, .stored = n, .nbytes = n };
}
