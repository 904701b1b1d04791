/* SPDX-License-Identifier: MIT */
/* A tensor as a file in memory and as a file on disk. For comparison, the least work that touches
 * all of its bytes: XOR of 64 bytes at a time from memory, pread() from the page cache. */
#ifndef TENFOLD_BENCH_TWICE_H
#define TENFOLD_BENCH_TWICE_H

#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <tenfold/build.h>
#include <unistd.h>

typedef uint64_t bench_line __attribute__((vector_size(64)));

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define BENCH_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BENCH_WIDE
#endif

typedef struct bench_twice {
    tnf_file *file, *on_disk; /* on_disk: NULL if it was not requested */
    tnf_sink *sink;
    int fd;
    uint8_t block[256 << 10];
    const uint8_t *data;
    size_t n;
} bench_twice;

static volatile uint64_t seen;

BENCH_WIDE static uint64_t mix_words(const uint8_t *p, size_t n)
{
    bench_line sum = { 0 };
    for (size_t i = 0; i + sizeof sum <= n; i += sizeof sum) {
        bench_line here;
        memcpy(&here, p + i, sizeof here);
        sum ^= here;
    }
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

static void mix_memory(void *ctx)
{
    const bench_twice *w = ctx;
    seen = mix_words(w->data, w->n);
}

static void read_all(void *ctx)
{
    bench_twice *w = ctx;
    ssize_t got;
    for (off_t at = 0; (got = pread(w->fd, w->block, sizeof w->block, at)) > 0; at += got)
        seen = w->block[0];
}

/* Writes the same file to disk; its name is removed at once. */
static void put_on_disk(bench_twice *w, const char *directory)
{
    tnf_error error;
    char path[4096];
    snprintf(path, sizeof path, "%s/tenfold-bench-%ld", directory, (long)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(w->data, 1, w->n, f) != w->n || fclose(f) != 0)
        bench_die(path);
    w->fd = open(path, O_RDONLY);
    bench_check(tnf_open(&w->on_disk, path, NULL, &error), &error);
    unlink(path);
}

/* Saves n elements as the tensor "w". The directory may be NULL. */
static void bench_twice_open(bench_twice *w, const tnf_type *type, uint64_t n, const void *data,
                             const tnf_save_options *save, const char *directory)
{
    tnf_error error;
    tnf_builder *b;
    tnf_source *source;
    bench_check(tnf_builder_new(&b, NULL, &error), &error);
    bench_check(tnf_builder_add(b, "w", type, 1, &n, data, &error), &error);
    bench_check(tnf_sink_memory(&w->sink, &error), &error);
    bench_check(tnf_save_sink(b, w->sink, save, &error), &error);
    tnf_builder_free(b);
    tnf_str bytes = tnf_sink_bytes(w->sink);
    bench_check(tnf_source_memory(&source, bytes.p, bytes.n, &error), &error);
    bench_check(tnf_open_source(&w->file, source, NULL, &error), &error);
    w->data = (const uint8_t *)bytes.p;
    w->n = bytes.n;
    if (directory)
        put_on_disk(w, directory);
}

/* Measures, prints the times, and closes the files. */
static void bench_twice_run(bench_twice *w, bench_way *ways, unsigned n, unsigned rounds)
{
    bench_run(ways, n, rounds, w);
    printf("{");
    bench_print(ways, n, rounds);
    printf("\"bytes\":%zu}\n", w->n);
    tnf_close(w->on_disk);
    tnf_close(w->file);
    tnf_sink_close(w->sink);
}

#endif
