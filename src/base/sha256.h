/* SPDX-License-Identifier: MIT */
/* SHA-256 and SHA-1 (FIPS 180-4): the first for builds without libcrypto. */
#ifndef TNF_BASE_SHA256_H
#define TNF_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct tnf_sha256 {
    uint32_t hash[8];
    uint64_t total;    /* bytes so far */
    uint8_t block[64]; /* the last total % 64 of them */
    void (*add)(uint32_t *hash, const uint8_t *block);
} tnf_sha256;

void tnf_sha256_begin(tnf_sha256 *s);
void tnf_sha256_update(tnf_sha256 *s, const void *bytes, size_t n);
void tnf_sha256_end(tnf_sha256 *s, uint8_t out[32]);
/* Its other half: bytes are added by tnf_sha256_update(). */
void tnf_sha1_begin(tnf_sha256 *s);
void tnf_sha1_end(tnf_sha256 *s, uint8_t out[20]);

#endif
