/* SPDX-License-Identifier: MIT */
/* Reads and writes the tensor descriptions of gpt.rs. See the header for their bytes. */
#include "formats/gptrs/index.h"

#include "base/blake3.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/utf8.h"

#define WINDOW    4096u
#define MAX_ALIGN ((uint64_t)1 << 24)

/* The tag of a type is its position here. */
static const tnf_dtype tags[] = { TNF_F32, TNF_F16, TNF_BF16, TNF_I32 };
#define NTAGS (sizeof tags / sizeof tags[0])

const uint8_t tnf_gptrs_no_id[TNF_GPTRS_ID] = { 0 };

/* A raw description, of which only the lengths were checked. */
typedef struct record {
    uint64_t at, name_at, rank_at, tag_at, grad_at;
    const char *name;
    uint64_t name_n;
    const uint8_t *id, *dims;
    uint64_t rank;
    uint32_t tag;
    uint8_t requires_grad;
    uint64_t offset, length;
} record;

/* Sets c->bad if the record does not fit. It allocates nothing, so no length is dangerous. */
static record take_record(tnf_cur *c, const tnf_gptrs_index *x)
{
    record t = { .at = tnf_where(c) };
    t.name_n = x->bincode ? tnf_u64(c) : tnf_u32(c);
    t.name_at = tnf_where(c);
    t.name = tnf_bytes(c, t.name_n);
    if (x->ids && !x->inlined)
        t.id = tnf_bytes(c, TNF_GPTRS_ID);
    t.rank_at = tnf_where(c);
    t.rank = x->bincode ? tnf_u64(c) : tnf_u32(c);
    if (t.rank > tnf_left(c) / 8)
        c->bad = true;
    else
        t.dims = tnf_bytes(c, 8 * t.rank);
    t.tag_at = tnf_where(c);
    t.tag = tnf_u32(c);
    t.grad_at = tnf_where(c);
    t.requires_grad = tnf_u8(c);
    if (!x->inlined)
        t.offset = tnf_u64(c);
    t.length = tnf_u64(c);
    if (x->inlined)
        t.offset = tnf_where(c);
    return t;
}

static uint64_t take_count(tnf_cur *c, bool bincode)
{
    return bincode ? tnf_u64(c) : tnf_u32(c);
}

/* The number of bytes that remain after parsing with a syntax; SIZE_MAX if there are too few. Each
 * round consumes at least 29 bytes. Also counts the ids. */
static size_t try_syntax(tnf_gptrs_index *x, tnf_cur c, bool bincode)
{
    x->bincode = bincode;
    x->stored_ids = 0;
    for (uint64_t n = take_count(&c, bincode); n > 0 && !c.bad; n--) {
        record t = take_record(&c, x);
        if (t.id && memcmp(t.id, tnf_gptrs_no_id, TNF_GPTRS_ID) != 0)
            x->stored_ids++;
    }
    return c.bad ? SIZE_MAX : tnf_left(&c);
}

tnf_status tnf_gptrs_index_begin(tnf_gptrs_index *x, tnf_cur index, tnf_error *e)
{
    x->inlined = false;
    size_t left = try_syntax(x, index, false);
    if (left > 0 && try_syntax(x, index, true) >= left)
        try_syntax(x, index, false);
    x->cur = index;
    x->done = 0;
    x->count = take_count(&x->cur, x->bincode);
    if (x->cur.bad)
        return tnf_fail(e, TNF_EFORMAT, index.base,
                        "the index of %zu bytes is too short for the number of tensors",
                        tnf_left(&index));
    return TNF_OK;
}

void tnf_gptrs_inline_begin(tnf_gptrs_index *x, uint64_t at, uint64_t count, tnf_fetch_fn fetch,
                            void *ctx, uint64_t size)
{
    x->inlined = true;
    x->bincode = false;
    x->stored_ids = 0;
    x->done = 0;
    x->count = count;
    x->at = at;
    x->end = size;
    x->fetch = fetch;
    x->ctx = ctx;
    x->cur = tnf_cur_over("", 0, at);
}

static tnf_status next_indexed(tnf_gptrs_index *x, record *out, tnf_error *e)
{
    *out = take_record(&x->cur, x);
    if (x->cur.bad)
        return tnf_fail(e, TNF_EFORMAT, tnf_where(&x->cur),
                        "the index ends inside tensor %llu of the %llu it announces",
                        (unsigned long long)x->done + 1, (unsigned long long)x->count);
    return TNF_OK;
}

/* ---------------------------------------------------------- version 1 */

/* Makes x->cur a window of n bytes at x->at, or of all that remain. */
static tnf_status fill_window(tnf_gptrs_index *x, size_t n, tnf_error *e)
{
    if (n > x->end - x->at)
        n = (size_t)(x->end - x->at);
    if (n > x->window_capacity) {
        x->window_capacity = n < WINDOW ? WINDOW : n;
        x->window = tnf_arena_alloc(x->scratch, x->window_capacity);
        if (!x->window)
            return tnf_arena_fail(x->scratch, "descriptions of tensors", e);
    }
    TNF_TRY(x->fetch(x->ctx, x->at, x->window, n, e));
    x->cur = tnf_cur_over(x->window, n, x->at);
    return TNF_OK;
}

/* The file offset of the window's end. */
static uint64_t window_end(const tnf_gptrs_index *x)
{
    return x->cur.base + (uint64_t)(x->cur.end - x->cur.start);
}

/* Moves the cursor of the current window to x->at. */
static void move_on(tnf_gptrs_index *x)
{
    if (x->at < window_end(x))
        x->cur.p = x->cur.start + (x->at - x->cur.base);
    else
        x->cur = tnf_cur_over("", 0, x->at);
}

static tnf_status next_inlined(tnf_gptrs_index *x, record *out, tnf_error *e)
{
    unsigned long long number = x->done + 1, count = x->count;
    if (x->at > x->end)
        return tnf_fail(e, TNF_ETRUNCATED, x->end,
                        "the data of tensor %llu of %llu end %llu bytes after the file", number - 1,
                        count, (unsigned long long)(x->at - x->end));
    uint64_t most = (uint64_t)x->max_name + 8 * (uint64_t)x->max_rank + WINDOW, seen = 0;
    move_on(x);
    for (*out = take_record(&x->cur, x); x->cur.bad; *out = take_record(&x->cur, x)) {
        if (window_end(x) == x->end)
            return tnf_fail(e, TNF_ETRUNCATED, x->end,
                            "the file ends inside the description of tensor %llu of %llu", number,
                            count);
        if (seen == most)
            return tnf_fail(e, TNF_ELIMIT, x->at,
                            "the name or the shape of tensor %llu of %llu is beyond the limits",
                            number, count);
        seen = seen == 0 ? WINDOW : seen > most / 2 ? most : 2 * seen;
        TNF_TRY(fill_window(x, (size_t)seen, e));
    }
    if (!tnf_ckd_add(&x->at, out->offset, out->length))
        x->at = UINT64_MAX;
    return TNF_OK;
}

/* ------------------------------------------------------------ checks */

static tnf_status read_shape(tnf_gptrs_index *x, const record *t, tnf_error *e)
{
    if (t->rank > x->max_rank)
        return tnf_fail(e, TNF_ELIMIT, t->rank_at, "tensor %s has %llu dimensions; the limit is %u",
                        TNF_QUOTED(((tnf_str) { t->name, t->name_n })), (unsigned long long)t->rank,
                        x->max_rank);
    if (t->rank > x->shape_capacity) {
        x->shape_capacity = (size_t)t->rank < 8 ? 8 : (size_t)t->rank;
        x->shape = tnf_arena_array(x->scratch, x->shape_capacity, sizeof *x->shape);
        if (!x->shape)
            return tnf_arena_fail(x->scratch, "shapes", e);
    }
    for (uint64_t i = 0; i < t->rank; i++)
        x->shape[i] = tnf_le64(t->dims + 8 * i);
    return TNF_OK;
}

tnf_status tnf_gptrs_next(tnf_gptrs_index *x, tnf_gptrs_entry *out, tnf_error *e)
{
    record t;
    TNF_TRY(x->inlined ? next_inlined(x, &t, e) : next_indexed(x, &t, e));
    x->done++;
    tnf_str name = { t.name ? t.name : "", (size_t)t.name_n };
    size_t wrong;
    if (!tnf_utf8_valid(&wrong, name.p, name.n))
        return tnf_fail(e, TNF_EFORMAT, t.name_at + wrong, "the name of tensor %llu is not UTF-8",
                        (unsigned long long)x->done);
    if (t.tag >= NTAGS)
        return tnf_fail(e, TNF_EUNSUPPORTED, t.tag_at,
                        "tensor %s has the unknown type tag %lu; 0 to 3 are supported",
                        TNF_QUOTED(name), (unsigned long)t.tag);
    TNF_TRY(read_shape(x, &t, e));
    *out = (tnf_gptrs_entry) { .name = name,
                               .id = t.id,
                               .type = tnf_type_of(tags[t.tag]),
                               .shape = x->shape,
                               .rank = (uint32_t)t.rank,
                               .requires_grad = t.requires_grad,
                               .offset = t.offset,
                               .length = t.length,
                               .at = t.at,
                               .name_at = t.name_at,
                               .rank_at = t.rank_at,
                               .tag_at = t.tag_at,
                               .grad_at = t.grad_at };
    return TNF_OK;
}

void tnf_gptrs_base_id(uint8_t id[TNF_GPTRS_ID], tnf_str name)
{
    uint8_t digest[32];
    tnf_blake3(digest, name.p, name.n);
    memcpy(id, digest, TNF_GPTRS_ID);
}

void tnf_gptrs_hex(char out[2 * TNF_GPTRS_ID + 1], const uint8_t id[TNF_GPTRS_ID])
{
    *tnf_hex_put(out, id, TNF_GPTRS_ID) = '\0';
}

/* ---------------------------------------------------------------- writing */

tnf_status tnf_gptrs_index_size(uint64_t *out, const tnf_catalog *catalog, bool ids, tnf_error *e)
{
    const uint64_t fixed = 29 + (ids ? TNF_GPTRS_ID : 0);
    uint64_t total = 4;
    for (size_t i = 0; i < catalog->n; i++) {
        const tnf_object *o = &catalog->objects[i];
        uint64_t shape = 8 * (uint64_t)o->rank; /* rank is 32 bits wide */
        if (!tnf_ckd_add(&total, total, fixed + shape) || !tnf_ckd_add(&total, total, o->name.n))
            total = UINT64_MAX;
        if (total > UINT32_MAX)
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                            "the index would exceed the 4 GiB that its length field allows");
    }
    *out = total;
    return TNF_OK;
}

static uint32_t tag_of(const tnf_type *type)
{
    uint32_t tag = 0;
    while (tag + 1 < NTAGS && tags[tag] != type->storage)
        tag++;
    return tag;
}

/* The reader sets a bool, or a number if the byte was neither 0 nor 1; JSON may make it an i64.
 */
static uint8_t requires_grad(const tnf_object *object)
{
    const tnf_value *v = tnf_value_get(object->attrs, "gptrs.requires_grad");
    if (v && v->kind == TNF_BOOL)
        return v->as.b;
    if (v && v->kind == TNF_UINT)
        return v->as.u <= UINT8_MAX ? (uint8_t)v->as.u : 1;
    if (v && v->kind == TNF_INT)
        return v->as.i >= 0 && v->as.i <= UINT8_MAX ? (uint8_t)v->as.i : 1;
    return 0;
}

void tnf_gptrs_put_entry(tnf_buf *b, const tnf_object *object, const uint8_t *id, uint64_t offset)
{
    tnf_buf_u32(b, (uint32_t)object->name.n);
    tnf_buf_put(b, object->name.p, object->name.n);
    if (id)
        tnf_buf_put(b, id, TNF_GPTRS_ID);
    tnf_buf_u32(b, object->rank);
    for (uint32_t i = 0; i < object->rank; i++)
        tnf_buf_u64(b, object->shape[i]);
    tnf_buf_u32(b, tag_of(object->parts[0].type));
    tnf_buf_u8(b, requires_grad(object));
    tnf_buf_u64(b, offset);
    tnf_buf_u64(b, object->parts[0].nbytes);
}

tnf_status tnf_gptrs_place(uint64_t *out, uint64_t at, const tnf_object *object, uint64_t align,
                           tnf_error *e)
{
    uint64_t end;
    *out = at;
    if (object->parts[0].nbytes == 0)
        return TNF_OK;
    if (!tnf_ckd_align(out, at, align) || !tnf_ckd_add(&end, *out, object->parts[0].nbytes))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would exceed 2^64 bytes");
    return TNF_OK;
}

tnf_status tnf_gptrs_check_align(uint64_t align, tnf_error *e)
{
    if (align == 0 || align > MAX_ALIGN || (align & (align - 1)) != 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "align is %llu; it must be a power of two up to 16M",
                        (unsigned long long)align);
    return TNF_OK;
}
