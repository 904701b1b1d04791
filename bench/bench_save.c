/* SPDX-License-Identifier: MIT */
/* bench_save DIRECTORY BYTES TENSORS ROUNDS [sync]: saves tensors from memory to a new file.
 *
 *   bare     opens a temporary file, writes blocks of 8 MiB, renames it; with `sync`, fsync of the
 *            file before and of the directory after, as in the library
 *   FORMAT   tnf_save() of the same memory as TENSORS tensors
 */
#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <tenfold/build.h>
#include <unistd.h>

struct work {
    tnf_builder *builder;
    uint8_t *memory;
    size_t bytes;
    bool sync;
    char path[4096], temp[4096 + 8], directory[4096 + 8];
};

static void sync_directory(const struct work *w)
{
    int fd = open(w->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        bench_die(w->directory);
    close(fd);
}

static void save_bare(void *ctx)
{
    struct work *w = ctx;
    int fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        bench_die(w->temp);
    for (size_t at = 0; at < w->bytes;) {
        size_t want = w->bytes - at < BENCH_BLOCK ? w->bytes - at : BENCH_BLOCK;
        ssize_t put = write(fd, w->memory + at, want);
        if (put <= 0)
            bench_die("write");
        at += (size_t)put;
    }
    if (w->sync && fsync(fd) != 0)
        bench_die("fsync");
    if (rename(w->temp, w->path) != 0)
        bench_die("rename");
    if (w->sync)
        sync_directory(w);
    close(fd);
}

static void save_as(struct work *w, const char *format)
{
    tnf_save_options options = { .size = sizeof options };
    options.format = format;
    options.no_sync = !w->sync;
    tnf_error error;
    bench_check(tnf_save(w->builder, w->path, &options, &error), &error);
}

static void save_safetensors(void *ctx)
{
    save_as(ctx, "safetensors");
}

static void save_archive(void *ctx)
{
    save_as(ctx, "gptrs-archive");
}

/* Names like those of a mixture of experts. All sizes but the last are equal. */
static void describe_tensors(struct work *w, size_t tensors)
{
    tnf_error error;
    bench_check(tnf_builder_new(&w->builder, NULL, &error), &error);
    size_t each = w->bytes / tensors / 4 * 4;
    for (size_t i = 0; i < tensors; i++) {
        char name[96];
        snprintf(name, sizeof name, "model.layers.%zu.mlp.experts.%zu.up_proj.weight", i / 64,
                 i % 64);
        uint64_t shape[] = { (i + 1 < tensors ? each : w->bytes - i * each) / 4 };
        bench_check(tnf_builder_add(w->builder, name, tnf_type_of(TNF_F32), 1, shape,
                                    w->memory + i * each, &error),
                    &error);
    }
}

/* Removing the file of the last way is not counted. */
static void race_ways(bench_way *ways, size_t n, unsigned rounds, struct work *w)
{
    for (unsigned r = 0; r <= rounds; r++)
        for (size_t k = 0; k < n; k++) {
            bench_way *way = &ways[(k + r) % n];
            double start = bench_now();
            way->run(w);
            if (r > 0)
                way->seconds[r - 1] = bench_now() - start;
            if (unlink(w->path) != 0)
                bench_die(w->path);
        }
}

int main(int argc, char **argv)
{
    static bench_way ways[] = { { .name = "bare", .run = save_bare },
                                { .name = "safetensors", .run = save_safetensors },
                                { .name = "gptrs-archive", .run = save_archive } };
    const size_t n = sizeof ways / sizeof *ways;
    static struct work w;
    if (argc < 5) {
        fprintf(stderr, "usage: bench_save DIRECTORY BYTES TENSORS ROUNDS [sync]\n");
        return 2;
    }
    w.bytes = (size_t)bench_number(argv[2]) / 4 * 4;
    w.sync = argc > 5 && strcmp(argv[5], "sync") == 0;
    snprintf(w.directory, sizeof w.directory, "%s", argv[1]);
    snprintf(w.path, sizeof w.path, "%.4000s/bench.saved", argv[1]);
    snprintf(w.temp, sizeof w.temp, "%s.new", w.path);
    w.memory = bench_memory(w.bytes);
    uint64_t x = 1;
    for (size_t i = 0; i + 8 <= w.bytes; i += 8) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        memcpy(w.memory + i, &x, 8);
    }
    describe_tensors(&w, (size_t)bench_number(argv[3]));
    unsigned rounds = bench_rounds(argv[4]);
    race_ways(ways, n, rounds, &w);
    printf("{");
    bench_print(ways, n, rounds);
    printf("\"bytes\":%zu}\n", w.bytes);
    tnf_builder_free(w.builder);
    free(w.memory);
    return 0;
}
