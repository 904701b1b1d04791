/* SPDX-License-Identifier: MIT */
/* bench_npz FILE ROUNDS: opens a file and reads every tensor completely into a new block of memory,
 * like numpy.load() of all members. So the CRC of each is compared. */
#include "bench.h"

static uint64_t read_all(const char *path)
{
    tnf_error error;
    tnf_file *file;
    const tnf_object *o;
    uint64_t bytes = 0;
    bench_check(tnf_open(&file, path, NULL, &error), &error);
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        size_t n = (size_t)o->parts->nbytes;
        void *array = malloc(n + 1);
        if (!array)
            bench_die("memory");
        bench_check(tnf_read(array, n, o, &error), &error);
        bytes += n;
        free(array);
    }
    tnf_close(file);
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_npz FILE ROUNDS\n");
        return 2;
    }
    unsigned rounds = bench_rounds(argv[2]);
    uint64_t bytes = 0;
    printf("{\"tenfold\":[");
    for (unsigned r = 0; r <= rounds; r++) { /* the first is not counted */
        double start = bench_now();
        bytes = read_all(argv[1]);
        if (r > 0)
            printf("%s%.9f", r > 1 ? "," : "", bench_now() - start);
    }
    printf("],\"bytes\":%" PRIu64 "}\n", bytes);
    return 0;
}
