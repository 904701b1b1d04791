/* SPDX-License-Identifier: MIT */
/* System calls that several writers need, with their common rules: interrupted calls are repeated,
 * new names are synced by syncing their directory, and a new file keeps the old one's
 * permissions. */
#ifndef TNF_IO_FS_H
#define TNF_IO_FS_H

#include "base/error.h"
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The directory of a path; false if it is too long. */
bool tnf_fs_directory_of(char out[PATH_MAX], const char *path);
/* Like open() with O_CLOEXEC. */
int tnf_fs_open(const char *path, int flags, mode_t mode);
/* Writes all n bytes at that position. */
tnf_status tnf_fs_write_at(int fd, const void *bytes, size_t n, uint64_t at, tnf_error *e);
/* Reads up to n bytes; *got is less than n at the end of the file. */
tnf_status tnf_fs_read_at(int fd, void *dst, size_t n, uint64_t at, size_t *got, tnf_error *e);
/* Reads all n bytes; TNF_ECHANGED if the file has become shorter. */
tnf_status tnf_fs_read_all(int fd, void *dst, size_t n, uint64_t at, tnf_error *e);
tnf_status tnf_fs_sync(int fd, tnf_error *e);
/* Starts writing to the disk what was written since the last time, if it is enough to be worth it.
 * *handed is how much was started already. */
void tnf_fs_write_back(int fd, uint64_t written, uint64_t *handed);
tnf_status tnf_fs_cut(int fd, uint64_t size, tnf_error *e);
/* Creates a directory, if it does not exist. */
tnf_status tnf_fs_make_directory(const char *path, tnf_error *e);
/* The same for all directories of a path that end after its first `skip` bytes. */
tnf_status tnf_fs_make_directories(char *path, size_t skip, tnf_error *e);
/* Syncs the directory of a path, so that names that were created or removed there are on the
 * disk. */
tnf_status tnf_sync_directory_of(const char *path, tnf_error *e);
/* The same after a change that is already visible: TNF_EUNSYNCED if it fails. */
tnf_status tnf_sync_placed(const char *path, tnf_error *e);
/* Fails with TNF_EUNSYNCED: the change is visible, but the sync after it failed with `why`. */
tnf_status tnf_fail_unsynced(tnf_error *e, const tnf_error *why);

/* Gives a new file the owner, group and permissions of the file that it will replace, as far as the
 * system allows. Set-id bits and the sticky bit are never copied. If the group cannot be kept,
 * members of the old group now count as others; the file's new group then gets no more rights than
 * others had. The same applies if the old file has an access control list, which is not copied: its
 * mask is stored in place of the group's permissions. `old_fd` is the old file, or -1. */
void tnf_keep_rights(int fd, int old_fd, const struct stat *old);

/* Identifies a file and its last change, as precisely as the system allows. */
typedef struct tnf_stamp {
    dev_t dev;
    ino_t ino; /* 0: not a file in a file system */
    uint64_t size;
    struct timespec modified, changed;
} tnf_stamp;

tnf_stamp tnf_stamp_of(const struct stat *st);
bool tnf_same_file(const tnf_stamp *a, const tnf_stamp *b);
/* The same file, not written to in between. */
bool tnf_same_stamp(const tnf_stamp *a, const tnf_stamp *b);

#endif
