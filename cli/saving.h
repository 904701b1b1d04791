/* SPDX-License-Identifier: MIT */
/* Helpers shared by all commands that save: options, a call of tnf_convert() with a progress bar,
 * the plan, and stopping at a signal. */
#ifndef TENFOLD_CLI_SAVING_H
#define TENFOLD_CLI_SAVING_H

#include "input.h"
#include "plan.h"
#include "progress.h"
#include "rename.h"
#include <tenfold/convert.h>

#define LOSS_KINDS "tensor|attribute|extra" /* the kinds of plan items */

/* Options for saving. A command accepts those that its table names. */
typedef struct saving_options {
    const char *to, *reserve, *dtype, *order;
    opt_list writer;
    opt_maybe allow_loss;
    bool dry_run, json, force, no_sync, as_is;
} saving_options;

/* Table entries that all commands that save share. */
#define TO_OPTION(type, field, otherwise)                                                          \
    {                                                                                              \
        "to", 't', OPT_TEXT, offsetof(type, field.to), "FORMAT", "@writable",                      \
            "Write this format, given by its name or extension. Without it, " otherwise            \
    }
#define WRITER_OPTION(type, field, name, letter)                                                   \
    {                                                                                              \
        name, letter, OPT_LIST, offsetof(type, field.writer), "KEY=VALUE", NULL,                   \
            "Set an option of the format's writer ('tenfold formats NAME' lists them). May be "    \
            "repeated."                                                                            \
    }
/* See ALSO_IN_OPTION. */
#define ALSO_OUT_OPTION(type, field)                                                               \
    {                                                                                              \
        "out-option", 0, OPT_LIST, offsetof(type, field.writer), "KEY=VALUE", NULL, NULL           \
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
            "are kept as norms, if the readers of OUT's format require vectors of length 1 "       \
            "(finalfusion)."                                                                       \
    }
#define DRY_RUN_OPTION(type, field)                                                                \
    {                                                                                              \
        "dry-run", 'n', OPT_FLAG, offsetof(type, field.dry_run), NULL, NULL,                       \
            "Print what would happen to each item, and write nothing."                             \
    }
#define PLAN_JSON_OPTION(type, field)                                                              \
    {                                                                                              \
        "json", 0, OPT_FLAG, offsetof(type, field.json), NULL, NULL,                               \
            "Print the plan of a --dry-run as one JSON document."                                  \
    }
#define PLAN_OPTIONS(type, field) DRY_RUN_OPTION(type, field), PLAN_JSON_OPTION(type, field)
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

/* The tensors to save, and their new names. */
typedef struct choosing {
    opt_list select, exclude, rename;
    const char *map;
} choosing;

#define CHOOSING_OPTIONS(type, field)                                                              \
    { "select",                                                                                    \
      0,                                                                                           \
      OPT_LIST,                                                                                    \
      offsetof(type, field.select),                                                                \
      "GLOB",                                                                                      \
      NULL,                                                                                        \
      "Take only the tensors whose name matches; as in 'tenfold ls'. May be repeated." },          \
        { "exclude",                                                                               \
          0,                                                                                       \
          OPT_LIST,                                                                                \
          offsetof(type, field.exclude),                                                           \
          "GLOB",                                                                                  \
          NULL,                                                                                    \
          "Leave out the tensors whose name matches. May be repeated." },                          \
        RENAME_OPTIONS(type, field.map, field.rename, "the tensors")

#define CASTS                                                                                      \
    "f64|f32|f16|bf16|f8_e4m3fn|f8_e5m2|f8_e4m3fnuz|f8_e5m2fnuz|q8_0|q5_1|q5_0|q4_1|q4_0|mxfp4|"   \
    "nvfp4|tq1_0|tq2_0|q2_0|q1_0"

#define CAST_OPTIONS(type, field)                                                                  \
    { "dtype",                                                                                     \
      0,                                                                                           \
      OPT_TEXT,                                                                                    \
      offsetof(type, field.dtype),                                                                 \
      "DTYPE",                                                                                     \
      CASTS,                                                                                       \
      "Write tensors of floats as this type. Each value is rounded to nearest, ties to even. A "   \
      "value that is too large becomes infinite, or the largest value if the type has no "         \
      "infinity. NaN stays NaN. Quantized tensors become the numbers that they represent, except " \
      "integers whose scales are attributes. The types from q8_0 on are blocks: only matrices of " \
      "floats whose rows are whole blocks are converted to them. Other tensors do not change." },  \
    {                                                                                              \
        "order", 0, OPT_TEXT, offsetof(type, field.order), "ORDER", "C|F",                         \
            "Write dense tensors row by row (C) or column by column (F), if the format has both."  \
    }

/* A conversion by the library. */
typedef struct saving {
    const cli_state *cli;
    const saving_options *options;
    const input *inputs; /* open; checked while they are read, since they may be truncated */
    size_t n;
    const char *out;          /* a file or a directory; "-" is standard output */
    bool list;                /* JSON has the inputs as an array */
    bool quiet_plan;          /* the command itself reports a dry run */
    const choosing *choosing; /* NULL: all tensors, with their names */
    tnf_convert_options how;  /* set by the command, except for save and names */
    tnf_save_options save;    /* set by the command, except for those in `options` */
    tnf_url_options remote;   /* for an output over the network */
    tnf_report *report;       /* a result, for saving_free(); NULL: nothing was planned */
    tnf_status status;        /* a result */
    tnf_error error;          /* a result */
    progress progress;
    const input *cut; /* an input that was truncated, or NULL */
    renaming *names;  /* NULL: no new names */
    renaming_counts renamed;
    FILE *kept; /* meta: collects items that may be refused */
} saving;

/* The format that -t gives by its name or by an extension of only this format; NULL if there is
 * none. */
const char *saving_format(const char *name);
/* Fills in the options of the library from those of the command line. */
void saving_fill(tnf_save_options *how, const saving_options *options);
/* Converts, shows the plan and reports errors; returns an exit code. */
int saving_run(saving *s);
void saving_free(saving *s);
/* A tnf_progress_fn whose context is a saving. It draws the bar, and stops at a signal. */
bool saving_progress(void *ctx, uint64_t done, uint64_t total);
/* Checks the options for a file of this name (NULL: several files, or an existing one). With
 * `keeps_format` the name need not determine a format. Returns EXIT_USAGE after reporting an
 * error. */
int saving_check(const cli_state *cli, const saving_options *options, const char *out,
                 bool keeps_format);
/* The same for a command whose --json prints the plan of a dry run. */
int saving_check_plan(const cli_state *cli, const saving_options *options, const char *out,
                      bool keeps_format);
/* Reports that the output exists, and that --force would replace it. Returns the exit code. */
int saving_exists(const char *out);

/* Opens all inputs of a command. */
int saving_open(input *inputs, size_t *n, const cli_state *cli, const input_options *options,
                char *const *paths, size_t npaths);

#endif
