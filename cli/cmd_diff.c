/* SPDX-License-Identifier: MIT */
/* tenfold diff: shows the differences of two files of any formats. */
#include "diff_report.h"
#include "input.h"
#include "jobs.h"
#include "progress.h"
#include "rename.h"
#include "stop.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    input_options in;
    const char *rtol, *atol, *map;
    opt_list rename, select, exclude;
    bool nan_differs, ignore_dtype, values_only, no_values, names_only, trust_digests, json,
        summary;
    part_options part;
} options;

typedef struct job {
    progress progress; /* first, for progress_watch() */
    const cli_state *cli;
    const options *options;
    renaming *renaming;
    diff_report report;
    bool selected; /* --select matched at least one tensor */
} job;

static void on_difference(void *ctx, const tnf_difference *d)
{
    diff_report_add(&((job *)ctx)->report, d);
}

static bool on_select(void *ctx, tnf_str name)
{
    job *j = ctx;
    const options *o = j->options;
    bool wanted = glob_any(&o->select, name) && !(o->exclude.n && glob_any(&o->exclude, name));
    j->selected = j->selected || wanted;
    return wanted;
}

static tnf_status on_rename(void *ctx, tnf_str *out, tnf_str name, tnf_error *error)
{
    return renaming_apply(((const job *)ctx)->renaming, out, name, error);
}

static bool settle_options(tnf_diff_options *how, const options *o)
{
    how->numeric = o->rtol || o->atol;
    how->nan_differs = o->nan_differs;
    how->trust_digests = o->trust_digests;
    how->ignore |= o->ignore_dtype ? TNF_DIFF_IGNORE_DTYPE : 0u;
    how->ignore |= o->values_only ? TNF_DIFF_IGNORE_ATTRS | TNF_DIFF_IGNORE_EXTRAS : 0u;
    how->ignore |= o->no_values ? TNF_DIFF_IGNORE_VALUES : 0u;
    how->ignore |= o->names_only ? TNF_DIFF_IGNORE_KIND | TNF_DIFF_IGNORE_VALUES |
                                       TNF_DIFF_IGNORE_ATTRS | TNF_DIFF_IGNORE_EXTRAS
                                 : 0u;
    return opt_tolerance(&how->rtol, "diff", "rtol", o->rtol) &&
           opt_tolerance(&how->atol, "diff", "atol", o->atol);
}

static int compare_files(job *j, const input *a, const input *b, tnf_diff_options *how)
{
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    tnf_error error;
    stop_state before;
    bool silent = j->cli->quiet && !j->options->json;
    how->brief = silent;
    how->difference = silent ? NULL : on_difference;
    how->progress = progress_watch;
    how->select = j->options->select.n + j->options->exclude.n ? on_select : NULL;
    how->rename = j->renaming ? on_rename : NULL;
    how->ctx = j;
    if (!diff_report_begin(&j->report, j->cli, j->options->json))
        return memory_error();
    j->report.summary = j->options->summary;
    progress_begin(&j->progress, j->cli);
    stop_catch(&before);
    tnf_status status = tnf_diff(&result, a->file, b->file, how, &error);
    progress_end(&j->progress);
    stop_release(&before, status == TNF_ECANCELLED);
    int code = EXIT_DONE;
    if (status != TNF_OK)
        code = file_error(result.failed == b->file ? b->name : a->name, &error);
    else if (how->select && !j->selected)
        code = nothing_selected(b->name, j->options->select.n, j->options->exclude.n);
    else if (!silent)
        code = diff_report_print(&j->report, a, b, &result);
    diff_report_end(&j->report);
    return code != EXIT_DONE ? code : result.same ? EXIT_DONE : EXIT_DIFFERS;
}

static int run_diff(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    job j = { .cli = cli, .options = o };
    tnf_diff_options how = { .size = sizeof how };
    const opt_list everything = { 0 };
    renaming_counts counts;
    input a, b;
    (void)argc;
    if (o->values_only + o->no_values + o->names_only > 1)
        return usage_error("diff: --values-only, --no-values and --names-only cannot be combined");
    if (!strcmp(argv[0], "-") && !strcmp(argv[1], "-"))
        return usage_error("diff: only one of the two files can be standard input");
    if (!settle_options(&how, o))
        return EXIT_USAGE;
    int code = renaming_open(&j.renaming, o->map, &o->rename);
    if (code == EXIT_DONE)
        code = input_open(&a, cli, &o->in, argv[0]);
    if (code == EXIT_DONE) {
        code = input_open(&b, cli, &o->in, argv[1]);
        if (code == EXIT_DONE && j.renaming)
            code = renaming_check(j.renaming, &(const tnf_file *) { a.file }, 1,
                                  &(renaming_choice) { &everything, &everything }, &counts);
        if (code == EXIT_DONE)
            code = compare_files(&j, &a, &b, &how);
        input_close(&b);
        input_close(&a);
    }
    if (code == EXIT_DONE || code == EXIT_DIFFERS)
        renaming_notes(j.renaming, cli, &counts);
    renaming_free(j.renaming);
    return code;
}

static const opt table[] = {
    { "summary", 0, OPT_FLAG, offsetof(options, summary), NULL, NULL,
      "Print one line for each layer instead of one for each tensor: how many tensors are equal, "
      "and how far the others are apart." },
    { "rtol", 0, OPT_TEXT, offsetof(options, rtol), "R", NULL,
      "Compare numbers, not bits: two numbers are equal if |a - b| <= A + R |b|. In such a "
      "comparison NaN equals NaN and -0 equals 0." },
    { "atol", 0, OPT_TEXT, offsetof(options, atol), "A", NULL,
      "The absolute tolerance A in the formula of --rtol." },
    { "nan-differs", 0, OPT_FLAG, offsetof(options, nan_differs), NULL, NULL,
      "A NaN is never equal to anything, not even to a NaN." },
    { "ignore-dtype", 0, OPT_FLAG, offsetof(options, ignore_dtype), NULL, NULL,
      "Ignore differences of element types, and compare values as numbers." },
    { "select", 0, OPT_LIST, offsetof(options, select), "GLOB", NULL,
      "Compare only the tensors whose name (in B) matches; as in 'tenfold ls'. May be repeated." },
    { "exclude", 0, OPT_LIST, offsetof(options, exclude), "GLOB", NULL,
      "Leave out the tensors whose name matches. May be repeated." },
    RENAME_OPTIONS(options, map, rename, "the tensors of A"),
    { "values-only", 0, OPT_FLAG, offsetof(options, values_only), NULL, NULL,
      "Compare tensors only: no attributes and no extras." },
    { "no-values", 0, OPT_FLAG, offsetof(options, no_values), NULL, NULL,
      "Compare everything except the data of tensors, which is not read." },
    { "names-only", 0, OPT_FLAG, offsetof(options, names_only), NULL, NULL,
      "Compare only the names of the tensors." },
    { "trust-digests", 0, OPT_FLAG, offsetof(options, trust_digests), NULL, NULL,
      "Do not read tensors with equal digests in both files." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON document with all differences." },
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    PART_OPTIONS(options, part),
    ALSO_IN_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold diff model.safetensors model.zt", "did the conversion keep everything?" },
    { "tenfold diff --rtol 1e-3 --atol 1e-6 before.safetensors after.safetensors",
      "like numpy's allclose" },
    { "tenfold diff --ignore-dtype --values-only f32.zt bf16.zt", "what did rounding do?" },
    { "tenfold diff --rename 's/^module\\.//' ddp.safetensors plain.safetensors",
      "the same tensors under other names" },
    { "tenfold diff -q a.zt b.zt && echo same", "only the exit code" },
    { 0 },
};

const command cmd_diff = {
    .name = "diff",
    .args = "A B",
    .summary = "compare the content of two files of any formats",
    .about =
        "Compares names, element types, shapes, layouts, values, attributes and extras. Storage "
        "makes no difference: formats, compression, the order of tensors and of attributes, rows "
        "or columns first (-v mentions that). Without a tolerance, two files are the same exactly "
        "if 'tenfold hash' gives the same hash for both.\n\nFor each tensor with different values "
        "it prints how many values differ, the position of the first one, the largest absolute and "
        "the largest relative difference, the mean difference, the squared error divided by the "
        "squares of A (NMSE), and the cosine of the angle between both.\n\nExits with 0 if both "
        "files are the same, and with 1 if not. -q prints nothing and stops at the first "
        "difference.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 2,
    .part = offsetof(options, part) + 1,
    .run = run_diff,
};
