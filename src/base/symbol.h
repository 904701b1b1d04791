/* SPDX-License-Identifier: MIT */
/* Functions of libraries that are loaded when first needed, and never linked. */
#ifndef TNF_BASE_SYMBOL_H
#define TNF_BASE_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Sets the function pointer that `function` points to; NULL if the library has no function of that
 * name. ISO C has no conversion from an object pointer to a function pointer; POSIX allows it. */
static inline bool tnf_find_symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

#endif
