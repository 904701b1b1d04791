/* SPDX-License-Identifier: MIT */
/* Helpers shared by the commands for embeddings. */
#ifndef TENFOLD_CLI_EMB_H
#define TENFOLD_CLI_EMB_H

#include "input.h"
#include "out.h"
#include "saving.h"
#include <tenfold/emb.h>

typedef struct emb_options {
    input_options in;
    const char *embeddings, *vocab;
} emb_options;

/* The table entries for a command whose struct has these options as `field`. */
#define EMB_OPTIONS(type, field) EMB_INPUT_OPTIONS(type, field), READER_OPTION(type, field.in)
#define EMB_INPUT_OPTIONS(type, field)                                                             \
    { "embeddings",                                                                                \
      0,                                                                                           \
      OPT_TEXT,                                                                                    \
      offsetof(type, field.embeddings),                                                            \
      "NAME",                                                                                      \
      NULL,                                                                                        \
      "The name of the tensor of vectors, if it is not 'embeddings' or 'points'. In a file with "  \
      "several groups, 2/embeddings selects the second group with its words." },                   \
        { "vocab",                                                                                 \
          0,                                                                                       \
          OPT_TEXT,                                                                                \
          offsetof(type, field.vocab),                                                             \
          "NAME",                                                                                  \
          NULL,                                                                                    \
          "The name of the tensor of words, if it is not 'vocab' or 'appdata'." },                 \
        INPUT_OPTIONS(type, field.in)

/* An open file of embeddings. */
typedef struct emb_input {
    input in;
    tnf_emb *emb;
    const tnf_emb_info *info;
    bool app; /* rows have application data instead of words */
} emb_input;

/* Returns an exit code, after reporting an error. */
int emb_open(emb_input *e, const cli_state *cli, const emb_options *options, const char *path);
/* Is a tensor that the options name not in the file? */
bool emb_misnamed(const tnf_file *file, const tnf_emb_options *how);
/* Reports a file without words, or also without subwords; then the exit code is EXIT_BAD. */
bool emb_has_words(const emb_input *e, bool or_subwords);
void emb_close(emb_input *e);
/* Parses a whole number of at least `least`; the result is `otherwise` if the text is NULL. */
bool emb_number(uint64_t *out, const char *text, const char *option, uint64_t least,
                uint64_t otherwise);

/* ---------------------------------------------------------------- questions */

/* Lines of standard input or of a file, in batches. A batch is everything that can be read without
 * waiting: a typed line is answered at once, and a long list is answered together. */
typedef struct emb_lines {
    int fd;
    const char *path; /* for messages */
    bool prompt;      /* the user types at a terminal */
    char *buffer;
    size_t n, room, used;
    bool ended;
    tnf_str *lines;
    size_t nlines, lines_room;
} emb_lines;

/* path NULL or "-": standard input. */
bool emb_lines_open(emb_lines *l, const char *path);
/* Reads the next batch into l->lines, trimmed, without empty lines. Returns false at the end, and
 * after reporting an error; then l->fd is -1. */
bool emb_lines_next(emb_lines *l);
void emb_lines_close(emb_lines *l);
/* Answers a batch of lines; returns false to stop. */
typedef bool (*emb_batch_fn)(void *ctx, const emb_lines *batch);
/* Answers all of standard input, batch by batch. Sets *several if no user is prompted, so that
 * answers name their questions. *code becomes EXIT_IO if reading failed. */
void emb_ask_lines(emb_batch_fn ask, void *ctx, bool *several, int *code);
/* Splits a line into words: at TABs if it has any, else at white space. Returns the number of
 * words; at most `most` of them are stored. */
size_t emb_tokens(tnf_str line, tnf_str *out, size_t most);

/* ------------------------------------------------------------------ answers */

typedef struct emb_asking {
    tnf_emb_query query;
    bool json, several; /* several: text output names the question of each answer */
} emb_asking;

#define EMB_RAW_OPTION(type)                                                                       \
    {                                                                                              \
        "raw", 0, OPT_FLAG, offsetof(type, raw), NULL, NULL,                                       \
            "Do not divide the three vectors by their lengths."                                    \
    }

/* A question, for the output. */
typedef struct emb_question {
    const tnf_str *words;
    size_t n;
    const double *vector; /* instead of words */
    size_t dims;
    const char *error; /* why there is no answer; about the word `missing`, if it is set */
    tnf_str missing;
} emb_question;

/* Room for the answers to several questions. */
typedef struct emb_results {
    tnf_emb_hit *hits; /* k for each question */
    size_t *counts;
    tnf_emb_found *found; /* for each of `words` words */
} emb_results;

/* False: no memory; emb_results_free() is needed in any case. */
bool emb_results_begin(emb_results *r, size_t questions, size_t k, size_t words);
void emb_results_free(emb_results *r);

void emb_answer(const emb_input *e, const emb_asking *a, const emb_question *q,
                const tnf_emb_hit *hits, size_t n);
void emb_json_score(json *j, const emb_input *e, double score);
/* Writes MessagePack as JSON, and other bytes as {"$bytes":…}. */
void emb_json_app(json *j, tnf_str bytes);
/* -k and --metric. */
bool emb_query(emb_asking *out, const emb_input *e, const char *k, int metric);

/* ------------------------------------------------------------------- saving */

#define EMB_SAVE_OPTIONS(type, field)                                                              \
    TO_OPTION(type, field, "the extension of OUT decides."),                                       \
        WRITER_OPTION(type, field, "out-option", 0), LOSS_OPTION(type, field),                     \
        DRY_RUN_OPTION(type, field), FORCE_OPTION(type, field, "Replace OUT if it exists."),       \
        NO_SYNC_OPTION(type, field)
/* The last entry of a table: earlier versions used -o for the reader's options. */
#define EMB_OLD_OPTION(type, field)                                                                \
    {                                                                                              \
        "option", 'o', OPT_LIST, offsetof(type, field.in.options), "KEY=VALUE", NULL, NULL         \
    }

/* Options of a command that derives a new file from one file. */
typedef struct emb_rewrite_options {
    emb_options emb;
    saving_options save;
} emb_rewrite_options;

/* A complete command that consists of one step. */
int emb_rewrite_step(tnf_emb_step step, const cli_state *cli, const void *options, char **argv);
/* A complete command that derives a new file from one file: opens argv[0] and converts it to
 * argv[1], as s->how and the options say. Returns an exit code; the caller calls saving_free(). */
int emb_rewrite(saving *s, const cli_state *cli, const emb_options *o,
                const saving_options *options, char **argv);

#endif
