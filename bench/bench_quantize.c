/* SPDX-License-Identifier: MIT */
/* bench_quantize FILE ROUNDS METHOD ITERATIONS: trains a quantizer and encodes all rows, with 256
 * centroids for every two dimensions. */
#include "bench.h"

#include <tenfold/emb.h>

struct bench {
    tnf_file *file;
    tnf_emb *emb;
    tnf_quantize_options how;
    tnf_quantized result;
};

static void quantize_file(void *ctx)
{
    struct bench *b = ctx;
    tnf_builder *builder;
    tnf_error error;
    bench_check(tnf_emb_open(&b->emb, b->file, NULL, &error), &error);
    bench_check(tnf_builder_new(&builder, NULL, &error), &error);
    bench_check(tnf_emb_quantize(&b->result, builder, b->emb, &b->how, &error), &error);
    tnf_builder_free(builder);
    tnf_emb_close(b->emb);
}

int main(int argc, char **argv)
{
    struct bench b = { .how = { .size = sizeof b.how }, .result = TNF_QUANTIZED_INIT };
    bench_way way = { "tenfold", quantize_file, { 0 } };
    tnf_error error;
    if (argc < 5) {
        fprintf(stderr, "usage: bench_quantize FILE ROUNDS METHOD ITERATIONS\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[2]);
    b.how.method = (tnf_quantizer)bench_number(argv[3]);
    b.how.iterations = (unsigned)bench_number(argv[4]);
    bench_check(tnf_open(&b.file, argv[1], NULL, &error), &error);
    bench_run(&way, 1, rounds, &b);
    printf("{");
    bench_print(&way, 1, rounds);
    printf("\"cosine\":%.9f,\"euclidean\":%.9f}\n", b.result.cosine, b.result.euclidean);
    tnf_close(b.file);
    return 0;
}
