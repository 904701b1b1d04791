/* SPDX-License-Identifier: MIT */
/* The reader of Python literals. ast.literal_eval() is the reference; None, floats, bytes, sets …
 * are not supported, since headers do not use them. Nesting is limited, so recursion is safe. The
 * texts of all strings together are at most twice as long as the header (a byte of latin-1 becomes
 * two), so they share one allocation. */
#include "formats/numpy/literal.h"

#include "base/hex.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 32u

typedef struct parser {
    np_source in;
    const uint8_t *p, *end;
    tnf_arena *arena;
    char *texts;
    size_t used;
    unsigned depth;
    tnf_error *e;
    tnf_status status;
} parser;

static uint64_t position_of(const parser *r, const uint8_t *p)
{
    return r->in.base + (uint64_t)(p - r->in.p);
}

static bool fail_at(parser *r, tnf_status status, const uint8_t *at, const char *format, ...)
    TNF_PRINTF(4, 5);

/* Only the first error is kept. */
static bool fail_at(parser *r, tnf_status status, const uint8_t *at, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->status == TNF_OK)
        r->status = tnf_fail(r->e, status, position_of(r, at), "%s", text);
    return false;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_char(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static int peek_byte(const parser *r, size_t ahead)
{
    return (size_t)(r->end - r->p) > ahead ? r->p[ahead] : -1;
}

/* Skips white space, line ends and comments; a backslash joins lines. Returns the next byte, or
 * -1. */
static int skip_blanks(parser *r)
{
    for (;;) {
        int c = peek_byte(r, 0);
        if (c == '\\' && (peek_byte(r, 1) == '\n' || peek_byte(r, 1) == '\r'))
            r->p++;
        else if (c == '#')
            while (peek_byte(r, 1) != -1 && peek_byte(r, 1) != '\n')
                r->p++;
        else if (c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f')
            return c;
        r->p++;
    }
}

static bool fail_unexpected(parser *r, const char *wanted)
{
    int c = peek_byte(r, 0);
    if (c == -1)
        return fail_at(r, TNF_EFORMAT, r->p, "the header ends where %s is expected", wanted);
    if (c < 0x20 || c >= 0x7f)
        return fail_at(r, TNF_EFORMAT, r->p, "the byte 0x%02x stands where %s is expected", c,
                       wanted);
    return fail_at(r, TNF_EFORMAT, r->p, "'%c' stands where %s is expected", c, wanted);
}

static np_node *new_node(parser *r, np_kind kind)
{
    np_node *node = tnf_arena_alloc(r->arena, sizeof *node);
    if (!node && r->status == TNF_OK)
        r->status = tnf_arena_fail(r->arena, "the header", r->e);
    if (node) {
        node->kind = (uint8_t)kind;
        node->at = position_of(r, r->p);
    }
    return node;
}

/* ---------------------------------------------------------------- strings */

static void put_char(parser *r, uint32_t c)
{
    r->used += tnf_utf8_put(r->texts + r->used, c);
}

/* The value of a hexadecimal digit; -1 for any other byte, and for -1. */
static int hex_value(int c)
{
    return c < 0 ? -1 : tnf_hex_digit((char)c);
}

/* Reads exactly so many digits after the letter at p. */
static bool put_hex(parser *r, const uint8_t *escape, unsigned digits)
{
    uint32_t c = 0;
    r->p++;
    for (unsigned i = 0; i < digits; i++, r->p++) {
        int d = hex_value(peek_byte(r, 0));
        if (d < 0)
            return fail_at(r, TNF_EFORMAT, escape, "an escape of a string has too few digits");
        c = c << 4 | (uint32_t)d;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return fail_at(r, TNF_EFORMAT, escape, "an escape of a string is not a valid character");
    put_char(r, c);
    return true;
}

static bool put_octal(parser *r)
{
    uint32_t c = 0;
    for (unsigned i = 0; i < 3 && peek_byte(r, 0) >= '0' && peek_byte(r, 0) <= '7'; i++, r->p++)
        c = c << 3 | (uint32_t)(peek_byte(r, 0) - '0');
    put_char(r, c);
    return true;
}

/* p is at the backslash. An escape that Python does not know stays unchanged, with its
 * backslash. */
static bool put_escape(parser *r)
{
    static const char letters[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    const uint8_t *escape = r->p++;
    int c = peek_byte(r, 0);
    if (c >= '0' && c <= '7')
        return put_octal(r);
    if (c == 'x' || c == 'u' || c == 'U')
        return put_hex(r, escape, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    if (c == 'N')
        return fail_at(r, TNF_EUNSUPPORTED, escape,
                       "a character is given by its Unicode name, which is not supported");
    if (c == '\n' || c == '\r') {
        r->p += c == '\r' && peek_byte(r, 1) == '\n' ? 2 : 1;
        return true;
    }
    for (size_t i = 0; i + 1 < sizeof letters; i += 2)
        if (c == letters[i]) {
            r->texts[r->used++] = letters[i + 1];
            r->p++;
            return true;
        }
    r->texts[r->used++] = '\\';
    return true;
}

/* p is at the first quote. */
static bool read_string(parser *r, bool raw)
{
    const uint8_t *opening = r->p;
    int quote = peek_byte(r, 0), c;
    bool triple = peek_byte(r, 1) == quote && peek_byte(r, 2) == quote;
    for (r->p += triple ? 3 : 1; (c = peek_byte(r, 0)) != -1;) {
        if (c == quote && (!triple || (peek_byte(r, 1) == quote && peek_byte(r, 2) == quote))) {
            r->p += triple ? 3 : 1;
            return true;
        }
        if ((c == '\n' || c == '\r') && !triple)
            break;
        if (c == '\\' && !raw) {
            if (!put_escape(r))
                return false;
            continue;
        }
        if (c == '\\' && peek_byte(r, 1) != -1) { /* raw strings: it escapes a quote, but remains */
            r->texts[r->used++] = '\\';
            c = *++r->p;
        }
        if (c >= 0x80 && r->in.latin1)
            put_char(r, (uint32_t)c);
        else
            r->texts[r->used++] = (char)c;
        r->p++;
    }
    return fail_at(r, TNF_EFORMAT, opening, "a string of the header does not end");
}

/* The length of a string prefix before a quote, 0 to 2; -1: not a string. */
static int string_prefix(const parser *r)
{
    for (int n = 0; n < 3; n++) {
        int c = peek_byte(r, (size_t)n);
        if (c == '\'' || c == '"')
            return n;
        if (c < 0 || !strchr("uUrRbBfFtT", c))
            break;
    }
    return -1;
}

/* One or more adjacent strings, which are joined. */
static np_node *parse_string(parser *r)
{
    np_node *node = new_node(r, NP_STRING);
    size_t begin = r->used;
    for (int n; node && (n = string_prefix(r)) >= 0; skip_blanks(r)) {
        int letter = n ? peek_byte(r, 0) | 0x20 : 0;
        if (n > 1 || (n && letter != 'u' && letter != 'r')) {
            fail_at(r, TNF_EFORMAT, r->p, "a string of the header is not plain text (%.*s\"…\")", n,
                    (const char *)r->p);
            return NULL;
        }
        r->p += n;
        if (!read_string(r, letter == 'r'))
            return NULL;
    }
    if (node) {
        node->text = (tnf_str) { r->texts + begin, r->used - begin };
        r->texts[r->used++] = 0; /* fits: the two quotes are not copied */
    }
    return node;
}

/* ---------------------------------------------------------------- numbers */

/* Digits of a base with single underscores between them. False: no digits, or an overflow. */
static bool read_digits(parser *r, unsigned base, bool after_prefix, uint64_t *out)
{
    const uint8_t *begin = r->p;
    bool any = false;
    *out = 0;
    for (int c;; r->p++) {
        if (peek_byte(r, 0) == '_' && (any || after_prefix) && hex_value(peek_byte(r, 1)) >= 0)
            r->p++;
        c = hex_value(peek_byte(r, 0));
        if (c < 0 || (unsigned)c >= base)
            break;
        any = true;
        if (!tnf_ckd_mul(out, *out, base) || !tnf_ckd_add(out, *out, (uint64_t)c))
            return fail_at(r, TNF_EFORMAT, begin, "a number is beyond 64 bits");
    }
    return any || fail_unexpected(r, "a digit");
}

/* Checks the end of a number: neither a letter nor a point may follow, except Python 2's L. */
static bool end_number(parser *r, const uint8_t *begin)
{
    const uint8_t *digits_end = r->p;
    int c = skip_blanks(r);
    if (r->in.longs && c == 'L' && !is_word_char(peek_byte(r, 1))) {
        r->p++;
        return true;
    }
    if (r->p == digits_end && (c == '.' || is_word_char(c)))
        return fail_at(r, TNF_EFORMAT, begin, "a number of the header is not a whole number");
    return true;
}

static np_node *parse_number(parser *r)
{
    np_node *node = new_node(r, NP_INT);
    const uint8_t *begin = r->p;
    if (!node)
        return NULL;
    if (*r->p == '+' || *r->p == '-') {
        node->negative = *r->p++ == '-';
        if (!is_digit(skip_blanks(r))) {
            fail_unexpected(r, "a digit");
            return NULL;
        }
    }
    int kind = *r->p == '0' ? peek_byte(r, 1) | 0x20 : 0;
    unsigned base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    const uint8_t *digits = r->p;
    r->p += base != 10 ? 2 : 0;
    if (!read_digits(r, base, base != 10, &node->number))
        return NULL;
    if (base == 10 && *digits == '0' && node->number != 0) {
        fail_at(r, TNF_EFORMAT, digits, "a number begins with 0");
        return NULL;
    }
    return end_number(r, begin) ? node : NULL;
}

/* ------------------------------------------------------------------- rest */

static np_node *parse_value(parser *r);

static np_node *parse_word(parser *r)
{
    np_node *node = new_node(r, NP_BOOL);
    const uint8_t *begin = r->p;
    while (is_word_char(peek_byte(r, 0)))
        r->p++;
    tnf_str word = { (const char *)begin, (size_t)(r->p - begin) };
    if (node && tnf_str_is(word, "True"))
        node->number = 1;
    else if (!tnf_str_is(word, "False")) {
        fail_at(r, TNF_EFORMAT, begin, "the header is not a literal: it contains the name %s",
                TNF_QUOTED(word));
        return NULL;
    }
    return node;
}

static bool add_item(np_node *list, np_node ***last, np_node *item)
{
    if (!item)
        return false;
    **last = item;
    *last = &item->next;
    list->n++;
    return true;
}

/* Items up to the closing bracket; *comma: a comma followed the last item. */
static bool parse_items(parser *r, np_node *list, char closing, bool *comma)
{
    np_node **last = &list->first;
    *comma = false;
    for (;;) {
        if (skip_blanks(r) == closing) {
            r->p++;
            return true;
        }
        if (list->n && !*comma)
            return fail_unexpected(r, closing == '}'   ? "',' or '}'"
                                      : closing == ']' ? "',' or ']'"
                                                       : "',' or ')'");
        if (!add_item(list, &last, parse_value(r)))
            return false;
        if (closing == '}') {
            if (skip_blanks(r) != ':')
                return fail_unexpected(r, "':'");
            r->p++;
            if (!add_item(list, &last, parse_value(r)))
                return false;
        }
        *comma = skip_blanks(r) == ',';
        r->p += *comma;
    }
}

static np_node *parse_bracket(parser *r, int opening)
{
    np_node *node = new_node(r, opening == '(' ? NP_TUPLE : opening == '[' ? NP_LIST : NP_DICT);
    bool comma;
    if (!node)
        return NULL;
    if (r->depth == MAX_DEPTH) {
        fail_at(r, TNF_ELIMIT, r->p, "the header is nested deeper than %u levels", MAX_DEPTH);
        return NULL;
    }
    r->depth++;
    r->p++;
    if (!parse_items(r, node, opening == '(' ? ')' : opening == '[' ? ']' : '}', &comma))
        return NULL;
    r->depth--;
    /* Parentheses around one item without a comma do not make a tuple. */
    return opening == '(' && node->n == 1 && !comma ? node->first : node;
}

static np_node *parse_value(parser *r)
{
    int c = skip_blanks(r);
    if (c == '(' || c == '[' || c == '{')
        return parse_bracket(r, c);
    if (string_prefix(r) >= 0)
        return parse_string(r);
    if (is_digit(c) || c == '+' || c == '-')
        return parse_number(r);
    if (c < 0x80 && is_word_char(c))
        return parse_word(r);
    fail_unexpected(r, "a value");
    return NULL;
}

tnf_status tnf_np_parse(np_node **out, const np_source *text, tnf_arena *arena, tnf_error *e)
{
    parser r = { .in = *text, .p = text->p, .end = text->p + text->n, .arena = arena, .e = e };
    const uint8_t *nul = text->n ? memchr(text->p, 0, text->n) : NULL;
    size_t bad;
    if (nul)
        return tnf_fail(e, TNF_EFORMAT, position_of(&r, nul), "the header has a byte 0x00");
    if (!text->latin1 && !tnf_utf8_valid(&bad, (const char *)text->p, text->n))
        return tnf_fail(e, TNF_EFORMAT, text->base + bad, "the header is not UTF-8");
    r.texts = tnf_arena_raw(arena, 2 * (uint64_t)text->n + 1);
    if (!r.texts)
        return tnf_arena_fail(arena, "the header", e);
    *out = parse_value(&r);
    if (*out && skip_blanks(&r) != -1)
        fail_unexpected(&r, "the end of the header");
    return r.status;
}

/* --------------------------------------------------------------- printing */

/* Like Python's str.isprintable(), except for unassigned code points. */
static bool is_printable(uint32_t c)
{
    if (c < 0x7f)
        return c >= 0x20;
    return !(c <= 0xa0 || c == 0xad || c == 0x1680 || (c >= 0x2000 && c <= 0x200f) ||
             (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000 ||
             (c >= 0xe000 && c < 0xf900) || c >= 0xe0000 || tnf_must_escape(c));
}

void tnf_np_print_text(tnf_buf *b, tnf_str text)
{
    bool single = memchr(text.p, '\'', text.n), twice = memchr(text.p, '"', text.n);
    uint8_t quote = single && !twice ? '"' : '\'';
    uint32_t c;
    tnf_buf_u8(b, quote);
    for (size_t i = 0, n; i < text.n && (n = tnf_utf8_next(&c, text.p + i, text.n - i)); i += n) {
        if (c == '\\' || c == quote || c == '\n' || c == '\r' || c == '\t') {
            tnf_buf_u8(b, '\\');
            tnf_buf_u8(b, c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (uint8_t)c);
        } else if (is_printable(c)) {
            tnf_buf_put(b, text.p + i, n);
        } else {
            tnf_buf_printf(b, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        }
    }
    tnf_buf_u8(b, quote);
}

void tnf_np_print(tnf_buf *b, const np_node *node)
{
    switch (node->kind) {
    case NP_STRING:
        tnf_np_print_text(b, node->text);
        return;
    case NP_INT:
        tnf_buf_printf(b, "%s%llu", node->negative && node->number ? "-" : "",
                       (unsigned long long)node->number);
        return;
    case NP_BOOL:
        tnf_buf_puts(b, node->number ? "True" : "False");
        return;
    default: /* dicts are never printed */
        tnf_buf_u8(b, node->kind == NP_LIST ? '[' : '(');
        for (const np_node *item = node->first; item; item = item->next) {
            tnf_np_print(b, item);
            tnf_buf_puts(b, item->next ? ", " : node->kind == NP_TUPLE && node->n == 1 ? "," : "");
        }
        tnf_buf_u8(b, node->kind == NP_LIST ? ']' : ')');
    }
}
