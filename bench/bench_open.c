/* SPDX-License-Identifier: MIT */
/* bench_open FILE ROUNDS: opens a file and reads the name, type and shape of every tensor. Then
 * does it again with an allocator that counts, to measure the memory of a handle per tensor. */
#include "bench.h"

struct counted {
    uint64_t now, peak, calls;
};

static void *count_reallocate(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct counted *c = ctx;
    void *q = NULL;
    if (new_size == 0) {
        free(p);
    } else {
        q = realloc(p, new_size);
        if (!q)
            return NULL;
    }
    c->calls++;
    c->now += new_size;
    c->peak = c->now > c->peak ? c->now : c->peak; /* realloc() may need both blocks for a moment */
    c->now -= old_size;
    return q;
}

/* Reads everything that a listing shows, so that no work is left for later. */
static uint64_t look_at_tensors(const tnf_file *file)
{
    uint64_t sum = 0;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        sum += (uint8_t)o->name.p[0] + (uint8_t)o->parts->type->id[0];
        for (uint32_t d = 0; d < o->rank; d++)
            sum += o->shape[d];
    }
    return sum;
}

static void print_memory(const char *path)
{
    struct counted c = { 0 };
    tnf_open_options options = { .size = sizeof options };
    options.allocator = (tnf_allocator) { count_reallocate, &c };
    tnf_error error;
    tnf_file *file;
    bench_check(tnf_open(&file, path, &options, &error), &error);
    uint64_t names = 0, shapes = 0;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        names += o->name.n + 1;
        shapes += 8 * (uint64_t)o->rank;
    }
    printf("\"kept\":%" PRIu64 ",\"peak\":%" PRIu64 ",\"allocations\":%" PRIu64
           ",\"names\":%" PRIu64 ",\"shapes\":%" PRIu64 ",\"tensors\":%zu}\n",
           c.now, c.peak, c.calls, names, shapes, tnf_file_info(file)->objects);
    tnf_close(file);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_open FILE ROUNDS\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[2]);
    uint64_t sum = 0;
    tnf_error error;
    tnf_file *file;
    printf("{\"tenfold\":[");
    for (unsigned r = 0; r <= rounds; r++) { /* the first is not counted */
        double start = bench_now();
        bench_check(tnf_open(&file, argv[1], NULL, &error), &error);
        sum += look_at_tensors(file);
        double seconds = bench_now() - start;
        tnf_close(file);
        if (r > 0)
            printf("%s%.9f", r > 1 ? "," : "", seconds);
    }
    printf("],\"looked\":%" PRIu64 ",", sum);
    print_memory(argv[1]);
    return 0;
}
