/* SPDX-License-Identifier: MIT */
/* Zip archives without a directory, which is the first part that a truncated file loses.
 *
 *   header, name, extra, data │ header, name, extra, data │ header, name, ex
 *                             └ the next one begins where one ends
 *
 * Each header contains the length of its member. A member whose sizes follow its data ends the
 * walk, since its end could only be guessed.
 */
#include "base/buf.h"
#include "base/ckd.h"
#include "base/error.h"
#include "wire/zip_entry.h"

#include <string.h>

/* TNF_ETRUNCATED, TNF_EFORMAT or TNF_EUNSUPPORTED: there is no further member. */
static tnf_status read_local(tnf_zip_member *m, const tnf_zip_from *from, uint64_t at, tnf_error *e)
{
    uint8_t header[HEADER_SIZE];
    tnf_status status;
    tnf_cur zip64;
    if (at > from->size || from->size - at < HEADER_SIZE)
        return tnf_fail(e, TNF_ETRUNCATED, from->size, "the zip archive ends here");
    TNF_CALL(status, e, from->fetch, from->ctx, at, header, sizeof header);
    TNF_TRY(status);
    size_t name_n = tnf_le16(header + 26), extra_n = tnf_le16(header + 28);
    if (tnf_le32(header) != SIG_HEADER || from->size - at - HEADER_SIZE < name_n + extra_n)
        return tnf_fail(e, TNF_EFORMAT, at, "there is no member here");
    uint8_t *rest = tnf_arena_raw(from->arena, name_n + extra_n + 1);
    if (!rest)
        return tnf_arena_fail(from->arena, "a zip archive", e);
    TNF_CALL(status, e, from->fetch, from->ctx, at + HEADER_SIZE, rest, name_n + extra_n);
    TNF_TRY(status);
    *m = (tnf_zip_member) { .raw = { (const char *)rest, name_n }, .at = at, .header = at };
    m->flags = tnf_le16(header + 6);
    m->method = tnf_le16(header + 8);
    m->crc = tnf_le32(header + 14);
    m->stored = tnf_le32(header + 18);
    m->size = tnf_le32(header + 22);
    TNF_TRY(tnf_zip_read_name(m, from, e));
    TNF_TRY(tnf_zip_find_extra(&zip64, rest + name_n, extra_n, at, e));
    m->size = m->size == ONES32 ? tnf_u64(&zip64) : m->size;
    m->stored = m->stored == ONES32 ? tnf_u64(&zip64) : m->stored;
    bool ends = tnf_ckd_add(&m->limit, at + HEADER_SIZE + name_n + extra_n, m->stored);
    if (zip64.bad || !ends || m->flags & FLAG_DESCRIPTOR)
        return tnf_fail(e, TNF_EFORMAT, at, "the end of the member %s is unknown",
                        TNF_QUOTED(m->name));
    return tnf_zip_check_member(m, 0, e);
}

static tnf_status walk_all(tnf_buf *members, const tnf_zip_from *from, tnf_error *e)
{
    tnf_zip_member m;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    for (uint64_t at = 0; members->n / sizeof m < from->max_members; at = m.limit) {
        tnf_status status = read_local(&m, from, at, &why);
        if (status == TNF_ETRUNCATED || status == TNF_EFORMAT || status == TNF_EUNSUPPORTED)
            return TNF_OK;
        if (status != TNF_OK) {
            if (e)
                *e = why;
            return status;
        }
        tnf_buf_put(members, &m, sizeof m);
        TNF_TRY(tnf_buf_status(members, "the zip archive", e));
    }
    return TNF_OK;
}

tnf_status tnf_zip_walk(tnf_zip *out, const tnf_zip_from *from, tnf_error *e)
{
    tnf_buf members;
    *out = (tnf_zip) { .directory = from->size, .end = from->size, .comment = { "", 0 } };
    tnf_buf_init(&members, &from->arena->alloc, from->arena->limit);
    tnf_status status = walk_all(&members, from, e);
    size_t n = members.n / sizeof *out->members;
    out->members = status == TNF_OK ? tnf_arena_array(from->arena, n, sizeof *out->members) : NULL;
    if (status == TNF_OK && !out->members)
        status = tnf_arena_fail(from->arena, "a zip archive", e);
    if (status == TNF_OK && n)
        memcpy(out->members, members.p, members.n);
    out->n = status == TNF_OK ? n : 0;
    tnf_buf_free(&members);
    return status == TNF_OK ? tnf_zip_check_twice(out, from, e) : status;
}
