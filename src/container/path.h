/* SPDX-License-Identifier: MIT */
/* The one rule for every path that comes out of a file.
 *
 * It is relative to the folder of the file that names it, its parts are names (none is empty, "."
 * or "..", a drive, or holds NUL or a backslash), and each is looked at by itself,
 * from the folder on. A link is followed only as long as it stays in that folder's tree, or into
 * the blobs of a hub's cache, whose snapshots consist of nothing but links:
 *
 *   snapshots/REVISION/model.index.json  ->  ../../blobs/HASH      the file that was opened
 *   snapshots/REVISION/model-1.bin       ->  ../../blobs/HASH      one that it names
 *
 * The end is a regular file: never a FIFO or a device.
 */
#ifndef TNF_CONTAINER_PATH_H
#define TNF_CONTAINER_PATH_H

#include "io/fs.h"

/* The names alone; TNF_EFORMAT with a sentence if they break the rule. */
tnf_status tnf_path_check(tnf_str name, tnf_error *e);
/* Opens it for reading: *fd is the caller's. `folder` is "" for where we are; `model` is the path
 * of the file that names it, or NULL. */
tnf_status tnf_path_open(int *fd, const char *folder, tnf_str name, const char *model,
                         tnf_error *e);

#endif
