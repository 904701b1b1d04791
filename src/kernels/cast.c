/* SPDX-License-Identifier: MIT */
/* The table of casts, and the choice of the fastest set on this machine. */
#include "kernels/cast.h"

#include "kernels/f16c.h"

#include <stdbool.h>
#include <string.h>

const tnf_cast_set *tnf_cast_set_at(size_t i)
{
    const tnf_cast_set *found[3];
    size_t n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && tnf_has_f16c();
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        found[n++] = &tnf_casts_avx512;
    if (avx2)
        found[n++] = &tnf_casts_avx2;
#endif
    found[n++] = &tnf_casts_portable;
    return i < n ? found[i] : NULL;
}

/* In the order of cast_loops.h. */
static const char *const sources[TNF_CAST_SOURCES] = {
    "f64",     "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz",
    "f8_e8m0", "i8",  "u8",  "i16",  "u16",       "bool",    "i4",          "u4",
    "i2",      "u2",  "i32", "u32",  "i64",       "u64",     "i128",        "u128",
};
static const char *const targets[TNF_CAST_TARGETS] = {
    "f64", "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz",
};

static size_t place_of(const char *id, const char *const *list, size_t n)
{
    size_t i = 0;
    while (i < n && strcmp(list[i], id) != 0)
        i++;
    return i;
}

tnf_cast_fn *tnf_cast_by(const tnf_cast_set *set, const char *from, const char *to)
{
    size_t s = place_of(from, sources, TNF_CAST_SOURCES);
    size_t t = place_of(to, targets, TNF_CAST_TARGETS);
    return s < TNF_CAST_SOURCES && t < TNF_CAST_TARGETS ? set->pairs[s][t] : NULL;
}

tnf_cast_fn *tnf_cast_of(const tnf_type *from, const tnf_type *to)
{
    return tnf_cast_by(tnf_cast_set_at(0), from->id, to->id);
}
