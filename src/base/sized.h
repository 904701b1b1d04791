/* SPDX-License-Identifier: MIT */
/* Structs that callers of any version hand in, to be read or to be filled. The first member of
 * each, `size`, says how much of it the caller's header knew:
 *
 *     shorter than ours   an older caller: what it does not know is 0, the default
 *     longer than ours    a newer caller: fine as long as all that we do not know is 0; of a result
 *                         that is what it becomes
 *
 * So a struct grows at its end only, by members for which 0 means the old behaviour, and never into
 * old padding, whose bytes are undefined. */
#ifndef TNF_BASE_SIZED_H
#define TNF_BASE_SIZED_H

#include "base/error.h"

#include <stddef.h>

/* Copies the caller's options (NULL: all defaults) to the library's struct of dst_size bytes.
 * Members that the caller does not have become 0, and size becomes dst_size. TNF_EINVAL for an
 * impossible size, and for a newer member that is set. */
tnf_status tnf_options_copy(void *dst, size_t dst_size, const void *given, tnf_error *e);

/* The bytes of a struct up to and with a member: what a caller of its first version has at least,
 * however long it becomes. */
#define TNF_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* Can a result that a caller has made be filled? TNF_EINVAL if it is shorter than `first`, or of a
 * size that no caller can have meant; else all of it but its size becomes 0. */
tnf_status tnf_result_begin(void *given, size_t first, tnf_error *e);
/* Then fills as much of it as there is, from one of this library, of own_size bytes. Its size stays
 * the caller's. */
void tnf_result_fill(void *given, const void *own, size_t own_size);

/* Bytes in reserve that a caller handed in: TNF_EINVAL unless all are 0. */
tnf_status tnf_check_reserved(const void *bytes, size_t n, tnf_error *e);

#endif
