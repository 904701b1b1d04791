/* SPDX-License-Identifier: MIT */
/* blocks_program decode|encode TYPE SET < INPUT > OUTPUT: blocks to floats and back, for
 * blocks_peer.py. SET is an instruction set, or "best"; without any argument, the sets and types of
 * this machine. */
#include "base/bytes.h"
#include "kernels/blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int list_all(void)
{
    const tnf_block_set *set;
    for (size_t i = 0; (set = tnf_block_set_at(i)); i++)
        printf("set %s\n", set->name);
    for (size_t i = 0; i < tnf_blocks_portable.n; i++) {
        const tnf_block_type *type = &tnf_blocks_portable.types[i];
        printf("type %s %d %d %s\n", type->name, type->elements, type->bytes,
               type->encode ? "both" : "decode");
    }
    return 0;
}

static const tnf_block_type *find_type(const char *set_name, const char *name)
{
    const tnf_block_set *set;
    for (size_t i = 0; (set = tnf_block_set_at(i)); i++)
        for (size_t t = 0; t < set->n; t++)
            if (strcmp(set->name, set_name) == 0 && strcmp(set->types[t].name, name) == 0)
                return &set->types[t];
    return strcmp(set_name, "best") == 0 ? tnf_block_type_named(name, strlen(name)) : NULL;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return list_all();
    const tnf_block_type *type = argc == 4 ? find_type(argv[3], argv[2]) : NULL;
    if (!type)
        return 2;
    size_t floats = type->elements * sizeof(float);
    uint8_t *block = malloc(type->bytes);
    float *x = malloc(floats);
    if (!block || !x)
        return 3;
    if (strcmp(argv[1], "decode") == 0)
        while (fread(block, type->bytes, 1, stdin) == 1) {
            type->decode(x, block, 1);
            tnf_swap_le(x, type->elements, sizeof *x);
            fwrite(x, floats, 1, stdout);
        }
    else
        while (type->encode && fread(x, floats, 1, stdin) == 1) {
            tnf_swap_le(x, type->elements, sizeof *x);
            type->encode(block, x, 1);
            fwrite(block, type->bytes, 1, stdout);
        }
    free(block);
    free(x);
    return fflush(stdout) == 0 ? 0 : 3;
}
