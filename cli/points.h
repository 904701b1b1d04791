/* SPDX-License-Identifier: MIT */
/* Helpers shared by the files of `tenfold points`. */
#ifndef TENFOLD_CLI_POINTS_H
#define TENFOLD_CLI_POINTS_H

#include "cmd.h"
#include "out.h"
#include <tenfold/points.h>

typedef struct points_options {
    bool json, jsonl, csv;
    const char *dims, *resolution, *attributes;
    int pack;
    bool pack_app, no_sync, no_lock, msb, shred, drop_unknown, salvage;
    bool unchecked;
    const char *wait, *after, *limit, *app;
} points_options;

/* Reports an error of a VS file in the same form as the reading commands. */
int points_error(const char *path, const tnf_error *error);
/* Fills in the options for opening; returns false after reporting a wrong option. With `write`,
 * signals that stop.h catches end a call. */
bool points_how(tnf_points_options *out, const points_options *o, bool write);

/* Parses an id of the user; returns false after reporting an error. */
bool points_parse_id(tnf_point_id *out, const char *text);

int points_list(const cli_state *cli, const points_options *o, const char *path);
int points_add(const cli_state *cli, const points_options *o, const char *path);
/* argv: the file, and ids. */
int points_rm(const cli_state *cli, const points_options *o, int argc, char **argv);
int points_compact(const cli_state *cli, const points_options *o, const char *path);

#endif
