/* SPDX-License-Identifier: MIT */
/* Digests as text, as zTensor 0.1 and 1.x write them:
 *
 *   crc32c:0x42709AEA            0.1 takes either case, a '+' and more zeros, too; 1.x also 0X
 *   sha256:e3b0c442 … b855       64 digits of either case
 */
#ifndef TNF_FORMATS_ZTENSOR_OLD_DIGEST_TEXT_H
#define TNF_FORMATS_ZTENSOR_OLD_DIGEST_TEXT_H

#include "base/arena.h"

typedef enum tnf_zt_digest_kind {
    TNF_ZT_DIGEST_KNOWN,   /* can be checked */
    TNF_ZT_DIGEST_UNKNOWN, /* another algorithm, or another way to write one */
    TNF_ZT_DIGEST_BROKEN   /* "crc32c:0x" without a number of 32 bits */
} tnf_zt_digest_kind;

/* Room for any text that tnf_zt_digest_text() makes, with its NUL. */
#define TNF_ZT_DIGEST_TEXT 72u

/* A digest of stored bytes, in the arena with its text; its algorithm is NULL unless it is known.
 * big_x: 0X is as good as 0x. */
tnf_status tnf_zt_digest_read(const tnf_digest **out, tnf_zt_digest_kind *kind, tnf_str text,
                              bool big_x, tnf_arena *arena, tnf_error *e);
/* The text of a crc32c (4 bytes) or sha256 (32 bytes). */
void tnf_zt_digest_text(char out[TNF_ZT_DIGEST_TEXT], const char *algorithm, const uint8_t *bytes);

#endif
