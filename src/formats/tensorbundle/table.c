/* SPDX-License-Identifier: MIT */
/* The index: a table in LevelDB's format.
 *
 *   [block][u8 type][u32 masked crc32c] …  [metaindex block] [index block]  footer, 48 bytes
 *   footer   two handles (varint offset, varint size), zeros up to 40, the magic
 *   block    entries, then u32 restart offsets, then their number, u32
 *   entry    varint shared, varint unshared, varint value length, rest of the key, value
 *
 * The values of the index block are the handles of the blocks with the keys. A CRC covers the block
 * and its type.
 */
#include "base/crc32c.h"
#include "formats/tensorbundle/bundle.h"

#include <string.h>

#define FOOTER    48u
#define TRAILER   5u
#define MAX_BLOCK ((uint64_t)1 << 30)
#define MAX_KEY   65536u

struct handle {
    uint64_t offset, size;
};

static struct handle read_handle(tnf_cur *c)
{
    struct handle h;
    h.offset = tnf_varint(c);
    h.size = tnf_varint(c);
    return h;
}

/* Reads the entries of a block and compares its CRC. */
static tnf_status read_block(tnf_reader *r, struct handle h, uint64_t at, tnf_cur *out,
                             tnf_error *e)
{
    uint64_t size = r->source->size - FOOTER;
    if (h.offset > size || size - h.offset < TRAILER || h.size > size - h.offset - TRAILER)
        return tnf_fail(e, TNF_EFORMAT, at, "a block of %llu bytes at %llu is outside the file",
                        (unsigned long long)h.size, (unsigned long long)h.offset);
    TNF_TRY(tnf_read_range(r, "index", h.offset, h.size + TRAILER, MAX_BLOCK, out, e));
    uint8_t type = out->p[h.size];
    uint32_t told = tnf_tb_unmask(tnf_le32(out->p + h.size + 1));
    if (tnf_crc32c(0, out->p, (size_t)h.size + 1) != told)
        return tnf_fail(e, TNF_EFORMAT, h.offset,
                        "the block does not match its checksum, a CRC-32C");
    if (type != 0)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, h.offset + h.size,
            "a block is compressed, as in TensorFlow V1 checkpoints, which are not supported");
    uint64_t restarts = h.size >= 4 ? tnf_le32(out->p + h.size - 4) : 0;
    if (h.size < 4 || restarts > (h.size - 4) / 4)
        return tnf_fail(e, TNF_EFORMAT, h.offset, "a block ends before its list of restarts");
    out->end = out->p + (h.size - 4 - 4 * restarts);
    return TNF_OK;
}

/* Reads the next key and the length of its value. Keys must be in ascending order. */
static tnf_status next_entry(tnf_cur *c, tnf_buf *key, bool first, uint64_t *n, tnf_error *e)
{
    uint64_t at = tnf_where(c), shared = tnf_varint(c), rest = tnf_varint(c);
    *n = tnf_varint(c);
    const uint8_t *p = tnf_bytes(c, rest);
    if (c->bad || *n > tnf_left(c) || shared > key->n)
        return tnf_fail(e, TNF_EFORMAT, at, "an entry runs past its block");
    if (shared + rest > MAX_KEY)
        return tnf_fail(e, TNF_ELIMIT, at, "a key has %llu bytes; the limit is %u",
                        (unsigned long long)(shared + rest), MAX_KEY);
    size_t left = key->n - (size_t)shared, same = left < rest ? left : (size_t)rest;
    int order = same && key->p ? memcmp(p, key->p + shared, same) : 0;
    if (!first && (order < 0 || (order == 0 && rest <= left)))
        return tnf_fail(e, TNF_EFORMAT, at, "the keys are not in ascending order");
    key->n = (size_t)shared;
    tnf_buf_put(key, p, (size_t)rest);
    return tnf_buf_status(key, "a key", e);
}

static tnf_status walk_block(const tb_table *t, struct handle h, uint64_t at, tnf_buf *key,
                             bool *first, tnf_error *e)
{
    tnf_cur c;
    uint64_t n;
    TNF_TRY(read_block(t->r, h, at, &c, e));
    for (bool start = true; tnf_left(&c) > 0; start = false) {
        if (start && *c.p != 0)
            return tnf_fail(e, TNF_EFORMAT, tnf_where(&c), "a block begins inside a key");
        TNF_TRY(next_entry(&c, key, *first, &n, e));
        *first = false;
        uint64_t value = tnf_where(&c);
        (void)tnf_bytes(&c, n);
        tnf_str name = { key->p ? (const char *)key->p : "", key->n };
        TNF_TRY(t->take(t->ctx, name, value, n, e));
    }
    return TNF_OK;
}

static tnf_status walk_blocks(const tb_table *t, tnf_cur *index, tnf_buf *last, tnf_buf *key,
                              tnf_error *e)
{
    uint64_t n;
    bool first = true;
    for (bool start = true; tnf_left(index) > 0; start = false) {
        TNF_TRY(next_entry(index, last, start, &n, e));
        tnf_cur value = tnf_cur_over(index->p, (size_t)n, tnf_where(index));
        struct handle h = read_handle(&value);
        if (value.bad)
            return tnf_fail(e, TNF_EFORMAT, tnf_where(index), "the place of a block is truncated");
        TNF_TRY(walk_block(t, h, tnf_where(index), key, &first, e));
        (void)tnf_bytes(index, n);
    }
    return TNF_OK;
}

tnf_status tnf_tb_table(const tb_table *t, tnf_error *e)
{
    static const uint8_t magic[8] = { 0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB };
    tnf_reader *r = t->r;
    tnf_cur c;
    uint64_t size = r->source->size;
    if (size < FOOTER)
        return tnf_fail(e, TNF_ETRUNCATED, size,
                        "the file ends before its footer: %s missing (cut short?)",
                        TNF_BYTES_ARE(FOOTER - size));
    TNF_TRY(tnf_read_range(r, "footer", size - FOOTER, FOOTER, FOOTER, &c, e));
    if (memcmp(c.p + FOOTER - 8, magic, 8) != 0)
        return tnf_fail(e, TNF_EFORMAT, size - 8,
                        "the file does not end with the magic of a table (cut short?)");
    (void)read_handle(&c); /* the metaindex, which is not about tensors */
    uint64_t at = tnf_where(&c);
    struct handle index = read_handle(&c);
    if (c.bad)
        return tnf_fail(e, TNF_EFORMAT, at, "the footer is invalid");
    TNF_TRY(read_block(r, index, at, &c, e));
    tnf_buf key, last;
    tnf_buf_init(&key, &r->scratch->alloc, MAX_KEY);
    tnf_buf_init(&last, &r->scratch->alloc, MAX_KEY);
    tnf_status status = walk_blocks(t, &c, &last, &key, e);
    tnf_buf_free(&key);
    tnf_buf_free(&last);
    return status;
}
