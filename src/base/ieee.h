/* SPDX-License-Identifier: MIT */
/* Each thread has a mode for rounding and for treating subnormal numbers as 0; a program, or a
 * library that was compiled with -ffast-math, may have changed it for speed. Whatever computes in
 * the library (the tasks of tnf_pool_run(), kernels, embeddings) does so in IEEE 754 mode and then
 * restores the mode. Reading the mode costs almost nothing; it is set only if it differs.
 */
#ifndef TNF_BASE_IEEE_H
#define TNF_BASE_IEEE_H

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#define TNF_MODE_BITS      0xffc0u /* traps, rounding, flushing, subnormal inputs as 0 */
#define TNF_MODE_IEEE      0x1f80u
#define TNF_MODE_GET()     _mm_getcsr()
#define TNF_MODE_SET(mode) _mm_setcsr(mode)
#elif defined(__aarch64__)
#define TNF_MODE_BITS      0x07ff9f00u
#define TNF_MODE_IEEE      0u
static inline uint32_t tnf_mode_get(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode)::"memory");
    return (uint32_t)mode;
}
static inline void tnf_mode_set(uint32_t mode)
{
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)mode) : "memory");
}
#define TNF_MODE_GET()     tnf_mode_get()
#define TNF_MODE_SET(mode) tnf_mode_set(mode)
#else
#define TNF_MODE_BITS      0u
#define TNF_MODE_IEEE      0u
#define TNF_MODE_GET()     0u
#define TNF_MODE_SET(mode) ((void)(mode))
#endif

static inline uint32_t tnf_enter_ieee(void)
{
    uint32_t mode = TNF_MODE_GET();
    if ((mode & TNF_MODE_BITS) != TNF_MODE_IEEE)
        TNF_MODE_SET((mode & ~TNF_MODE_BITS) | TNF_MODE_IEEE);
    return mode;
}

static inline void tnf_leave_ieee(uint32_t mode)
{
    if ((mode & TNF_MODE_BITS) != TNF_MODE_IEEE)
        TNF_MODE_SET(mode);
}

#endif
