/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_CRC32_H
#define TNF_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of gzip and zip of all bytes so far: begin with 0, then pass the result on. Uses
 * instructions of the CPU where there are some. */
uint32_t tnf_crc32(uint32_t crc, const void *bytes, size_t n);
/* The same without them. */
uint32_t tnf_crc32_portable(uint32_t crc, const void *bytes, size_t n);
/* That of n bytes, if `front` is that of what comes before them and `whole` of both together. */
uint32_t tnf_crc32_behind(uint32_t whole, uint32_t front, uint64_t n);
/* That of both together, if `back` is that of n bytes behind. */
uint32_t tnf_crc32_join(uint32_t front, uint32_t back, uint64_t n);

#endif
