/* SPDX-License-Identifier: MIT */
/* An append that another program did not finish leaves a complete model before it (Tenfold's
 * appends do not need this: append.c):
 *
 *   magic │ blobs │ manifest │ footer │ 0… │ new blobs, perhaps a new manifest … truncated
 *                                     └ the last footer with a valid manifest
 *
 * The specification requires the footer at the end and defines no search for another. So this is
 * done only in lenient mode, with a warning.
 */
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>

#define BLOCK ((size_t)64 << 10)
#define TRIES 16u /* valid footers to try; each costs reading its manifest */

/* Is there a footer with a valid manifest that ends at `end`? TNF_EFORMAT: no. */
static tnf_status try_footer(zt2 *z, uint64_t end, unsigned *tries, tnf_error *e)
{
    zt2_footer f;
    if (end < ZT2_SMALLEST || *tries == 0)
        return TNF_EFORMAT;
    tnf_status status = tnf_zt2_read_footer(z->r, &f, end - ZT2_FOOTER, e);
    if (status == TNF_OK && f.length == 0)
        return TNF_EFORMAT;
    if (status == TNF_OK)
        status = tnf_zt2_check_footer(&f, e);
    if (status != TNF_OK)
        return status == TNF_ENOMEM || status == TNF_EIO || status == TNF_ENET ? status
                                                                               : TNF_EFORMAT;
    --*tries;
    tnf_cur c;
    status = tnf_read_range(z->r, "manifest", f.offset, f.length, ZT2_MAX_MANIFEST, &c, e);
    if (status == TNF_OK)
        status = tnf_zt2_check_hash(&f, c.p, e);
    if (status == TNF_OK)
        z->footer = f;
    return status == TNF_ELIMIT ? TNF_EFORMAT : status;
}

/* Searches backwards, block by block; blocks overlap, so no magic is split. */
static tnf_status search_magic(zt2 *z, uint8_t *block, tnf_error *e)
{
    unsigned tries = TRIES;
    for (uint64_t end = z->r->source->size; end > ZT2_MAGIC_N;) {
        uint64_t from = end > BLOCK ? end - BLOCK : 0;
        size_t n = (size_t)(end - from);
        TNF_TRY(tnf_source_read(z->r->source, from, block, n, e));
        for (size_t i = n - ZT2_MAGIC_N + 1; i-- > 0;) {
            if (block[i] != (uint8_t)ZT2_MAGIC[0] || memcmp(block + i, ZT2_MAGIC, ZT2_MAGIC_N) != 0)
                continue;
            tnf_status status = try_footer(z, from + i + ZT2_MAGIC_N, &tries, e);
            if (status != TNF_EFORMAT)
                return status;
        }
        if (from == 0)
            break;
        end = from + ZT2_MAGIC_N - 1;
    }
    return TNF_EFORMAT;
}

tnf_status tnf_zt2_recover(zt2 *z, tnf_error *e)
{
    tnf_error before = *e, why;
    uint64_t size = z->r->source->size;
    uint8_t *block = tnf_arena_raw(z->r->scratch, size < BLOCK ? size : BLOCK);
    if (!block)
        return tnf_arena_fail(z->r->scratch, "looking for a footer", e);
    tnf_status status = search_magic(z, block, &why);
    if (status == TNF_EFORMAT) {
        *e = before;
        return before.status;
    }
    if (status != TNF_OK) {
        *e = why;
        return status;
    }
    uint64_t end = z->footer.at + ZT2_FOOTER;
    tnf_warn(z->r, end,
             "an append was interrupted: this is the model before it, which ends at byte %" PRIu64
             "; %" PRIu64 " bytes after it are unused",
             end, size - end);
    return TNF_OK;
}
