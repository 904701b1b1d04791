/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_NUMPY_PICKLE_H
#define TNF_FORMATS_NUMPY_PICKLE_H

#include "format.h"

#define NP_PICKLE 65536u /* how much of one is looked at */

/* What a pickle would call, by the names in its first bytes, as text for a message. Nothing is run.
 */
tnf_status tnf_np_pickle_calls(tnf_cur c, tnf_arena *arena, char *out, size_t size, tnf_error *e);

/* How much of one verify looks at, for each of its bytes in the file: all, unless it shrank as only
 * bytes do that mean nothing. */
#define NP_RATIO 32u

/* Tells each dangerous name of the pickle of an array, once. */
tnf_status tnf_np_pickle_danger(tnf_cur c, tnf_str array, tnf_arena *arena, tnf_tell tell,
                                void *ctx, tnf_error *e);

#endif
