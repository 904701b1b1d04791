/* SPDX-License-Identifier: MIT */
/* The default limits; tnf_limits in the open options overrides each of them. */
#ifndef TNF_MODEL_LIMITS_H
#define TNF_MODEL_LIMITS_H

#define TNF_DEFAULT_HEADER_BYTES ((uint64_t)256 << 20)
#define TNF_DEFAULT_MEMORY       ((uint64_t)4 << 30)
#define TNF_DEFAULT_OBJECTS      ((uint64_t)1 << 24)
#define TNF_DEFAULT_RANK         64u
#define TNF_DEFAULT_DEPTH        64u
#define TNF_DEFAULT_NAME_BYTES   65536u
#define TNF_MAX_WARNINGS         100u

#endif
