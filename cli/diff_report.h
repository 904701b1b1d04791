/* SPDX-License-Identifier: MIT */
/* What tenfold diff prints. It is gathered in memory: after an error, nothing is half said. */
#ifndef TENFOLD_CLI_DIFF_REPORT_H
#define TENFOLD_CLI_DIFF_REPORT_H

#include "diff_layers.h"
#include "input.h"
#include "out.h"
#include <tenfold/diff.h>

typedef struct diff_report {
    const cli_state *cli;
    bool as_json;
    bool summary;       /* a line a layer */
    bool no_memory;     /* for the next */
    diff_layers layers; /* of a summary */
    json json;          /* to memory */
    char *text;
    size_t n;
} diff_report;

/* False: no memory. */
bool diff_report_begin(diff_report *r, const cli_state *cli, bool as_json);
void diff_report_add(diff_report *r, const tnf_difference *d);
/* Prints all of it, with what it comes to. */
void diff_report_print(diff_report *r, const input *a, const input *b,
                       const tnf_diff_result *result);
void diff_report_end(diff_report *r);

#endif
