/* SPDX-License-Identifier: MIT */
/* Strings (layout strings/1) as NumPy stores them: bytes, each padded with 0 to the longest.
 *
 *   strings   "to"  "be"  "or"  "not"
 *   |S3       t o 0 b e 0 o r 0 n o t
 *
 * |S is used instead of <U, which takes four bytes per character: |S holds any bytes unchanged, in
 * a quarter of the space. A trailing 0 in a string would look like padding, and one very long
 * string would make all others long. Such tensors are written as their parts.
 */
#include "formats/numpy/array.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

#define MOST_COPIED ((uint64_t)256 << 20) /* of strings that cannot be mapped */
#define WIDER       16u /* the array may take this many times the bytes of the strings, above … */
#define FEW         ((uint64_t)1 << 20)

bool tnf_np_is_strings(const tnf_object *o)
{
    return strcmp(tnf_layout_id(o->layout), "strings/1") == 0;
}

/* The strings of a tensor, mapped or copied. */
typedef struct strings {
    tnf_strings s;
    tnf_allocator alloc;
    uint8_t *copy;
    size_t size;
} strings;

static void close_strings(strings *x)
{
    tnf_free(&x->alloc, x->copy, x->size);
}

/* Copies strings that are compressed or come from a pipe. */
static tnf_status copy_strings(strings *x, const tnf_object *o, tnf_error *e)
{
    const tnf_part *offsets = tnf_object_part(o, "offsets"), *bytes = tnf_object_part(o, "bytes");
    if (offsets->nbytes > MOST_COPIED || bytes->nbytes > MOST_COPIED || offsets->nbytes < 8)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "%s: too many strings to copy",
                        TNF_QUOTED(o->name));
    size_t n = (size_t)offsets->nbytes;
    x->size = n + (size_t)bytes->nbytes;
    x->copy = tnf_alloc(&x->alloc, x->size);
    if (!x->copy)
        return tnf_no_memory("strings", e);
    TNF_TRY(tnf_read_part(x->copy, n, offsets, 0, e));
    TNF_TRY(tnf_read_part(x->copy + n, x->size - n, bytes, 0, e));
    x->s.base = x->copy + n;
    x->s.bytes = bytes->nbytes;
    x->s.offsets = (const uint64_t *)(const void *)x->copy;
    x->s.count = n / 8 - 1;
    uint64_t before = 0;
    for (uint64_t i = 0; i <= x->s.count; i++) {
        uint64_t at = tnf_le64(x->copy + 8 * i);
        if (at < before || at > x->s.bytes)
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "the offsets of %s are not in ascending order", TNF_QUOTED(o->name));
        before = at;
    }
    return TNF_OK;
}

static tnf_status open_strings(strings *x, const tnf_object *o, tnf_error *e)
{
    *x = (strings) { .s = TNF_STRINGS_INIT, .alloc = tnf_allocator_or_default(NULL) };
    tnf_status status = tnf_strings_map(&x->s, o, e);
    return status == TNF_EUNSUPPORTED ? copy_strings(x, o, e) : status;
}

/* String i. *next is the end of the previous one, for strings with a length before each.
 */
static tnf_str string_at(const tnf_strings *s, uint64_t i, uint64_t *next)
{
    uint64_t from, n;
    if (s->offsets) {
        from = tnf_le64(&s->offsets[i]);
        n = tnf_le64(&s->offsets[i + 1]) - from;
    } else {
        from = (i == 0 ? s->marks[0] : *next) + s->prefix;
        n = tnf_le32(s->base + from - s->prefix);
        *next = from + n + s->suffix;
    }
    return (tnf_str) { (const char *)s->base + from, (size_t)n };
}

/* The width of an element in bytes; 0 if the strings cannot be stored as |S. */
static uint64_t width_of(const tnf_strings *s)
{
    uint64_t longest = 1, total = 0, next = 0, whole; /* at least 1: NumPy has no |S0 */
    for (uint64_t i = 0; i < s->count; i++) {
        tnf_str x = string_at(s, i, &next);
        if (x.n && x.p[x.n - 1] == 0)
            return 0;
        longest = x.n > longest ? x.n : longest;
        total += x.n;
    }
    bool fits = longest < INT32_MAX && tnf_ckd_mul(&whole, s->count, longest);
    return fits && (whole <= FEW || whole / WIDER <= total) ? longest : 0;
}

bool tnf_np_in_parts(const tnf_object *o)
{
    strings x;
    tnf_error said;
    if (!tnf_np_is_strings(o))
        return false;
    if (!tnf_utf8_valid(NULL, o->name.p, o->name.n)) /* only parts can have such names */
        return true;
    bool fits = open_strings(&x, o, &said) == TNF_OK && width_of(&x.s) > 0;
    close_strings(&x);
    return !fits;
}

tnf_status tnf_np_form_of_strings(np_form *f, const np_context *x, const tnf_object *o,
                                  tnf_error *e)
{
    strings s;
    char text[32];
    tnf_status status = open_strings(&s, o, e);
    uint64_t width = status == TNF_OK ? width_of(&s.s) : 0;
    close_strings(&s);
    TNF_TRY(status);
    if (width == 0)
        return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the strings of %s have changed",
                        TNF_QUOTED(o->name));
    int n = snprintf(text, sizeof text, "|S%llu", (unsigned long long)width);
    f->a.descr = tnf_arena_str(x->arena, text, (size_t)n);
    if (!f->a.descr)
        return tnf_arena_fail(x->arena, "a type", e);
    f->a.type = (np_type) { .type = tnf_type_of(TNF_U8), .width = width };
    f->a.rank = o->rank;
    f->a.shape = (uint64_t *)(uintptr_t)o->shape; /* never written through */
    return TNF_OK;
}

/* A buffer of output. */
typedef struct piece {
    tnf_take_fn put;
    void *ctx;
    size_t n;
    uint8_t bytes[16384];
} piece;

/* Adds n bytes of p, or zeros if p is NULL. */
static tnf_status add_bytes(piece *to, const char *p, uint64_t n, tnf_error *e)
{
    for (size_t part; n > 0; n -= part) {
        size_t room = sizeof to->bytes - to->n;
        part = n < room ? (size_t)n : room;
        if (p)
            memcpy(to->bytes + to->n, p, part);
        else
            memset(to->bytes + to->n, 0, part);
        p = p ? p + part : NULL;
        to->n += part;
        if (to->n == sizeof to->bytes) {
            TNF_TRY(to->put(to->ctx, to->bytes, to->n, e));
            to->n = 0;
        }
    }
    return TNF_OK;
}

tnf_status tnf_np_put_strings(const tnf_object *o, uint64_t width, tnf_take_fn put, void *ctx,
                              tnf_error *e)
{
    strings x;
    uint64_t next = 0;
    piece to = { .put = put, .ctx = ctx };
    tnf_status status = open_strings(&x, o, e);
    for (uint64_t i = 0; status == TNF_OK && i < x.s.count; i++) {
        tnf_str s = string_at(&x.s, i, &next);
        if (s.n > width)
            status = tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET, "the strings of %s have changed",
                              TNF_QUOTED(o->name));
        if (status == TNF_OK)
            status = add_bytes(&to, s.p, s.n, e);
        if (status == TNF_OK)
            status = add_bytes(&to, NULL, width - s.n, e);
    }
    if (status == TNF_OK && to.n)
        status = put(ctx, to.bytes, to.n, e);
    close_strings(&x);
    return status;
}
