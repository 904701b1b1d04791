/* SPDX-License-Identifier: MIT */
/* Deleting: one byte a point, its type, becomes '0'. The length stays, or the next block could not
 * be found. Shredding comes after that byte is safe on the disk, so that a crash never leaves a
 * point that is half wiped. */
#include "points/points.h"

#include <stdlib.h>
#include <string.h>

#define WIPE ((size_t)64 << 10)

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Is each of them a block, of a kind that may be deleted? They are sorted. */
static tnf_status check(tnf_points *p, const uint64_t *sorted, size_t n, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    TNF_TRY(tnf_points_check_moved(p, e));
    tnf_points_rewind(p, TNF_VS_HEADER);
    for (size_t i = 0; i < n;) {
        TNF_TRY(tnf_vs_chain_next(c, e));
        if (c->type == TNF_VS_END || c->at > sorted[i])
            return tnf_fail(e, TNF_ENOTFOUND, sorted[i], "there is no point");
        if (c->at < sorted[i])
            continue;
        if (c->type == TNF_VS_META)
            return tnf_fail(e, TNF_EINVAL, c->at, "this is the meta block, which cannot go");
        while (i < n && sorted[i] == c->at)
            i++;
    }
    return TNF_OK;
}

static tnf_status wipe(tnf_points *p, uint64_t at, tnf_error *e)
{
    uint8_t head[TNF_VS_HEAD];
    TNF_TRY(tnf_disk_read(p->fd, at, head, sizeof head, e));
    uint64_t length = tnf_le32(head + 1);
    uint8_t *zeros = tnf_alloc0(&p->alloc, WIPE);
    if (!zeros)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for wiping");
    tnf_status status = TNF_OK;
    for (uint64_t done = 0; done < length && status == TNF_OK;) {
        size_t n = length - done < WIPE ? (size_t)(length - done) : WIPE;
        status = tnf_disk_write(p, p->fd, at + TNF_VS_HEAD + done, zeros, n, e);
        done += n;
    }
    tnf_free(&p->alloc, zeros, WIPE);
    return status;
}

static tnf_status blank(tnf_points *p, const uint64_t *sorted, size_t n, unsigned flags,
                        tnf_error *e)
{
    static const uint8_t type = TNF_VS_BLANK;
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_disk_write(p, p->fd, sorted[i], &type, 1, e));
    TNF_TRY(tnf_disk_sync(p, p->fd, e));
    if (!(flags & TNF_POINTS_SHRED))
        return TNF_OK;
    for (size_t i = 0; i < n; i++)
        TNF_TRY(wipe(p, sorted[i], e));
    return tnf_disk_sync(p, p->fd, e);
}

static tnf_status delete_all(tnf_points *p, const uint64_t *offsets, size_t n, unsigned flags,
                             tnf_error *e)
{
    if (n > SIZE_MAX / sizeof *offsets)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "too many offsets");
    uint64_t *sorted = tnf_alloc(&p->alloc, n * sizeof *sorted);
    if (!sorted)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for offsets");
    memcpy(sorted, offsets, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_number);
    tnf_status status = check(p, sorted, n, e);
    if (status == TNF_OK)
        status = blank(p, sorted, n, flags, e);
    tnf_free(&p->alloc, sorted, n * sizeof *sorted);
    return status;
}

tnf_status tnf_points_delete(tnf_points *p, const uint64_t *offsets, size_t n, unsigned flags,
                             tnf_error *e)
{
    if (n == 0)
        return TNF_OK;
    TNF_TRY(tnf_points_enter(p, true, e));
    tnf_status status = delete_all(p, offsets, n, flags, e);
    tnf_points_leave(p);
    return status;
}
