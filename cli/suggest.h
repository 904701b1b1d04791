/* SPDX-License-Identifier: MIT */
/* Finds the names that are most similar to a mistyped one. */
#ifndef TENFOLD_CLI_SUGGEST_H
#define TENFOLD_CLI_SUGGEST_H

#include <stddef.h>
#include <tenfold/types.h>

#define SUGGEST_MAX  3u
#define SUGGEST_LONG 255u /* longer names are not compared */

typedef struct suggestion {
    const char *wanted;
    size_t wanted_n;
    size_t n; /* the number of similar names, most similar first */
    tnf_str near[SUGGEST_MAX];
    unsigned distance[SUGGEST_MAX];
    unsigned limit; /* names with a larger distance are not suggested */
} suggestion;

void suggest_begin(suggestion *s, const char *wanted, size_t n);
/* Offers a candidate, which must outlive the suggestion. */
void suggest_offer(suggestion *s, const char *name, size_t n);

#endif
