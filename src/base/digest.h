/* SPDX-License-Identifier: MIT */
/* Checksums by name. */
#ifndef TNF_BASE_DIGEST_H
#define TNF_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TNF_DIGEST_MAX 32u

/* "crc32c" and "crc32" (4 bytes, big-endian, as hex is read), "xxh3-64", "xxh3-128" (canonical
 * big-endian), "sha256". */
typedef struct tnf_digester {
    const struct tnf_digest_algorithm *algorithm;
    void *state;
} tnf_digester;

/* The length in bytes of an algorithm's digest; 0 if the algorithm is unknown. */
size_t tnf_digest_size(const char *algorithm);
/* False: unknown algorithm, or no memory. */
bool tnf_digest_begin(tnf_digester *d, const char *algorithm);
void tnf_digest_update(tnf_digester *d, const void *bytes, size_t n);
/* Writes the digest and frees the state. If `out` is NULL, only frees it. */
void tnf_digest_end(tnf_digester *d, uint8_t *out);

/* Pointers to all functions above. Code that calls them only through this struct does not link them
 * by itself; a program contains them only if one of its formats refers to the struct. */
typedef struct tnf_digest_ops {
    size_t (*size)(const char *algorithm);
    bool (*begin)(tnf_digester *d, const char *algorithm);
    void (*update)(tnf_digester *d, const void *bytes, size_t n);
    void (*end)(tnf_digester *d, uint8_t *out);
} tnf_digest_ops;

extern const tnf_digest_ops tnf_digests;

#endif
