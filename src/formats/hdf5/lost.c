/* SPDX-License-Identifier: MIT */
/* Damaged objects in a file whose other objects are intact. */
#include "formats/hdf5/h5.h"

#include <stdio.h>
#include <string.h>

static tnf_status note_lost(h5_file *h, tnf_str name, const tnf_error *why, tnf_error *e)
{
    h5_state *s = h->r->state;
    h5_lost *lost = tnf_arena_grow(h->r->arena, s->lost, s->nlost, &s->lost_capacity, sizeof *lost,
                                   8);
    if (!lost)
        return tnf_arena_fail(h->r->arena, "objects", e);
    s->lost = lost;
    s->lost[s->nlost++] = (h5_lost) { name, *why };
    return TNF_OK;
}

/* Lists a damaged object by its name only, since its kind is unknown. */
static tnf_status list_lost(h5_file *h, tnf_str name, const tnf_error *why, tnf_error *e)
{
    static const tnf_type damaged = { "damaged", TNF_U8, TNF_NUMBER_OPAQUE, 0 };
    char text[sizeof why->message + 32];
    tnf_part part = { .role = "data", .type = &damaged, .payload = TNF_OPAQUE };
    tnf_object o = { .name = name };
    part.flags = TNF_PART_UNREADABLE;
    snprintf(text, sizeof text, "its object is damaged: %s", why->message);
    TNF_TRY(tnf_unreadable_origin(h->r, &part.origin, text, e));
    return tnf_add_parts(h->r, &o, &tnf_layout_dense, &part, 1, why->offset, e);
}

tnf_status tnf_h5_lose(h5_file *h, tnf_status status, const tnf_error *why, tnf_error *e)
{
    tnf_error told = *why;
    if (tnf_lose(h->r, status, why))
        return TNF_OK;
    if (status != TNF_EFORMAT && status != TNF_EDIGEST && status != TNF_ETRUNCATED &&
        status != TNF_EUNSUPPORTED) {
        if (e)
            *e = *why;
        return status;
    }
    tnf_str name = { tnf_arena_str(h->r->arena, (const char *)h->path.p, h->path.n), h->path.n };
    if (!name.p)
        return tnf_arena_fail(h->r->arena, "a name", e);
    if (told.status == TNF_EDIGEST)
        told.status = TNF_EFORMAT; /* like a damaged superblock */
    tnf_warn(h->r, why->offset, "%s cannot be read: %s", TNF_QUOTED(name), why->message);
    TNF_TRY(list_lost(h, name, why, e));
    return note_lost(h, name, &told, e);
}

tnf_status tnf_h5_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e)
{
    const h5_state *s = r->state;
    (void)arena;
    (void)e;
    for (size_t i = 0; s && i < s->nlost; i++)
        tell(ctx, &s->lost[i].why, s->lost[i].name);
    return TNF_OK;
}
