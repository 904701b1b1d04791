/* SPDX-License-Identifier: MIT */
/* Shared by the benchmark programs: a clock, fatal errors, lists of times as JSON.
 *
 * Each program measures the library and a bare loop that does the same minimum of work, in turn and
 * in one process, and prints one JSON object. bench/run starts the programs and makes the table.
 */
#ifndef TENFOLD_BENCH_H
#define TENFOLD_BENCH_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/tenfold.h>
#include <time.h>

#define BENCH_BLOCK  ((size_t)8 << 20) /* of the bare loops */
#define BENCH_ROUNDS 200u

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline _Noreturn void bench_die(const char *what)
{
    perror(what);
    exit(3);
}

static inline void bench_check(tnf_status status, const tnf_error *error)
{
    if (status == TNF_OK)
        return;
    fprintf(stderr, "%s: %s\n", tnf_status_name(status), error->message);
    exit(4);
}

/* Parses a number such as "20" or "2G". */
static inline uint64_t bench_number(const char *text)
{
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    switch (*end) {
    case 'G':
        return n << 30;
    case 'M':
        return n << 20;
    case 'K':
        return n << 10;
    default:
        return n;
    }
}

static inline unsigned bench_rounds(const char *text)
{
    uint64_t n = bench_number(text);
    return n < 1 ? 1 : n > BENCH_ROUNDS ? BENCH_ROUNDS : (unsigned)n;
}

/* Allocates page-aligned memory and touches every page of it. */
static inline uint8_t *bench_memory(size_t n)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, n + 1) != 0)
        bench_die("memory");
    for (size_t i = 0; i <= n; i += 4096)
        ((volatile uint8_t *)p)[i] = 1;
    return p;
}

/* One way of doing the work, and its time in each round. */
typedef struct bench_way {
    const char *name;
    void (*run)(void *ctx);
    double seconds[BENCH_ROUNDS];
} bench_way;

/* Runs all ways in turn. Each round begins with another one, so that no way always follows the same
 * one. The first round is not counted: it fills the caches and touches the memory. */
static inline void bench_run(bench_way *ways, size_t n, unsigned rounds, void *ctx)
{
    for (size_t k = 0; k < n; k++)
        ways[k].run(ctx);
    for (unsigned r = 0; r < rounds; r++)
        for (size_t k = 0; k < n; k++) {
            bench_way *w = &ways[(k + r) % n];
            double start = bench_now();
            w->run(ctx);
            w->seconds[r] = bench_now() - start;
        }
}

static inline void bench_print(const bench_way *ways, size_t n, unsigned rounds)
{
    for (size_t k = 0; k < n; k++) {
        printf("\"%s\":[", ways[k].name);
        for (unsigned r = 0; r < rounds; r++)
            printf("%s%.9f", r ? "," : "", ways[k].seconds[r]);
        printf("],");
    }
}

#endif
