/* SPDX-License-Identifier: MIT */
#include "table.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP    2u
#define LEAST  12u /* texts keep this width, unless the column says more */
#define WIDEST 64u /* the largest aligned width; a longer text makes only its own line longer */

size_t terminal_width(int fd)
{
    struct winsize size = { 0 };
    if (!isatty(fd))
        return 0;
    const char *said = getenv("COLUMNS");
    long columns = said ? strtol(said, NULL, 10) : 0;
    if (columns <= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return columns > 0 && columns < 100000 ? (size_t)columns : 80;
}

/* ------------------------------------------------------------- shortening */

static const char *ellipsis_text(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *locale = getenv(names[i]);
        if (locale && *locale)
            return strstr(locale, "UTF-8") || strstr(locale, "utf8") ? "…" : "~";
    }
    return "~";
}

/* The length of a character in bytes; 1 for an invalid byte. */
static size_t next_character(tnf_str s, size_t at)
{
    uint32_t c;
    size_t n = tnf_utf8_next(&c, s.p + at, s.n - at);
    return n ? n : 1;
}

/* The number of bytes from `at` on that fit into the columns. */
static size_t fitting_bytes(tnf_str s, size_t at, size_t columns)
{
    size_t from = at, used = 0;
    while (at < s.n) {
        size_t n = next_character(s, at);
        used += put_safe(NULL, s.p + at, n, true);
        if (used > columns)
            break;
        at += n;
    }
    return at - from;
}

/* The bytes to keep at the beginning: a third, or more, up to the first number, by which the names
 * of a model differ. */
static size_t head_bytes(tnf_str s, size_t width)
{
    size_t most = fitting_bytes(s, 0, (width - 1) * 2 / 3), at = 0;
    while (at < most && (s.p[at] < '0' || s.p[at] > '9'))
        at++;
    while (at < most && s.p[at] >= '0' && s.p[at] <= '9')
        at++;
    size_t head = fitting_bytes(s, 0, (width - 1) / 3);
    bool whole = at < most && at > 0 && s.p[at - 1] >= '0' && s.p[at - 1] <= '9';
    return whole && at > head ? at : head;
}

size_t put_shortened(FILE *to, tnf_str s, size_t width)
{
    size_t all = put_name(NULL, s);
    if (all <= width)
        return put_name(to, s);
    if (width == 0)
        return 0;
    size_t head = head_bytes(s, width), from = head;
    size_t used = put_safe(to, s.p, head, true);
    size_t rest = all - used;
    while (from < s.n && rest > width - 1 - used) {
        size_t n = next_character(s, from);
        rest -= put_safe(NULL, s.p + from, n, true);
        from += n;
    }
    fputs(ellipsis_text(), to);
    return used + 1 + put_safe(to, s.p + from, s.n - from, true);
}

/* ----------------------------------------------------------------- widths */

void table_begin(text_table *t, const cli_state *cli, const table_column *columns, size_t n,
                 size_t indent)
{
    *t = (text_table) {
        .cli = cli, .columns = columns, .n = n, .indent = indent, .pending = indent
    };
    t->room = terminal_width(STDOUT_FILENO);
    for (size_t i = 0; i < n; i++)
        t->widths[i] = strlen(columns[i].title);
}

static size_t least_width(const text_table *t, size_t i)
{
    size_t least = t->columns[i].keeps ? t->columns[i].keeps : LEAST;
    return t->columns[i].shrinks && t->widths[i] > least ? least : t->widths[i];
}

/* The width of a line; with `least`, when its texts are shortened as far as possible. */
static size_t line_width(const text_table *t, bool least)
{
    size_t sum = t->indent, gap = 0;
    for (size_t i = 0; i < t->n; i++)
        if (!t->gone[i]) {
            sum += gap + (least ? least_width(t, i) : t->widths[i]);
            gap = GAP;
        }
    return sum;
}

/* The least important column that is left; t->n if none may be dropped. */
static size_t least_important(const text_table *t)
{
    size_t found = t->n;
    for (size_t i = 0; i < t->n; i++)
        if (!t->gone[i] && t->columns[i].goes &&
            (found == t->n || t->columns[i].goes > t->columns[found].goes))
            found = i;
    return found;
}

/* Shortens the longest text column until the line fits. */
static void shrink_texts(text_table *t)
{
    while (line_width(t, false) > t->room) {
        size_t longest = t->n;
        for (size_t i = 0; i < t->n; i++)
            if (!t->gone[i] && t->widths[i] > 1 &&
                (longest == t->n || t->widths[i] > t->widths[longest]) &&
                (t->columns[i].shrinks || least_important(t) == t->n))
                longest = i;
        if (longest == t->n)
            return;
        t->widths[longest]--;
    }
}

static void fit_terminal(text_table *t)
{
    size_t column;
    for (size_t i = 0; i < t->n && line_width(t, false) > t->room; i++)
        t->gone[i] = t->columns[i].goes && !t->filled[i];
    while (line_width(t, true) > t->room && (column = least_important(t)) < t->n)
        t->gone[column] = true;
    shrink_texts(t);
}

static void put_header(text_table *t)
{
    bool any = false;
    for (size_t i = 0; i < t->n; i++)
        any = any || *t->columns[i].title;
    if (!any)
        return;
    fputs(paint_code(t->cli, PAINT_BOLD), stdout);
    for (size_t i = 0; i < t->n; i++)
        table_text(t, t->columns[i].title);
    fputs(paint_code(t->cli, PAINT_OFF), stdout);
    table_row_end(t);
}

bool table_again(text_table *t)
{
    if (t->printing)
        return false;
    for (size_t i = 0; i < t->n && !t->room; i++)
        if (t->columns[i].shrinks && t->widths[i] > WIDEST)
            t->widths[i] = WIDEST;
    if (t->room)
        fit_terminal(t);
    t->printing = true;
    put_header(t);
    return true;
}

/* ------------------------------------------------------------------ cells */

static void put_pending(text_table *t)
{
    put_spaces(stdout, t->pending);
    t->column += t->pending;
    t->pending = 0;
}

/* Prints a cell. Spaces are printed only when more text follows. */
static void put_cell(text_table *t, size_t i, tnf_str text, size_t columns)
{
    size_t width = t->widths[i];
    if (t->columns[i].right && columns < width)
        t->pending += width - columns;
    if (columns > 0) {
        put_pending(t);
        columns = t->room ? put_shortened(stdout, text, width) : put_name(stdout, text);
        t->column += columns;
    }
    if (!t->columns[i].right && columns < width)
        t->pending += width - columns;
    t->pending += GAP;
}

void table_str(text_table *t, tnf_str text)
{
    size_t i = t->at++, columns = put_name(NULL, text);
    if (i >= t->n)
        return;
    if (!t->printing) {
        t->widths[i] = columns > t->widths[i] ? columns : t->widths[i];
        t->filled[i] = t->filled[i] || columns > 0;
    }
    if (t->printing && !t->gone[i])
        put_cell(t, i, text, columns);
}

void table_text(text_table *t, const char *text)
{
    table_str(t, (tnf_str) { text, strlen(text) });
}

void table_number(text_table *t, uint64_t number)
{
    char text[GROUPED_TEXT];
    grouped_text(text, number);
    table_text(t, text);
}

void table_size(text_table *t, uint64_t bytes)
{
    char text[SIZE_TEXT];
    int n = size_text(text, bytes);
    table_str(t, (tnf_str) { text, (size_t)n });
}

void table_note(text_table *t, paint p, const char *text)
{
    tnf_str s = { text, strlen(text) };
    if (!t->printing)
        return;
    if (t->room && t->column + t->pending + put_name(NULL, s) > t->room) { /* on a new line */
        putc_unlocked('\n', stdout);
        t->column = 0;
        t->pending = t->indent + 2;
    }
    put_pending(t);
    fputs(p == PAINT_OFF ? "" : paint_code(t->cli, p), stdout);
    t->column += t->room ? put_shortened(stdout, s, t->room > t->column ? t->room - t->column : 0)
                         : put_name(stdout, s);
    fputs(p == PAINT_OFF ? "" : paint_code(t->cli, PAINT_OFF), stdout);
    t->pending = GAP;
}

void table_row_end(text_table *t)
{
    t->at = t->column = 0;
    t->pending = t->indent;
    if (t->printing)
        putc_unlocked('\n', stdout);
}
