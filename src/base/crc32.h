/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_CRC32_H
#define TNF_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of gzip and zip. Begin with 0, then pass the result of the bytes so far. Uses instructions
 * of the CPU if it has them. */
uint32_t tnf_crc32(uint32_t crc, const void *bytes, size_t n);
/* The same without them. */
uint32_t tnf_crc32_portable(uint32_t crc, const void *bytes, size_t n);
/* The CRC of n bytes, from `front` (of the bytes before them) and `whole` (of both together). */
uint32_t tnf_crc32_behind(uint32_t whole, uint32_t front, uint64_t n);
/* The CRC of both together, from `front` and `back`, the CRC of the n bytes that follow. */
uint32_t tnf_crc32_join(uint32_t front, uint32_t back, uint64_t n);

#endif
