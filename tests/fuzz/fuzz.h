/* SPDX-License-Identifier: MIT */
/* What fuzz targets, the mutator and the replaying driver share. */
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

/* fuzz_format.c: which format is meant, by its name in src/formats/list.h. False: there is none. */
bool fuzz_choose_format(const char *name);

/* mend.c: where an index lies behind a hash that no mutation gets past, mutate() is let loose on
 * the index alone and the hash is made anew. 0: it is no such file, or has no room. */
size_t fuzz_mutate_hashed(uint8_t *data, size_t size, size_t max, unsigned seed,
                          size_t (*mutate)(uint8_t *data, size_t size, size_t max, unsigned seed));

/* Prints the sentence and aborts, so that the input is kept. */
#define FUZZ_REQUIRE(condition, ...)                                                               \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_die(__FILE__, __LINE__, __VA_ARGS__);                                             \
    } while (0)
_Noreturn void fuzz_die(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
