/* SPDX-License-Identifier: MIT */
/* Digests as text, in the form of zTensor 0.1 and 1.x:
 *
 *   crc32c:0x42709AEA            0.1 also accepts either case, a '+' and more zeros; 1.x also 0X
 *   sha256:e3b0c442 … b855       64 digits of either case
 */
#ifndef TNF_FORMATS_ZTENSOR_OLD_DIGEST_TEXT_H
#define TNF_FORMATS_ZTENSOR_OLD_DIGEST_TEXT_H

#include "base/arena.h"

typedef enum tnf_zt_digest_kind {
    TNF_ZT_DIGEST_KNOWN,   /* can be checked */
    TNF_ZT_DIGEST_UNKNOWN, /* another algorithm, or another notation */
    TNF_ZT_DIGEST_BROKEN   /* "crc32c:0x" without a number of 32 bits */
} tnf_zt_digest_kind;

/* Room for any text from tnf_zt_digest_text(), with its NUL. */
#define TNF_ZT_DIGEST_TEXT 72u

/* Reads a digest of stored bytes into the arena, with its text. Its algorithm is NULL if it is
 * unknown. big_x: 0X is accepted like 0x. */
tnf_status tnf_zt_digest_read(const tnf_digest **out, tnf_zt_digest_kind *kind, tnf_str text,
                              bool big_x, tnf_arena *arena, tnf_error *e);
/* The text of a crc32c (4 bytes) or sha256 (32 bytes). */
void tnf_zt_digest_text(char out[TNF_ZT_DIGEST_TEXT], const char *algorithm, const uint8_t *bytes);

#endif
