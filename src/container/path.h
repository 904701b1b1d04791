/* SPDX-License-Identifier: MIT */
/* The rule for every path that comes from a file.
 *
 * The path is relative to the directory of the file that names it. Its components are plain
 * names: none is empty, "." or "..", a drive, or contains a NUL or a backslash. The components are
 * opened one by one, beginning at that directory. A link is followed only while it stays in the
 * tree of that directory, or if it leads into the blobs of a hub's cache, whose snapshots consist
 * only of links:
 *
 *   snapshots/REVISION/model.index.json  ->  ../../blobs/HASH      the file that was opened
 *   snapshots/REVISION/model-1.bin       ->  ../../blobs/HASH      one that it names
 *
 * The last component must be a regular file: never a FIFO or a device.
 */
#ifndef TNF_CONTAINER_PATH_H
#define TNF_CONTAINER_PATH_H

#include "io/fs.h"

/* Checks only the names; TNF_EFORMAT with a message if they break the rule. */
tnf_status tnf_path_check(tnf_str name, tnf_error *e);
/* Opens it for reading: the caller owns *fd. `folder` is "" for the current directory; `model` is
 * the path of the file that names it, or NULL. */
tnf_status tnf_path_open(int *fd, const char *folder, tnf_str name, const char *model,
                         tnf_error *e);

#endif
