/* SPDX-License-Identifier: MIT */
/* zTensor 2 has its manifest behind a hash: what is mutated must be hashed again, or nothing behind
 * it is ever reached.
 *
 *   … │ manifest │ offset, length, hash, version, reserved, magic │
 *       └ mutated, may grow            └ made anew
 */
#include "base/bytes.h"
#include "base/digest.h"
#include "fuzz.h"

#include <string.h>

#define MAGIC  "\x89ZT2\r\n\x1a\n"
#define FOOTER 40u

static uint64_t hash_of(const uint8_t *p, size_t n)
{
    uint8_t hash[TNF_DIGEST_MAX] = { 0 };
    tnf_digester d;
    FUZZ_REQUIRE(tnf_digest_begin(&d, "xxh3-64"), "no xxh3");
    tnf_digest_update(&d, p, n);
    tnf_digest_end(&d, hash);
    return tnf_be64(hash);
}

size_t fuzz_mutate_hashed(uint8_t *data, size_t size, size_t max, unsigned seed,
                          size_t (*mutate)(uint8_t *data, size_t size, size_t max, unsigned seed))
{
    uint8_t footer[FOOTER];
    if (size < FOOTER + 8 || max < size || memcmp(data, MAGIC, 8) != 0 ||
        memcmp(data + size - 8, MAGIC, 8) != 0)
        return 0;
    memcpy(footer, data + size - FOOTER, FOOTER);
    uint64_t offset = tnf_le64(footer);
    if (offset >= size - FOOTER)
        return 0;
    size_t at = (size_t)offset, n = size - FOOTER - at;
    n = mutate(data + at, n, max - FOOTER - at, seed >> 2);
    tnf_put_le64(footer + 8, n);
    tnf_put_le64(footer + 16, hash_of(data + at, n));
    memcpy(data + at + n, footer, FOOTER);
    return at + n + FOOTER;
}
