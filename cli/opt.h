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
    OPT_LIST,  /* appends to an opt_list; may be repeated */
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
    size_t at;         /* the offset of the value in the command's struct */
    const char *arg;   /* the name of its value: "FORMAT" */
    const char *words; /* the possible values: "auto|mmap", "@formats", "@writable"; or NULL */
    const char *help;  /* NULL: an old letter of an option, see opt_is_old() */
} opt;

/* An old letter is undocumented, and is at the end of its table. It is accepted if one of its words
 * follows, or if it has no words. */
bool opt_is_old(const opt *o);

/* A table, and the struct that gets the values. */
typedef struct opt_set {
    const opt *table;
    void *values;
} opt_set;

/* Parses argv[0] … argv[argc-1]; the first table that has an option is used. Other arguments are
 * moved to the front of argv and counted in *nargs. With `leading`, parsing stops at the first of
 * them, and *nargs counts all arguments that are left. Returns false after reporting an error. */
bool opt_parse(const opt_set *sets, size_t nsets, int argc, char **argv, bool leading, int *nargs);
/* Releases the lists that parsing made. */
void opt_release(const opt_set *set);

/* Finds the i-th of the words separated by '|'. Returns its length, or 0 after the last. */
size_t opt_word(const char *words, size_t i, const char **out);
/* Parses a whole number from 1 to 1000. */
bool opt_count(unsigned *out, const char *text);
/* The position of a text among words separated by '|', or -1. */
int opt_position(const char *words, const char *text, size_t n);
/* The value of --rtol or --atol of a command, a finite number of at least 0; unchanged if the text
 * is NULL. False after reporting an error. */
bool opt_tolerance(double *out, const char *of, const char *option, const char *text);

#endif
