/* SPDX-License-Identifier: MIT */
/* What becomes of each item of a conversion, as text and as JSON. */
#ifndef TENFOLD_CLI_PLAN_H
#define TENFOLD_CLI_PLAN_H

#include "out.h"
#include <tenfold/convert.h>

/* One item on a line. */
void plan_line(FILE *out, const tnf_plan_item *item);
/* A dry run, on stdout: what is not simply kept (with --verbose all), and how many of each. */
void plan_text(const tnf_report *report, const cli_state *cli);
/* The same as JSON, all of it. With `list` "in" is an array. */
void plan_json(const tnf_report *report, char *const *in, size_t n, bool list, const char *out);
/* On stderr: what is not kept, where a conversion was refused. */
void plan_refused(const tnf_report *report);
/* On stderr: what was changed unasked in the file of that name, and what only its values told. */
void plan_notes(const tnf_report *report, const char *name);

#endif
