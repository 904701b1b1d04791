/* SPDX-License-Identifier: MIT */
/* bench_fill DIRECTORY BYTES ROUNDS [sync]: bare ways to fill a new file from memory.
 *
 *   write       write() in blocks of 8 MiB; with `sync` fsync at the end
 *   early       the same in aligned steps of 256 KiB; with `sync` write-back begins every 32 MiB
 *   map_N       N threads through a mapping, each block populated first (without `sync`)
 *   direct_N    N threads with O_DIRECT into allocated space, 2 MiB at a time (with `sync`)
 *
 * A way that the file system does not support has times of 0.
 */
#include "bench.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP    ((size_t)256 << 10)
#define EARLY   ((size_t)32 << 20)
#define BLOCK   ((size_t)768 << 10)
#define DIRECT  ((size_t)2 << 20)
#define THREADS 16
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct work {
    const char *directory;
    uint8_t *memory, *map;
    size_t bytes;
    bool sync;
    int fd, direct;
    atomic_size_t next;
    atomic_bool cannot;
};

static void open_nameless(struct work *w)
{
    w->fd = open(w->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (w->fd < 0) { /* not every file system has those */
        char path[4096];
        snprintf(path, sizeof path, "%s/fill-XXXXXX", w->directory);
        w->fd = mkostemp(path, O_CLOEXEC);
        if (w->fd < 0)
            bench_die(w->directory);
        unlink(path);
    }
    atomic_store(&w->next, 0);
}

static void close_nameless(struct work *w)
{
    if (w->sync && fsync(w->fd) != 0)
        bench_die("fsync");
    close(w->fd);
}

static void put_all(struct work *w, size_t step, bool early)
{
    size_t handed = 0;
    open_nameless(w);
    for (size_t at = 0; at < w->bytes;) {
        size_t want = w->bytes - at < step ? w->bytes - at : step;
        ssize_t put = write(w->fd, w->memory + at, want);
        if (put <= 0)
            bench_die("write");
        at += (size_t)put;
        if (early && w->sync && at - handed >= EARLY) {
            (void)sync_file_range(w->fd, (off_t)handed, (off_t)(at - handed),
                                  SYNC_FILE_RANGE_WRITE);
            handed = at;
        }
    }
    close_nameless(w);
}

static void fill_plain(void *ctx)
{
    put_all(ctx, BENCH_BLOCK, false);
}

static void fill_early(void *ctx)
{
    put_all(ctx, STEP, true);
}

static void *fill_map(void *ctx)
{
    struct work *w = ctx;
    for (size_t at; (at = atomic_fetch_add(&w->next, BLOCK)) < w->bytes;) {
        size_t n = w->bytes - at < BLOCK ? w->bytes - at : BLOCK;
        if (madvise(w->map + at, n, MADV_POPULATE_WRITE) != 0)
            bench_die("populate");
        memcpy(w->map + at, w->memory + at, n);
        madvise(w->map + at, n, MADV_DONTNEED);
    }
    return NULL;
}

static void *fill_direct(void *ctx)
{
    struct work *w = ctx;
    for (size_t at; (at = atomic_fetch_add(&w->next, DIRECT)) < w->bytes;) {
        size_t n = w->bytes - at < DIRECT ? w->bytes - at : DIRECT;
        if (pwrite(w->direct, w->memory + at, n, (off_t)at) != (ssize_t)n)
            atomic_store(&w->cannot, true);
    }
    return NULL;
}

static void on_threads(struct work *w, unsigned threads, void *(*fill)(void *))
{
    pthread_t ids[THREADS];
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, fill, w) != 0)
            bench_die("thread");
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

static void map_with(struct work *w, unsigned threads)
{
    open_nameless(w);
    if (ftruncate(w->fd, (off_t)w->bytes) != 0)
        bench_die("ftruncate");
    w->map = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
    if (w->map == MAP_FAILED)
        bench_die("mmap");
    on_threads(w, threads, fill_map);
    munmap(w->map, w->bytes);
    close_nameless(w);
}

static void direct_with(struct work *w, unsigned threads)
{
    char path[64];
    open_nameless(w);
    snprintf(path, sizeof path, "/proc/self/fd/%d", w->fd);
    w->direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    if (w->direct < 0 || fallocate(w->fd, 0, 0, (off_t)w->bytes) != 0)
        atomic_store(&w->cannot, true);
    else
        on_threads(w, threads, fill_direct);
    close_nameless(w);
    if (w->direct >= 0)
        close(w->direct);
}

#define WAY(n)                                                                                     \
    static void map_##n(void *ctx)                                                                 \
    {                                                                                              \
        map_with(ctx, n);                                                                          \
    }                                                                                              \
    static void direct_##n(void *ctx)                                                              \
    {                                                                                              \
        direct_with(ctx, n);                                                                       \
    }
WAY(2)
WAY(4)
WAY(8)
WAY(16)

int main(int argc, char **argv)
{
    static bench_way dry[] = {
        { .name = "write", .run = fill_plain }, { .name = "early", .run = fill_early },
        { .name = "map_2", .run = map_2 },      { .name = "map_4", .run = map_4 },
        { .name = "map_8", .run = map_8 },      { .name = "map_16", .run = map_16 },
    };
    static bench_way wet[] = {
        { .name = "write", .run = fill_plain },  { .name = "early", .run = fill_early },
        { .name = "direct_2", .run = direct_2 }, { .name = "direct_4", .run = direct_4 },
        { .name = "direct_8", .run = direct_8 }, { .name = "direct_16", .run = direct_16 },
    };
    if (argc < 4) {
        fprintf(stderr, "usage: bench_fill DIRECTORY BYTES ROUNDS [sync]\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[3]);
    struct work w = { .directory = argv[1] };
    w.bytes = (size_t)bench_number(argv[2]) / DIRECT * DIRECT;
    w.sync = argc > 4 && strcmp(argv[4], "sync") == 0;
    w.memory = bench_memory(w.bytes);
    bench_way *ways = w.sync ? wet : dry;
    const size_t n = sizeof dry / sizeof *dry;
    bench_run(ways, n, rounds, &w);
    for (size_t k = 2; k < n && atomic_load(&w.cannot); k++)
        memset(ways[k].seconds, 0, sizeof ways[k].seconds);
    printf("{");
    bench_print(ways, n, rounds);
    printf("\"bytes\":%zu}\n", w.bytes);
    return 0;
}
