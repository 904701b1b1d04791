/* SPDX-License-Identifier: MIT */
/* Many test programs linked as one:
 *
 *     unit-tests NAME...     runs main() of each NAME.c; without a name it lists them
 *     whole-tests NAME...    likewise
 *
 * RUNNER_PARTS is a file that CMake makes, with a line PART(NAME) for each source. */
#include <stdio.h>
#include <string.h>

#define PART(name) int name##_main(void);
#include RUNNER_PARTS
#undef PART

static const struct {
    const char *name;
    int (*run)(void);
} parts[] = {
#define PART(name) { #name, name##_main },
#include RUNNER_PARTS
};

#define PARTS (sizeof parts / sizeof *parts)

static int run_part(const char *name)
{
    for (size_t i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0)
            return parts[i].run();
    fprintf(stderr, "there is no %s here\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc; i++)
        status |= run_part(argv[i]);
    for (size_t i = 0; argc < 2 && i < PARTS; i++)
        puts(parts[i].name);
    return status != 0;
}
