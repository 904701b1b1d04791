/* SPDX-License-Identifier: MIT */
/* Rows of length 1: the one way in which Tenfold takes the length out of a vector that is kept. */
#ifndef TNF_BASE_UNIT_H
#define TNF_BASE_UNIT_H

#include <stddef.h>

/* Divides a row by its length, which it gives. A row that has none to divide by stays as it is: all
 * 0 (its length is 0), or with numbers that are not finite or make it longer than any float (it is
 * told to be 1), so that a row times its length is always the row that was there. */
float tnf_unit_row(float *row, size_t n);

#endif
