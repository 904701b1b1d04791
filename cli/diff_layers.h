/* SPDX-License-Identifier: MIT */
#ifndef TENFOLD_CLI_DIFF_LAYERS_H
#define TENFOLD_CLI_DIFF_LAYERS_H

#include "out.h"
#include <tenfold/diff.h>

typedef struct diff_layers {
    struct diff_entry *entries;
    size_t n, room;
} diff_layers;

/* Returns false if there is no memory. */
bool diff_layers_add(diff_layers *l, const tnf_difference *d);
/* Prints one line per layer, or a JSON array if j is not NULL, in the order of A. */
bool diff_layers_print(diff_layers *l, const cli_state *cli, const tnf_file *a, json *j);
void diff_layers_free(diff_layers *l);

#endif
