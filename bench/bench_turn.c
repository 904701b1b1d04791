/* SPDX-License-Identifier: MIT */
/* bench_turn ROWS COLUMNS ROUNDS: transposes a column-major matrix of floats to row-major order.
 *
 *   bare     memcpy() of as many bytes, in blocks of 8 MiB
 *   slice    reads the matrix by tnf_read_slice(), which returns rows
 *   save     saves it in a row-major format, to a sink that drops the bytes
 */
#include "bench.h"

#include <string.h>
#include <tenfold/build.h>

struct work {
    tnf_builder *builder;
    tnf_object object;
    tnf_part part;
    uint64_t shape[2];
    tnf_slice slices[2];
    uint8_t *from, *to;
    size_t bytes;
};

static void copy_blocks(void *ctx)
{
    struct work *w = ctx;
    for (size_t at = 0; at < w->bytes; at += BENCH_BLOCK)
        memcpy(w->to + at, w->from + at, w->bytes - at < BENCH_BLOCK ? w->bytes - at : BENCH_BLOCK);
}

static void turn_by_slice(void *ctx)
{
    struct work *w = ctx;
    tnf_error error;
    bench_check(tnf_read_slice(w->to, w->bytes, &w->object, w->slices, &error), &error);
}

static tnf_status drop_bytes(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    (void)bytes, (void)error;
    *(uint64_t *)ctx += n;
    return TNF_OK;
}

static void turn_by_save(void *ctx)
{
    static const tnf_sink_ops ops = { .version = TNF_SINK_OPS_VERSION, .write = drop_bytes };
    struct work *w = ctx;
    tnf_save_options options = { .size = sizeof options, .format = "safetensors" };
    tnf_error error;
    tnf_sink *sink;
    uint64_t written = 0;
    bench_check(tnf_sink_custom(&sink, &ops, &written, &error), &error);
    bench_check(tnf_save_sink(w->builder, sink, &options, &error), &error);
    tnf_sink_close(sink);
    if (written < w->bytes)
        bench_die("save");
}

static void prepare_matrix(struct work *w, uint64_t rows, uint64_t columns)
{
    tnf_error error;
    w->bytes = (size_t)(4 * rows * columns);
    w->from = bench_memory(w->bytes);
    w->to = bench_memory(w->bytes);
    for (size_t i = 0; i < w->bytes / 4; i++)
        ((float *)(void *)w->from)[i] = (float)(i % 65536);
    w->shape[0] = rows;
    w->shape[1] = columns;
    for (int d = 0; d < 2; d++)
        w->slices[d] = (tnf_slice) { .step = 1, .count = w->shape[d] };
    w->part = (tnf_part) { .role = "data", .type = tnf_type_of(TNF_F32), .payload = TNF_MEMORY };
    w->part.memory = w->from;
    w->part.stored = w->part.nbytes = w->bytes;
    w->object = (tnf_object) { .name = { "w", 1 }, .shape = w->shape, .parts = &w->part };
    w->object.layout = tnf_layout_by_id("dense");
    w->object.rank = 2;
    w->object.nparts = 1;
    w->object.order = TNF_ORDER_F;
    bench_check(tnf_builder_new(&w->builder, NULL, &error), &error);
    bench_check(tnf_builder_add_object(w->builder, &w->object, NULL, &error), &error);
}

/* Checks that the numbers were transposed. */
static void check_transposed(struct work *w)
{
    const float *from = (const float *)(const void *)w->from, *to = (const float *)(void *)w->to;
    turn_by_slice(w);
    for (uint64_t i = 0; i < w->shape[0]; i += 97)
        for (uint64_t k = 0; k < w->shape[1]; k += 89)
            if (to[i * w->shape[1] + k] != from[k * w->shape[0] + i]) {
                fprintf(stderr, "not turned\n");
                exit(1);
            }
}

int main(int argc, char **argv)
{
    static bench_way ways[] = { { .name = "bare", .run = copy_blocks },
                                { .name = "slice", .run = turn_by_slice },
                                { .name = "save", .run = turn_by_save } };
    struct work w = { 0 };
    if (argc != 4) {
        fprintf(stderr, "usage: bench_turn ROWS COLUMNS ROUNDS\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[3]);
    prepare_matrix(&w, bench_number(argv[1]), bench_number(argv[2]));
    check_transposed(&w);
    bench_run(ways, 3, rounds, &w);
    printf("{");
    bench_print(ways, 3, rounds);
    printf("\"bytes\":%zu}\n", w.bytes);
    tnf_builder_free(w.builder);
    free(w.from);
    free(w.to);
    return 0;
}
