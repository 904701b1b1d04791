/* SPDX-License-Identifier: MIT */
/* Checksums by name: one table over libxxhash, and CRCs and SHA-256 of our own.
 *
 * All digests are in the byte order of their hex text: most significant byte first.
 */
#include "base/digest.h"

#include "base/crc32.h"
#include "base/crc32c.h"
#include "base/prefetch.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

#ifdef TENFOLD_XXHASH
#include <xxhash.h>

/* libxxhash may have variants that choose the best code for this CPU: the same results, up to four
 * times as fast. Distributions have them in the shared library and not in the archive, so only the
 * linker can find out. */
#if defined(__ELF__) && defined(__x86_64__)
XXH_errorcode XXH3_64bits_update_dispatch(XXH3_state_t *state, const void *bytes, size_t n)
    __attribute__((weak));
XXH_errorcode XXH3_128bits_update_dispatch(XXH3_state_t *state, const void *bytes, size_t n)
    __attribute__((weak));
#define BEST(function) (function##_dispatch ? function##_dispatch : (function))
#else
#define BEST(function) (function)
#endif
#endif

typedef struct tnf_digest_algorithm {
    const char *name;
    size_t size;
    void *(*begin)(void); /* NULL: no memory */
    void (*update)(void *state, const void *bytes, size_t n);
    /* Writes the digest and frees the state; `out` may be NULL. */
    void (*end)(void *state, uint8_t *out);
} kind;

static void *crc_begin(void)
{
    return calloc(1, sizeof(uint32_t));
}

static void crc32c_update(void *state, const void *bytes, size_t n)
{
    uint32_t *crc = state;
    *crc = tnf_crc32c(*crc, bytes, n);
}

static void crc32_update(void *state, const void *bytes, size_t n)
{
    uint32_t *crc = state;
    *crc = tnf_crc32(*crc, bytes, n);
}

static void crc_end(void *state, uint8_t *out)
{
    const uint32_t *crc = state;
    for (int i = 0; out && i < 4; i++)
        out[i] = (uint8_t)(*crc >> (24 - 8 * i));
    free(state);
}

#ifdef TENFOLD_XXHASH
/* Prefetches: XXH3 is faster than the CPU's own prefetching. */
static void xxh3_pieces(XXH_errorcode (*update)(XXH3_state_t *, const void *, size_t), void *state,
                        const uint8_t *bytes, size_t n)
{
    const size_t piece = 2048;
    for (size_t at = 0; at < n; at += piece) {
        for (size_t i = 0; n - at > TNF_PREFETCH && i < piece; i += 64)
            TNF_PREFETCH_OF(bytes, at + i);
        (void)update(state, bytes + at, n - at < piece ? n - at : piece);
    }
}

/* The state of XXH3 must be aligned to 64 bytes, so libxxhash allocates and frees it. */
static void *xxh3_64_begin(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (state)
        XXH3_64bits_reset(state);
    return state;
}

static void xxh3_64_update(void *state, const void *bytes, size_t n)
{
    xxh3_pieces(BEST(XXH3_64bits_update), state, bytes, n);
}

static void xxh3_64_end(void *state, uint8_t *out)
{
    if (out) {
        XXH64_canonical_t canonical;
        XXH64_canonicalFromHash(&canonical, XXH3_64bits_digest(state));
        memcpy(out, canonical.digest, sizeof canonical.digest);
    }
    XXH3_freeState(state);
}

static void *xxh3_128_begin(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (state)
        XXH3_128bits_reset(state);
    return state;
}

static void xxh3_128_update(void *state, const void *bytes, size_t n)
{
    xxh3_pieces(BEST(XXH3_128bits_update), state, bytes, n);
}

static void xxh3_128_end(void *state, uint8_t *out)
{
    if (out) {
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
        memcpy(out, canonical.digest, sizeof canonical.digest);
    }
    XXH3_freeState(state);
}
#endif

static void *sha256_begin(void)
{
    tnf_sha256 *state = malloc(sizeof *state);
    if (state)
        tnf_sha256_begin(state);
    return state;
}

static void sha256_update(void *state, const void *bytes, size_t n)
{
    tnf_sha256_update(state, bytes, n);
}

static void sha256_end(void *state, uint8_t *out)
{
    if (out)
        tnf_sha256_end(state, out);
    free(state);
}

static const kind kinds[] = {
    { "crc32c", 4, crc_begin, crc32c_update, crc_end },
    { "crc32", 4, crc_begin, crc32_update, crc_end },
#ifdef TENFOLD_XXHASH
    { "xxh3-64", 8, xxh3_64_begin, xxh3_64_update, xxh3_64_end },
    { "xxh3-128", 16, xxh3_128_begin, xxh3_128_update, xxh3_128_end },
#endif
    { "sha256", 32, sha256_begin, sha256_update, sha256_end },
};

static const kind *find_kind(const char *algorithm)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, algorithm) == 0)
            return &kinds[i];
    return NULL;
}

size_t tnf_digest_size(const char *algorithm)
{
    const kind *k = find_kind(algorithm);
    return k ? k->size : 0;
}

bool tnf_digest_begin(tnf_digester *d, const char *algorithm)
{
    d->algorithm = find_kind(algorithm);
    d->state = d->algorithm ? d->algorithm->begin() : NULL;
    return d->state != NULL;
}

void tnf_digest_update(tnf_digester *d, const void *bytes, size_t n)
{
    if (n > 0)
        d->algorithm->update(d->state, bytes, n);
}

void tnf_digest_end(tnf_digester *d, uint8_t *out)
{
    if (d->state)
        d->algorithm->end(d->state, out);
    d->state = NULL;
}

const tnf_digest_ops tnf_digests = { tnf_digest_size, tnf_digest_begin, tnf_digest_update,
                                     tnf_digest_end };
