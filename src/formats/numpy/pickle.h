/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_NUMPY_PICKLE_H
#define TNF_FORMATS_NUMPY_PICKLE_H

#include "format.h"

#define NP_PICKLE 65536u /* how many bytes of a pickle opening checks */

/* Lists the names that the first bytes of a pickle would call, for a message. Nothing is executed.
 */
tnf_status tnf_np_pickle_calls(tnf_cur c, tnf_arena *arena, char *out, size_t size, tnf_error *e);

/* verify() checks at most this many bytes of a pickle for each of its bytes in the file. Only
 * meaningless bytes compress more. */
#define NP_RATIO 32u

/* Reports each dangerous name of the pickle of an array once. */
tnf_status tnf_np_pickle_danger(tnf_cur c, tnf_str array, tnf_arena *arena, tnf_tell tell,
                                void *ctx, tnf_error *e);

#endif
