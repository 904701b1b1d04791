/* SPDX-License-Identifier: MIT */
/* Options as data: one table drives parsing, help, the man page and the completions. */
#ifndef TENFOLD_CLI_OPT_H
#define TENFOLD_CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum opt_kind {
    OPT_FLAG,  /* sets a bool */
    OPT_TEXT,  /* sets a const char * */
    OPT_MAYBE, /* sets an opt_maybe: --name alone, or --name=VALUE */
    OPT_LIST,  /* appends to an opt_list: may be given again */
    OPT_CHOICE /* sets an int: the position in `words` */
} opt_kind;

typedef struct opt_maybe {
    bool given;
    const char *value; /* or NULL */
} opt_maybe;

typedef struct opt_list {
    const char **items;
    size_t n;
} opt_list;

/* A table of these ends with a NULL name. */
typedef struct opt {
    const char *name;
    char letter; /* or 0 */
    opt_kind kind;
    size_t at;         /* where in the command's struct the value goes */
    const char *arg;   /* what its value is called: "FORMAT" */
    const char *words; /* what may stand there: "auto|mmap", "@formats", "@writable"; or NULL */
    const char *help;  /* NULL: a letter that an option had once, see opt_is_old() */
} opt;

/* An old letter is no longer told of, and stands at the end of its table. It is taken if one of its
 * words follows, or if it has none. */
bool opt_is_old(const opt *o);

/* A table, and the struct its values go to. */
typedef struct opt_set {
    const opt *table;
    void *values;
} opt_set;

/* Parses argv[0] … argv[argc-1] by the first table that knows an option; what is no option moves to
 * the front of argv, and its number to *nargs. With `leading`, parsing stops at the first of those
 * and *nargs counts all that is left. False after saying what is wrong. */
bool opt_parse(const opt_set *sets, size_t nsets, int argc, char **argv, bool leading, int *nargs);
/* Releases the lists that parsing made. */
void opt_release(const opt_set *set);

/* Takes the i-th of words separated by '|'; its length, 0 past the last. */
size_t opt_word(const char *words, size_t i, const char **out);
/* A whole number from 1 to 1000. */
bool opt_count(unsigned *out, const char *text);
/* The position of a text among such words, or -1. */
int opt_position(const char *words, const char *text, size_t n);

#endif
