/* SPDX-License-Identifier: MIT */
/* gpt.rs tensor archives: named tensors, nothing else. Little-endian, index first:
 *
 *   "GPTRSTEN"  u32 version=2
 *   u32 index_len, index (see wire/gptrs_index.h: plain or bincode, without ids)
 *   data           offsets are absolute; back to back in the order of the index as a rule
 *
 *   "GPTRSTEN"  u32 version=1
 *   u32 count, then per tensor its description and its data
 *
 * Both versions are read; written is version 2 with a plain index, to the byte as gpt.rs writes it.
 * gpt.rs checks little of what an index says, so most rules here give way to `lenient`.
 */
#include "format.h"
#include "wire/gptrs_index.h"

#include <string.h>

#define MAGIC     "GPTRSTEN"
#define HEAD      16u
#define MAX_BYTES UINT32_MAX
#define TRAILING  "gptrs.trailing"

enum { WRITE_ALIGN, WRITE_ORDER };
enum { ORDER_NAME, ORDER_FILE };

static int probe(const tnf_probe *p)
{
    return p->nhead >= 8 && memcmp(p->head, MAGIC, 8) == 0 ? TNF_PROBE_MAGIC : TNF_PROBE_NO;
}

/* All tensors share one of these, unless the byte is neither 0 nor 1. */
static const tnf_member grad_members[2] = {
    { { "gptrs.requires_grad", 19 }, { .kind = TNF_BOOL, .as.b = false } },
    { { "gptrs.requires_grad", 19 }, { .kind = TNF_BOOL, .as.b = true } },
};
static const tnf_value grad_maps[2] = {
    { .kind = TNF_MAP, .n = 1, .as.members = &grad_members[0] },
    { .kind = TNF_MAP, .n = 1, .as.members = &grad_members[1] },
};

static tnf_status make_attrs(const tnf_value **out, tnf_reader *r, const tnf_gptrs_entry *t,
                             tnf_error *e)
{
    if (t->requires_grad <= 1) {
        *out = &grad_maps[t->requires_grad];
        return TNF_OK;
    }
    tnf_warn(r, t->grad_at, "the byte for requires_grad of %s is %u", TNF_QUOTED(t->name),
             t->requires_grad);
    tnf_attrs attrs = { .arena = r->arena };
    tnf_value byte = { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = t->requires_grad };
    TNF_TRY(tnf_attrs_push(&attrs, "gptrs.requires_grad", byte, e));
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

static tnf_status add(tnf_reader *r, const tnf_gptrs_entry *t, tnf_error *e)
{
    if (t->rank == 0)
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, t->rank_at,
                             "%s has no dimensions, and gpt.rs has no scalars",
                             TNF_QUOTED(t->name)));
    tnf_dense d = { .name = t->name,
                    .type = t->type,
                    .shape = t->shape,
                    .rank = t->rank,
                    .offset = t->offset,
                    .length = t->length,
                    .at = t->at };
    TNF_TRY(make_attrs(&d.attrs, r, t, e));
    return tnf_add_dense(r, &d, e);
}

static tnf_status add_all(tnf_reader *r, tnf_gptrs_index *x, tnf_error *e)
{
    uint64_t end = r->data_start;
    for (uint64_t i = 0; i < x->count; i++) {
        tnf_gptrs_entry t;
        TNF_TRY(tnf_gptrs_next(x, &t, e));
        TNF_TRY(add(r, &t, e));
        uint64_t behind;
        if (tnf_ckd_add(&behind, t.offset, t.length) && behind > end)
            end = behind;
    }
    if (end >= r->source->size)
        return TNF_OK;
    uint64_t rest = r->source->size - end;
    tnf_warn(r, end, "%llu bytes follow the last tensor", (unsigned long long)rest);
    return tnf_add_extra(r, TRAILING, end, rest, e);
}

static tnf_status index_v2(tnf_reader *r, uint32_t n, tnf_gptrs_index *x, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "index", HEAD, n, MAX_BYTES, &c, e));
    r->data_start = HEAD + (uint64_t)n;
    TNF_TRY(tnf_gptrs_index_begin(x, c, e));
    r->version = x->bincode ? "2-bincode" : "2";
    tnf_trace(r, HEAD, "%s index of %lu bytes, %llu tensors", x->bincode ? "bincode" : "plain",
              (unsigned long)n, (unsigned long long)x->count);
    TNF_TRY(add_all(r, x, e));
    if (tnf_left(&x->cur) > 0)
        tnf_warn(r, tnf_where(&x->cur), "the index goes on for %zu bytes after its last tensor",
                 tnf_left(&x->cur));
    return TNF_OK;
}

static tnf_status fetch(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const tnf_reader *r = ctx;
    return tnf_source_read(r->source, offset, dst, n, e);
}

static tnf_status index_all(tnf_reader *r, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "header", 8, 8, 8, &c, e));
    uint32_t version = tnf_u32(&c), number = tnf_u32(&c);
    tnf_gptrs_index x = { .scratch = r->scratch,
                          .max_rank = r->limits.rank,
                          .max_name = r->limits.name_bytes };
    if (version == 2)
        return index_v2(r, number, &x, e);
    if (version != 1)
        return tnf_fail(e, TNF_EUNSUPPORTED, 8, "version %lu; known are 1 and 2",
                        (unsigned long)version);
    r->version = "1";
    r->data_start = HEAD;
    tnf_trace(r, 12, "%lu tensors, each before its data", (unsigned long)number);
    tnf_gptrs_inline_begin(&x, HEAD, number, fetch, r, r->source->size);
    return add_all(r, &x, e);
}

/* ---------------------------------------------------------------- writing */

static tnf_status put_index(tnf_writer *w, const uint32_t *order, uint64_t at, tnf_buf *b,
                            tnf_error *e)
{
    TNF_TRY(tnf_put_u32(w, (uint32_t)w->catalog->n, e));
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, order, i);
        TNF_TRY(tnf_gptrs_place(&at, at, o, w->options[WRITE_ALIGN].u, e));
        b->n = 0;
        tnf_gptrs_put_entry(b, o, NULL, at);
        TNF_TRY(tnf_buf_status(b, "index entry", e));
        TNF_TRY(tnf_put(w, b->p, b->n, e));
        at += o->parts[0].nbytes;
    }
    return TNF_OK;
}

static tnf_status put_payloads(tnf_writer *w, const uint32_t *order, tnf_error *e)
{
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, order, i);
        uint64_t at;
        TNF_TRY(tnf_gptrs_place(&at, w->sink->written, o, w->options[WRITE_ALIGN].u, e));
        TNF_TRY(tnf_put_fill(w, 0, at - w->sink->written, e));
        TNF_TRY(tnf_put_data(w, &o->parts[0], e));
    }
    for (size_t i = 0; i < w->catalog->nextras; i++)
        if (strcmp(w->catalog->extras[i].key.p, TRAILING) == 0)
            TNF_TRY(tnf_put_data(w, &w->catalog->extras[i].bytes, e));
    return TNF_OK;
}

static tnf_status write_all(tnf_writer *w, tnf_error *e)
{
    const uint32_t *order = NULL;
    uint64_t index_len;
    TNF_TRY(tnf_gptrs_check_align(w->options[WRITE_ALIGN].u, e));
    if (w->options[WRITE_ORDER].u == ORDER_NAME)
        TNF_TRY(tnf_sorted(w, &order, NULL, e));
    TNF_TRY(tnf_gptrs_index_size(&index_len, w->catalog, false, e));
    TNF_TRY(tnf_put(w, MAGIC, 8, e));
    TNF_TRY(tnf_put_u32(w, 2, e));
    TNF_TRY(tnf_put_u32(w, (uint32_t)index_len, e));
    tnf_buf b;
    tnf_buf_init(&b, &w->scratch->alloc, MAX_BYTES);
    tnf_status status = put_index(w, order, HEAD + index_len, &b, e);
    tnf_buf_free(&b);
    return status == TNF_OK ? put_payloads(w, order, e) : status;
}

static const tnf_option_info write_options[] = {
    { "align", TNF_OPTION_UINT, NULL, "1",
      "begin every tensor on a multiple of this; 1 as gpt.rs does, 64 for mapped use" },
    { "order", TNF_OPTION_CHOICE, "name|file", "name",
      "of the tensors: by name as gpt.rs does, or as in the source" },
    { 0 },
};

const tnf_format tnf_format_gptrs_archive = {
    .name = "gptrs-archive",
    .title = "gpt.rs tensor archive",
    .extensions = "gten gptrs",
    .family = "gptrs",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .rules = TNF_RULE_DATA_START | TNF_RULE_OVERLAP_ODD,
    .can = { .types = "f32 f16 bf16 i32",
             .layouts = "dense",
             .utf8_names = true,
             .extras = true,
             .attrs = TNF_HOLDS_NONE,
             .object_attrs = "gptrs.requires_grad",
             .derived = "gptrs.requires_grad=false" },
    .write_options = write_options,
    .probe = probe,
    .index = index_all,
    .write = write_all,
};
