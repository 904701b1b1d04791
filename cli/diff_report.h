/* SPDX-License-Identifier: MIT */
/* The output of tenfold diff. It is collected in memory, so an error leaves no partial output. */
#ifndef TENFOLD_CLI_DIFF_REPORT_H
#define TENFOLD_CLI_DIFF_REPORT_H

#include "diff_layers.h"
#include "input.h"
#include "out.h"
#include <tenfold/diff.h>

typedef struct diff_report {
    const cli_state *cli;
    bool as_json;
    bool summary;       /* one line per layer */
    bool no_memory;     /* adding to `layers` failed */
    diff_layers layers; /* of a summary */
    json json;          /* written to memory */
    char *text;
    size_t n;
} diff_report;

/* Returns false if there is no memory. */
bool diff_report_begin(diff_report *r, const cli_state *cli, bool as_json);
void diff_report_add(diff_report *r, const tnf_difference *d);
/* Prints all differences and their totals. */
int diff_report_print(diff_report *r, const input *a, const input *b,
                      const tnf_diff_result *result);
void diff_report_end(diff_report *r);

#endif
