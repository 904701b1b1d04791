/* SPDX-License-Identifier: MIT */
/* Saves and loads a primitiv model with its optimizer: primitiv MODEL OPTIMIZER */
#include <stdio.h>
#include <tenfold/primitiv.h>

static const tnf_str weight[] = { TNF_STR("encoder"), TNF_STR("w") }, moment = TNF_STR("Adam.m1");
static const uint32_t dims[] = { 2, 3 };
static const tnf_primitiv_shape shape = { dims, 2, 1 };

static tnf_status save_model(const char *model, const char *optimizer, tnf_error *error)
{
    /* Column-major: the first dimension varies fastest. */
    float w[] = { 1, 2, 3, 4, 5, 6 }, m[] = { 0, 0, 0.5, 0, 0, 0 };
    tnf_primitiv_binding all[] = { { weight, 2, NULL, shape, w, false },
                                   { weight, 2, &moment, shape, m, false } };
    tnf_primitiv_config epoch = { TNF_STR("Optimizer.epoch"), 5, 0 };
    tnf_primitiv_config alpha = { TNF_STR("Adam.alpha"), 0, 0.001f };
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_status s;

    how.replace = true;
    s = tnf_primitiv_save(model, all, 2, &how, error);
    return s ? s : tnf_primitiv_save_optimizer(optimizer, &epoch, 1, &alpha, 1, &how, error);
}

/* The arrays receive all tensors or, after an error, none. */
static tnf_status load_model(const char *model, const char *optimizer, tnf_error *error)
{
    float w[6], m[6];
    tnf_primitiv_binding all[] = { { weight, 2, NULL, shape, w, false },
                                   { weight, 2, &moment, shape, m, false } };
    tnf_primitiv_config alpha = { TNF_STR("Adam.alpha"), 0, 0 };
    tnf_status s;

    if ((s = tnf_primitiv_load(all, 2, model, NULL, error)) == TNF_OK &&
        (s = tnf_primitiv_load_optimizer(NULL, 0, &alpha, 1, optimizer, error)) == TNF_OK)
        printf("w[1,2] = %g, its moment at [0,1] = %g, alpha = %g\n", (double)w[1 + 2 * 2],
               (double)m[0 + 2 * 1], (double)alpha.f);
    return s;
}

int main(int argc, char **argv)
{
    tnf_error error = { .message = "usage: primitiv MODEL OPTIMIZER" };

    if (argc == 3 && save_model(argv[1], argv[2], &error) == TNF_OK &&
        load_model(argv[1], argv[2], &error) == TNF_OK)
        return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}
