/* SPDX-License-Identifier: MIT */
#include "progress.h"
#include "out.h"
#include "stop.h"
#include "table.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDEST 30u
#define BAR_LEAST  8u

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(progress *p, const cli_state *cli)
{
    *p = (progress) { 0 };
    p->shown = !cli->quiet && isatty(STDERR_FILENO);
    p->began = p->last = seconds_now();
}

static void put_bar(size_t width, double part)
{
    char bar[BAR_WIDEST + 1];
    size_t full = (size_t)(part * (double)width);
    memset(bar, ' ', width);
    memset(bar, '#', full < width ? full : width);
    fprintf(stderr, "[%.*s] ", (int)width, bar);
}

/* Appends a text if there is room for it. */
static void add_text(char *line, size_t size, size_t room, const char *text)
{
    size_t n = strlen(line);
    if (n + strlen(text) <= room && n + strlen(text) < size)
        memcpy(line + n, text, strlen(text) + 1);
}

/* Shows as much as the terminal has room for: the percentage, then the time, the amount, the rate,
 * and at last a bar. The last column stays empty, since some terminals wrap there. */
static void draw_bar(progress *p, uint64_t done, uint64_t total, double seconds)
{
    char line[160], text[64], done_text[SIZE_TEXT], total_text[SIZE_TEXT], rate_text[SIZE_TEXT];
    double part = total > 0 ? (double)done / (double)total : 0;
    double rate = (double)done / seconds;
    uint64_t left = rate > 0 ? (uint64_t)((double)(total - done) / rate) : 0;
    size_t room = terminal_width(STDERR_FILENO);
    room = room > 1 ? room - 1 : 0;
    size_text(done_text, done);
    size_text(total_text, total);
    size_text(rate_text, (uint64_t)rate);
    snprintf(line, sizeof line, "%3.0f%%", 100 * part);
    snprintf(text, sizeof text, "  %llu:%02u left", (unsigned long long)(left / 60),
             (unsigned)(left % 60));
    add_text(line, sizeof line, room, text);
    snprintf(text, sizeof text, "  %s of %s", done_text, total_text);
    add_text(line, sizeof line, room, text);
    snprintf(text, sizeof text, "  %s/s", rate_text);
    add_text(line, sizeof line, room, text);
    size_t bar = room > strlen(line) + 3 ? room - strlen(line) - 3 : 0;
    putc('\r', stderr);
    if (bar >= BAR_LEAST)
        put_bar(bar < BAR_WIDEST ? bar : BAR_WIDEST, part);
    fprintf(stderr, "%.*s\033[K", (int)room, line);
    fflush(stderr);
    p->drawn = true;
}

void progress_step(progress *p, uint64_t done, uint64_t total)
{
    if (!p->shown)
        return;
    double t = seconds_now();
    if (t - p->began < 1 || t - p->last < 0.1 || done > total)
        return;
    p->last = t;
    draw_bar(p, done, total, t - p->began);
}

bool progress_watch(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(ctx, done, total);
    return !stop_asked();
}

void progress_end(progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr); /* before the next output to stdout */
    }
    p->drawn = false;
}
