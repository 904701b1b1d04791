/* SPDX-License-Identifier: MIT */
/* Digests as text, in the form of zTensor 0.1 and 1.x. */
#include "formats/ztensor_old/digest_text.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Reads a hexadecimal number of 32 bits like the Rust library. */
static bool read_u32(uint32_t *out, tnf_str digits)
{
    uint64_t v = 0;
    if (digits.n > 1 && *digits.p == '+') {
        digits.p++;
        digits.n--;
    }
    for (size_t i = 0; i < digits.n; i++) {
        int d = tnf_hex_digit(digits.p[i]);
        if (d < 0)
            return false;
        v = v << 4 | (uint64_t)d;
        if (v > UINT32_MAX)
            return false;
    }
    *out = (uint32_t)v;
    return digits.n > 0;
}

static tnf_zt_digest_kind read_crc32c(tnf_digest *d, uint8_t *bytes, tnf_str text, bool big_x)
{
    static const char prefix[] = "crc32c:0x";
    size_t n = sizeof prefix - 1;
    uint32_t crc;
    if (!tnf_str_begins(text, prefix) && !(big_x && tnf_str_begins(text, "crc32c:0X")))
        return TNF_ZT_DIGEST_UNKNOWN;
    if (!read_u32(&crc, (tnf_str) { text.p + n, text.n - n }))
        return TNF_ZT_DIGEST_BROKEN;
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(crc >> (24 - 8 * i));
    d->algorithm = "crc32c";
    d->n = 4;
    return TNF_ZT_DIGEST_KNOWN;
}

static tnf_zt_digest_kind read_sha256(tnf_digest *d, uint8_t *bytes, tnf_str text)
{
    size_t n = sizeof "sha256:" - 1;
    if (!tnf_str_begins(text, "sha256:") || text.n != n + 64 ||
        !tnf_hex_take(bytes, text.p + n, 32))
        return TNF_ZT_DIGEST_UNKNOWN;
    d->algorithm = "sha256";
    d->n = 32;
    return TNF_ZT_DIGEST_KNOWN;
}

tnf_status tnf_zt_digest_read(const tnf_digest **out, tnf_zt_digest_kind *kind, tnf_str text,
                              bool big_x, tnf_arena *arena, tnf_error *e)
{
    tnf_digest *d = tnf_arena_alloc(arena, sizeof *d);
    uint8_t *bytes = tnf_arena_alloc(arena, 32);
    const char *copy = tnf_arena_str(arena, text.p, text.n);
    if (!d || !bytes || !copy)
        return tnf_arena_fail(arena, "a checksum", e);
    *d = (tnf_digest) { .bytes = bytes, .text = { copy, text.n }, .of_stored = true };
    *kind = read_crc32c(d, bytes, text, big_x);
    if (*kind == TNF_ZT_DIGEST_UNKNOWN)
        *kind = read_sha256(d, bytes, text);
    *out = d;
    return TNF_OK;
}

void tnf_zt_digest_text(char out[TNF_ZT_DIGEST_TEXT], const char *algorithm, const uint8_t *bytes)
{
    bool crc = strcmp(algorithm, "crc32c") == 0;
    size_t n = (size_t)snprintf(out, TNF_ZT_DIGEST_TEXT, crc ? "crc32c:0x" : "sha256:");
    for (size_t i = 0; i < (crc ? 4u : 32u); i++)
        n += (size_t)snprintf(out + n, TNF_ZT_DIGEST_TEXT - n, crc ? "%02X" : "%02x", bytes[i]);
}
