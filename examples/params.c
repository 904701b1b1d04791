/* SPDX-License-Identifier: MIT */
/* Loads parameters at their first use, within a memory budget: params FILE BUDGET_BYTES NAME... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/params.h>

static int use_param(tnf_params *params, const char *name, tnf_error *error)
{
    const tnf_param *p;
    int i;

    /* It is loaded now or found in the cache, and stays valid until it is released. */
    if (tnf_params_load(&p, params, name, error) != TNF_OK)
        return 1;
    printf("%s  %zu bytes  id ", name, p->nbytes);
    for (i = 0; i < 16; i++)
        printf("%02x", p->base_id.bytes[i]);
    printf("\n");
    tnf_params_release(params, p);
    return 0;
}

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_file *file = NULL;
    tnf_params *params = NULL;
    tnf_params_options options = TNF_PARAMS_INIT;
    tnf_params_stats stats = TNF_PARAMS_STATS_INIT;
    int i, failed = 1;

    if (argc < 4) {
        fprintf(stderr, "usage: params FILE BUDGET_BYTES NAME...\n");
        return 2;
    }
    options.budget = strtoull(argv[2], NULL, 10);
    options.small_bytes = 4096; /* biases and scales are never evicted */
    if (tnf_open(&file, argv[1], NULL, &error) == TNF_OK &&
        tnf_params_new(&params, file, &options, &error) == TNF_OK)
        for (i = 3, failed = 0; i < argc && !failed; i++)
            failed = use_param(params, argv[i], &error);
    if (!failed)
        failed = tnf_params_statistics(&stats, params, &error) != TNF_OK;
    if (failed) {
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    } else {
        printf("%" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64 " evictions\n", stats.hits,
               stats.misses, stats.evictions);
    }
    tnf_params_free(params); /* before the file that it reads */
    tnf_close(file);
    return failed;
}
