/* SPDX-License-Identifier: MIT */
/* The JSON writer. It streams: a comma is due after a value and before the next one, so a single
 * flag is enough state for a document of any depth. */
#include "out.h"
#include <inttypes.h>
#include <string.h>

static void before_value(json *j)
{
    if (j->comma)
        putc_unlocked(',', j->to);
    j->comma = true;
}

void json_open(json *j, char bracket)
{
    before_value(j);
    putc_unlocked(bracket, j->to);
    j->comma = false;
}

void json_close(json *j, char bracket)
{
    putc_unlocked(bracket, j->to);
    j->comma = true;
}

void json_line(json *j)
{
    if (j->comma)
        putc_unlocked(',', j->to);
    fputs("\n  ", j->to);
    j->comma = false;
}

void json_null(json *j)
{
    before_value(j);
    fputs("null", j->to);
}

void json_bool(json *j, bool b)
{
    before_value(j);
    fputs(b ? "true" : "false", j->to);
}

void json_int(json *j, int64_t i)
{
    before_value(j);
    fprintf(j->to, "%" PRId64, i);
}

void json_uint(json *j, uint64_t u)
{
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + u % 10);
    while ((u /= 10) > 0);
    before_value(j);
    fwrite(digits + at, 1, sizeof digits - at, j->to);
}

void json_digits(json *j, const char *number)
{
    before_value(j);
    fputs(number, j->to);
}

/* Writes a number, or its name in quotes if JSON cannot express it. */
static void put_number(json *j, const char *text)
{
    before_value(j);
    if (!strcmp(text, "nan"))
        fputs("\"NaN\"", j->to);
    else if (!strcmp(text, "inf"))
        fputs("\"Infinity\"", j->to);
    else if (!strcmp(text, "-inf"))
        fputs("\"-Infinity\"", j->to);
    else
        fputs(text, j->to);
}

void json_f32(json *j, float f)
{
    char text[NUMBER_TEXT];
    number_f32(text, f);
    put_number(j, text);
}

void json_f64(json *j, double f)
{
    char text[NUMBER_TEXT];
    number_f64(text, f);
    put_number(j, text);
}

static void put_escape(FILE *to, uint32_t c)
{
    static const char letters[] = "btn\0fr";
    if (c == '"' || c == '\\')
        fprintf(to, "\\%c", (int)c);
    else if (c >= '\b' && c <= '\r' && letters[c - '\b'])
        fprintf(to, "\\%c", letters[c - '\b']);
    else if (c < 0x10000)
        fprintf(to, "\\u%04x", (unsigned)c);
    else /* two escapes: a surrogate pair */
        fprintf(to, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                (unsigned)(0xdc00 + (c & 0x3ff)));
}

/* Writes the inside of a JSON string. Runs of plain bytes are written at once. `escaped`: the text
 * is already escaped, so quotes and backslashes stay. */
static void put_characters(FILE *to, const char *p, size_t n, bool escaped)
{
    size_t from = 0, at = 0;
    while (at < n) {
        uint32_t c;
        size_t length = tnf_utf8_next(&c, p + at, n - at);
        if (length == 0)
            break;
        bool plain = !tnf_must_escape(c) && (escaped || (c != '"' && c != '\\'));
        if (!plain) {
            fwrite(p + from, 1, at - from, to);
            put_escape(to, c);
            from = at + length;
        }
        at += length;
    }
    fwrite(p + from, 1, at - from, to);
}

static void put_quoted(FILE *to, const char *p, size_t n)
{
    putc_unlocked('"', to);
    put_characters(to, p, n, false);
    putc_unlocked('"', to);
}

static const char base64_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(FILE *to, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t three = (uint32_t)p[i] << 16;
        if (i + 1 < n)
            three |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n)
            three |= p[i + 2];
        putc_unlocked(base64_letters[three >> 18], to);
        putc_unlocked(base64_letters[three >> 12 & 63], to);
        putc_unlocked(i + 1 < n ? base64_letters[three >> 6 & 63] : '=', to);
        putc_unlocked(i + 2 < n ? base64_letters[three & 63] : '=', to);
    }
}

bool base64_take(char *out, size_t *made, const char *text, size_t n)
{
    uint32_t bits = 0;
    size_t end = n;
    *made = 0;
    while (end > 0 && n - end < 2 && text[end - 1] == '=')
        end--;
    for (size_t i = 0; i < end; i++) {
        const char *digit = text[i] ? strchr(base64_letters, text[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - base64_letters);
        if (i % 4 > 0)
            out[(*made)++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return end % 4 != 1;
}

void json_bytes(json *j, const void *bytes, size_t n)
{
    before_value(j);
    fputs("{\"$bytes\":\"", j->to);
    put_base64(j->to, bytes, n);
    fputs("\"}", j->to);
}

void json_str(json *j, tnf_str s)
{
    if (!tnf_utf8_valid(NULL, s.p, s.n)) {
        json_bytes(j, s.p, s.n);
        return;
    }
    before_value(j);
    put_quoted(j->to, s.p, s.n);
}

void json_text(json *j, const char *s)
{
    if (s)
        json_str(j, (tnf_str) { s, strlen(s) });
    else
        json_null(j);
}

void json_key_bytes(json *j, tnf_str key)
{
    before_value(j);
    if (tnf_utf8_valid(NULL, key.p, key.n)) {
        put_quoted(j->to, key.p, key.n);
    } else { /* a key can only be a string */
        fputs("\"$bytes:", j->to);
        put_base64(j->to, key.p, key.n);
        putc_unlocked('"', j->to);
    }
    putc_unlocked(':', j->to);
    j->comma = false;
}

void json_key(json *j, const char *key)
{
    before_value(j);
    putc_unlocked('"', j->to);
    fputs(key, j->to);
    fputs("\":", j->to);
    j->comma = false;
}

void json_words(json *j, const char *words)
{
    if (!words) {
        json_null(j);
        return;
    }
    json_open(j, '[');
    for (const char *p = words + strspn(words, " "); *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        json_str(j, (tnf_str) { p, n });
        p += n;
    }
    json_close(j, ']');
}

void json_document(json *j, tnf_str document)
{
    const char *p = document.p, *end = p + document.n;
    if (!tnf_utf8_valid(NULL, p, document.n)) {
        json_bytes(j, p, document.n);
        return;
    }
    before_value(j);
    while (p < end) {
        if (*p == '"') {
            const char *from = p++;
            while (p < end && *p != '"')
                p += *p == '\\' && end - p > 1 ? 2 : 1;
            p += p < end;
            put_characters(j->to, from, (size_t)(p - from), true);
        } else {
            if (!strchr(" \t\r\n", *p))
                putc_unlocked(*p, j->to);
            p++;
        }
    }
}
