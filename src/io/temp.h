/* SPDX-License-Identifier: MIT */
/* Files that have no name, or a temporary one, until they are complete.
 *
 *   unnamed ──link──> TARGET.tmp-XXXXXXXX ──rename──> TARGET
 *
 * A process that is killed between the two steps leaves the file in the middle. So that the next
 * writer finds it, XXXXXXXX depends only on the target's name and the user; it is random only if
 * that name is taken. The maker holds flock() on the file while it has the temporary name, and the
 * system releases the lock if the maker dies. A file of that name is removed if it is regular, of
 * this user, has no other name, and nobody holds the lock. All other files are left alone.
 */
#ifndef TNF_IO_TEMP_H
#define TNF_IO_TEMP_H

#include "base/error.h"
#include <sys/types.h>

/* Opens an unnamed file in the target's directory; `access` is O_WRONLY or O_RDWR. -1 if the system
 * has no such files, or if one could not be named later. */
int tnf_open_nameless(const char *target, int access, mode_t mode);
/* Gives an unnamed file a name; false, with errno, if the name is taken or naming fails. */
bool tnf_name_nameless(int fd, const char *name);

/* Writes "TARGET.tmp-XXXXXXXX", random and different for each attempt, and never the name that a
 * writer of the target would remove. Returns the length as snprintf() does. */
#define TNF_TEMP_MORE 14u /* bytes in addition to the target's length, with the NUL */
int tnf_temp_name(char *out, size_t room, const char *target, unsigned attempt);

/* Gives an unnamed file a temporary name, which is written to `out`. */
tnf_status tnf_temp_link(int fd, char *out, size_t room, const char *target, tnf_error *e);
/* Creates a file with a temporary name, where there are no unnamed files. */
tnf_status tnf_temp_create(int *fd, char *out, size_t room, const char *target, mode_t mode,
                           tnf_error *e);
/* The file does not have its temporary name any more: releases the lock. */
void tnf_temp_settle(int fd);
/* Removes what a writer of the target left when it was killed. */
void tnf_temp_sweep(const char *target);

#endif
