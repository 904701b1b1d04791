/* SPDX-License-Identifier: MIT */
/* Checks for programs that repeat one test thousands of times. A failed check is printed with the
 * current attempt and counted, and the program continues. */
#ifndef TNF_SUPPORT_CHECK_H
#define TNF_SUPPORT_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/types.h>

#define CHECK_MAX_PRINTED 25u

static struct {
    unsigned long done, failed;
    char doing[512]; /* the current attempt: "valid/a.bin cut at byte 17" */
} check_state;

static inline void check_doing(const char *format, ...) TNF_PRINTF(1, 2);

static inline void check_doing(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(check_state.doing, sizeof check_state.doing, format, args);
    va_end(args);
}

static inline bool check_that(bool ok, const char *file, int line, const char *format, ...)
    TNF_PRINTF(4, 5);

static inline bool check_that(bool ok, const char *file, int line, const char *format, ...)
{
    check_state.done++;
    if (ok)
        return true;
    if (check_state.failed++ >= CHECK_MAX_PRINTED)
        return false;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: %s%s", file, line, check_state.doing, *check_state.doing ? ": " : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

/* The share of attempts that is made. A plain build makes all of them. Under a sanitizer, or with
 * counted lines, each takes far longer, so one of n is made, spread evenly; all, if TNF_FULL is
 * set. */
static inline unsigned check_share(unsigned n)
{
#ifdef TNF_SHARE
    return getenv("TNF_FULL") ? 1 : n;
#else
    (void)n;
    return 1;
#endif
}

/* CHECK(condition, "format", …): returns whether it held. */
#define CHECK(condition, ...) check_that((condition), __FILE__, __LINE__, __VA_ARGS__)

/* For conditions without which the test cannot continue. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: the test cannot go on: %s\n", __FILE__, __LINE__,          \
                    check_state.doing, #condition);                                                \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

/* The last line of main(). */
static inline int check_end(const char *what)
{
    if (check_state.failed > CHECK_MAX_PRINTED)
        fprintf(stderr, "… and %lu more\n", check_state.failed - CHECK_MAX_PRINTED);
    printf("%s: %lu checks, %lu failed\n", what, check_state.done, check_state.failed);
    return check_state.failed ? 1 : check_state.done ? 0 : 1;
}

/* Every failure has a message that fits its status. */
static inline void check_error(tnf_status status, const tnf_error *error)
{
    if (status == TNF_OK)
        return;
    CHECK(error->status == status, "returned %s, but the error says %s", tnf_status_name(status),
          tnf_status_name(error->status));
    CHECK(error->message[0] != 0, "%s without a sentence", tnf_status_name(status));
    CHECK(status != TNF_EBUG, "%s", error->message);
}

/* An error is written only on failure: begin_error() before a call, end_error() after it. */
static inline void begin_error(tnf_error *error)
{
    *error = (tnf_error) { .sys = 12345 };
}

static inline void end_error(tnf_status status, const tnf_error *error)
{
    check_error(status, error);
    CHECK(status != TNF_OK || (error->status == TNF_OK && error->sys == 12345 && !*error->message),
          "returned TNF_OK, but the error says %s: %s", tnf_status_name(error->status),
          error->message);
}

/* splitmix64: any seed will do. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
