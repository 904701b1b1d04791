/* SPDX-License-Identifier: MIT */
/* The names of what a pickle would call: GLOBAL and INST have them as two lines, STACK_GLOBAL takes
 * the last two strings, which may come from the memo. Opcodes are walked by their lengths; where
 * that fails the walk ends. */
#include "formats/numpy/pickle.h"

#include <stdio.h>
#include <string.h>

#define MEMO 128u

enum { NONE, LINE, TWO_LINES, LONG1, LONG4, COUNTED1, COUNTED4, COUNTED8, FIXED };

typedef struct walk {
    tnf_cur c;
    tnf_str last[2];    /* strings that were pushed, the later first */
    tnf_str memo[MEMO]; /* those that are strings */
    uint64_t memoized;
    bool pushed; /* the operation before this one pushed last[0] */
    char *out;
    size_t n, size;
    bool full; /* there are more names than there is room for */
} walk;

/* What follows an opcode; FIXED + n: n bytes. */
static int argument_of(uint8_t op)
{
    if (memchr("FILPVSgp", op, 8))
        return LINE;
    if (op == 'c' || op == 'i')
        return TWO_LINES;
    if (op == 'U' || op == 'C' || op == 0x8c)
        return COUNTED1;
    if (op == 'T' || op == 'X' || op == 'B')
        return COUNTED4;
    if (op == 0x8d || op == 0x8e || op == 0x96)
        return COUNTED8;
    if (op == 0x8a || op == 0x8b)
        return op == 0x8a ? LONG1 : LONG4;
    if (op == 'K' || op == 'q' || op == 'h' || op == 0x80 || op == 0x82)
        return FIXED + 1;
    if (op == 'M' || op == 0x83)
        return FIXED + 2;
    if (op == 'J' || op == 'r' || op == 'j' || op == 0x84)
        return FIXED + 4;
    return op == 'G' || op == 0x95 ? FIXED + 8 : NONE;
}

static tnf_str read_line(tnf_cur *c)
{
    const uint8_t *end = memchr(c->p, '\n', tnf_left(c));
    tnf_str line = { (const char *)c->p, end ? (size_t)(end - c->p) : 0 };
    tnf_bytes(c, end ? line.n + 1 : UINT64_MAX);
    return line;
}

static tnf_str read_argument(tnf_cur *c, int kind)
{
    tnf_str s = { "", 0 };
    if (kind == LINE)
        return read_line(c);
    if (kind == COUNTED1 || kind == LONG1)
        s.n = tnf_u8(c);
    else if (kind == COUNTED4 || kind == LONG4)
        s.n = tnf_u32(c);
    else if (kind == COUNTED8)
        s.n = (size_t)tnf_u64(c);
    else if (kind >= FIXED)
        s.n = (size_t)(kind - FIXED);
    s.p = tnf_bytes(c, s.n);
    return s;
}

static void push(walk *w, tnf_str s)
{
    w->last[1] = w->last[0];
    w->last[0] = s;
    w->pushed = true;
}

/* What every array of objects needs, and nobody need be told of. */
static bool is_usual(const char *call)
{
    static const char *const usual[] = {
        "numpy._core.multiarray._reconstruct",
        "numpy.core.multiarray._reconstruct",
        "numpy.ndarray",
        "numpy.dtype",
    };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(call, usual[i]) == 0)
            return true;
    return false;
}

/* Adds a name that is not there yet. */
static void tell(walk *w, tnf_str module, tnf_str name)
{
    char text[140];
    int n = snprintf(text, sizeof text, "%.*s.%.*s", (int)(module.n < 60 ? module.n : 60),
                     module.n ? module.p : "", (int)(name.n < 60 ? name.n : 60),
                     name.n ? name.p : "");
    tnf_str call = { text, n < 0 ? 0 : strlen(text) };
    const char *quoted = TNF_QUOTED(call);
    if (is_usual(text) || w->full || strstr(w->out, quoted))
        return;
    w->full = w->n + strlen(quoted) + sizeof ", , …" > w->size;
    if (w->full)
        quoted = "…";
    w->n += (size_t)snprintf(w->out + w->n, w->size - w->n, "%s%s", w->n ? ", " : "", quoted);
}

static void remember(walk *w, uint64_t i)
{
    if (i < MEMO)
        w->memo[i] = w->pushed ? w->last[0] : (tnf_str) { NULL, 0 };
}

static void recall(walk *w, uint64_t i)
{
    if (i < MEMO && w->memo[i].p)
        push(w, w->memo[i]);
    else
        w->pushed = false;
}

static uint64_t little(tnf_str s)
{
    uint64_t v = 0;
    for (size_t i = s.n; i-- > 0;)
        v = v << 8 | (uint8_t)s.p[i];
    return v;
}

/* One operation; false: it was the last. */
static bool step(walk *w)
{
    uint8_t op = tnf_u8(&w->c);
    int kind = argument_of(op);
    if (w->c.bad || op == '.')
        return false;
    if (kind == TWO_LINES) {
        tnf_str module = read_line(&w->c), name = read_line(&w->c);
        if (!w->c.bad)
            tell(w, module, name);
        w->pushed = false;
        return !w->c.bad;
    }
    tnf_str s = read_argument(&w->c, kind);
    if (w->c.bad)
        return false;
    if (op == 0x94)
        remember(w, w->memoized++);
    else if (op == 'q' || op == 'r')
        remember(w, little(s));
    else if (op == 'h' || op == 'j')
        recall(w, little(s));
    else if (kind == COUNTED1 || kind == COUNTED4 || kind == COUNTED8 || op == 'V' || op == 'S')
        push(w, s);
    else if (op != 0x95)
        w->pushed = false;
    if (op == 0x93)
        tell(w, w->last[1], w->last[0]);
    return true;
}

tnf_status tnf_np_pickle_calls(tnf_cur c, tnf_arena *arena, char *out, size_t size, tnf_error *e)
{
    walk *w = tnf_arena_alloc(arena, sizeof *w);
    if (!w)
        return tnf_arena_fail(arena, "a pickle", e);
    w->c = c;
    w->out = out;
    w->size = size;
    out[0] = 0;
    while (step(w))
        ;
    if (w->n == 0)
        snprintf(out, size, "nothing but what NumPy needs itself");
    return TNF_OK;
}
