/* SPDX-License-Identifier: MIT */
/* Compares a complete object with the digest that its server gives. */
#include "remote/list.h"
#include "remote/web.h"

#define PIECE (32u << 20) /* bytes per read, which keep several connections busy */

static tnf_status read_piece(const tnf_source *source, tnf_remote *f, uint64_t at, uint8_t *bytes,
                             size_t n, tnf_error *e)
{
    return f->no_ranges ? tnf_source_read(source, at, bytes, n, e)
                        : tnf_remote_get_long(f, at, bytes, n, e);
}

static tnf_status sum_object(const tnf_source *source, tnf_summing *d, tnf_remote_step_fn step,
                             void *ctx, tnf_error *e)
{
    tnf_remote *f = tnf_web_remote(source);
    uint64_t total = source->size;
    size_t room = total < PIECE ? (size_t)total : PIECE;
    tnf_status status = step(ctx, 0, e);
    TNF_TRY(status);
    uint8_t *bytes = tnf_alloc(&f->session->alloc, room ? room : 1);
    if (!bytes)
        return tnf_no_memory("a hash", e);
    for (uint64_t at = 0; at < total && status == TNF_OK; at += room) {
        size_t n = total - at < room ? (size_t)(total - at) : room;
        status = read_piece(source, f, at, bytes, n, e);
        if (status != TNF_OK)
            break;
        tnf_summing_update(d, bytes, n);
        status = step(ctx, n, e);
    }
    tnf_free(&f->session->alloc, bytes, room ? room : 1);
    return status;
}

tnf_status tnf_remote_check(const tnf_source *source, tnf_remote_step_fn step, void *ctx,
                            tnf_error *e)
{
    tnf_remote *f = tnf_web_remote(source);
    tnf_sum told = { 0 }, is;
    tnf_summing d;
    if (!f || (f->no_ranges && f->spool < 0)) /* the complete object cannot be read */
        return TNF_OK;
    TNF_TRY(tnf_remote_digest(f, &told, e));
    if (!told.kind)
        return TNF_OK;
    if (!tnf_summing_begin(&d, told.kind))
        return tnf_no_memory("a hash", e);
    tnf_status status = sum_object(source, &d, step, ctx, e);
    tnf_summing_end(&d, &is);
    TNF_TRY(status);
    return tnf_sum_compare(&is, &told, "the file", f->local, e);
}
