/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_NUMPY_PICKLE_H
#define TNF_FORMATS_NUMPY_PICKLE_H

#include "format.h"

/* What a pickle from `offset` of the file on would call, by the names in its first bytes, as text
 * for a message. Nothing is run. */
tnf_status tnf_np_pickle_calls(tnf_reader *r, uint64_t offset, char *out, size_t size,
                               tnf_error *e);

#endif
