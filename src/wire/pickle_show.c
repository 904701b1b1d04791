/* SPDX-License-Identifier: MIT */
/* Nodes of a pickle in the style of Python's repr(), and lookups in a tree. */
#include "wire/pickle.h"

#include "base/decimal.h"
#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 16 /* deeper levels are shown as dots */

typedef struct text_out {
    char *p;
    size_t n, size;
} text_out;

static void put_bytes(text_out *t, const char *p, size_t n)
{
    size_t room = t->size - t->n - 1;
    n = n < room ? n : room;
    memcpy(t->p + t->n, p, n);
    t->n += n;
    t->p[t->n] = 0;
}

static void put_text(text_out *t, const char *s)
{
    put_bytes(t, s, strlen(s));
}

static void put_format(text_out *t, const char *format, ...) TNF_PRINTF(2, 3);
static void put_format(text_out *t, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_text(t, text);
}

static bool is_full(const text_out *t)
{
    return t->n + 1 >= t->size;
}

/* Writes the fewest digits that read back as the same number, in Python's notation. */
static void put_float(text_out *t, double v)
{
    char digits[40], *e;
    int precision = 0;
    if (isnan(v) || isinf(v)) {
        put_text(t, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*e", precision, v);
    while (strtod(digits, NULL) != v && ++precision < 17);
    tnf_number_point(digits);
    e = strchr(digits, 'e');
    long exponent = strtol(e + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) {
        snprintf(digits, sizeof digits, "%.*f",
                 precision > exponent ? (int)(precision - exponent) : 1, v);
        tnf_number_point(digits);
        put_text(t, digits);
        return;
    }
    *e = 0;
    put_format(t, "%se%c%02ld", digits, exponent < 0 ? '-' : '+', labs(exponent));
}

/* Writes the bytes of a text or of bytes, in quotes. */
static void put_quoted(text_out *t, const char *p, size_t n, bool bytes)
{
    bool apostrophe = n && memchr(p, '\'', n) && !memchr(p, '"', n);
    char quote = apostrophe ? '"' : '\'';
    put_format(t, "%s%c", bytes ? "b" : "", quote);
    for (size_t i = 0; i < n && !is_full(t);) {
        uint32_t c = (uint8_t)p[i];
        size_t took = bytes ? 1 : tnf_utf8_next(&c, p + i, n - i);
        took = took ? took : 1;
        if (c == (uint8_t)quote || c == '\\')
            put_format(t, "\\%c", (char)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            put_format(t, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (c < 0x20 || c == 0x7f || (took == 1 && c > 0x7f))
            put_format(t, "\\x%02x", (unsigned)c);
        else if (!bytes && tnf_must_escape(c))
            put_format(t, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
        else
            put_bytes(t, p + i, took);
        i += took;
    }
    put_format(t, "%c", quote);
}

static void put_node(text_out *t, const tnf_pickle_node *node, int depth);

static void put_items(text_out *t, const tnf_pickle_node *node, bool pairs, int depth)
{
    for (size_t i = 0; i < node->n && !is_full(t); i++) {
        if (i)
            put_text(t, pairs && i % 2 ? ": " : ", ");
        put_node(t, node->as.items[i], depth);
    }
}

static void put_big(text_out *t, const tnf_pickle_node *node)
{
    put_text(t, "0x");
    for (size_t i = node->n; i-- > 0 && !is_full(t);)
        put_format(t, "%02x", (uint8_t)node->as.s[i]);
}

static void put_scalar(text_out *t, const tnf_pickle_node *node)
{
    switch (node->kind) {
    case TNF_PICKLE_NONE:
        put_text(t, "None");
        break;
    case TNF_PICKLE_BOOL:
        put_text(t, node->as.i ? "True" : "False");
        break;
    case TNF_PICKLE_INT:
        put_format(t, "%lld", (long long)node->as.i);
        break;
    case TNF_PICKLE_BIG:
        put_big(t, node);
        break;
    case TNF_PICKLE_FLOAT:
        put_float(t, node->as.f);
        break;
    case TNF_PICKLE_BYTEARRAY:
        put_text(t, "bytearray(");
        put_quoted(t, node->as.s, node->n, true);
        put_text(t, ")");
        break;
    default:
        put_quoted(t, node->as.s, node->n, node->kind == TNF_PICKLE_BYTES);
    }
}

static void put_call(text_out *t, const tnf_pickle_node *node, int depth)
{
    const tnf_pickle_call *call = node->as.call;
    put_node(t, call->callee, depth);
    put_text(t, "(");
    if (call->args->kind == TNF_PICKLE_TUPLE)
        put_items(t, call->args, false, depth);
    else {
        put_text(t, "*");
        put_node(t, call->args, depth);
    }
    put_text(t, ")");
}

static void put_node(text_out *t, const tnf_pickle_node *node, int depth)
{
    static const char *const open[] = { [TNF_PICKLE_LIST] = "[",
                                        [TNF_PICKLE_TUPLE] = "(",
                                        [TNF_PICKLE_DICT] = "{",
                                        [TNF_PICKLE_SET] = "{",
                                        [TNF_PICKLE_FROZENSET] = "frozenset({",
                                        [TNF_PICKLE_PERSISTENT] = "persistent(" };
    static const char *const close[] = {
        [TNF_PICKLE_LIST] = "]", [TNF_PICKLE_TUPLE] = ")",      [TNF_PICKLE_DICT] = "}",
        [TNF_PICKLE_SET] = "}",  [TNF_PICKLE_FROZENSET] = "})", [TNF_PICKLE_PERSISTENT] = ")"
    };
    if (is_full(t))
        return;
    if (node->kind < TNF_PICKLE_LIST) {
        put_scalar(t, node);
    } else if (depth == DEEPEST) {
        put_text(t, "...");
    } else if (node->kind == TNF_PICKLE_GLOBAL) {
        put_bytes(t, node->as.global->module.p, node->as.global->module.n);
        put_text(t, ".");
        put_bytes(t, node->as.global->name.p, node->as.global->name.n);
    } else if (node->kind == TNF_PICKLE_CALL) {
        put_call(t, node, depth + 1);
    } else {
        put_text(t, open[node->kind]);
        put_items(t, node, node->kind == TNF_PICKLE_DICT, depth + 1);
        put_text(t, node->kind == TNF_PICKLE_TUPLE && node->n == 1 ? ",)" : close[node->kind]);
    }
}

void tnf_pickle_show(char *out, size_t size, const tnf_pickle_node *node)
{
    text_out t = { out, 0, size };
    out[0] = 0;
    put_node(&t, node, 0);
    if (is_full(&t) && size > 4)
        memcpy(out + size - 4, "...", 4);
}

/* --------------------------------------------------------------- looking */

bool tnf_pickle_is_text(const tnf_pickle_node *node, const char *text)
{
    return node && node->kind == TNF_PICKLE_TEXT &&
           tnf_str_is((tnf_str) { node->as.s, node->n }, text);
}

tnf_pickle_node *tnf_pickle_get(const tnf_pickle_node *dict, const char *key)
{
    for (size_t i = dict && dict->kind == TNF_PICKLE_DICT ? dict->n : 0; i > 0; i -= 2)
        if (tnf_pickle_is_text(dict->as.items[i - 2], key))
            return dict->as.items[i - 1];
    return NULL;
}

bool tnf_pickle_is_global(const tnf_pickle_node *node, const char *module, const char *name)
{
    return node && node->kind == TNF_PICKLE_GLOBAL && !node->as.global->computed &&
           tnf_str_is(node->as.global->module, module) && tnf_str_is(node->as.global->name, name);
}

bool tnf_pickle_is_call(const tnf_pickle_node *node, const char *module, const char *name)
{
    return node && node->kind == TNF_PICKLE_CALL &&
           tnf_pickle_is_global(node->as.call->callee, module, name);
}

tnf_pickle_node *tnf_pickle_arg(const tnf_pickle_node *call, size_t i)
{
    const tnf_pickle_node *args = call->as.call->args;
    return args->kind == TNF_PICKLE_TUPLE && i < args->n ? args->as.items[i] : NULL;
}
