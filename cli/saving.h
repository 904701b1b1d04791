/* SPDX-License-Identifier: MIT */
/* What all commands that save share: options, one call of tnf_convert(), a bar meanwhile, the plan,
 * and that it stops when a signal asks for it. */
#ifndef TENFOLD_CLI_SAVING_H
#define TENFOLD_CLI_SAVING_H

#include "input.h"
#include "plan.h"
#include "progress.h"
#include "rename.h"
#include <tenfold/convert.h>

#define LOSS_KINDS "tensor|attribute|extra" /* as plan items are called */

/* How to save, as the command line has it. A command takes those that its table names. */
typedef struct saving_options {
    const char *to, *reserve, *dtype, *order;
    opt_list writer;
    opt_maybe allow_loss;
    bool dry_run, json, force, no_sync, as_is;
} saving_options;

/* Lines of the tables of commands that save, word for word. */
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
            "are "                                                                                 \
            "kept as norms, if the readers of OUT's format require vectors of length 1 "           \
            "(finalfusion)."                                                                       \
    }
#define DRY_RUN_OPTION(type, field)                                                                \
    {                                                                                              \
        "dry-run", 'n', OPT_FLAG, offsetof(type, field.dry_run), NULL, NULL,                       \
            "Print what would happen to each thing, and write nothing."                            \
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

/* Which tensors, and their new names. */
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
      "Write tensors of floats as this type. Each value becomes the nearest one; of two equally "  \
      "near, the even one. A value that is too large becomes infinite, or the largest value if "   \
      "the type has no infinity. NaN stays NaN. Quantized tensors become the numbers that they "   \
      "stand for, but not integers whose scales are attributes. The types from q8_0 on are "       \
      "blocks: matrices of floats whose rows are whole blocks become such. Other tensors do not "  \
      "change." },                                                                                 \
    {                                                                                              \
        "order", 0, OPT_TEXT, offsetof(type, field.order), "ORDER", "C|F",                         \
            "Write dense tensors row by row (C) or column by column (F), where the format has "    \
            "both."                                                                                \
    }

/* What a command has the library convert. */
typedef struct saving {
    const cli_state *cli;
    const saving_options *options;
    const input *inputs; /* open; watched while they are read, for they may be cut short */
    size_t n;
    const char *out;          /* a file or a directory; "-" is standard output */
    bool list;                /* JSON has the inputs as an array */
    bool quiet_plan;          /* the command tells of a dry run by itself */
    const choosing *choosing; /* NULL: everything, under its name */
    tnf_convert_options how;  /* for the command to fill in; save and names are set here */
    tnf_save_options save;    /* likewise: what is not in `options` */
    tnf_url_options remote;   /* of an output over the network */
    tnf_report *report;       /* afterwards; NULL: nothing was planned. saving_free() */
    tnf_status status;        /* likewise */
    tnf_error error;          /* likewise */
    progress progress;
    const input *cut; /* it has become shorter */
    renaming *names;  /* NULL: they stay */
    renaming_counts renamed;
    FILE *kept; /* meta: what may be refused, to memory */
} saving;

/* The format that -t names, by its name or by an extension that only it has; NULL if there is none.
 */
const char *saving_format(const char *name);
/* How to save, as the options say, without what belongs to one command. */
void saving_fill(tnf_save_options *how, const saving_options *options);
/* Converts, shows the plan and says what is wrong; gives an exit code. */
int saving_run(saving *s);
void saving_free(saving *s);
/* A tnf_progress_fn with a saving for its context: the bar, and whether to stop. */
bool saving_progress(void *ctx, uint64_t done, uint64_t total);
/* Are the options sound for a file of this name (NULL: many files, or one that is there)? With
 * `keeps_format` it need not tell its format.
 * EXIT_USAGE after saying what is not. */
int saving_check(const cli_state *cli, const saving_options *options, const char *out,
                 bool keeps_format);
/* It exists already, and --force would replace it: says so, gives the exit code. */
int saving_exists(const char *out);

/* All inputs of a command, opened one after the other. */
int saving_open(input *inputs, size_t *n, const cli_state *cli, const input_options *options,
                char *const *paths, size_t npaths);

#endif
