/* SPDX-License-Identifier: MIT */
/* The attributes of an array, shared by the readers of both NumPy formats. */
#include "formats/numpy/array.h"

#include <string.h>

const char *const tnf_np_versions[] = { "", "1.0", "2.0", "3.0" };

const tnf_option_info tnf_np_read_options[] = {
    { "v1", TNF_OPTION_CHOICE, "bytes|f8_e4m3fn|f8_e5m2|f8_e4m3fnuz|f8_e5m2fnuz|f8_e8m0|i8|bool",
      "bytes", "meaning of the type V1, which the file does not say" },
    { "v2", TNF_OPTION_CHOICE, "bytes|bf16", "bytes",
      "meaning of the type |V2, which the file does not say (<V2 is bf16)" },
    { 0 },
};

static const tnf_type *asked_type(const tnf_reader *r, size_t option)
{
    return r->options[option].u ? tnf_type_named(r->options[option].s) : NULL;
}

np_context tnf_np_context(tnf_reader *r, tnf_arena *arena)
{
    return (np_context) { .r = r, .arena = arena, .v1 = asked_type(r, 0), .v2 = asked_type(r, 1) };
}

tnf_status tnf_np_version(unsigned *major, const uint8_t *magic, uint64_t at, tnf_error *e)
{
    unsigned minor = magic[NP_MAGIC_N + 1];
    *major = magic[NP_MAGIC_N];
    if (*major < 1 || *major > 3 || minor != 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, at + NP_MAGIC_N,
                        "version %u.%u is not supported; 1.0, 2.0 and 3.0 are", *major, minor);
    return TNF_OK;
}

/* Would NumPy have written this text? If the type has dimensions, only the text tells the order of
 * the array, so it must be kept. */
static tnf_status is_canonical(bool *out, const np_array *a, unsigned major, const tnf_cur *c,
                               const tnf_allocator *alloc, tnf_error *e)
{
    tnf_buf text, bytes;
    tnf_buf_init(&text, alloc, 8 * NP_MAX_HEADER);
    tnf_buf_init(&bytes, alloc, 8 * NP_MAX_HEADER);
    tnf_status status = tnf_np_print_header(&text, major, a, e);
    *out = status == TNF_OK && !(a->fortran && a->type.naxes) &&
           tnf_np_encode(&bytes, major, (tnf_str) { (const char *)text.p, text.n }) &&
           bytes.n == tnf_left(c) && memcmp(bytes.p, c->p, bytes.n) == 0;
    if (status == TNF_OK)
        status = tnf_buf_status(&bytes, "the header", e);
    tnf_buf_free(&text);
    tnf_buf_free(&bytes);
    return status;
}

static tnf_status keep_header(tnf_attrs *attrs, unsigned major, const tnf_cur *c, tnf_error *e)
{
    tnf_buf text;
    tnf_buf_init(&text, &attrs->arena->alloc, 2 * NP_MAX_HEADER);
    tnf_np_decode(&text, major, c->p, tnf_left(c));
    tnf_status status = tnf_buf_status(&text, "the header", e);
    const char *copy = status == TNF_OK ? tnf_arena_str(attrs->arena, text.p, text.n) : NULL;
    if (copy)
        status = tnf_attrs_push(attrs, NP_HEADER, tnf_value_str(TNF_STRING, copy, text.n), e);
    else if (status == TNF_OK)
        status = tnf_arena_fail(attrs->arena, "the header", e);
    tnf_buf_free(&text);
    return status;
}

tnf_status tnf_np_make_attrs(const tnf_value **out, tnf_reader *r, const np_array *a,
                             unsigned major, bool version, const tnf_cur *c, tnf_error *e)
{
    tnf_attrs attrs = { .arena = r->arena };
    bool canonical = false;
    *out = NULL;
    if (a->type.keep_descr) {
        const char *copy = tnf_arena_str(r->arena, a->descr, strlen(a->descr));
        if (!copy)
            return tnf_arena_fail(r->arena, "a type", e);
        TNF_TRY(tnf_attrs_push(&attrs, NP_DESCR, tnf_value_string(copy), e));
    }
    if (a->fortran && !a->type.naxes)
        TNF_TRY(tnf_attrs_push(&attrs, NP_ORDER, tnf_value_string("F"), e));
    TNF_TRY(is_canonical(&canonical, a, major, c, &r->scratch->alloc, e));
    bool first = canonical && major == 1; /* NumPy chooses version 1 if possible */
    if (version && !first && major != tnf_np_version_for(a, &r->scratch->alloc))
        TNF_TRY(tnf_attrs_push(&attrs, NP_VERSION, tnf_value_string(tnf_np_versions[major]), e));
    if (!canonical)
        TNF_TRY(keep_header(&attrs, major, c, e));
    if (attrs.n == 0)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}
