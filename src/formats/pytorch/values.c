/* SPDX-License-Identifier: MIT */
/* Converts nodes other than tensors to values:
 *
 *   None, bool, int, float, text, bytes, list, dict   themselves
 *   int beyond 64 bits      {"$int": "…"}
 *   a class or function     {"$global": "torch.float16"}
 *   a call                  {"$call": "pathlib.PosixPath", "args": ["a"]}
 */
#include "formats/pytorch/pt.h"

#include <stdio.h>
#include <string.h>

#define DEEPEST  12u
#define MOST_INT 256u /* largest int that is shown in digits, in bytes */
#define MAP      160u /* cost of a map of up to four members, and of each further one, in bytes */
#define MEMBER   100u

typedef struct maker {
    pt_file *f;
    tnf_arena *arena;
    unsigned depth;
    tnf_error *e;
} maker;

const char *tnf_pt_global_name(const tnf_pickle_node *global, tnf_arena *arena)
{
    const tnf_pickle_global *g = global->as.global;
    size_t n = g->module.n + 1 + g->name.n;
    char *text = tnf_arena_raw(arena, n + 1);
    if (!text)
        return NULL;
    memcpy(text, g->module.p, g->module.n);
    text[g->module.n] = '.';
    memcpy(text + g->module.n + 1, g->name.p, g->name.n);
    text[n] = 0;
    return text;
}

bool tnf_pt_is_dict_class(const tnf_pickle_node *call)
{
    return tnf_pickle_is_call(call, "collections", "OrderedDict") ||
           tnf_pickle_is_call(call, "collections", "defaultdict") ||
           tnf_pickle_is_call(call, "collections", "Counter") ||
           tnf_pickle_is_call(call, "builtins", "dict");
}

/* Calls of these functions, {module, name}, only wrap their first argument. */
static const char *const wrappers[][2] = {
    { "torch", "Size" },
    { "builtins", "set" },
    { "builtins", "frozenset" },
    { "builtins", "list" },
    { "builtins", "tuple" },
    { "torch.jit._pickle", "build_intlist" },
    { "torch.jit._pickle", "build_doublelist" },
    { "torch.jit._pickle", "build_boollist" },
    { "torch.jit._pickle", "build_tensorlist" },
    { "torch.jit._pickle", "restore_type_tag" },
};

static bool is_wrapper(const tnf_pickle_node *node)
{
    const tnf_pickle_call *call = node->kind == TNF_PICKLE_CALL ? node->as.call : NULL;
    if (!call || call->state || call->list->n || call->dict->n)
        return false;
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (tnf_pickle_is_call(node, wrappers[i][0], wrappers[i][1]))
            return tnf_pickle_arg(node, 0) != NULL;
    return tnf_pt_is_dict_class(node) && tnf_pickle_arg(node, 0) &&
           tnf_pickle_arg(node, 0)->kind == TNF_PICKLE_DICT;
}

const tnf_pickle_node *tnf_pt_unwrap(const tnf_pickle_node *node)
{
    for (unsigned i = 0; i < 16 && is_wrapper(node); i++)
        node = tnf_pickle_arg(node, 0);
    return node;
}

static tnf_status no_memory(const maker *m)
{
    return tnf_arena_fail(m->arena, "values", m->e);
}

static tnf_status make_text(tnf_value *out, const maker *m, tnf_kind kind, const char *p, size_t n)
{
    const char *copy = tnf_arena_str(m->arena, p, n);
    if (!copy)
        return no_memory(m);
    *out = tnf_value_str(kind, copy, n);
    return TNF_OK;
}

/* {key: text} */
static tnf_status make_wrapped(tnf_value *out, const maker *m, const char *key, const char *text)
{
    tnf_attrs map = { .arena = m->arena };
    if (!text)
        return no_memory(m);
    TNF_TRY(tnf_attrs_push(&map, key, tnf_value_string(text), m->e));
    *out = tnf_attrs_value(&map);
    return TNF_OK;
}

static tnf_status make_big(tnf_value *out, const maker *m, const tnf_pickle_node *node)
{
    tnf_str digits;
    if (node->n == 9 && node->as.s[8] == 0) {
        *out = tnf_value_number(TNF_U64, node->as.s);
        return TNF_OK;
    }
    if (node->n > MOST_INT) {
        char text[48];
        snprintf(text, sizeof text, "(%zu bytes)", node->n);
        return make_wrapped(out, m, "$int", tnf_arena_str(m->arena, text, strlen(text)));
    }
    if (!tnf_pickle_big_text(&digits, node, m->arena))
        return no_memory(m);
    return make_wrapped(out, m, "$int", digits.p);
}

static tnf_status make_value(tnf_value *out, maker *m, const tnf_pickle_node *node);

static void spend_budget(const maker *m, uint64_t n)
{
    m->f->left -= n < m->f->left ? n : m->f->left;
}

/* Makes an array of as many items as the budget allows, so no memory is reserved for more. */
static tnf_status make_array(tnf_value *out, maker *m, const tnf_pickle_node *node)
{
    uint64_t most = m->f->left / sizeof(tnf_value);
    size_t n = node->n <= most ? node->n : (size_t)most;
    tnf_value *items = tnf_arena_array(m->arena, n, sizeof *items);
    if (!items)
        return no_memory(m);
    m->f->cut = m->f->cut || n < node->n;
    for (size_t i = 0; i < n; i++)
        TNF_TRY(make_value(&items[i], m, node->as.items[i]));
    *out = (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = items };
    return TNF_OK;
}

static tnf_status set_item(tnf_attrs *map, maker *m, const tnf_pickle_node *k,
                           const tnf_pickle_node *value)
{
    char key[200];
    tnf_value v;
    TNF_TRY(make_value(&v, m, value));
    if (k->kind == TNF_PICKLE_TEXT && tnf_utf8_valid(NULL, k->as.s, k->n)) {
        spend_budget(m, MEMBER + k->n);
        return tnf_attrs_set(map, k->as.s, k->n, v, m->e);
    }
    tnf_pickle_show(key, sizeof key, k);
    return tnf_attrs_set(map, key, strlen(key), v, m->e);
}

/* Adds the members of a dict, or of the list of pairs that makes one. */
static tnf_status add_map(tnf_attrs *map, maker *m, const tnf_pickle_node *from)
{
    bool dict = from->kind == TNF_PICKLE_DICT;
    for (size_t i = 0; i < from->n && m->f->left; i += dict ? 2 : 1) {
        tnf_pickle_node *const *pair = dict ? from->as.items + i : from->as.items[i]->as.items;
        TNF_TRY(set_item(map, m, pair[0], pair[1]));
    }
    return TNF_OK;
}

static tnf_status make_map(tnf_value *out, maker *m, const tnf_pickle_node *first,
                           const tnf_pickle_node *dict)
{
    tnf_attrs map = { .arena = m->arena };
    if (first)
        TNF_TRY(add_map(&map, m, first));
    TNF_TRY(add_map(&map, m, dict));
    *out = tnf_attrs_value(&map);
    return TNF_OK;
}

static tnf_status make_call(tnf_value *out, maker *m, const tnf_pickle_node *node)
{
    const tnf_pickle_call *call = node->as.call;
    tnf_attrs map = { .arena = m->arena };
    const char *name = call->callee->kind == TNF_PICKLE_GLOBAL
                           ? tnf_pt_global_name(call->callee, m->arena)
                           : "?";
    tnf_str bytes;
    tnf_value v;
    if (!name)
        return no_memory(m);
    TNF_TRY(tnf_pt_bytes(&bytes, node, m->arena, m->e));
    if (bytes.p) {
        *out = tnf_value_str(TNF_BYTES, bytes.p, bytes.n);
        return TNF_OK;
    }
    if (tnf_pt_is_scalar(node) && tnf_pt_scalar(out, node))
        return TNF_OK;
    if (tnf_pt_is_dict_class(node))
        return make_map(out, m, tnf_pt_pairs(node), call->dict);
    TNF_TRY(tnf_attrs_push(&map, "$call", tnf_value_string(name), m->e));
    TNF_TRY(make_value(&v, m, call->args));
    TNF_TRY(tnf_attrs_push(&map, "args", v, m->e));
    if (call->state) {
        TNF_TRY(make_value(&v, m, call->state));
        TNF_TRY(tnf_attrs_push(&map, "state", v, m->e));
    }
    *out = tnf_attrs_value(&map);
    return TNF_OK;
}

static tnf_status make_leaf(tnf_value *out, maker *m, const tnf_pickle_node *node)
{
    switch (node->kind) {
    case TNF_PICKLE_BOOL:
        *out = tnf_value_bool(node->as.i != 0);
        return TNF_OK;
    case TNF_PICKLE_INT:
        *out = tnf_value_integer(node->as.i);
        return TNF_OK;
    case TNF_PICKLE_BIG:
        return make_big(out, m, node);
    case TNF_PICKLE_FLOAT:
        *out = (tnf_value) { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = node->as.f };
        return TNF_OK;
    case TNF_PICKLE_TEXT:
        return tnf_text_value(m->f->r, out, (tnf_str) { node->as.s, node->n }, m->e);
    case TNF_PICKLE_BYTES:
    case TNF_PICKLE_BYTEARRAY:
        return make_text(out, m, TNF_BYTES, node->as.s, node->n);
    case TNF_PICKLE_GLOBAL:
        return make_wrapped(out, m, "$global", tnf_pt_global_name(node, m->arena));
    default:
        return TNF_OK;
    }
}

/* The cost of a value in bytes, without its items. */
static uint64_t cost_of(const tnf_pickle_node *node)
{
    const tnf_pickle_node *first = node->kind == TNF_PICKLE_CALL ? tnf_pickle_arg(node, 0) : NULL;
    switch (node->kind) {
    case TNF_PICKLE_BIG:
        return MAP + (node->n <= MOST_INT ? 6 * node->n : 0);
    case TNF_PICKLE_TEXT:
    case TNF_PICKLE_BYTES:
    case TNF_PICKLE_BYTEARRAY:
        return node->n;
    case TNF_PICKLE_GLOBAL:
        return MAP + node->as.global->module.n + node->as.global->name.n;
    case TNF_PICKLE_CALL: /* its text may represent bytes */
        return 2 * (uint64_t)MAP + (first && first->kind == TNF_PICKLE_TEXT ? first->n : 0);
    case TNF_PICKLE_DICT:
    case TNF_PICKLE_PERSISTENT:
        return MAP;
    default:
        return 0;
    }
}

static tnf_status make_value(tnf_value *out, maker *m, const tnf_pickle_node *node)
{
    tnf_status status;
    *out = (tnf_value) { .kind = TNF_NULL };
    node = tnf_pt_unwrap(node);
    if (m->f->left == 0 || m->depth == DEEPEST) {
        m->f->cut = m->f->cut || m->f->left == 0;
        spend_budget(m, sizeof(tnf_value));
        *out = tnf_value_string("...");
        return TNF_OK;
    }
    spend_budget(m, sizeof(tnf_value) + cost_of(node));
    m->depth++;
    switch (node->kind) {
    case TNF_PICKLE_LIST:
    case TNF_PICKLE_TUPLE:
    case TNF_PICKLE_SET:
    case TNF_PICKLE_FROZENSET:
        status = make_array(out, m, node);
        break;
    case TNF_PICKLE_DICT:
        status = make_map(out, m, NULL, node);
        break;
    case TNF_PICKLE_CALL:
        if (tnf_pt_is_tensor(node))
            status = make_wrapped(out, m, "$tensor", "");
        else
            status = make_call(out, m, node);
        break;
    case TNF_PICKLE_PERSISTENT:
        status = make_wrapped(out, m, "$persistent", "");
        break;
    default:
        status = make_leaf(out, m, node);
    }
    m->depth--;
    return status;
}

tnf_status tnf_pt_value(tnf_value *out, pt_file *f, const tnf_pickle_node *node, tnf_error *e)
{
    maker m = { f, f->r->arena, 0, e };
    return make_value(out, &m, node);
}
