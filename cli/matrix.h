/* SPDX-License-Identifier: MIT */
/* The table of formats: what each keeps of what another holds. */
#ifndef TENFOLD_CLI_MATRIX_H
#define TENFOLD_CLI_MATRIX_H

#include <stdbool.h>

/* Gives an exit code. */
int matrix_print(bool in_json);

#endif
