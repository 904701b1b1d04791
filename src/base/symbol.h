/* SPDX-License-Identifier: MIT */
/* Functions of libraries that are loaded when they are first needed, and never linked. */
#ifndef TNF_BASE_SYMBOL_H
#define TNF_BASE_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Sets the pointer to a function that `function` points to; NULL if the library has none of that
 * name. ISO C knows no way from an object's address to a function's; POSIX has them be of one kind.
 */
static inline bool tnf_find_symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

#endif
