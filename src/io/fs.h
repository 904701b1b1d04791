/* SPDX-License-Identifier: MIT */
/* The system calls that more than one writer needs, with what each of them must mind: interrupted
 * calls go on, a directory's names are synced by the directory, a new file keeps the old one's
 * rights. */
#ifndef TNF_IO_FS_H
#define TNF_IO_FS_H

#include "base/error.h"
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The directory that a path is in; false if that is too long. */
bool tnf_fs_directory_of(char out[PATH_MAX], const char *path);
/* As open() with O_CLOEXEC. */
int tnf_fs_open(const char *path, int flags, mode_t mode);
/* All n bytes at that place. */
tnf_status tnf_fs_write_at(int fd, const void *bytes, size_t n, uint64_t at, tnf_error *e);
/* *got is less than n at the end of the file. */
tnf_status tnf_fs_read_at(int fd, void *dst, size_t n, uint64_t at, size_t *got, tnf_error *e);
/* All n bytes; TNF_ECHANGED if the file has become shorter. */
tnf_status tnf_fs_read_all(int fd, void *dst, size_t n, uint64_t at, tnf_error *e);
tnf_status tnf_fs_sync(int fd, tnf_error *e);
tnf_status tnf_fs_cut(int fd, uint64_t size, tnf_error *e);
/* The directory that a path is in, so that names that were made or removed there are on the disk.
 */
tnf_status tnf_sync_directory_of(const char *path, tnf_error *e);
/* The same for what is in place already: TNF_EUNSYNCED if it fails. */
tnf_status tnf_sync_placed(const char *path, tnf_error *e);
/* What is done is done, but the sync that was to follow failed with `why`. */
tnf_status tnf_fail_unsynced(tnf_error *e, const tnf_error *why);

/* Gives a new file the owner, group and permissions of the one it will replace, as far as the
 * system lets us. Set-id bits and the sticky bit are never carried over. Where the group cannot be
 * kept, its members are others now, and the group that the file has instead may do no more than
 * others could; likewise where the old file has an access control list, which is not copied and
 * whose mask stands in the place of the group's permissions. `old_fd` is the old file, or -1. */
void tnf_keep_rights(int fd, int old_fd, const struct stat *old);

/* Which file it is, and when it was last changed as far as the system tells. */
typedef struct tnf_stamp {
    dev_t dev;
    ino_t ino; /* 0: not a file of the file system */
    uint64_t size;
    struct timespec modified, changed;
} tnf_stamp;

tnf_stamp tnf_stamp_of(const struct stat *st);
bool tnf_same_file(const tnf_stamp *a, const tnf_stamp *b);
/* The same file, and nobody wrote to it in between. */
bool tnf_same_stamp(const tnf_stamp *a, const tnf_stamp *b);

#endif
