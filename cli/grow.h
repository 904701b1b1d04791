/* SPDX-License-Identifier: MIT */
/* Arrays that grow one item at a time. */
#ifndef TENFOLD_CLI_GROW_H
#define TENFOLD_CLI_GROW_H

#include <stdlib.h>

/* The array with n items in it, with room for one more: `first` to begin with, then twice as much.
 * NULL: no memory, and it is as it was. */
static inline void *grow_array(void *items, size_t n, size_t *room, size_t size, size_t first)
{
    size_t more = *room ? 2 * *room : first;
    if (n < *room)
        return items;
    void *larger = realloc(items, more * size);
    if (larger)
        *room = more;
    return larger;
}

#endif
