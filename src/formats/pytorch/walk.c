/* SPDX-License-Identifier: MIT */
/* Walks the tree depth first: each tensor is added under its path; all else goes to pytorch.values.
 *
 *   {"model": {"0.weight": T}, "epoch": 3}      tensor model.0.weight, value epoch
 *
 * A path consists of keys, indexes and names of attributes. A name is the path joined by dots.
 * Shared containers can produce exponentially many paths from a few bytes, so paths are counted
 * first.
 */
#include "formats/pytorch/pt.h"

#include <stdio.h>
#include <string.h>

#define PATHS       100000u
#define REPR        400u
#define SAME        100u /* most tensors with the same name */
/* Limit of bytes of all names: long keys of shared containers can expand enormously. */
#define MOST_NAMES  ((uint64_t)4 << 20)
#define NAMES_RATIO 64u

/* One step of a path. */
typedef struct step {
    tnf_str text;
    int64_t index;
    bool is_int;
} step;

typedef struct walk {
    pt_file *f; /* NULL: only names are needed */
    tnf_arena *arena, *scratch;
    step *steps;
    size_t depth, room; /* steps in use, and allocated */
    tnf_buf name;
    tnf_attrs values;
    tnf_attrs facts; /* of the current tensor, in scratch */
    tnf_hash taken;  /* names of tensors, if there is no catalog */
    pt_named *list;
    size_t n, capacity;
    uint64_t most, left; /* limit of paths; remaining bytes of names */
    tnf_error *e;
} walk;

/* --------------------------------------------------------------- children */

typedef tnf_status (*visit_fn)(walk *w, const step *s, tnf_pickle_node *child);

static tnf_status visit_items(walk *w, const tnf_pickle_node *list, visit_fn visit)
{
    for (size_t i = 0; i < list->n; i++) {
        step s = { .index = (int64_t)i, .is_int = true };
        TNF_TRY(visit(w, &s, list->as.items[i]));
    }
    return TNF_OK;
}

static tnf_status visit_pair(walk *w, const tnf_pickle_node *key, tnf_pickle_node *value,
                             visit_fn visit)
{
    step s = { .text = { key->as.s, key->n } };
    if (key->kind == TNF_PICKLE_INT) {
        s.is_int = true;
        s.index = key->as.i;
    } else if (key->kind != TNF_PICKLE_TEXT || !tnf_utf8_valid(NULL, key->as.s, key->n)) {
        char *text = tnf_arena_raw(w->scratch, REPR);
        if (!text)
            return tnf_arena_fail(w->scratch, "a name", w->e);
        tnf_pickle_show(text, REPR, key);
        s.text = (tnf_str) { text, strlen(text) };
    }
    return visit(w, &s, value);
}

/* Visits the members of a dict, or of the list of pairs that makes one. */
static tnf_status visit_pairs(walk *w, const tnf_pickle_node *from, visit_fn visit)
{
    bool dict = from->kind == TNF_PICKLE_DICT;
    for (size_t i = 0; i < from->n; i += dict ? 2 : 1) {
        tnf_pickle_node *const *pair = dict ? from->as.items + i : from->as.items[i]->as.items;
        TNF_TRY(visit_pair(w, pair[0], pair[1], visit));
    }
    return TNF_OK;
}

/* Visits the arguments or the state of an object, if they hold tensors. */
static tnf_status visit_held(walk *w, const tnf_pickle_node *held, const char *what, visit_fn visit)
{
    const tnf_pickle_node *dicts[2];
    if (!tnf_pt_holds(held))
        return TNF_OK;
    size_t n = tnf_pt_state_dicts(held, dicts);
    for (size_t i = 0; i < n; i++)
        TNF_TRY(visit_pairs(w, dicts[i], visit));
    if (n)
        return TNF_OK;
    if (held->kind == TNF_PICKLE_LIST || held->kind == TNF_PICKLE_TUPLE ||
        held->kind == TNF_PICKLE_SET || held->kind == TNF_PICKLE_FROZENSET)
        return visit_items(w, held, visit);
    step s = { .text = { what, strlen(what) } };
    return visit(w, &s, (tnf_pickle_node *)(uintptr_t)held);
}

static tnf_status visit_object(walk *w, const tnf_pickle_node *node, visit_fn visit)
{
    const tnf_pickle_call *call = node->as.call;
    const tnf_pickle_node *dicts[2], *pairs = tnf_pt_pairs(node);
    size_t n = tnf_pt_is_dict_class(node) ? 0 : tnf_pt_state_dicts(call->state, dicts);
    for (size_t i = 0; i < n; i++)
        TNF_TRY(visit_pairs(w, dicts[i], visit));
    if (pairs)
        TNF_TRY(visit_pairs(w, pairs, visit));
    TNF_TRY(visit_pairs(w, call->dict, visit));
    TNF_TRY(visit_items(w, call->list, visit));
    if (!n)
        TNF_TRY(visit_held(w, call->state, "state", visit));
    if (!pairs)
        TNF_TRY(visit_held(w, call->args, "args", visit));
    return visit_held(w, call->kwargs, "kwargs", visit);
}

static tnf_status visit_children(walk *w, const tnf_pickle_node *node, visit_fn visit)
{
    const tnf_pickle_node *states[PT_STATES];
    bool tensor = tnf_pt_is_tensor(node);
    size_t n = tensor ? tnf_pt_tensor_states(node, states) : 0;
    for (size_t i = 0; i < n; i++) /* tensors wrapped by a subclass */
        TNF_TRY(visit_held(w, states[i], "state", visit));
    if (tensor)
        return TNF_OK;
    if (node->kind == TNF_PICKLE_CALL)
        return visit_object(w, node, visit);
    return node->kind == TNF_PICKLE_DICT ? visit_pairs(w, node, visit)
                                         : visit_items(w, node, visit);
}

/* --------------------------------------------------------------- counting */

static void set_state(tnf_pickle_node *node, uint8_t state)
{
    node->seen = (uint8_t)((node->seen & ~PT_STATE) | state);
}

static uint8_t state_of(const tnf_pickle_node *node)
{
    return node->seen & PT_STATE;
}

static tnf_status count_child(walk *w, const step *s, tnf_pickle_node *child);

/* Counts the leaves below a container, up to the limit, into its `number`. */
static tnf_status count_paths(walk *w, tnf_pickle_node *node)
{
    if (w->depth == PT_DEEPEST)
        return tnf_fail(w->e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "containers of the pickle are nested more than %u deep", PT_DEEPEST);
    uint64_t outer = w->n;
    set_state(node, PT_ENTERED);
    w->n = 0;
    w->depth++;
    TNF_TRY(visit_children(w, node, count_child));
    w->depth--;
    set_state(node, PT_COUNTED);
    node->number = (uint32_t)w->n;
    w->n = (size_t)outer;
    return TNF_OK;
}

static tnf_status count_child(walk *w, const step *s, tnf_pickle_node *child)
{
    (void)s;
    child = (tnf_pickle_node *)(uintptr_t)tnf_pt_unwrap(child);
    pt_form form = tnf_pt_form(child);
    uint64_t more = form != PT_CONTAINER;
    if (tnf_pt_has_children(child, form)) {
        if (state_of(child) == PT_NEW)
            TNF_TRY(count_paths(w, child));
        more += state_of(child) == PT_COUNTED ? child->number : 0;
    }
    w->n = (size_t)(w->n + more);
    if (w->n > w->most)
        return tnf_fail(w->e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "shared containers of the pickle make more than %llu paths",
                        (unsigned long long)w->most);
    return TNF_OK;
}

/* ------------------------------------------------------------------ names */

/* Joins the path by dots; escaped: dots inside its elements get a backslash. */
static tnf_status make_name(walk *w, bool escaped)
{
    w->name.n = 0;
    for (size_t i = 0; i < w->depth; i++) {
        const step *s = &w->steps[i];
        if (i)
            tnf_buf_u8(&w->name, '.');
        if (s->is_int)
            tnf_buf_printf(&w->name, "%lld", (long long)s->index);
        for (size_t k = 0; !s->is_int && k < s->text.n; k++) {
            if (escaped && s->text.p[k] == '.')
                tnf_buf_u8(&w->name, '\\');
            tnf_buf_u8(&w->name, (uint8_t)s->text.p[k]);
        }
    }
    if (w->depth == 0)
        tnf_buf_puts(&w->name, "value");
    return tnf_buf_status(&w->name, "the name", w->e);
}

static bool is_taken(walk *w, bool tensor)
{
    const char *p = (const char *)w->name.p;
    tnf_member *found = NULL;
    if (tensor && w->f)
        return tnf_catalog_find(w->f->r->catalog, p, w->name.n) != NULL;
    if (tensor)
        return tnf_hash_find(&w->taken, p, w->name.n) != TNF_HASH_NONE;
    return tnf_attrs_find(&w->values, p, w->name.n, &found, w->e) == TNF_OK && found;
}

/* Makes a name that is still free; *plain: it is the path joined by dots. */
static tnf_status free_name(walk *w, bool tensor, bool *plain)
{
    *plain = true;
    TNF_TRY(make_name(w, false));
    if (!is_taken(w, tensor))
        return TNF_OK;
    *plain = false;
    TNF_TRY(make_name(w, true));
    size_t n = w->name.n;
    for (unsigned long i = 2; is_taken(w, tensor); i++) {
        w->name.n = n;
        tnf_buf_printf(&w->name, "@%lu", i);
        TNF_TRY(tnf_buf_status(&w->name, "the name", w->e));
        if (i > SAME)
            return tnf_fail(w->e, TNF_ELIMIT, TNF_NO_OFFSET, "too many tensors with the same name");
    }
    return TNF_OK;
}

/* Takes the name from the budget; false: the budget is exhausted. */
static bool spend_name(walk *w)
{
    bool fits = w->name.n < w->left;
    w->left = fits ? w->left - w->name.n : 0;
    return fits;
}

/* ------------------------------------------------------------- attributes */

static bool splits_at_dots(const walk *w)
{
    for (size_t i = 0; i < w->depth; i++)
        if (w->steps[i].is_int || !w->steps[i].text.n ||
            memchr(w->steps[i].text.p, '.', w->steps[i].text.n))
            return false;
    return w->depth > 0;
}

static tnf_status put_path(walk *w, tnf_attrs *attrs)
{
    tnf_value *items = tnf_arena_array(w->arena, w->depth, sizeof *items);
    if (!items)
        return tnf_arena_fail(w->arena, "a path", w->e);
    for (size_t i = 0; i < w->depth; i++) {
        const step *s = &w->steps[i];
        const char *copy = s->is_int ? "" : tnf_arena_str(w->arena, s->text.p, s->text.n);
        if (!copy)
            return tnf_arena_fail(w->arena, "a path", w->e);
        items[i] = s->is_int ? tnf_value_integer(s->index)
                             : tnf_value_str(TNF_STRING, copy, s->text.n);
    }
    return tnf_attrs_push(attrs, "pytorch.path",
                          (tnf_value) { .kind = TNF_ARRAY, .n = w->depth, .as.items = items },
                          w->e);
}

static tnf_status put_strides(walk *w, tnf_attrs *attrs, const pt_dense *d)
{
    tnf_value *items = tnf_arena_array(w->arena, d->rank, sizeof *items);
    if (!items)
        return tnf_arena_fail(w->arena, "strides", w->e);
    for (uint32_t i = 0; i < d->rank; i++)
        items[i] = tnf_value_uint(d->stride[i]);
    return tnf_attrs_push(attrs, "pytorch.strides",
                          (tnf_value) { .kind = TNF_ARRAY, .n = d->rank, .as.items = items }, w->e);
}

static tnf_status put_quantizer(walk *w, tnf_attrs *attrs, const pt_tensor *t)
{
    if (!t->qscheme)
        return TNF_OK;
    TNF_TRY(tnf_attrs_push(attrs, "pytorch.qscheme", tnf_value_string(t->qscheme), w->e));
    if (t->nparts > 1)
        return tnf_attrs_push(attrs, "pytorch.axis", tnf_value_integer(t->axis), w->e);
    TNF_TRY(tnf_attrs_push(attrs, "pytorch.scale",
                           (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = t->scale },
                           w->e));
    return tnf_attrs_push(attrs, "pytorch.zero_point", tnf_value_integer(t->zero_point), w->e);
}

/* Adds attributes that the tensor's type, shape and bytes do not imply. */
static tnf_status put_facts(walk *w, tnf_attrs *attrs, const pt_tensor *t)
{
    const pt_dense *d = &t->parts[0];
    if (t->requires_grad)
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.requires_grad", tnf_value_bool(true), w->e));
    if (t->parameter)
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.parameter", tnf_value_bool(true), w->e));
    if (t->kind)
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.kind", tnf_value_string(t->kind), w->e));
    else if (d->location && strcmp(d->location, "cpu") != 0)
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.device", tnf_value_string(d->location), w->e));
    if (d->type->kept)
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.dtype", tnf_value_string(d->type->name), w->e));
    TNF_TRY(put_quantizer(w, attrs, t));
    if (t->says_coalesced)
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.coalesced", tnf_value_bool(t->coalesced), w->e));
    TNF_TRY(tnf_pt_sparse_facts(attrs, t, w->arena, w->e));
    if (t->state && t->state->kind == TNF_PICKLE_DICT && t->state->n) {
        tnf_value v;
        TNF_TRY(tnf_pt_value(&v, w->f, t->state, w->e));
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.state", v, w->e));
    }
    return TNF_OK;
}

/* Copies the current attributes to the arena of the file. */
static tnf_status keep_attrs(const tnf_value **out, walk *w)
{
    const tnf_attrs *attrs = &w->facts;
    *out = NULL;
    if (!attrs->n)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(w->arena, sizeof *map);
    tnf_member *members = tnf_arena_array(w->arena, attrs->n, sizeof *members);
    if (!map || !members)
        return tnf_arena_fail(w->arena, "attributes", w->e);
    memcpy(members, attrs->members, attrs->n * sizeof *members);
    *map = (tnf_value) { .kind = TNF_MAP, .n = attrs->n, .as.members = members };
    *out = map;
    return TNF_OK;
}

static tnf_status make_attrs(const tnf_value **out, walk *w, const pt_tensor *t, bool plain,
                             bool gathered)
{
    tnf_attrs *attrs = &w->facts;
    const pt_dense *d = &t->parts[0];
    attrs->n = 0;
    if (!plain || !splits_at_dots(w))
        TNF_TRY(put_path(w, attrs));
    TNF_TRY(put_facts(w, attrs, t));
    if (d->storage && d->storage->key.n)
        TNF_TRY(tnf_attrs_push(attrs, "pytorch.storage",
                               tnf_value_str(TNF_STRING, d->storage->key.p, d->storage->key.n),
                               w->e));
    if (gathered && !t->kind)
        TNF_TRY(put_strides(w, attrs, d));
    return keep_attrs(out, w);
}

/* ---------------------------------------------------------------- tensors */

static const tnf_layout *layout_named(walk *w, const char *id)
{
    const tnf_layout *known = tnf_layout_named(id, strlen(id));
    return known ? known : tnf_layout_unknown(w->arena, id, strlen(id));
}

/* The shape in Tenfold, for types that change the last dimension. */
static uint32_t our_shape(uint64_t *shape, const pt_tensor *t)
{
    uint32_t rank = t->rank;
    const pt_type *type = t->parts[0].type;
    memcpy(shape, t->shape, rank * sizeof *shape);
    if (type->doubled && rank)
        shape[rank - 1] *= 2;
    if (type->axis)
        shape[rank++] = type->axis;
    return rank;
}

static tnf_status add_object(walk *w, const pt_tensor *t, bool plain, uint64_t at)
{
    tnf_part parts[PT_PARTS] = { { 0 } };
    uint64_t shape[PT_RANK + 1];
    tnf_order order = TNF_ORDER_C, ignored;
    const tnf_value *attrs;
    for (uint32_t i = 0; i < t->nparts; i++) {
        TNF_TRY(tnf_pt_add_part(
            &parts[i], i ? &ignored : &order, w->f, &t->parts[i],
            false /* columns are gathered, so other formats need not keep the order */, w->e));
        parts[i].role = t->roles[i];
        /* indices are never negative, so the bytes are the same */
        if (i && strcmp(t->layout, "torch.per_channel/1") != 0)
            parts[i].type = parts[i].type == tnf_type_of(TNF_I64)   ? tnf_type_of(TNF_U64)
                            : parts[i].type == tnf_type_of(TNF_I32) ? tnf_type_of(TNF_U32)
                                                                    : parts[i].type;
    }
    TNF_TRY(make_attrs(&attrs, w, t, plain, parts[0].payload == TNF_OPAQUE && t->nparts == 1));
    tnf_object o = { .name = { (const char *)w->name.p, w->name.n },
                     .shape = shape,
                     .layout = layout_named(w, t->layout),
                     .parts = parts,
                     .attrs = attrs,
                     .nparts = (uint16_t)t->nparts,
                     .order = (uint8_t)order };
    o.rank = our_shape(shape, t);
    if (!o.layout)
        return tnf_arena_fail(w->arena, "a layout", w->e);
    return tnf_add_object(w->f->r, &o, at, w->e);
}

static tnf_status list_tensor(walk *w, tnf_pickle_node *node)
{
    uint32_t previous;
    pt_named *more = tnf_arena_grow(w->arena, w->list, w->n, &w->capacity, sizeof *more, 64);
    if (!more)
        return tnf_arena_fail(w->arena, "names", w->e);
    w->list = more;
    const char *copy = tnf_arena_str(w->arena, w->name.p, w->name.n);
    if (!copy)
        return tnf_arena_fail(w->arena, "names", w->e);
    w->list[w->n++] = (pt_named) { .name = { copy, w->name.n }, .node = node };
    return tnf_hash_add(&w->taken, (uint32_t)(w->n - 1), false, &previous)
               ? TNF_OK
               : tnf_no_memory("names", w->e);
}

/* Lists a tensor of an unknown kind with the reason. So the rest can be read, and no conversion
 * drops the tensor silently. */
static tnf_status list_unknown(walk *w, const pt_tensor *t, bool plain, const tnf_pickle_node *node)
{
    tnf_object o = { .name = { (const char *)w->name.p, w->name.n },
                     .shape = t->parts[0].shape,
                     .rank = t->nparts ? t->parts[0].rank : 0 };
    char why[160];
    snprintf(why, sizeof why, "%.150s", w->e ? w->e->message : "it has an unknown kind");
    w->facts.n = 0;
    if (!plain || !splits_at_dots(w))
        TNF_TRY(put_path(w, &w->facts));
    TNF_TRY(keep_attrs(&o.attrs, w));
    tnf_pt_mark_listed(w->f, node);
    return tnf_pt_add_unreadable(w->f, &o, why, w->f->base + node->at, w->e);
}

static tnf_status take_tensor(walk *w, tnf_pickle_node *node)
{
    bool plain;
    TNF_TRY(free_name(w, true, &plain));
    if (!spend_name(w))
        return tnf_fail(w->e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the names of the tensors are far longer than the pickle");
    if (!w->f)
        return list_tensor(w, node);
    pt_tensor *t = tnf_pt_spare(w->f, 0);
    if (!t)
        return tnf_arena_fail(w->f->r->scratch, "a tensor", w->e);
    tnf_status status = tnf_pt_resolve(t, w->f, node, w->e);
    if (status == TNF_OK)
        status = add_object(w, t, plain, node->at);
    if (status == TNF_OK)
        return TNF_OK;
    if (status == TNF_EUNSUPPORTED)
        return list_unknown(w, t, plain, node);
    if ((status == TNF_EFORMAT || status == TNF_ETRUNCATED) &&
        tnf_lose_tensor(w->f->r, (tnf_str) { (const char *)w->name.p, w->name.n },
                        w->e ? w->e->offset : TNF_NO_OFFSET, false,
                        w->e ? w->e->message : "it cannot be read"))
        return TNF_OK;
    return status;
}

/* ------------------------------------------------------------------- walk */

static tnf_status take_value(walk *w, const tnf_pickle_node *node)
{
    tnf_value v;
    bool plain;
    if (!w->f)
        return TNF_OK;
    if (w->left)
        TNF_TRY(free_name(w, false, &plain));
    if (!w->left || !spend_name(w)) {
        w->f->cut = true;
        return TNF_OK;
    }
    TNF_TRY(tnf_pt_value(&v, w->f, node, w->e));
    return tnf_attrs_set(&w->values, (const char *)w->name.p, w->name.n, v, w->e);
}

static tnf_status enter_node(walk *w, tnf_pickle_node *node);

/* Paths are usually short, so memory grows with the deepest one. */
static tnf_status push_step(walk *w, const step *s)
{
    step *more = tnf_arena_grow(w->scratch, w->steps, w->depth, &w->room, sizeof *more, 8);
    if (!more)
        return tnf_arena_fail(w->scratch, "a path", w->e);
    w->steps = more;
    w->steps[w->depth++] = *s;
    return TNF_OK;
}

static tnf_status take_child(walk *w, const step *s, tnf_pickle_node *child)
{
    TNF_TRY(push_step(w, s));
    TNF_TRY(enter_node(w, child));
    w->depth--;
    return TNF_OK;
}

static tnf_status enter_node(walk *w, tnf_pickle_node *node)
{
    node = (tnf_pickle_node *)(uintptr_t)tnf_pt_unwrap(node);
    pt_form form = tnf_pt_form(node);
    if (form == PT_VALUE)
        return take_value(w, node);
    if (state_of(node) == PT_ENTERED) /* it contains itself */
        return TNF_OK;
    if (form == PT_TENSOR)
        TNF_TRY(take_tensor(w, node));
    if (!tnf_pt_has_children(node, form))
        return TNF_OK;
    if (w->depth == PT_DEEPEST)
        return tnf_fail(w->e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "containers of the pickle are nested more than %u deep", PT_DEEPEST);
    set_state(node, PT_ENTERED);
    TNF_TRY(visit_children(w, node, take_child));
    set_state(node, PT_COUNTED);
    return TNF_OK;
}

static tnf_status walk_all(walk *w, tnf_pickle_node *root, const char *prefix, size_t bytes)
{
    w->most = bytes / 8 > PATHS ? bytes / 8 : PATHS;
    w->left = MOST_NAMES + NAMES_RATIO * (uint64_t)bytes;
    TNF_TRY(tnf_pt_mark_holders(root, w->scratch, w->e));
    tnf_pickle_node *inner = (tnf_pickle_node *)(uintptr_t)tnf_pt_unwrap(root);
    if (tnf_pt_has_children(inner, tnf_pt_form(inner)) && state_of(inner) == PT_NEW)
        TNF_TRY(count_paths(w, inner));
    w->n = 0;
    if (prefix)
        TNF_TRY(push_step(w, &(step) { .text = { prefix, strlen(prefix) } }));
    return enter_node(w, inner);
}

static walk *new_walk(tnf_arena *arena, tnf_arena *scratch, tnf_error *e)
{
    walk *w = tnf_arena_alloc(scratch, sizeof *w);
    if (!w)
        return NULL;
    w->arena = arena;
    w->scratch = scratch;
    w->values.arena = arena;
    w->facts.arena = scratch;
    w->e = e;
    tnf_buf_init(&w->name, &scratch->alloc, (uint64_t)16 << 20);
    return w;
}

tnf_status tnf_pt_walk(pt_file *f, tnf_pickle_node *root, const char *prefix, size_t bytes,
                       tnf_error *e)
{
    walk *w = new_walk(f->r->arena, f->r->scratch, e);
    if (!w)
        return tnf_arena_fail(f->r->scratch, "the tree", e);
    w->f = f;
    const tnf_value *before = tnf_catalog_attr(f->r->catalog, "pytorch.values");
    for (size_t i = 0; before && i < before->n; i++)
        TNF_TRY(tnf_attrs_set(&w->values, before->as.members[i].key.p, before->as.members[i].key.n,
                              before->as.members[i].value, e));
    tnf_status status = walk_all(w, root, prefix, bytes);
    tnf_buf_free(&w->name);
    if (status == TNF_OK && w->values.n)
        status = tnf_set_attr(f->r, "pytorch.values", tnf_attrs_value(&w->values), e);
    return status;
}

static tnf_str listed_name(const void *ctx, uint32_t position)
{
    return ((const walk *)ctx)->list[position].name;
}

tnf_status tnf_pt_names(pt_named **out, size_t *n, tnf_pickle_node *root, size_t bytes,
                        tnf_arena *arena, tnf_error *e)
{
    walk *w = new_walk(arena, arena, e);
    if (!w)
        return tnf_arena_fail(arena, "the tree", e);
    tnf_hash_init(&w->taken, &arena->alloc, listed_name, w);
    tnf_status status = walk_all(w, root, NULL, bytes);
    tnf_hash_free(&w->taken);
    tnf_buf_free(&w->name);
    *out = w->list;
    *n = w->n;
    return status;
}
