/* SPDX-License-Identifier: MIT */
/* What the commands on embeddings share. */
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

/* Their lines in the table of a command whose struct has them as `field`. */
#define EMB_OPTIONS(type, field) EMB_INPUT_OPTIONS(type, field), READER_OPTION(type, field.in)
#define EMB_INPUT_OPTIONS(type, field)                                                             \
    { "embeddings",                                                                                \
      0,                                                                                           \
      OPT_TEXT,                                                                                    \
      offsetof(type, field.embeddings),                                                            \
      "NAME",                                                                                      \
      NULL,                                                                                        \
      "The name of the tensor of vectors, if it is not 'embeddings' or 'points'." },               \
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

/* Says what is wrong and gives an exit code. */
int emb_open(emb_input *e, const cli_state *cli, const emb_options *options, const char *path);
void emb_close(emb_input *e);
/* A whole number from `least` on; `otherwise` if the text is NULL. */
bool emb_number(uint64_t *out, const char *text, const char *option, uint64_t least,
                uint64_t otherwise);

/* ---------------------------------------------------------------- questions */

/* Lines of standard input or of a file, in batches. A batch is all that can be read at this
 * moment: a person who types gets an answer at once, and a long list is answered together. */
typedef struct emb_lines {
    int fd;
    bool prompt; /* a person types at a terminal */
    char *buffer;
    size_t n, room, used;
    bool ended;
    tnf_str *lines;
    size_t nlines, lines_room;
} emb_lines;

/* path NULL or "-": standard input. */
bool emb_lines_open(emb_lines *l, const char *path);
/* The next batch in l->lines, trimmed, without empty ones; false at the end, or after saying what
 * went wrong: then l->fd is -1. */
bool emb_lines_next(emb_lines *l);
void emb_lines_close(emb_lines *l);
/* Answers a batch of lines; false: stop. */
typedef bool (*emb_batch_fn)(void *ctx, const emb_lines *batch);
/* Asks all of standard input, batch by batch. *several: answers name their questions, since no
 * person is prompted. *code becomes EXIT_IO if reading failed. */
void emb_ask_lines(emb_batch_fn ask, void *ctx, bool *several, int *code);
/* The words of a line: between TABs if there are any in it, else between white space. Gives how
 * many there are, of which `most` are put out. */
size_t emb_tokens(tnf_str line, tnf_str *out, size_t most);

/* ------------------------------------------------------------------ answers */

typedef struct emb_asking {
    tnf_emb_query query;
    bool json, several; /* several: text says which question an answer is to */
} emb_asking;

#define EMB_RAW_OPTION(type)                                                                       \
    {                                                                                              \
        "raw", 0, OPT_FLAG, offsetof(type, raw), NULL, NULL,                                       \
            "Do not divide the three vectors by their lengths."                                    \
    }

/* What was asked, for the answers to name. */
typedef struct emb_question {
    const tnf_str *words;
    size_t n;
    const double *vector; /* instead of words */
    size_t dims;
    const char *error; /* no answer, for this reason; of the word `missing`, if that has one */
    tnf_str missing;
} emb_question;

void emb_answer(const emb_input *e, const emb_asking *a, const emb_question *q,
                const tnf_emb_hit *hits, size_t n);
void emb_json_score(json *j, const emb_input *e, double score);
/* MessagePack as JSON; bytes that are not MessagePack as {"$bytes":…}. */
void emb_json_app(json *j, tnf_str bytes);
/* -k and --metric. */
bool emb_query(emb_asking *out, const emb_input *e, const char *k, int metric);

/* ------------------------------------------------------------------- saving */

#define EMB_SAVE_OPTIONS(type, field)                                                              \
    TO_OPTION(type, field, "the extension of OUT decides."),                                       \
        WRITER_OPTION(type, field, "out-option", 0), LOSS_OPTION(type, field),                     \
        DRY_RUN_OPTION(type, field), FORCE_OPTION(type, field, "Replace OUT if it exists."),       \
        NO_SYNC_OPTION(type, field)
/* The last of a table: once, -o was the reader's. */
#define EMB_OLD_OPTION(type, field)                                                                \
    {                                                                                              \
        "option", 'o', OPT_LIST, offsetof(type, field.in.options), "KEY=VALUE", NULL, NULL         \
    }

/* Options of a command that makes a new file of one. */
typedef struct emb_rewrite_options {
    emb_options emb;
    saving_options save;
} emb_rewrite_options;

/* All of a command whose only step is this one. */
int emb_rewrite_step(tnf_emb_step step, const cli_state *cli, const void *options, char **argv);
/* All of a command that makes a new file of one: opens argv[0], converts it as s->how says, with
 * these options, to argv[1]. Gives an exit code; saving_free() afterwards. */
int emb_rewrite(saving *s, const cli_state *cli, const emb_options *o,
                const saving_options *options, char **argv);

#endif
