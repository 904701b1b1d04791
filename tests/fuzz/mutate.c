/* SPDX-License-Identifier: MIT */
/* A mutator for tensor files: it changes lengths, counts, offsets and dimensions, as little- or
 * big-endian integers or as decimal digits in JSON. One step in three uses libFuzzer's own mutator.
 */
#include "fuzz.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_die(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static uint64_t next_random(uint64_t *state)
{
    /* splitmix64: any seed will do, zero included. */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Values that break arithmetic on sizes: powers of two and their neighbours, and values from the
 * file (its size, the rest of it, the old number). */
static uint64_t interesting_number(uint64_t *rng, uint64_t old, size_t at, size_t size)
{
    uint64_t r = next_random(rng), near = (r >> 8) % 3 - 1;
    switch (r % 8) {
    case 0:
        return ((uint64_t)1 << (r >> 16) % 64) + near;
    case 1:
        return size + near;
    case 2:
        return size - at + near;
    case 3:
        return old + ((r >> 16) % 2 ? 1 : UINT64_MAX);
    case 4:
        return old * 2;
    case 5:
        return (r >> 16) % 9;
    case 6:
        return UINT64_MAX - (r >> 16) % 9;
    default:
        return old ^ (uint64_t)1 << (r >> 16) % 64;
    }
}

static void replace_integer(uint8_t *data, size_t size, uint64_t *rng)
{
    static const size_t widths[] = { 1, 2, 4, 8 };
    uint64_t r = next_random(rng);
    size_t width = widths[r % 4];
    if (size < width)
        return;
    size_t at = (size_t)((r >> 8) % (size - width + 1));
    bool big = (r >> 4) % 8 == 0;
    uint64_t old = 0;
    for (size_t i = 0; i < width; i++)
        old |= (uint64_t)data[at + i] << 8 * (big ? width - 1 - i : i);
    uint64_t value = interesting_number(rng, old, at, size);
    for (size_t i = 0; i < width; i++)
        data[at + i] = (uint8_t)(value >> 8 * (big ? width - 1 - i : i));
}

/* Finds a run of decimal digits after a random place and replaces it by another number; the rest of
 * the file moves. */
static size_t replace_digits(uint8_t *data, size_t size, size_t max, uint64_t *rng)
{
    size_t at = size ? (size_t)(next_random(rng) % size) : 0;
    while (at < size && (data[at] < '0' || data[at] > '9'))
        at++;
    if (at == size)
        return 0;
    while (at > 0 && data[at - 1] >= '0' && data[at - 1] <= '9')
        at--;
    size_t end = at;
    uint64_t old = 0;
    for (; end < size && data[end] >= '0' && data[end] <= '9'; end++)
        old = old * 10 + (uint64_t)(data[end] - '0');
    char text[24];
    size_t n = (size_t)snprintf(text, sizeof text, "%" PRIu64,
                                interesting_number(rng, old, at, size));
    if (size - (end - at) + n > max)
        return 0;
    memmove(data + at + n, data + end, size - end);
    memcpy(data + at, text, n);
    return size - (end - at) + n;
}

static size_t mutate_bytes(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    uint64_t rng = seed, r = next_random(&rng);
    size_t n = 0;
    if (size > 0 && r % 3 == 1) {
        for (uint64_t times = 1 + (r >> 8) % 3; times > 0; times--)
            replace_integer(data, size, &rng);
        n = size;
    } else if (size > 0 && r % 3 == 2) {
        n = replace_digits(data, size, max, &rng);
    }
    return n ? n : LLVMFuzzerMutate(data, size, max);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    size_t n = seed % 4 ? fuzz_mutate_hashed(data, size, max, seed, mutate_bytes) : 0;
    return n ? n : mutate_bytes(data, size, max, seed);
}
