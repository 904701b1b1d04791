/* SPDX-License-Identifier: MIT */
/* The first line of word2vec's files, binary or text: "rows columns", as decimal numbers.
 *
 *   33 30 30 20 31 30 30 0a        "300 100\n"
 */
#include "formats/wordvec/wordvec.h"

#include <string.h>

bool tnf_wv_number(const char **at, const char *end, uint64_t *out)
{
    tnf_str digits = { *at, 0 };
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        digits.n++;
    return tnf_str_uint(out, digits);
}

/* A number is plain without leading zeros. */
static bool read_number(const char **at, const char *end, uint64_t *out, bool *plain)
{
    const char *from = *at;
    bool any = tnf_wv_number(at, end, out);
    *plain = *plain && (*at - from <= 1 || *from != '0');
    return any;
}

static void skip_blanks(const char **at, const char *end)
{
    while (*at < end && wv_is_blank(**at))
        ++*at;
}

const char *tnf_wv_head_parse(wv_head *out, const char *p, size_t n)
{
    static const char wrong[] = "the first line is not \"rows columns\", two whole numbers";
    const char *end = memchr(p, '\n', n < WV_HEAD_MAX ? n : WV_HEAD_MAX), *from = p;
    *out = (wv_head) { .plain = true };
    if (!end)
        return n < WV_HEAD_MAX ? "the first line, \"rows columns\", is incomplete" : wrong;
    out->length = (size_t)(end - p) + 1;
    skip_blanks(&p, end);
    out->plain = p == from;
    if (!read_number(&p, end, &out->rows, &out->plain))
        return wrong;
    const char *blanks = p;
    skip_blanks(&p, end);
    if (p == blanks)
        return wrong;
    out->plain = out->plain && p == blanks + 1 && *blanks == ' ';
    if (!read_number(&p, end, &out->dims, &out->plain))
        return wrong;
    blanks = p;
    skip_blanks(&p, end);
    out->plain = out->plain && p == blanks;
    out->crlf = p < end && *p == '\r';
    p += out->crlf;
    return p == end ? NULL : wrong;
}

tnf_status tnf_wv_head_read(tnf_reader *r, wv_head *out, tnf_error *e)
{
    uint64_t size = r->source->size;
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "first line", 0, size < WV_HEAD_MAX ? size : WV_HEAD_MAX, WV_HEAD_MAX,
                           &c, e));
    const char *why = tnf_wv_head_parse(out, (const char *)c.p, tnf_left(&c));
    if (why)
        return tnf_fail(e,
                        size < WV_HEAD_MAX && !memchr(c.p, '\n', tnf_left(&c)) ? TNF_ETRUNCATED
                                                                               : TNF_EFORMAT,
                        0, "%s", why);
    return TNF_OK;
}
