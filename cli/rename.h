/* SPDX-License-Identifier: MIT */
/* Other names for tensors, by a list of them or by expressions: --map and --rename. */
#ifndef TENFOLD_CLI_RENAME_H
#define TENFOLD_CLI_RENAME_H

#include "input.h"
#include "rename_tables.h"
#include <tenfold/diff.h>

#define RENAME_OPTIONS(type, map_field, rename_field, what)                                        \
    { "map",                                                                                       \
      0,                                                                                           \
      OPT_TEXT,                                                                                    \
      offsetof(type, map_field),                                                                   \
      "FILE",                                                                                      \
      NULL,                                                                                        \
      "New names of " what                                                                         \
      ": lines 'OLD NEW', with a tab between them, or blanks if there is no tab; {n} is a number " \
      "between dots, {end} is .weight, .bias or nothing. Or a table that comes with tenfold, "     \
      "from "                                                                                      \
      "the names of hubs to llama.cpp's: " RENAME_TABLES "." },                                    \
    {                                                                                              \
        "rename", 0, OPT_LIST, offsetof(type, rename_field), "EXPR", NULL,                         \
            "Rename " what                                                                         \
            " by 's/REGEX/TEXT/', with \\1 and & in TEXT and the flags g and i. REGEX is an "      \
            "extended regular expression; \\d \\w \\s \\b are known. Applied after --map. May be " \
            "repeated."                                                                            \
    }

typedef struct renaming renaming;

/* NULL in *out if nothing is to be renamed. Gives an exit code, after saying what is wrong. */
int renaming_open(renaming **out, const char *map, const opt_list *expressions);
void renaming_free(renaming *r);
/* Which tensors are to be renamed; both may be empty. */
typedef struct renaming_choice {
    const opt_list *select, *exclude;
} renaming_choice;

typedef struct renaming_counts {
    size_t all, renamed, unknown; /* unknown: they keep their names */
    char first_unknown[304];
} renaming_counts;

/* Before anything is written: an expression that matches no name, or a list of which no name is
 * there, is a slip. Gives an exit code after saying so. */
int renaming_check(renaming *r, const tnf_file *const *files, size_t n, const renaming_choice *only,
                   renaming_counts *counts);
/* When all is renamed: how many, and names of the map that no tensor has. */
void renaming_notes(const renaming *r, const cli_state *cli, const renaming_counts *counts);
/* A tnf_rename_fn with a renaming for its context. */
tnf_status renaming_step(void *ctx, tnf_str *out, tnf_str name, tnf_error *error);
/* The same; what it gives lives as long as r, which may be NULL. */
tnf_status renaming_apply(renaming *r, tnf_str *out, tnf_str name, tnf_error *error);

#endif
