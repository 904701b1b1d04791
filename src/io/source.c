/* SPDX-License-Identifier: MIT */
/* Sources: the common part of all back-ends. Bounds are checked only here, so a back-end never gets
 * a request outside of its size. */
#include "io/source.h"

#include "base/error.h"

#include <string.h>

tnf_status tnf_source_custom(tnf_source **out, const tnf_source_ops *ops, void *ctx, uint64_t size,
                             tnf_error *e)
{
    *out = NULL;
    TNF_TRY(tnf_need(ops, "ops", e));
    if (ops->version == 0 || ops->version > TNF_SOURCE_OPS_VERSION || !ops->read_at)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the ops of a source need the version %u and the function read_at",
                        TNF_SOURCE_OPS_VERSION);
    return tnf_source_new(out, ops, ctx, size, NULL, e);
}

tnf_status tnf_source_new(tnf_source **out, const tnf_source_ops *ops, void *ctx, uint64_t size,
                          const tnf_allocator *alloc, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(alloc);
    tnf_source *s = tnf_alloc(&a, sizeof *s);
    if (!s)
        return tnf_no_memory("a source", e);
    *s = (tnf_source) { .ops = *ops, .ctx = ctx, .size = size, .alloc = a, .fd = -1 };
    if (!ops->map)
        s->map_why = "this source cannot be mapped";
    *out = s;
    return TNF_OK;
}

void tnf_source_close(tnf_source *s)
{
    if (!s)
        return;
    if (s->ops.close)
        s->ops.close(s->ctx);
    tnf_free(&s->alloc, s, sizeof *s);
}

static tnf_status check_range(const tnf_source *s, uint64_t offset, uint64_t n, tnf_error *e)
{
    if (offset <= s->size && n <= s->size - offset)
        return TNF_OK;
    return tnf_fail(e, TNF_ETRUNCATED, s->size,
                    "%llu bytes were requested from byte %llu on, but the file has only %llu",
                    (unsigned long long)n, (unsigned long long)offset, (unsigned long long)s->size);
}

static tnf_status read_at(const tnf_source *s, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    tnf_status status;
    TNF_CALL(status, e, s->ops.read_at, s->ctx, offset, dst, n);
    return status;
}

tnf_status tnf_source_read(const tnf_source *s, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    TNF_TRY(check_range(s, offset, n, e));
    return n ? read_at(s, offset, dst, n, e) : TNF_OK;
}

tnf_status tnf_source_fetch(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    return tnf_source_read(ctx, offset, dst, n, e);
}

tnf_status tnf_memory_fetch(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const tnf_str *bytes = ctx;
    if (offset > bytes->n || n > bytes->n - offset)
        return tnf_fail(e, TNF_ETRUNCATED, bytes->n, "there are only %zu bytes", bytes->n);
    if (n)
        memcpy(dst, bytes->p + offset, n);
    return TNF_OK;
}

tnf_status tnf_source_read_many(const tnf_source *s, const tnf_range *ranges, size_t n,
                                tnf_error *e)
{
    for (size_t i = 0; i < n; i++)
        TNF_TRY(check_range(s, ranges[i].offset, ranges[i].n, e));
    if (s->ops.read_many) {
        tnf_status status;
        TNF_CALL(status, e, s->ops.read_many, s->ctx, ranges, n);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        if (ranges[i].n)
            TNF_TRY(read_at(s, ranges[i].offset, ranges[i].dst, ranges[i].n, e));
    return TNF_OK;
}

const void *tnf_source_map(const tnf_source *s, uint64_t offset, uint64_t n)
{
    if (s->map_why || offset > s->size || n > s->size - offset)
        return NULL;
    return s->ops.map(s->ctx, offset, n);
}

void tnf_source_advise(const tnf_source *s, uint64_t offset, uint64_t n, tnf_advice advice)
{
    if (s->ops.advise && n && offset < s->size)
        s->ops.advise(s->ctx, offset, n < s->size - offset ? n : s->size - offset, advice);
}

/* ----------------------------------------------------------------- memory */

static tnf_status memory_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    memcpy(dst, (const uint8_t *)ctx + offset, n);
    return TNF_OK;
}

static const void *memory_map(void *ctx, uint64_t offset, uint64_t n)
{
    (void)n;
    return (const uint8_t *)ctx + offset;
}

tnf_status tnf_source_memory(tnf_source **out, const void *bytes, size_t n, tnf_error *e)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = memory_read,
                                        .map = memory_map };
    *out = NULL;
    TNF_TRY(tnf_need_array(bytes, n, "bytes", e));
    union {
        const void *in;
        void *out;
    } unconst = { .in = bytes }; /* the ops above only read */
    return tnf_source_new(out, &ops, unconst.out, n, NULL, e);
}
