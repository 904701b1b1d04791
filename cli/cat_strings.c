/* SPDX-License-Identifier: MIT */
/* Tensors of strings (layout strings/1): part "offsets" holds n+1 numbers, part "bytes" the strings
 * one after the other. They are read through a window of offsets and one of bytes, so reading a
 * vocabulary takes few calls and little memory. */
#include "array.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/build.h>
#include <unistd.h>

#define WINDOW      4096u /* strings */
#define LINES_SHOWN 1000u
#define LINES_EDGE  20u

typedef struct strings {
    const tnf_part *offsets, *bytes;
    uint64_t count;
    uint64_t first; /* of the window */
    size_t n;       /* strings in it */
    uint64_t at[WINDOW + 1];
    char *text;
    size_t room;
} strings;

bool is_strings(const tnf_object *object)
{
    return object->layout && !strcmp(tnf_layout_id(object->layout), "strings/1");
}

static tnf_status strings_begin(strings *s, const tnf_object *object, tnf_error *error)
{
    s->offsets = tnf_object_part(object, "offsets");
    s->bytes = tnf_object_part(object, "bytes");
    if (!s->offsets || !s->bytes || s->offsets->type != tnf_type_of(TNF_U64) ||
        s->offsets->nbytes < 8)
        return cat_fail(error, TNF_EFORMAT,
                        "the tensor of strings has no valid parts 'offsets' and 'bytes'");
    s->count = s->offsets->nbytes / 8 - 1;
    return TNF_OK;
}

static tnf_status make_room(strings *s, uint64_t n, tnf_error *error)
{
    if (n <= s->room)
        return TNF_OK;
    char *more = n < SIZE_MAX ? realloc(s->text, (size_t)n) : NULL;
    if (!more)
        return cat_fail(error, TNF_ENOMEM, "out of memory");
    s->text = more;
    s->room = (size_t)n;
    return TNF_OK;
}

static uint64_t little_endian(const unsigned char *p)
{
    uint64_t u = 0;
    for (unsigned b = 8; b-- > 0;)
        u = u << 8 | p[b];
    return u;
}

/* Reads `n` strings from `first` on into the window, or fewer if they have many bytes. */
static tnf_status fill_window(strings *s, uint64_t first, size_t n, tnf_error *error)
{
    unsigned char raw[8 * (WINDOW + 1)];
    s->n = 0;
    tnf_status status = tnf_read_part(raw, 8 * (n + 1), s->offsets, 8 * first, error);
    for (size_t i = 0; status == TNF_OK && i <= n; i++) {
        s->at[i] = little_endian(raw + 8 * i);
        if (s->at[i] > s->bytes->nbytes || (i > 0 && s->at[i] < s->at[i - 1]))
            status = cat_fail(error, TNF_EFORMAT, "the offsets of string %llu are out of range",
                              (unsigned long long)(first + i));
    }
    if (status != TNF_OK)
        return status;
    while (n > 1 && s->at[n] - s->at[0] > BLOCK_BYTES)
        n /= 2;
    uint64_t bytes = s->at[n] - s->at[0];
    if ((status = make_room(s, bytes, error)) == TNF_OK && bytes > 0)
        status = tnf_read_part(s->text, (size_t)bytes, s->bytes, s->at[0], error);
    s->first = first;
    s->n = status == TNF_OK ? n : 0;
    return status;
}

static tnf_status string_at(strings *s, uint64_t i, bool in_order, tnf_str *out, tnf_error *error)
{
    if (i >= s->count)
        return cat_fail(error, TNF_EFORMAT, "there is no string %llu", (unsigned long long)i);
    if (s->n == 0 || i < s->first || i - s->first >= s->n) {
        uint64_t n = in_order ? (s->count - i < WINDOW ? s->count - i : WINDOW) : 1;
        tnf_status status = fill_window(s, i, (size_t)n, error);
        if (status != TNF_OK)
            return status;
    }
    size_t k = (size_t)(i - s->first);
    *out = (tnf_str) { s->n ? s->text + (s->at[k] - s->at[0]) : "",
                       (size_t)(s->at[k + 1] - s->at[k]) };
    if (out->n == 0)
        out->p = "";
    return TNF_OK;
}

/* The index within the tensor of the k-th string of a view, in C order. */
static uint64_t string_position(const view *v, uint64_t k)
{
    uint64_t at = 0, stride = 1;
    for (uint32_t d = v->object.rank; d-- > 0;) {
        const tnf_slice *s = &v->slices[d];
        at += stride * (uint64_t)(s->start + (int64_t)(k % s->count) * s->step);
        k /= s->count;
        stride *= v->object.shape[d];
    }
    return at;
}

typedef tnf_status (*string_user)(void *ctx, tnf_str s);

static tnf_status each_string(const view *v, uint64_t from, uint64_t to, string_user use, void *ctx,
                              tnf_error *error)
{
    strings *s = calloc(1, sizeof *s);
    if (!s)
        return cat_fail(error, TNF_ENOMEM, "out of memory");
    tnf_status status = strings_begin(s, &v->object, error);
    bool in_order = v->object.rank == 1 && v->slices[0].step == 1;
    for (uint64_t k = from; status == TNF_OK && k < to; k++) {
        tnf_str string;
        status = string_at(s, string_position(v, k), in_order, &string, error);
        if (status == TNF_OK)
            status = use(ctx, string);
    }
    free(s->text);
    free(s);
    return status;
}

/* A text with a comma, a quote or a line end is quoted; quotes in it are doubled (RFC 4180). */
void csv_cell(FILE *to, tnf_str s)
{
    bool quoted = false, terminal = isatty(fileno(to));
    for (size_t i = 0; i < s.n && !quoted; i++)
        quoted = s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r';
    if (quoted)
        putc_unlocked('"', to);
    for (size_t i = 0, n; i < s.n; i += n) {
        const char *quote = memchr(s.p + i, '"', s.n - i);
        n = quote ? (size_t)(quote - s.p) - i + 1 : s.n - i;
        if (terminal) /* it must not get control characters from an untrusted file */
            put_safe(to, s.p + i, n, false);
        else
            fwrite(s.p + i, 1, n, to);
        if (quote)
            putc_unlocked('"', to);
    }
    if (quoted)
        putc_unlocked('"', to);
}

/* How strings are shown. Strings that are MessagePack are shown as JSON. */
typedef struct string_show {
    json *j; /* NULL: one line each, on `to` */
    FILE *to;
    bool csv, packed;
    tnf_builder *builder; /* unpacks some values, and is replaced */
    size_t unpacked;
    tnf_error *error;
} string_show;

/* What is not one MessagePack value is shown as it is. */
static bool unpack_string(string_show *v, tnf_value *out, tnf_str s)
{
    *out = (tnf_value) { .kind = TNF_NULL };
    if (v->unpacked++ % WINDOW == 0) {
        tnf_builder_free(v->builder);
        v->builder = NULL;
    }
    if (!v->builder && tnf_builder_new(&v->builder, NULL, NULL) != TNF_OK)
        return false;
    return s.n == 0 || tnf_builder_unpack(out, v->builder, s.p, s.n, NULL) == TNF_OK;
}

static void put_string(string_show *v, tnf_str s)
{
    if (v->j)
        json_str(v->j, s);
    else if (v->csv)
        csv_cell(v->to, s);
    else
        put_name(v->to, s);
}

static tnf_status put_unpacked(string_show *v, const tnf_value *value)
{
    tnf_str text = { NULL, 0 };
    char *memory = NULL;
    json line = { v->csv ? open_memstream(&memory, &text.n) : v->to, false };
    if (!line.to)
        return cat_fail(v->error, TNF_ENOMEM, "out of memory");
    json_value(v->j ? v->j : &line, value);
    if (v->csv && fclose(line.to) != 0)
        return cat_fail(v->error, TNF_ENOMEM, "out of memory");
    text.p = memory;
    if (v->csv)
        csv_cell(v->to, text);
    free(memory);
    return TNF_OK;
}

static tnf_status use_string(void *ctx, tnf_str s)
{
    string_show *v = ctx;
    tnf_value value;
    tnf_status status = TNF_OK;
    if (v->packed && unpack_string(v, &value, s))
        status = put_unpacked(v, &value);
    else
        put_string(v, s);
    if (!v->j)
        putc_unlocked('\n', v->to);
    return status;
}

/* Shows the strings from..to of a view. */
static tnf_status show_strings(string_show how, const view *v, uint64_t from, uint64_t to,
                               tnf_error *error)
{
    const tnf_value *packed = tnf_value_get(v->object.attrs, "tenfold.messagepack");
    how.packed = packed && packed->kind == TNF_BOOL && packed->as.b;
    how.error = error;
    tnf_status status = each_string(v, from, to, use_string, &how, error);
    tnf_builder_free(how.builder);
    return status;
}

tnf_status csv_strings(FILE *to, const view *v, tnf_error *error)
{
    return show_strings((string_show) { .to = to, .csv = true }, v, 0, v->elements, error);
}

tnf_status json_strings(json *j, const view *v, tnf_error *error)
{
    return show_strings((string_show) { .j = j, .to = j->to }, v, 0, v->elements, error);
}

tnf_status put_strings(FILE *to, const view *v, bool all, tnf_error *error)
{
    const string_show lines = { .to = to };
    if (all || v->elements <= LINES_SHOWN)
        return show_strings(lines, v, 0, v->elements, error);
    tnf_status status = show_strings(lines, v, 0, LINES_EDGE, error);
    fputs("...\n", to);
    if (status == TNF_OK)
        status = show_strings(lines, v, v->elements - LINES_EDGE, v->elements, error);
    return status;
}
