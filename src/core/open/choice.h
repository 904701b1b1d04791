/* SPDX-License-Identifier: MIT */
/* A folder of several checkpoints, and a small file of text beside them that says which one is
 * meant. The name comes out of a file: it keeps the rule of container/path.h. */
#ifndef TNF_CORE_OPEN_CHOICE_H
#define TNF_CORE_OPEN_CHOICE_H

#include "format.h"

/* The format whose file of text has this name; NULL: none. */
const tnf_format *tnf_choice_format(const char *name);
/* Is it a file that such a text may mean? */
bool tnf_choice_covers(const char *name);
/* The name that the text in a folder gives, with the format's suffix; NULL: it is some other text.
 * TNF_ENOTFOUND if what it names is not there. */
tnf_status tnf_choice_near(char **name, const tnf_format *f, const char *path, tnf_arena *arena,
                           tnf_error *e);
/* The same over the network. */
tnf_status tnf_choice_far(char **name, const tnf_format *f, const char *url,
                          const struct tnf_url_options *how, tnf_arena *arena, tnf_error *e);

/* The file in a folder by which a format knows it, whatever else is there; false: none. */
bool tnf_folder_mark(char **out, const char *path, tnf_arena *arena);
/* A folder of such folders (of a training's steps): TNF_EINVAL, with their names. */
tnf_status tnf_name_folders(const char *path, tnf_arena *arena, tnf_error *e);

#endif
