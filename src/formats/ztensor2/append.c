/* SPDX-License-Identifier: MIT */
/* Appending: finds the parts that are already in the file, and the new parts that are equal to
 * them.
 *
 *   old part     its blob is not moved, in this file or in a shard
 *   new part     same length and bytes as an old one ──> shares its blob
 *                otherwise written after the old footer
 *
 * Only old blobs with the same length as a new part are compared, so the cost depends on the new
 * parts.
 *
 * During the append a copy of the old footer, which locates the old manifest, is at the end of the
 * file. So an interrupted append leaves the old model, by every rule of the specification.
 *
 *   blobs │ manifest │ footer │ 0… │ new blobs … │ … │ footer
 *                             └ the next append begins here again
 */
#include "base/rising.h"
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>
#include <stdlib.h>

/* Keeps facts in the handle that the model does not have. */
tnf_status tnf_zt2_keep_state(zt2 *z, tnf_error *e)
{
    tnf_arena *a = z->r->arena;
    zt2_state *s = tnf_arena_alloc(a, sizeof *s);
    zt2_shard *shards = tnf_arena_array(a, z->nshards, sizeof *shards);
    if (!s || !shards)
        return tnf_arena_fail(a, "shards", e);
    *s = (zt2_state) { shards, z->nshards, z->foreign_at, z->footer };
    for (size_t i = 0; i < z->nshards; i++) {
        shards[i] = z->shards[i];
        shards[i].name.p = tnf_arena_str(a, shards[i].name.p, shards[i].name.n);
        shards[i].digest.p = tnf_arena_str(a, shards[i].digest.p, shards[i].digest.n);
        if (!shards[i].name.p || !shards[i].digest.p)
            return tnf_arena_fail(a, "shards", e);
    }
    z->r->state = s;
    return TNF_OK;
}

uint64_t tnf_zt2_align_of(const tnf_writer *w)
{
    uint64_t size, bits = ZT2_ALIGN;
    const zt2_state *s = w->base->state;
    const struct tnf_origin *here = tnf_file_origin(w->base->file, &size);
    bits |= s ? s->footer.offset : 0;
    for (size_t i = 0; i < w->catalog->n; i++)
        for (uint16_t k = 0; k < w->catalog->objects[i].nparts; k++) {
            const tnf_part *p = &w->catalog->objects[i].parts[k];
            if (p->origin == here && p->payload <= TNF_ENCODED)
                bits |= p->offset;
        }
    return bits & (~bits + 1); /* the lowest bit of all; at least 4096, by the format's rule */
}

/* ------------------------------------------------------------------- old */

typedef struct placing {
    zt2_blobs *b;
    const zt2_state *state;
    const struct tnf_origin *here;
    uint64_t *sizes; /* of new parts, in ascending order */
    size_t nsizes;
} placing;

/* Is the part already in the file, or in one of its shards? */
static bool is_old(const placing *x, const tnf_part *p, tnf_str *shard)
{
    *shard = (tnf_str) { NULL, 0 };
    if (p->payload > TNF_ENCODED || !p->origin)
        return false;
    for (size_t i = 0; p->origin != x->here && i < x->state->nshards && !shard->p; i++)
        if (x->state->shards[i].origin == p->origin)
            *shard = x->state->shards[i].name;
    return p->origin == x->here || shard->p;
}

static tnf_status list_sizes(placing *x, tnf_error *e)
{
    const tnf_catalog *c = x->b->w->catalog;
    uint64_t parts = 0;
    tnf_str shard;
    for (size_t i = 0; i < c->n; i++)
        parts += c->objects[i].nparts;
    x->sizes = tnf_arena_array(x->b->w->scratch, parts, sizeof *x->sizes);
    if (!x->sizes)
        return tnf_arena_fail(x->b->w->scratch, "the list of parts", e);
    for (size_t i = 0; i < c->n; i++)
        for (uint16_t k = 0; k < c->objects[i].nparts; k++)
            if (!is_old(x, &c->objects[i].parts[k], &shard))
                x->sizes[x->nsizes++] = c->objects[i].parts[k].nbytes;
    if (x->nsizes)
        qsort(x->sizes, x->nsizes, sizeof *x->sizes, tnf_u64_compare);
    return TNF_OK;
}

static tnf_status place_part(placing *x, const tnf_part *p, const zt2_blob **out, tnf_error *e)
{
    zt2_blob blob = { .offset = p->offset,
                      .stored = p->stored,
                      .nbytes = p->nbytes,
                      .part = p,
                      .old = p,
                      .encoded = p->payload == TNF_ENCODED };
    if (!is_old(x, p, &blob.shard))
        return TNF_OK;
    bool alias = !blob.shard.p && !blob.encoded && x->nsizes > 0 &&
                 bsearch(&p->nbytes, x->sizes, x->nsizes, sizeof *x->sizes, tnf_u64_compare);
    return tnf_zt2_blobs_know(x->b, &blob, alias, out, e);
}

/* Finds where to begin. If a copy of the footer is at the end of the file (an append was stopped),
 * this is after the manifest and all blobs. Otherwise it is the end of the file, since the bytes in
 * between are unknown. */
static tnf_status find_start(const placing *x, const uint8_t footer[ZT2_FOOTER], uint64_t *end,
                             tnf_error *e)
{
    const tnf_reader *base = x->b->w->base;
    const tnf_catalog *c = x->b->w->catalog;
    const zt2_footer *f = &x->state->footer;
    uint64_t at = f->offset + f->length; /* both were checked */
    uint8_t there[ZT2_FOOTER];
    *end = base->source->size;
    if (at > f->at || f->at + ZT2_FOOTER != *end)
        return TNF_OK;
    TNF_TRY(tnf_source_read(base->source, at, there, sizeof there, e));
    if (memcmp(there, footer, sizeof there) != 0)
        return TNF_OK;
    at += ZT2_FOOTER;
    for (size_t i = 0; i < c->n; i++)
        for (uint16_t k = 0; k < c->objects[i].nparts; k++) {
            const tnf_part *p = &c->objects[i].parts[k];
            if (p->origin == x->here && p->payload <= TNF_ENCODED && p->offset + p->stored > at)
                at = p->offset + p->stored;
        }
    *end = at < *end ? at : *end;
    return TNF_OK;
}

static tnf_status keep_footer(const placing *x, tnf_error *e)
{
    uint8_t footer[ZT2_FOOTER];
    uint64_t end = 0;
    TNF_TRY(tnf_source_read(x->b->w->base->source, x->state->footer.at, footer, sizeof footer, e));
    TNF_TRY(find_start(x, footer, &end, e));
    return tnf_sink_keep_end(x->b->w->sink, footer, sizeof footer, end, e);
}

tnf_status tnf_zt2_place_old(zt2_blobs *b, const zt2_blob **placed, tnf_error *e)
{
    const tnf_catalog *c = b->w->catalog;
    const tnf_reader *base = b->w->base;
    uint64_t size;
    placing x = { .b = b, .state = base->state };
    x.here = tnf_file_origin(base->file, &size);
    if (!x.state)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "this file is a data shard, to which tensors cannot be appended");
    if (x.state->foreign_at)
        return tnf_fail(e, TNF_EUNSUPPORTED, x.state->foreign_at,
                        "the manifest has unknown keys; appending would lose them");
    if (!b->w->in_place) /* the end is rewritten */
        TNF_TRY(keep_footer(&x, e));
    TNF_TRY(list_sizes(&x, e));
    for (size_t i = 0; i < c->n; i++)
        for (uint16_t k = 0; k < c->objects[i].nparts; k++)
            TNF_TRY(place_part(&x, &c->objects[i].parts[k], placed++, e));
    return TNF_OK;
}
