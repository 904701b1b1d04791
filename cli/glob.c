/* SPDX-License-Identifier: MIT */
/* Lists of patterns over names. */
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

int nothing_selected(const char *name)
{
    file_message(name, "", TNF_NO_OFFSET, "no tensor matches --select");
    return EXIT_USAGE;
}
