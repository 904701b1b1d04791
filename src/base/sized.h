/* SPDX-License-Identifier: MIT */
/* Structs that callers of any version hand in. The first member of each, `size`, says how much of
 * it the caller's header knew:
 *
 *     shorter than ours   an older caller: what it does not know is 0, the default
 *     longer than ours    a newer caller: fine as long as all that we do not know is 0
 *
 * So a struct grows at its end only, by members whose 0 means what was before, and never into the
 * padding of what was there: nobody has set that to anything. */
#ifndef TNF_BASE_SIZED_H
#define TNF_BASE_SIZED_H

#include "base/error.h"

/* Copies options that a caller gave (NULL: all defaults) to those of this library, of dst_size
 * bytes; what was not given becomes 0, and size our own. TNF_EINVAL for a size that no caller can
 * have meant, and for a newer member that is set. */
tnf_status tnf_options_copy(void *dst, size_t dst_size, const void *given, tnf_error *e);

#endif
