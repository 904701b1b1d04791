/* SPDX-License-Identifier: MIT */
/* The stack machine: one row of a table for each opcode.
 *
 *   stack   [ a b | c d | e ]      values; the values above the last mark are above the fence
 *   marks   [ 2 4 ]                stack positions of the marks
 *   memo    0 → a, 1 → c …         an array while the numbers are dense, else a hash table
 */
#include "wire/pickle_machine.h"

static tnf_status op_put(machine *m, const argument *a)
{
    return memo_put(m, a->u);
}

static tnf_status op_put_line(machine *m, const argument *a)
{
    uint64_t number;
    TNF_TRY(line_number(m, a->s, &number));
    return memo_put(m, number);
}

static tnf_status op_memoize(machine *m, const argument *a)
{
    (void)a;
    return memo_put(m, m->memo_n);
}

static tnf_status op_get(machine *m, const argument *a)
{
    return memo_get(m, a->u);
}

static tnf_status op_get_line(machine *m, const argument *a)
{
    uint64_t number;
    TNF_TRY(line_number(m, a->s, &number));
    return memo_get(m, number);
}

tnf_pickle_node *tnf_pickle_no_items(void)
{
    static const tnf_pickle_node none = { .kind = TNF_PICKLE_LIST };
    return (tnf_pickle_node *)(uintptr_t)&none;
}

/* ----------------------------------------------------------- the machine */

static tnf_status op_proto(machine *m, const argument *a)
{
    if (a->u > HIGHEST_PROTOCOL)
        return bad_pickle(m, TNF_EUNSUPPORTED, "unknown protocol %u (0 to %u are known)",
                          (unsigned)a->u, HIGHEST_PROTOCOL);
    m->proto = (unsigned)a->u;
    if (m->proto > m->out->protocol)
        m->out->protocol = m->proto;
    return TNF_OK;
}

static tnf_status op_frame(machine *m, const argument *a)
{
    return a->u <= tnf_left(&m->c)
               ? TNF_OK
               : bad_pickle(m, TNF_ETRUNCATED, "a frame has %llu bytes, but only %zu are left",
                            (unsigned long long)a->u, tnf_left(&m->c));
}

static tnf_status op_stop(machine *m, const argument *a)
{
    (void)a;
    TNF_TRY(need_nodes(m, 1));
    m->out->root = pop_node(m);
    m->stop = true;
    return TNF_OK;
}

static tnf_status op_mark(machine *m, const argument *a)
{
    (void)a;
    size_t *marks = tnf_arena_grow(&m->own, m->marks, m->nmarks, &m->marks_capacity, sizeof *marks,
                                   16);
    if (!marks)
        return no_memory(m);
    m->marks = marks;
    m->marks[m->nmarks++] = m->n;
    return TNF_OK;
}

/* Also removes a mark that is on top. */
static tnf_status op_pop(machine *m, const argument *a)
{
    (void)a;
    if (m->nmarks && above_fence(m) == 0) {
        m->nmarks--;
        return TNF_OK;
    }
    TNF_TRY(need_nodes(m, 1));
    m->n--;
    return TNF_OK;
}

static tnf_status op_pop_mark(machine *m, const argument *a)
{
    tnf_pickle_node **items;
    size_t n;
    (void)a;
    return pop_mark(m, &items, &n);
}

static tnf_status op_dup(machine *m, const argument *a)
{
    (void)a;
    TNF_TRY(need_nodes(m, 1));
    return push_node(m, m->stack[m->n - 1]);
}

static tnf_status op_refuse(machine *m, const argument *a)
{
    (void)a;
    return m->op == 0x97 || m->op == 0x98
               ? bad_pickle(m, TNF_EUNSUPPORTED, "it needs buffers that are not in the file")
               : bad_pickle(m, TNF_EUNSUPPORTED,
                            "it refers to a class by its number in Python's extension registry");
}

/* ---------------------------------------------------------------- scalars */

static tnf_status op_constant(machine *m, const argument *a)
{
    (void)a;
    return push_node(m, m->op == 'N'    ? m->none
                        : m->op == 0x88 ? m->yes
                        : m->op == 0x89 ? m->no
                                        : m->empty);
}

static tnf_status op_integer(machine *m, const argument *a)
{
    int64_t i = m->op == 'J' ? (int32_t)(uint32_t)a->u : (int64_t)a->u;
    tnf_pickle_node **recent = &m->ints[(uint64_t)i % RECENT];
    if (*recent && (*recent)->as.i == i)
        return push_node(m, *recent);
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_INT);
    if (!node)
        return no_memory(m);
    node->as.i = i;
    *recent = node;
    return push_node(m, node);
}

static tnf_status op_long_bytes(machine *m, const argument *a)
{
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_INT);
    if (!node)
        return no_memory(m);
    tnf_pickle_int_bytes(node, (const uint8_t *)a->s.p, a->s.n);
    return push_node(m, node);
}

static tnf_status op_float(machine *m, const argument *a)
{
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_FLOAT);
    uint64_t bits = tnf_be64(a->s.p);
    if (!node)
        return no_memory(m);
    memcpy(&node->as.f, &bits, sizeof bits);
    return push_node(m, node);
}

/* The value in a line of text. */
static tnf_status op_line(machine *m, const argument *a)
{
    tnf_pickle_line line = { a->s, m->arena, m->base + m->op_at, m->e };
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_INT);
    if (!node)
        return no_memory(m);
    switch (m->op) {
    case 'F':
        node->kind = TNF_PICKLE_FLOAT;
        TNF_TRY(tnf_pickle_decimal(&node->as.f, &line));
        break;
    case 'S':
        TNF_TRY(tnf_pickle_quoted(node, &line));
        break;
    case 'V':
        TNF_TRY(tnf_pickle_unicode(node, &line));
        break;
    default:
        TNF_TRY(tnf_pickle_integer(node, &line));
        if (m->op == 'I' && a->s.n == 2 && a->s.p[0] == '0' && (a->s.p[1] | 1) == '1')
            node->kind = TNF_PICKLE_BOOL;
    }
    return push_node(m, node);
}

static tnf_status op_text(machine *m, const argument *a)
{
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_TEXT);
    if (!node)
        return no_memory(m);
    if (!tnf_pickle_text_valid(a->s.p, a->s.n))
        return bad_pickle(m, TNF_EFORMAT, "a text is not UTF-8");
    node->as.s = a->s.p;
    node->n = a->s.n;
    return push_node(m, node);
}

/* A str of Python 2 becomes text if it is valid UTF-8. */
static tnf_status op_bytes(machine *m, const argument *a)
{
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_BYTES);
    if (!node)
        return no_memory(m);
    node->as.s = a->s.p;
    node->n = a->s.n;
    node->python2 = m->op == 'T' || m->op == 'U';
    if (m->op == 0x96)
        node->kind = TNF_PICKLE_BYTEARRAY;
    else if (node->python2 && tnf_utf8_valid(NULL, a->s.p, a->s.n))
        node->kind = TNF_PICKLE_TEXT;
    return push_node(m, node);
}

/* ------------------------------------------------------------- containers */

static tnf_status op_empty(machine *m, const argument *a)
{
    (void)a;
    return push_node(m, new_node(m, m->op == ']'   ? TNF_PICKLE_LIST
                                    : m->op == '}' ? TNF_PICKLE_DICT
                                                   : TNF_PICKLE_SET));
}

static tnf_status op_tuple(machine *m, const argument *a)
{
    tnf_pickle_node **items;
    size_t n = (size_t)(m->op - 0x84);
    (void)a;
    if (m->op == 't') {
        TNF_TRY(pop_mark(m, &items, &n));
        if (n == 0)
            return push_node(m, m->empty);
    } else {
        TNF_TRY(need_nodes(m, n));
        m->n -= n;
        items = m->stack + m->n;
    }
    return push_container(m, TNF_PICKLE_TUPLE, items, n);
}

static tnf_status op_container(machine *m, const argument *a)
{
    tnf_pickle_node **items;
    size_t n;
    (void)a;
    TNF_TRY(pop_mark(m, &items, &n));
    if (m->op == 'd' && n % 2)
        return bad_pickle(m, TNF_EFORMAT, "a dict has an odd number of keys and values: %zu", n);
    return push_container(m,
                          m->op == 'l'   ? TNF_PICKLE_LIST
                          : m->op == 'd' ? TNF_PICKLE_DICT
                                         : TNF_PICKLE_FROZENSET,
                          items, n);
}

/* The list of items that is extended for the container on top of the stack. */
static tnf_status find_target(machine *m, tnf_pickle_kind kind, tnf_pickle_node **out)
{
    TNF_TRY(need_nodes(m, 1));
    tnf_pickle_node *top = m->stack[m->n - 1];
    if (top->kind == kind)
        *out = top;
    else if (top->kind == TNF_PICKLE_CALL)
        *out = items_of_call(m, top->as.call, kind);
    else
        return bad_pickle(m, TNF_EFORMAT,
                          "the opcode 0x%02x adds to something that is not a container", m->op);
    return *out ? TNF_OK : no_memory(m);
}

static tnf_status op_add(machine *m, const argument *a)
{
    bool pairs = m->op == 's' || m->op == 'u', marked = m->op != 's' && m->op != 'a';
    tnf_pickle_node **items, *target;
    size_t n = pairs ? 2 : 1;
    (void)a;
    if (marked) {
        TNF_TRY(pop_mark(m, &items, &n));
    } else {
        TNF_TRY(need_nodes(m, n));
        m->n -= n;
        items = m->stack + m->n;
    }
    if (pairs && n % 2)
        return bad_pickle(m, TNF_EFORMAT, "an odd number of keys and values is set: %zu", n);
    TNF_TRY(find_target(m,
                        pairs           ? TNF_PICKLE_DICT
                        : m->op == 0x90 ? TNF_PICKLE_SET
                                        : TNF_PICKLE_LIST,
                        &target));
    return add_items(m, target, items, n);
}

/* ------------------------------------------------------------------- calls */

static tnf_status push_global(machine *m, const tnf_pickle_global *named)
{
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_GLOBAL);
    tnf_pickle_global *g = tnf_arena_alloc(m->arena, sizeof *g);
    if (!node || !g)
        return no_memory(m);
    *g = *named;
    g->written_module = g->module;
    g->written_name = g->name;
    if (m->proto < 3 && !g->computed)
        tnf_pickle_rename(g);
    g->dotted = m->proto >= 4 && !g->computed && g->name.n && memchr(g->name.p, '.', g->name.n);
    node->as.global = g;
    TNF_TRY(log_node(m, &m->out->globals, node));
    return push_node(m, node);
}

static tnf_status op_global(machine *m, const argument *a)
{
    if (!tnf_utf8_valid(NULL, a->s.p, a->s.n) || !tnf_utf8_valid(NULL, a->s2.p, a->s2.n))
        return bad_pickle(m, TNF_EFORMAT, "the name of a class is not UTF-8");
    return push_global(m, &(tnf_pickle_global) { .module = a->s, .name = a->s2 });
}

static bool may_be_computed(const tnf_pickle_node *node)
{
    return node->kind == TNF_PICKLE_CALL || node->kind == TNF_PICKLE_PERSISTENT;
}

static tnf_status op_stack_global(machine *m, const argument *a)
{
    (void)a;
    TNF_TRY(need_nodes(m, 2));
    const tnf_pickle_node *name = pop_node(m), *module = pop_node(m);
    if (name->kind == TNF_PICKLE_TEXT && module->kind == TNF_PICKLE_TEXT)
        return push_global(m, &(tnf_pickle_global) { .module = { module->as.s, module->n },
                                                     .name = { name->as.s, name->n } });
    if ((name->kind != TNF_PICKLE_TEXT && !may_be_computed(name)) ||
        (module->kind != TNF_PICKLE_TEXT && !may_be_computed(module)))
        return bad_pickle(m, TNF_EFORMAT, "the name of a class is not text");
    return push_global(
        m, &(tnf_pickle_global) { .module = TNF_STR("?"), .name = TNF_STR("?"), .computed = true });
}

static tnf_status push_call(machine *m, tnf_pickle_node *callee, tnf_pickle_node *args,
                            tnf_pickle_node *kwargs)
{
    if (callee->kind != TNF_PICKLE_GLOBAL && !may_be_computed(callee))
        return bad_pickle(m, TNF_EFORMAT, "it calls something that is not a function or class");
    if (args->kind != TNF_PICKLE_TUPLE && !may_be_computed(args))
        return bad_pickle(m, TNF_EFORMAT, "the arguments of a call are not a tuple");
    if (kwargs && kwargs->kind != TNF_PICKLE_DICT && !may_be_computed(kwargs))
        return bad_pickle(m, TNF_EFORMAT, "the named arguments of a call are not a dict");
    tnf_pickle_node *node = new_node(m, TNF_PICKLE_CALL);
    tnf_pickle_call *call = tnf_arena_alloc(m->arena, sizeof *call);
    if (!node || !call)
        return no_memory(m);
    *call = (tnf_pickle_call) { .callee = callee,
                                .args = args,
                                .kwargs = kwargs,
                                .list = tnf_pickle_no_items(),
                                .dict = tnf_pickle_no_items() };
    node->as.call = call;
    TNF_TRY(log_node(m, &m->out->calls, node));
    return push_node(m, node);
}

/* REDUCE, NEWOBJ, NEWOBJ_EX */
static tnf_status op_call(machine *m, const argument *a)
{
    tnf_pickle_node *kwargs = NULL;
    (void)a;
    TNF_TRY(need_nodes(m, m->op == 0x92 ? 3 : 2));
    if (m->op == 0x92)
        kwargs = pop_node(m);
    tnf_pickle_node *args = pop_node(m), *callee = pop_node(m);
    return push_call(m, callee, args, kwargs);
}

/* OBJ and INST: the arguments are above the mark. */
static tnf_status op_instance(machine *m, const argument *a)
{
    tnf_pickle_node **items, *callee;
    size_t n;
    TNF_TRY(pop_mark(m, &items, &n));
    if (m->op == 'o' && (n == 0 || !items))
        return bad_pickle(m, TNF_EFORMAT, "an object has no class");
    tnf_pickle_node *args = new_node(m, TNF_PICKLE_TUPLE);
    if (!args)
        return no_memory(m);
    if (m->op == 'o') {
        callee = items[0];
        TNF_TRY(add_items(m, args, items + 1, n - 1));
    } else {
        TNF_TRY(add_items(m, args, items, n));
        TNF_TRY(op_global(m, a));
        callee = pop_node(m);
    }
    return push_call(m, callee, args, NULL);
}

static tnf_status op_build(machine *m, const argument *a)
{
    (void)a;
    TNF_TRY(need_nodes(m, 2));
    tnf_pickle_node *state = pop_node(m), *object = m->stack[m->n - 1];
    if (object->kind == TNF_PICKLE_DICT)
        TNF_TRY(make_object(m, object));
    if (object->kind != TNF_PICKLE_CALL)
        return bad_pickle(m, TNF_EFORMAT, "it sets the state of something that is not an object");
    if (object->as.call->state)
        return bad_pickle(m, TNF_EUNSUPPORTED, "it sets the state of an object twice");
    object->as.call->state = state;
    return TNF_OK;
}

static tnf_status op_persistent(machine *m, const argument *a)
{
    tnf_pickle_node *id;
    if (m->op == 'Q') {
        TNF_TRY(need_nodes(m, 1));
        id = pop_node(m);
    } else {
        TNF_TRY(op_text(m, a));
        id = pop_node(m);
    }
    TNF_TRY(push_container(m, TNF_PICKLE_PERSISTENT, &id, 1));
    return log_node(m, &m->out->persistent, m->stack[m->n - 1]);
}

/* ------------------------------------------------------------------ table */

typedef enum arg_kind {
    NOTHING,
    FIXED,
    LINE,
    LINES,
    BYTES8,
    COUNT1,
    COUNT4,
    COUNT_I4,
    COUNT8
} arg_kind;

typedef struct row {
    op_fn run;
    uint8_t arg, width;
} row;

static const row rows[256] = {
    [0x80] = { op_proto, FIXED, 1 },
    [0x95] = { op_frame, FIXED, 8 },
    ['.'] = { op_stop, NOTHING, 0 },
    ['('] = { op_mark, NOTHING, 0 },
    ['0'] = { op_pop, NOTHING, 0 },
    ['1'] = { op_pop_mark, NOTHING, 0 },
    ['2'] = { op_dup, NOTHING, 0 },
    ['N'] = { op_constant, NOTHING, 0 },
    [0x88] = { op_constant, NOTHING, 0 },
    [0x89] = { op_constant, NOTHING, 0 },
    [')'] = { op_constant, NOTHING, 0 },
    ['I'] = { op_line, LINE, 0 },
    ['L'] = { op_line, LINE, 0 },
    ['F'] = { op_line, LINE, 0 },
    ['S'] = { op_line, LINE, 0 },
    ['V'] = { op_line, LINE, 0 },
    ['J'] = { op_integer, FIXED, 4 },
    ['K'] = { op_integer, FIXED, 1 },
    ['M'] = { op_integer, FIXED, 2 },
    [0x8a] = { op_long_bytes, COUNT1, 0 },
    [0x8b] = { op_long_bytes, COUNT_I4, 0 },
    ['G'] = { op_float, BYTES8, 0 },
    ['X'] = { op_text, COUNT4, 0 },
    [0x8c] = { op_text, COUNT1, 0 },
    [0x8d] = { op_text, COUNT8, 0 },
    ['T'] = { op_bytes, COUNT_I4, 0 },
    ['U'] = { op_bytes, COUNT1, 0 },
    ['B'] = { op_bytes, COUNT4, 0 },
    ['C'] = { op_bytes, COUNT1, 0 },
    [0x8e] = { op_bytes, COUNT8, 0 },
    [0x96] = { op_bytes, COUNT8, 0 },
    [0x97] = { op_refuse, NOTHING, 0 },
    [0x98] = { op_refuse, NOTHING, 0 },
    [0x82] = { op_refuse, FIXED, 1 },
    [0x83] = { op_refuse, FIXED, 2 },
    [0x84] = { op_refuse, FIXED, 4 },
    [0x85] = { op_tuple, NOTHING, 0 },
    [0x86] = { op_tuple, NOTHING, 0 },
    [0x87] = { op_tuple, NOTHING, 0 },
    ['t'] = { op_tuple, NOTHING, 0 },
    [']'] = { op_empty, NOTHING, 0 },
    ['}'] = { op_empty, NOTHING, 0 },
    [0x8f] = { op_empty, NOTHING, 0 },
    ['l'] = { op_container, NOTHING, 0 },
    ['d'] = { op_container, NOTHING, 0 },
    [0x91] = { op_container, NOTHING, 0 },
    ['a'] = { op_add, NOTHING, 0 },
    ['e'] = { op_add, NOTHING, 0 },
    ['s'] = { op_add, NOTHING, 0 },
    ['u'] = { op_add, NOTHING, 0 },
    [0x90] = { op_add, NOTHING, 0 },
    ['p'] = { op_put_line, LINE, 0 },
    ['q'] = { op_put, FIXED, 1 },
    ['r'] = { op_put, FIXED, 4 },
    [0x94] = { op_memoize, NOTHING, 0 },
    ['g'] = { op_get_line, LINE, 0 },
    ['h'] = { op_get, FIXED, 1 },
    ['j'] = { op_get, FIXED, 4 },
    ['c'] = { op_global, LINES, 0 },
    [0x93] = { op_stack_global, NOTHING, 0 },
    ['R'] = { op_call, NOTHING, 0 },
    [0x81] = { op_call, NOTHING, 0 },
    [0x92] = { op_call, NOTHING, 0 },
    ['o'] = { op_instance, NOTHING, 0 },
    ['i'] = { op_instance, LINES, 0 },
    ['b'] = { op_build, NOTHING, 0 },
    ['Q'] = { op_persistent, NOTHING, 0 },
    ['P'] = { op_persistent, LINE, 0 },
};

static tnf_status read_argument(machine *m, const row *r, argument *a)
{
    static const uint8_t widths[] = { [COUNT1] = 1, [COUNT4] = 4, [COUNT_I4] = 4, [COUNT8] = 8 };
    tnf_cur *c = &m->c;
    *a = (argument) { .s = { "", 0 } };
    switch (r->arg) {
    case NOTHING:
        return TNF_OK;
    case FIXED:
        a->u = read_fixed(c, r->width);
        break;
    case LINES:
    case LINE:
        if (read_line(c, &a->s) && r->arg == LINES)
            (void)read_line(c, &a->s2);
        break;
    default:
        a->u = r->arg == BYTES8 ? 8 : read_fixed(c, widths[r->arg]);
        if (r->arg == COUNT_I4 && a->u > INT32_MAX)
            return bad_pickle(m, TNF_EFORMAT, "a negative length");
        a->s.p = tnf_bytes(c, a->u);
        a->s.n = a->s.p ? (size_t)a->u : 0;
    }
    return c->bad ? bad_pickle(m, TNF_ETRUNCATED, "it ends inside the opcode 0x%02x", m->op)
                  : TNF_OK;
}

static tnf_status run_machine(machine *m)
{
    argument a;
    while (!m->stop) {
        m->op_at = tnf_where(&m->c);
        m->op = tnf_u8(&m->c);
        if (m->c.bad)
            return bad_pickle(m, TNF_ETRUNCATED, "it ends without STOP");
        const row *r = &rows[m->op];
        if (!r->run)
            return bad_pickle(m, TNF_EFORMAT, "0x%02x is not an opcode", m->op);
        TNF_TRY(read_argument(m, r, &a));
        TNF_TRY(r->run(m, &a));
    }
    return TNF_OK;
}

tnf_status tnf_pickle_read(tnf_pickle *out, const void *bytes, size_t n, uint64_t base,
                           tnf_arena *arena, tnf_error *e)
{
    machine m = {
        .out = out, .arena = arena, .c = tnf_cur_over(bytes, n, 0), .base = base, .e = e
    };
    *out = (tnf_pickle) { 0 };
    if (n > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, base, "a pickle has %zu bytes; the limit is 4 GiB", n);
    m.none = new_node(&m, TNF_PICKLE_NONE);
    m.yes = new_node(&m, TNF_PICKLE_BOOL);
    m.no = new_node(&m, TNF_PICKLE_BOOL);
    m.empty = new_node(&m, TNF_PICKLE_TUPLE);
    if (!m.none || !m.yes || !m.no || !m.empty)
        return no_memory(&m);
    m.yes->as.i = 1;
    tnf_arena_init(&m.own, &arena->alloc, arena->limit - arena->total);
    tnf_status status = run_machine(&m);
    tnf_arena_free(&m.own);
    out->used = (size_t)(m.c.p - m.c.start);
    return status;
}
