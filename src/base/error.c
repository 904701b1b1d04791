/* SPDX-License-Identifier: MIT */
/* Errors: a status for programs, an offset for tools, a message for people. */
#include "base/error.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[] = {
    "TNF_OK",         "TNF_ENOMEM",       "TNF_EIO",     "TNF_ENET",       "TNF_EFORMAT",
    "TNF_ETRUNCATED", "TNF_EUNSUPPORTED", "TNF_ELIMIT",  "TNF_ENOTFOUND",  "TNF_EEXISTS",
    "TNF_EINVAL",     "TNF_ELOSSY",       "TNF_EDIGEST", "TNF_ECANCELLED", "TNF_EBUG",
    "TNF_ECHANGED",   "TNF_EUNSYNCED",
};

const char *tnf_status_name(tnf_status status)
{
    size_t i = (size_t)(-(long)status);
    return i < sizeof status_names / sizeof *status_names ? status_names[i] : "TNF_?";
}

/* Removes an incomplete character from the end of a truncated text. */
static void cut_whole(char *text, size_t size)
{
    size_t bad;
    if (!tnf_utf8_valid(&bad, text, size - 1) && bad + 4 >= size)
        text[bad] = 0;
}

static void fill_error(tnf_error *e, tnf_status status, int sys, uint64_t offset,
                       const char *format, va_list args) TNF_PRINTF(5, 0);

static void fill_error(tnf_error *e, tnf_status status, int sys, uint64_t offset,
                       const char *format, va_list args)
{
    char text[sizeof e->message]; /* the arguments may contain the old message */
    int n = vsnprintf(text, sizeof text, format, args);
    *e = (tnf_error) { .status = status, .sys = sys, .offset = offset };
    memcpy(e->message, text, strlen(text) + 1);
    if (n >= (int)sizeof e->message)
        cut_whole(e->message, sizeof e->message);
}

tnf_status tnf_error_set(tnf_error *e, tnf_status status, uint64_t offset, const char *format, ...)
{
    if (e) {
        va_list args;
        va_start(args, format);
        fill_error(e, status, 0, offset, format, args);
        va_end(args);
    }
    return status;
}

tnf_status tnf_no_memory(const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %s", what);
}

tnf_status tnf_null_given(const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "'%s' is NULL, but it must be set", what);
}

tnf_status tnf_call_failed(tnf_error *e, tnf_status status, const tnf_error *said)
{
    size_t n = 0;
    if (status > TNF_OK || status < TNF_EUNSYNCED)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the caller's function returned %d, which is not a status", (int)status);
    if (!e)
        return status;
    while (n < sizeof said->message - 1 && said->message[n])
        n++;
    if (n == 0) {
        tnf_fail(e, status, said->offset, "the caller's function failed");
        e->sys = said->sys;
        return status;
    }
    *e = (tnf_error) {
        .status = status, .sys = said->sys, .offset = said->offset, .rule = said->rule
    };
    memcpy(e->message, said->message, n);
    return status;
}

tnf_status tnf_fail_rule(tnf_error *e, const char *rule, tnf_status status, uint64_t offset,
                         const char *format, ...)
{
    if (e) {
        va_list args;
        va_start(args, format);
        fill_error(e, status, 0, offset, format, args);
        va_end(args);
        tnf_error_prefix(e, rule);
        e->rule = rule;
    }
    return status;
}

void tnf_error_rule(tnf_error *e, const char *rule)
{
    if (e)
        e->rule = rule;
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
        fill_error(e, status, err, TNF_NO_OFFSET, format, args);
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

static void escape_byte(char out[12], unsigned char c)
{
    char letter = c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c == '\\' ? '\\' : 0;
    if (letter)
        snprintf(out, 12, "\\%c", letter);
    else
        snprintf(out, 12, "\\x%02x", c);
}

/* Writes the next character of a name for a message. Returns the number of bytes of the name that
 * it takes. A character that is invisible or not UTF-8 becomes an escape, as in the command. */
static size_t show_character(char out[12], const unsigned char *p, size_t n)
{
    uint32_t c;
    size_t length = tnf_utf8_next(&c, (const char *)p, n);
    if (length == 0) {
        escape_byte(out, p[0]);
        return 1;
    }
    if (c == '\\' || (c < 0x80 && tnf_must_escape(c))) {
        escape_byte(out, (unsigned char)c);
    } else if (tnf_must_escape(c)) {
        snprintf(out, 12, c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
    } else {
        memcpy(out, p, length);
        out[length] = 0;
    }
    return length;
}

/* Writes as much of a name as fits; true if it fits completely. */
static bool put_escaped(char *out, size_t room, size_t *at, const char *name, size_t n)
{
    for (size_t i = 0; i < n;) {
        char text[12];
        i += show_character(text, (const unsigned char *)name + i, n - i);
        size_t len = strlen(text);
        if (len > room)
            return false;
        memcpy(out + *at, text, len);
        *at += len;
        room -= len;
    }
    return true;
}

const char *tnf_visible(char *out, size_t out_size, const char *name)
{
    size_t at = 0;
    (void)put_escaped(out, out_size - 1, &at, name, strlen(name));
    out[at] = 0;
    return out;
}

const char *tnf_quote(char *out, size_t out_size, const char *name, size_t n)
{
    const size_t room = out_size - 6; /* two quotes, three bytes of ellipsis, NUL */
    size_t at = 1;
    out[0] = '\'';
    if (!put_escaped(out, room, &at, name, n)) {
        memcpy(out + at, "\xe2\x80\xa6", 3);
        at += 3;
    }
    out[at] = '\'';
    out[at + 1] = 0;
    return out;
}

void tnf_error_prefix(tnf_error *e, const char *prefix)
{
    if (!e)
        return;
    char whole[2 * sizeof e->message];
    snprintf(whole, sizeof whole, "%s: %s", TNF_VISIBLE(prefix), e->message);
    size_t n = strlen(whole);
    bool cut = n >= sizeof e->message;
    memcpy(e->message, whole, cut ? sizeof e->message - 1 : n + 1);
    e->message[sizeof e->message - 1] = 0;
    if (cut)
        cut_whole(e->message, sizeof e->message);
}

const char *tnf_counted(char out[48], uint64_t n, const char *one, const char *many)
{
    snprintf(out, 48, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
    return out;
}
