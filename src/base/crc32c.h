/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_CRC32C_H
#define TNF_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli). Begin with 0, then pass the result of the bytes so far. Uses the CPU's
 * instruction if it has one. */
uint32_t tnf_crc32c(uint32_t crc, const void *bytes, size_t n);
/* The same without the instruction: fast, with tables of 8 KB; or slow, with tables of 64 bytes. */
uint32_t tnf_crc32c_portable(uint32_t crc, const void *bytes, size_t n);
uint32_t tnf_crc32c_small(uint32_t crc, const void *bytes, size_t n);

#endif
