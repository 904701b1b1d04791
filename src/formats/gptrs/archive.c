/* SPDX-License-Identifier: MIT */
/* gpt.rs tensor archives: named tensors only. Little-endian, index first:
 *
 *   "GPTRSTEN"  u32 version=2
 *   u32 index_len, index (see formats/gptrs/index.h: plain or bincode, without ids)
 *   data           offsets are absolute; usually contiguous, in the order of the index
 *
 *   "GPTRSTEN"  u32 version=1
 *   u32 count, then per tensor its description and its data
 *
 * Both versions are read. The writer writes version 2 with a plain index, the same bytes as gpt.rs.
 * gpt.rs checks little of an index, so lenient mode relaxes most rules here.
 */
#include "formats/gptrs/common.h"

#include <string.h>

#define MAGIC "GPTRSTEN"

static int probe_archive(const tnf_probe *p)
{
    return p->nhead >= 8 && memcmp(p->head, MAGIC, 8) == 0 ? TNF_PROBE_MAGIC : TNF_PROBE_NO;
}

/* Shared by all tensors whose byte is 0 or 1. */
static const tnf_member grad_members[2] = {
    { { "gptrs.requires_grad", 19 }, { .kind = TNF_BOOL, .as.b = false } },
    { { "gptrs.requires_grad", 19 }, { .kind = TNF_BOOL, .as.b = true } },
};
static const tnf_value grad_maps[2] = {
    { .kind = TNF_MAP, .n = 1, .as.members = &grad_members[0] },
    { .kind = TNF_MAP, .n = 1, .as.members = &grad_members[1] },
};

static tnf_status make_attrs(const tnf_value **out, tnf_reader *r, const tnf_gptrs_index *x,
                             const tnf_gptrs_entry *t, tnf_error *e)
{
    (void)x;
    if (t->requires_grad <= 1) {
        *out = &grad_maps[t->requires_grad];
        return TNF_OK;
    }
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

static tnf_status index_archive(tnf_reader *r, tnf_error *e)
{
    uint32_t version, number;
    TNF_TRY(tnf_gptrs_read_head(r, MAGIC, &version, &number, e));
    tnf_gptrs_index x = tnf_gptrs_index_of(r, false);
    if (version == 2)
        return tnf_gptrs_read_v2(r, GPTRS_HEAD, number, &x, make_attrs, e);
    if (version == 1)
        return tnf_gptrs_read_v1(r, GPTRS_HEAD, number, &x, make_attrs, e);
    return tnf_fail(e, TNF_EUNSUPPORTED, 8, "unsupported version %lu; 1 and 2 are supported",
                    (unsigned long)version);
}

static tnf_status write_archive(tnf_writer *w, tnf_error *e)
{
    const uint32_t *order;
    uint64_t index_len;
    TNF_TRY(tnf_gptrs_order(w, &order, e));
    TNF_TRY(tnf_gptrs_index_size(&index_len, w->catalog, false, e));
    if (w->in_place) {
        uint64_t room;
        TNF_TRY(tnf_gptrs_room(&room, w, index_len, e));
        if (room > 0)
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "its index would become shorter");
    }
    TNF_TRY(tnf_put(w, MAGIC, 8, e));
    TNF_TRY(tnf_put_u32(w, 2, e));
    TNF_TRY(tnf_put_u32(w, (uint32_t)index_len, e));
    return tnf_gptrs_write(w, order, index_len, NULL, e);
}

static const tnf_option_info write_options[] = {
    GPTRS_WRITE_OPTIONS,
    { "stash", TNF_OPTION_BOOL, NULL, "no",
      "store metadata in a tensor tenfold.stash, since the format has no other place for it" },
    { 0 },
};

const tnf_format tnf_format_gptrs_archive = {
    .name = "gptrs-archive",
    .title = "gpt.rs tensor archive",
    .extensions = "gten gptrs",
    .family = "gptrs", /* the build looks for the family here */
    GPTRS_RULES,
    .can = { GPTRS_CAN, .attrs = TNF_HOLDS_NONE, .stash_type = "i32",
             .object_attrs = "gptrs.requires_grad", .derived = "gptrs.requires_grad=false" },
    .write_options = write_options,
    .probe = probe_archive,
    .index = index_archive,
    .write = TNF_WRITES(write_archive),
};
