/* SPDX-License-Identifier: MIT */
/* Application data of points: MessagePack shown as JSON.
 *
 *   7f 80 90 a0   small number, map, array, string      c0 nil   c2 c3 false true
 *   c4 … c6 bin   c7 … c9 ext   ca cb float   cc … d3 numbers   d4 … d8 ext   d9 … df the rest
 *
 * First it is walked through without a word; only what is whole and well-formed is printed.
 */
#include "emb.h"
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64

typedef struct reader {
    const uint8_t *p, *end;
    json *j; /* NULL: only walk */
} reader;

static bool value(reader *r, int depth);

static bool number(reader *r, unsigned bytes, uint64_t *out)
{
    if ((size_t)(r->end - r->p) < bytes)
        return false;
    *out = 0;
    for (unsigned i = 0; i < bytes; i++)
        *out = *out << 8 | *r->p++;
    return true;
}

static bool text(reader *r, uint64_t n, bool binary)
{
    if (n > (uint64_t)(r->end - r->p))
        return false;
    tnf_str s = { (const char *)r->p, (size_t)n };
    r->p += n;
    if (r->j && binary)
        json_bytes(r->j, s.p, s.n);
    else if (r->j)
        json_str(r->j, s);
    return true;
}

static bool array(reader *r, uint64_t n, int depth)
{
    if (r->j)
        json_open(r->j, '[');
    for (; n > 0; n--)
        if (!value(r, depth + 1))
            return false;
    if (r->j)
        json_close(r->j, ']');
    return true;
}

/* A number, a truth or nil. */
static bool is_plain(uint8_t head)
{
    return head < 0x80 || head >= 0xe0 || (head >= 0xc0 && head <= 0xc3) ||
           (head >= 0xca && head <= 0xd3);
}

/* A key that is no string: as its JSON in a string if it is plain, else as bytes (keys in keys
 * would have their quotes quoted again and again). */
static void odd_key(json *j, const uint8_t *from, const uint8_t *end)
{
    char *words = NULL;
    size_t n = 0;
    json own = { .to = is_plain(*from) ? open_memstream(&words, &n) : NULL };
    if (own.to) {
        reader r = { from, end, &own };
        (void)value(&r, 0);
        fclose(own.to);
    }
    json_key_bytes(j, words ? (tnf_str) { words, n }
                            : (tnf_str) { (const char *)from, (size_t)(end - from) });
    free(words);
}

static bool key(reader *r, int depth)
{
    uint64_t n = 0;
    uint8_t head = r->p < r->end ? *r->p : 0;
    if ((head & 0xe0) == 0xa0 || (head >= 0xd9 && head <= 0xdb)) {
        r->p++;
        if ((head & 0xe0) == 0xa0)
            n = head & 0x1f;
        else if (!number(r, 1u << (head - 0xd9), &n))
            return false;
        if (n > (uint64_t)(r->end - r->p))
            return false;
        if (r->j)
            json_key_bytes(r->j, (tnf_str) { (const char *)r->p, (size_t)n });
        r->p += n;
        return true;
    }
    const uint8_t *from = r->p;
    reader silent = { r->p, r->end, NULL };
    if (!value(&silent, depth + 1))
        return false;
    r->p = silent.p;
    if (r->j)
        odd_key(r->j, from, r->p);
    return true;
}

static bool map(reader *r, uint64_t n, int depth)
{
    if (r->j)
        json_open(r->j, '{');
    for (; n > 0; n--)
        if (!key(r, depth) || !value(r, depth + 1))
            return false;
    if (r->j)
        json_close(r->j, '}');
    return true;
}

static bool put_float(reader *r, unsigned bytes)
{
    uint64_t bits;
    if (!number(r, bytes, &bits))
        return false;
    if (bytes == 4) {
        uint32_t half = (uint32_t)bits;
        float f;
        memcpy(&f, &half, sizeof f);
        if (r->j)
            json_f32(r->j, f);
    } else {
        double f;
        memcpy(&f, &bits, sizeof f);
        if (r->j)
            json_f64(r->j, f);
    }
    return true;
}

static bool put_integer(reader *r, unsigned bytes, bool is_signed)
{
    uint64_t u;
    if (!number(r, bytes, &u))
        return false;
    unsigned shift = 64 - 8 * bytes;
    if (r->j && is_signed)
        json_int(r->j, (int64_t)(u << shift) >> shift);
    else if (r->j)
        json_uint(r->j, u);
    return true;
}

/* Its type goes first among the bytes. */
static bool extension(reader *r, uint64_t n)
{
    return n < UINT32_MAX && text(r, n + 1, true);
}

static bool long_form(reader *r, uint8_t head, int depth)
{
    uint64_t n;
    switch (head) {
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return number(r, 1u << (head - 0xc4), &n) && text(r, n, true);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return number(r, 1u << (head - 0xc7), &n) && extension(r, n);
    case 0xca:
    case 0xcb:
        return put_float(r, head == 0xca ? 4 : 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return put_integer(r, 1u << (head - 0xcc), false);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return put_integer(r, 1u << (head - 0xd0), true);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return extension(r, 1u << (head - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb:
        return number(r, 1u << (head - 0xd9), &n) && text(r, n, false);
    case 0xdc:
    case 0xdd:
        return number(r, 2u << (head - 0xdc), &n) && array(r, n, depth);
    case 0xde:
    case 0xdf:
        return number(r, 2u << (head - 0xde), &n) && map(r, n, depth);
    default:
        return false;
    }
}

/* Depth is counted; every element takes a byte at least, so counts cannot mislead for long. */
static bool value(reader *r, int depth)
{
    if (r->p >= r->end || depth > MAX_DEPTH)
        return false;
    uint8_t head = *r->p++;
    if (head < 0x80 || head >= 0xe0) {
        if (r->j)
            json_int(r->j, head < 0x80 ? head : (int)head - 256);
        return true;
    }
    if (head < 0x90)
        return map(r, head & 0x0f, depth);
    if (head < 0xa0)
        return array(r, head & 0x0f, depth);
    if (head < 0xc0)
        return text(r, head & 0x1f, false);
    if (head == 0xc0 || head == 0xc2 || head == 0xc3) {
        if (r->j && head == 0xc0)
            json_null(r->j);
        else if (r->j)
            json_bool(r->j, head == 0xc3);
        return true;
    }
    return long_form(r, head, depth);
}

void emb_json_app(json *j, tnf_str bytes)
{
    const uint8_t *p = (const uint8_t *)bytes.p;
    reader r = { p, p + bytes.n, NULL };
    if (bytes.n == 0) {
        json_null(j);
        return;
    }
    if (!value(&r, 0) || r.p != r.end) {
        json_bytes(j, bytes.p, bytes.n);
        return;
    }
    r = (reader) { p, p + bytes.n, j };
    (void)value(&r, 0);
}
