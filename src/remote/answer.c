/* SPDX-License-Identifier: MIT */
#include "remote/answer.h"

#include "base/str.h"

#include <string.h>
#include <time.h>

static bool begins_with(tnf_str s, const char *word)
{
    size_t n = strlen(word);
    return s.n >= n && tnf_str_alike(s.p, word, n);
}

/* Parses digits at *p, up to end. Returns false if there are none, or if the number is too large.
 */
static bool take_number(const char **p, const char *end, uint64_t *out)
{
    const char *begin = *p;
    *out = tnf_take_digits(p, end);
    return *p > begin && *out != TNF_NOT_TOLD;
}

static bool whole_number(tnf_str s, uint64_t *out)
{
    const char *p = s.p;
    return take_number(&p, s.p + s.n, out) && p == s.p + s.n;
}

bool tnf_parse_content_range(const char *p, size_t n, uint64_t *first, uint64_t *last,
                             uint64_t *total)
{
    const char *end = p + n;
    if (n < 6 || !tnf_str_is_word((tnf_str) { p, 5 }, "bytes") || (p[5] != ' ' && p[5] != '='))
        return false;
    for (p += 6; p < end && *p == ' '; p++)
        ;
    *first = *last = *total = TNF_NOT_TOLD;
    if (p < end && *p == '*') {
        p++;
    } else {
        if (!take_number(&p, end, first) || p == end || *p++ != '-' ||
            !take_number(&p, end, last) || *last < *first)
            return false;
    }
    if (p == end || *p++ != '/')
        return false;
    if (p + 1 == end && *p == '*')
        return *first != TNF_NOT_TOLD;
    return take_number(&p, end, total) && p == end && (*last == TNF_NOT_TOLD || *last < *total);
}

/* Counts days from 1970-01-01 with the usual arithmetic of eras of 400 years. */
int64_t tnf_calendar_seconds(int year, int month, int day, int hour, int minute, int second)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return days * 86400 + hour * 3600 + minute * 60 + second;
}

static int two_digits(const char *p)
{
    return p[0] >= '0' && p[0] <= '9' && p[1] >= '0' && p[1] <= '9'
               ? (p[0] - '0') * 10 + (p[1] - '0')
               : -1;
}

bool tnf_parse_http_date(const char *p, size_t n, int64_t *seconds)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    int month = 0;
    if (n != 29 || p[3] != ',' || p[4] != ' ' || p[7] != ' ' || p[11] != ' ' || p[16] != ' ' ||
        p[19] != ':' || p[22] != ':' || memcmp(p + 25, " GMT", 4) != 0)
        return false;
    for (int i = 0; i < 12; i++) {
        char name[4] = { months[3 * i], months[3 * i + 1], months[3 * i + 2], 0 };
        if (tnf_str_is_word((tnf_str) { p + 8, 3 }, name))
            month = i + 1;
    }
    int day = two_digits(p + 5), century = two_digits(p + 12), year = two_digits(p + 14);
    int hour = two_digits(p + 17), minute = two_digits(p + 20), second = two_digits(p + 23);
    if (!month || day < 1 || day > 31 || century < 0 || year < 0 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    *seconds = tnf_calendar_seconds(century * 100 + year, month, day, hour, minute, second);
    return true;
}

int64_t tnf_parse_stamp(const char *text)
{
    int pair[7]; /* century, year, month, day, hour, minute, second */
    size_t n = 0;
    for (const char *p = text; n < 7 && *p; p++) {
        if (*p == '-' || *p == ':' || *p == 'T')
            continue;
        pair[n] = two_digits(p); /* reads one more byte, which may be the NUL */
        if (pair[n++] < 0)
            return 0;
        p++;
    }
    if (n < 7 || pair[2] < 1 || pair[2] > 12 || pair[3] < 1 || pair[3] > 31)
        return 0;
    return tnf_calendar_seconds(pair[0] * 100 + pair[1], pair[2], pair[3], pair[4], pair[5],
                                pair[6]);
}

void tnf_answer_begin(tnf_answer *a)
{
    a->status = 0;
    a->length = a->first = a->last = a->total = TNF_NOT_TOLD;
    a->retry_after = a->linked_size = TNF_NOT_TOLD;
    a->date = 0;
    a->ranges = a->encoded = a->multipart = a->html = false;
    a->etag[0] = a->modified[0] = a->location[0] = a->version[0] = a->generation[0] = 0;
    a->region[0] = a->code[0] = a->commit[0] = a->linked_etag[0] = 0;
    a->more = a->sealed = false;
    a->next[0] = 0;
    a->told = (tnf_sum) { 0 };
    a->nexcerpt = 0;
}

static void keep_text(char *out, size_t room, tnf_str value)
{
    out[0] = 0;
    if (value.n >= room)
        return; /* a truncated value would be another value */
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < ' ')
            return;
    memcpy(out, value.p, value.n);
    out[value.n] = 0;
}

static void keep_number(uint64_t *out, tnf_str value)
{
    if (!whole_number(value, out))
        *out = TNF_NOT_TOLD;
}

/* Retry-After is a number of seconds, or a date. */
static void keep_retry(tnf_answer *a, tnf_str value)
{
    int64_t then;
    if (whole_number(value, &a->retry_after))
        return;
    a->retry_after = TNF_NOT_TOLD;
    if (!tnf_parse_http_date(value.p, value.n, &then))
        return;
    int64_t now = a->date ? a->date : (int64_t)time(NULL);
    a->retry_after = then > now ? (uint64_t)(then - now) : 0;
}

static void keep_range(tnf_answer *a, tnf_str value)
{
    a->ranges = tnf_parse_content_range(value.p, value.n, &a->first, &a->last, &a->total);
    if (!a->ranges)
        a->first = a->last = a->total = TNF_NOT_TOLD;
}

/* The length of a link up to the comma after it; commas in the URL and in quotes do not count. */
static size_t link_length(tnf_str v)
{
    char inside = 0;
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!inside && c == ',')
            return i;
        if (!inside && (c == '<' || c == '"'))
            inside = c == '<' ? '>' : '"';
        else if (inside && c == inside)
            inside = 0;
    }
    return v.n;
}

/* Is "; rel=next" among the parameters, with or without quotes? */
static bool says_next(const char *p, const char *end)
{
    for (; end - p >= 8; p++)
        if ((*p == ';' || *p == ' ') && tnf_str_is_word((tnf_str) { p + 1, 4 }, "rel=")) {
            const char *word = p + 5 + (p[5] == '"');
            size_t n = 0;
            while (word + n < end && strchr("; \"\t", word[n]) == NULL)
                n++;
            if (tnf_str_is_word((tnf_str) { word, n }, "next"))
                return true;
        }
    return false;
}

/* <https://host/path?cursor=…>; rel="next", <…>; rel="last" */
static void keep_link(tnf_answer *a, tnf_str v)
{
    while (v.n > 0) {
        size_t n = link_length(v);
        const char *open = memchr(v.p, '<', n), *end = v.p + n;
        const char *close = open ? memchr(open, '>', (size_t)(end - open)) : NULL;
        if (close && says_next(close + 1, end)) {
            a->more = true;
            keep_text(a->next, sizeof a->next, (tnf_str) { open + 1, (size_t)(close - open - 1) });
        }
        n += n < v.n;
        v.p += n;
        v.n -= n;
    }
}

/* Does the header say that the object is encrypted with a customer's key? Then the ETag is not the
 * MD5 of the object. */
static bool seals_object(tnf_str name, tnf_str value)
{
    if (tnf_str_is_word(name, "x-amz-server-side-encryption"))
        return begins_with(value, "aws:");
    return tnf_str_is_word(name, "x-amz-server-side-encryption-customer-algorithm");
}

#define TEXT(header, member)                                                                       \
    {                                                                                              \
        header, offsetof(tnf_answer, member), sizeof(((tnf_answer *)0)->member)                    \
    }

/* Headers whose text is stored unchanged. */
static const struct {
    const char *name;
    size_t at, room;
} texts[] = {
    TEXT("etag", etag),
    TEXT("last-modified", modified),
    TEXT("location", location),
    TEXT("x-amz-version-id", version),
    TEXT("x-goog-generation", generation),
    TEXT("x-amz-bucket-region", region),
    TEXT("x-error-code", code),
    TEXT("x-ms-error-code", code),
    TEXT("x-repo-commit", commit),
    TEXT("x-linked-etag", linked_etag),
};

static void keep_header(tnf_answer *a, tnf_str name, tnf_str value)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (tnf_str_is_word(name, texts[i].name))
            keep_text((char *)a + texts[i].at, texts[i].room, value);
    tnf_sum_header(&a->told, name, value, a->status);
    if (tnf_str_is_word(name, "content-length"))
        keep_number(&a->length, value);
    else if (tnf_str_is_word(name, "x-linked-size"))
        keep_number(&a->linked_size, value);
    else if (tnf_str_is_word(name, "content-range"))
        keep_range(a, value);
    else if (tnf_str_is_word(name, "content-encoding"))
        a->encoded = value.n > 0 && !tnf_str_is_word(value, "identity");
    else if (tnf_str_is_word(name, "content-type"))
        a->multipart = begins_with(value, "multipart/byteranges"),
        a->html = begins_with(value, "text/html");
    else if (tnf_str_is_word(name, "retry-after"))
        keep_retry(a, value);
    else if (tnf_str_is_word(name, "link"))
        keep_link(a, value);
    else if (seals_object(name, value))
        a->sealed = true;
    else if (tnf_str_is_word(name, "date") && !tnf_parse_http_date(value.p, value.n, &a->date))
        a->date = 0;
}

/* "HTTP/1.1 206 Partial Content" */
static void begin_anew(tnf_answer *a, const char *line, size_t n)
{
    const char *space = memchr(line, ' ', n), *end = line + n;
    uint64_t status = 0;
    tnf_answer_begin(a);
    if (!space)
        return;
    for (space++; space < end && *space == ' '; space++)
        ;
    if (take_number(&space, end, &status) && status < 1000)
        a->status = (int)status;
}

void tnf_answer_line(tnf_answer *a, const char *line, size_t n)
{
    a->header_bytes += n;
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r' || line[n - 1] == ' '))
        n--;
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        begin_anew(a, line, n);
        return;
    }
    const char *colon = memchr(line, ':', n);
    if (!colon)
        return;
    tnf_str value = { colon + 1, (size_t)(line + n - colon - 1) };
    while (value.n > 0 && (*value.p == ' ' || *value.p == '\t')) {
        value.p++;
        value.n--;
    }
    keep_header(a, (tnf_str) { line, (size_t)(colon - line) }, value);
}

const char *tnf_answer_strong(const tnf_answer *a)
{
    return a->etag[0] == 'W' && a->etag[1] == '/' ? "" : a->etag;
}

const char *tnf_excerpt(char *out, size_t room, const char *p, size_t n)
{
    size_t at = 0;
    bool space = true; /* a run of white space becomes one space */
    for (size_t i = 0; i < n && at + 1 < room; i++) {
        bool blank = (unsigned char)p[i] <= ' ' || (unsigned char)p[i] >= 0x7f;
        if (blank && space)
            continue;
        space = blank;
        out[at++] = blank ? ' ' : p[i];
    }
    while (at > 0 && out[at - 1] == ' ')
        at--;
    out[at] = 0;
    return out;
}
