/* SPDX-License-Identifier: MIT */
/* Reads and prints the dict before an array:
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *
 * NumPy prints this form. Room for the first dimension to grow to 21 digits follows, then spaces
 * and a line feed up to the next multiple of 64 bytes of the file. NumPy reads any Python literal
 * that is such a dict. */
#include "formats/numpy/header.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define GROWTH 21u
#define ALIGN  64u

bool tnf_np_both_orders(const uint64_t *shape, uint32_t rank)
{
    unsigned wide = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0)
            return true;
        wide += shape[i] != 1;
    }
    return wide < 2;
}

/* ---------------------------------------------------------------- reading */

enum { DESCR, FORTRAN, SHAPE, KEYS };
static const char *const keys[KEYS] = { "descr", "fortran_order", "shape" };

static int key_number(const np_node *key)
{
    for (int i = 0; i < KEYS && key->kind == NP_STRING; i++)
        if (strlen(keys[i]) == key->text.n && memcmp(keys[i], key->text.p, key->text.n) == 0)
            return i;
    return -1;
}

/* Finds the three keys, which must be the only ones. If a key occurs twice, Python uses the
 * last. */
static tnf_status find_keys(const np_node *values[KEYS], const np_context *x, const np_node *dict,
                            tnf_error *e)
{
    if (dict->kind != NP_DICT)
        return tnf_fail(e, TNF_EFORMAT, dict->at, "the header is not a dict");
    for (const np_node *key = dict->first; key; key = key->next->next) {
        int i = key_number(key);
        if (i < 0)
            return tnf_fail(e, TNF_EFORMAT, key->at, "the header has an unknown key: %s",
                            key->kind == NP_STRING ? TNF_QUOTED(key->text) : "not a text");
        if (values[i] && !x->r)
            return tnf_fail(e, TNF_EFORMAT, key->at, "the header has '%s' twice", keys[i]);
        if (values[i])
            TNF_TRY(
                tnf_stricter(x->r, e, TNF_EFORMAT, key->at, "the header has '%s' twice", keys[i]));
        values[i] = key->next;
    }
    for (int i = 0; i < KEYS; i++)
        if (!values[i])
            return tnf_fail(e, TNF_EFORMAT, dict->at, "the header has no '%s'", keys[i]);
    return TNF_OK;
}

static tnf_status read_dimension(uint64_t *out, const np_node *d, tnf_error *e)
{
    if (d->kind != NP_INT)
        return tnf_fail(e, TNF_EFORMAT, d->at, "a dimension is not a whole number");
    if (d->negative && d->number)
        return tnf_fail(e, TNF_EFORMAT, d->at, "a dimension is negative");
    if (d->number > INT64_MAX)
        return tnf_fail(e, TNF_EFORMAT, d->at, "a dimension is beyond 2^63");
    *out = d->number;
    return TNF_OK;
}

bool tnf_np_countable(const uint64_t *shape, uint32_t rank, uint64_t width)
{
    uint64_t bytes = width ? width : 1;
    for (uint32_t i = 0; i < rank; i++)
        if (!tnf_ckd_mul(&bytes, bytes, shape[i] ? shape[i] : 1) || bytes > INT64_MAX)
            return false;
    return true;
}

static tnf_status read_shape(np_array *a, const np_context *x, const np_node *shape, tnf_error *e)
{
    a->shape_at = shape->at;
    if (shape->kind != NP_TUPLE)
        return tnf_fail(e, TNF_EFORMAT, shape->at, "the shape is not a tuple");
    if (shape->n > NP_MAX_HEADER)
        return tnf_fail(e, TNF_ELIMIT, shape->at, "the shape has %zu dimensions", shape->n);
    a->shape = tnf_arena_array(x->arena, shape->n + a->type.naxes, sizeof *a->shape);
    if (!a->shape)
        return tnf_arena_fail(x->arena, "a shape", e);
    for (const np_node *d = shape->first; d; d = d->next)
        TNF_TRY(read_dimension(&a->shape[a->rank++], d, e));
    if (!tnf_np_countable(a->shape, a->rank, a->type.width))
        return tnf_fail(e, TNF_EFORMAT, shape->at, "the array has more than 2^63 bytes");
    a->elements = 1;
    for (uint32_t i = 0; i < a->rank; i++)
        a->elements *= a->shape[i];
    return TNF_OK;
}

/* The text of a descriptor, in the arena. */
static tnf_status keep_descr(const char **out, const np_type *t, const np_node *descr,
                             tnf_arena *arena, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &arena->alloc, 4 * NP_MAX_HEADER);
    if (t->text[0])
        tnf_buf_puts(&b, t->text);
    else
        tnf_np_print(&b, t->list ? t->list : descr);
    tnf_status status = tnf_buf_status(&b, "the type", e);
    if (status == TNF_OK && !(*out = tnf_arena_str(arena, b.p, b.n)))
        status = tnf_arena_fail(arena, "a type", e);
    tnf_buf_free(&b);
    return status;
}

tnf_status tnf_np_read_header(np_array *out, const np_context *x, unsigned major,
                              const uint8_t *text, size_t n, tnf_error *e)
{
    np_node *dict;
    const np_node *values[KEYS] = { NULL };
    np_source source = { text, n, x->base + tnf_np_prefix(major), major < 3, major < 3 };
    *out = (np_array) { 0 };
    TNF_TRY(tnf_np_parse(&dict, &source, x->arena, e));
    TNF_TRY(find_keys(values, x, dict, e));
    if (values[FORTRAN]->kind != NP_BOOL)
        return tnf_fail(e, TNF_EFORMAT, values[FORTRAN]->at,
                        "'fortran_order' is neither True nor False");
    TNF_TRY(tnf_np_resolve(&out->type, x, values[DESCR], e));
    TNF_TRY(keep_descr(&out->descr, &out->type, values[DESCR], x->arena, e));
    TNF_TRY(read_shape(out, x, values[SHAPE], e));
    out->said_fortran = values[FORTRAN]->number != 0;
    out->fortran = out->said_fortran && !tnf_np_both_orders(out->shape, out->rank);
    return TNF_OK;
}

tnf_status tnf_np_read_descr(np_type *out, const char **canonical, const np_context *x,
                             tnf_str descr, tnf_error *e)
{
    np_node *node, plain = { .kind = NP_STRING, .text = descr };
    np_source source = { (const uint8_t *)descr.p, descr.n, 0, false, false };
    bool literal = descr.n && (descr.p[0] == '[' || descr.p[0] == '(');
    if (literal)
        TNF_TRY(tnf_np_parse(&node, &source, x->arena, e));
    else
        node = &plain;
    TNF_TRY(tnf_np_resolve(out, x, node, e));
    return keep_descr(canonical, out, node, x->arena, e);
}

/* --------------------------------------------------------------- printing */

static void put_shape(tnf_buf *b, const np_array *a)
{
    tnf_buf_u8(b, '(');
    for (uint32_t i = 0; i < a->rank; i++)
        tnf_buf_printf(b, "%s%llu", i ? ", " : "", (unsigned long long)a->shape[i]);
    tnf_buf_puts(b, a->rank == 1 ? ",)" : ")");
}

static size_t digits_of(uint64_t n)
{
    size_t digits = 1;
    for (; n >= 10; n /= 10)
        digits++;
    return digits;
}

static void put_blanks(tnf_buf *b, size_t n)
{
    static const char blanks[] = "                                                                ";
    for (size_t most = sizeof blanks - 1; n > 0; n -= n < most ? n : most)
        tnf_buf_put(b, blanks, n < most ? n : most);
}

/* The dict and the room for growth. */
static void put_dict(tnf_buf *b, const np_array *a)
{
    tnf_str descr = { a->descr, strlen(a->descr) };
    tnf_buf_puts(b, "{'descr': ");
    if (descr.p[0] == '[' || descr.p[0] == '(')
        tnf_buf_put(b, descr.p, descr.n);
    else
        tnf_np_print_text(b, descr);
    tnf_buf_printf(b, ", 'fortran_order': %s, 'shape': ", a->fortran ? "True" : "False");
    put_shape(b, a);
    tnf_buf_puts(b, ", }");
    if (a->rank == 0)
        return;
    size_t digits = digits_of(a->shape[a->fortran ? a->rank - 1 : 0]);
    put_blanks(b, digits < GROWTH ? GROWTH - digits : 0);
}

/* The length of UTF-8 text in latin-1; false: it has characters outside latin-1. */
static bool latin1_length(const tnf_buf *b, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (b->p[i] > 0xc3)
            return false;
        *out += (b->p[i] & 0xc0) != 0x80;
    }
    return true;
}

static size_t padded_size(unsigned major, size_t n)
{
    return n + ALIGN - (tnf_np_prefix(major) + n + 1) % ALIGN + 1;
}

tnf_status tnf_np_print_header(tnf_buf *b, unsigned major, const np_array *a, tnf_error *e)
{
    size_t n;
    put_dict(b, a);
    TNF_TRY(tnf_buf_status(b, "the header", e));
    if (!latin1_length(b, &n) || major == 3)
        n = b->n;
    put_blanks(b, padded_size(major, n) - n - 1);
    tnf_buf_u8(b, '\n');
    return tnf_buf_status(b, "the header", e);
}

unsigned tnf_np_version_for(const np_array *a, const tnf_allocator *alloc)
{
    tnf_buf b;
    size_t n;
    tnf_buf_init(&b, alloc, 4 * NP_MAX_HEADER);
    put_dict(&b, a);
    unsigned major = !latin1_length(&b, &n) ? 3 : padded_size(1, n) > UINT16_MAX ? 2 : 1;
    tnf_buf_free(&b);
    return major;
}

static bool is_ascii(tnf_str text)
{
    uint8_t all = 0;
    for (size_t i = 0; i < text.n; i++)
        all |= (uint8_t)text.p[i];
    return all < 0x80;
}

bool tnf_np_encode(tnf_buf *out, unsigned major, tnf_str text)
{
    uint32_t c;
    if (major == 3 || is_ascii(text)) {
        tnf_buf_put(out, text.p, text.n);
        return true;
    }
    for (size_t i = 0, n; i < text.n; i += n) {
        n = tnf_utf8_next(&c, text.p + i, text.n - i);
        if (n == 0 || c > 0xff)
            return false;
        tnf_buf_u8(out, (uint8_t)c);
    }
    return true;
}

void tnf_np_decode(tnf_buf *out, unsigned major, const uint8_t *text, size_t n)
{
    char c[4];
    if (major == 3)
        tnf_buf_put(out, text, n);
    else
        for (size_t i = 0; i < n; i++)
            tnf_buf_put(out, c, tnf_utf8_put(c, text[i]));
}
