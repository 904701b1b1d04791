/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_NUMPY_PICKLE_H
#define TNF_FORMATS_NUMPY_PICKLE_H

#include "format.h"

#define NP_PICKLE 65536u /* how much of one is looked at */

/* What a pickle would call, by the names in its first bytes, as text for a message. Nothing is run.
 */
tnf_status tnf_np_pickle_calls(tnf_cur c, tnf_arena *arena, char *out, size_t size, tnf_error *e);

#endif
