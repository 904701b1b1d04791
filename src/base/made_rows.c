/* SPDX-License-Identifier: MIT */
#include "base/made_rows.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ieee.h"

/* The rows are the same, whatever the mode of the caller's thread. */
static tnf_status make_from(tnf_make_rows make, void *ctx, uint64_t row, tnf_error *e)
{
    uint32_t mode = tnf_enter_ieee();
    tnf_status status = make(ctx, row, e);
    tnf_leave_ieee(mode);
    return status;
}

tnf_status tnf_made_rows_fetch(const tnf_made_rows *b, size_t dims, tnf_make_rows make, void *ctx,
                               uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint64_t row_bytes = dims * sizeof(float);
    uint8_t *to = dst;
    while (n > 0) {
        uint64_t row = offset / row_bytes;
        if (b->n == 0 || row < b->first || row - b->first >= b->n)
            TNF_TRY(make_from(make, ctx, row, e));
        uint64_t from = offset - b->first * row_bytes, there = b->n * row_bytes - from;
        size_t now = there < n ? (size_t)there : n;
        tnf_copy_le(to, b->rows, sizeof(float), (size_t)from, now);
        to += now;
        offset += now;
        n -= now;
    }
    return TNF_OK;
}

tnf_status tnf_made_norms_fetch(const tnf_made_rows *b, tnf_make_rows make, void *ctx,
                                uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    uint64_t last = (offset + n + sizeof(float) - 1) / sizeof(float);
    while (b->normed < last)
        TNF_TRY(make_from(make, ctx, b->normed, e));
    tnf_copy_le(dst, b->norms, sizeof(float), (size_t)offset, n);
    return TNF_OK;
}
