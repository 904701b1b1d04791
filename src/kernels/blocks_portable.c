/* SPDX-License-Identifier: MIT */
/* The block types for any machine. */
#define LOOPS      tnf_blocks_portable
#define LOOPS_NAME "portable"
#include "kernels/blocks_loops.h"
