/* SPDX-License-Identifier: MIT */
/* Converts a pattern to a tree, and the tree to a program (Thompson's construction). */
#include "regex_code.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NODES  2000u
#define MOST_CODE   4000u /* also the depth of the recursion that runs it */
#define MOST_DEPTH  50u
#define MOST_REPEAT 1000u
#define NO_END      UINT32_MAX

typedef enum kind {
    N_CHAR,
    N_ANY,
    N_SET,
    N_EDGE, /* ^ $ \b \B: `c` says which */
    N_EMPTY,
    N_CAT,
    N_OR,
    N_REPEAT,
    N_GROUP /* a = its content, c = its number; 0: not captured */
} kind;

typedef struct node {
    kind kind;
    uint32_t c;      /* character, edge, number of the group or of the set */
    uint32_t a, b;   /* children */
    uint32_t lo, hi; /* of a repeat */
    bool lazy;
} node;

/* ------------------------------------------------------------------ parsing */

typedef struct parser {
    regex *r;
    const char *at;
    char *why; /* the message of the first error, or "" */
    node *nodes;
    uint32_t n, groups;
    unsigned depth;
} parser;

static uint32_t tell_fault(parser *p, const char *what)
{
    if (!*p->why)
        snprintf(p->why, 128, "%s", what);
    return 0;
}

static uint32_t new_node(parser *p, node made)
{
    if (p->n == MOST_NODES)
        return tell_fault(p, "the expression is too long");
    p->nodes[p->n] = made;
    return p->n++;
}

static void add_range(parser *p, uint32_t first, uint32_t last)
{
    regex *r = p->r;
    range *more = realloc(r->ranges, (r->nranges + 1) * sizeof *more);
    if (!more) {
        tell_fault(p, "out of memory");
        return;
    }
    r->ranges = more;
    more[r->nranges++] = (range) { first, last };
}

/* Replaces the ranges from `from` on by their complement. They are sorted and disjoint. */
static void invert_ranges(parser *p, size_t from)
{
    regex *r = p->r;
    uint32_t next = 0;
    size_t n = r->nranges;
    for (size_t i = from; i < n && !*p->why; i++) {
        range one = r->ranges[i];
        if (one.first > next)
            add_range(p, next, one.first - 1);
        next = one.last + 1;
    }
    add_range(p, next, UINT32_MAX);
    if (*p->why)
        return;
    memmove(r->ranges + from, r->ranges + n, (r->nranges - n) * sizeof *r->ranges);
    r->nranges -= n - from;
}

/* Adds the characters of \d, \w or \s; returns false for any other letter. */
static bool add_class(parser *p, char letter)
{
    static const range digit[] = { { '0', '9' } };
    static const range word[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };
    static const range space[] = { { '\t', '\r' }, { ' ', ' ' } };
    static const struct {
        char letter;
        const range *ranges;
        size_t n;
    } all[] = { { 'd', digit, 1 }, { 'w', word, 4 }, { 's', space, 2 } };
    size_t from = p->r->nranges;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].letter != letter && all[i].letter != letter + ('a' - 'A'))
            continue;
        for (size_t k = 0; k < all[i].n; k++)
            add_range(p, all[i].ranges[k].first, all[i].ranges[k].last);
        if (all[i].letter != letter)
            invert_ranges(p, from);
        return true;
    }
    return false;
}

/* Adds [:alpha:] and similar classes. */
static bool add_named(parser *p)
{
    static const struct {
        const char *name;
        range ranges[4];
    } all[] = {
        { "[:alpha:]", { { 'A', 'Z' }, { 'a', 'z' } } },
        { "[:digit:]", { { '0', '9' } } },
        { "[:alnum:]", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
        { "[:upper:]", { { 'A', 'Z' } } },
        { "[:lower:]", { { 'a', 'z' } } },
        { "[:space:]", { { '\t', '\r' }, { ' ', ' ' } } },
        { "[:blank:]", { { '\t', '\t' }, { ' ', ' ' } } },
        { "[:xdigit:]", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
        { "[:punct:]", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } } },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i].name);
        if (strncmp(p->at, all[i].name, n) != 0)
            continue;
        for (size_t k = 0; k < 4 && all[i].ranges[k].last; k++)
            add_range(p, all[i].ranges[k].first, all[i].ranges[k].last);
        p->at += n;
        return true;
    }
    return false;
}

/* The character after a backslash, if it means itself or a control character. */
static bool plain_escape(char letter, uint32_t *c)
{
    static const char pairs[] = "n\nt\tr\r";
    for (const char *q = pairs; *q; q += 2)
        if (letter == *q) {
            *c = (unsigned char)q[1];
            return true;
        }
    *c = (unsigned char)letter;
    bool alnum = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                 (letter >= 'A' && letter <= 'Z');
    return letter && !alnum;
}

/* One end of a range in brackets. */
static uint32_t bracket_character(parser *p)
{
    uint32_t c = 0;
    if (*p->at == '\\') {
        if (!plain_escape(p->at[1], &c))
            return tell_fault(p, "unknown escape in [...]");
        if ((unsigned char)p->at[1] < 0x80) {
            p->at += 2;
            return c;
        }
        p->at++;
    }
    p->at += regex_character(p->at, strlen(p->at), &c);
    return c;
}

static void bracket_item(parser *p)
{
    if (*p->at == '[' && p->at[1] == ':') {
        if (!add_named(p))
            tell_fault(p, "unknown class; the names are like [:alpha:]");
        return;
    }
    if (*p->at == '\\' && add_class(p, p->at[1])) {
        p->at += 2;
        return;
    }
    uint32_t first = bracket_character(p), last = first;
    if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
        p->at++;
        last = bracket_character(p);
    }
    if (last < first)
        tell_fault(p, "a range in [...] ends before it begins");
    else
        add_range(p, first, last);
}

static uint32_t set_node(parser *p, size_t from, bool inverted)
{
    regex *r = p->r;
    set *more = realloc(r->sets, (r->nsets + 1) * sizeof *more);
    if (!more)
        return tell_fault(p, "out of memory");
    r->sets = more;
    more[r->nsets] = (set) { (uint32_t)from, (uint32_t)(r->nranges - from), inverted };
    return new_node(p, (node) { .kind = N_SET, .c = (uint32_t)r->nsets++ });
}

static uint32_t parse_bracket(parser *p)
{
    size_t from = p->r->nranges;
    bool inverted = *++p->at == '^', first = true;
    p->at += inverted;
    while (*p->at && (*p->at != ']' || first) && !*p->why) {
        bracket_item(p);
        first = false;
    }
    if (*p->at != ']')
        return tell_fault(p, "missing ] after [");
    p->at++;
    return set_node(p, from, inverted);
}

static uint32_t parse_escape(parser *p)
{
    char letter = p->at[1];
    uint32_t c;
    size_t from = p->r->nranges;
    if (!letter)
        return tell_fault(p, "unexpected \\ at the end");
    if (letter >= '1' && letter <= '9')
        return tell_fault(p, "back-references such as \\1 are allowed only in the new text");
    if (add_class(p, letter)) {
        p->at += 2;
        return set_node(p, from, false);
    }
    if (letter == 'b' || letter == 'B') {
        p->at += 2;
        return new_node(p, (node) { .kind = N_EDGE, .c = (unsigned char)letter });
    }
    if (!plain_escape(letter, &c)) {
        if (!*p->why)
            snprintf(p->why, 128, "\\%c is unknown", letter);
        return 0;
    }
    p->at++;
    if ((unsigned char)letter < 0x80)
        p->at++;
    else
        p->at += regex_character(p->at, strlen(p->at), &c);
    return new_node(p, (node) { .kind = N_CHAR, .c = c });
}

static uint32_t parse_alternatives(parser *p);

static uint32_t parse_group(parser *p)
{
    bool kept = strncmp(p->at, "(?:", 3) != 0;
    if (kept && p->at[1] == '?')
        return tell_fault(p, "only (?:...) is supported, no other (?...)");
    p->at += kept ? 1 : 3;
    uint32_t number = kept ? ++p->groups : 0;
    if (++p->depth > MOST_DEPTH)
        return tell_fault(p, "groups are nested too deeply");
    uint32_t inside = parse_alternatives(p);
    p->depth--;
    if (*p->at != ')')
        return tell_fault(p, "missing ) after (");
    p->at++;
    if (number >= REGEX_GROUPS)
        number = 0; /* \1 to \9 cannot refer to it */
    return new_node(p, (node) { .kind = N_GROUP, .a = inside, .c = number });
}

static uint32_t parse_atom(parser *p)
{
    uint32_t c;
    switch (*p->at) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_bracket(p);
    case '\\':
        return parse_escape(p);
    case '.':
        p->at++;
        return new_node(p, (node) { .kind = N_ANY });
    case '^':
    case '$':
        return new_node(p, (node) { .kind = N_EDGE, .c = (unsigned char)*p->at++ });
    case '*':
    case '+':
    case '?':
        return tell_fault(p, "missing expression before * + or ?");
    default:
        p->at += regex_character(p->at, strlen(p->at), &c);
        return new_node(p, (node) { .kind = N_CHAR, .c = c });
    }
}

static bool parse_number(parser *p, uint32_t *out)
{
    const char *from = p->at;
    for (*out = 0; *p->at >= '0' && *p->at <= '9'; p->at++)
        if (*out <= MOST_REPEAT)
            *out = *out * 10 + (uint32_t)(*p->at - '0');
    return p->at > from;
}

/* Parses {2} {2,} {2,4}. A brace that begins none of these is a plain character. */
static bool parse_counts(parser *p, uint32_t *lo, uint32_t *hi)
{
    const char *from = p->at++;
    bool good = parse_number(p, lo);
    *hi = *lo;
    if (good && *p->at == ',') {
        p->at++;
        if (!parse_number(p, hi))
            *hi = NO_END;
    }
    good = good && *p->at == '}';
    p->at = good ? p->at + 1 : from;
    if (good && (*lo > MOST_REPEAT || (*hi != NO_END && (*hi > MOST_REPEAT || *hi < *lo))))
        tell_fault(p, "a count in {...} is too large, or the second is less than the first");
    return good;
}

static uint32_t parse_repeated(parser *p)
{
    uint32_t inner = parse_atom(p), lo, hi;
    for (;;) {
        char c = *p->at;
        if (*p->why || !c || !strchr("*+?{", c))
            return inner;
        if (c == '{') {
            if (!parse_counts(p, &lo, &hi))
                return inner;
        } else {
            p->at++;
            lo = c == '+';
            hi = c == '?' ? 1 : NO_END;
        }
        bool lazy = *p->at == '?';
        p->at += lazy;
        inner = new_node(p,
                         (node) { .kind = N_REPEAT, .a = inner, .lo = lo, .hi = hi, .lazy = lazy });
    }
}

static uint32_t parse_sequence(parser *p)
{
    uint32_t all = new_node(p, (node) { .kind = N_EMPTY });
    while (*p->at && *p->at != '|' && *p->at != ')' && !*p->why) {
        bool brace = *p->at == '{';
        uint32_t one = brace ? new_node(p, (node) { .kind = N_CHAR, .c = '{' }) : parse_repeated(p);
        p->at += brace;
        all = new_node(p, (node) { .kind = N_CAT, .a = all, .b = one });
    }
    return all;
}

static uint32_t parse_alternatives(parser *p)
{
    uint32_t all = parse_sequence(p);
    while (*p->at == '|' && !*p->why) {
        p->at++;
        uint32_t other = parse_sequence(p);
        all = new_node(p, (node) { .kind = N_OR, .a = all, .b = other });
    }
    return all;
}

/* ------------------------------------------------------------------ program */

static uint32_t put_instruction(parser *p, instruction i)
{
    regex *r = p->r;
    if (r->ncode == MOST_CODE)
        return tell_fault(p, "the expression is too long");
    r->code[r->ncode] = i;
    return (uint32_t)r->ncode++;
}

static void generate_node(parser *p, uint32_t at);

/* A choice between the next instruction and a target that set_exit() sets. */
static uint32_t put_split(parser *p)
{
    uint32_t here = put_instruction(p, (instruction) { .op = OP_SPLIT });
    p->r->code[here].x = here + 1;
    return here;
}

/* Sets the target for leaving a repeat. A lazy repeat tries it first. */
static void set_exit(parser *p, uint32_t split, bool lazy)
{
    instruction *i = &p->r->code[split];
    i->y = (uint32_t)p->r->ncode;
    if (lazy) {
        uint32_t in = i->x;
        i->x = i->y;
        i->y = in;
    }
}

static void generate_repeat(parser *p, const node *n)
{
    for (uint32_t i = 0; i < n->lo && !*p->why; i++)
        generate_node(p, n->a);
    if (n->hi == NO_END && !*p->why) {
        uint32_t split = put_split(p);
        generate_node(p, n->a);
        put_instruction(p, (instruction) { .op = OP_JUMP, .x = split });
        set_exit(p, split, n->lazy);
        return;
    }
    for (uint32_t i = n->lo; i < n->hi && !*p->why; i++) {
        uint32_t split = put_split(p);
        generate_node(p, n->a);
        set_exit(p, split, n->lazy); /* to the next optional copy, which may also be skipped */
    }
}

static void generate_or(parser *p, const node *n)
{
    uint32_t split = put_split(p);
    generate_node(p, n->a);
    uint32_t jump = put_instruction(p, (instruction) { .op = OP_JUMP });
    set_exit(p, split, false);
    generate_node(p, n->b);
    p->r->code[jump].x = (uint32_t)p->r->ncode;
}

static void generate_node(parser *p, uint32_t at)
{
    static const op plain[] = {
        [N_CHAR] = OP_CHAR, [N_ANY] = OP_ANY, [N_SET] = OP_SET, [N_EDGE] = OP_EDGE
    };
    const node *n = &p->nodes[at];
    if (*p->why)
        return;
    switch (n->kind) {
    case N_EMPTY:
        return;
    case N_CAT:
        generate_node(p, n->a);
        generate_node(p, n->b);
        return;
    case N_OR:
        generate_or(p, n);
        return;
    case N_REPEAT:
        generate_repeat(p, n);
        return;
    case N_GROUP:
        if (n->c)
            put_instruction(p, (instruction) { .op = OP_SAVE, .c = 2 * n->c });
        generate_node(p, n->a);
        if (n->c)
            put_instruction(p, (instruction) { .op = OP_SAVE, .c = 2 * n->c + 1 });
        return;
    default:
        put_instruction(p, (instruction) { .op = plain[n->kind], .c = n->c });
    }
}

regex *regex_new(const char *pattern, bool any_case, char why[128])
{
    regex *r = calloc(1, sizeof *r);
    parser p = { .r = r, .at = pattern, .why = why };
    p.nodes = calloc(MOST_NODES, sizeof *p.nodes);
    why[0] = '\0';
    if (r)
        r->code = calloc(MOST_CODE, sizeof *r->code);
    if (!r || !r->code || !p.nodes) {
        tell_fault(&p, "out of memory");
    } else {
        r->any_case = any_case;
        uint32_t root = parse_alternatives(&p);
        if (*p.at == ')')
            tell_fault(&p, "unexpected ) without (");
        generate_node(&p, root);
        put_instruction(&p, (instruction) { .op = OP_MATCH });
    }
    free(p.nodes);
    if (!*why)
        return r;
    regex_free(r);
    return NULL;
}

void regex_free(regex *r)
{
    if (!r)
        return;
    free(r->code);
    free(r->ranges);
    free(r->sets);
    free(r);
}
