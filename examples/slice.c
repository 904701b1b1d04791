/* SPDX-License-Identifier: MIT */
/* Reads a slice of a tensor without the rest: slice FILE NAME "0:4,:,-1" */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/tenfold.h>

#define MAX_RANK 64 /* the default limit of a file */

static int print_slice(const tnf_object *t, const char *text, tnf_error *error)
{
    tnf_slice slices[MAX_RANK];
    uint64_t bytes, count = 1, i;
    uint32_t d;
    void *data;
    double value[2];

    /* The syntax is that of numpy; indices are checked against the shape. */
    if (tnf_slice_parse(slices, text, t->shape, t->rank, error) != TNF_OK)
        return 1;
    for (d = 0; d < t->rank; d++) {
        count *= slices[d].count;
        if (!slices[d].drop) /* a plain index removes its dimension */
            printf("dimension of %" PRIu64 "\n", slices[d].count);
    }
    bytes = tnf_slice_bytes(t, slices);
    data = malloc((size_t)bytes + 1);
    if (data == NULL || tnf_read_slice(data, (size_t)bytes, t, slices, error) != TNF_OK) {
        free(data);
        return 1;
    }
    for (i = 0; i < count && tnf_type_decode(value, t->parts[0].type, data, (size_t)i, 1); i++)
        printf("%g\n", value[0]);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    tnf_error error = { .offset = TNF_NO_OFFSET, .message = "there is no such dense tensor" };
    tnf_file *file = NULL;
    const tnf_object *t;
    int failed = 1;

    if (argc != 4) {
        fprintf(stderr, "usage: slice FILE NAME SLICE\n");
        return 2;
    }
    if (tnf_open(&file, argv[1], NULL, &error) == TNF_OK) {
        t = tnf_find(file, argv[2]);
        if (t != NULL && t->nparts == 1)
            failed = print_slice(t, argv[3], &error);
    }
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_close(file);
    return failed;
}
