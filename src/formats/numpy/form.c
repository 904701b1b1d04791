/* SPDX-License-Identifier: MIT */
/* The form of a tensor as an array: type, order and shape in its header, and the header's text. The
 * text of the source file is reused as long as it describes the same array. */
#include "formats/numpy/array.h"

#include <string.h>

static bool columns_first(const tnf_object *o)
{
    return o->order == TNF_ORDER_F && !tnf_np_both_orders(o->shape, o->rank);
}

bool tnf_np_was_columns_first(const tnf_object *o)
{
    const tnf_value *v = tnf_value_get(o->attrs, NP_ORDER);
    return v && v->kind == TNF_STRING && v->n == 1 && v->as.s[0] == 'F' &&
           !tnf_np_both_orders(o->shape, o->rank);
}

/* Do the type's bytes and last dimensions match the tensor? */
static bool type_describes(const np_type *t, const tnf_object *o)
{
    if (t->object || t->type != o->parts[0].type || t->naxes > o->rank ||
        (t->naxes && columns_first(o)))
        return false;
    for (uint32_t i = 0; i < t->naxes; i++)
        if (t->axes[i] != o->shape[o->rank - t->naxes + i])
            return false;
    return true;
}

/* By numpy.descr; *fits is false if the attribute is missing or does not match the tensor. */
static tnf_status by_attribute(np_form *f, const np_context *x, const tnf_object *o, bool *fits,
                               tnf_error *e)
{
    tnf_error said;
    const tnf_value *v = tnf_value_get(o->attrs, NP_DESCR);
    *fits = false;
    if (!v)
        return TNF_OK;
    tnf_str text = { v->as.s, v->n };
    const char *descr = NULL;
    tnf_arena once; /* separate memory, freed at once: a tree is much larger than its text */
    tnf_arena_init(&once, &x->arena->alloc, x->arena->limit);
    np_context here = { .arena = &once };
    tnf_status status = v->kind == TNF_STRING && !memchr(text.p, 0, text.n)
                            ? tnf_np_read_descr(&f->a.type, &descr, &here, text, &said)
                            : TNF_EFORMAT;
    *fits = status == TNF_OK && type_describes(&f->a.type, o);
    if (*fits)
        f->a.descr = tnf_arena_str(x->arena, descr, strlen(descr));
    tnf_arena_free(&once);
    if (status == TNF_ENOMEM || (*fits && !f->a.descr))
        return tnf_no_memory("a type", e);
    if (!*fits)
        f->lost = "its " NP_DESCR " does not match the tensor, so it is left out";
    return TNF_OK;
}

tnf_status tnf_np_form_of(np_form *f, const np_context *x, const tnf_object *o, bool ml_dtypes,
                          tnf_error *e)
{
    bool fits;
    *f = (np_form) { 0 };
    if (tnf_np_is_strings(o))
        return tnf_np_form_of_strings(f, x, o, e);
    TNF_TRY(by_attribute(f, x, o, &fits, e));
    if (!fits) {
        const tnf_type *type = o->parts[0].type;
        f->a.type = (np_type) { .type = type, .width = type->bits / 8 };
        f->a.descr = tnf_np_descr_of(type, ml_dtypes);
        if (strcmp(f->a.descr + 1, "V1") == 0)
            f->lost = "NumPy has no such type: it is read back as bytes";
    }
    f->a.rank = o->rank - f->a.type.naxes;
    f->a.shape = (uint64_t *)(uintptr_t)o->shape; /* never written through */
    f->a.fortran = columns_first(o);
    return TNF_OK;
}

tnf_fate tnf_np_takes(const tnf_object *o, const char **reason)
{
    *reason = "NumPy cannot count its bytes in 63 bits";
    return tnf_np_countable(o->shape, o->rank, o->parts[0].type->bits / 8) ? TNF_NATIVE
                                                                           : TNF_DROPPED;
}

/* ----------------------------------------------------------------- header */

/* The version in the source, by the attribute of the array or of the file; 0: unknown. */
static unsigned source_version(const tnf_writer *w, const tnf_object *o)
{
    const tnf_value attrs = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *v = tnf_value_get(o->attrs, NP_VERSION);
    if (!v)
        v = tnf_value_get(&attrs, NP_VERSION);
    for (unsigned i = 1; i <= 3; i++)
        if (tnf_value_is(v, tnf_np_versions[i]))
            return i;
    return 0;
}

/* Does this text, as a header of the version, describe the same array? Fails only for lack of
 * memory. */
static tnf_status describes_same(bool *same, const np_context *x, unsigned major,
                                 const tnf_buf *text, np_array *a, tnf_error *e)
{
    np_array said;
    tnf_arena once;
    *same = false;
    TNF_TRY(text->status == TNF_ENOMEM ? tnf_buf_status(text, "the header", e) : TNF_OK);
    if (text->n > (major == 1 ? UINT16_MAX : NP_MAX_HEADER) || text->status != TNF_OK)
        return TNF_OK;
    tnf_arena_init(&once, &x->arena->alloc, x->arena->limit);
    np_context here = { .arena = &once };
    tnf_status status = tnf_np_read_header(&said, &here, major, text->p, text->n, e);
    *same = status == TNF_OK && strcmp(said.descr, a->descr) == 0 && said.rank == a->rank &&
            (a->rank == 0 || memcmp(said.shape, a->shape, a->rank * sizeof *a->shape) == 0) &&
            (said.fortran == a->fortran || (said.fortran && a->type.naxes));
    if (*same)
        a->fortran = said.fortran;
    tnf_arena_free(&once);
    return status == TNF_ENOMEM ? status : TNF_OK;
}

/* The header of the source array, if it still describes the array. Otherwise *major is 0. */
static tnf_status old_header(tnf_buf *out, unsigned *major, const np_context *x,
                             const tnf_writer *w, const tnf_object *o, np_array *a, tnf_error *e)
{
    const tnf_value *v = tnf_value_get(o->attrs, NP_HEADER);
    unsigned said = source_version(w, o);
    *major = 0;
    for (unsigned i = said ? said : 1; v && v->kind == TNF_STRING && i <= 3; i++) {
        bool same = false;
        out->n = 0;
        if (tnf_np_encode(out, i, (tnf_str) { v->as.s, v->n }))
            TNF_TRY(describes_same(&same, x, i, out, a, e));
        if (same) {
            *major = i;
            return TNF_OK;
        }
    }
    out->n = 0;
    return TNF_OK;
}

static tnf_status new_header(tnf_buf *out, unsigned *major, const tnf_writer *w,
                             const tnf_object *o, const np_array *a, tnf_error *e)
{
    tnf_buf text;
    unsigned said = source_version(w, o), least = tnf_np_version_for(a, &w->scratch->alloc);
    *major = said > least ? said : least;
    tnf_buf_init(&text, &w->scratch->alloc, 8 * NP_MAX_HEADER);
    tnf_status status = tnf_np_print_header(&text, *major, a, e);
    if (status == TNF_OK)
        tnf_np_encode(out, *major, (tnf_str) { (const char *)text.p, text.n });
    if (status == TNF_OK)
        status = tnf_buf_status(out, "the header", e);
    tnf_buf_free(&text);
    return status;
}

/* Inserts spaces before the final line feed, which every reader accepts. */
static void add_blanks(tnf_buf *text, unsigned major, uint64_t at, uint64_t align)
{
    uint64_t end = at + tnf_np_prefix(major) + text->n, more = (align - end % align) % align;
    if (text->n == 0 || text->p[text->n - 1] != '\n' || text->status != TNF_OK ||
        (major == 1 && text->n + more > UINT16_MAX))
        return;
    text->n--;
    for (; more > 0; more--)
        tnf_buf_u8(text, ' ');
    tnf_buf_u8(text, '\n');
}

tnf_status tnf_np_make_header(tnf_buf *out, const tnf_writer *w, const tnf_object *o, np_array *a,
                              const np_context *x, uint64_t at, uint64_t align, tnf_error *e)
{
    unsigned major = 0;
    uint8_t head[12] = NP_MAGIC;
    tnf_buf text;
    tnf_buf_init(&text, &w->scratch->alloc, 8 * NP_MAX_HEADER);
    tnf_status status = align ? TNF_OK : old_header(&text, &major, x, w, o, a, e);
    if (status == TNF_OK && !major)
        status = new_header(&text, &major, w, o, a, e);
    if (status == TNF_OK && align)
        add_blanks(&text, major, at, align);
    head[NP_MAGIC_N] = (uint8_t)major;
    if (major == 1)
        tnf_put_le16(head + 8, (uint16_t)text.n);
    else
        tnf_put_le32(head + 8, (uint32_t)text.n);
    tnf_buf_put(out, head, tnf_np_prefix(major));
    tnf_buf_put(out, text.p, text.n);
    if (status == TNF_OK)
        status = tnf_buf_status(out, "the header", e);
    tnf_buf_free(&text);
    return status;
}
