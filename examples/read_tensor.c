/* SPDX-License-Identifier: MIT */
/* Prints the numbers of a tensor of any type: read_tensor FILE NAME */
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/tenfold.h>

/* A view of the mapped file if that is possible, otherwise a copy. The caller frees *copy. */
static const void *bytes_of(const tnf_object *t, void **copy, tnf_error *error)
{
    const tnf_part *part = &t->parts[0];
    const void *view;

    *copy = NULL;
    if (tnf_map(&view, part, error) == TNF_OK)
        return view;
    *copy = malloc((size_t)part->nbytes + 1);
    if (*copy == NULL || tnf_read(*copy, (size_t)part->nbytes, t, error) != TNF_OK)
        return NULL;
    return *copy;
}

static int print_values(const tnf_object *t, const void *bytes)
{
    /* f16, bf16, fp8, integers and bools are decoded to doubles (a complex number to two). */
    double value[2];
    uint64_t i, n = tnf_elements(t);

    for (i = 0; i < n; i++) {
        if (!tnf_type_decode(value, t->parts[0].type, bytes, (size_t)i, 1))
            return 1;
        printf("%g\n", value[0]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    tnf_error error = { .offset = TNF_NO_OFFSET, .message = "there is no such dense tensor" };
    tnf_file *file = NULL;
    const tnf_object *t;
    const void *bytes;
    void *copy = NULL;
    int failed = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: read_tensor FILE NAME\n");
        return 2;
    }
    if (tnf_open(&file, argv[1], NULL, &error) == TNF_OK) {
        t = tnf_find(file, argv[2]);
        if (t != NULL && t->nparts == 1 && (bytes = bytes_of(t, &copy, &error)) != NULL)
            failed = print_values(t, bytes);
    }
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    free(copy);
    tnf_close(file);
    return failed;
}
