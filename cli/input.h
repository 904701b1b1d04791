/* SPDX-License-Identifier: MIT */
/* Opening what a command reads, by the options that all reading commands share. */
#ifndef TENFOLD_CLI_INPUT_H
#define TENFOLD_CLI_INPUT_H

#include "cmd.h"
#include "opt.h"
#include <tenfold/remote.h>

typedef struct input_options {
    const char *format;
    bool lenient;
    bool salvage; /* set by commands, as the next two */
    bool to_change;
    bool incomplete;
    int access;
    opt_list options; /* key=value for the reader */
    opt_list limits;  /* key=value */
} input_options;

/* Their lines in the table of a command whose struct has them as `field`. */
#define INPUT_OPTIONS(type, field)                                                                 \
    { "format",                                                                                    \
      'f',                                                                                         \
      OPT_TEXT,                                                                                    \
      offsetof(type, field.format),                                                                \
      "FORMAT",                                                                                    \
      "@formats",                                                                                  \
      "Read the input as this format instead of detecting it." },                                  \
        { "lenient",                                                                               \
          0,                                                                                       \
          OPT_FLAG,                                                                                \
          offsetof(type, field.lenient),                                                           \
          NULL,                                                                                    \
          NULL,                                                                                    \
          "Warn instead of refusing if a file breaks a rule that its format's usual readers do "   \
          "not check." },                                                                          \
        { "access",                                                                                \
          0,                                                                                       \
          OPT_CHOICE,                                                                              \
          offsetof(type, field.access),                                                            \
          "HOW",                                                                                   \
          "auto|mmap|pread",                                                                       \
          "How the file is read: mmap, pread, or as its file system allows (auto)." },             \
    {                                                                                              \
        "limit", 0, OPT_LIST, offsetof(type, field.limits), "KEY=VALUE", NULL,                     \
            "Set a limit for hostile files: header_bytes, memory, objects, rank, depth, "          \
            "name_bytes, "                                                                         \
            "decoded_bytes or output_bytes. K, M, G and T are powers of 1024. May be repeated."    \
    }
/* For commands whose --option is the writer's. */
#define IN_OPTION(type, field, whose)                                                              \
    {                                                                                              \
        "in-option", 0, OPT_LIST, offsetof(type, field.options), "KEY=VALUE", NULL,                \
            "Set an option of the reader of " whose ". May be repeated."                           \
    }
/* Spellings that are taken, too, but not told of; at the end of a table. One name means the reader
 * and one the writer in every command, whichever of them --option is there. */
#define ALSO_IN_OPTION(type, field)                                                                \
    {                                                                                              \
        "in-option", 0, OPT_LIST, offsetof(type, field.options), "KEY=VALUE", NULL, NULL           \
    }
#define READER_OPTION(type, field)                                                                 \
    {                                                                                              \
        "option", 'o', OPT_LIST, offsetof(type, field.options), "KEY=VALUE", NULL,                 \
            "Set an option of the format's reader ('tenfold formats NAME' lists them). May be "    \
            "repeated."                                                                            \
    }

/* An open file and what belongs to it. */
typedef struct input {
    tnf_file *file;
    const tnf_info *info;
    const char *path; /* as given; of a URL without what may be secret */
    const char *name; /* as messages call it */
    const cli_state *cli;
    uint64_t bytes; /* of a file, when it was opened; 0 if it is none */
    char *shown;    /* the memory of both for a URL, or NULL */
} input;

/* Options of a format, from "key=value" texts. Release with format_options_free(). */
typedef struct format_options {
    tnf_option *items;
    size_t n;
} format_options;

/* False after saying which one is not KEY=VALUE. */
bool format_options_parse(format_options *out, const opt_list *list);
/* One more, unless the value is NULL. The value is kept as it is. */
bool format_options_add(format_options *o, const char *key, const char *value);
void format_options_free(format_options *o);

/* Is there a format of that name? Else says so, with the nearest. */
bool known_format(const char *name, tnf_format_info *out);

/* Opens `path` ("-": standard input). The first says what is wrong and gives an exit code; the
 * second leaves the error to the caller, except for mistakes in the options: then *code is set. */
int input_open(input *in, const cli_state *cli, const input_options *options, const char *path);
tnf_status input_try(input *in, const cli_state *cli, const input_options *options,
                     const char *path, int *code, tnf_error *error);
void input_close(input *in);
/* A URL without what may be secret, to be freed; NULL without memory. */
char *url_to_show(const char *url);
/* What input_try() opens it with, for who opens it by other means: NULL after saying which option
 * is wrong. `in` gets its names, and must stay. */
typedef struct input_how {
    tnf_open_options open;
    tnf_url_options remote;
    format_options reader;
} input_how;
const tnf_open_options *input_how_begin(input_how *how, input *in, const cli_state *cli,
                                        const input_options *options, const char *path);
void input_how_end(input_how *how);
/* A line of --trace: what was read at this offset, or asked over the network. */
void input_trace(void *ctx, uint64_t offset, const char *line);
/* Can it be read only once: standard input, a pipe, a device? Then this reads all of it. */
bool input_is_stream(const char *path);
tnf_status input_stream(tnf_source **out, const char *path, tnf_access access, tnf_error *error);
/* Puts back what was there if a change of the file was interrupted, and says so. Gives an exit
 * code; *undone may be NULL. */
int input_undo(const cli_state *cli, const char *path, bool *undone);

/* Does the name match one of the patterns? An empty list takes everything. */
bool glob_any(const opt_list *globs, tnf_str name);
/* Is it selected, and not excluded? */
bool glob_chosen(const opt_list *select, const opt_list *exclude, tnf_str name);
/* Says that so many patterns leave nothing of that file; gives the exit code. */
int nothing_selected(const char *name, size_t nselect, size_t nexclude);
/* --select and --exclude for a command whose struct has lists of these names. */
#define CHOICE_OPTIONS(type, select_help)                                                          \
    { "select", 0, OPT_LIST, offsetof(type, select), "GLOB", NULL, select_help },                  \
    {                                                                                              \
        "exclude", 0, OPT_LIST, offsetof(type, exclude), "GLOB", NULL,                             \
            "Leave out the tensors whose name matches. May be repeated."                           \
    }

#endif
