/* SPDX-License-Identifier: MIT */
/* Converts any file with little memory, and shows the progress: stream_convert IN OUT [FORMAT] */
#include <inttypes.h>
#include <stdio.h>
#include <tenfold/convert.h>

static bool show_progress(void *ctx, uint64_t done, uint64_t total)
{
    int *shown = ctx, percent = total ? (int)(100.0 * (double)done / (double)total) : 100;

    if (percent / 10 != *shown / 10)
        fprintf(stderr, "%3d%%  %" PRIu64 " bytes\n", percent, done);
    *shown = percent;
    return true; /* false would stop without leaving a file */
}

static void print_report(const tnf_report *report)
{
    static const char *const fates[] = { "native", "stashed", "transformed", "dropped" };
    size_t i;

    for (i = 0; report && i < report->nitems; i++) {
        const tnf_plan_item *item = tnf_report_item(report, i);
        printf("%s %s: %s (%s)\n", item->kind, item->name.p, fates[item->fate], item->reason);
    }
}

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_report *report = NULL;
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_convert_options how = TNF_CONVERT_INIT;
    tnf_status status;
    int shown = -1;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: stream_convert IN OUT [FORMAT]\n");
        return 2;
    }
    save.format = argc == 4 ? argv[3] : NULL; /* NULL: by the extension of OUT */
    save.progress = show_progress;
    save.ctx = &shown;
    how.save = &save;

    status = tnf_convert_path(&report, argv[1], NULL, argv[2], &how, &error);
    print_report(report);
    if (status != TNF_OK)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_report_free(report);
    return status != TNF_OK;
}
