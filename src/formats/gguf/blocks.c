/* SPDX-License-Identifier: MIT */
/* Blocks of big-endian files: every number in a block that is wider than a byte has its bytes
 * reversed; single bytes and nibbles do not change.
 *
 *   q8_0, little-endian   00 3c | q q q …          scale 1.0
 *   q8_0, big-endian      3c 00 | q q q …
 *
 * Some writers leave blocks as they were made on a little-endian machine. The file does not say so,
 * but the scales show it: they have plausible sizes only in the right byte order.
 */
#include "formats/gguf/gguf.h"

void tnf_gguf_swap(const gguf_type *type, size_t block, uint8_t *bytes, size_t n)
{
    const size_t fields = sizeof type->fields / sizeof *type->fields;
    for (; n >= block; n -= block, bytes += block)
        for (size_t i = 0; i < fields && type->fields[i].count; i++)
            tnf_reverse(bytes + type->fields[i].at,
                        (uint64_t)type->fields[i].count * type->fields[i].width,
                        type->fields[i].width);
}

#define SAMPLED 64u /* blocks of a tensor */
#define ENOUGH  8u  /* fewer scales are not sufficient evidence */

/* Is the f16 zero, or in the range of scales of weights, 2^-20 to 2^5? */
static bool is_scale(uint16_t bits)
{
    unsigned exponent = bits >> 10 & 31u;
    return (bits & 0x7fffu) == 0 || (exponent >= 1 && exponent <= 19);
}

/* Counts the blocks whose scales are plausible in the declared byte order, and in the other one. */
static tnf_status count_scales(tnf_reader *r, const gguf_entry *t, uint64_t offset, bool big,
                               unsigned count[3], tnf_error *e)
{
    uint8_t field[2];
    size_t block = tnf_gguf_layout(t->type)->block_bytes;
    uint64_t blocks = t->nbytes / block, step = blocks > SAMPLED ? blocks / SAMPLED : 1;
    for (uint64_t i = 0; i < blocks && count[2] < SAMPLED; i += step) {
        TNF_TRY(tnf_source_read(r->source, offset + i * block + t->type->fields[0].at, field,
                                sizeof field, e));
        uint16_t said = tnf_le16(field), swapped = (uint16_t)(said << 8 | said >> 8);
        count[0] += is_scale(big ? swapped : said);
        count[1] += is_scale(big ? said : swapped);
        count[2]++;
    }
    return TNF_OK;
}

tnf_status tnf_gguf_check_order(tnf_reader *r, gguf_file *g, const gguf_entry *t, uint64_t offset,
                                tnf_error *e)
{
    unsigned count[3] = { 0 };
    if (!g->big || g->order_warned || g->order_sampled >= 16 || t->type->fields[0].width != 2 ||
        t->nbytes == 0 || offset + t->nbytes > r->source->size)
        return TNF_OK;
    g->order_sampled++;
    TNF_TRY(count_scales(r, t, offset, !g->blocks_little, count, e));
    if (count[2] < ENOUGH || count[1] < count[2] || count[0] > count[2] / 4 * 3)
        return TNF_OK;
    g->order_warned = true;
    tnf_warn(r, t->at, "the scales of %s look %s-endian: open the file with the option blocks=%s",
             TNF_QUOTED(t->name), g->blocks_little ? "big" : "little",
             g->blocks_little ? "big" : "little");
    return TNF_OK;
}
