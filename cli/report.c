/* SPDX-License-Identifier: MIT */
/* Prints messages, one line each, on stderr, and returns their exit codes. A message may quote a
 * hostile file, so its text is made safe for a terminal. */
#include "out.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

int exit_code(tnf_status status)
{
    switch (status) {
    case TNF_OK:
        return EXIT_DONE;
    case TNF_EINVAL:
        return EXIT_USAGE;
    case TNF_EFORMAT:
    case TNF_ETRUNCATED:
    case TNF_EUNSUPPORTED:
    case TNF_ELIMIT:
    case TNF_EDIGEST:
        return EXIT_BAD;
    case TNF_ELOSSY:
        return EXIT_LOSSY;
    case TNF_EUNSYNCED:
        return EXIT_UNSYNCED;
    default:
        return EXIT_IO;
    }
}

bool was_done(tnf_status status)
{
    return status == TNF_OK || status == TNF_EUNSYNCED;
}

static int tell_path(const char *what, const char *path, int why)
{
    char text[200];
    snprintf(text, sizeof text, "%s: %s", what, strerror(why));
    file_message(shown_path(path), "", TNF_NO_OFFSET, text);
    return EXIT_IO;
}

int cannot_open(const char *path, int why)
{
    return tell_path("cannot open", path, why);
}

int cannot_read(const char *path, int why)
{
    return tell_path("cannot read", path, why);
}

const char *shown_path(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

static const char *current; /* the command, or NULL */

void usage_of(const char *name)
{
    current = name;
}

int usage_error(const char *format, ...)
{
    char text[1024];
    size_t n = current ? strlen(current) : 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs("tenfold: ", stderr);
    if (current && (strncmp(text, current, n) != 0 || text[n] != ':'))
        fprintf(stderr, "%s: ", current);
    put_safe(stderr, text, strlen(text), false);
    putc('\n', stderr);
    return EXIT_USAGE;
}

int memory_error(void)
{
    fputs("tenfold: out of memory\n", stderr);
    return EXIT_IO;
}

void file_message(const char *path, const char *kind, uint64_t offset, const char *message)
{
    fputs("tenfold: ", stderr);
    put_safe(stderr, path, strlen(path), false);
    fprintf(stderr, ": %s", kind);
    put_safe(stderr, message, strlen(message), false);
    if (offset != TNF_NO_OFFSET)
        fprintf(stderr, " (at byte %" PRIu64 ")", offset);
    putc('\n', stderr);
}

int file_error(const char *path, const tnf_error *error)
{
    file_message(path, "", error->offset, error->message);
    return exit_code(error->status);
}

static int out_failure; /* the errno of the first one */

static bool has_option(const command *c, const char *name)
{
    const opt *o = c ? c->table : NULL;
    while (o && o->name && strcmp(o->name, name) != 0)
        o++;
    return o && o->name;
}

int loss_error(const char *path, const tnf_error *error)
{
    const command *c = current ? find_command(current) : NULL;
    tnf_error more = *error;
    size_t n = strlen(more.message);
    /* Other losses, such as a NaN that a block cannot hold, cannot be permitted. */
    if (strstr(more.message, "would be lost or changed") && has_option(c, "allow-loss"))
        snprintf(more.message + n, sizeof more.message - n, "; permit it with --allow-loss%s",
                 has_option(c, "to") ? ", or choose another format with -t" : "");
    return file_error(path, &more);
}

int flush_out(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && !out_failure)
        out_failure = errno;
    return out_failure;
}

void lose_out(int why)
{
    out_failure = out_failure ? out_failure : why;
}
