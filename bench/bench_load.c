/* SPDX-License-Identifier: MIT */
/* bench_load FILE ROUNDS [huge]: opens a file and reads all tensors, each into a new block of
 * memory, as a program does when it starts. huge: with huge pages, as NumPy requests them. Freeing
 * and closing are not counted. */
#include "bench.h"

#include <string.h>
#include <sys/mman.h>

/* The same request as that of numpy.empty() for 4 MiB and more. */
static void *allocate_block(size_t n, bool huge)
{
    void *p = huge && n >= (size_t)4 << 20 ? aligned_alloc(4096, (n + 4095) / 4096 * 4096)
                                           : malloc(n + 1);
    if (!p)
        bench_die("memory");
    if (huge && n >= (size_t)4 << 20)
        (void)madvise(p, (n + 4095) / 4096 * 4096, MADV_HUGEPAGE);
    return p;
}

static void load_file(const char *path, bool huge, double *seconds)
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
        requests[i] = (tnf_request) { part, allocate_block((size_t)part->nbytes, huge) };
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
    bool huge = argc == 4 && strcmp(argv[3], "huge") == 0;
    if (argc != 3 && !huge) {
        fprintf(stderr, "usage: bench_load FILE ROUNDS [huge]\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[2]);
    load_file(argv[1], huge, &way.seconds[0]); /* not counted */
    for (unsigned r = 0; r < rounds; r++)
        load_file(argv[1], huge, &way.seconds[r]);
    printf("{");
    bench_print(&way, 1, rounds);
    printf("\"rounds\":%u}\n", rounds);
    return 0;
}
