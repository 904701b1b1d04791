/* SPDX-License-Identifier: MIT */
/* Runs a gpt.rs model that is larger than memory, layer by layer: gptrs_stream FILE BUDGET_BYTES */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/params.h>

/* A forward pass uses every parameter once, in file order. */
static tnf_status forward_pass(tnf_params *params, const tnf_file *file, tnf_error *error)
{
    tnf_status status = tnf_params_ahead(params, NULL, 0, error); /* reads while we compute */
    const tnf_object *t;
    const tnf_param *p;
    size_t i;

    for (i = 0; status == TNF_OK && (t = tnf_at(file, i)) != NULL; i++) {
        status = tnf_params_load_n(&p, params, t->name.p, t->name.n, error);
        if (status == TNF_OK) {
            /* … compute with p->data … */
            tnf_params_release(params, p);
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    tnf_params_options options = TNF_PARAMS_INIT;
    tnf_error error = { .message = "usage: gptrs_stream FILE BUDGET_BYTES" };
    tnf_params_stats s = TNF_PARAMS_STATS_INIT;
    tnf_params *params = NULL;
    tnf_file *file = NULL;
    bool done;

    options.budget = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    options.small_bytes = 1024; /* biases and norms are never evicted */
    done = argc == 3 && tnf_open(&file, argv[1], NULL, &error) == TNF_OK &&
           tnf_params_new(&params, file, &options, &error) == TNF_OK &&
           forward_pass(params, file, &error) == TNF_OK &&
           forward_pass(params, file, &error) == TNF_OK &&
           tnf_params_statistics(&s, params, &error) == TNF_OK;
    if (done) {
        printf("%" PRIu64 " bytes read, %" PRIu64 " kept of %" PRIu64 "\n", s.loaded_bytes,
               s.cached_bytes, tnf_file_info(file)->payload);
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    tnf_params_free(params); /* before the file that it reads */
    tnf_close(file);
    return !done;
}
