/* SPDX-License-Identifier: MIT */
/* Digests that servers tell of whole objects, and the means to check them. Headers that are read:
 *
 *   x-amz-checksum-ALGORITHM     base64; of the whole object unless "-N" stands behind it
 *   x-goog-hash                  crc32c=BASE64,md5=BASE64
 *   x-ms-blob-content-md5        BASE64
 *   Repr-Digest, Digest          sha-256=:BASE64:  and  SHA-256=BASE64
 *   Content-MD5                  BASE64, of the body: not of an answer with a part of the object
 */
#ifndef TNF_REMOTE_SUMS_H
#define TNF_REMOTE_SUMS_H

#include "base/digest.h"
#include <tenfold/types.h>

/* The algorithms, weakest first: the strongest that is told is checked. */
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
    uint8_t bytes[32]; /* as many as the algorithm has, most significant first */
} tnf_sum;

/* Takes what a header of an answer with this status tells, if it is stronger than what is known. */
void tnf_sum_header(tnf_sum *known, tnf_str name, tnf_str value, int status);
/* The digest that a quoted text of hex digits is (an ETag), if its length is right. */
bool tnf_sum_quoted(tnf_sum *out, tnf_sum_kind kind, const char *text);

/* TNF_EDIGEST if they differ; `what` has the first, the server says the second. local: the bytes
 * are those of the hub's cache on this machine. */
tnf_status tnf_sum_compare(const tnf_sum *is, const tnf_sum *told, const char *what, bool local,
                           tnf_error *e);

size_t tnf_sum_size(tnf_sum_kind kind);
const char *tnf_sum_name(tnf_sum_kind kind);

typedef struct tnf_md5 {
    uint32_t state[4];
    uint64_t n;
    uint8_t block[64];
} tnf_md5;

/* A sum in the making. */
typedef struct tnf_summing {
    tnf_sum_kind kind;
    tnf_digester digester; /* all but MD5 and CRC-64 */
    tnf_md5 md5;
    uint64_t crc;
} tnf_summing;

/* False: no memory. */
bool tnf_summing_begin(tnf_summing *s, tnf_sum_kind kind);
void tnf_summing_update(tnf_summing *s, const void *bytes, size_t n);
void tnf_summing_end(tnf_summing *s, tnf_sum *out);

#endif
