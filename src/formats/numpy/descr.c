/* SPDX-License-Identifier: MIT */
/* Maps descriptors to types, by tables. The first character is the byte order: < little, > big, =
 * native (read as little), | irrelevant. NumPy accepts any of them, or none, before a code, but
 * none before a long name. */
#include "formats/numpy/descr.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ITEM 0x7fffffffu /* bytes of an element: an int in NumPy */

/* Codes of numbers, and Tenfold's types. */
static const struct {
    const char *code, *id;
} numbers[] = {
    { "b1", "bool" }, { "i1", "i8" },  { "i2", "i16" }, { "i4", "i32" },   { "i8", "i64" },
    { "u1", "u8" },   { "u2", "u16" }, { "u4", "u32" }, { "u8", "u64" },   { "f2", "f16" },
    { "f4", "f32" },  { "f8", "f64" }, { "c8", "c64" }, { "c16", "c128" },
};

/* Other spellings. Those of one letter may have a byte order before them. */
static const struct {
    const char *word, *code;
} words[] = {
    { "?", "b1" },           { "b", "i1" },         { "B", "u1" },
    { "h", "i2" },           { "H", "u2" },         { "i", "i4" },
    { "I", "u4" },           { "l", "i8" },         { "L", "u8" },
    { "q", "i8" },           { "Q", "u8" },         { "p", "i8" },
    { "P", "u8" },           { "e", "f2" },         { "f", "f4" },
    { "d", "f8" },           { "F", "c8" },         { "D", "c16" },
    { "g", "f16" },          { "G", "c32" },        { "c", "S1" },
    { "bool", "b1" },        { "int8", "i1" },      { "int16", "i2" },
    { "int32", "i4" },       { "int64", "i8" },     { "uint8", "u1" },
    { "uint16", "u2" },      { "uint32", "u4" },    { "uint64", "u8" },
    { "float16", "f2" },     { "half", "f2" },      { "float32", "f4" },
    { "single", "f4" },      { "float64", "f8" },   { "float", "f8" },
    { "double", "f8" },      { "complex64", "c8" }, { "complex128", "c16" },
    { "longdouble", "f16" }, { "int", "i8" },       { "clongdouble", "c32" },
    { "object", "O" },
};

/* The names of ml_dtypes. NULL: Tenfold has no such type; an element takes a byte. */
static const struct {
    const char *word, *id;
} ml_names[] = {
    { "bfloat16", "bf16" },
    { "float8_e4m3fn", "f8_e4m3fn" },
    { "float8_e5m2", "f8_e5m2" },
    { "float8_e4m3fnuz", "f8_e4m3fnuz" },
    { "float8_e5m2fnuz", "f8_e5m2fnuz" },
    { "float8_e8m0fnu", "f8_e8m0" },
    { "float8_e4m3b11fnuz", NULL },
    { "float8_e4m3", NULL },
    { "float8_e3m4", NULL },
    { "float6_e2m3fn", NULL },
    { "float6_e3m2fn", NULL },
    { "float4_e2m1fn", NULL },
    { "int4", NULL },
    { "uint4", NULL },
    { "int2", NULL },
    { "uint2", NULL },
    { "int1", NULL },
    { "uint1", NULL },
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

const char *tnf_np_descr_of(const tnf_type *type, bool ml_dtypes)
{
    static const char marked[][5] = { "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2",
                                      "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16" };
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strcmp(numbers[i].id, type->id) == 0)
            return marked[i];
    if (strcmp(type->id, "bf16") == 0)
        return "<V2";
    if (strncmp(type->id, "f8_", 3) == 0)
        return !ml_dtypes ? "|V1" : strcmp(type->id, "f8_e5m2") == 0 ? "<f1" : "<V1";
    return NULL;
}

/* ------------------------------------------------------------------- text */

static void spell_type(np_type *t, char mark, tnf_str rest)
{
    snprintf(t->text, sizeof t->text, "%c%.*s", mark, (int)rest.n, rest.p);
}

/* An element that is a row of n bytes or code points. */
static void row_of(np_type *t, tnf_dtype dtype, uint64_t n)
{
    t->type = tnf_type_of(dtype);
    t->axes[0] = n;
    t->naxes = 1;
    t->width = n * tnf_dtype_size(dtype);
    t->keep_descr = true;
}

static bool number_code(np_type *t, char mark, tnf_str code)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        if (!tnf_str_is(code, numbers[i].code))
            continue;
        t->type = tnf_type_named(numbers[i].id);
        t->width = t->type->bits / 8;
        t->big = mark == '>' && t->width > 1;
        t->keep_descr = t->big;
        spell_type(t, t->width == 1 ? '|' : t->big ? '>' : '<', code);
        return true;
    }
    return false;
}

/* Codes of ml_dtypes, and machine-dependent floats. Their bytes are never reversed. */
static bool special_code(np_type *t, char mark, tnf_str code)
{
    static const char *const extended[] = { "f12", "f16", "c24", "c32" };
    if (mark == '<' && tnf_str_is(code, "f1")) {
        t->type = tnf_type_named("f8_e5m2");
        t->width = 1;
        t->keep_descr = true;
        spell_type(t, '<', code);
        return true;
    }
    for (size_t i = 0; i < COUNT(extended); i++)
        if (tnf_str_is(code, extended[i])) {
            row_of(t, TNF_U8, strtoul(extended[i] + 1, NULL, 10));
            spell_type(t, mark == '>' ? '>' : '<', code);
            return true;
        }
    return false;
}

/* Digits up to the end; no digits count as 0. */
static bool count_of(tnf_str digits, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9' || *out > MAX_ITEM)
            return false;
        *out = *out * 10 + (uint64_t)(digits.p[i] - '0');
    }
    return true;
}

static void void_of(np_type *t, const np_context *x, char mark, uint64_t n)
{
    const tnf_type *as = n == 1 ? x->v1 : n == 2 ? x->v2 : NULL;
    bool ml = mark == '<' && (n == 1 || n == 2); /* plain void is written with | */
    if (n == 2 && ml)
        as = tnf_type_named("bf16");
    row_of(t, TNF_U8, n);
    snprintf(t->text, sizeof t->text, "%cV%llu", ml ? '<' : '|', (unsigned long long)n);
    if (as) {
        t->type = as;
        t->naxes = 0;
        t->keep_descr = false;
    }
}

/* S5, a5, U5, V5. */
static bool text_code(np_type *t, const np_context *x, char mark, tnf_str code)
{
    uint64_t n;
    char kind = code.n ? code.p[0] : 0;
    bool points = kind == 'U';
    if (!kind || !strchr("SaUV", kind) || !count_of((tnf_str) { code.p + 1, code.n - 1 }, &n) ||
        n * (points ? 4 : 1) > MAX_ITEM)
        return false;
    if (kind == 'V') {
        void_of(t, x, mark, n);
        return true;
    }
    row_of(t, points ? TNF_U32 : TNF_U8, n);
    t->big = points && mark == '>';
    snprintf(t->text, sizeof t->text, "%c%c%llu",
             !points  ? '|'
             : t->big ? '>'
                      : '<',
             points ? 'U' : 'S', (unsigned long long)n);
    return true;
}

/* "[25us]", or nothing. A multiplier of 1 is left out of *unit. */
static bool unit_of(tnf_str s, char unit[16])
{
    static const char *const units[] = { "Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                         "ms", "us", "ns", "ps", "fs", "as", "generic" };
    unit[0] = 0;
    if (s.n == 0)
        return true;
    if (s.n < 3 || s.p[0] != '[' || s.p[s.n - 1] != ']')
        return false;
    uint64_t times;
    size_t digits = 0;
    while (s.p[1 + digits] >= '0' && s.p[1 + digits] <= '9')
        digits++;
    tnf_str word = { s.p + 1 + digits, s.n - 2 - digits };
    if (!count_of((tnf_str) { s.p + 1, digits }, &times) || times > MAX_ITEM ||
        (digits && times == 0))
        return false;
    for (size_t i = 0; i < COUNT(units); i++) {
        if (!tnf_str_is(word, units[i]))
            continue;
        if (tnf_str_is(word, "generic"))
            return digits == 0;
        if (times > 1)
            return snprintf(unit, 16, "[%llu%s]", (unsigned long long)times, units[i]) < 16;
        return snprintf(unit, 16, "[%s]", units[i]) < 16;
    }
    return false;
}

static bool time_code(np_type *t, char mark, tnf_str code)
{
    static const struct {
        const char *word;
        char kind;
        bool is_long;
    } kinds[] = { { "M8", 'M', false },
                  { "m8", 'm', false },
                  { "datetime64", 'M', true },
                  { "timedelta64", 'm', true } };
    char unit[16];
    for (size_t i = 0; i < COUNT(kinds); i++) {
        size_t n = strlen(kinds[i].word);
        if (code.n < n || memcmp(code.p, kinds[i].word, n) != 0 || (mark && kinds[i].is_long) ||
            !unit_of((tnf_str) { code.p + n, code.n - n }, unit))
            continue;
        t->type = tnf_type_of(TNF_I64);
        t->width = 8;
        t->big = mark == '>';
        t->keep_descr = true;
        snprintf(t->text, sizeof t->text, "%c%c8%s", t->big ? '>' : '<', kinds[i].kind, unit);
        return true;
    }
    return false;
}

static bool ml_name(np_type *t, tnf_str name)
{
    for (size_t i = 0; i < COUNT(ml_names); i++) {
        if (!tnf_str_is(name, ml_names[i].word))
            continue;
        row_of(t, TNF_U8, 1);
        spell_type(t, '<', (tnf_str) { "V1", 2 });
        if (ml_names[i].id) {
            t->type = tnf_type_named(ml_names[i].id);
            t->naxes = 0;
            t->width = t->type->bits / 8;
            t->keep_descr = t->width == 1; /* otherwise read back as bytes */
            snprintf(t->text, sizeof t->text, "%s",
                     t->keep_descr ? ml_names[i].word : tnf_np_descr_of(t->type, true));
        }
        return true;
    }
    return false;
}

static bool plain_text(np_type *t, const np_context *x, tnf_str s)
{
    bool marked = s.n && strchr("<>=|", s.p[0]);
    char mark = marked ? s.p[0] : 0;
    tnf_str code = { s.p + marked, s.n - marked };
    for (size_t i = 0; i < COUNT(words); i++)
        if (tnf_str_is(code, words[i].word) && (code.n == 1 || !marked)) {
            code = (tnf_str) { words[i].code, strlen(words[i].code) };
            break;
        }
    if (tnf_str_is(code, "O") || tnf_str_is(code, "O8") || tnf_str_is(code, "O4")) {
        row_of(t, TNF_U8, 0);
        t->object = true;
        spell_type(t, '|', (tnf_str) { "O", 1 });
        return true;
    }
    return number_code(t, mark, code) || special_code(t, mark, code) ||
           text_code(t, x, mark, code) || time_code(t, mark, code) || (!marked && ml_name(t, code));
}

static tnf_status resolve_text(np_type *t, const np_context *x, const np_node *node, tnf_error *e)
{
    tnf_str s = node->text;
    if (s.n < sizeof t->text && !memchr(s.p, 0, s.n) && plain_text(t, x, s))
        return TNF_OK;
    return tnf_fail(e, TNF_EUNSUPPORTED, node->at, "the type %s is not known", TNF_QUOTED(s));
}

/* -------------------------------------------------------- lists and tuples */

static tnf_status resolve_node(np_type *t, const np_context *x, const np_node *node, tnf_error *e);

static tnf_status get_dimension(uint64_t *out, const np_node *node, tnf_error *e)
{
    if (node->kind != NP_INT || (node->negative && node->number) || node->number > MAX_ITEM)
        return tnf_fail(e, TNF_EFORMAT, node->at,
                        "a dimension of a type is not a number below 2^31");
    *out = node->number;
    return TNF_OK;
}

/* Adds the shape of a subarray, a number or a tuple, before the type's own dimensions. */
static tnf_status add_axes(np_type *t, const np_node *shape, tnf_error *e)
{
    uint64_t axes[NP_AXES];
    uint32_t n = 0;
    if (shape->kind != NP_INT && shape->kind != NP_TUPLE)
        return tnf_fail(e, TNF_EFORMAT, shape->at, "the shape of a type is not a tuple");
    for (const np_node *d = shape->kind == NP_INT ? shape : shape->first; d; d = d->next) {
        if (n + t->naxes >= NP_AXES)
            return tnf_fail(e, TNF_ELIMIT, d->at, "a type has more than %u dimensions", NP_AXES);
        TNF_TRY(get_dimension(&axes[n++], d, e));
        t->width *= axes[n - 1]; /* both below 2^31 */
        if (t->width > MAX_ITEM)
            return tnf_fail(e, TNF_EFORMAT, d->at, "an element has more than 2^31 bytes");
        if (shape->kind == NP_INT)
            break; /* the next node does not belong to the shape */
    }
    memmove(t->axes + n, t->axes, t->naxes * sizeof *axes);
    memcpy(t->axes, axes, n * sizeof *axes);
    t->naxes += n;
    return TNF_OK;
}

static bool is_text(const np_node *node)
{
    return node->kind == NP_STRING;
}

/* ("name", descr), ("name", descr, shape), (("title", "name"), descr …) */
static tnf_status resolve_field(np_type *t, const np_context *x, const np_node *field, tnf_error *e)
{
    const np_node *name = field->first;
    bool whole = (field->kind == NP_TUPLE || field->kind == NP_LIST) && /* NumPy accepts both */
                 (field->n == 2 || field->n == 3);
    bool named = whole && (is_text(name) || (name->kind == NP_TUPLE && name->n == 2 &&
                                             is_text(name->first) && is_text(name->first->next)));
    if (!named)
        return tnf_fail(e, TNF_EFORMAT, field->at, "a field is not a tuple of a name and a type");
    TNF_TRY(resolve_node(t, x, name->next, e));
    return field->n == 3 ? add_axes(t, name->next->next, e) : TNF_OK;
}

static int by_text(const void *a, const void *b)
{
    return tnf_str_compare((*(const np_node *const *)a)->text, (*(const np_node *const *)b)->text);
}

/* Names and titles must be unique. Nameless padding may occur repeatedly. */
static tnf_status check_names(const np_context *x, const np_node *list, tnf_error *e)
{
    const np_node **names = tnf_arena_array(x->arena, 2 * (uint64_t)list->n, sizeof *names);
    size_t n = 0;
    if (!names)
        return tnf_arena_fail(x->arena, "the fields of a type", e);
    for (const np_node *field = list->first; field; field = field->next) {
        const np_node *name = field->first, *descr = name->next;
        if (!is_text(name)) {
            names[n++] = name->first;
            names[n++] = name->first->next;
        } else if (name->text.n || !is_text(descr) || !memchr(descr->text.p, 'V', descr->text.n)) {
            names[n++] = name;
        }
    }
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 1; i < n; i++)
        if (by_text(&names[i - 1], &names[i]) == 0)
            return tnf_fail(e, TNF_EFORMAT,
                            names[i]->at > names[i - 1]->at ? names[i]->at : names[i - 1]->at,
                            "the field %s occurs twice", TNF_QUOTED(names[i]->text));
    return TNF_OK;
}

static tnf_status resolve_fields(np_type *t, const np_context *x, const np_node *list, tnf_error *e)
{
    uint64_t width = 0;
    bool object = false;
    for (const np_node *field = list->first; field; field = field->next) {
        np_type part = { 0 };
        TNF_TRY(resolve_field(&part, x, field, e));
        object = object || part.object;
        width += part.width;
        if (width > MAX_ITEM)
            return tnf_fail(e, TNF_EFORMAT, field->at, "an element has more than 2^31 bytes");
    }
    TNF_TRY(check_names(x, list, e));
    row_of(t, TNF_U8, width);
    t->object = object;
    return TNF_OK;
}

static tnf_status resolve_node(np_type *t, const np_context *x, const np_node *node, tnf_error *e)
{
    if (node->kind == NP_STRING)
        return resolve_text(t, x, node, e);
    if (node->kind == NP_LIST)
        return resolve_fields(t, x, node, e);
    if (node->kind != NP_TUPLE || node->n != 2)
        return tnf_fail(e, TNF_EFORMAT, node->at,
                        "the type is not a text, a list of fields, or a pair");
    TNF_TRY(resolve_node(t, x, node->first, e));
    t->text[0] = 0;
    t->keep_descr = true;
    return add_axes(t, node->first->next, e);
}

/* ----------------------------------------------------- short structures */

static np_node *text_node(const np_context *x, tnf_str text)
{
    np_node *node = tnf_arena_alloc(x->arena, sizeof *node);
    const char *copy = node ? tnf_arena_str(x->arena, text.p, text.n) : NULL;
    if (!copy)
        return NULL;
    node->kind = NP_STRING;
    node->text = (tnf_str) { copy, text.n };
    return node;
}

/* Reads the next item of "f4,3i2" at *at: its count and its type. False: no more items. */
static bool next_short(np_type *part, uint64_t *times, const np_context *x, tnf_str s, size_t *at)
{
    if (*at > s.n)
        return false;
    const char *comma = memchr(s.p + *at, ',', s.n - *at);
    tnf_str item = { s.p + *at, comma ? (size_t)(comma - s.p) - *at : s.n - *at };
    size_t digits = 0;
    while (digits < item.n && item.p[digits] >= '0' && item.p[digits] <= '9')
        digits++;
    *at += item.n + 1;
    *part = (np_type) { 0 };
    return count_of((tnf_str) { item.p, digits }, times) && *times <= MAX_ITEM &&
           plain_text(part, x, (tnf_str) { item.p + digits, item.n - digits });
}

/* ("f0", code, times); NULL: out of memory. */
static np_node *short_field(const np_context *x, size_t i, const np_type *part, uint64_t times)
{
    char name[24];
    snprintf(name, sizeof name, "f%zu", i);
    np_node *field = tnf_arena_alloc(x->arena, 2 * sizeof *field);
    np_node *first = text_node(x, (tnf_str) { name, strlen(name) });
    np_node *second = text_node(x, (tnf_str) { part->text, strlen(part->text) });
    if (!field || !first || !second)
        return NULL;
    field[0] = (np_node) { .kind = NP_TUPLE, .n = times > 1 ? 3 : 2, .first = first };
    field[1] = (np_node) { .kind = NP_INT, .number = times };
    first->next = second;
    second->next = times > 1 ? &field[1] : NULL;
    return field;
}

/* Is the text of the form "f4,3i2"? NumPy reads it as a list of fields, although no program writes
 * it. */
static bool is_short(const np_context *x, tnf_str s)
{
    np_type part;
    uint64_t times;
    size_t at = 0;
    if (s.n >= sizeof part.text || memchr(s.p, 0, s.n))
        return false;
    while (at <= s.n)
        if (!next_short(&part, &times, x, s, &at))
            return false;
    return true;
}

/* The list of fields; NULL: out of memory. */
static np_node *short_list(const np_context *x, tnf_str s)
{
    np_type part;
    uint64_t times;
    size_t at = 0;
    np_node *list = tnf_arena_alloc(x->arena, sizeof *list), **last = list ? &list->first : NULL;
    for (; list && next_short(&part, &times, x, s, &at); list->n++) {
        *last = short_field(x, list->n, &part, times);
        if (!*last)
            return NULL;
        last = &(*last)->next;
    }
    if (list)
        list->kind = NP_LIST;
    return list;
}

tnf_status tnf_np_resolve(np_type *out, const np_context *x, const np_node *descr, tnf_error *e)
{
    *out = (np_type) { 0 };
    tnf_status status = resolve_node(out, x, descr, e);
    if (status != TNF_EUNSUPPORTED || !x->r || descr->kind != NP_STRING ||
        !is_short(x, descr->text))
        return status;
    TNF_TRY(tnf_stricter(x->r, e, TNF_EFORMAT, descr->at,
                         "the type %s is a structure in the short form, which no program writes",
                         TNF_QUOTED(descr->text)));
    const np_node *list = short_list(x, descr->text);
    if (!list)
        return tnf_arena_fail(x->arena, "a type", e);
    TNF_TRY(resolve_node(out, x, list, e));
    out->list = list;
    return TNF_OK;
}
