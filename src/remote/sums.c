/* SPDX-License-Identifier: MIT */
#include "remote/sums.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/str.h"

#include <pthread.h>
#include <string.h>

static const struct {
    const char *name;   /* for messages */
    const char *digest; /* of base/digest.h; NULL: implemented here */
    size_t size;
} kinds[] = {
    [TNF_SUM_NONE] = { "none", NULL, 0 },          [TNF_SUM_CRC32] = { "CRC-32", "crc32", 4 },
    [TNF_SUM_CRC32C] = { "CRC-32C", "crc32c", 4 }, [TNF_SUM_CRC64] = { "CRC-64/NVME", NULL, 8 },
    [TNF_SUM_MD5] = { "MD5", NULL, 16 },           [TNF_SUM_SHA256] = { "SHA-256", "sha256", 32 },
};

size_t tnf_sum_size(tnf_sum_kind kind)
{
    return kinds[kind].size;
}

const char *tnf_sum_name(tnf_sum_kind kind)
{
    return kinds[kind].name;
}

/* ----------------------------------------------------------------- headers */

/* Decodes exactly `size` bytes, with padding. */
static bool decode_base64(uint8_t *out, size_t size, tnf_str text)
{
    size_t pad = (3 - size % 3) % 3, at = 0;
    uint32_t bits = 0;
    if (text.n != (size + 2) / 3 * 4)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        bool padding = i >= text.n - pad;
        int digit = padding ? 0 : tnf_base64_digit(text.p[i]);
        if (digit < 0 || (padding && text.p[i] != '='))
            return false;
        bits = bits << 6 | (uint32_t)digit;
        for (int shift = 16; i % 4 == 3 && shift >= 0; shift -= 8)
            if (at < size)
                out[at++] = (uint8_t)(bits >> shift);
    }
    return true;
}

static void take_sum(tnf_sum *known, tnf_sum_kind kind, tnf_str text)
{
    tnf_sum sum = { .kind = kind };
    if (kind > known->kind && decode_base64(sum.bytes, kinds[kind].size, text))
        *known = sum;
}

static tnf_sum_kind kind_of(tnf_str name)
{
    static const struct {
        const char *name;
        tnf_sum_kind kind;
    } names[] = {
        { "crc32", TNF_SUM_CRC32 },     { "crc32c", TNF_SUM_CRC32C }, { "md5", TNF_SUM_MD5 },
        { "crc64nvme", TNF_SUM_CRC64 }, { "sha256", TNF_SUM_SHA256 }, { "sha-256", TNF_SUM_SHA256 },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tnf_str_is_word(name, names[i].name))
            return names[i].kind;
    return TNF_SUM_NONE;
}

/* Parses name=value,name=value. A value may be between colons (RFC 9530). */
static void take_list(tnf_sum *known, tnf_str list)
{
    const char *p = list.p, *end = p + list.n;
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *stop = comma ? comma : end;
        while (p < stop && *p == ' ')
            p++;
        const char *equals = memchr(p, '=', (size_t)(stop - p));
        if (equals) {
            tnf_str value = { equals + 1, (size_t)(stop - equals - 1) };
            while (value.n > 0 && value.p[value.n - 1] == ' ')
                value.n--;
            if (value.n >= 2 && value.p[0] == ':' && value.p[value.n - 1] == ':')
                value = (tnf_str) { value.p + 1, value.n - 2 };
            take_sum(known, kind_of((tnf_str) { p, (size_t)(equals - p) }), value);
        }
        p = comma ? comma + 1 : end;
    }
}

void tnf_sum_header(tnf_sum *known, tnf_str name, tnf_str value, int status)
{
    static const char amazon[] = "x-amz-checksum-";
    size_t n = sizeof amazon - 1;
    if (tnf_str_is_word(name, "x-goog-hash") || tnf_str_is_word(name, "repr-digest") ||
        tnf_str_is_word(name, "digest"))
        take_list(known, value);
    else if (tnf_str_is_word(name, "x-ms-blob-content-md5") ||
             (status == 200 && tnf_str_is_word(name, "content-md5")))
        take_sum(known, TNF_SUM_MD5, value);
    else if (status == 200 && name.n > n && tnf_str_is_word((tnf_str) { name.p, n }, amazon))
        take_sum(known, kind_of((tnf_str) { name.p + n, name.n - n }), value);
}

bool tnf_sum_quoted(tnf_sum *out, tnf_sum_kind kind, const char *text)
{
    size_t n = strlen(text), size = kinds[kind].size;
    if (n == 2 * size + 2 && text[0] == '"' && text[n - 1] == '"')
        text++;
    else if (n != 2 * size)
        return false;
    if (!tnf_hex_take(out->bytes, text, size))
        return false;
    out->kind = kind;
    return true;
}

tnf_status tnf_sum_compare(const tnf_sum *is, const tnf_sum *told, const char *what, bool local,
                           tnf_error *e)
{
    char shown[2][17];
    size_t n = kinds[told->kind].size, part = n < 8 ? n : 8;
    if (memcmp(is->bytes, told->bytes, n) == 0)
        return TNF_OK;
    *tnf_hex_put(shown[0], is->bytes, part) = 0;
    *tnf_hex_put(shown[1], told->bytes, part) = 0;
    return tnf_fail(e, TNF_EDIGEST, TNF_NO_OFFSET, "%s has the %s %s…, but the server says %s…%s",
                    what, kinds[told->kind].name, shown[0], shown[1],
                    local ? "; the copy in the hub's cache on this machine is damaged" : "");
}

/* --------------------------------------------------------------------- MD5 */

static uint32_t turn_left(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void md5_block(uint32_t state[4], const uint8_t *p)
{
    /* floor(2^32 * |sin(i + 1)|) */
    static const uint32_t sines[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
        0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
        0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
        0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
        0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
        0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
        0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
        0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
        0xeb86d391
    };
    static const uint8_t turns[4][4] = {
        { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
    };
    uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
                   (uint32_t)p[4 * i + 3] << 24;
    for (unsigned i = 0; i < 64; i++) {
        unsigned round = i / 16;
        uint32_t mix = round == 0   ? (b & c) | (~b & d)
                       : round == 1 ? (d & b) | (~d & c)
                       : round == 2 ? b ^ c ^ d
                                    : c ^ (b | ~d);
        unsigned word = round == 0 ? i : round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i;
        uint32_t next = b + turn_left(a + mix + sines[i] + words[word % 16], turns[round][i % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

static void md5_update(tnf_md5 *m, const uint8_t *p, size_t n)
{
    while (n > 0) {
        size_t at = (size_t)(m->n % 64), part = 64 - at < n ? 64 - at : n;
        if (at == 0 && n >= 64) {
            md5_block(m->state, p);
        } else {
            memcpy(m->block + at, p, part);
            if (at + part == 64)
                md5_block(m->state, m->block);
        }
        m->n += part;
        p += part;
        n -= part;
    }
}

static void md5_end(tnf_md5 *m, uint8_t out[16])
{
    uint8_t end[72] = { 0x80 };
    uint64_t bits = m->n * 8;
    size_t n = 64 - (size_t)((m->n + 8) % 64);
    for (int i = 0; i < 8; i++)
        end[n + (size_t)i] = (uint8_t)(bits >> 8 * i);
    md5_update(m, end, n + 8);
    for (int i = 0; i < 16; i++)
        out[i] = (uint8_t)(m->state[i / 4] >> 8 * (i % 4));
}

/* ------------------------------------------------------------- CRC-64/NVME */

static uint64_t crc_tables[8][256];
static pthread_once_t crc_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x9a6c9329ac4bc9b5u : 0);
        crc_tables[0][i] = crc;
    }
    for (unsigned k = 1; k < 8; k++)
        for (unsigned i = 0; i < 256; i++) {
            uint64_t before = crc_tables[k - 1][i];
            crc_tables[k][i] = before >> 8 ^ crc_tables[0][before & 255];
        }
}

static uint64_t crc64_update(uint64_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) { /* eight bytes at once, with a table for each */
        uint64_t next = 0;
        for (unsigned k = 0; k < 8; k++)
            next ^= crc_tables[7 - k][(crc >> 8 * k & 255) ^ p[k]];
        crc = next;
    }
    for (; n > 0; p++, n--)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ *p) & 255];
    return crc;
}

/* ------------------------------------------------------------------ summing */

bool tnf_summing_begin(tnf_summing *s, tnf_sum_kind kind)
{
    static const uint32_t begin[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
    s->kind = kind;
    s->crc = UINT64_MAX;
    s->md5.n = 0;
    memcpy(s->md5.state, begin, sizeof begin);
    if (kind == TNF_SUM_CRC64)
        pthread_once(&crc_made, make_tables);
    return !kinds[kind].digest || tnf_digest_begin(&s->digester, kinds[kind].digest);
}

void tnf_summing_update(tnf_summing *s, const void *bytes, size_t n)
{
    if (kinds[s->kind].digest)
        tnf_digest_update(&s->digester, bytes, n);
    else if (s->kind == TNF_SUM_MD5)
        md5_update(&s->md5, bytes, n);
    else
        s->crc = crc64_update(s->crc, bytes, n);
}

void tnf_summing_end(tnf_summing *s, tnf_sum *out)
{
    *out = (tnf_sum) { .kind = s->kind };
    if (kinds[s->kind].digest)
        tnf_digest_end(&s->digester, out->bytes);
    else if (s->kind == TNF_SUM_MD5)
        md5_end(&s->md5, out->bytes);
    else
        for (int i = 0; i < 8; i++)
            out->bytes[i] = (uint8_t)(~s->crc >> (56 - 8 * i));
}
