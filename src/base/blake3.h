/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_BLAKE3_H
#define TNF_BASE_BLAKE3_H

#include <stddef.h>
#include <stdint.h>

/* BLAKE3 in plain hash mode, 32 bytes of output, any length of input (tree mode included). */
void tnf_blake3(uint8_t out[32], const void *bytes, size_t n);

#endif
