/* SPDX-License-Identifier: MIT */
/* bench_child COMMAND [ARGUMENT...]: runs a command and prints its time and its peak of memory.
 * This program is small, since the kernel never reports a lower peak for a child than for its
 * parent. */
#include "bench.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    pid_t child;
    int status;
    struct rusage used;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_child COMMAND [ARGUMENT...]\n");
        return 2;
    }
    double start = bench_now();
    if (posix_spawnp(&child, argv[1], NULL, NULL, argv + 1, environ) != 0)
        bench_die(argv[1]);
    if (wait4(child, &status, 0, &used) != child)
        bench_die("wait4");
    double seconds = bench_now() - start;
    printf("{\"seconds\":%.6f,\"user\":%ld.%06ld,\"system\":%ld.%06ld,\"peak_kib\":%ld,"
           "\"status\":%d}\n",
           seconds, (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec,
           (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec, used.ru_maxrss,
           WIFEXITED(status) ? WEXITSTATUS(status) : 128);
    return 0;
}
