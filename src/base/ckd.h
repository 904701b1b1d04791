/* SPDX-License-Identifier: MIT */
/* Checked arithmetic: each returns false, and leaves *out unchanged, if the result does not fit. */
#ifndef TNF_BASE_CKD_H
#define TNF_BASE_CKD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tnf_ckd_add(uint64_t *out, uint64_t a, uint64_t b)
{
    if (a > UINT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

static inline bool tnf_ckd_mul(uint64_t *out, uint64_t a, uint64_t b)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

/* Rounds up to a multiple of `to`, which is a power of two. */
static inline bool tnf_ckd_align(uint64_t *out, uint64_t a, uint64_t to)
{
    uint64_t up;
    if (!tnf_ckd_add(&up, a, to - 1))
        return false;
    *out = up & ~(to - 1);
    return true;
}

static inline bool tnf_to_size(size_t *out, uint64_t a)
{
    if (a > SIZE_MAX)
        return false;
    *out = (size_t)a;
    return true;
}

#endif
