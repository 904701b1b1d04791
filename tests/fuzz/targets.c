/* SPDX-License-Identifier: MIT */
/* All fuzz targets are one program, so they are linked once. The name of the command selects the
 * target: fuzz_json is a link to it, and so is fuzz_npy, one of the formats.
 *
 * FUZZ_TARGETS is a file that CMake makes, with a line TARGET(NAME) for each fuzz_NAME.c. */
#include "fuzz.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET(name) int fuzz_one_##name(const uint8_t *data, size_t size);
#include FUZZ_TARGETS
#undef TARGET

static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define TARGET(name) { #name, fuzz_one_##name },
#include FUZZ_TARGETS
};

static int (*chosen)(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *file = *argc ? **argv : "", *slash = strrchr(file, '/');
    file = slash ? slash + 1 : file;
    const char *name = strncmp(file, "fuzz_", 5) == 0 ? file + 5 : file;
    if (fuzz_choose_format(name))
        chosen = fuzz_one_format;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!chosen && strcmp(targets[i].name, name) == 0)
            chosen = targets[i].run;
    if (!chosen) {
        fprintf(stderr, "there is no target '%s'\n", name);
        exit(2);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return chosen(data, size);
}
