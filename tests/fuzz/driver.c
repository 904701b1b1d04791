/* SPDX-License-Identifier: MIT */
/* Replays inputs through a fuzz target without libFuzzer: any compiler, any debugger, ctest.
 *
 *     fuzz_safetensors [-m N] FILE|DIRECTORY...
 *
 * Directories are searched to the bottom. With -m each input is also mutated N times, the same way
 * in each run; the input of a failure is left in the file "crash".
 */
#include "fuzz.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BIGGEST ((size_t)1 << 20)

static unsigned long mutations, inputs;
static unsigned seed = 1;
static const uint8_t *running;
static size_t running_size;

static unsigned next_random(void)
{
    return seed = seed * 1103515245u + 12345u;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    unsigned kind = next_random() >> 16;
    if (size == 0)
        return 0;
    size_t at = (next_random() >> 4) % size;
    switch (kind % 4) {
    case 0:
        data[at] ^= (uint8_t)(1u << (kind >> 4) % 8);
        return size;
    case 1: /* cut the input */
        return at;
    case 2: /* repeat a piece */
    {
        size_t n = (next_random() >> 4) % (size - at) + 1;
        if (size + n > max)
            return size;
        memmove(data + at + n, data + at, size - at);
        return size + n;
    }
    default: /* leave out a piece */
    {
        size_t n = (next_random() >> 4) % (size - at) + 1;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    }
    }
}

static void keep_crash(int number)
{
    FILE *f = fopen("crash", "wb");
    if (f) {
        fwrite(running, 1, running_size, f);
        fclose(f);
        fprintf(stderr, "input of %zu bytes kept in ./crash\n", running_size);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* Each input is in a block of exactly its size, so AddressSanitizer finds a read of one byte more.
 */
static void run_input(const uint8_t *bytes, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        exit(2);
    memcpy(exact, bytes, n);
    running = exact;
    running_size = n;
    LLVMFuzzerTestOneInput(exact, n);
    running = NULL;
    free(exact);
}

static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *seed_bytes = malloc(BIGGEST), *work = malloc(BIGGEST);
    if (!f || !seed_bytes || !work) {
        perror(path);
        exit(2);
    }
    size_t size = fread(seed_bytes, 1, BIGGEST, f);
    fclose(f);
    inputs++;
    printf("%s\n", path); /* the last line shows where a sanitizer stopped */
    fflush(stdout);
    run_input(seed_bytes, size);
    size_t n = size;
    for (unsigned long i = 0; i < mutations; i++) {
        if (i % 8 == 0) /* a few mutations, then back to the input */
            memcpy(work, seed_bytes, n = size);
        n = LLVMFuzzerCustomMutator(work, n, BIGGEST, next_random());
        run_input(work, n);
    }
    free(work);
    free(seed_bytes);
}

static void replay_all(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        exit(2);
    }
    if (!S_ISDIR(st.st_mode)) {
        replay_file(path);
        return;
    }
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char below[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name);
            replay_all(below);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

int main(int argc, char **argv)
{
    signal(SIGABRT, keep_crash);
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-m") == 0 && i + 1 < argc)
            mutations = strtoul(argv[++i], NULL, 10);
        else
            replay_all(argv[i]);
    }
    printf("%lu inputs, %lu mutations each\n", inputs, mutations);
    if (inputs == 0) {
        fprintf(stderr, "no inputs: give a format some files in tests/formats/<name>/\n");
        return 1;
    }
    return 0;
}
