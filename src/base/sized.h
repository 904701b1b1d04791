/* SPDX-License-Identifier: MIT */
/* Structs that callers of any version hand in. The first member of each, `size`, says how much of
 * it the caller's header knew:
 *
 *     shorter than ours   an older caller: what it does not know is 0, the default
 *     longer than ours    a newer caller: fine as long as all that we do not know is 0
 *
 * So a struct grows at its end only, by members for which 0 means the old behaviour, and never into
 * old padding, whose bytes are undefined. */
#ifndef TNF_BASE_SIZED_H
#define TNF_BASE_SIZED_H

#include "base/error.h"

/* Copies the caller's options (NULL: all defaults) to the library's struct of dst_size bytes.
 * Members that the caller does not have become 0, and size becomes dst_size. TNF_EINVAL for an
 * impossible size, and for a newer member that is set. */
tnf_status tnf_options_copy(void *dst, size_t dst_size, const void *given, tnf_error *e);

#endif
