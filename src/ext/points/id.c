/* SPDX-License-Identifier: MIT */
/* Ids of points: the offset of a block, and the CRC-32 of its bytes as they are, or were, when the
 * point is not deleted. So a deleted point can still be recognised, unless it was shredded.
 *
 *   1234:0a1b2c3d     the text of an id
 */
#include "base/crc32.h"
#include "base/hex.h"
#include "base/str.h"
#include "ext/points/points.h"

#include <inttypes.h>
#include <stdio.h>

#define PIECE  ((uint64_t)256 << 10)
#define DIGITS 8u

/* -------------------------------------------------------------------- text */

size_t tnf_point_id_text(char out[TNF_POINT_ID_TEXT], tnf_point_id id)
{
    int n = snprintf(out, TNF_POINT_ID_TEXT, "%" PRIu64 ":%08" PRIx32, id.offset, id.hash);
    return n > 0 ? (size_t)n : 0;
}

tnf_status tnf_point_id_parse(tnf_point_id *out, const char *text, size_t n, tnf_error *e)
{
    uint8_t hash[4];
    TNF_TRY(tnf_need_array(text, n, "text", e));
    *out = (tnf_point_id) { 0 };
    const char *colon = n > 1 + DIGITS ? text + n - DIGITS - 1 : text, *at = text;
    out->offset = tnf_take_digits(&at, colon);
    if (at == text || at != colon || *colon != ':' || out->offset == UINT64_MAX ||
        !tnf_hex_take(hash, colon + 1, sizeof hash))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is not the id of a point, OFFSET:HASH",
                        TNF_QUOTED(((tnf_str) { n ? text : "", n })));
    out->hash = (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
    return TNF_OK;
}

/* -------------------------------------------------------------------- hash */

uint32_t tnf_points_hash(const uint8_t *block, size_t n)
{
    return tnf_crc32(0, block, n);
}

/* The hash that the current block has as a point, or had before it was deleted. */
static tnf_status hash_block(tnf_vs_chain *c, uint32_t *out, tnf_error *e)
{
    static const uint8_t type = TNF_VS_POINT;
    const uint8_t *p = NULL;
    uint64_t end = c->at + TNF_VS_HEAD + c->length;
    uint32_t crc = tnf_crc32(0, &type, 1);
    for (uint64_t at = c->at + 1; at < end;) {
        size_t n = (size_t)(end - at < PIECE ? end - at : PIECE);
        TNF_TRY(tnf_vs_chain_bytes(c, at, n, &p, e));
        crc = tnf_crc32(crc, p, n);
        at += n;
    }
    *out = crc;
    return TNF_OK;
}

static tnf_status tell_stale(tnf_point_id id, bool deleted, tnf_error *e)
{
    char text[TNF_POINT_ID_TEXT];
    tnf_point_id_text(text, id);
    return deleted ? tnf_fail(e, TNF_ENOTFOUND, id.offset, "the point %s was deleted", text)
                   : tnf_fail(e, TNF_ENOTFOUND, id.offset,
                              "the point %s is not there any more: it was deleted, or it moved when "
                              "the file was compacted",
                              text);
}

tnf_status tnf_points_match(tnf_points *p, tnf_point_id id, bool *deleted, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    uint32_t hash = 0;
    bool block = c->at == id.offset && (c->type == TNF_VS_POINT || c->type == TNF_VS_BLANK);
    *deleted = block && c->type == TNF_VS_BLANK;
    if (block)
        TNF_TRY(hash_block(c, &hash, e));
    return block && hash == id.hash ? TNF_OK : tell_stale(id, false, e);
}

tnf_status tnf_points_match_live(tnf_points *p, tnf_point_id id, tnf_error *e)
{
    bool deleted;
    TNF_TRY(tnf_points_match(p, id, &deleted, e));
    return deleted ? tell_stale(id, true, e) : TNF_OK;
}

tnf_status tnf_points_seek(tnf_points *p, tnf_point_id id, bool *deleted, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    tnf_error why;
    *deleted = false;
    tnf_points_rewind(p, id.offset);
    bool inside = p->has_meta && id.offset >= TNF_VS_HEADER && id.offset < c->size;
    tnf_status status = inside ? tnf_vs_chain_next(c, &why) : TNF_ENOTFOUND;
    if (status == TNF_OK)
        return tnf_points_match(p, id, deleted, e);
    if (!inside || tnf_is_file_fault(status)) /* the bytes there are not a block */
        return tell_stale(id, false, e);
    if (e)
        *e = why;
    return status;
}
