/* SPDX-License-Identifier: MIT */
/* What is in a file: list FILE */
#include <inttypes.h>
#include <stdio.h>
#include <tenfold/tenfold.h>

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_file *file;
    const tnf_info *info;
    const tnf_object *t;
    size_t i;
    uint32_t d;

    if (argc != 2) {
        fprintf(stderr, "usage: list FILE\n");
        return 2;
    }
    /* The format is found from the bytes. Only the index is read, whatever the file's size. */
    if (tnf_open(&file, argv[1], NULL, &error) != TNF_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
        return 1;
    }
    info = tnf_file_info(file);
    printf("%s %s, %zu tensors, %" PRIu64 " bytes\n", info->format, info->version, info->objects,
           info->size);

    for (i = 0; (t = tnf_at(file, i)) != NULL; i++) {
        printf("  %s  %s [", t->name.p, t->nparts ? t->parts[0].type->id : "-");
        for (d = 0; d < t->rank; d++)
            printf("%s%" PRIu64, d ? "," : "", t->shape[d]);
        printf("]\n");
    }
    tnf_close(file); /* frees everything the handle gave out */
    return 0;
}
