/* SPDX-License-Identifier: MIT */
/* Lists the contents of a file: list FILE */
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
    /* The format is detected from the bytes. Only the index is read, even from a large file. */
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
    tnf_close(file); /* frees everything that was returned for the file */
    return 0;
}
