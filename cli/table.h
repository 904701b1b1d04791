/* SPDX-License-Identifier: MIT */
/* Tables for people. The rows are told twice: first to find the widths, then to be printed, so that
 * no row is kept. On a terminal no line is longer than the terminal is wide: columns that matter
 * least go, then the longest texts lose their middle. Elsewhere nothing is ever shortened. */
#ifndef TENFOLD_CLI_TABLE_H
#define TENFOLD_CLI_TABLE_H

#include "out.h"

#define TABLE_MOST 12

typedef struct table_column {
    const char *title;
    bool right;         /* aligned to the right */
    bool shrinks;       /* it may lose the middle of its texts on a terminal */
    unsigned char goes; /* 0: always there; else the highest goes first */
} table_column;

typedef struct text_table {
    const cli_state *cli;
    const table_column *columns;
    size_t n, indent;
    size_t room; /* columns of the terminal; 0: no end */
    size_t widths[TABLE_MOST];
    bool gone[TABLE_MOST];
    bool printing;
    size_t at;      /* the cell that comes next */
    size_t column;  /* where the line stands */
    size_t pending; /* spaces that are due before the next text */
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
/* Behind the last cell, or below it where there is no room; painted, but for PAINT_OFF. */
void table_note(text_table *t, paint p, const char *text);
void table_row_end(text_table *t);

/* How wide the terminal behind a descriptor is; 0 if it is none. COLUMNS has the first word. */
size_t terminal_width(int fd);
/* Bytes of a file in at most `width` columns: the middle may be left out. Gives the columns. */
size_t put_shortened(FILE *to, tnf_str s, size_t width);

/* fold.c: lines of text that a terminal may see. On one, those that are wider are folded at blanks,
 * what follows being indented by so much more than the line; elsewhere they stay as they are. */
void put_folded(FILE *to, const char *text, size_t n, size_t indent);
/* The same of what is printed to a stream between the two. */
typedef struct folded {
    FILE *to, *real;
    char *text;
    size_t n;
} folded;
FILE *fold_begin(folded *f, FILE *to);
void fold_end(folded *f, size_t indent);

#endif
