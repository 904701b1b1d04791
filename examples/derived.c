/* SPDX-License-Identifier: MIT */
/* Keeps matrices transposed, as a kernel needs them, within the memory budget of the parameters:
 * derived FILE BUDGET_BYTES NAME... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/params.h>

/* Called once for each parameter, however many threads request the form. */
static tnf_status transpose(void *ctx, void **data, size_t *nbytes, const tnf_param *param,
                            tnf_error *error)
{
    const tnf_object *t = param->object;
    const uint32_t *from = param->data; /* 4 bytes each; their order in memory does not matter */
    uint32_t *to;
    uint64_t row, column;

    (void)ctx;
    if (t->rank != 2 || t->parts[0].type != tnf_type_of(TNF_F32))
        return tnf_error_set(error, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "not a matrix of f32");
    to = malloc(param->nbytes + 1);
    if (!to)
        return tnf_error_set(error, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory");
    for (row = 0; row < t->shape[0]; row++)
        for (column = 0; column < t->shape[1]; column++)
            to[column * t->shape[0] + row] = from[row * t->shape[1] + column];
    *data = to;
    *nbytes = param->nbytes;
    return TNF_OK;
}

static void drop(void *ctx, void *data, size_t nbytes)
{
    (void)ctx;
    (void)nbytes;
    free(data);
}

static tnf_status use_form(tnf_params *params, const char *name, tnf_error *error)
{
    tnf_derive how = TNF_DERIVE_INIT;
    const tnf_derived *form;
    tnf_status status;

    how.kind = "transposed/1"; /* another number if `transpose` changes */
    how.make = transpose;
    how.drop = drop;
    status = tnf_params_derive(&form, params, name, &how, error);
    if (status != TNF_OK)
        return status;
    /* … compute with form->data … */
    tnf_params_release_derived(params, form);
    return TNF_OK;
}

int main(int argc, char **argv)
{
    tnf_params_options options = TNF_PARAMS_INIT;
    tnf_params_stats s = TNF_PARAMS_STATS_INIT;
    tnf_error error;
    tnf_status status;
    tnf_params *params = NULL;
    tnf_file *file = NULL;
    int i;

    if (argc < 4) {
        fprintf(stderr, "usage: derived FILE BUDGET_BYTES NAME...\n");
        return 2;
    }
    status = tnf_open(&file, argv[1], NULL, &error);
    if (status == TNF_OK) /* a gpt.rs checkpoint may have settings of its own */
        status = tnf_params_options_from_config(&options, file, &error);
    options.budget_cap = strtoull(argv[2], NULL, 10);
    if (status == TNF_OK)
        status = tnf_params_new(&params, file, &options, &error);
    for (i = 3; status == TNF_OK && i < argc; i++)
        status = use_form(params, argv[i], &error);
    if (status == TNF_OK)
        status = tnf_params_statistics(&s, params, &error);
    if (status != TNF_OK)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    else
        printf("%" PRIu64 " made, %" PRIu64 " found, %" PRIu64 " bytes kept\n", s.made,
               s.derived_hits, s.cached_bytes);
    tnf_params_free(params); /* before the file that it reads */
    tnf_close(file);
    return status != TNF_OK;
}
