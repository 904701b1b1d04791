/* SPDX-License-Identifier: MIT */
/* Reads .npz: each member of the archive that is an array becomes a tensor; other members are kept.
 *
 *   member "w.npy"   magic version length header │ elements │ perhaps more
 *                    └ CRC, derived from the member's ┘
 *
 * The elements of a stored member are plain bytes of the file; those of a deflated member are
 * decoded from its beginning. Members whose CRC does not become the digest of a tensor are kept for
 * verify().
 */
#include "base/crc32.h"
#include "formats/numpy/npz.h"
#include "formats/numpy/pickle.h"

#include <stdio.h>
#include <string.h>

#define FIRST_LOOK 512u
#define MAX_GATHER ((uint64_t)256 << 20)

/* A member that no tensor's digest covers. */
typedef struct loose {
    struct loose *next;
    tnf_container_member member;
    tnf_member_place place;
    uint64_t pickle; /* offset in the member of an object array's pickle; else 0 */
} loose;

/* The state of decode() and verify(); in the arena. */
typedef struct npz_state {
    np_columns *columns;
    size_t n, room;
    loose *first, **last, *latest;
} npz_state;

/* The member being read. */
typedef struct reading {
    tnf_reader *r;
    npz_state *state;
    tnf_arena once; /* for one member */
    const tnf_container_member *m;
    tnf_member_place place;
    tnf_member_near near;
    const uint8_t *head; /* its first bytes */
    size_t nhead;
    unsigned major;
    size_t text, ntext; /* the header's text in them */
} reading;

/* ---------------------------------------------------------------- members */

static tnf_status read_head(reading *x, uint64_t n, tnf_error *e)
{
    n = n < x->m->size ? n : x->m->size;
    uint8_t *head = tnf_arena_raw(&x->once, n + 1);
    if (!head)
        return tnf_arena_fail(&x->once, "a header", e);
    TNF_TRY(tnf_container_head(&x->near, &x->place, x->m, head, (size_t)n, e));
    x->head = head;
    x->nhead = (size_t)n;
    return TNF_OK;
}

/* Reads everything before the elements. */
static tnf_status read_header(reading *x, tnf_error *e)
{
    uint64_t at = x->place.offset;
    if (x->nhead < 12)
        return tnf_fail(e, TNF_ETRUNCATED, at, "it ends inside the header of its array");
    TNF_TRY(tnf_np_version(&x->major, x->head, at, e));
    uint64_t n = x->major == 1 ? tnf_le16(x->head + 8) : tnf_le32(x->head + 8);
    x->text = tnf_np_prefix(x->major);
    x->ntext = (size_t)n;
    if (n > NP_MAX_HEADER)
        return tnf_fail(e, TNF_ELIMIT, at,
                        "the header has a length of %llu bytes; at most %llu are allowed",
                        (unsigned long long)n, (unsigned long long)NP_MAX_HEADER);
    if (x->text + n > x->m->size)
        return tnf_fail(e, TNF_ETRUNCATED, at, "it ends inside the header of its array: %s missing",
                        TNF_BYTES_ARE(x->text + n - x->m->size));
    return x->text + n > x->nhead ? read_head(x, x->text + n, e) : TNF_OK;
}

static tnf_status remember_loose(reading *x, tnf_error *e)
{
    loose *l = tnf_arena_alloc(x->r->arena, sizeof *l);
    const char *name = l ? tnf_arena_str(x->r->arena, x->m->name.p, x->m->name.n) : NULL;
    if (!name)
        return tnf_arena_fail(x->r->arena, "a name", e);
    l->member = *x->m;
    l->member.name.p = name;
    l->place = x->place;
    *x->state->last = l;
    x->state->last = &l->next;
    x->state->latest = l;
    return TNF_OK;
}

/* Keeps the member's bytes from `skip` to its end as an extra, under its name. */
static tnf_status keep_extra(reading *x, uint64_t skip, const char *suffix, tnf_error *e)
{
    size_t n = sizeof NPZ_PREFIX - 1 + x->m->name.n, more = strlen(suffix);
    char *key = tnf_arena_raw(&x->once, n + more + 1);
    tnf_part part = { .role = "data" };
    if (!key)
        return tnf_arena_fail(&x->once, "a name", e);
    memcpy(key, NPZ_PREFIX, sizeof NPZ_PREFIX - 1);
    memcpy(key + sizeof NPZ_PREFIX - 1, x->m->name.p, x->m->name.n);
    memcpy(key + n, suffix, more + 1);
    uint32_t none = 0;
    TNF_TRY(tnf_place_part(x->r, &part, x->m, &x->place, skip, x->m->size - skip,
                           skip ? NULL : &none, e));
    return tnf_add_extra_part(x->r, (tnf_str) { key, n + more }, &part, e);
}

static tnf_str array_name(const tnf_container_member *m)
{
    tnf_str name = m->name;
    if (tnf_npz_has_suffix(name, NPZ_SUFFIX, sizeof NPZ_SUFFIX - 1))
        name.n -= sizeof NPZ_SUFFIX - 1;
    return name;
}

static tnf_status keep_other(reading *x, tnf_error *e)
{
    bool named = tnf_npz_has_suffix(x->m->name, NPZ_SUFFIX, sizeof NPZ_SUFFIX - 1);
    if (named && tnf_lose_tensor(x->r, array_name(x->m), x->place.offset, false,
                                 "its name is that of an array, but it is not one"))
        return TNF_OK;
    if (named)
        TNF_TRY(tnf_stricter(x->r, e, TNF_EFORMAT, x->place.offset,
                             "its name ends in .npy, but it is not an array"));
    TNF_TRY(remember_loose(x, e));
    return keep_extra(x, 0, "", e);
}

/* ----------------------------------------------------------------- arrays */

/* An object array is never executed, so it cannot be read: it is listed with the shape in its
 * header. */
static tnf_status add_objects(reading *x, const np_array *a, const tnf_value *attrs, tnf_error *e)
{
    char calls[160];
    uint64_t start = x->text + x->ntext, left = x->m->size - start;
    TNF_TRY(read_head(x, start + (left < NP_PICKLE ? left : NP_PICKLE), e));
    tnf_cur c = tnf_cur_over(x->head + start, x->nhead - (size_t)start, x->place.offset + start);
    TNF_TRY(tnf_np_pickle_calls(c, &x->once, calls, sizeof calls, e));
    tnf_warn(x->r, x->place.offset,
             "%s is an object array: a pickle, which is never run; it names %s",
             TNF_QUOTED(array_name(x->m)), calls);
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .offset = x->place.offset,
                      .payload = TNF_AT,
                      .flags = TNF_PART_UNREADABLE };
    TNF_TRY(tnf_unreadable_origin(x->r, &part.origin, "object array: a pickle", e));
    tnf_object object = { .name = array_name(x->m),
                          .shape = a->shape,
                          .layout = &tnf_layout_dense,
                          .parts = &part,
                          .attrs = attrs,
                          .rank = a->rank,
                          .nparts = 1 };
    TNF_TRY(remember_loose(x, e));
    x->state->latest->pickle = start;
    return tnf_add_object(x->r, &object, a->shape_at, e);
}

/* Adds an array to the state of decode(); *key is its number. */
static tnf_status add_columns(reading *x, const np_array *a, uint64_t start, uint64_t *key,
                              tnf_error *e)
{
    npz_state *s = x->state;
    tnf_arena *arena = x->r->arena;
    np_columns *columns = tnf_arena_grow(arena, s->columns, s->n, &s->room, sizeof *columns, 8);
    if (!columns)
        return tnf_arena_fail(arena, "a shape", e);
    s->columns = columns; /* before the next allocation can fail: s->room is already its size */
    uint64_t *shape = tnf_arena_array(arena, a->rank, sizeof *shape);
    if (!shape)
        return tnf_arena_fail(arena, "a shape", e);
    memcpy(shape, a->shape, a->rank * sizeof *shape);
    np_columns c = { .shape = shape, .rank = a->rank, .width = a->type.width, .start = start };
    c.swap = 1;
    if (a->type.big)
        c.swap = tnf_dtype_size(a->type.type->storage);
    *key = s->n;
    s->columns[s->n++] = c;
    return TNF_OK;
}

/* A column-major array whose type has dimensions needs random access. So a deflated member is
 * decoded into memory for each read. */
static tnf_status gather_part(reading *x, tnf_part *part, const np_array *a, uint64_t start,
                              tnf_error *e)
{
    bool raw = x->place.codec == TNF_CODEC_RAW;
    part->payload = TNF_OPAQUE;
    part->flags = 0;
    part->digest = NULL;
    part->origin = NULL;
    if (raw || x->m->size <= MAX_GATHER) {
        TNF_TRY(remember_loose(x, e));
        TNF_TRY(add_columns(x, a, raw ? x->place.offset + start : start, &part->offset, e));
        x->state->columns[part->offset].member = raw ? NULL : x->state->latest;
        return TNF_OK;
    }
    part->flags = TNF_PART_UNREADABLE;
    tnf_warn(
        x->r, x->place.offset,
        "%s cannot be read: a large, compressed array of structures stored column by column is "
        "not supported",
        TNF_QUOTED(array_name(x->m)));
    return tnf_unreadable_origin(x->r, &part->origin,
                                 "a column-major array of structures, deflated", e);
}

/* Places the elements. In lenient mode an incomplete array is listed. */
static tnf_status place_elements(reading *x, tnf_part *part, const np_array *a, uint64_t n,
                                 tnf_error *e)
{
    uint64_t start = x->text + x->ntext, here = x->m->size - start;
    uint32_t front = tnf_crc32(0, x->head, (size_t)start);
    if (n <= here) {
        TNF_TRY(tnf_place_part(x->r, part, x->m, &x->place, start, n, &front, e));
        return a->fortran && a->type.naxes ? gather_part(x, part, a, start, e) : TNF_OK;
    }
    TNF_TRY(tnf_stricter(x->r, e, TNF_ETRUNCATED, x->place.offset,
                         "it ends inside its elements: %s missing", TNF_BYTES_ARE(n - here)));
    part->payload = TNF_AT;
    part->offset = x->place.offset;
    part->nbytes = n;
    part->flags = TNF_PART_UNREADABLE;
    return tnf_unreadable_origin(x->r, &part->origin, "some of its elements are missing", e);
}

static tnf_status add_array(reading *x, const np_array *a, const tnf_value *attrs, tnf_error *e)
{
    const np_type *t = &a->type;
    uint64_t n = a->elements * t->width, end = x->text + x->ntext + n;
    tnf_part part = { .role = "data", .type = t->type };
    part.flags = t->big ? TNF_PART_BIG_ENDIAN : 0;
    TNF_TRY(place_elements(x, &part, a, n, e));
    part.nbytes = n;
    part.stored = part.payload == TNF_OPAQUE ? n : part.stored;
    memcpy(a->shape + a->rank, t->axes, t->naxes * sizeof *t->axes); /* shape has room for them */
    tnf_object object = { .name = array_name(x->m),
                          .shape = a->shape,
                          .layout = &tnf_layout_dense,
                          .parts = &part,
                          .attrs = attrs,
                          .rank = a->rank + t->naxes,
                          .nparts = 1 };
    object.order = a->fortran && !t->naxes && a->rank > 1 ? TNF_ORDER_F : TNF_ORDER_C;
    TNF_TRY(tnf_add_object(x->r, &object, a->shape_at, e));
    if (!part.digest && part.payload != TNF_OPAQUE)
        TNF_TRY(remember_loose(x, e));
    if (x->m->size <= end)
        return TNF_OK;
    tnf_warn(x->r, x->place.offset, "%s the array %s, which NumPy ignores",
             TNF_BYTES_FOLLOW(x->m->size - end), TNF_QUOTED(object.name));
    return keep_extra(x, end, NPZ_BEHIND, e);
}

static tnf_status add_member(reading *x, tnf_error *e)
{
    np_array a;
    const tnf_value *attrs;
    TNF_TRY(read_head(x, FIRST_LOOK, e));
    if (x->nhead < NP_MAGIC_N || memcmp(x->head, NP_MAGIC, NP_MAGIC_N) != 0)
        return keep_other(x, e);
    TNF_TRY(read_header(x, e));
    np_context context = tnf_np_context(x->r, &x->once);
    context.base = x->place.offset;
    tnf_cur c = tnf_cur_over(x->head + x->text, x->ntext, x->place.offset + x->text);
    TNF_TRY(tnf_np_read_header(&a, &context, x->major, c.p, tnf_left(&c), e));
    TNF_TRY(tnf_np_make_attrs(&attrs, x->r, &a, x->major, true, &c, e));
    return a.type.object ? add_objects(x, &a, attrs, e) : add_array(x, &a, attrs, e);
}

/* ----------------------------------------------------------------- archive */

/* In lenient mode, the last of several members with the same name counts. */
static tnf_status add_members(reading *x, const tnf_container *c, tnf_error *e)
{
    bool deflated = false;
    for (size_t i = 0; i < c->n; i++) {
        x->m = &c->members[i];
        if (x->m->directory || tnf_container_find(c, x->m->name) != i)
            continue;
        tnf_error why = { .offset = TNF_NO_OFFSET };
        tnf_arena_reset(&x->once);
        tnf_status status = tnf_container_place_near(&x->place, &x->near, c, i, &why);
        if (status == TNF_OK)
            status = add_member(x, &why);
        deflated = deflated || x->m->deflated;
        if (status == TNF_OK)
            continue;
        const char *name = tnf_arena_str(&x->once, x->m->name.p, x->m->name.n);
        tnf_error_prefix(&why, name ? TNF_VISIBLE(name) : "a member");
        if (tnf_lose(x->r, status, &why))
            continue;
        if (e)
            *e = why;
        return status;
    }
    return deflated ? tnf_set_attr(x->r, NPZ_COMPRESS, tnf_value_string("deflate"), e) : TNF_OK;
}

static tnf_status keep_comment(tnf_reader *r, tnf_str comment, tnf_error *e)
{
    if (comment.n == 0)
        return TNF_OK;
    tnf_value value;
    TNF_TRY(tnf_text_value(r, &value, comment, e));
    return tnf_set_attr(r, NPZ_COMMENT, value, e);
}

tnf_status tnf_npz_index(tnf_reader *r, tnf_error *e)
{
    tnf_container c;
    npz_state *state = tnf_arena_alloc(r->arena, sizeof *state);
    if (!state)
        return tnf_arena_fail(r->arena, "an archive", e);
    state->last = &state->first;
    r->state = state;
    reading x = { .r = r, .state = state };
    tnf_arena_init(&x.once, &r->scratch->alloc, r->limits.memory);
    tnf_status status = tnf_open_zip(r, &c, e);
    if (status == TNF_OK)
        status = keep_comment(r, c.comment, e);
    if (status == TNF_OK)
        status = add_members(&x, &c, e);
    if (status == TNF_OK)
        r->ordered = true; /* if the core sorts the arrays, it must record their order */
    tnf_container_close(&c);
    tnf_arena_free(&x.once);
    return status;
}

/* Gathers from a complete member, which is in memory during the call. */
static tnf_status gather_deflated(const np_columns *c, uint64_t offset, void *dst, size_t n,
                                  tnf_error *e)
{
    const loose *l = c->member;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = (size_t)l->member.size;
    uint8_t *bytes = tnf_alloc(&a, size);
    tnf_source *memory = NULL;
    tnf_status status = bytes ? tnf_container_read(&l->place, &l->member, 0, bytes, size, e)
                              : tnf_no_memory("reading", e);
    if (status == TNF_OK)
        status = tnf_source_memory(&memory, bytes, size, e);
    if (status == TNF_OK)
        status = tnf_np_gather(memory, c, offset, dst, n, e);
    tnf_source_close(memory);
    tnf_free(&a, bytes, size);
    return status;
}

tnf_status tnf_npz_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                          tnf_error *e)
{
    const np_columns *c = &((const npz_state *)r->state)->columns[key];
    return c->member ? gather_deflated(c, offset, dst, n, e)
                     : tnf_np_gather(r->source, c, offset, dst, n, e);
}

/* --------------------------------------------------------------- verifying */

static tnf_status take_crc(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    uint32_t *crc = ctx;
    (void)e;
    *crc = tnf_crc32(*crc, bytes, n);
    return TNF_OK;
}

/* Checks the complete pickle of an object array; opening checks only its beginning. */
static tnf_status report_pickle(const loose *l, tnf_arena *arena, tnf_tell tell, void *ctx,
                                tnf_error *e)
{
    uint64_t n = l->member.size - l->pickle, most = NP_PICKLE + NP_RATIO * l->member.stored;
    n = n < most ? n : most;
    uint8_t *bytes = tnf_arena_raw(arena, n + 1);
    if (!bytes)
        return tnf_arena_fail(arena, "a pickle", e);
    if (tnf_container_read(&l->place, &l->member, l->pickle, bytes, (size_t)n, NULL) != TNF_OK)
        return TNF_OK; /* the member's CRC reports the damage */
    return tnf_np_pickle_danger(tnf_cur_over(bytes, (size_t)n, l->place.offset + l->pickle),
                                l->member.name, arena, tell, ctx, e);
}

tnf_status tnf_npz_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                          tnf_error *e)
{
    const npz_state *s = r->state;
    for (const loose *l = s->first; l; l = l->next)
        if (l->pickle)
            TNF_TRY(report_pickle(l, arena, tell, ctx, e));
    for (const loose *l = s->first; l; l = l->next) {
        tnf_error why = { .offset = TNF_NO_OFFSET };
        uint32_t crc = 0;
        tnf_status status = tnf_container_scan(&l->place, &l->member, take_crc, &crc, &why);
        if (status == TNF_OK && crc != l->member.crc)
            status = tnf_fail(&why, TNF_EDIGEST, l->place.offset,
                              "the member %s does not match its crc32", TNF_QUOTED(l->member.name));
        if (status == TNF_OK)
            continue;
        if (status != TNF_EDIGEST && status != TNF_EFORMAT && status != TNF_ETRUNCATED) {
            if (e)
                *e = why;
            return status;
        }
        tell(ctx, &why, (tnf_str) { NULL, 0 });
    }
    return TNF_OK;
}
