/* SPDX-License-Identifier: MIT */
/* Errors: a status for programs, an offset for tools, a sentence for people. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[] = {
    "TNF_OK",         "TNF_ENOMEM",       "TNF_EIO",     "TNF_ENET",       "TNF_EFORMAT",
    "TNF_ETRUNCATED", "TNF_EUNSUPPORTED", "TNF_ELIMIT",  "TNF_ENOTFOUND",  "TNF_EEXISTS",
    "TNF_EINVAL",     "TNF_ELOSSY",       "TNF_EDIGEST", "TNF_ECANCELLED", "TNF_EBUG",
};

const char *tnf_status_name(tnf_status status)
{
    size_t i = (size_t)(-(long)status);
    return i < sizeof status_names / sizeof *status_names ? status_names[i] : "TNF_?";
}

static void fill(tnf_error *e, tnf_status status, int sys, uint64_t offset, const char *format,
                 va_list args) TNF_PRINTF(5, 0);

static void fill(tnf_error *e, tnf_status status, int sys, uint64_t offset, const char *format,
                 va_list args)
{
    e->status = status;
    e->sys = sys;
    e->offset = offset;
    vsnprintf(e->message, sizeof e->message, format, args);
}

tnf_status tnf_fail(tnf_error *e, tnf_status status, uint64_t offset, const char *format, ...)
{
    if (e) {
        va_list args;
        va_start(args, format);
        fill(e, status, 0, offset, format, args);
        va_end(args);
    }
    return status;
}

static tnf_status status_of_errno(int err)
{
    switch (err) {
    case ENOENT:
    case ENOTDIR:
        return TNF_ENOTFOUND;
    case EEXIST:
        return TNF_EEXISTS;
    case ENOMEM:
        return TNF_ENOMEM;
    default:
        return TNF_EIO;
    }
}

tnf_status tnf_fail_sys(tnf_error *e, int err, const char *format, ...)
{
    tnf_status status = status_of_errno(err);
    if (e) {
        va_list args;
        va_start(args, format);
        fill(e, status, err, TNF_NO_OFFSET, format, args);
        va_end(args);
        size_t n = strlen(e->message);
        char text[96];
#ifdef __GLIBC__
        const char *words = strerror_r(err, text, sizeof text);
#else
        const char *words = strerror_r(err, text, sizeof text) == 0 ? text : "unknown error";
#endif
        snprintf(e->message + n, sizeof e->message - n, "%s%s", n ? ": " : "", words);
    }
    return status;
}

void tnf_error_prefix(tnf_error *e, const char *prefix)
{
    if (!e)
        return;
    char whole[sizeof e->message];
    snprintf(whole, sizeof whole, "%s: %.*s", prefix, (int)sizeof e->message, e->message);
    memcpy(e->message, whole, sizeof whole);
}

/* Appends c (escaped if need be) and returns the new length, or 0 if it does not fit. */
static size_t quote_char(char *out, size_t at, size_t room, unsigned char c)
{
    char text[5] = { (char)c, 0 };
    if (c < 0x20 || c == 0x7f)
        snprintf(text, sizeof text, "\\x%02x", c);
    size_t n = strlen(text);
    if (at + n > room)
        return 0;
    memcpy(out + at, text, n);
    return at + n;
}

/* Never cuts a UTF-8 sequence in two: a message must stay valid text when the name is. */
static size_t whole_characters(const char *p, size_t n)
{
    while (n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

const char *tnf_quote(char *out, size_t out_size, const char *name, size_t n)
{
    const size_t room = out_size - 6; /* '…' and NUL: two quotes, three bytes of ellipsis, NUL */
    size_t at = 1, i = 0;
    out[0] = '\'';
    for (; i < n; i++) {
        size_t next = quote_char(out, at, room, (unsigned char)name[i]);
        if (next == 0)
            break;
        at = next;
    }
    if (i < n) {
        size_t kept = whole_characters(name, i);
        at -= i - kept; /* continuation bytes are one byte each, never escaped */
        memcpy(out + at, "\xe2\x80\xa6", 3);
        at += 3;
    }
    out[at] = '\'';
    out[at + 1] = 0;
    return out;
}
