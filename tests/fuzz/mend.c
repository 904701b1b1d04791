/* SPDX-License-Identifier: MIT */
/* Repairs checksums, which mutations would never get past.
 *
 * zTensor 2 protects its manifest by a hash. It must be computed again after a mutation, or the
 * code after the check is never reached.
 *
 *   … │ manifest │ offset, length, hash, version, reserved, magic │
 *       └ mutated, may grow            └ rewritten
 *
 * HDF5 of versions 2 and 3 has one after each of its structures: after a mutation, those that are
 * still found are computed again.
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

/* ---------------------------------------------------------------------- HDF5 */

static uint32_t turn_left(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

/* Bob Jenkins' lookup3. */
static uint32_t hash_lookup3(const uint8_t *p, size_t n)
{
    static const uint8_t mix[6] = { 4, 6, 8, 16, 19, 4 };
    static const uint8_t last[7] = { 14, 11, 25, 16, 4, 14, 24 };
    uint32_t start = 0xDEADBEEFu + (uint32_t)n, v[3] = { start, start, start };
    for (; n > 12; p += 12, n -= 12) {
        for (int i = 0; i < 3; i++)
            v[i] += tnf_le32(p + 4 * i);
        for (unsigned i = 0; i < 6; i++) {
            v[i % 3] = (v[i % 3] - v[(i + 2) % 3]) ^ turn_left(v[(i + 2) % 3], mix[i]);
            v[(i + 2) % 3] += v[(i + 1) % 3];
        }
    }
    for (size_t i = 0; i < n; i++)
        v[i / 4] += (uint32_t)p[i] << 8 * (i % 4);
    for (unsigned i = 0; n > 0 && i < 7; i++)
        v[(i + 2) % 3] = (v[(i + 2) % 3] ^ v[(i + 1) % 3]) - turn_left(v[(i + 1) % 3], last[i]);
    return v[2];
}

/* The size of a structure before its checksum; 0: none begins here, or its size is unknown. */
static size_t summed_size(const uint8_t *p, size_t n)
{
    static const struct {
        char name[5];
        uint8_t size;
    } fixed[] = { { "BTHD", 34 }, { "FRHP", 142 }, { "FAHD", 24 }, { "EAHD", 68 } };
    for (size_t i = 0; n >= 16 && i < 4; i++)
        if (memcmp(p, fixed[i].name, 4) == 0)
            return fixed[i].size;
    if (n < 16 || memcmp(p, "OHDR", 4) != 0)
        return 0;
    size_t head = 6 + (p[5] & 0x20u ? 16u : 0u) + (p[5] & 0x10u ? 4u : 0u),
           width = 1u << (p[5] & 3u);
    uint64_t size = 0;
    for (size_t i = width; head + width <= n && i-- > 0;)
        size = size << 8 | p[head + i];
    return size < n ? head + width + (size_t)size : 0;
}

static void mend_hdf5(uint8_t *data, size_t size)
{
    if (size >= 48 && data[8] >= 2)
        tnf_put_le32(data + 44, hash_lookup3(data, 44));
    for (size_t at = 0; at + 16 < size; at++) {
        size_t n = summed_size(data + at, size - at);
        if (n && n + 4 <= size - at)
            tnf_put_le32(data + at + n, hash_lookup3(data + at, n));
    }
}

/* ------------------------------------------------------------------ zTensor 2 */

size_t fuzz_mutate_hashed(uint8_t *data, size_t size, size_t max, unsigned seed,
                          size_t (*mutate)(uint8_t *data, size_t size, size_t max, unsigned seed))
{
    uint8_t footer[FOOTER];
    if (size >= 8 && memcmp(data, "\x89HDF\r\n\x1a\n", 8) == 0) {
        size = mutate(data, size, max, seed >> 2);
        mend_hdf5(data, size);
        return size;
    }
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
