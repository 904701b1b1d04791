/* SPDX-License-Identifier: MIT */
/* SHA-256 and SHA-1 (FIPS 180-4), by the fastest implementation for this CPU. */
#ifndef TNF_BASE_SHA256_H
#define TNF_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* Adds n blocks of 64 bytes, at any address. */
typedef void tnf_sha256_fn(uint32_t *hash, const uint8_t *blocks, size_t n);

typedef struct tnf_sha256 {
    uint32_t hash[8];
    uint64_t total;    /* bytes so far */
    uint8_t block[64]; /* the last total % 64 bytes */
    tnf_sha256_fn *add;
} tnf_sha256;

void tnf_sha256_begin(tnf_sha256 *s);
/* The same in portable C only, so that a program without digests does not link the others. */
void tnf_sha256_begin_small(tnf_sha256 *s);
void tnf_sha256_small(uint8_t out[32], const void *bytes, size_t n);
void tnf_sha256_update(tnf_sha256 *s, const void *bytes, size_t n);
void tnf_sha256_end(tnf_sha256 *s, uint8_t out[32]);
/* SHA-1; bytes are added by tnf_sha256_update(). */
void tnf_sha1_begin(tnf_sha256 *s);
void tnf_sha1_end(tnf_sha256 *s, uint8_t out[20]);

/* The implementations, the fastest first; NULL: this CPU cannot run it. */
tnf_sha256_fn *tnf_sha256_by_cpu(void);
tnf_sha256_fn *tnf_sha256_by_avx2(void);
tnf_sha256_fn tnf_sha256_portable;

#endif
