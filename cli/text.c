/* SPDX-License-Identifier: MIT */
/* Text output: UTF-8 and escapes, numbers, sizes, colours. */
#include "out.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int compare_texts(tnf_str a, tnf_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

size_t hex_text(char *out, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 2 * n;
}

size_t shown_bytes(const char *text, size_t n, size_t most)
{
    size_t shown = n < most ? n : most;
    while (shown > 0 && shown < n && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--;
    return shown;
}

bool number_parse(uint64_t *out, const char *text, char **end)
{
    errno = 0;
    *out = strtoull(text, end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9';
}

typedef struct span {
    uint32_t first, last;
} span;

static bool within_spans(const span *spans, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= spans[i].first && c <= spans[i].last)
            return true;
    return false;
}

/* The columns of a character: two for East Asian characters and pictures, none for combining marks.
 * The table is approximate; it is used only for alignment. */
static size_t columns_of(uint32_t c)
{
    static const span wide[] = { { 0x1100, 0x115f },   { 0x2e80, 0x303e },  { 0x3041, 0xa4cf },
                                 { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },  { 0xfe30, 0xfe6f },
                                 { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },  { 0x1f300, 0x1f64f },
                                 { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd } };
    static const span none[] = { { 0x300, 0x36f }, { 0xfe00, 0xfe0f } };
    if (c < 0x300)
        return 1;
    return within_spans(wide, sizeof wide / sizeof *wide, c)   ? 2
           : within_spans(none, sizeof none / sizeof *none, c) ? 0
                                                               : 1;
}

static int escape_character(char out[16], const char *p, size_t length, uint32_t c)
{
    if (length == 0)
        return snprintf(out, 16, "\\x%02x", (unsigned)(unsigned char)*p);
    if (c == '\n' || c == '\t' || c == '\r' || c == '\\')
        return snprintf(out, 16, "\\%c",
                        c == '\n'   ? 'n'
                        : c == '\t' ? 't'
                        : c == '\r' ? 'r'
                                    : '\\');
    return snprintf(out, 16,
                    c < 0x80      ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    (unsigned)c);
}

size_t put_safe(FILE *to, const char *p, size_t n, bool backslash)
{
    size_t columns = 0, from = 0, at = 0;
    while (at < n) {
        uint32_t c = 0;
        char text[16];
        size_t length = tnf_utf8_next(&c, p + at, n - at);
        if (length > 0 && !tnf_must_escape(c) && !(backslash && c == '\\')) {
            columns += columns_of(c);
            at += length;
            continue; /* runs of plain bytes are written at once */
        }
        columns += (size_t)escape_character(text, p + at, length, c);
        if (to) {
            fwrite(p + from, 1, at - from, to);
            fputs(text, to);
        }
        at += length ? length : 1;
        from = at;
    }
    if (to && at > from)
        fwrite(p + from, 1, at - from, to);
    return columns;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* The number after \x, \u or \U, of exactly `digits` hexadecimal digits; -1 if there is none. */
static long hex_digits(const char *p, size_t digits)
{
    char text[9] = { 0 };
    if (strspn(p, "0123456789abcdefABCDEF") < digits)
        return -1;
    memcpy(text, p, digits);
    return strtol(text, NULL, 16);
}

/* Decodes one escape at s to `out`. The result is never longer than the escape. Returns the length
 * of the escape; 0 if there is none. */
static size_t one_escape(char *out, size_t *n, const char *s)
{
    static const char pairs[] = "n\nt\tr\r\\\\";
    long c;
    *n = 1;
    if (s[0] != '\\')
        return 0;
    for (const char *p = pairs; *p; p += 2)
        if (s[1] == *p) {
            *out = p[1];
            return 2;
        }
    if (s[1] == 'x' && (c = hex_digits(s + 2, 2)) >= 0) {
        *out = (char)c; /* a single byte, even if it is not UTF-8 */
        return 4;
    }
    if (s[1] == 'u' && (c = hex_digits(s + 2, 4)) >= 0) {
        *n = put_utf8(out, (uint32_t)c);
        return 6;
    }
    if (s[1] == 'U' && (c = hex_digits(s + 2, 8)) >= 0 && c <= 0x10ffff) {
        *n = put_utf8(out, (uint32_t)c);
        return 10;
    }
    return 0;
}

size_t unescape_text(char *s)
{
    size_t to = 0, from = 0;
    while (s[from]) {
        char bytes[4];
        size_t n, length = one_escape(bytes, &n, s + from);
        if (length == 0) {
            bytes[0] = s[from];
            length = 1;
        }
        memcpy(s + to, bytes, n);
        to += n;
        from += length;
    }
    s[to] = '\0';
    return to;
}

/* Adds a point to a number that looks like an integer, so that -0 and 1 are read as floats. */
static int with_point(char out[NUMBER_TEXT], int n)
{
    if (strpbrk(out, ".enif"))
        return n;
    out[n] = '.';
    out[n + 1] = '0';
    out[n + 2] = '\0';
    return n + 2;
}

/* Any text of up to 6 (15) digits survives a conversion to float (double) and back. So shorter
 * attempts are not needed: %g leaves trailing zeros out. */
int number_f32(char out[NUMBER_TEXT], float f)
{
    int n = 0;
    if (isnan(f))
        return snprintf(out, NUMBER_TEXT, "nan");
    for (int digits = 6; digits <= 9; digits++) {
        n = snprintf(out, NUMBER_TEXT, "%.*g", digits, (double)f);
        if (strtof(out, NULL) == f)
            break;
    }
    return with_point(out, n);
}

int number_f64(char out[NUMBER_TEXT], double f)
{
    int n = 0;
    if (isnan(f))
        return snprintf(out, NUMBER_TEXT, "nan");
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(out, NUMBER_TEXT, "%.*g", digits, f);
        if (strtod(out, NULL) == f)
            break;
    }
    return with_point(out, n);
}

void put_spaces(FILE *to, size_t n)
{
    while (n-- > 0)
        putc_unlocked(' ', to);
}

void grouped_text(char out[GROUPED_TEXT], uint64_t u)
{
    char digits[GROUPED_TEXT] = { 0 };
    size_t at = sizeof digits - 1;
    for (unsigned i = 0; i == 0 || u > 0; i++, u /= 10) {
        if (i > 0 && i % 3 == 0)
            digits[--at] = ',';
        digits[--at] = (char)('0' + u % 10);
    }
    memcpy(out, digits + at, sizeof digits - at);
}

void put_grouped(FILE *to, uint64_t u)
{
    char digits[GROUPED_TEXT];
    grouped_text(digits, u);
    fputs(digits, to);
}

int size_text(char out[SIZE_TEXT], uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1023.95 && unit < 6; unit++)
        size /= 1024;
    return snprintf(out, SIZE_TEXT, "%.*f %s", unit > 0, size, units[unit]);
}

const char *paint_code(const cli_state *cli, paint p)
{
    static const char *const codes[] = { "\033[0m", "\033[1m", "\033[2m", "\033[32m", "\033[31m" };
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool on = cli->color == COLOR_ALWAYS;
    if (cli->color == COLOR_AUTO)
        on = isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
    return on ? codes[p] : "";
}

bool size_parse(uint64_t *out, const char *text)
{
    static const char letters[] = "KMGT";
    char *end;
    uint64_t n, base = 1000;
    if (!number_parse(&n, text, &end))
        return false;
    const char *letter = *end ? strchr(letters, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    if (letter) {
        end++;
        base = *end == 'i' ? 1024 : 1000;
        end += *end == 'i';
    }
    end += *end == 'B' || *end == 'b';
    for (const char *p = letters; letter && p <= letter; p++) {
        if (n > UINT64_MAX / base)
            return false;
        n *= base;
    }
    *out = n;
    return *end == 0 && n > 0;
}
