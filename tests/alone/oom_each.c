/* SPDX-License-Identifier: MIT */
/* The same as oom.c with an arena that asks for each piece by itself, so that each can fail and not
 * only those that begin a block. This one stands before the library's; it is the same source. */
#define FIRST_BLOCK 1u
#define MAX_BLOCK   1u
#include "../../src/base/arena.c"

#define MANY 20000u
#define STEP 23u
#include "../oom.c"
