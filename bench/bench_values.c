/* SPDX-License-Identifier: MIT */
/* bench_values MIB TYPE ROUNDS: every number of a tensor looked at, on one thread.
 *
 *   memory    all its bytes, once, from memory: an exclusive or of 64 at a time
 *   values    tnf_verify() with the values wanted, of a tensor in memory
 *   stat      tnf_stat_file(): deviation and histogram, too
 */
#include "bench.h"

#include <string.h>
#include <tenfold/build.h>
#include <tenfold/stat.h>

typedef uint64_t line __attribute__((vector_size(64)));

struct work {
    tnf_file *file;
    const uint8_t *data;
    size_t n;
};

static volatile uint64_t seen;

static void memory(void *ctx)
{
    const struct work *w = ctx;
    line sum = { 0 };
    for (size_t i = 0; i + sizeof sum <= w->n; i += sizeof sum) {
        line here;
        memcpy(&here, w->data + i, sizeof here);
        sum ^= here;
    }
    seen = sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

static void on_values(void *ctx, const tnf_object *o, const tnf_value_counts *counts)
{
    (void)ctx;
    (void)o;
    seen = counts->elements;
}

static void values(void *ctx)
{
    const struct work *w = ctx;
    tnf_error error;
    tnf_verify_result result;
    tnf_verify_options how = { .size = sizeof how, .values = on_values, .threads = 1 };
    bench_check(tnf_verify(&result, w->file, &how, &error), &error);
}

static void stat(void *ctx)
{
    const struct work *w = ctx;
    tnf_error error;
    tnf_stat_options how = { .size = sizeof how, .threads = 1 };
    bench_check(tnf_stat_file(w->file, &how, &error), &error);
}

/* Weights: small numbers of both signs, none of them odd. */
static void fill(uint8_t *p, size_t n, const char *type)
{
    uint64_t x = 88172645463325252u;
    size_t width = tnf_type_named(type)->bits / 8;
    for (size_t i = 0; i + width <= n; i += width) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        float f = ((float)(x >> 40) * 0x1p-24f - 0.5f) * 0.1f;
        double d = (double)f;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        uint16_t half = (uint16_t)(strcmp(type, "f16") == 0 ? 0x2000u + (x >> 52) : bits >> 16);
        memcpy(p + i, width == 8 ? (void *)&d : width == 4 ? (void *)&f : (void *)&half, width);
    }
}

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_source *source;
    tnf_save_options save = { .size = sizeof save, .format = "safetensors" };
    struct work w = { 0 };
    if (argc != 4 || !tnf_type_named(argv[2])) {
        fprintf(stderr, "usage: bench_values MIB TYPE ROUNDS\n");
        return 2;
    }
    size_t n = (size_t)bench_number(argv[1]) << 20;
    unsigned rounds = bench_rounds(argv[3]);
    uint64_t count = n / (tnf_type_named(argv[2])->bits / 8);
    uint8_t *data = bench_memory(n);
    fill(data, n, argv[2]);
    bench_check(tnf_builder_new(&b, NULL, &error), &error);
    bench_check(tnf_builder_add(b, "w", tnf_type_named(argv[2]), 1, &count, data, &error), &error);
    bench_check(tnf_sink_memory(&sink, &error), &error);
    bench_check(tnf_save_sink(b, sink, &save, &error), &error);
    tnf_builder_free(b);
    tnf_str bytes = tnf_sink_bytes(sink);
    bench_check(tnf_source_memory(&source, bytes.p, bytes.n, &error), &error);
    bench_check(tnf_open_source(&w.file, source, NULL, &error), &error);
    w.data = (const uint8_t *)bytes.p;
    w.n = bytes.n;
    bench_way ways[] = { { "memory", memory, { 0 } },
                         { "values", values, { 0 } },
                         { "stat", stat, { 0 } } };
    bench_run(ways, 3, rounds, &w);
    printf("{");
    bench_print(ways, 3, rounds);
    printf("\"bytes\":%zu}\n", w.n);
    tnf_close(w.file);
    tnf_sink_close(sink);
    free(data);
    return 0;
}
