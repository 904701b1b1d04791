/* SPDX-License-Identifier: MIT */
/* bench_read FILE ROUNDS: reads all tensors of a file into allocated memory.
 *
 *   bare      pread() in blocks of 8 MiB, front to back; with two threads each takes the next block
 *   read      tnf_read() of one tensor after the other
 *   many      tnf_read_many()
 *
 * Every way puts each byte in the same place, so all use the same memory.
 */
#include "bench.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct work {
    tnf_file *file;
    tnf_request *requests;
    size_t n;
    int fd;
    uint8_t *memory;
    uint64_t start, end; /* of the data in the file */
    atomic_uint_fast64_t next;
};

static void *bare_loop(void *ctx)
{
    struct work *w = ctx;
    for (;;) {
        uint64_t at = atomic_fetch_add(&w->next, BENCH_BLOCK);
        if (at >= w->end)
            return NULL;
        uint64_t stop = w->end - at < BENCH_BLOCK ? w->end : at + BENCH_BLOCK;
        while (at < stop) {
            ssize_t got = pread(w->fd, w->memory + (at - w->start), (size_t)(stop - at), (off_t)at);
            if (got <= 0)
                bench_die("pread");
            at += (uint64_t)got;
        }
    }
}

static void bare_1(void *ctx)
{
    struct work *w = ctx;
    w->next = w->start;
    bare_loop(w);
}

static void bare_2(void *ctx)
{
    struct work *w = ctx;
    pthread_t other;
    w->next = w->start;
    if (pthread_create(&other, NULL, bare_loop, w) != 0)
        bench_die("thread");
    bare_loop(w);
    pthread_join(other, NULL);
}

/* One thread per core, at most 64. */
static void bare_all(void *ctx)
{
    struct work *w = ctx;
    pthread_t ids[64];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = cores < 1 ? 1 : cores > 64 ? 64 : (unsigned)cores;
    w->next = w->start;
    for (unsigned i = 1; i < n; i++)
        if (pthread_create(&ids[i], NULL, bare_loop, w) != 0)
            bench_die("thread");
    bare_loop(w);
    for (unsigned i = 1; i < n; i++)
        pthread_join(ids[i], NULL);
}

static void read_many(struct work *w, unsigned threads)
{
    tnf_read_options options = { .size = sizeof options, .threads = threads };
    tnf_error error;
    bench_check(tnf_read_many(w->requests, w->n, &options, &error), &error);
}

static void many_1(void *ctx)
{
    read_many(ctx, 1);
}

static void many_all(void *ctx)
{
    read_many(ctx, 0);
}

static void many_2(void *ctx)
{
    read_many(ctx, 2);
}

static void read_each(void *ctx)
{
    struct work *w = ctx;
    tnf_error error;
    for (size_t i = 0; i < w->n; i++) {
        const tnf_object *o = tnf_at(w->file, i);
        bench_check(tnf_read(w->requests[i].dst, (size_t)o->parts->nbytes, o, &error), &error);
    }
}

static void prepare_requests(struct work *w, const char *path)
{
    tnf_error error;
    bench_check(tnf_open(&w->file, path, NULL, &error), &error);
    w->n = tnf_file_info(w->file)->objects;
    w->fd = open(path, O_RDONLY | O_CLOEXEC);
    w->requests = calloc(w->n + 1, sizeof *w->requests);
    if (w->fd < 0 || !w->requests)
        bench_die(path);
    w->start = UINT64_MAX;
    for (size_t i = 0; i < w->n; i++) {
        const tnf_part *p = tnf_at(w->file, i)->parts;
        w->start = p->offset < w->start ? p->offset : w->start;
        w->end = p->offset + p->stored > w->end ? p->offset + p->stored : w->end;
    }
    w->memory = bench_memory((size_t)(w->end - w->start));
    for (size_t i = 0; i < w->n; i++) {
        const tnf_part *p = tnf_at(w->file, i)->parts;
        w->requests[i] = (tnf_request) { p, w->memory + (p->offset - w->start) };
    }
}

/* Only bytes of tensors: the library does not read those between them. */
static uint64_t sum_tensors(const struct work *w)
{
    uint64_t total = 0, word = 0;
    for (size_t k = 0; k < w->n; k++) {
        const uint8_t *bytes = w->requests[k].dst;
        uint64_t n = w->requests[k].part->nbytes;
        for (uint64_t i = 0; i < n; i += 8) {
            memcpy(&word, bytes + i, n - i < 8 ? (size_t)(n - i) : 8);
            total = (total ^ word) * 0x9e3779b97f4a7c15u;
        }
    }
    return total;
}

/* Checks that each way has really read the bytes. */
static void check_ways(struct work *w, const bench_way *ways, size_t n)
{
    bare_1(w);
    uint64_t expected = sum_tensors(w);
    for (size_t k = 0; k < n; k++) {
        memset(w->memory, 0, (size_t)(w->end - w->start));
        ways[k].run(w);
        if (sum_tensors(w) != expected) {
            fprintf(stderr, "%s gave other bytes\n", ways[k].name);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static bench_way ways[] = {
        { .name = "bare_1", .run = bare_1 },     { .name = "read_1", .run = read_each },
        { .name = "many_1", .run = many_1 },     { .name = "many_2", .run = many_2 },
        { .name = "bare_2", .run = bare_2 },     { .name = "many_all", .run = many_all },
        { .name = "bare_all", .run = bare_all },
    };
    const size_t n = sizeof ways / sizeof *ways;
    struct work w = { 0 };
    if (argc != 3) {
        fprintf(stderr, "usage: bench_read FILE ROUNDS\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[2]);
    prepare_requests(&w, argv[1]);
    check_ways(&w, ways, n);
    bench_run(ways, n, rounds, &w);
    printf("{");
    bench_print(ways, n, rounds);
    printf("\"bytes\":%" PRIu64 ",\"tensors\":%zu}\n", w.end - w.start, w.n);
    free(w.memory);
    free(w.requests);
    close(w.fd);
    tnf_close(w.file);
    return 0;
}
