/* SPDX-License-Identifier: MIT */
/* Regular expressions for names. The time is linear in the length of the name.
 *
 *   . [a-z] [^a-z] [[:alpha:]]   \d \w \s \D \W \S   ^ $ \b \B   (…) (?:…) |   * + ? {2,4} and,
 * with a ? after them, as few as possible
 *
 * The rules are those of Perl and Python: if there are several ways to match at one place, the
 * first one counts. Patterns have no back-references. Characters are UTF-8; an invalid byte counts
 * as a character of its own. */
#ifndef TENFOLD_CLI_REGEX_H
#define TENFOLD_CLI_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#define REGEX_GROUPS 10
#define REGEX_NONE   ((size_t)-1)

typedef struct regex regex;

typedef struct regex_group {
    size_t from, to; /* both REGEX_NONE: the group did not take part in the match */
} regex_group;

/* Returns NULL after setting `why`. */
regex *regex_new(const char *pattern, bool any_case, char why[128]);
void regex_free(regex *r);
/* Finds the first match in text[0] … text[n-1] that begins at `at` or later. Group 0 is the whole
 * match. Returns false if there is none, or no memory. */
bool regex_find(const regex *r, const char *text, size_t n, size_t at,
                regex_group groups[REGEX_GROUPS]);

#endif
