/* SPDX-License-Identifier: MIT */
/* bench_points DIRECTORY POINTS BATCH ROUNDS: reads a VS file of points of 128 f32, and appends
 * batches.
 *
 *   memory   sums up the bytes of all vectors, which are in memory
 *   pread    reads the file by pread() into a window of 256 KiB, and sums up the bytes
 *   each     sums up the vectors by tnf_points_each()
 *   tensor   sums up the same points as a tensor, by tnf_scan()
 *
 *   write    writes as many bytes as BATCH points have to a new file in blocks of 8 MiB; fsync
 *   append   tnf_points_append() of BATCH points, one batch, to a new VS file
 *
 * Also prints the peak of memory, by the handle's allocator, of appending and of reading.
 */
#include "bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/points.h>
#include <unistd.h>

#define DIM    128u
#define VECTOR (DIM * sizeof(float))
#define WINDOW ((size_t)256 << 10)

struct memory {
    uint64_t now, peak;
};

static void *count_reallocate(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct memory *m = ctx;
    m->now = m->now - old_size + new_size;
    m->peak = m->now > m->peak ? m->now : m->peak;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

struct work {
    char path[4096], fresh[4096];
    uint8_t *memory; /* all vectors */
    size_t points, batch;
    size_t block; /* bytes of a point in the file */
    tnf_point *list;
    tnf_points *points_handle, *new_handle;
    tnf_file *file;
    struct memory walking, appending;
    volatile uint64_t sum;
};

/* Eight words at a time, which is as fast as memory can be read. */
static uint64_t add_up(const void *bytes, size_t n)
{
    uint64_t sums[8] = { 0 }, word[8], total = 0;
    const uint8_t *p = bytes;
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(word, p, sizeof word);
        for (int i = 0; i < 8; i++)
            sums[i] += word[i];
    }
    for (int i = 0; i < 8; i++)
        total += sums[i];
    return total;
}

static void memory_way(void *ctx)
{
    struct work *w = ctx;
    w->sum = add_up(w->memory, w->points * VECTOR);
}

static void pread_way(void *ctx)
{
    static uint8_t window[WINDOW];
    struct work *w = ctx;
    int fd = open(w->path, O_RDONLY | O_CLOEXEC);
    uint64_t sum = 0, at = 0;
    if (fd < 0)
        bench_die(w->path);
    for (ssize_t got; (got = pread(fd, window, sizeof window, (off_t)at)) > 0; at += (uint64_t)got)
        sum += add_up(window, (size_t)got);
    close(fd);
    w->sum = sum;
}

static tnf_status take_point(void *ctx, const tnf_point *point, tnf_error *error)
{
    (void)error;
    *(uint64_t *)ctx += add_up(point->vector, point->vector_n);
    return TNF_OK;
}

static void each_way(void *ctx)
{
    struct work *w = ctx;
    tnf_error error;
    uint64_t sum = 0;
    bench_check(tnf_points_each(w->points_handle, take_point, &sum, &error), &error);
    w->sum = sum;
}

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    (void)error;
    *(uint64_t *)ctx += add_up(bytes, n);
    return TNF_OK;
}

static void tensor_way(void *ctx)
{
    struct work *w = ctx;
    tnf_error error;
    uint64_t sum = 0;
    const tnf_object *o = tnf_find(w->file, "points");
    bench_check(tnf_scan(&o->parts[0], take_bytes, &sum, &error), &error);
    w->sum = sum;
}

static void write_way(void *ctx)
{
    struct work *w = ctx;
    size_t bytes = w->batch * w->block;
    int fd = open(w->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        bench_die(w->fresh);
    for (size_t at = 0; at < bytes;) {
        size_t want = bytes - at < BENCH_BLOCK ? bytes - at : BENCH_BLOCK;
        ssize_t put = write(fd, w->memory + at, want);
        if (put <= 0)
            bench_die("write");
        at += (size_t)put;
    }
    if (fsync(fd) != 0)
        bench_die("fsync");
    close(fd);
}

static void append_way(void *ctx)
{
    struct work *w = ctx;
    tnf_error error;
    bench_check(tnf_points_append(NULL, w->new_handle, w->list, w->batch, &error), &error);
}

static tnf_points *create_file(const char *path, struct memory *m)
{
    static const uint64_t dims[] = { DIM };
    tnf_points *points;
    tnf_error error;
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    tnf_points_options o = { .size = sizeof o, .write = true };
    o.allocator = (tnf_allocator) { count_reallocate, m };
    bench_check(tnf_points_create(&points, path, &space, &o, &error), &error);
    return points;
}

/* Making and removing the file is not counted. */
static void race_ways(bench_way *ways, unsigned rounds, struct work *w)
{
    for (unsigned r = 0; r <= rounds; r++)
        for (size_t k = 0; k < 2; k++) {
            bench_way *way = &ways[(k + r) % 2];
            if (way->run == append_way)
                w->new_handle = create_file(w->fresh, &w->appending);
            double start = bench_now();
            way->run(w);
            if (r > 0)
                way->seconds[r - 1] = bench_now() - start;
            if (way->run == append_way)
                tnf_points_close(w->new_handle);
            if (unlink(w->fresh) != 0)
                bench_die(w->fresh);
        }
}

static void prepare_points(struct work *w)
{
    uint64_t x = 1;
    tnf_error error;
    w->memory = bench_memory(w->points * VECTOR + w->batch * 64);
    w->list = calloc(w->points, sizeof *w->list);
    if (!w->list)
        bench_die("memory");
    for (size_t i = 0; i < w->points * VECTOR; i += 8) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        memcpy(w->memory + i, &x, 8);
    }
    for (size_t i = 0; i < w->points; i++)
        w->list[i] = (tnf_point) { .vector = w->memory + i * VECTOR, .vector_n = VECTOR };
    w->points_handle = create_file(w->path, &w->walking);
    bench_check(tnf_points_append(NULL, w->points_handle, w->list, w->points, &error), &error);
    w->walking.peak = w->walking.now;
    w->block = 5 + 1 + 1 + 5 + VECTOR;
    bench_check(tnf_open(&w->file, w->path, NULL, &error), &error);
}

int main(int argc, char **argv)
{
    static bench_way scans[] = { { .name = "memory", .run = memory_way },
                                 { .name = "pread", .run = pread_way },
                                 { .name = "each", .run = each_way },
                                 { .name = "tensor", .run = tensor_way } };
    static bench_way appends[] = { { .name = "write", .run = write_way },
                                   { .name = "append", .run = append_way } };
    static struct work w;
    if (argc < 5) {
        fprintf(stderr, "usage: bench_points DIRECTORY POINTS BATCH ROUNDS\n");
        return 2;
    }
    snprintf(w.path, sizeof w.path, "%.4000s/bench.vsdb", argv[1]);
    snprintf(w.fresh, sizeof w.fresh, "%.4000s/bench-new.vsdb", argv[1]);
    w.points = (size_t)bench_number(argv[2]);
    w.batch = (size_t)bench_number(argv[3]);
    unsigned rounds = bench_rounds(argv[4]);
    prepare_points(&w);
    bench_run(scans, 4, rounds, &w);
    race_ways(appends, rounds, &w);
    printf("{");
    bench_print(scans, 4, rounds);
    bench_print(appends, 2, rounds);
    printf("\"bytes\":%zu,\"batch_bytes\":%zu,\"walking\":%" PRIu64 ",\"appending\":%" PRIu64 "}\n",
           w.points * VECTOR, w.batch * w.block, w.walking.peak, w.appending.peak);
    tnf_close(w.file);
    tnf_points_close(w.points_handle);
    unlink(w.path);
    free(w.list);
    free(w.memory);
    return 0;
}
