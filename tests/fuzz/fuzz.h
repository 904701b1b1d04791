/* SPDX-License-Identifier: MIT */
/* Shared by fuzz targets, the mutator and the replaying driver. */
#ifndef TNF_FUZZ_H
#define TNF_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The interface of libFuzzer; driver.c stands in for it with other compilers. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* fuzz_format.c: chooses the format by its name in src/formats/list.h. False: no such format. */
bool fuzz_choose_format(const char *name);

/* mend.c: if a hash protects an index, so that mutations never get past it, mutate() changes only
 * the index and the hash is computed again. 0: not such a file, or no room. */
size_t fuzz_mutate_hashed(uint8_t *data, size_t size, size_t max, unsigned seed,
                          size_t (*mutate)(uint8_t *data, size_t size, size_t max, unsigned seed));

/* Prints the message and aborts, so the input is kept. */
#define FUZZ_REQUIRE(condition, ...)                                                               \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_die(__FILE__, __LINE__, __VA_ARGS__);                                             \
    } while (0)
_Noreturn void fuzz_die(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
