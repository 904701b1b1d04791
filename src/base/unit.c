/* SPDX-License-Identifier: MIT */
/* Squares of floats are exact in double precision, so only the order of their sum matters. Eight
 * partial sums, added in a fixed order, give the same result on every machine. */
#include "base/unit.h"

#include <math.h>

#define LANES 8u

static double sum_of_squares(const float *row, size_t n)
{
    double lanes[LANES] = { 0 };
    size_t i = 0;
    for (; n - i >= LANES; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            lanes[k] += (double)row[i + k] * (double)row[i + k];
    for (size_t k = 0; i < n; i++, k++)
        lanes[k] += (double)row[i] * (double)row[i];
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

float tnf_unit_row(float *row, size_t n)
{
    float length = (float)sqrt(sum_of_squares(row, n));
    if (!isfinite(length))
        return 1;
    for (size_t i = 0; length != 0 && i < n; i++)
        row[i] /= length;
    return length;
}
