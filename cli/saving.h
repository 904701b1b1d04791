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

/* How to save, as the command line has it. A command takes those that its table names. */
typedef struct saving_options {
    const char *to, *reserve;
    opt_list writer;
    opt_maybe allow_loss;
    bool dry_run, json, force, no_sync, as_is;
} saving_options;

/* Lines of the tables of commands that save, word for word. */
#define TO_OPTION(type, field, otherwise)                                                          \
    {                                                                                              \
        "to", 't', OPT_TEXT, offsetof(type, field.to), "FORMAT", "@writable",                      \
            "Write this format. Without it, " otherwise                                            \
    }
#define WRITER_OPTION(type, field, name, letter)                                                   \
    {                                                                                              \
        name, letter, OPT_LIST, offsetof(type, field.writer), "KEY=VALUE", NULL,                   \
            "Set an option of the format's writer ('tenfold formats NAME' lists them). May be "    \
            "repeated."                                                                            \
    }
#define LOSS_OPTION(type, field)                                                                   \
    {                                                                                              \
        "allow-loss", 0, OPT_MAYBE, offsetof(type, field.allow_loss), "KIND", LOSS_KINDS,          \
            "Drop what the format cannot hold instead of refusing: everything, or these kinds: "   \
            "tensor, attribute, extra, separated by commas."                                       \
    }
#define AS_IS_OPTION(type, field)                                                                  \
    {                                                                                              \
        "as-is", 0, OPT_FLAG, offsetof(type, field.as_is), NULL, NULL,                             \
            "Do not change word vectors. Without it, they are divided by their lengths, which "    \
            "are "                                                                                 \
            "kept as norms, if the readers of OUT's format require vectors of length 1 "           \
            "(finalfusion)."                                                                       \
    }
#define PLAN_OPTIONS(type, field)                                                                  \
    { "dry-run",                                                                                   \
      'n',                                                                                         \
      OPT_FLAG,                                                                                    \
      offsetof(type, field.dry_run),                                                               \
      NULL,                                                                                        \
      NULL,                                                                                        \
      "Print what would happen to each thing, and write nothing." },                               \
    {                                                                                              \
        "json", 0, OPT_FLAG, offsetof(type, field.json), NULL, NULL,                               \
            "Print the plan of a --dry-run as one JSON document."                                  \
    }
#define FORCE_OPTION(type, field, may)                                                             \
    {                                                                                              \
        "force", 0, OPT_FLAG, offsetof(type, field.force), NULL, NULL, may                         \
    }
#define NO_SYNC_OPTION(type, field)                                                                \
    {                                                                                              \
        "no-sync", 0, OPT_FLAG, offsetof(type, field.no_sync), NULL, NULL,                         \
            "Do not wait until the file is on the disk: faster, but a power cut may lose it."      \
    }
#define RESERVE_OPTION(type, field)                                                                \
    {                                                                                              \
        "reserve", 0, OPT_TEXT, offsetof(type, field.reserve), "SIZE", NULL,                       \
            "Reserve space (4K, 1M ...) for later changes of the metadata in place. The same as "  \
            "'--option reserve=SIZE', for formats that have it."                                   \
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
    const char *in, *out; /* for messages, in may be NULL; "-" is standard output */
    const saving_options *options;
    bool append;
} saving_job;

/* Has the library tell `s`, which must stay until it is done. */
void saving_listen(saving *s, tnf_save_options *how);
/* Past the end of a file that was cut short, a mapping shows zeros to the end of a page: from now
 * on that is looked for while saving, and stops it. */
void saving_watch(saving *s, const input *in);
/* What the options ask of the library; not those of the writer, which must be parsed and freed. */
void saving_fill(tnf_save_options *how, const saving_options *options);
/* Saves as the job's options say, with a bar, and stops for signals; ends the plan that the caller
 * has begun. Gives an exit code, after saying what went wrong. */
int saving_run(saving *s, const saving_job *job, tnf_save_options *how);
/* How the plan is shown. */
plan_style saving_style(const cli_state *cli, const saving_options *options);
/* Are the options sound for a file of this name? (NULL: many files, or one that keeps its format.)
 * EXIT_USAGE after saying what is not. */
int saving_check(const cli_state *cli, const saving_options *options, const char *out);
/* The name of the format that will be written; NULL if the library will have to say that it is not
 * known. */
const char *saving_format(const saving_options *options, const char *out);

#endif
