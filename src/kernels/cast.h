/* SPDX-License-Identifier: MIT */
/* Casts from one number type to another.
 *
 * Each number is rounded once, to the nearest, ties to even. A number that is too large becomes
 * infinite, or the largest number of a type without infinity. A NaN becomes quiet, and keeps its
 * sign and the upper bits of its payload if the type has room for them. The results equal those of
 * narrow.h, bit for bit, on every machine and in any rounding or flush-to-zero mode of the caller.
 */
#ifndef TNF_KERNELS_CAST_H
#define TNF_KERNELS_CAST_H

#include <stddef.h>
#include <stdint.h>
#include <tenfold/types.h>

/* Casts n elements; bytes are little-endian as in files, at any alignment. Packed elements begin at
 * a byte. */
typedef void tnf_cast_fn(uint8_t *out, const uint8_t *in, size_t n);

/* Returns NULL for a pair that cannot be cast. Sources: f64 f32 f16 bf16, all f8, integers of all
 * sizes from i2 to u128, and bool. Targets: f64 f32 f16 bf16 f8_e4m3fn f8_e5m2 f8_e4m3fnuz
 * f8_e5m2fnuz. */
tnf_cast_fn *tnf_cast_of(const tnf_type *from, const tnf_type *to);

/* -------------------------------------------------------- for cast_*.c only */

#define TNF_CAST_SOURCES 24
#define TNF_CAST_TARGETS 8

/* The casts for one instruction set. Sources and targets are those of cast.c. */
typedef struct tnf_cast_set {
    const char *name;
    tnf_cast_fn *pairs[TNF_CAST_SOURCES][TNF_CAST_TARGETS];
} tnf_cast_set;

/* The i-th set that this machine can run, the fastest first; NULL past the last. */
const tnf_cast_set *tnf_cast_set_at(size_t i);
/* tnf_cast_of() for one set. */
tnf_cast_fn *tnf_cast_by(const tnf_cast_set *set, const char *from, const char *to);

extern const tnf_cast_set tnf_casts_portable;
#if defined(__x86_64__)
extern const tnf_cast_set tnf_casts_avx2, tnf_casts_avx512;
#endif

#endif
