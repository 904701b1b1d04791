/* SPDX-License-Identifier: MIT */
/* Rows of length 1: the only code in Tenfold that normalises stored vectors. */
#ifndef TNF_BASE_UNIT_H
#define TNF_BASE_UNIT_H

#include <stddef.h>

/* Divides a row by its length, and returns the length. If that is impossible, the row stays
 * unchanged: a row of zeros has the length 0; for a row whose numbers are not finite, or whose
 * length is beyond any float, the function returns 1. So a row times its length is always the
 * original row. */
float tnf_unit_row(float *row, size_t n);

#endif
