/* SPDX-License-Identifier: MIT */
/* Helpers shared by the commands for plans: reading a plan, running a part of it, finishing it. */
#ifndef TENFOLD_CLI_JOBS_H
#define TENFOLD_CLI_JOBS_H

#include "cmd.h"
#include <tenfold/jobs.h>

/* Table entries for a command whose struct has part_options as `field`. */
#define PART_OPTIONS(type, field)                                                                  \
    { "plan",                                                                                      \
      0,                                                                                           \
      OPT_TEXT,                                                                                    \
      offsetof(type, field.plan),                                                                  \
      "PLAN",                                                                                      \
      NULL,                                                                                        \
      "Run only a part of this plan, which 'tenfold plan' made. Files and options are those of "   \
      "the plan." },                                                                               \
        { "part",                                                                                  \
          0,                                                                                       \
          OPT_TEXT,                                                                                \
          offsetof(type, field.part),                                                              \
          "I/N",                                                                                   \
          NULL,                                                                                    \
          "Which part: I counts from 0, N is the number of parts of the plan." },                  \
        TRUST_OPTION(type, field)
#define TRUST_OPTION(type, field)                                                                  \
    {                                                                                              \
        "trust-content", 0, OPT_FLAG, offsetof(type, field.trust_content), NULL, NULL,             \
            "With a plan: accept inputs with other modification times. Sizes and headers must "    \
            "still be those of the plan."                                                          \
    }

/* Options for finishing a plan, and their table entries. */
typedef struct finish_options {
    bool no_verify, check_input, trust_content;
} finish_options;
#define FINISH_OPTIONS(type, field)                                                                \
    { "check-input",                                                                               \
      0,                                                                                           \
      OPT_FLAG,                                                                                    \
      offsetof(type, field.check_input),                                                           \
      NULL,                                                                                        \
      NULL,                                                                                        \
      "convert: read the input once more and compare it with the output, if tensors are copied "   \
      "as they are." },                                                                            \
        { "no-verify",                                                                             \
          0,                                                                                       \
          OPT_FLAG,                                                                                \
          offsetof(type, field.no_verify),                                                         \
          NULL,                                                                                    \
          NULL,                                                                                    \
          "Do not read the output again to compare it with the receipts of the parts." },          \
        TRUST_OPTION(type, field)

/* A plan and the path that it was read from. */
typedef struct loaded_plan {
    tnf_job *job;
    const tnf_job_info *info;
    const char *path;
    char *text;
} loaded_plan;

/* Reads a plan ("-": standard input). Returns an exit code, after reporting an error. */
int plan_load(loaded_plan *out, const char *path);
void plan_free(loaded_plan *p);
/* Options for running its parts. Receipts are stored next to the plan if it has no output file. */
tnf_job_how plan_how(const loaded_plan *p);

/* `tenfold COMMAND --plan PLAN --part I/N`. */
int part_run(const cli_state *cli, const char *name, const part_options *options, int nargs);
/* Finishes and prints the result. */
int plan_finish(const cli_state *cli, const loaded_plan *p, const tnf_job_how *how, bool as_json);

#endif
