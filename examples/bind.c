/* SPDX-License-Identifier: MIT */
/* Loads the tensors of a model without copying them: bind MODEL
 * MODEL is a file, or the directory or index of a model in several files. */
#include <stdio.h>
#include <tenfold/bind.h>

static void print_problem(void *ctx, const tnf_binding *wanted, const tnf_error *why)
{
    (void)ctx;
    (void)wanted;
    fprintf(stderr, "%s\n", why->message);
}

static int use_model(const tnf_file *file, tnf_error *error)
{
    /* Any number of words, 64 numbers each. The bias is copied to `room` if it cannot be mapped. */
    const uint64_t words[2] = { TNF_ANY, 64 };
    float room[64];
    tnf_binding wanted[2] = { TNF_BINDING_INIT, TNF_BINDING_INIT };
    char shape[40];

    wanted[0].name = "tok_embeddings";
    wanted[0].type = tnf_type_of(TNF_F32);
    wanted[0].rank = 2;
    wanted[0].shape = words;
    wanted[1].name = "blocks.0.bias";
    wanted[1].dst = room;
    wanted[1].n = sizeof room;
    if (tnf_bind(file, wanted, 2, print_problem, NULL, error) != TNF_OK)
        return 1;
    tnf_shape_text(shape, sizeof shape, wanted[0].object);
    printf("%s begins with %g\n", shape, (double)((const float *)wanted[0].view)[0]);
    return 0;
}

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_file *file = NULL;
    int failed;

    if (argc != 2) {
        fprintf(stderr, "usage: bind MODEL\n");
        return 2;
    }
    if (tnf_open(&file, argv[1], NULL, &error) != TNF_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
        return 1;
    }
    failed = use_model(file, &error);
    tnf_close(file);
    return failed;
}
