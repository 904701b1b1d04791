/* SPDX-License-Identifier: MIT */
/* The table of formats: how much each format keeps of another. */
#ifndef TENFOLD_CLI_MATRIX_H
#define TENFOLD_CLI_MATRIX_H

#include <stdbool.h>

/* Returns an exit code. */
int matrix_print(bool in_json);

#endif
