/* SPDX-License-Identifier: MIT */
/* The status line and the relevant headers of a server's answer. */
#ifndef TNF_REMOTE_ANSWER_H
#define TNF_REMOTE_ANSWER_H

#include "base/error.h"
#include "remote/sums.h"
#include "remote/url.h"

#define TNF_ANSWER_EXCERPT 8192u
#define TNF_ANSWER_NEXT    4096u
#define TNF_ANSWER_HEADERS 262144u /* the largest size of all headers */
#define TNF_NOT_TOLD       UINT64_MAX

typedef struct tnf_answer {
    int status;            /* 0: no status line arrived */
    uint64_t length;       /* Content-Length, or TNF_NOT_TOLD */
    uint64_t first, last;  /* Content-Range; first is TNF_NOT_TOLD without one */
    uint64_t total;        /* size of the complete object, or TNF_NOT_TOLD */
    uint64_t retry_after;  /* seconds, or TNF_NOT_TOLD */
    int64_t date;          /* seconds since 1970 by the server's clock; 0: unknown */
    uint64_t header_bytes; /* size of all headers */
    bool ranges;           /* there was a Content-Range */
    bool encoded;          /* Content-Encoding other than identity */
    bool multipart;        /* multipart/byteranges */
    bool html;             /* text/html */
    char etag[256];        /* with its quotes; "": none */
    char modified[64];     /* Last-Modified, unchanged */
    char location[TNF_URL_PATH + TNF_URL_QUERY];
    char version[128];                /* x-amz-version-id */
    char generation[32];              /* x-goog-generation */
    char region[64];                  /* x-amz-bucket-region */
    char code[96];                    /* x-error-code, x-ms-error-code */
    char commit[64];                  /* X-Repo-Commit */
    char linked_etag[256];            /* X-Linked-Etag */
    bool more;                        /* Link: there is a next page */
    char next[TNF_ANSWER_NEXT];       /* its URL; "" if that is too long */
    tnf_sum told;                     /* a digest of the complete object */
    bool sealed;                      /* s3: encrypted, so the ETag is not an MD5 */
    uint64_t linked_size;             /* X-Linked-Size, or TNF_NOT_TOLD */
    char excerpt[TNF_ANSWER_EXCERPT]; /* the beginning of the body of a refusal */
    size_t nexcerpt;
} tnf_answer;

void tnf_answer_begin(tnf_answer *a);
/* Takes one line, with or without its line end. A status line resets everything, since the answer
 * before it was an interim one. */
void tnf_answer_line(tnf_answer *a, const char *line, size_t n);
/* The strong ETag, or "". A weak ETag does not identify bytes. */
const char *tnf_answer_strong(const tnf_answer *a);

/* "bytes 0-9/100", "bytes 0-9/\*" and "bytes \*\/100". */
bool tnf_parse_content_range(const char *p, size_t n, uint64_t *first, uint64_t *last,
                             uint64_t *total);
/* Parses "Sun, 06 Nov 1994 08:49:37 GMT"; returns false for any other text. */
bool tnf_parse_http_date(const char *p, size_t n, int64_t *seconds);
/* Parses "20130524T000000Z" and "2013-05-24T00:00:00Z" to seconds since 1970; 0 for other texts. */
int64_t tnf_parse_stamp(const char *text);
/* Converts a UTC date and time to seconds since 1970. */
int64_t tnf_calendar_seconds(int year, int month, int day, int hour, int minute, int second);

/* Makes untrusted text safe for a message: removes control characters and shortens it. */
const char *tnf_excerpt(char *out, size_t room, const char *p, size_t n);

#endif
