/* SPDX-License-Identifier: MIT */
/* BLAKE3, plain hash mode, in portable C. Parameter ids hash names of a few dozen bytes, so this
 * code is short and simple rather than fast. It keeps everything on the stack.
 *
 * The input is cut into chunks of 1024 bytes, and chunks into blocks of 64. Each chunk gives a
 * chaining value. A binary tree joins the chunks: the left side of every node holds the largest
 * power of two of chunks that leaves at least one for the right side:
 *
 *                  root                  chunks done   stack (subtree sizes)
 *                 /    \                      1        1
 *              node     \                     2        2
 *             /    \     \                    3        2 1
 *           c0      c1    c2                  4        4
 *
 * Finished subtrees are on a stack; two of equal size are joined at once. The stack needs one place
 * per bit of the chunk count: 54 for 2^64 bytes.
 */
#include "base/blake3.h"

#include "base/bytes.h"

enum { BLOCK = 64, CHUNK = 1024, MAX_DEPTH = 54 };
enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

/* The first half of the initial state of a chain: the initial values of SHA-256. */
static const uint32_t initial[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* The word of the block for each place in each round. Each line is the one before it, permuted by 2
 * 6 3 10 7 0 4 13 1 11 12 5 9 14 15 8. */
static const uint8_t schedule[7][16] = {
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { 2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8 },
    { 3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1 },
    { 10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6 },
    { 12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4 },
    { 9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7 },
    { 11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13 },
};

/* A complete block; whether it is the root is not known yet. */
typedef struct node {
    uint32_t chain[8], block[16];
    uint64_t counter;
    uint32_t length, flags;
} node;

static uint32_t rotate_right(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static inline void mix_quarter(uint32_t *v, unsigned a, unsigned b, unsigned c, unsigned d,
                               uint32_t x, uint32_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate_right(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = rotate_right(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 7);
}

static inline void round_of(uint32_t v[16], const uint32_t m[16], const uint8_t s[16])
{
    mix_quarter(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
    mix_quarter(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
    mix_quarter(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
    mix_quarter(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
    mix_quarter(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
    mix_quarter(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
    mix_quarter(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
    mix_quarter(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
}

/* The chaining value of a node (or the digest's words, if flags say ROOT). */
static void compress_node(uint32_t out[8], const node *x, uint32_t flags)
{
    uint32_t v[16];
    memcpy(v, x->chain, 32);
    memcpy(v + 8, initial, 16);
    v[12] = (uint32_t)x->counter;
    v[13] = (uint32_t)(x->counter >> 32);
    v[14] = x->length;
    v[15] = flags;
    for (int i = 0; i < 7; i++)
        round_of(v, x->block, schedule[i]);
    for (int i = 0; i < 8; i++)
        out[i] = v[i] ^ v[i + 8];
}

/* A chunk of at most 1024 bytes. All its blocks but the last are compressed; the last becomes the
 * node. */
static void chunk_node(node *x, const uint8_t *p, size_t n, uint64_t counter)
{
    memcpy(x->chain, initial, sizeof x->chain);
    x->counter = counter;
    x->flags = CHUNK_START;
    for (;;) {
        uint8_t padded[BLOCK] = { 0 };
        x->length = n < BLOCK ? (uint32_t)n : BLOCK;
        if (n > 0) /* the pointer to an empty input may be NULL */
            memcpy(padded, p, x->length);
        for (int i = 0; i < 16; i++)
            x->block[i] = tnf_le32(padded + 4 * i);
        if (n <= BLOCK)
            break;
        compress_node(x->chain, x, x->flags);
        x->flags = 0;
        p += BLOCK;
        n -= BLOCK;
    }
    x->flags |= CHUNK_END;
}

static void parent_node(node *x, const uint32_t left[8], const uint32_t right[8])
{
    memcpy(x->chain, initial, sizeof x->chain);
    memcpy(x->block, left, 32);
    memcpy(x->block + 8, right, 32);
    x->counter = 0;
    x->length = BLOCK;
    x->flags = PARENT;
}

void tnf_blake3(uint8_t out[32], const void *bytes, size_t n)
{
    uint32_t stack[MAX_DEPTH][8], value[8];
    unsigned depth = 0;
    uint64_t chunks = 0;
    const uint8_t *p = bytes;
    node x;
    for (; n > CHUNK; p += CHUNK, n -= CHUNK) {
        chunk_node(&x, p, CHUNK, chunks++);
        compress_node(value, &x, x.flags);
        for (uint64_t done = chunks; (done & 1) == 0; done >>= 1) {
            parent_node(&x, stack[--depth], value);
            compress_node(value, &x, x.flags);
        }
        memcpy(stack[depth++], value, sizeof value);
    }
    chunk_node(&x, p, n, chunks);
    while (depth > 0) {
        compress_node(value, &x, x.flags);
        parent_node(&x, stack[--depth], value);
    }
    compress_node(value, &x, x.flags | ROOT);
    for (int i = 0; i < 8; i++)
        tnf_put_le32(out + 4 * i, value[i]);
}
