/* SPDX-License-Identifier: MIT */
/* Fitting tensors to a format without changing their meaning:
 *
 *   parts   vocab (strings/1)          → vocab#offsets, vocab#bytes, if the layout is unknown
 *   type    w (f8_e4m3fn)              → w (u8), the storage type
 *   order   w [2,3], column-major      → row-major, or the reverse
 *   shape   step []                    → step [1], if there are no scalars
 *           w [2,3,4,5,6]              → w [6,4,5,6], if five dimensions are impossible
 *   name    b\xff                      → b%FF, if names must be UTF-8
 *
 * All changes are noted in the stash (plan.c) and undone when the file is opened
 * (restore_tensors.c), except the order, which does not affect the values. A tensor that cannot be
 * fitted stays unchanged: the plan then says why it is dropped.
 */
#include "core/save/plan.h"

#include "base/hex.h"
#include "model/layout_rules.h"

#include <stdio.h>
#include <string.h>

/* The type that the format has for the bytes of a part; NULL: none. */
static const tnf_type *fitting_type(const tnf_can *can, const tnf_object *o, const tnf_type *type)
{
    bool other = can->as_storage && o->layout == &tnf_layout_dense && can->as_storage(o);
    if (tnf_list_has(can->types, type->id) && !other)
        return type;
    const tnf_type *storage = tnf_type_of(type->storage);
    if (can->unsigned_as_signed && !tnf_list_has(can->types, storage->id) &&
        type->storage >= TNF_U64)
        storage = tnf_type_of(type->storage - TNF_U64 + TNF_I64);
    return tnf_list_has(can->types, storage->id) ? storage : NULL;
}

/* Gives a part the type that fits. The new one may have smaller numbers, but bytes are reversed as
 * before: here, if the part is big-endian, and in a big-endian file, where the old type returns. */
static void set_type(tnf_part *part, const tnf_can *can, const tnf_object *o)
{
    size_t swap = tnf_part_swap(part);
    part->type = fitting_type(can, o, part->type);
    if (tnf_type_swap(part->type) < swap)
        part->flags |= TNF_PART_PAIRS;
}

/* Does the format, or the requested order, require another order? */
static bool has_wrong_order(const struct tnf_save *s, const tnf_object *o)
{
    const tnf_can *can = &s->format->can;
    const char *wish = s->options.order;
    if (o->layout != &tnf_layout_dense || o->rank < 2)
        return false;
    if (wish && can->order_f && !can->only_f)
        return (o->order == TNF_ORDER_F) != (*wish == 'F');
    if (o->order == TNF_ORDER_F)
        return !can->order_f;
    return can->only_f || (can->was_f && can->was_f(o));
}

/* ------------------------------------------------------------------ names */

static bool name_fits(const tnf_can *can, tnf_str name)
{
    return !tnf_str_listed(name, can->reserved) &&
           !(can->ascii_names && !tnf_ascii(name.p, name.n)) &&
           !(can->utf8_names && !tnf_utf8_valid(NULL, name.p, name.n));
}

/* How many bytes from p on are allowed; 0: the first is not. */
static size_t good_bytes(const tnf_can *can, const char *p, size_t n)
{
    size_t good = n;
    if (can->ascii_names)
        for (good = 0; good < n && (unsigned char)p[good] < 0x80;)
            good++;
    else
        tnf_utf8_valid(&good, p, n);
    return good;
}

/* The name with %XX for each byte that is not allowed; NULL: no memory. */
static const char *fitting_name(tnf_str *out, const tnf_can *can, tnf_str name, tnf_arena *a)
{
    size_t n = 0;
    char *p = tnf_arena_alloc(a, 3 * name.n + 1);
    bool reserved = tnf_str_listed(name, can->reserved); /* then any change is enough */
    for (size_t i = 0; p && i < name.n;) {
        size_t good = reserved && i == 0 ? 0 : good_bytes(can, name.p + i, name.n - i);
        memcpy(p + n, name.p + i, good);
        n += good;
        i += good;
        if (i < name.n) {
            tnf_hex_percent(p + n, name.p[i++]);
            n += 3;
        }
    }
    if (p)
        p[n] = 0;
    *out = (tnf_str) { p, n };
    return p;
}

/* ------------------------------------------------------------------ needs */

/* Do the bytes differ between the two orders? */
static bool order_matters(const tnf_object *o)
{
    uint32_t wide = 0;
    for (uint32_t d = 0; d < o->rank; d++) {
        if (o->shape[d] == 0)
            return false;
        wide += o->shape[d] > 1;
    }
    return wide > 1;
}

/* The number of elements of a type in the bytes of a part; false if it is not an integer. */
static bool whole_elements(uint64_t *count, const tnf_type *type, uint64_t nbytes)
{
    uint64_t bits, bytes;
    if (type->bits == 0 || !tnf_ckd_mul(&bits, nbytes, 8))
        return false;
    *count = bits / type->bits;
    return tnf_type_bytes(&bytes, type, *count) && bytes == nbytes;
}

/* Does some part get another type? *possible becomes false if the bytes of a part fit none. */
static bool types_change(const tnf_can *can, const tnf_object *o, bool *possible)
{
    bool change = false;
    *possible = true;
    for (uint16_t i = 0; i < o->nparts; i++) {
        const tnf_part *p = &o->parts[i];
        const tnf_type *type = fitting_type(can, o, p->type);
        uint64_t count;
        if (!type || p->flags & TNF_PART_UNREADABLE || !whole_elements(&count, type, p->nbytes))
            *possible = false;
        change |= type != p->type;
    }
    return change;
}

static bool needs_parts(const tnf_can *can, const tnf_object *o)
{
    return !tnf_list_has(can->layouts, o->layout->id) || (can->in_parts && can->in_parts(o));
}

/* Is it a dense tensor whose rank the format does not have? */
static bool needs_shape(const tnf_can *can, const tnf_object *o)
{
    if (o->rank > TNF_DEFAULT_RANK) /* its shape could not be restored */
        return false;
    return o->rank == 0 ? !can->zero_rank : can->max_rank && o->rank > can->max_rank;
}

/* The necessary changes; 0: none, or none that would help. */
static unsigned find_needs(const struct tnf_save *s, const tnf_object *o)
{
    const tnf_can *can = &s->format->can;
    bool dense = o->layout == &tnf_layout_dense, parts = needs_parts(can, o), possible = true;
    unsigned what = name_fits(can, o->name) ? 0 : TNF_ADAPT_NAME;
    if ((parts && (dense || !tnf_list_has(can->layouts, "dense"))) || o->nparts == 0)
        return 0;
    if (parts)
        what |= TNF_ADAPT_PARTS;
    if ((parts || !o->layout->block_bytes) && types_change(can, o, &possible))
        what |= TNF_ADAPT_TYPE;
    if (!possible || (what && !parts && !dense))
        return 0; /* with other types the layout, or its note, would not be the same */
    if (has_wrong_order(s, o)) {
        if (o->parts->type->bits % 8 || o->parts->type->bits == 0)
            return 0;
        what |= TNF_ADAPT_ORDER;
    }
    if (dense && needs_shape(can, o))
        what |= TNF_ADAPT_SHAPE;
    return what;
}

static tnf_status add_changed(struct tnf_save *s, const tnf_object *o, const tnf_adaptation *change,
                              const tnf_catalog *from, tnf_error *e)
{
    bool found = tnf_catalog_find(from, change->of->name.p, change->of->name.n) == change->of;
    s->changes[s->fitted.n] = *change;
    return tnf_catalog_add(&s->fitted, o, found ? TNF_NAMES_LATER_FOUND : TNF_NAMES_FIRST_FOUND, e);
}

/* Merges the first dimensions into one: in row-major order no byte moves. */
static tnf_status fold_shape(tnf_object *o, uint32_t rank, tnf_arena *a, tnf_error *e)
{
    uint64_t *shape = tnf_arena_array(a, rank, sizeof *shape);
    uint32_t folded = o->rank - rank + 1;
    if (!shape)
        return tnf_arena_fail(a, "a shape", e);
    tnf_shape_elements(&shape[0], o->shape, folded);
    memcpy(shape + 1, o->shape + folded, (rank - 1) * sizeof *shape);
    o->shape = shape;
    o->rank = rank;
    return TNF_OK;
}

/* Changes a tensor that stays a single one. */
static tnf_status fit_whole(struct tnf_save *s, const tnf_adaptation *change,
                            const tnf_catalog *from, tnf_error *e)
{
    static const uint64_t one[] = { 1 };
    tnf_object o = *change->of;
    tnf_part part = *o.parts;
    uint64_t count[1];
    if (change->what & TNF_ADAPT_NAME && !fitting_name(&o.name, &s->format->can, o.name, &s->arena))
        return tnf_arena_fail(&s->arena, "the name of a tensor", e);
    if (change->what == TNF_ADAPT_NAME)
        return add_changed(s, &o, change, from, e);
    if (change->what & TNF_ADAPT_ORDER) {
        if (order_matters(&o))
            TNF_TRY(tnf_reorder(&part, &o, s, e));
        o.order = o.order == TNF_ORDER_F ? TNF_ORDER_C : TNF_ORDER_F;
    }
    set_type(&part, &s->format->can, change->of);
    if (part.type->bits != o.parts->type->bits) { /* an element is not one integer */
        whole_elements(count, part.type, part.nbytes);
        o.shape = count;
        o.rank = 1;
    } else if (change->what & TNF_ADAPT_SHAPE && o.rank > 0) {
        TNF_TRY(fold_shape(&o, s->format->can.max_rank, &s->arena, e));
    } else if (change->what & TNF_ADAPT_SHAPE) {
        o.shape = one;
        o.rank = 1;
    }
    o.parts = &part;
    return add_changed(s, &o, change, from, e);
}

/* Makes NAME#ROLE. */
static tnf_status piece_name(tnf_str *out, tnf_arena *a, tnf_str name, const char *role,
                             tnf_error *e)
{
    size_t n = strlen(role);
    char *p = tnf_arena_alloc(a, name.n + 1 + n + 1);
    if (!p)
        return tnf_arena_fail(a, "the name of a part", e);
    memcpy(p, name.p, name.n);
    p[name.n] = '#';
    memcpy(p + name.n + 1, role, n);
    *out = (tnf_str) { p, name.n + 1 + n };
    return TNF_OK;
}

/* Makes each part a tensor of one dimension. */
static tnf_status fit_parts(struct tnf_save *s, const tnf_adaptation *change,
                            const tnf_catalog *from, tnf_error *e)
{
    const tnf_object *o = change->of;
    tnf_str name = o->name;
    if (change->what & TNF_ADAPT_NAME && !fitting_name(&name, &s->format->can, name, &s->arena))
        return tnf_arena_fail(&s->arena, "the name of a part", e);
    for (uint16_t i = 0; i < o->nparts; i++) {
        tnf_part part = o->parts[i];
        uint64_t count[1] = { 0 };
        set_type(&part, &s->format->can, o);
        whole_elements(count, part.type, part.nbytes);
        tnf_object piece = {
            .shape = count, .layout = &tnf_layout_dense, .parts = &part, .rank = 1, .nparts = 1
        };
        TNF_TRY(piece_name(&piece.name, &s->arena, name, part.role, e));
        part.role = "data";
        TNF_TRY(add_changed(s, &piece, change, from, e));
    }
    return TNF_OK;
}

/* Is this name free, and short enough for a file that opens without raised limits? The latter does
 * not matter if the tensor came with a longer name. */
static bool name_serves(const tnf_catalog *from, const tnf_object *o, tnf_str name)
{
    size_t most = o->name.n > TNF_DEFAULT_NAME_BYTES ? SIZE_MAX : TNF_DEFAULT_NAME_BYTES;
    return name.n <= most && !tnf_catalog_find(from, name.p, name.n);
}

/* Can it have all names that it would get? */
static bool names_serve(const struct tnf_save *s, const tnf_catalog *from,
                        const tnf_adaptation *change, tnf_arena *a)
{
    const tnf_object *o = change->of;
    tnf_str base, name;
    bool renamed = change->what & TNF_ADAPT_NAME;
    if (!(change->what & (TNF_ADAPT_PARTS | TNF_ADAPT_NAME)) ||
        !fitting_name(&base, &s->format->can, o->name, a))
        return true;
    if (!(change->what & TNF_ADAPT_PARTS))
        return !renamed || name_serves(from, o, base);
    for (uint16_t i = 0; i < o->nparts; i++)
        if (piece_name(&name, a, base, o->parts[i].role, NULL) == TNF_OK &&
            !name_serves(from, o, name))
            return false;
    return true;
}

static tnf_status fit_one(struct tnf_save *s, const tnf_catalog *from, const tnf_object *o,
                          tnf_error *e)
{
    tnf_adaptation change = { .of = o, .what = find_needs(s, o) };
    if (!names_serve(s, from, &change, &s->arena))
        change.what = 0;
    change.pieces = change.what & TNF_ADAPT_PARTS ? o->nparts : 1;
    if (change.what & TNF_ADAPT_PARTS)
        return fit_parts(s, &change, from, e);
    return change.what ? fit_whole(s, &change, from, e) : add_changed(s, o, &change, from, e);
}

const char *tnf_no_type(struct tnf_save *s, const tnf_type *type, const char *more)
{
    char text[300];
    snprintf(text, sizeof text, "the format has no type %s%s", TNF_TYPE_TEXT(type), more);
    const char *why = tnf_arena_str(&s->arena, text, strlen(text));
    return why ? why : "the format has no such type";
}

const char *tnf_adapt_reason(struct tnf_save *s, const tnf_adaptation *change,
                             const tnf_object *now)
{
    if (change->what & TNF_ADAPT_PARTS)
        return "its parts become tensors of their own";
    if (change->what & TNF_ADAPT_TYPE) {
        char more[100];
        snprintf(more, sizeof more, ": kept as %s", now->parts->type->id);
        return tnf_no_type(s, change->of->parts->type, more);
    }
    if (change->what & TNF_ADAPT_SHAPE)
        return change->of->rank ? "its first dimensions become one"
                                : "a scalar becomes a tensor of shape [1]";
    if (change->what & TNF_ADAPT_NAME)
        return "the format does not allow such names: some bytes become %XX";
    if (change->what & TNF_ADAPT_ORDER)
        return change->of->order == TNF_ORDER_F ? "written row by row" : "written column by column";
    return "";
}

tnf_status tnf_adapt_tensors(struct tnf_save *s, const tnf_catalog *from, const tnf_catalog **out,
                             tnf_error *e)
{
    bool any = false;
    size_t room = 0;
    for (size_t i = 0; i < from->n; i++) {
        any = any || find_needs(s, &from->objects[i]);
        room += from->objects[i].nparts + 1u;
    }
    *out = from;
    if (!any)
        return TNF_OK;
    tnf_catalog_init(&s->fitted, &s->arena);
    s->changes = tnf_arena_array(&s->arena, room, sizeof *s->changes);
    if (!s->changes)
        return tnf_arena_fail(&s->arena, "the plan", e);
    for (size_t i = 0; i < from->n; i++)
        TNF_TRY(fit_one(s, from, &from->objects[i], e));
    s->fitted.attrs = from->attrs;
    *out = &s->fitted;
    return TNF_OK;
}
