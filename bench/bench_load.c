/* SPDX-License-Identifier: MIT */
/* bench_load FILE ROUNDS: from a path to all tensors in fresh memory, each in a block of its own,
 * as a program starts up. Freeing and closing are not counted. */
#include "bench.h"

static void load(const char *path, double *seconds)
{
    tnf_error error;
    tnf_file *file;
    double start = bench_now();
    bench_check(tnf_open(&file, path, NULL, &error), &error);
    size_t n = tnf_file_info(file)->objects;
    tnf_request *requests = calloc(n + 1, sizeof *requests);
    if (!requests)
        bench_die("memory");
    for (size_t i = 0; i < n; i++) {
        const tnf_part *part = tnf_at(file, i)->parts;
        requests[i] = (tnf_request) { part, malloc((size_t)part->nbytes + 1) };
        if (!requests[i].dst)
            bench_die("memory");
    }
    bench_check(tnf_read_many(requests, n, NULL, &error), &error);
    *seconds = bench_now() - start;
    for (size_t i = 0; i < n; i++)
        free(requests[i].dst);
    free(requests);
    tnf_close(file);
}

int main(int argc, char **argv)
{
    static bench_way way = { .name = "tenfold" };
    if (argc != 3) {
        fprintf(stderr, "usage: bench_load FILE ROUNDS\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[2]);
    load(argv[1], &way.seconds[0]); /* not counted */
    for (unsigned r = 0; r < rounds; r++)
        load(argv[1], &way.seconds[r]);
    printf("{");
    bench_print(&way, 1, rounds);
    printf("\"rounds\":%u}\n", rounds);
    return 0;
}
