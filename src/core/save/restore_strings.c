/* SPDX-License-Identifier: MIT */
/* Strings that a format stores padded to one length become strings again.
 *
 *   padded    t o 0 b e 0 o r 0 n o t
 *   offsets   0  2  4  6  9        bytes   t o b e o r n o t
 *
 * They are read twice when the file is opened: first their lengths, then their bytes.
 */
#include "core/core.h"

#include <string.h>

/* The state of reading the rows. */
struct rows {
    uint64_t width, at; /* at: position of the next bytes */
    uint64_t *ends;     /* ends of the strings; in the first round, their lengths */
    uint8_t *text;      /* NULL in the first round */
};

/* First round: a string ends after its last byte that is not 0. */
static void measure_string(struct rows *r, uint64_t row, uint64_t column, const uint8_t *p,
                           size_t n)
{
    while (n > 0 && p[n - 1] == 0)
        n--;
    if (n > 0)
        r->ends[row + 1] = column + n;
}

/* Second round: copies the bytes. */
static void collect_string(const struct rows *r, uint64_t row, uint64_t column, const uint8_t *p,
                           size_t n)
{
    uint64_t from = r->ends[row], length = r->ends[row + 1] - from;
    if (column < length)
        memcpy(r->text + from + column, p, n < length - column ? n : (size_t)(length - column));
}

static tnf_status pass_piece(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct rows *r = ctx;
    const uint8_t *p = bytes;
    (void)e;
    for (size_t here; n > 0; r->at += here, p += here, n -= here) {
        uint64_t row = r->at / r->width, column = r->at % r->width, left = r->width - column;
        here = n < left ? n : (size_t)left;
        if (r->text)
            collect_string(r, row, column, p, here);
        else
            measure_string(r, row, column, p, here);
    }
    return TNF_OK;
}

/* Converts lengths to ends. */
static uint64_t sum_up(uint64_t *ends, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        ends[i + 1] += ends[i];
    return ends[count];
}

tnf_status tnf_unpad_strings(tnf_part parts[2], tnf_file *f, const tnf_object *padded, tnf_error *e)
{
    struct rows r = { .width = padded->shape[padded->rank - 1] };
    const tnf_part *from = padded->parts;
    if (r.width == 0 || from->flags & TNF_PART_UNREADABLE)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "there are no strings");
    uint64_t count = from->nbytes / r.width;
    r.ends = tnf_arena_array(&f->arena, count + 1, sizeof *r.ends);
    if (!r.ends)
        return tnf_arena_fail(&f->arena, "strings", e);
    TNF_TRY(tnf_scan(from, pass_piece, &r, e));
    uint64_t total = sum_up(r.ends, count);
    r.text = tnf_arena_array(&f->arena, total, 1);
    if (!r.text)
        return tnf_arena_fail(&f->arena, "strings", e);
    r.at = 0;
    TNF_TRY(tnf_scan(from, pass_piece, &r, e));
    tnf_swap_le(r.ends, (size_t)count + 1, sizeof *r.ends);
    parts[0] = tnf_part_over("offsets", TNF_U64, r.ends, 8 * (count + 1));
    parts[1] = tnf_part_over("bytes", TNF_U8, r.text, total);
    return TNF_OK;
}
