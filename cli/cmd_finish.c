/* SPDX-License-Identifier: MIT */
/* tenfold finish: completes a plan. */
#include "jobs.h"

typedef struct options {
    bool json, abort;
    finish_options finish;
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
        how.trust_content = o->finish.trust_content;
        how.no_verify = o->finish.no_verify;
        how.check_input = o->finish.check_input;
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
      "Only remove the leftovers of parts: receipts and unfinished files." },
    FINISH_OPTIONS(options, finish),
    { 0 },
};

static const example examples[] = {
    { "tenfold finish plan.json", "check, merge, make the result visible" },
    { "tenfold finish --json plan.json | jq .files[].hash", "the result for a script" },
    { "tenfold finish --abort plan.json", "give up and clean up" },
    { 0 },
};

const command cmd_finish = {
    .name = "finish",
    .args = "PLAN",
    .summary = "combine the results of a plan's parts",
    .about = "Checks that every part of a plan is done, reads the written data again, merges the "
             "results, and makes them visible: a converted file gets its name, a hash or a report "
             "is printed. This is the only step that changes files under the final names.\n\nIt "
             "can be interrupted and run again. If parts are missing, it lists them and changes "
             "nothing. If the file does not have the bytes that a worker wrote, it names the part "
             "and the leaf (a block of 4 MiB).",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .run = run_finish,
};
