/* SPDX-License-Identifier: MIT */
/* The same test as oom.c, but with an arena that requests each piece separately, so that each piece
 * can fail, not only those that begin a block. This arena replaces that of the library; it is
 * compiled from the same source. */
#define FIRST_BLOCK 1u
#define MAX_BLOCK   1u
#include "../../src/base/arena.c"

#define MANY 20000u
#define STEP 23u
#include "../oom.c"
