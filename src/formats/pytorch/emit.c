/* SPDX-License-Identifier: MIT */
#include "formats/pytorch/emit.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

#define BATCH   1000u
#define DEEPEST 3000u

/* ------------------------------------------------------------------ nodes */

static tnf_pickle_node *new_node(tnf_arena *a, tnf_pickle_kind kind)
{
    tnf_pickle_node *node = tnf_arena_alloc(a, sizeof *node);
    if (node)
        node->kind = (uint8_t)kind;
    return node;
}

tnf_pickle_node *tnf_pt_new_plain(tnf_arena *a, tnf_pickle_kind kind, int64_t i)
{
    tnf_pickle_node *node = new_node(a, kind);
    if (node)
        node->as.i = i;
    return node;
}

tnf_pickle_node *tnf_pt_new_int(tnf_arena *a, uint64_t i)
{
    return tnf_pt_new_plain(a, TNF_PICKLE_INT, (int64_t)i);
}

tnf_pickle_node *tnf_pt_new_text(tnf_arena *a, const char *p, size_t n)
{
    tnf_pickle_node *node = new_node(a, TNF_PICKLE_TEXT);
    if (node) {
        node->as.s = p;
        node->n = n;
    }
    return node;
}

tnf_pickle_node *tnf_pt_new_list(tnf_arena *a, tnf_pickle_kind kind, tnf_pickle_node *const *items,
                                 size_t n)
{
    tnf_pickle_node *node = new_node(a, kind);
    tnf_pickle_node **copy = tnf_arena_array(a, n, sizeof(tnf_pickle_node *));
    for (size_t i = 0; i < n; i++)
        if (!items[i])
            return NULL;
    if (!node || !copy)
        return NULL;
    if (n)
        memcpy(copy, items, n * sizeof(tnf_pickle_node *));
    node->as.items = copy;
    node->n = n;
    return node;
}

tnf_pickle_node *tnf_pt_new_global(tnf_arena *a, const char *module, const char *name)
{
    tnf_pickle_node *node = new_node(a, TNF_PICKLE_GLOBAL);
    tnf_pickle_global *g = tnf_arena_alloc(a, sizeof *g);
    if (!node || !g)
        return NULL;
    g->module = g->written_module = (tnf_str) { module, strlen(module) };
    g->name = g->written_name = (tnf_str) { name, strlen(name) };
    node->as.global = g;
    return node;
}

tnf_pickle_node *tnf_pt_new_call(tnf_arena *a, tnf_pickle_node *callee, tnf_pickle_node *args)
{
    tnf_pickle_node *node = new_node(a, TNF_PICKLE_CALL);
    tnf_pickle_call *call = tnf_arena_alloc(a, sizeof *call);
    if (!node || !call || !callee || !args)
        return NULL;
    call->callee = callee;
    call->args = args;
    call->list = tnf_pickle_no_items();
    call->dict = tnf_pickle_no_items();
    node->op = 'R';
    node->as.call = call;
    return node;
}

/* ------------------------------------------------------------------- memo */

static void put_memo(pt_emitter *m, tnf_pickle_node *node)
{
    uint32_t i = m->memo++;
    node->memo = m->first + m->memo;
    tnf_buf_u8(m->b, i < 256 ? 'q' : 'r');
    if (i < 256)
        tnf_buf_u8(m->b, (uint8_t)i);
    else
        tnf_buf_u32(m->b, i);
}

/* A node that was already written is referenced through the memo. */
static bool get_memo(pt_emitter *m, const tnf_pickle_node *node)
{
    if (node->memo <= m->first)
        return false;
    uint32_t i = node->memo - m->first - 1;
    tnf_buf_u8(m->b, i < 256 ? 'h' : 'j');
    if (i < 256)
        tnf_buf_u8(m->b, (uint8_t)i);
    else
        tnf_buf_u32(m->b, i);
    return true;
}

static tnf_status emit_node(pt_emitter *m, tnf_pickle_node *node);

static tnf_status no_memory(const pt_emitter *m)
{
    return tnf_arena_fail(m->arena, "a pickle", m->e);
}

/* ---------------------------------------------------------------- scalars */

/* The shortest two's complement. */
static void put_long(pt_emitter *m, const uint8_t *bytes, size_t n)
{
    while (n > 1 && ((bytes[n - 1] == 0 && !(bytes[n - 2] & 0x80)) ||
                     (bytes[n - 1] == 0xff && bytes[n - 2] & 0x80)))
        n--;
    tnf_buf_u8(m->b, n < 256 ? 0x8a : 0x8b);
    if (n < 256)
        tnf_buf_u8(m->b, (uint8_t)n);
    else
        tnf_buf_u32(m->b, (uint32_t)n);
    tnf_buf_put(m->b, bytes, n);
}

static void put_int(pt_emitter *m, int64_t i)
{
    uint8_t bytes[8];
    tnf_put_le64(bytes, (uint64_t)i);
    size_t n = i >= 0 && i < 256                  ? 1
               : i >= 0 && i < 65536              ? 2
               : i >= INT32_MIN && i <= INT32_MAX ? 4
                                                  : 0;
    if (!n) {
        put_long(m, bytes, sizeof bytes);
        return;
    }
    tnf_buf_u8(m->b, n == 1 ? 'K' : n == 2 ? 'M' : 'J');
    tnf_buf_put(m->b, bytes, n);
}

static void put_float(pt_emitter *m, double f)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &f, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> (56 - 8 * i));
    tnf_buf_u8(m->b, 'G');
    tnf_buf_put(m->b, bytes, sizeof bytes);
}

static void put_text(pt_emitter *m, tnf_pickle_node *node)
{
    tnf_buf_u8(m->b, 'X');
    tnf_buf_u32(m->b, (uint32_t)node->n);
    tnf_buf_put(m->b, node->as.s, node->n);
    put_memo(m, node);
}

/* Protocol 2 has no opcode for bytes: they are written as _codecs.encode(text, "latin1"). */
static tnf_status put_bytes(pt_emitter *m, tnf_pickle_node *node)
{
    tnf_arena *a = m->arena;
    char *text = tnf_arena_raw(a, 2 * (uint64_t)node->n + 1);
    size_t n = 0;
    m->other = true;
    if (!m->latin1) {
        m->latin1 = tnf_pt_new_text(a, "latin1", 6);
        m->encode = tnf_pt_new_global(a, "_codecs", "encode");
    }
    if (!text || !m->latin1 || !m->encode)
        return no_memory(m);
    for (size_t i = 0; i < node->n; i++) {
        uint8_t c = (uint8_t)node->as.s[i];
        if (c >= 0x80)
            text[n++] = (char)(0xc0 | c >> 6);
        text[n++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    }
    tnf_pickle_node *args = tnf_pt_new_list(
        a, TNF_PICKLE_TUPLE, (tnf_pickle_node *[]) { tnf_pt_new_text(a, text, n), m->latin1 }, 2);
    if (!args)
        return no_memory(m);
    bool array = node->kind == TNF_PICKLE_BYTEARRAY;
    if (array)
        tnf_buf_puts(m->b, "c__builtin__\nbytearray\n");
    TNF_TRY(emit_node(m, m->encode));
    TNF_TRY(emit_node(m, args));
    tnf_buf_u8(m->b, 'R');
    if (array)
        tnf_buf_put(m->b, "\x85R", 2);
    put_memo(m, node);
    return TNF_OK;
}

/* ------------------------------------------------------------- containers */

/* Is it (storage, offset, size, stride, …), the arguments of a rebuild function? */
static bool is_view(const tnf_pickle_node *node)
{
    return node->n >= 4 && tnf_pt_is_storage(node->as.items[0]) &&
           node->as.items[1]->kind == TNF_PICKLE_INT &&
           node->as.items[2]->kind == TNF_PICKLE_TUPLE &&
           node->as.items[3]->kind == TNF_PICKLE_TUPLE && node->as.items[2]->n <= PT_RANK;
}

/* The strides of row-major order; *elements: the number of elements. */
static tnf_pickle_node *row_strides(pt_emitter *m, const tnf_pickle_node *size, uint64_t *elements)
{
    tnf_pickle_node *items[PT_RANK];
    uint64_t step = 1;
    *elements = 1;
    for (size_t i = size->n; i-- > 0;) {
        uint64_t n = (uint64_t)size->as.items[i]->as.i;
        items[i] = tnf_pt_new_int(m->arena, step);
        step *= n ? n : 1;
        *elements *= n;
    }
    return tnf_pt_new_list(m->arena, TNF_PICKLE_TUPLE, items, size->n);
}

/* The same tensor with a separate storage, which it fills. */
static tnf_pickle_node *make_plain(pt_emitter *m, tnf_pickle_node *node)
{
    tnf_arena *a = m->arena;
    tnf_pickle_node *const *id = node->as.items[0]->as.items[0]->as.items;
    tnf_pickle_node **items = tnf_arena_array(a, node->n, sizeof(tnf_pickle_node *));
    uint64_t elements, width = 1;
    char key[24];
    int n = snprintf(key, sizeof key, "=%u", tnf_named_count(&m->storages));
    const char *copy = tnf_arena_str(a, key, (size_t)n);
    if (!items || !copy)
        return NULL;
    memcpy(items, node->as.items, node->n * sizeof(tnf_pickle_node *));
    items[3] = row_strides(m, items[2], &elements);
    if (tnf_pickle_is_global(id[1], "torch.storage", "UntypedStorage") && node->n > 6 &&
        items[6]->kind == TNF_PICKLE_GLOBAL) {
        const pt_type *type = tnf_pt_type_named(items[6]->as.global->name);
        width = type ? type->width : 1;
    }
    tnf_pickle_node *own = tnf_pt_new_list(
        a, TNF_PICKLE_TUPLE,
        (tnf_pickle_node *[]) { id[0], id[1], tnf_pt_new_text(a, copy, (size_t)n), id[3],
                                tnf_pt_new_int(a, elements * width) },
        5);
    items[0] = tnf_pt_new_list(a, TNF_PICKLE_PERSISTENT, &own, 1);
    items[1] = tnf_pt_new_int(a, 0);
    size_t last = node->n;
    if (items[last - 1]->kind == TNF_PICKLE_DICT) /* conj, neg: already applied to the bytes */
        last--;
    return tnf_pt_new_list(a, TNF_PICKLE_TUPLE, items, last);
}

static tnf_status put_tuple(pt_emitter *m, tnf_pickle_node *node)
{
    tnf_pickle_node *same = node;
    if (m->plain && is_view(node)) {
        node = make_plain(m, node);
        if (!node)
            return no_memory(m);
    }
    if (node->n > 3)
        tnf_buf_u8(m->b, '(');
    for (size_t i = 0; i < node->n; i++)
        TNF_TRY(emit_node(m, node->as.items[i]));
    tnf_buf_u8(m->b, node->n > 3 ? 't' : node->n == 0 ? ')' : (uint8_t)(0x84 + node->n));
    if (node->n)
        put_memo(m, same);
    return TNF_OK;
}

/* Writes items in batches of groups of `width`. `exact`: as for a plain list or dict, otherwise as
 * for an object. */
static tnf_status put_batches(pt_emitter *m, const tnf_pickle_node *node, unsigned width,
                              bool exact)
{
    size_t n = node->n / width, done = 0;
    uint8_t one = width == 2 ? 's' : 'a', many = width == 2 ? 'u' : 'e';
    while (done < n) {
        size_t batch = n - done < BATCH ? n - done : BATCH;
        bool single = batch == 1 && (n == 1 || !exact);
        if (!single)
            tnf_buf_u8(m->b, '(');
        for (size_t i = done * width; i < (done + batch) * width; i++)
            TNF_TRY(emit_node(m, node->as.items[i]));
        tnf_buf_u8(m->b, single ? one : many);
        done += batch;
    }
    if (exact && width == 2 && n && n % BATCH == 0)
        tnf_buf_puts(m->b, "(u");
    return TNF_OK;
}

static tnf_status put_container(pt_emitter *m, tnf_pickle_node *node)
{
    bool dict = node->kind == TNF_PICKLE_DICT;
    tnf_buf_u8(m->b, dict ? '}' : ']');
    put_memo(m, node);
    return put_batches(m, node, dict ? 2 : 1, true);
}

/* set([…]): protocol 2 has no opcode for it. */
static tnf_status put_set(pt_emitter *m, tnf_pickle_node *node)
{
    tnf_arena *a = m->arena;
    m->other = true;
    tnf_pickle_node *list = tnf_pt_new_list(a, TNF_PICKLE_LIST, node->as.items, node->n);
    tnf_pickle_node *args = tnf_pt_new_list(a, TNF_PICKLE_TUPLE, &list, 1);
    tnf_pickle_node *set = tnf_pt_new_global(a, "__builtin__",
                                             node->kind == TNF_PICKLE_SET ? "set" : "frozenset");
    if (!list || !args || !set)
        return no_memory(m);
    TNF_TRY(emit_node(m, set));
    TNF_TRY(emit_node(m, args));
    tnf_buf_u8(m->b, 'R');
    put_memo(m, node);
    return TNF_OK;
}

/* ---------------------------------------------------------------- objects */

static tnf_status put_global(pt_emitter *m, tnf_pickle_node *node)
{
    const tnf_pickle_global *g = node->as.global;
    if (tnf_pt_danger(node) == PT_DANGEROUS) {
        if (m->strict)
            return tnf_fail(m->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "the tree contains the name %.100s, which is never written",
                            tnf_pt_global_name(node, m->arena));
        tnf_buf_u8(m->b, 'N');
        return TNF_OK;
    }
    tnf_buf_u8(m->b, 'c');
    tnf_buf_put(m->b, g->written_module.p, g->written_module.n);
    tnf_buf_u8(m->b, '\n');
    tnf_buf_put(m->b, g->written_name.p, g->written_name.n);
    tnf_buf_u8(m->b, '\n');
    put_memo(m, node);
    return TNF_OK;
}

static tnf_status put_arguments(pt_emitter *m, const tnf_pickle_node *node)
{
    const tnf_pickle_call *call = node->as.call;
    if (node->op == 'o' || node->op == 'i') {
        tnf_buf_u8(m->b, '(');
        TNF_TRY(emit_node(m, call->callee));
        for (size_t i = 0; i < call->args->n; i++)
            TNF_TRY(emit_node(m, call->args->as.items[i]));
        tnf_buf_u8(m->b, 'o');
        return TNF_OK;
    }
    TNF_TRY(emit_node(m, call->callee));
    TNF_TRY(emit_node(m, call->args));
    if (call->kwargs)
        TNF_TRY(emit_node(m, call->kwargs));
    tnf_buf_u8(m->b, node->op == 0x81 || node->op == 0x92 ? node->op : 'R');
    return TNF_OK;
}

static tnf_status put_call(pt_emitter *m, tnf_pickle_node *node)
{
    const tnf_pickle_call *call = node->as.call;
    if (tnf_pickle_call_dangerous(node)) {
        if (m->strict)
            return tnf_fail(m->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "the tree contains a dangerous call, which is never written");
        tnf_buf_u8(m->b, 'N');
        return TNF_OK;
    }
    TNF_TRY(put_arguments(m, node));
    put_memo(m, node);
    TNF_TRY(put_batches(m, call->list, 1, false));
    TNF_TRY(put_batches(m, call->dict, 2, false));
    if (call->state) {
        TNF_TRY(emit_node(m, call->state));
        tnf_buf_u8(m->b, 'b');
    }
    return TNF_OK;
}

/* ("storage", type, KEY, place, elements): keys are renumbered. */
static tnf_status put_persistent(pt_emitter *m, tnf_pickle_node *node)
{
    tnf_pickle_node *id = node->as.items[0];
    pt_mention x;
    char text[16];
    uint32_t known;
    if (!tnf_pt_is_storage(node))
        return tnf_fail(m->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the pickle has a persistent ID that is not that of a storage, so it "
                        "cannot be written");
    if (!get_memo(m, id)) {
        TNF_TRY(tnf_pt_mention(&x, node, m->arena, m->e));
        pt_emitted row = { .key = x.key };
        if (m->plain && id->as.items[2]->op) { /* a separate storage, not from make_plain() */
            int n = snprintf(text, sizeof text, "=%u", tnf_named_count(&m->storages));
            row.key = (tnf_str) { tnf_arena_str(m->arena, text, (size_t)n), (size_t)n };
            if (!row.key.p)
                return no_memory(m);
        }
        TNF_TRY(tnf_named_add(&m->storages, &row, &known, m->e));
        if (known == TNF_HASH_NONE)
            known = tnf_named_count(&m->storages) - 1;
        pt_emitted *s = tnf_named_at(&m->storages, known);
        if (!s->node) {
            int n = snprintf(text, sizeof text, "%u", known);
            const char *copy = tnf_arena_str(m->arena, text, (size_t)n);
            s->node = copy ? tnf_pt_new_text(m->arena, copy, (size_t)n) : NULL;
            if (!s->node)
                return no_memory(m);
        }
        tnf_pickle_node *key = s->node;
        tnf_buf_u8(m->b, '(');
        for (size_t i = 0; i < 5; i++)
            TNF_TRY(emit_node(m, i == 2 ? key : id->as.items[i]));
        tnf_buf_u8(m->b, 't');
        put_memo(m, id);
    }
    tnf_buf_u8(m->b, 'Q');
    return TNF_OK;
}

static tnf_status emit_kind(pt_emitter *m, tnf_pickle_node *node)
{
    switch (node->kind) {
    case TNF_PICKLE_NONE:
        tnf_buf_u8(m->b, 'N');
        return TNF_OK;
    case TNF_PICKLE_BOOL:
        tnf_buf_u8(m->b, node->as.i ? 0x88 : 0x89);
        return TNF_OK;
    case TNF_PICKLE_INT:
        put_int(m, node->as.i);
        return TNF_OK;
    case TNF_PICKLE_BIG:
        put_long(m, (const uint8_t *)node->as.s, node->n);
        return TNF_OK;
    case TNF_PICKLE_FLOAT:
        put_float(m, node->as.f);
        return TNF_OK;
    case TNF_PICKLE_TEXT:
        put_text(m, node);
        return TNF_OK;
    case TNF_PICKLE_BYTES:
    case TNF_PICKLE_BYTEARRAY:
        return put_bytes(m, node);
    case TNF_PICKLE_TUPLE:
        return put_tuple(m, node);
    case TNF_PICKLE_LIST:
    case TNF_PICKLE_DICT:
        return put_container(m, node);
    case TNF_PICKLE_SET:
    case TNF_PICKLE_FROZENSET:
        return put_set(m, node);
    case TNF_PICKLE_GLOBAL:
        return put_global(m, node);
    case TNF_PICKLE_CALL:
        return put_call(m, node);
    default:
        return put_persistent(m, node);
    }
}

static tnf_status emit_node(pt_emitter *m, tnf_pickle_node *node)
{
    if (get_memo(m, node))
        return TNF_OK;
    if (m->depth == DEEPEST)
        return tnf_fail(m->e, TNF_ELIMIT, TNF_NO_OFFSET, "the tree is nested too deeply");
    m->depth++;
    TNF_TRY(emit_kind(m, node));
    m->depth--;
    return tnf_buf_status(m->b, "the pickle", m->e);
}

void tnf_pt_emit_init(pt_emitter *m, tnf_buf *b, tnf_arena *arena, tnf_error *e)
{
    *m = (pt_emitter) { .b = b, .arena = arena, .e = e };
    tnf_named_init(&m->storages, sizeof(pt_emitted), &arena->alloc, (uint64_t)4 << 30);
}

void tnf_pt_emit_free(pt_emitter *m)
{
    tnf_named_free(&m->storages);
}

tnf_status tnf_pt_emit(pt_emitter *m, tnf_pickle_node *root)
{
    tnf_buf_put(m->b, "\x80\x02", 2);
    TNF_TRY(emit_node(m, root));
    tnf_buf_u8(m->b, '.');
    return tnf_buf_status(m->b, "the pickle", m->e);
}
