/* SPDX-License-Identifier: MIT */
/* Explicit n-grams and their rows.
 *
 *   "is>" 0   "is" 1   "<t" 0          three n-grams, two rows
 *
 * Rows are counted from the first one after those of the words. The Rust tool renumbers the indices
 * of a file while it reads: 0, 1, 2 … in order of first appearance. The Python tool uses them
 * unchanged and requires all of 0 … k-1. This reader follows Python where possible, with a warning
 * if Rust would see other rows; otherwise it follows Rust.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

bool tnf_ff_rows_begin(ff_rows *rows, uint64_t n, tnf_arena *arena)
{
    *rows = (ff_rows) { .n = n, .ordered = true };
    rows->seen = tnf_arena_array(arena, n / 8 + 1, 1);
    return rows->seen != NULL;
}

void tnf_ff_rows_take(void *ctx, uint64_t index)
{
    ff_rows *rows = ctx;
    rows->most = index > rows->most ? index : rows->most;
    if (index == rows->next)
        rows->next++;
    else if (index > rows->next)
        rows->ordered = false;
    if (index >= rows->n || rows->seen[index / 8] >> index % 8 & 1)
        return;
    rows->seen[index / 8] |= (uint8_t)(1u << index % 8);
    rows->distinct++;
}

/* An index that is too large leaves a gap below, so it need not be counted. */
bool tnf_ff_rows_cover(const ff_rows *rows)
{
    return rows->n == 0 || (rows->most < rows->n && rows->most + 1 == rows->distinct);
}

/* -------------------------------------------------------------- renumbering */

static tnf_str index_bytes(const void *ctx, uint32_t position)
{
    return (tnf_str) { (const char *)ctx + 8 * (size_t)position, 8 };
}

static tnf_status number_anew(tnf_hash *h, uint8_t *rows_of, uint64_t n, uint64_t *rows,
                              tnf_error *e)
{
    *rows = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t previous;
        if (!tnf_hash_add(h, (uint32_t)i, false, &previous))
            return tnf_no_memory("n-grams", e);
        uint64_t row = previous == TNF_HASH_NONE ? (*rows)++ : tnf_le64(rows_of + 8 * previous);
        tnf_put_le64(rows_of + 8 * i, row);
    }
    return TNF_OK;
}

/* The rows of all n-grams by Rust's rule, in memory: little-endian u64. */
static tnf_status renumber_rows(ff_reading *f, uint8_t **out, uint64_t *rows, tnf_error *e)
{
    tnf_reader *r = f->r;
    uint64_t n = tnf_ff_list(f, FF_GRAMS)->count;
    if (n >= TNF_HASH_NONE)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "%llu n-grams are too many to renumber",
                        (unsigned long long)n);
    uint8_t *numbers = tnf_arena_array(r->scratch, n, 8);
    if (!numbers)
        return tnf_arena_fail(r->scratch, "n-grams", e);
    *out = tnf_arena_array(r->arena, n, 8);
    if (!*out)
        return tnf_arena_fail(r->arena, "n-grams", e);
    TNF_TRY(
        tnf_ff_decode(r, FF_KEY(f->lists + FF_GRAMS, FF_SUFFIXES), 0, numbers, (size_t)n * 8, e));
    tnf_hash h;
    tnf_hash_init(&h, &r->arena->alloc, index_bytes, numbers);
    tnf_status status = number_anew(&h, *out, n, rows, e);
    tnf_hash_free(&h);
    return status;
}

/* ------------------------------------------------------------------- read */

tnf_status tnf_ff_read_ngrams(ff_reading *f, const ff_frame *c, uint64_t bound, uint64_t *rows,
                              tnf_error *e)
{
    tnf_reader *r = f->r;
    ff_list *l = tnf_ff_list(f, FF_GRAMS);
    ff_rows seen;
    if (l->count > (bound - l->at) / 12)
        return tnf_fail(e, TNF_EFORMAT, c->body + 8,
                        "%llu n-grams do not fit into the remaining %llu bytes",
                        (unsigned long long)l->count, (unsigned long long)(bound - l->at));
    if (!tnf_ff_rows_begin(&seen, l->count, r->scratch))
        return tnf_arena_fail(r->scratch, "n-grams", e);
    TNF_TRY(tnf_ff_list_scan(f, l, bound, "n-gram", tnf_ff_rows_take, &seen, e));
    TNF_TRY(tnf_ff_list_add(f, FF_GRAMS, FF_NGRAMS, c->at, e));

    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U64),
                      .payload = TNF_OPAQUE,
                      .offset = FF_KEY(f->lists + FF_GRAMS, FF_SUFFIXES),
                      .nbytes = l->count * 8 };
    *rows = seen.distinct;
    if (!tnf_ff_rows_cover(&seen)) {
        uint8_t *anew = NULL;
        TNF_TRY(renumber_rows(f, &anew, rows, e));
        part.payload = TNF_MEMORY;
        part.offset = 0;
        part.memory = anew;
        tnf_warn(
            r, l->at,
            "the indices of the n-grams leave gaps: they are renumbered in order of appearance");
    } else if (!seen.ordered) {
        tnf_warn(r, l->at,
                 "the indices of the n-grams are used unchanged; finalfusion's Rust tool renumbers "
                 "them and sees other rows");
    }
    tnf_object o = { .name = { FF_INDEX, strlen(FF_INDEX) },
                     .layout = &tnf_layout_dense,
                     .shape = &l->count,
                     .rank = 1,
                     .parts = &part,
                     .nparts = 1 };
    return tnf_ff_add(f, &o, c->at, e);
}
