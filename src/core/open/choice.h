/* SPDX-License-Identifier: MIT */
/* A folder of several checkpoints, and a small file of text beside them that says which one is
 * meant. The name comes out of a file: it keeps the rule of container/path.h. */
#ifndef TNF_CORE_OPEN_CHOICE_H
#define TNF_CORE_OPEN_CHOICE_H

#include "format.h"

#ifdef TENFOLD_FOLDERS
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
#else /* no format of this build has any of it */
#define tnf_choice_format(name)                     NULL
#define tnf_choice_covers(name)                     false
#define tnf_choice_near(name, f, path, arena, e)    TNF_OK
#define tnf_choice_far(name, f, url, how, arena, e) TNF_OK
#define tnf_folder_mark(out, path, arena)           false
#define tnf_name_folders(path, arena, e)            TNF_OK
#endif

#endif
