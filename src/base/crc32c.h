/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_CRC32C_H
#define TNF_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of all bytes so far: begin with 0, then pass the result on. Uses the CPU's
 * instruction where there is one. */
uint32_t tnf_crc32c(uint32_t crc, const void *bytes, size_t n);
/* The same without the instruction: fast, by 8 KB of tables; or slow, by 64 bytes of them. */
uint32_t tnf_crc32c_portable(uint32_t crc, const void *bytes, size_t n);
uint32_t tnf_crc32c_small(uint32_t crc, const void *bytes, size_t n);

#endif
