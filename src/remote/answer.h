/* SPDX-License-Identifier: MIT */
/* What a server says before the bytes: its status line and headers, of which a few matter. */
#ifndef TNF_REMOTE_ANSWER_H
#define TNF_REMOTE_ANSWER_H

#include "base/error.h"
#include "remote/sums.h"
#include "remote/url.h"

#define TNF_ANSWER_EXCERPT 8192u
#define TNF_ANSWER_NEXT    4096u
#define TNF_ANSWER_HEADERS 262144u /* bytes of headers that are taken */
#define TNF_NOT_TOLD       UINT64_MAX

typedef struct tnf_answer {
    int status;            /* 0: none came */
    uint64_t length;       /* Content-Length, or TNF_NOT_TOLD */
    uint64_t first, last;  /* Content-Range; first is TNF_NOT_TOLD without one */
    uint64_t total;        /* of the whole object; TNF_NOT_TOLD: unknown */
    uint64_t retry_after;  /* seconds, or TNF_NOT_TOLD */
    int64_t date;          /* seconds since 1970 by the server's clock; 0: not told */
    uint64_t header_bytes; /* of all of them */
    bool ranges;           /* there was a Content-Range */
    bool encoded;          /* Content-Encoding other than identity */
    bool multipart;        /* multipart/byteranges */
    bool html;             /* text/html */
    char etag[256];        /* with its quotes; "": none */
    char modified[64];     /* Last-Modified as it is */
    char location[TNF_URL_PATH + TNF_URL_QUERY];
    char version[128];                /* x-amz-version-id */
    char generation[32];              /* x-goog-generation */
    char region[64];                  /* x-amz-bucket-region */
    char code[96];                    /* x-error-code, x-ms-error-code */
    char commit[64];                  /* X-Repo-Commit */
    char linked_etag[256];            /* X-Linked-Etag */
    bool more;                        /* Link: there is a next page … */
    char next[TNF_ANSWER_NEXT];       /* … there; "" if that is too long */
    tnf_sum told;                     /* a digest of the whole object */
    bool sealed;                      /* s3: encrypted in a way that makes ETag no MD5 */
    uint64_t linked_size;             /* X-Linked-Size, or TNF_NOT_TOLD */
    char excerpt[TNF_ANSWER_EXCERPT]; /* how the body of a refusal begins */
    size_t nexcerpt;
} tnf_answer;

void tnf_answer_begin(tnf_answer *a);
/* One line, with or without its end. A status line begins anew: what came before was interim. */
void tnf_answer_line(tnf_answer *a, const char *line, size_t n);
/* The strong ETag of it, or "": weak ones say nothing of bytes. */
const char *tnf_answer_strong(const tnf_answer *a);

/* "bytes 0-9/100", "bytes 0-9/\*" and "bytes \*\/100". */
bool tnf_parse_content_range(const char *p, size_t n, uint64_t *first, uint64_t *last,
                             uint64_t *total);
/* "Sun, 06 Nov 1994 08:49:37 GMT"; false if it is none. */
bool tnf_parse_http_date(const char *p, size_t n, int64_t *seconds);
/* "20130524T000000Z" and "2013-05-24T00:00:00Z", as seconds since 1970; 0: it is none. */
int64_t tnf_parse_stamp(const char *text);
/* A moment in the calendar of UTC, as seconds since 1970. */
int64_t tnf_calendar_seconds(int year, int month, int day, int hour, int minute, int second);

/* Text of a stranger for a message: control characters removed, shortened. */
const char *tnf_excerpt(char *out, size_t room, const char *p, size_t n);

#endif
