/* SPDX-License-Identifier: MIT */
/* Blocks of big-endian files: every number in a block that is wider than a byte has its bytes the
 * other way round, single bytes and nibbles stay.
 *
 *   q8_0, little-endian   00 3c | q q q …          scale 1.0
 *   q8_0, big-endian      3c 00 | q q q …
 */
#include "formats/gguf/gguf.h"

static void swap_field(uint8_t *p, gguf_field f)
{
    for (unsigned k = 0; k < f.count; k++, p += f.width)
        for (unsigned i = 0; i < f.width / 2u; i++) {
            uint8_t low = p[i];
            p[i] = p[f.width - 1u - i];
            p[f.width - 1u - i] = low;
        }
}

void tnf_gguf_swap(const gguf_type *type, size_t block, uint8_t *bytes, size_t n)
{
    const size_t fields = sizeof type->fields / sizeof *type->fields;
    for (; n >= block; n -= block, bytes += block)
        for (size_t i = 0; i < fields && type->fields[i].count; i++)
            swap_field(bytes + type->fields[i].at, type->fields[i]);
}
