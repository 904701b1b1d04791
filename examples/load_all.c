/* SPDX-License-Identifier: MIT */
/* Loads a complete model into memory, large blocks in parallel: load_all FILE */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/tenfold.h>

static int load_tensors(const tnf_file *file, tnf_error *error)
{
    const tnf_info *info = tnf_file_info(file);
    tnf_request *requests = calloc(info->objects + 1, sizeof *requests);
    unsigned char *memory = malloc((size_t)info->payload + 1), *at = memory;
    tnf_read_options options = TNF_READ_INIT;
    const tnf_object *t;
    size_t i, n = 0;
    int failed = 1;

    /* All tensors share one block of memory. The library sorts the requests by position, merges
     * neighbours and uses threads. */
    for (i = 0; requests && memory && (t = tnf_at(file, i)) != NULL; i++) {
        if (t->nparts != 1)
            continue;
        requests[n].part = &t->parts[0];
        requests[n++].dst = at;
        at += t->parts[0].nbytes;
    }
    options.threads = 2;
    if (requests && memory && tnf_read_many(requests, n, &options, error) == TNF_OK) {
        printf("%zu tensors, %" PRIu64 " bytes\n", n, (uint64_t)(at - memory));
        failed = 0;
    }
    free(requests);
    free(memory);
    return failed;
}

int main(int argc, char **argv)
{
    tnf_error error = { .offset = TNF_NO_OFFSET, .message = "out of memory" };
    tnf_file *file = NULL;
    int failed = 1;

    if (argc != 2) {
        fprintf(stderr, "usage: load_all FILE\n");
        return 2;
    }
    if (tnf_open(&file, argv[1], NULL, &error) == TNF_OK)
        failed = load_tensors(file, &error);
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_close(file);
    return failed;
}
