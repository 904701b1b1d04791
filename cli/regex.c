/* SPDX-License-Identifier: MIT */
/* Follows all ways through the program in parallel (Pike's machine). At each character every
 * instruction is visited at most once, so no pattern and no name can make the search slow.
 *
 *   a(b|c)*   CHAR a · SAVE 2 · … SPLIT ─┬─ CHAR b · JUMP …        priority: the upper way first
 *                                        └─ CHAR c · JUMP …
 */
#include "regex_code.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/tenfold.h>

#define SLOTS ((size_t)2 * REGEX_GROUPS)

size_t regex_character(const char *p, size_t n, uint32_t *c)
{
    size_t length = tnf_utf8_next(c, p, n);
    if (length)
        return length;
    *c = 0x110000u + (unsigned char)*p; /* an invalid byte: above all characters */
    return 1;
}

typedef struct thread {
    uint32_t pc;
    size_t slots[SLOTS];
} thread;

typedef struct threads {
    thread *items;
    size_t n;
} threads;

typedef struct run {
    const regex *r;
    const char *text;
    size_t n, at; /* the length, and the current position */
    size_t *seen; /* by instruction: the last step in which it was added; 0: none */
    size_t step;
} run;

static bool is_word(const run *m, size_t at)
{
    unsigned char c = at < m->n ? (unsigned char)m->text[at] : 0;
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool at_edge(const run *m, uint32_t which)
{
    bool before = m->at > 0 && is_word(m, m->at - 1), here = is_word(m, m->at);
    switch (which) {
    case '^':
        return m->at == 0;
    case '$':
        return m->at == m->n;
    case 'b':
        return before != here;
    default:
        return before == here;
    }
}

/* Adds all instructions that can be reached from one without a character, in order of priority. */
static void follow_thread(run *m, threads *to, uint32_t pc, const size_t slots[SLOTS])
{
    const instruction *i = &m->r->code[pc];
    if (m->seen[pc] == m->step)
        return;
    m->seen[pc] = m->step;
    switch (i->op) {
    case OP_JUMP:
        follow_thread(m, to, i->x, slots);
        return;
    case OP_SPLIT:
        follow_thread(m, to, i->x, slots);
        follow_thread(m, to, i->y, slots);
        return;
    case OP_EDGE:
        if (at_edge(m, i->c))
            follow_thread(m, to, pc + 1, slots);
        return;
    case OP_SAVE: {
        size_t saved[SLOTS];
        memcpy(saved, slots, sizeof saved);
        saved[i->c] = m->at;
        follow_thread(m, to, pc + 1, saved);
        return;
    }
    default:
        to->items[to->n].pc = pc;
        memcpy(to->items[to->n++].slots, slots, SLOTS * sizeof *slots);
    }
}

static uint32_t folded_case(uint32_t c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static bool in_ranges(const regex *r, const set *s, uint32_t c)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (c >= r->ranges[s->from + i].first && c <= r->ranges[s->from + i].last)
            return true;
    return false;
}

static bool in_set(const regex *r, const set *s, uint32_t c)
{
    bool found = in_ranges(r, s, c);
    if (!found && r->any_case && c >= 'A' && c <= 'Z')
        found = in_ranges(r, s, c + ('a' - 'A'));
    else if (!found && r->any_case && c >= 'a' && c <= 'z')
        found = in_ranges(r, s, c - ('a' - 'A'));
    return found != s->inverted;
}

static bool takes_character(const regex *r, const instruction *i, uint32_t c)
{
    if (i->op == OP_SET)
        return in_set(r, &r->sets[i->c], c);
    return i->op == OP_ANY || i->c == c || (r->any_case && folded_case(i->c) == folded_case(c));
}

/* All threads consume one character. Threads after one that has matched are dropped. */
static bool eat_character(run *m, const threads *now, threads *next, uint32_t c, size_t length,
                          size_t found[SLOTS])
{
    bool matched = false;
    next->n = 0;
    m->at += length;
    m->step++;
    for (size_t t = 0; t < now->n && !matched; t++) {
        const thread *one = &now->items[t];
        const instruction *i = &m->r->code[one->pc];
        if (i->op == OP_MATCH) {
            memcpy(found, one->slots, SLOTS * sizeof *found);
            found[1] = m->at - length;
            matched = true;
        } else if (length && takes_character(m->r, i, c)) {
            follow_thread(m, next, one->pc + 1, one->slots);
        }
    }
    return matched;
}

static bool search_text(run *m, threads *now, threads *next, size_t found[SLOTS])
{
    bool matched = false;
    m->step = 1;
    now->n = 0;
    for (;;) {
        if (!matched) { /* a match may also begin here, with the lowest priority */
            size_t fresh[SLOTS];
            for (size_t i = 0; i < SLOTS; i++)
                fresh[i] = REGEX_NONE;
            fresh[0] = m->at;
            follow_thread(m, now, 0, fresh);
        }
        uint32_t c = 0;
        size_t length = m->at < m->n ? regex_character(m->text + m->at, m->n - m->at, &c) : 0;
        matched = eat_character(m, now, next, c, length, found) || matched;
        if (length == 0 || (matched && next->n == 0))
            return matched;
        threads *other = now;
        now = next;
        next = other;
    }
}

bool regex_find(const regex *r, const char *text, size_t n, size_t at,
                regex_group groups[REGEX_GROUPS])
{
    run m = { .r = r, .text = text, .n = n, .at = at };
    size_t found[SLOTS];
    threads a = { calloc(r->ncode, sizeof(thread)), 0 },
            b = { calloc(r->ncode, sizeof(thread)), 0 };
    m.seen = calloc(r->ncode, sizeof *m.seen);
    bool matched = a.items && b.items && m.seen && search_text(&m, &a, &b, found);
    for (size_t i = 0; matched && i < REGEX_GROUPS; i++) {
        bool whole = found[2 * i] != REGEX_NONE && found[2 * i + 1] != REGEX_NONE;
        groups[i] = whole ? (regex_group) { found[2 * i], found[2 * i + 1] }
                          : (regex_group) { REGEX_NONE, REGEX_NONE };
    }
    free(a.items);
    free(b.items);
    free(m.seen);
    return matched;
}
