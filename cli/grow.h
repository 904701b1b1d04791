/* SPDX-License-Identifier: MIT */
/* Arrays that grow one item at a time. */
#ifndef TENFOLD_CLI_GROW_H
#define TENFOLD_CLI_GROW_H

#include <stdlib.h>

/* Makes room for one more item in an array of n items: for `first` items at the beginning, then for
 * twice as many. Returns the array, which may have moved. NULL: no memory; nothing has changed. */
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
