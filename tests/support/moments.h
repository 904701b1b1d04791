/* SPDX-License-Identifier: MIT */
/* Moments for killing a process: spread over the time that its work took before, and later ones if
 * the machine became so busy that the work did not finish. */
#ifndef SUPPORT_MOMENTS_H
#define SUPPORT_MOMENTS_H

#include <errno.h>
#include <time.h>

static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void wait_for(double seconds)
{
    struct timespec t = { .tv_sec = (time_t)seconds };
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

#define MORE_MOMENTS 8 /* the last is at 256 times the duration of the work */

/* Seconds until the i-th of n moments, or of the later ones after them. */
static inline double moment_at(int i, int n, double longest)
{
    return i < n ? longest * 1.2 * i / n : longest * (double)(2 << (i - n));
}

#endif
