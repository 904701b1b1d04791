/* SPDX-License-Identifier: MIT */
#include "progress.h"
#include "out.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 30u

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(progress *p, const cli_state *cli)
{
    *p = (progress) { 0 };
    p->shown = !cli->quiet && isatty(STDERR_FILENO);
    p->began = p->last = now();
}

static void draw(progress *p, uint64_t done, uint64_t total, double seconds)
{
    char bar[BAR_WIDTH + 1], done_text[SIZE_TEXT], total_text[SIZE_TEXT], rate_text[SIZE_TEXT];
    double part = total > 0 ? (double)done / (double)total : 0;
    double rate = (double)done / seconds;
    uint64_t left = rate > 0 ? (uint64_t)((double)(total - done) / rate) : 0;
    size_t full = (size_t)(part * BAR_WIDTH);
    memset(bar, ' ', BAR_WIDTH);
    memset(bar, '#', full < BAR_WIDTH ? full : BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    size_text(done_text, done);
    size_text(total_text, total);
    size_text(rate_text, (uint64_t)rate);
    fprintf(stderr, "\r[%s] %3.0f%%  %s of %s  %s/s  %llu:%02u left \033[K", bar, 100 * part,
            done_text, total_text, rate_text, (unsigned long long)(left / 60),
            (unsigned)(left % 60));
    fflush(stderr);
    p->drawn = true;
}

void progress_step(progress *p, uint64_t done, uint64_t total)
{
    if (!p->shown)
        return;
    double t = now();
    if (t - p->began < 1 || t - p->last < 0.1 || done > total)
        return;
    p->last = t;
    draw(p, done, total, t - p->began);
}

void progress_end(progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}
