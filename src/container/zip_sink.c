/* SPDX-License-Identifier: MIT */
#include "container/zip_sink.h"

#include "base/error.h"

#define MAX_HEADER ((uint64_t)256 << 10) /* enough for two lengths of 16 bits */

void tnf_zip_sink_begin(tnf_zip_sink *z, tnf_sink *sink, tnf_zip_style style,
                        const tnf_allocator *alloc)
{
    *z = (tnf_zip_sink) { .sink = sink, .style = style, .start = sink->written };
    tnf_buf_init(&z->directory, alloc, UINT64_MAX);
    tnf_buf_init(&z->header, alloc, MAX_HEADER);
}

void tnf_zip_sink_free(tnf_zip_sink *z)
{
    tnf_buf_free(&z->directory);
    tnf_buf_free(&z->header);
}

static tnf_status put_header(tnf_zip_sink *z, tnf_error *e)
{
    TNF_TRY(tnf_buf_status(&z->header, "the zip archive", e));
    return tnf_sink_write(z->sink, z->header.p, z->header.n, e);
}

uint64_t tnf_zip_sink_data(const tnf_zip_sink *z, const tnf_zip_put *m)
{
    tnf_zip_put here = *m;
    here.header = z->sink->written - z->start;
    return z->sink->written + tnf_zip_local_size(z->style, &here);
}

tnf_status tnf_zip_sink_member(tnf_zip_sink *z, const tnf_zip_put *m, tnf_error *e)
{
    if (m->name.n > UINT16_MAX)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the name of a member of a zip archive has at most 65,535 bytes");
    z->header.n = 0;
    z->member = *m;
    z->member.header = z->sink->written - z->start;
    z->member.streamed = z->style == TNF_ZIP_PYTHON && !z->sink->patch;
    tnf_zip_put_local(&z->header, z->style, &z->member);
    return put_header(z, e);
}

/* Writes the header again when all its numbers are known. */
static tnf_status rewrite_header(tnf_zip_sink *z, tnf_error *e)
{
    z->header.n = 0;
    tnf_zip_put_local(&z->header, z->style, &z->member);
    TNF_TRY(tnf_buf_status(&z->header, "the zip archive", e));
    return tnf_sink_patch(z->sink, z->start + z->member.header, z->header.p, z->header.n, e);
}

tnf_status tnf_zip_sink_member_end(tnf_zip_sink *z, uint64_t size, uint32_t crc, tnf_error *e)
{
    tnf_zip_put *m = &z->member;
    m->stored = z->sink->written - z->start - m->header - tnf_zip_local_size(z->style, m);
    if (z->style == TNF_ZIP_TORCH && (m->size != size || m->stored != size))
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "a member has another size than announced");
    m->size = size;
    m->crc = crc;
    if (z->style == TNF_ZIP_PYTHON && !m->streamed)
        TNF_TRY(rewrite_header(z, e));
    z->header.n = 0;
    tnf_zip_put_behind(&z->header, z->style, m);
    TNF_TRY(put_header(z, e));
    tnf_zip_put_central(&z->directory, z->style, m);
    z->members++;
    return tnf_buf_status(&z->directory, "the zip archive", e);
}

tnf_status tnf_zip_sink_end(tnf_zip_sink *z, tnf_str comment, tnf_error *e)
{
    uint64_t at = z->sink->written - z->start;
    if (comment.n > UINT16_MAX)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the comment of a zip archive has at most 65,535 bytes");
    TNF_TRY(tnf_buf_status(&z->directory, "the zip archive", e));
    TNF_TRY(tnf_sink_write(z->sink, z->directory.p, z->directory.n, e));
    z->header.n = 0;
    tnf_zip_put_end(&z->header, z->style, z->members, at, z->directory.n, comment);
    return put_header(z, e);
}
