/* SPDX-License-Identifier: MIT */
/* Shared by checkpoints and archives of gpt.rs. formats/gptrs/index.h draws the index. */
#include "formats/gptrs/common.h"

#include <stdio.h>
#include <string.h>

#define TRAILING "gptrs.trailing"

tnf_gptrs_index tnf_gptrs_index_of(const tnf_reader *r, bool ids)
{
    return (tnf_gptrs_index) { .ids = ids,
                               .scratch = r->scratch,
                               .max_rank = r->limits.rank,
                               .max_name = r->limits.name_bytes };
}

tnf_status tnf_gptrs_read_head(tnf_reader *r, const char *magic, uint32_t *version,
                               uint32_t *number, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "header", 0, GPTRS_HEAD, GPTRS_HEAD, &c, e));
    if (memcmp(tnf_bytes(&c, 8), magic, 8) != 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "the file does not begin with %s, the format's magic",
                        magic);
    *version = tnf_u32(&c);
    *number = tnf_u32(&c);
    return TNF_OK;
}

static tnf_status add_entry(tnf_reader *r, const tnf_gptrs_index *x, const tnf_gptrs_entry *t,
                            tnf_gptrs_attrs attrs, tnf_error *e)
{
    tnf_dense d = { .name = t->name,
                    .type = t->type,
                    .shape = t->shape,
                    .rank = t->rank,
                    .offset = t->offset,
                    .length = t->length,
                    .at = t->at };
    if (t->rank == 0)
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, t->rank_at,
                             "%s has no dimensions, but gpt.rs does not support scalars",
                             TNF_QUOTED(t->name)));
    if (t->requires_grad > 1)
        tnf_warn(r, t->grad_at, "the byte for requires_grad of %s is %u, not 0 or 1",
                 TNF_QUOTED(t->name), t->requires_grad);
    TNF_TRY(attrs(&d.attrs, r, x, t, e));
    return tnf_add_dense(r, &d, e);
}

static tnf_status add_all(tnf_reader *r, tnf_gptrs_index *x, tnf_gptrs_attrs attrs, tnf_error *e)
{
    uint64_t end = r->data_start;
    for (uint64_t i = 0; i < x->count; i++) {
        tnf_gptrs_entry t;
        uint64_t behind;
        TNF_TRY(tnf_gptrs_next(x, &t, e));
        TNF_TRY(add_entry(r, x, &t, attrs, e));
        if (tnf_ckd_add(&behind, t.offset, t.length) && behind > end)
            end = behind;
    }
    if (end >= r->source->size)
        return TNF_OK;
    uint64_t rest = r->source->size - end;
    tnf_warn(r, end, "%s the last tensor", TNF_BYTES_FOLLOW(rest));
    return tnf_add_extra(r, TRAILING, end, rest, e);
}

tnf_status tnf_gptrs_read_v2(tnf_reader *r, uint64_t at, uint32_t n, tnf_gptrs_index *x,
                             tnf_gptrs_attrs attrs, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "index", at, n, GPTRS_MAX_BYTES, &c, e));
    r->data_start = at + n;
    TNF_TRY(tnf_gptrs_index_begin(x, c, e));
    r->version = x->bincode ? "2-bincode" : "2";
    tnf_trace(r, at, "%s index of %lu bytes, %llu tensors", x->bincode ? "bincode" : "plain",
              (unsigned long)n, (unsigned long long)x->count);
    TNF_TRY(add_all(r, x, attrs, e));
    if (tnf_left(&x->cur) > 0)
        tnf_warn(r, tnf_where(&x->cur), "%s the last tensor of the index",
                 TNF_BYTES_FOLLOW(tnf_left(&x->cur)));
    return TNF_OK;
}

tnf_status tnf_gptrs_read_v1(tnf_reader *r, uint64_t at, uint32_t count, tnf_gptrs_index *x,
                             tnf_gptrs_attrs attrs, tnf_error *e)
{
    r->version = "1";
    r->data_start = at;
    tnf_trace(r, at, "%lu tensors, each before its data", (unsigned long)count);
    tnf_gptrs_inline_begin(x, at, count, tnf_source_fetch, (void *)(uintptr_t)r->source,
                           r->source->size);
    return add_all(r, x, attrs, e);
}

/* ------------------------------------------------------------------- fits */

/* gpt.rs' own reader: the file can be opened, but this type is refused when it is read. */
static bool is_loaded(const tnf_type *type)
{
    return type == tnf_type_of(TNF_F32) || type == tnf_type_of(TNF_I32);
}

static bool is_half(const tnf_type *type)
{
    return type == tnf_type_of(TNF_F16) || type == tnf_type_of(TNF_BF16);
}

/* A better reason for a tensor that cannot be written, if another type would make it possible. */
static const char *better_reason(const tnf_object *o)
{
    if (o->layout->block_bytes)
        return "gpt.rs' files have only dense tensors: --dtype f32 makes one of it";
    if (o->layout == &tnf_layout_dense && o->parts[0].type->number == TNF_NUMBER_FLOAT &&
        !is_half(o->parts[0].type) && !is_loaded(o->parts[0].type))
        return "gpt.rs' files have only f32, f16, bf16 and i32: --dtype f32 casts it";
    return NULL;
}

static tnf_status note_unloaded(tnf_fit *fit, size_t first, size_t n, tnf_error *e)
{
    const char *type = fit->catalog->objects[first].parts[0].type->id;
    char text[160];
    if (n == 1)
        snprintf(text, sizeof text,
                 "gpt.rs itself loads only f32 and i32, but this is %s: --dtype f32 casts it",
                 type);
    else
        snprintf(text, sizeof text,
                 "gpt.rs itself loads only f32 and i32, but this is %s, and %s f16 or bf16: "
                 "--dtype f32 casts them",
                 type, TNF_COUNTED(n - 1, "other tensor is", "other tensors are"));
    const char *why = tnf_arena_str(fit->scratch, text, strlen(text));
    if (!why)
        return tnf_arena_fail(fit->scratch, "a note", e);
    fit->objects[first].why = why;
    return TNF_OK;
}

tnf_status tnf_gptrs_fits(tnf_fit *fit, tnf_error *e)
{
    size_t first = 0, n = 0;
    for (size_t i = fit->catalog->n; i-- > 0;) {
        const tnf_object *o = &fit->catalog->objects[i];
        tnf_verdict *found = &fit->objects[i];
        const char *better = found->fate == TNF_DROPPED ? better_reason(o) : NULL;
        if (better)
            found->why = better;
        if (found->fate == TNF_NATIVE && !is_loaded(o->parts[0].type)) {
            first = i;
            n++;
        }
    }
    return n > 0 ? note_unloaded(fit, first, n, e) : TNF_OK;
}

/* ---------------------------------------------------------------- writing */

tnf_status tnf_gptrs_order(tnf_writer *w, const uint32_t **order, tnf_error *e)
{
    *order = NULL;
    TNF_TRY(tnf_gptrs_check_align(w->options[GPTRS_WRITE_ALIGN].u, e));
    if (tnf_follows(w, GPTRS_WRITE_ORDER))
        return TNF_OK;
    return w->options[GPTRS_WRITE_ORDER].u == GPTRS_ORDER_NAME ? tnf_sorted(w, order, NULL, e)
                                                               : TNF_OK;
}

tnf_status tnf_gptrs_room(uint64_t *out, const tnf_writer *w, uint64_t index_len, tnf_error *e)
{
    TNF_TRY(tnf_need_places(w, e));
    if (strcmp(w->like->version, "2") != 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "its index has an older form, which is no longer written");
    uint64_t all = GPTRS_HEAD + index_len;
    if (all > w->like->data_start)
        return tnf_no_room(all - w->like->data_start, "the index", e);
    *out = w->like->data_start - all;
    return TNF_OK;
}

uint64_t tnf_gptrs_align(const tnf_writer *w)
{
    uint64_t given = w->options[GPTRS_WRITE_ALIGN].u;
    uint64_t had = tnf_follows(w, GPTRS_WRITE_ALIGN) && tnf_has_places(w)
                       ? tnf_alignment(w, GPTRS_MAPPED)
                       : 0;
    return had == GPTRS_MAPPED ? had : given;
}

/* Places a tensor at `at` or later; in place, at its old offset. */
static tnf_status place_tensor(uint64_t *out, uint64_t at, const tnf_writer *w, const tnf_object *o,
                               tnf_error *e)
{
    if (!w->in_place)
        return tnf_gptrs_place(out, at, o, tnf_gptrs_align(w), e);
    *out = o->parts[0].offset;
    return TNF_OK;
}

static tnf_status put_index(tnf_writer *w, const uint32_t *order, uint64_t at, tnf_gptrs_id id,
                            tnf_buf *b, tnf_error *e)
{
    TNF_TRY(tnf_put_u32(w, (uint32_t)w->catalog->n, e));
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, order, i);
        uint8_t bytes[TNF_GPTRS_ID];
        if (id)
            id(bytes, w, o);
        TNF_TRY(place_tensor(&at, at, w, o, e));
        b->n = 0;
        tnf_gptrs_put_entry(b, o, id ? bytes : NULL, at);
        TNF_TRY(tnf_buf_status(b, "the index entry", e));
        TNF_TRY(tnf_put(w, b->p, b->n, e));
        at += o->parts[0].nbytes;
    }
    return TNF_OK;
}

static tnf_status put_payloads(tnf_writer *w, const uint32_t *order, tnf_error *e)
{
    if (w->in_place)
        return tnf_put_same(w, w->like->source->size, e);
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, order, i);
        uint64_t at;
        TNF_TRY(place_tensor(&at, w->sink->written, w, o, e));
        TNF_TRY(tnf_put_fill(w, 0, at - w->sink->written, e));
        TNF_TRY(tnf_put_data(w, &o->parts[0], e));
    }
    for (size_t i = 0; i < w->catalog->nextras; i++)
        if (tnf_str_is(w->catalog->extras[i].key, TRAILING))
            TNF_TRY(tnf_put_data(w, &w->catalog->extras[i].bytes, e));
    return TNF_OK;
}

tnf_status tnf_gptrs_write(tnf_writer *w, const uint32_t *order, uint64_t index_len,
                           tnf_gptrs_id id, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &w->scratch->alloc, GPTRS_MAX_BYTES);
    tnf_status status = put_index(w, order, w->sink->written + index_len, id, &b, e);
    tnf_buf_free(&b);
    return status == TNF_OK ? put_payloads(w, order, e) : status;
}
