/* SPDX-License-Identifier: MIT */
/* Text tables. The caller gives the rows twice: the first time to find the widths, then to print
 * them, so no row is kept in memory. On a terminal, no line is wider than the terminal: empty
 * columns are dropped, then unimportant ones, then the longest texts lose their middle. Other
 * output is not shortened. */
#ifndef TENFOLD_CLI_TABLE_H
#define TENFOLD_CLI_TABLE_H

#include "out.h"

#define TABLE_MOST 12

typedef struct table_column {
    const char *title;
    bool right;          /* aligned to the right */
    bool shrinks;        /* texts may lose their middle on a terminal */
    unsigned char goes;  /* 0: never dropped; else the column with the highest value goes first */
    unsigned char keeps; /* the width that a text keeps while other columns can go; 0: 12 */
} table_column;

typedef struct text_table {
    const cli_state *cli;
    const table_column *columns;
    size_t n, indent;
    size_t room; /* columns of the terminal; 0: unlimited */
    size_t widths[TABLE_MOST];
    bool gone[TABLE_MOST];
    bool filled[TABLE_MOST]; /* a cell has text */
    bool printing;
    size_t at;      /* the next cell */
    size_t column;  /* the current column of the line */
    size_t pending; /* spaces to print before the next text */
} text_table;

/* do { rows } while (table_again(&t)); the header is printed between the two. */
void table_begin(text_table *t, const cli_state *cli, const table_column *columns, size_t n,
                 size_t indent);
bool table_again(text_table *t);
/* The next cell of a row. Text of a file is made safe for the terminal. */
void table_str(text_table *t, tnf_str text);
void table_text(text_table *t, const char *text);
void table_number(text_table *t, uint64_t number); /* "1,234,567" */
void table_size(text_table *t, uint64_t bytes);    /* "1.2 GiB" */
/* Prints a note after the last cell, or on the next line if there is no room; coloured, unless
 * PAINT_OFF. */
void table_note(text_table *t, paint p, const char *text);
void table_row_end(text_table *t);

/* The width of a descriptor's terminal; 0 if it is not a terminal. COLUMNS takes precedence. */
size_t terminal_width(int fd);
/* Prints text of a file in at most `width` columns; the middle may be left out. Returns the
 * columns. */
size_t put_shortened(FILE *to, tnf_str s, size_t width);

/* wrap.c: prints lines of safe text. On a terminal, long lines are wrapped at blanks, and their
 * continuation is indented by `indent` more than the line. Otherwise they stay as they are. */
void put_wrapped(FILE *to, const char *text, size_t n, size_t indent);
/* The same for text that is printed to a stream between wrap_begin() and wrap_end(). */
typedef struct wrapped_text {
    FILE *to, *real;
    char *text;
    size_t n;
} wrapped_text;
FILE *wrap_begin(wrapped_text *f, FILE *to);
void wrap_end(wrapped_text *f, size_t indent);

#endif
