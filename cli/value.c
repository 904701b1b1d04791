/* SPDX-License-Identifier: MIT */
/* Prints attribute trees, as JSON and as text. */
#include "out.h"
#include <inttypes.h>
#include <string.h>

/* Readers limit the depth of trees; this is a second safeguard. */
#define DEEPEST     256u
/* The limits for long arrays and strings in text output, unless all is requested. */
#define ITEMS_SHOWN 16u
#define CHARS_SHOWN 160u

static tnf_str bytes_of(const tnf_value *v)
{
    return (tnf_str) { v->as.s, v->n };
}

static void value_at(json *j, const tnf_value *v, unsigned depth)
{
    switch (depth < DEEPEST ? (tnf_kind)v->kind : TNF_NULL) {
    case TNF_NULL:
        json_null(j);
        break;
    case TNF_BOOL:
        json_bool(j, v->as.b);
        break;
    case TNF_INT:
        json_int(j, v->as.i);
        break;
    case TNF_UINT:
        json_uint(j, v->as.u);
        break;
    case TNF_FLOAT:
        if (v->dtype == TNF_F32)
            json_f32(j, v->as.f32);
        else
            json_f64(j, v->as.f64);
        break;
    case TNF_STRING:
        json_str(j, bytes_of(v));
        break;
    case TNF_BYTES:
        json_bytes(j, v->as.s, v->n);
        break;
    case TNF_JSON:
        json_document(j, bytes_of(v));
        break;
    case TNF_ARRAY:
        json_open(j, '[');
        for (size_t i = 0; i < v->n; i++)
            value_at(j, &v->as.items[i], depth + 1);
        json_close(j, ']');
        break;
    case TNF_MAP:
        json_open(j, '{');
        for (size_t i = 0; i < v->n; i++) {
            json_key_bytes(j, v->as.members[i].key);
            value_at(j, &v->as.members[i].value, depth + 1);
        }
        json_close(j, '}');
        break;
    }
}

void json_value(json *j, const tnf_value *value)
{
    static const tnf_value empty = { .kind = TNF_MAP };
    value_at(j, value ? value : &empty, 0);
}

/* ------------------------------------------------------------- for people */

/* Prints a JSON document over several lines. The document is valid, so the code looks only at
 * brackets, commas, colons and quotes. */
static void put_document(FILE *to, tnf_str d, unsigned indent)
{
    unsigned depth = 0;
    for (const char *p = d.p, *end = p + d.n; p < end; p++) {
        if (strchr(" \t\r\n", *p))
            continue;
        const char *next = p + 1;
        while (next < end && strchr(" \t\r\n", *next))
            next++;
        if (*p == '"') {
            const char *from = p++;
            while (p < end && *p != '"')
                p += *p == '\\' && end - p > 1 ? 2 : 1;
            put_safe(to, from, (size_t)((p < end ? p + 1 : end) - from), false);
        } else if (*p == '{' || *p == '[') {
            putc_unlocked(*p, to);
            if (next < end && (*next == '}' || *next == ']')) {
                putc_unlocked(*next, to);
                p = next;
                continue;
            }
            depth++;
            putc_unlocked('\n', to);
            put_spaces(to, indent + 2 * depth);
        } else if (*p == '}' || *p == ']') {
            depth -= depth > 0;
            putc_unlocked('\n', to);
            put_spaces(to, indent + 2 * depth);
            putc_unlocked(*p, to);
        } else {
            putc_unlocked(*p, to);
            if (*p == ',') {
                putc_unlocked('\n', to);
                put_spaces(to, indent + 2 * depth);
            } else if (*p == ':') {
                putc_unlocked(' ', to);
            }
        }
    }
}

static bool has_lines(const tnf_value *v)
{
    const char *line = v->kind == TNF_STRING ? memchr(v->as.s, '\n', v->n) : NULL;
    return line && line + 1 < v->as.s + v->n;
}

/* Prints text of several lines as lines, each made safe. Long text is cut. */
static void put_lines(FILE *to, const tnf_value *v, unsigned indent, bool all)
{
    const char *p = v->as.s, *end = p + v->n, *line;
    bool lines = has_lines(v);
    if (!lines && !all && v->n > CHARS_SHOWN) {
        put_safe(to, p, CHARS_SHOWN, false);
        fprintf(to, "... (%zu bytes)", v->n);
        return;
    }
    for (; lines && (line = memchr(p, '\n', (size_t)(end - p))); p = line + 1) {
        putc_unlocked('\n', to);
        put_spaces(to, indent);
        put_safe(to, p, (size_t)(line - p), false);
        if (line + 1 == end)
            return;
    }
    if (lines) {
        putc_unlocked('\n', to);
        put_spaces(to, indent);
    }
    put_safe(to, p, (size_t)(end - p), false);
}

static void put_value(FILE *to, const tnf_value *v, unsigned indent, unsigned depth, bool all);

static void put_items(FILE *to, const tnf_value *v, unsigned indent, unsigned depth, bool all)
{
    size_t shown = all || v->n <= ITEMS_SHOWN ? v->n : ITEMS_SHOWN;
    putc_unlocked('[', to);
    for (size_t i = 0; i < shown; i++) {
        if (i > 0)
            fputs(", ", to);
        put_value(to, &v->as.items[i], indent + 2, depth + 1, all);
    }
    if (shown < v->n)
        fprintf(to, ", ... (%zu items)", v->n);
    putc_unlocked(']', to);
}

static void put_members(FILE *to, const tnf_value *v, unsigned indent, unsigned depth, bool all)
{
    for (size_t i = 0; i < v->n; i++) {
        const tnf_value *value = &v->as.members[i].value;
        bool below = (value->kind == TNF_MAP && value->n > 0) || has_lines(value);
        if (i > 0 || depth > 0)
            putc_unlocked('\n', to);
        put_spaces(to, indent);
        put_name(to, v->as.members[i].key);
        fputs(below ? ":" : ": ", to);
        put_value(to, value, indent + 2, depth + 1, all);
    }
    if (v->n == 0)
        fputs("{}", to);
}

static void put_value(FILE *to, const tnf_value *v, unsigned indent, unsigned depth, bool all)
{
    json plain = { to, false };
    switch (depth < DEEPEST ? (tnf_kind)v->kind : TNF_NULL) {
    case TNF_STRING:
        put_lines(to, v, indent, all);
        break;
    case TNF_BYTES:
        fprintf(to, "(%zu bytes)", v->n);
        break;
    case TNF_JSON:
        put_document(to, bytes_of(v), indent - 2);
        break;
    case TNF_ARRAY:
        put_items(to, v, indent, depth, all);
        break;
    case TNF_MAP:
        put_members(to, v, indent, depth, all);
        break;
    default:
        value_at(&plain, v, depth);
    }
}

void put_attrs(FILE *to, const tnf_value *attrs, unsigned indent, bool all)
{
    put_members(to, attrs, indent, 0, all);
    putc_unlocked('\n', to);
}

/* ---------------------------------------------------------------- objects */

bool is_dense(const tnf_object *object)
{
    return !strcmp(tnf_layout_id(object->layout), "dense");
}

/* The type of a tensor of several parts is that of the part with its numbers. */
const tnf_type *object_type(const tnf_object *object)
{
    static const char *const roles[] = { "data", "values", "codebooks", "bytes" };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const tnf_part *part = tnf_object_part(object, roles[i]);
        if (part)
            return part->type;
    }
    return object->nparts > 0 ? object->parts[0].type : tnf_type_of(TNF_U8);
}

void json_tensor_head(json *j, const tnf_object *o)
{
    json_key(j, "name");
    json_str(j, o->name);
    json_key(j, "dtype");
    json_text(j, object_type(o)->id);
    json_key(j, "shape");
    json_open(j, '[');
    for (uint32_t i = 0; i < o->rank; i++)
        json_uint(j, o->shape[i]);
    json_close(j, ']');
}

const char *object_kind(const tnf_object *object)
{
    return is_dense(object) ? object_type(object)->id : tnf_layout_name(object->layout);
}

bool object_unknown(const tnf_object *object)
{
    return object->nparts == 0 && tnf_missing_file(object);
}

uint64_t object_bytes(const tnf_object *object)
{
    uint64_t sum = 0;
    for (uint16_t i = 0; i < object->nparts; i++)
        sum += object->parts[i].nbytes;
    return sum;
}

/* The words of a vocabulary are not parameters. */
uint64_t object_parameters(const tnf_object *o)
{
    return strcmp(tnf_layout_id(o->layout), "strings/1") != 0 ? tnf_elements(o) : 0;
}

void shape_text(char out[SHAPE_TEXT], const tnf_object *o)
{
    size_t n = 1;
    out[0] = '[';
    for (uint32_t i = 0; i < o->rank && n + 32 < SHAPE_TEXT; i++)
        n += (size_t)snprintf(out + n, 32, "%s%" PRIu64, i > 0 ? ", " : "", o->shape[i]);
    out[n] = ']';
    out[n + 1] = '\0';
}
