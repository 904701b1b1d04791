/* SPDX-License-Identifier: MIT */
/* Prints the fate of each item of a conversion, as text and as JSON. */
#ifndef TENFOLD_CLI_PLAN_H
#define TENFOLD_CLI_PLAN_H

#include "out.h"
#include <tenfold/convert.h>

/* Prints one item on a line. */
void plan_line(FILE *out, const tnf_plan_item *item);
/* A dry run, on stdout: the items that are not native (with --verbose all), and how many of each
 * fate. */
void plan_text(const tnf_report *report, const cli_state *cli);
/* The same as JSON, with all items. With `list`, "in" is an array. */
void plan_json(const tnf_report *report, char *const *in, size_t n, bool list, const char *out);
/* On stderr: the items because of which a conversion was refused. */
void plan_refused(const tnf_report *report);
/* On stderr: changes that needed no permission, and warnings that only the values could reveal, for
 * the file of that name. */
void plan_notes(const tnf_report *report, const char *name);

#endif
