/* SPDX-License-Identifier: MIT */
/* A directory with several checkpoints, and a small text file that says which one to open. The name
 * comes from a file, so it must follow the rule of container/path.h. */
#ifndef TNF_CORE_OPEN_POINTER_FILE_H
#define TNF_CORE_OPEN_POINTER_FILE_H

#include "format.h"

#ifdef TENFOLD_FOLDERS
/* The format whose text file has this name; NULL: none. */
const tnf_format *tnf_choice_format(const char *name);
/* Is it a file that such a text file may choose? */
bool tnf_choice_covers(const char *name);
/* The name that the text file in a directory gives, with the format's suffix; NULL: it is another
 * kind of text. TNF_ENOTFOUND if the named file does not exist. */
tnf_status tnf_choice_local(char **name, const tnf_format *f, const char *path, tnf_arena *arena,
                            tnf_error *e);
/* The same over the network. */
tnf_status tnf_choice_remote(char **name, const tnf_format *f, const char *url,
                             const struct tnf_url_options *how, tnf_arena *arena, tnf_error *e);

/* The file in a directory that marks it as one of a format, whatever else is there; false: none. */
bool tnf_folder_mark(char **out, const char *path, tnf_arena *arena);
/* For a directory of such directories (the steps of a training): TNF_EINVAL, with their names. */
tnf_status tnf_name_folders(const char *path, tnf_arena *arena, tnf_error *e);
#else /* no format of this build uses this */
#define tnf_choice_format(name)                        NULL
#define tnf_choice_covers(name)                        false
#define tnf_choice_local(name, f, path, arena, e)      TNF_OK
#define tnf_choice_remote(name, f, url, how, arena, e) TNF_OK
#define tnf_folder_mark(out, path, arena)              false
#define tnf_name_folders(path, arena, e)               TNF_OK
#endif

#endif
