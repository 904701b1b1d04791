/* SPDX-License-Identifier: MIT */
/* bench_cast MIB FROM TO ROUNDS [SET]: casts numbers to another type, on one thread. The larger of
 * the two has MIB.
 *
 *   copy      memcpy() of as many bytes as the larger has
 *   cast      all numbers by one call
 *   pieces    the same, 256 KiB at a time, into the same memory, like the windows of a reader
 *   slow      an eighth of them one by one, through doubles: tnf_type_decode() and narrow.h
 *
 * SET is an instruction set; without it, the best one of this machine.
 */
#include "bench.h"
#include "kernels/cast.h"
#include "kernels/narrow.h"

#include <string.h>

#define PIECE ((size_t)64 << 10) /* elements */

struct work {
    const tnf_type *from, *to;
    tnf_cast_fn *cast;
    size_t n, from_bytes, to_bytes;
    uint8_t *in, *out;
};

static void copy_all(void *ctx)
{
    struct work *w = ctx;
    memcpy(w->out, w->in, w->n * (w->from_bytes > w->to_bytes ? w->from_bytes : w->to_bytes));
}

static void cast_all(void *ctx)
{
    struct work *w = ctx;
    w->cast(w->out, w->in, w->n);
}

static void cast_pieces(void *ctx)
{
    struct work *w = ctx;
    for (size_t i = 0; i < w->n; i += PIECE)
        w->cast(w->out, w->in + i * w->from_bytes, w->n - i < PIECE ? w->n - i : PIECE);
}

static void cast_slowly(void *ctx)
{
    struct work *w = ctx;
    const tnf_narrow *to = tnf_narrow_of(w->to->id);
    for (size_t i = 0; i < w->n / 8; i += 1024) {
        double x[1024];
        size_t n = w->n / 8 - i < 1024 ? w->n / 8 - i : 1024;
        tnf_type_decode(x, w->from, w->in, i, n);
        for (size_t k = 0; k < n && to; k++) {
            uint32_t bits = tnf_narrow_bits(to, x[k]);
            memcpy(w->out + (i + k) * w->to_bytes, &bits, w->to_bytes);
        }
        if (!to)
            memcpy(w->out + i * 8, x, n * 8);
    }
}

/* Weights: small numbers of both signs. */
static void fill_weights(struct work *w)
{
    uint64_t x = 88172645463325252u;
    tnf_cast_fn *cast = tnf_cast_of(tnf_type_of(TNF_F32), w->from);
    for (size_t i = 0; i < w->n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        float f = ((float)(x >> 40) * 0x1p-24f - 0.5f) * 0.1f;
        if (cast)
            cast(w->in + i * w->from_bytes, (const uint8_t *)&f, 1);
        else
            memcpy(w->in + i * w->from_bytes, &x, w->from_bytes);
    }
}

int main(int argc, char **argv)
{
    static bench_way ways[] = { { .name = "copy", .run = copy_all },
                                { .name = "cast", .run = cast_all },
                                { .name = "pieces", .run = cast_pieces },
                                { .name = "slow", .run = cast_slowly } };
    struct work w = { 0 };
    const tnf_cast_set *set;
    bool fits = argc == 5 || argc == 6;
    w.from = fits ? tnf_type_named(argv[2]) : NULL;
    w.to = fits ? tnf_type_named(argv[3]) : NULL;
    for (size_t i = 0; w.from && w.to && !w.cast && (set = tnf_cast_set_at(i)); i++)
        if (argc == 5 || strcmp(argv[5], set->name) == 0)
            w.cast = tnf_cast_by(set, argv[2], argv[3]);
    if (!w.cast) {
        fprintf(stderr, "usage: bench_cast MIB FROM TO ROUNDS [SET]\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[4]);
    w.from_bytes = w.from->bits / 8;
    w.to_bytes = w.to->bits / 8;
    size_t larger = w.from_bytes > w.to_bytes ? w.from_bytes : w.to_bytes;
    w.n = ((size_t)bench_number(argv[1]) << 20) / larger;
    w.in = bench_memory(w.n * larger);
    w.out = bench_memory(w.n * larger);
    fill_weights(&w);
    bench_run(ways, 4, rounds, &w);
    printf("{");
    bench_print(ways, 4, rounds);
    printf("\"bytes\":%zu}\n", w.n * larger);
    free(w.in);
    free(w.out);
    return 0;
}
