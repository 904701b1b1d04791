/* SPDX-License-Identifier: MIT */
/* Any file into another format, with progress, in little memory: stream_convert IN OUT [FORMAT] */
#include <inttypes.h>
#include <stdio.h>
#include <tenfold/build.h>

static bool progress(void *ctx, uint64_t done, uint64_t total)
{
    int *shown = ctx, percent = total ? (int)(100.0 * (double)done / (double)total) : 100;

    if (percent / 10 != *shown / 10)
        fprintf(stderr, "%3d%%  %" PRIu64 " bytes\n", percent, done);
    *shown = percent;
    return true; /* false would stop and leave no file */
}

/* Told before the first byte is written what becomes of each item. */
static void plan(void *ctx, const tnf_plan_item *item)
{
    static const char *const fates[] = { "native", "stashed", "transformed", "dropped" };

    (void)ctx;
    if (item->fate != TNF_NATIVE)
        printf("%s %s: %s (%s)\n", item->kind, item->name.p, fates[item->fate], item->reason);
}

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_file *in = NULL;
    tnf_builder *builder = NULL;
    tnf_save_options options = TNF_SAVE_INIT;
    tnf_status status;
    int shown = -1;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: stream_convert IN OUT [FORMAT]\n");
        return 2;
    }
    options.format = argc == 4 ? argv[3] : NULL; /* or what OUT's extension says */
    options.plan = plan;
    options.progress = progress;
    options.ctx = &shown;

    /* The builder only points into the open file; bytes flow while saving. */
    if ((status = tnf_open(&in, argv[1], NULL, &error)) == TNF_OK &&
        (status = tnf_builder_new(&builder, NULL, &error)) == TNF_OK &&
        (status = tnf_builder_add_file(builder, in, &error)) == TNF_OK)
        status = tnf_save(builder, argv[2], &options, &error);
    if (status != TNF_OK)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_builder_free(builder);
    tnf_close(in);
    return status != TNF_OK;
}
