/* SPDX-License-Identifier: MIT */
/* bench_blocks MIB TYPE ROUNDS [SET]: converts MIB of floats to blocks and back, on one thread.
 *
 *   store     a plain loop that stores as many floats as decoding does
 *   set       memset() of the floats, which bypasses the caches if there are many
 *   copy      memcpy() of the floats
 *   decode    blocks to floats
 *   encode    floats to blocks, if the type can be encoded
 *
 * SET is an instruction set; without it, the best one of this machine.
 */
#include "bench.h"
#include "kernels/blocks.h"

#include <string.h>

struct work {
    const tnf_block_type *type;
    size_t n, bytes; /* blocks, and bytes of the floats */
    float *floats, *other;
    uint8_t *blocks;
};

static void store_all(void *ctx)
{
    struct work *w = ctx;
    float x = w->floats[0]; /* nothing a compiler could give to memset() */
    for (size_t i = 0; i < w->bytes / sizeof *w->other; i++)
        w->other[i] = x;
}

static void set_all(void *ctx)
{
    struct work *w = ctx;
    memset(w->other, 1, w->bytes);
}

static void copy_all(void *ctx)
{
    struct work *w = ctx;
    memcpy(w->other, w->floats, w->bytes);
}

static void decode_all(void *ctx)
{
    struct work *w = ctx;
    w->type->decode(w->other, w->blocks, w->n);
}

static void encode_all(void *ctx)
{
    struct work *w = ctx;
    w->type->encode(w->blocks, w->floats, w->n);
}

static const tnf_block_type *find_type(const char *name, const char *set_name)
{
    const tnf_block_set *set;
    for (size_t i = 0; (set = tnf_block_set_at(i)); i++)
        for (size_t t = 0; t < set->n; t++)
            if ((!set_name || strcmp(set->name, set_name) == 0) &&
                strcmp(set->types[t].name, name) == 0)
                return &set->types[t];
    return NULL;
}

/* Makes weights, and blocks of them. If the type cannot be encoded: bytes of at most 0x2f, so that
 * every f16 scale is an ordinary number. */
static void fill_inputs(struct work *w)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < w->bytes / sizeof *w->floats; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        w->floats[i] = ((float)(x >> 40) * 0x1p-24f - 0.5f) * 0.1f;
    }
    for (size_t i = 0; i < w->n * w->type->bytes; i++)
        w->blocks[i] = (uint8_t)(i * 37 & 0x2f);
    if (w->type->encode)
        w->type->encode(w->blocks, w->floats, w->n);
}

int main(int argc, char **argv)
{
    static bench_way ways[] = { { .name = "store", .run = store_all },
                                { .name = "set", .run = set_all },
                                { .name = "copy", .run = copy_all },
                                { .name = "decode", .run = decode_all },
                                { .name = "encode", .run = encode_all } };
    struct work w = { 0 };
    w.type = argc == 4 || argc == 5 ? find_type(argv[2], argv[4]) : NULL;
    if (!w.type) {
        fprintf(stderr, "usage: bench_blocks MIB TYPE ROUNDS [SET]\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[3]), n = w.type->encode ? 5 : 4;
    w.n = ((size_t)bench_number(argv[1]) << 20) / sizeof(float) / w.type->elements;
    w.bytes = w.n * w.type->elements * sizeof(float);
    w.floats = (float *)(void *)bench_memory(w.bytes);
    w.other = (float *)(void *)bench_memory(w.bytes);
    w.blocks = bench_memory(w.n * w.type->bytes);
    fill_inputs(&w);
    bench_run(ways, n, rounds, &w);
    printf("{");
    bench_print(ways, n, rounds);
    printf("\"bytes\":%zu}\n", w.bytes);
    free(w.floats);
    free(w.other);
    free(w.blocks);
    return 0;
}
