/* SPDX-License-Identifier: MIT */
/* New names for tensors, from a list or by expressions: --map and --rename. */
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
      "Read new names of " what                                                                    \
      " from FILE. Each line is 'OLD NEW', with a tab between them, or blanks if there is no "     \
      "tab. {n} stands for a number between dots, {end} for .weight, .bias or nothing. FILE may "  \
      "also be a built-in table, from names of Hugging Face models to names of "                   \
      "llama.cpp: " RENAME_TABLES "." },                                                           \
    {                                                                                              \
        "rename", 0, OPT_LIST, offsetof(type, rename_field), "EXPR", NULL,                         \
            "Rename " what                                                                         \
            " by 's/REGEX/TEXT/', with \\1 and & in TEXT and the flags g and i. REGEX is an "      \
            "extended regular expression with \\d \\w \\s \\b. Applied after --map. May be "       \
            "repeated."                                                                            \
    }

typedef struct renaming renaming;

/* *out is NULL if nothing is renamed. Returns an exit code, after reporting an error. */
int renaming_open(renaming **out, const char *map, const opt_list *expressions);
void renaming_free(renaming *r);
/* The tensors to rename; both lists may be empty. */
typedef struct renaming_choice {
    const opt_list *select, *exclude;
} renaming_choice;

typedef struct renaming_counts {
    size_t all, renamed, unknown; /* unknown: tensors that keep their names */
    char first_unknown[304];
} renaming_counts;

/* Called before anything is written. An expression that matches no name, and a list whose names no
 * tensor has, are mistakes. Returns an exit code, after reporting an error. */
int renaming_check(renaming *r, const tnf_file *const *files, size_t n, const renaming_choice *only,
                   renaming_counts *counts);
/* Called at the end: reports how many tensors were renamed, and names of the map that no tensor
 * has. */
void renaming_notes(const renaming *r, const cli_state *cli, const renaming_counts *counts);
/* A tnf_rename_fn whose context is a renaming. */
tnf_status renaming_step(void *ctx, tnf_str *out, tnf_str name, tnf_error *error);
/* The same; r may be NULL. The new name lives as long as r. */
tnf_status renaming_apply(renaming *r, tnf_str *out, tnf_str name, tnf_error *error);

#endif
