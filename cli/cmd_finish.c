/* SPDX-License-Identifier: MIT */
/* tenfold finish: the end of a plan. */
#include "jobs.h"

typedef struct options {
    bool json, abort, no_verify, check_input;
    part_options part; /* only --trust-content of it */
} options;

static int run_finish(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    loaded_plan p;
    tnf_error error;
    (void)argc;
    int code = plan_load(&p, argv[0]);
    if (code == EXIT_DONE) {
        tnf_job_how how = plan_how(&p);
        how.trust_content = o->part.trust_content;
        how.no_verify = o->no_verify;
        how.check_input = o->check_input;
        if (!o->abort)
            code = plan_finish(cli, &p, &how, o->json);
        else if (tnf_job_abort(p.job, &how, &error) != TNF_OK)
            code = file_error(p.path, &error);
    }
    plan_free(&p);
    return code;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL, "Print the result as JSON." },
    { "abort", 0, OPT_FLAG, offsetof(options, abort), NULL, NULL,
      "Remove what parts have left, receipts and unfinished files, and nothing else." },
    { "check-input", 0, OPT_FLAG, offsetof(options, check_input), NULL, NULL,
      "convert: read the input once more and compare it with what was written, if tensors are "
      "copied as they are." },
    { "no-verify", 0, OPT_FLAG, offsetof(options, no_verify), NULL, NULL,
      "Do not read again what was written to compare it with what the parts say they wrote." },
    TRUST_OPTION(options, part),
    { 0 },
};

static const example examples[] = {
    { "tenfold finish plan.json", "check, merge, make the result visible" },
    { "tenfold finish --json plan.json | jq .files[].hash", "the result for a script" },
    { "tenfold finish --abort plan.json", "give it up" },
    { 0 },
};

const command cmd_finish = {
    .name = "finish",
    .args = "PLAN",
    .summary = "put the parts of a plan together",
    .about = "Checks that every part of a plan is done, reads again what was written, merges the "
             "results, and makes them visible: a converted file gets its name, a hash or a report "
             "is printed. This is the only step that changes anything under the final names.\n\n"
             "It can be interrupted and run again. If parts are missing, it says which, and "
             "nothing is changed. If a part of the file is not what its worker wrote, it names the "
             "part and the leaf of 4 MiB.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .run = run_finish,
};
