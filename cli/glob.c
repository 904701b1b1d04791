/* SPDX-License-Identifier: MIT */
/* Matches names with lists of patterns. */
#include "input.h"
#include "out.h"

bool glob_any(const opt_list *globs, tnf_str name)
{
    for (size_t i = 0; i < globs->n; i++)
        if (tnf_glob_match(globs->items[i], name))
            return true;
    return globs->n == 0;
}

bool glob_chosen(const opt_list *select, const opt_list *exclude, tnf_str name)
{
    return glob_any(select, name) && !(exclude->n && glob_any(exclude, name));
}

int nothing_selected(const char *name, size_t nselect, size_t nexclude)
{
    file_message(name, "", TNF_NO_OFFSET,
                 nselect == 0    ? "every tensor matches --exclude"
                 : nexclude == 0 ? "no tensor matches --select"
                                 : "no tensor is left: each one that matches --select also "
                                   "matches --exclude");
    return EXIT_USAGE;
}
