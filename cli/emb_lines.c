/* SPDX-License-Identifier: MIT */
/* Reads questions, one per line, from standard input or a file. */
#include "emb.h"
#include "grow.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536u

bool emb_lines_open(emb_lines *l, const char *path)
{
    *l = (emb_lines) { .fd = STDIN_FILENO, .path = path ? path : "-" };
    if (path && strcmp(path, "-") != 0) {
        l->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (l->fd < 0) {
            cannot_open(path, errno);
            return false;
        }
    }
    l->prompt = isatty(l->fd) && isatty(STDERR_FILENO);
    return true;
}

void emb_lines_close(emb_lines *l)
{
    if (l->fd > STDIN_FILENO)
        close(l->fd);
    free(l->buffer);
    free(l->lines);
    *l = (emb_lines) { .fd = -1 };
}

/* `why` is an errno. */
static bool reading_failed(emb_lines *l, int why)
{
    (void)(why == ENOMEM ? memory_error() : cannot_read(l->path, why));
    l->fd = -1;
    return false;
}

/* Discards used bytes and reads more. */
static bool read_more(emb_lines *l)
{
    if (l->n > l->used)
        memmove(l->buffer, l->buffer + l->used, l->n - l->used);
    l->n -= l->used;
    l->used = 0;
    if (l->room - l->n < CHUNK) {
        char *more = realloc(l->buffer, 2 * l->room + 2 * (size_t)CHUNK);
        if (!more)
            return reading_failed(l, ENOMEM);
        l->buffer = more;
        l->room = 2 * l->room + 2 * (size_t)CHUNK;
    }
    ssize_t got;
    do
        got = read(l->fd, l->buffer + l->n, CHUNK);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return reading_failed(l, errno);
    l->ended = got == 0;
    l->n += (size_t)got;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static bool add_line(emb_lines *l, const char *p, size_t n)
{
    while (n > 0 && is_space(*p))
        p++, n--;
    while (n > 0 && is_space(p[n - 1]))
        n--;
    if (n == 0)
        return true;
    tnf_str *more = grow_array(l->lines, l->nlines, &l->lines_room, sizeof *more, 64);
    if (!more)
        return reading_failed(l, ENOMEM);
    l->lines = more;
    l->lines[l->nlines++] = (tnf_str) { p, n };
    return true;
}

/* Splits the complete lines of the buffer; at the end also a last line without a newline. */
static bool cut_lines(emb_lines *l)
{
    l->nlines = 0;
    while (l->used < l->n) {
        const char *from = l->buffer + l->used;
        const char *end = memchr(from, '\n', l->n - l->used);
        if (!end && !l->ended)
            break;
        size_t n = end ? (size_t)(end - from) : l->n - l->used;
        if (!add_line(l, from, n))
            return false;
        l->used += n + (end != NULL);
    }
    return true;
}

bool emb_lines_next(emb_lines *l)
{
    do {
        if (l->ended)
            return false;
        if (l->prompt)
            fputs("> ", stderr);
        if (l->prompt)
            fflush(stderr);
        if (!read_more(l) || !cut_lines(l))
            return false;
    } while (l->nlines == 0);
    return true;
}

void emb_ask_lines(emb_batch_fn ask, void *ctx, bool *several, int *code)
{
    emb_lines lines;
    if (!emb_lines_open(&lines, NULL)) {
        *code = EXIT_IO;
        return;
    }
    *several = !lines.prompt;
    while (emb_lines_next(&lines) && ask(ctx, &lines))
        flush_out();
    if (lines.fd < 0 && *code == EXIT_DONE)
        *code = EXIT_IO;
    emb_lines_close(&lines);
}

size_t emb_tokens(tnf_str line, tnf_str *out, size_t most)
{
    const char *p = line.p, *end = p + line.n;
    bool tabs = memchr(p, '\t', line.n) != NULL;
    size_t n = 0;
    while (p < end) {
        while (p < end && is_space(*p))
            p++;
        const char *from = p;
        while (p < end && (tabs ? *p != '\t' : !is_space(*p)))
            p++;
        if (p > from && n++ < most)
            out[n - 1] = (tnf_str) { from, (size_t)(p - from) };
    }
    return n;
}
