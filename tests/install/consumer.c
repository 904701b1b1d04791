/* SPDX-License-Identifier: MIT */
/* A program of a user: it writes a file, reads it and compares the result. */
#include <stdio.h>
#include <string.h>
#include <tenfold/build.h>
#include <tenfold/params.h>
#include <tenfold/tenfold.h>

int main(int argc, char **argv)
{
    const float values[6] = { 1, 2, 3, 4, 5, 6 };
    const uint64_t shape[2] = { 2, 3 };
    float back[6] = { 0 };
    tnf_error error = { TNF_OK, 0, 0, NULL, "" };
    tnf_builder *builder = NULL;
    tnf_file *file = NULL;
    int bad = 1;

    if (argc != 2 || strcmp(tnf_version(), TNF_VERSION_STRING) != 0)
        return 2;
    if (tnf_builder_new(&builder, NULL, &error) == TNF_OK &&
        tnf_builder_add(builder, "w", tnf_type_of(TNF_F32), 2, shape, values, &error) == TNF_OK &&
        tnf_save(builder, argv[1], NULL, &error) == TNF_OK &&
        tnf_open(&file, argv[1], NULL, &error) == TNF_OK && tnf_find(file, "w") &&
        tnf_read(back, sizeof back, tnf_find(file, "w"), &error) == TNF_OK)
        bad = memcmp(values, back, sizeof back) != 0;
    if (bad)
        fprintf(stderr, "%s\n", error.message);
    tnf_close(file);
    tnf_builder_free(builder);
    return bad;
}
