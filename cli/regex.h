/* SPDX-License-Identifier: MIT */
/* Regular expressions over names, in time that grows with the name and no faster.
 *
 *   . [a-z] [^a-z] [[:alpha:]]   \d \w \s \D \W \S   ^ $ \b \B   (…) (?:…) |   * + ? {2,4} and,
 * with a ? behind them, as few as possible
 *
 * As Perl and Python have them: of several ways to match at one place the first one counts. There
 * are no references back in a pattern. Characters are those of UTF-8; a byte that is none is one
 * itself. */
#ifndef TENFOLD_CLI_REGEX_H
#define TENFOLD_CLI_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#define REGEX_GROUPS 10
#define REGEX_NONE   ((size_t)-1)

typedef struct regex regex;

typedef struct regex_group {
    size_t from, to; /* both REGEX_NONE: it takes no part */
} regex_group;

/* NULL after saying why. */
regex *regex_new(const char *pattern, bool any_case, char why[128]);
void regex_free(regex *r);
/* The first match in text[0] … text[n-1] that begins at `at` or behind it. Group 0 is all of it.
 * False: none, or no memory. */
bool regex_find(const regex *r, const char *text, size_t n, size_t at,
                regex_group groups[REGEX_GROUPS]);

#endif
