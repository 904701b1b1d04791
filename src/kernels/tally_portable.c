/* SPDX-License-Identifier: MIT */
/* The loops of tally.h for any machine. */
#define LOOPS      tnf_tally_portable
#define LOOPS_NAME "portable"
#include "kernels/tally_loops.h"
