/* SPDX-License-Identifier: MIT */
/* What every command that saves shows while the library saves: the plan, a bar; and that it stops
 * when a signal asks for it. */
#ifndef TENFOLD_CLI_SAVING_H
#define TENFOLD_CLI_SAVING_H

#include "input.h"
#include "plan.h"
#include "progress.h"
#include <tenfold/build.h>

#define LOSS_KINDS "tensor|attribute|extra" /* as plan items are called */

/* Lines of the tables of commands that save, word for word. */
#define LOSS_OPTION(type, field)                                                                   \
    {                                                                                              \
        "allow-loss", 0, OPT_MAYBE, offsetof(type, field), "KIND", LOSS_KINDS,                     \
            "Drop what the format cannot hold instead of refusing: everything, or the kinds "      \
            "named: tensor, attribute, extra, separated by commas."                                \
    }
#define PLAN_OPTIONS(type, dry_run_field, json_field)                                              \
    { "dry-run",                                                                                   \
      'n',                                                                                         \
      OPT_FLAG,                                                                                    \
      offsetof(type, dry_run_field),                                                               \
      NULL,                                                                                        \
      NULL,                                                                                        \
      "Print what would become of each thing, and write nothing." },                               \
    {                                                                                              \
        "json", 0, OPT_FLAG, offsetof(type, json_field), NULL, NULL,                               \
            "Print the plan of a --dry-run as one JSON document."                                  \
    }

typedef struct saving {
    progress progress;
    plan plan;
    const input *watched; /* what is read through a mapping; NULL: nothing is */
    uint64_t size;        /* of its file, at first */
    bool cut;             /* it has become shorter */
} saving;

/* What is saved, and where to. */
typedef struct saving_job {
    const cli_state *cli;
    const tnf_builder *builder;
    const char *in, *out;   /* for messages, in may be NULL; "-" is standard output */
    const opt_list *writer; /* options of the format's writer */
    bool append;
} saving_job;

/* Has the library tell `s`, which must stay until it is done. */
void saving_listen(saving *s, tnf_save_options *how);
/* Past the end of a file that was cut short, a mapping shows zeros to the end of a page: from now
 * on that is looked for while saving, and stops it. */
void saving_watch(saving *s, const input *in);
/* Saves, with a bar, and stops for signals; ends the plan that the caller has begun. Gives an exit
 * code, after saying what went wrong. */
int saving_run(saving *s, const saving_job *job, tnf_save_options *how);
/* The name of the format that will be written, for the plan: `to`, or what the extension stands
 * for; NULL if that is none. The library decides, and complains. */
const char *saving_format(tnf_format_info *f, const char *to, const char *out);
/* How the plan is shown. */
plan_style saving_style(const cli_state *cli, bool dry_run, bool as_json);
/* --allow-loss=KIND,KIND: a kind that does not exist would allow nothing, silently. NULL is fine,
 * for `who` too.
 * False after `who` has said so. */
bool saving_kinds_known(const char *who, const char *kinds);

#endif
