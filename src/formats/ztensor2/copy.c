/* SPDX-License-Identifier: MIT */
/* Writes a changed copy of a file: its stored blobs are copied in their order in the file.
 *
 *   old   │ a │ 0 │ b (encoded) │ 0 │ dead manifest │ 0 │ c │ …       a and a' share a blob
 *   new   │ a │ 0 │ b (encoded) │ 0 │ c │ …                           and still do
 *
 * No blob is decoded, and digests do not change. A copy of a canonical file is canonical.
 */
#include "formats/ztensor2/zt2.h"

#include <stdlib.h>

typedef struct stored {
    const tnf_part *part;
    const zt2_blob **place;
} stored;

static int by_place(const void *a, const void *b)
{
    const tnf_part *x = ((const stored *)a)->part, *y = ((const stored *)b)->part;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->stored < y->stored ? -1 : x->stored > y->stored; /* empty parts first */
}

static tnf_status list_parts(stored **out, size_t *n, const zt2_blobs *b, const zt2_blob **placed,
                             tnf_error *e)
{
    const tnf_catalog *c = b->w->catalog;
    uint64_t parts = 0;
    for (size_t i = 0; i < c->n; i++)
        parts += c->objects[i].nparts;
    stored *list = tnf_arena_array(b->w->scratch, parts, sizeof *list);
    if (!list)
        return tnf_arena_fail(b->w->scratch, "the list of parts", e);
    *n = 0;
    for (size_t i = 0; i < c->n; i++)
        for (uint16_t k = 0; k < c->objects[i].nparts; k++)
            list[(*n)++] = (stored) { &c->objects[i].parts[k], placed++ };
    if (*n > 0)
        qsort(list, *n, sizeof *list, by_place);
    *out = list;
    return TNF_OK;
}

static tnf_status copy_blob(zt2_blobs *b, const tnf_part *p, uint64_t *at, tnf_error *e)
{
    tnf_part bytes = *p;
    bytes.payload = TNF_AT;
    bytes.flags = 0;
    bytes.nbytes = p->stored;
    TNF_TRY(tnf_zt2_blobs_align(b, e));
    *at = b->w->sink->written;
    return tnf_put_data(b->w, &bytes, e);
}

tnf_status tnf_zt2_copy_old(zt2_blobs *b, const zt2_blob **placed, tnf_error *e)
{
    stored *list = NULL;
    size_t n = 0;
    uint64_t at = 0;
    TNF_TRY(list_parts(&list, &n, b, placed, e));
    for (size_t i = 0; i < n; i++) {
        const tnf_part *p = list[i].part;
        if (i == 0 || by_place(&list[i - 1], &list[i]) != 0)
            TNF_TRY(copy_blob(b, p, &at, e));
        zt2_blob blob = { .offset = at,
                          .stored = p->stored,
                          .nbytes = p->nbytes,
                          .part = p,
                          .old = p,
                          .encoded = p->payload == TNF_ENCODED };
        TNF_TRY(tnf_zt2_blobs_know(b, &blob, false, list[i].place, e));
    }
    return TNF_OK;
}
