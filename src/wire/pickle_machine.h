/* SPDX-License-Identifier: MIT */
/* The parts of the pickle machine that opcodes use: growing lists, the stack with its marks, the
 * memo. */
#ifndef TNF_WIRE_PICKLE_MACHINE_H
#define TNF_WIRE_PICKLE_MACHINE_H

#include "wire/pickle.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HIGHEST_PROTOCOL 5u
#define FEW              4u   /* the initial capacity of a list */
#define RECENT           256u /* ints with a shared node */

typedef struct machine {
    tnf_pickle *out;
    tnf_arena *arena;
    tnf_arena own; /* for the stack, the marks and the memo, which are not needed after STOP */
    tnf_cur c;
    uint64_t base, op_at; /* op_at: from the start of the pickle */
    uint8_t op;
    unsigned proto; /* of the last PROTO */
    tnf_pickle_node **stack;
    size_t n, capacity;
    size_t *marks;
    size_t nmarks, marks_capacity;
    tnf_pickle_node **memo; /* by number */
    size_t memo_capacity, memo_n;
    struct sparse_slot *sparse; /* entries whose numbers are beyond the array */
    size_t sparse_capacity, sparse_n;
    uint64_t seed[2];
    tnf_pickle_node *none, *yes, *no, *empty;
    tnf_pickle_node *ints[RECENT]; /* shapes repeat a few ints: one node for each */
    bool stop;
    tnf_error *e;
} machine;

struct sparse_slot {
    uint64_t number;
    tnf_pickle_node *node;
};

/* The argument after an opcode. */
typedef struct argument {
    uint64_t u;
    tnf_str s, s2;
} argument;

typedef tnf_status (*op_fn)(machine *m, const argument *a);

static inline void say_bad(machine *m, tnf_status status, const char *format, ...) TNF_PRINTF(3, 4);

static inline void say_bad(machine *m, tnf_status status, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)tnf_fail(m->e, status, m->base + m->op_at, "the pickle cannot be read: %s", text);
}

/* A macro, so that clang's analyzer sees that a failure is never TNF_OK. */
#define bad_pickle(m, status, ...) (say_bad(m, status, __VA_ARGS__), (status))

static inline tnf_status no_memory(machine *m)
{
    m->arena->over_limit = m->arena->over_limit || m->own.over_limit;
    return tnf_arena_fail(m->arena, "a pickle", m->e);
}

/* ------------------------------------------------------------------ lists */

/* The capacity of a list of n items, which need not be stored. */
static inline size_t room_for(size_t n)
{
    size_t room = FEW;
    while (room < n)
        room *= 2;
    return n ? room : 0;
}

/* Makes room for `more` pointers after the n items of a list; NULL: no memory. */
static inline tnf_pickle_node **make_room(machine *m, tnf_pickle_node **items, size_t n,
                                          size_t more)
{
    size_t have = room_for(n), want = room_for(n + more);
    if (want <= have)
        return items;
    tnf_pickle_node **larger = tnf_arena_array(m->arena, want, sizeof(tnf_pickle_node *));
    if (larger && n)
        memcpy(larger, items, n * sizeof(tnf_pickle_node *));
    return larger;
}

static inline tnf_status add_items(machine *m, tnf_pickle_node *list, tnf_pickle_node *const *items,
                                   size_t n)
{
    if (n == 0 || !items)
        return TNF_OK;
    tnf_pickle_node **all = make_room(m, list->as.items, list->n, n);
    if (!all)
        return no_memory(m);
    memcpy(all + list->n, items, n * sizeof(tnf_pickle_node *));
    list->as.items = all;
    list->n += n;
    return TNF_OK;
}

static inline tnf_status log_node(machine *m, tnf_pickle_log *log, tnf_pickle_node *node)
{
    tnf_pickle_node **all = make_room(m, log->nodes, log->n, 1);
    if (!all)
        return no_memory(m);
    log->nodes = all;
    log->nodes[log->n++] = node;
    return TNF_OK;
}

/* ------------------------------------------------------------------ stack */

static inline tnf_pickle_node *new_node(machine *m, tnf_pickle_kind kind)
{
    tnf_pickle_node *node = tnf_arena_alloc(m->arena, sizeof *node);
    if (node) {
        node->kind = (uint8_t)kind;
        node->op = m->op;
        node->at = (uint32_t)m->op_at;
    }
    return node;
}

static inline tnf_status push_node(machine *m, tnf_pickle_node *node)
{
    if (!node)
        return no_memory(m);
    if (!m->stack || m->n == m->capacity) {
        tnf_pickle_node **stack = tnf_arena_grow(&m->own, m->stack, m->n, &m->capacity,
                                                 sizeof(tnf_pickle_node *), 16);
        if (!stack)
            return no_memory(m);
        m->stack = stack;
    }
    m->stack[m->n++] = node;
    return TNF_OK;
}

/* Values may be taken off the stack down to the last mark. */
static inline size_t above_fence(const machine *m)
{
    return m->n - (m->nmarks ? m->marks[m->nmarks - 1] : 0);
}

static inline tnf_status need_nodes(machine *m, size_t n)
{
    return above_fence(m) >= n ? TNF_OK
                               : bad_pickle(m, TNF_EFORMAT,
                                            "the opcode 0x%02x needs %zu values, but the stack "
                                            "has only %zu",
                                            m->op, n, above_fence(m));
}

static inline tnf_pickle_node *pop_node(machine *m)
{
    return m->stack[--m->n];
}

/* Removes the last mark. *items are the n values above it, which are off the stack but stay in
 * place until something is pushed. */
static inline tnf_status pop_mark(machine *m, tnf_pickle_node ***items, size_t *n)
{
    if (m->nmarks == 0)
        return bad_pickle(m, TNF_EFORMAT, "the opcode 0x%02x finds no mark on the stack", m->op);
    size_t at = m->marks[--m->nmarks];
    *items = m->stack ? m->stack + at : NULL; /* nothing was pushed yet */
    *n = m->n - at;
    m->n = at;
    return TNF_OK;
}

/* ------------------------------------------------------------- containers */

/* Is the container immutable, so that nothing can be added later? */
static inline bool is_fixed(tnf_pickle_kind kind)
{
    return kind == TNF_PICKLE_TUPLE || kind == TNF_PICKLE_FROZENSET ||
           kind == TNF_PICKLE_PERSISTENT;
}

/* Pushes a container of n values at `items`, which are off the stack. */
static inline tnf_status push_container(machine *m, tnf_pickle_kind kind, tnf_pickle_node **items,
                                        size_t n)
{
    tnf_pickle_node *node = new_node(m, kind);
    if (!node)
        return no_memory(m);
    if (n && items && is_fixed(kind)) {
        node->n = n;
        node->as.items = tnf_arena_array(m->arena, n, sizeof(tnf_pickle_node *));
        if (!node->as.items)
            return no_memory(m);
        memcpy(node->as.items, items, n * sizeof(tnf_pickle_node *));
    } else {
        TNF_TRY(add_items(m, node, items, n));
    }
    return push_node(m, node);
}

/* The items that are added to the result of a call; most calls have none. */
static inline tnf_pickle_node *items_of_call(machine *m, tnf_pickle_call *call,
                                             tnf_pickle_kind kind)
{
    tnf_pickle_node **there = kind == TNF_PICKLE_DICT ? &call->dict : &call->list;
    if (*there != tnf_pickle_no_items())
        return *there;
    tnf_pickle_node *fresh = new_node(m, kind == TNF_PICKLE_DICT ? kind : TNF_PICKLE_LIST);
    if (fresh)
        *there = fresh;
    return fresh;
}

/* A dict with a state, which a DICT cannot hold, becomes a call of dict() with the same items. */
static inline tnf_status make_object(machine *m, tnf_pickle_node *dict)
{
    tnf_pickle_node *callee = new_node(m, TNF_PICKLE_GLOBAL), *items = new_node(m, TNF_PICKLE_DICT);
    tnf_pickle_node *none = new_node(m, TNF_PICKLE_TUPLE);
    tnf_pickle_global *name = tnf_arena_alloc(m->arena, sizeof *name);
    tnf_pickle_call *call = tnf_arena_alloc(m->arena, sizeof *call);
    if (!callee || !items || !none || !name || !call)
        return no_memory(m);
    name->module = (tnf_str) { "builtins", 8 };
    name->written_module = (tnf_str) { "__builtin__", 11 };
    name->name = name->written_name = (tnf_str) { "dict", 4 };
    callee->as.global = name;
    items->as.items = dict->as.items;
    items->n = dict->n;
    call->callee = callee;
    call->args = none;
    call->list = tnf_pickle_no_items();
    call->dict = items;
    dict->kind = TNF_PICKLE_CALL;
    dict->op = 'R';
    dict->n = 0;
    dict->as.call = call;
    return TNF_OK;
}

/* ------------------------------------------------------------------- memo */

static inline struct sparse_slot *sparse_find(machine *m, uint64_t number)
{
    uint8_t bytes[8];
    tnf_put_le64(bytes, number);
    size_t i = (size_t)tnf_hash_bytes(m->seed, bytes, sizeof bytes) & (m->sparse_capacity - 1);
    while (m->sparse[i].node && m->sparse[i].number != number)
        i = (i + 1) & (m->sparse_capacity - 1);
    return &m->sparse[i];
}

static inline tnf_status sparse_grow(machine *m)
{
    struct sparse_slot *old = m->sparse;
    size_t n = m->sparse_capacity;
    if (n == 0)
        tnf_hash_seed(m->seed);
    m->sparse = tnf_arena_array(&m->own, n ? 2 * n : 16, sizeof *m->sparse);
    if (!m->sparse)
        return no_memory(m);
    m->sparse_capacity = n ? 2 * n : 16;
    for (size_t i = 0; i < n; i++)
        if (old[i].node)
            *sparse_find(m, old[i].number) = old[i];
    return TNF_OK;
}

static inline tnf_status memo_grow(machine *m, uint64_t number)
{
    size_t want = m->memo_capacity ? 2 * m->memo_capacity : 16;
    while (want <= number)
        want *= 2;
    tnf_pickle_node **memo = tnf_arena_array(&m->own, want, sizeof(tnf_pickle_node *));
    if (!memo)
        return no_memory(m);
    if (m->memo_capacity)
        memcpy(memo, m->memo, m->memo_capacity * sizeof(tnf_pickle_node *));
    m->memo = memo;
    m->memo_capacity = want;
    return TNF_OK;
}

static inline tnf_status memo_put(machine *m, uint64_t number)
{
    TNF_TRY(need_nodes(m, 1));
    tnf_pickle_node *node = m->stack[m->n - 1];
    /* While the numbers are about as many as the entries, an array is the cheapest. */
    if (number >= m->memo_capacity && number <= 2 * (uint64_t)m->memo_n + 64)
        TNF_TRY(memo_grow(m, number));
    bool near = number < m->memo_capacity;
    /* A number that was beyond the array may be inside it by now: its entry stays where it is. */
    struct sparse_slot *there = m->sparse_n ? sparse_find(m, number) : NULL;
    if (there && there->node) {
        there->node = node;
        return TNF_OK;
    }
    if (near) {
        m->memo_n += !m->memo[number];
        m->memo[number] = node;
        return TNF_OK;
    }
    if (2 * (m->sparse_n + 1) > m->sparse_capacity)
        TNF_TRY(sparse_grow(m));
    *sparse_find(m, number) = (struct sparse_slot) { number, node };
    m->sparse_n++;
    m->memo_n++;
    return TNF_OK;
}

static inline tnf_status memo_get(machine *m, uint64_t number)
{
    tnf_pickle_node *node = m->sparse_n ? sparse_find(m, number)->node : NULL;
    if (!node && number < m->memo_capacity)
        node = m->memo[number];
    if (!node)
        return bad_pickle(m, TNF_EFORMAT, "the memo has no entry %llu", (unsigned long long)number);
    return push_node(m, node);
}

static inline tnf_status line_number(machine *m, tnf_str s, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)(uint8_t)s.p[i] - '0';
        if (digit > 9 || !tnf_ckd_mul(out, *out, 10) || !tnf_ckd_add(out, *out, digit))
            return bad_pickle(m, TNF_EFORMAT, "%s is not the number of a memo entry",
                              TNF_QUOTED(s));
    }
    return s.n ? TNF_OK : bad_pickle(m, TNF_EFORMAT, "a memo entry has no number");
}

/* ------------------------------------------------------------------ bytes */

static inline bool read_line(tnf_cur *c, tnf_str *out)
{
    const uint8_t *end = c->bad ? NULL : memchr(c->p, '\n', tnf_left(c));
    if (!end) {
        c->bad = true;
        return false;
    }
    *out = (tnf_str) { (const char *)c->p, (size_t)(end - c->p) };
    c->p = end + 1;
    return true;
}

static inline uint64_t read_fixed(tnf_cur *c, unsigned width)
{
    return width == 1 ? tnf_u8(c) : width == 2 ? tnf_u16(c) : width == 4 ? tnf_u32(c) : tnf_u64(c);
}

#endif
