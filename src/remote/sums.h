/* SPDX-License-Identifier: MIT */
/* Digests of complete objects that servers give, and functions to check them. These headers are
 * read:
 *
 *   x-amz-checksum-ALGORITHM     base64; of the complete object, unless "-N" follows it
 *   x-goog-hash                  crc32c=BASE64,md5=BASE64
 *   x-ms-blob-content-md5        BASE64
 *   Repr-Digest, Digest          sha-256=:BASE64:  and  SHA-256=BASE64
 *   Content-MD5                  BASE64, of the body: not of an answer with a part of the object
 */
#ifndef TNF_REMOTE_SUMS_H
#define TNF_REMOTE_SUMS_H

#include "base/digest.h"
#include <tenfold/types.h>

/* The algorithms, weakest first. The strongest available digest is checked. */
typedef enum tnf_sum_kind {
    TNF_SUM_NONE,
    TNF_SUM_CRC32,
    TNF_SUM_CRC32C,
    TNF_SUM_CRC64, /* CRC-64/NVME */
    TNF_SUM_MD5,
    TNF_SUM_SHA256
} tnf_sum_kind;

typedef struct tnf_sum {
    tnf_sum_kind kind;
    uint8_t bytes[32]; /* the digest, most significant byte first */
} tnf_sum;

/* Takes a digest from a header of an answer with this status, if it is stronger than the known
 * one. */
void tnf_sum_header(tnf_sum *known, tnf_str name, tnf_str value, int status);
/* Parses a quoted text of hex digits (an ETag); returns false if its length is wrong. */
bool tnf_sum_quoted(tnf_sum *out, tnf_sum_kind kind, const char *text);

/* Fails with TNF_EDIGEST if the digests differ: `is` is that of `what`, `told` that of the server.
 * local: the bytes are from the hub's cache on this machine. */
tnf_status tnf_sum_compare(const tnf_sum *is, const tnf_sum *told, const char *what, bool local,
                           tnf_error *e);

size_t tnf_sum_size(tnf_sum_kind kind);
const char *tnf_sum_name(tnf_sum_kind kind);

typedef struct tnf_md5 {
    uint32_t state[4];
    uint64_t n;
    uint8_t block[64];
} tnf_md5;

/* A digest that is being computed. */
typedef struct tnf_summing {
    tnf_sum_kind kind;
    tnf_digester digester; /* for all except MD5 and CRC-64 */
    tnf_md5 md5;
    uint64_t crc;
} tnf_summing;

/* Returns false if there is no memory. */
bool tnf_summing_begin(tnf_summing *s, tnf_sum_kind kind);
void tnf_summing_update(tnf_summing *s, const void *bytes, size_t n);
void tnf_summing_end(tnf_summing *s, tnf_sum *out);

#endif
