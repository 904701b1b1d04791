/* SPDX-License-Identifier: MIT */
/* Classifies nodes of the tree for the walk: a tensor, a container to enter, or a value.
 *
 *   lib.Pair([T], 3)           a container: its arguments have a tensor
 *   lib.Pair([1], 3)           a value
 *   OrderedDict([["w", T]])    a container: Python 2 writes its items as a list of pairs
 *
 * A single pass marks all nodes that have tensors below them. It neither recurses nor visits a node
 * twice.
 */
#include "formats/pytorch/pt.h"

#define CHAIN 8u /* most nested tensors */

static bool is_list(const tnf_pickle_node *node)
{
    return node->kind == TNF_PICKLE_LIST || node->kind == TNF_PICKLE_TUPLE ||
           node->kind == TNF_PICKLE_SET || node->kind == TNF_PICKLE_FROZENSET;
}

/* ------------------------------------------------------------------ looks */

static bool is_scalar_node(const tnf_pickle_node *node)
{
    return node->kind < TNF_PICKLE_LIST ||
           (node->kind == TNF_PICKLE_CALL &&
            (tnf_pickle_is_call(node, "_codecs", "encode") ||
             (tnf_pickle_is_call(node, "builtins", "bytes") && !tnf_pickle_arg(node, 0))));
}

static bool is_pair(const tnf_pickle_node *node)
{
    return (node->kind == TNF_PICKLE_LIST || node->kind == TNF_PICKLE_TUPLE) && node->n == 2;
}

/* Does so() return true for all items? The answer is cached in the flags `asked` and `yes`, since
 * shared lists are checked often. */
static bool all_are(const tnf_pickle_node *list, bool (*so)(const tnf_pickle_node *), uint8_t asked,
                    uint8_t yes)
{
    if (list->n == 0)
        return true;
    tnf_pickle_node *node = (tnf_pickle_node *)(uintptr_t)list;
    if (!(node->seen & asked)) {
        size_t i = 0;
        while (i < node->n && so(node->as.items[i]))
            i++;
        node->seen |= (uint8_t)(asked | (i == node->n ? yes : 0));
    }
    return node->seen & yes;
}

const tnf_pickle_node *tnf_pt_pairs(const tnf_pickle_node *call)
{
    bool factory = tnf_pickle_is_call(call, "collections", "defaultdict");
    const tnf_pickle_node *from = tnf_pt_is_dict_class(call) ? tnf_pickle_arg(call, factory ? 1 : 0)
                                                             : NULL;
    if (!from || from->kind == TNF_PICKLE_DICT)
        return from;
    bool list = from->kind == TNF_PICKLE_LIST || from->kind == TNF_PICKLE_TUPLE;
    return list && all_are(from, is_pair, PT_ASKED_PAIRS, PT_PAIRS) ? from : NULL;
}

size_t tnf_pt_state_dicts(const tnf_pickle_node *state, const tnf_pickle_node *out[2])
{
    size_t n = 0;
    if (!state)
        return 0;
    if (state->kind == TNF_PICKLE_DICT) {
        out[0] = state;
        return 1;
    }
    if (state->kind != TNF_PICKLE_TUPLE || state->n != 2)
        return 0;
    for (size_t i = 0; i < 2; i++)
        if (state->as.items[i]->kind == TNF_PICKLE_DICT)
            out[n++] = state->as.items[i];
        else if (state->as.items[i]->kind != TNF_PICKLE_NONE)
            return 0;
    return n;
}

static const tnf_pickle_node *first_of(const tnf_pickle_node *tuple)
{
    return tuple && is_list(tuple) && tuple->n ? tuple->as.items[0] : NULL;
}

static bool is_from_type(const tnf_pickle_node *node)
{
    return tnf_pickle_is_call(node, "torch._tensor", "_rebuild_from_type_v2") ||
           tnf_pickle_is_call(node, "torch._tensor", "_rebuild_from_type") ||
           tnf_pickle_is_call(node, "torch.tensor", "_rebuild_from_type");
}

/* Adds a state, unless it is NULL. */
static void note_state(const tnf_pickle_node *out[PT_STATES], size_t *n,
                       const tnf_pickle_node *state)
{
    if (state && *n < PT_STATES)
        out[(*n)++] = state;
}

size_t tnf_pt_tensor_states(const tnf_pickle_node *tensor, const tnf_pickle_node *out[PT_STATES])
{
    size_t n = 0;
    for (unsigned i = 0; i < CHAIN && tensor && tensor->kind == TNF_PICKLE_CALL; i++) {
        const tnf_pickle_node *args = tensor->as.call->args, *next = first_of(args);
        if (!tnf_pt_is_rebuilt(tensor->as.call->callee))
            break;
        note_state(out, &n, tensor->as.call->state);
        if (is_from_type(tensor)) {
            const tnf_pickle_node *inner = tnf_pickle_arg(tensor, 2);
            note_state(out, &n, tnf_pickle_arg(tensor, 3));
            if (!next || !tnf_pt_is_rebuilt(next))
                note_state(out, &n, inner); /* arguments of unknown meaning */
            next = first_of(inner);
        } else if (tnf_pickle_is_call(tensor, "torch._utils", "_rebuild_parameter_with_state")) {
            note_state(out, &n, tnf_pickle_arg(tensor, 3));
        }
        tensor = next;
    }
    return n;
}

/* ---------------------------------------------------------------- holders */

/* The i-th node below this one that the walk may visit. */
static bool child_at(const tnf_pickle_node *node, size_t i, const tnf_pickle_node **out)
{
    *out = NULL;
    if (is_list(node) || node->kind == TNF_PICKLE_DICT) {
        if (i >= node->n)
            return false;
        *out = node->kind == TNF_PICKLE_DICT && i % 2 == 0 ? NULL : node->as.items[i];
        return true;
    }
    if (node->kind != TNF_PICKLE_CALL)
        return false;
    if (tnf_pt_is_tensor(node)) {
        const tnf_pickle_node *states[PT_STATES];
        size_t n = tnf_pt_tensor_states(node, states);
        *out = i < n ? states[i] : NULL;
        return i < n;
    }
    const tnf_pickle_call *call = node->as.call;
    const tnf_pickle_node *parts[] = { call->args, call->kwargs, call->state, call->list,
                                       call->dict };
    if (i >= sizeof parts / sizeof *parts)
        return false;
    *out = parts[i];
    return true;
}

typedef struct place {
    tnf_pickle_node *node;
    size_t next;
} place;

/* Marks all containers above this place: they hold a tensor. */
static void mark_above(place *stack, size_t n)
{
    while (n > 0 && !(stack[n - 1].node->seen & PT_HOLDS))
        stack[--n].node->seen |= PT_HOLDS;
}

static bool is_leaf(const tnf_pickle_node *node)
{
    return node->kind != TNF_PICKLE_CALL &&
           (node->kind < TNF_PICKLE_LIST || node->n == 0 || node->kind == TNF_PICKLE_GLOBAL ||
            node->kind == TNF_PICKLE_PERSISTENT);
}

tnf_status tnf_pt_mark_holders(tnf_pickle_node *root, tnf_arena *scratch, tnf_error *e)
{
    place *stack = tnf_arena_array(scratch, 16, sizeof *stack);
    size_t n = 0, capacity = 16;
    if (!stack)
        return tnf_arena_fail(scratch, "the tree", e);
    if (is_leaf(root) || root->seen & PT_LOOKED)
        return TNF_OK;
    root->seen |= PT_LOOKED;
    stack[n++] = (place) { root, 0 };
    while (n) {
        const tnf_pickle_node *found;
        if (!child_at(stack[n - 1].node, stack[n - 1].next++, &found)) {
            n--;
            continue;
        }
        if (!found)
            continue;
        tnf_pickle_node *child = (tnf_pickle_node *)(uintptr_t)found;
        if (child->seen & PT_HOLDS || tnf_pt_is_tensor(child))
            mark_above(stack, n);
        if (is_leaf(child) || child->seen & PT_LOOKED)
            continue;
        place *more = tnf_arena_grow(scratch, stack, n, &capacity, sizeof *more, 16);
        if (!more)
            return tnf_arena_fail(scratch, "the tree", e);
        stack = more;
        child->seen |= PT_LOOKED;
        stack[n++] = (place) { child, 0 };
    }
    return TNF_OK;
}

bool tnf_pt_holds(const tnf_pickle_node *node)
{
    return node && (node->seen & PT_HOLDS || tnf_pt_is_tensor(node));
}

/* ------------------------------------------------------------------ forms */

static pt_form form_of_call(const tnf_pickle_node *node)
{
    const tnf_pickle_call *call = node->as.call;
    const tnf_pickle_node *dicts[2], *pairs = tnf_pt_pairs(node);
    bool dict = tnf_pt_is_dict_class(node);
    if (call->dict->n || call->list->n || (pairs && pairs->n) ||
        (!dict && tnf_pt_state_dicts(call->state, dicts)))
        return PT_CONTAINER;
    return tnf_pt_holds(call->args) || tnf_pt_holds(call->state) || tnf_pt_holds(call->kwargs)
               ? PT_CONTAINER
               : PT_VALUE;
}

pt_form tnf_pt_form(const tnf_pickle_node *node)
{
    if (tnf_pt_is_tensor(node))
        return PT_TENSOR;
    if (node->kind == TNF_PICKLE_DICT)
        return node->n ? PT_CONTAINER : PT_VALUE;
    if (is_list(node))
        return all_are(node, is_scalar_node, PT_ASKED_SCALARS, PT_SCALARS) ? PT_VALUE
                                                                           : PT_CONTAINER;
    return node->kind == TNF_PICKLE_CALL ? form_of_call(node) : PT_VALUE;
}

bool tnf_pt_has_children(const tnf_pickle_node *node, pt_form form)
{
    const tnf_pickle_node *states[PT_STATES];
    size_t n = form == PT_TENSOR ? tnf_pt_tensor_states(node, states) : 0;
    for (size_t i = 0; i < n; i++)
        if (tnf_pt_holds(states[i]))
            return true;
    return form == PT_CONTAINER;
}
