/* SPDX-License-Identifier: MIT */
/* Wraps long lines at blanks, so that a terminal does not cut words. If the output is not a
 * terminal, each line stays as it is, for programs that read it. */
#include "cmd.h"
#include "table.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The columns of text that is safe already, without its colour codes. */
static size_t count_columns(const char *p, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0, k; i < n; i += k) {
        for (k = 0; i + k < n && p[i + k] != '\x1b'; k++)
            ;
        columns += put_safe(NULL, p + i, k, false);
        while (i + k < n && p[i + k] != 'm')
            k++;
        k += i + k < n;
    }
    return columns;
}

static void wrap_line(FILE *to, const char *p, size_t n, size_t indent, size_t width)
{
    size_t column = 0, from = 0; /* `from`: where words of this line begin */
    for (size_t i = 0; i < n;) {
        size_t gap = i, word;
        while (i < n && p[i] == ' ')
            i++;
        gap = i - gap;
        word = i;
        while (i < n && p[i] != ' ')
            i++;
        size_t wide = count_columns(p + word, i - word);
        if (column > from && column + gap + wide > width) {
            putc('\n', to);
            gap = 0;
            from = column = indent;
            put_spaces(to, indent);
        } else if (column == 0) {
            from = gap;
        }
        put_spaces(to, gap);
        fwrite(p + word, 1, i - word, to);
        column += gap + wide;
    }
    putc('\n', to);
}

void put_wrapped(FILE *to, const char *text, size_t n, size_t indent)
{
    size_t width = terminal_width(to == stderr ? STDERR_FILENO : STDOUT_FILENO);
    for (size_t length; width && n > 0; text += length, n -= length) {
        const char *end = memchr(text, '\n', n);
        size_t lead = strspn(text, " ");
        length = end ? (size_t)(end - text) + 1 : n;
        wrap_line(to, text, length - (end != NULL), lead + indent < width / 2 ? lead + indent : 2,
                  width);
    }
    fwrite(text, 1, n, to);
}

FILE *wrap_begin(wrapped_text *f, FILE *to)
{
    *f = (wrapped_text) { .real = to };
    f->to = terminal_width(to == stderr ? STDERR_FILENO : STDOUT_FILENO)
                ? open_memstream(&f->text, &f->n)
                : NULL;
    if (!f->to)
        f->to = to;
    return f->to;
}

void wrap_end(wrapped_text *f, size_t indent)
{
    if (f->to == f->real)
        return;
    if (fclose(f->to) == 0 && f->text)
        put_wrapped(f->real, f->text, f->n, indent);
    else
        lose_out(ENOMEM);
    free(f->text);
}
