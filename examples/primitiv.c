/* SPDX-License-Identifier: MIT */
/* The whole state of a training, as primitiv saves it, written and loaded: primitiv MODEL OPTIMIZER
 */
#include <stdio.h>
#include <tenfold/primitiv.h>

static const tnf_str weight[] = { TNF_STR("encoder"), TNF_STR("w") };
static const tnf_str bias[] = { TNF_STR("encoder"), TNF_STR("b") };
static const tnf_str moment = TNF_STR("Adam.m1");
static const uint32_t matrix[] = { 2, 3 }, vector[] = { 2 };
static const tnf_primitiv_shape w_shape = { matrix, 2, 1 }, b_shape = { vector, 1, 1 };

/* Saves what is in the builder and lets go of it. */
static tnf_status save(tnf_builder *b, const char *path, tnf_error *error)
{
    tnf_save_options options = TNF_SAVE_INIT;
    tnf_status status;

    options.format = "primitiv";
    options.replace = true;
    status = tnf_save(b, path, &options, error);
    tnf_builder_free(b);
    return status;
}

static tnf_status save_model(const char *path, tnf_error *error)
{
    /* Column-major: the first dimension varies fastest. */
    static const float w[] = { 1, 2, 3, 4, 5, 6 }, m[] = { 0, 0, 0.5, 0, 0, 0 }, b[] = { 7, 8 };
    tnf_builder *builder;

    if (tnf_builder_new(&builder, NULL, error) != TNF_OK)
        return error->status;
    if (tnf_primitiv_add(builder, weight, 2, NULL, &w_shape, w, error) != TNF_OK ||
        tnf_primitiv_add(builder, weight, 2, &moment, &w_shape, m, error) != TNF_OK ||
        tnf_primitiv_add(builder, bias, 2, NULL, &b_shape, b, error) != TNF_OK) {
        tnf_builder_free(builder);
        return error->status;
    }
    return save(builder, path, error);
}

static tnf_status save_optimizer(const char *path, tnf_error *error)
{
    static const tnf_primitiv_config uints[] = { { "Optimizer.epoch", 5, 0 } };
    static const tnf_primitiv_config floats[] = { { "Adam.alpha", 0, 0.001f },
                                                  { "Adam.beta1", 0, 0.9f } };
    tnf_builder *builder;

    if (tnf_builder_new(&builder, NULL, error) != TNF_OK)
        return error->status;
    if (tnf_primitiv_set_optimizer(builder, uints, 1, floats, 2, error) != TNF_OK) {
        tnf_builder_free(builder);
        return error->status;
    }
    return save(builder, path, error);
}

/* All of it goes to its place, or nothing does. */
static tnf_status load_model(const char *path, tnf_error *error)
{
    float w[6], m[6], b[2];
    tnf_primitiv_binding all[3] = { { weight, 2, NULL, w_shape, w, false },
                                    { weight, 2, &moment, w_shape, m, false },
                                    { bias, 2, NULL, b_shape, b, false } };
    tnf_file *file;
    tnf_status status = tnf_open(&file, path, NULL, error);

    if (status != TNF_OK)
        return status;
    status = tnf_primitiv_bind(file, all, 3, NULL, error);
    if (status == TNF_OK)
        printf("w[1,2] = %g, its moment at [0,1] = %g, b[1] = %g\n", w[1 + 2 * 2], m[0 + 2 * 1],
               b[1]);
    tnf_close(file);
    return status;
}

static tnf_status load_optimizer(const char *path, tnf_error *error)
{
    tnf_str name;
    uint32_t epoch;
    float alpha;
    tnf_file *file;
    tnf_status status = tnf_open(&file, path, NULL, error);

    if (status != TNF_OK)
        return status;
    if (tnf_primitiv_optimizer(&name, file) && tnf_primitiv_uint(&epoch, file, "Optimizer.epoch") &&
        tnf_primitiv_float(&alpha, file, "Adam.alpha"))
        printf("%.*s, epoch %u, alpha %g\n", (int)name.n, name.p, (unsigned)epoch, alpha);
    tnf_close(file);
    return status;
}

int main(int argc, char **argv)
{
    tnf_error error;

    if (argc != 3) {
        fprintf(stderr, "usage: primitiv MODEL OPTIMIZER\n");
        return 2;
    }
    if (save_model(argv[1], &error) == TNF_OK && save_optimizer(argv[2], &error) == TNF_OK &&
        load_model(argv[1], &error) == TNF_OK && load_optimizer(argv[2], &error) == TNF_OK)
        return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}
