/* SPDX-License-Identifier: MIT */
/* Opens the inputs of a command, with the options that all reading commands share. */
#ifndef TENFOLD_CLI_INPUT_H
#define TENFOLD_CLI_INPUT_H

#include "cmd.h"
#include "opt.h"
#include <tenfold/remote.h>

typedef struct input_options {
    const char *format;
    bool lenient;
    bool salvage; /* this and the next two are set by commands */
    bool to_change;
    bool incomplete;
    int access;
    opt_list options; /* key=value for the reader */
    opt_list limits;  /* key=value */
} input_options;

/* The table entries for a command whose struct has these options as `field`. */
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
            "name_bytes, decoded_bytes or output_bytes. K, M, G and T are powers of 1024. May be " \
            "repeated."                                                                            \
    }
/* For commands whose --option belongs to the writer. */
#define IN_OPTION(type, field, whose)                                                              \
    {                                                                                              \
        "in-option", 0, OPT_LIST, offsetof(type, field.options), "KEY=VALUE", NULL,                \
            "Set an option of the reader of " whose ". May be repeated."                           \
    }
/* Accepted but undocumented spellings, for the end of a table. --in-option always belongs to the
 * reader and --out-option to the writer, whatever --option means in the command. */
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
    const char *path; /* as given; a URL without secrets */
    const char *name; /* the name in messages */
    const cli_state *cli;
    uint64_t bytes; /* of a regular file, when it was opened; else 0 */
    char *shown;    /* owns `path` and `name` of a URL, or NULL */
} input;

/* Options of a format, from "key=value" texts. Release with format_options_free(). */
typedef struct format_options {
    tnf_option *items;
    size_t n;
} format_options;

/* Returns false after reporting a text that is not KEY=VALUE. `option` is what the user gave it to.
 */
bool format_options_parse(format_options *out, const opt_list *list, const char *option);
/* Adds an option, unless the value is NULL. The value is kept as it is. */
bool format_options_add(format_options *o, const char *key, const char *value);
void format_options_free(format_options *o);

/* Is there a format of that name? If not, reports it and suggests the most similar name. */
bool known_format(const char *name, tnf_format_info *out);

/* Opens `path` ("-": standard input). input_open() reports errors and returns an exit code.
 * input_try() leaves errors to the caller, except for mistakes in the options, which set *code. */
int input_open(input *in, const cli_state *cli, const input_options *options, const char *path);
tnf_status input_try(input *in, const cli_state *cli, const input_options *options,
                     const char *path, int *code, tnf_error *error);
void input_close(input *in);
/* Returns the URL without secrets, which the caller frees; NULL if there is no memory. */
char *url_to_show(const char *url);
/* The options with which input_try() opens a file, for commands that open it in another way.
 * Returns NULL after reporting a wrong option. Sets the names of `in`, which must stay valid. */
typedef struct input_how {
    tnf_open_options open;
    tnf_url_options remote;
    format_options reader;
} input_how;
const tnf_open_options *input_how_begin(input_how *how, input *in, const cli_state *cli,
                                        const input_options *options, const char *path);
void input_how_end(input_how *how);
/* Prints a line of --trace: a network request. */
void request_trace(void *ctx, uint64_t offset, const char *line);
/* The same below lines of what was read at an offset. */
void input_trace(void *ctx, uint64_t offset, const char *line);
/* Can the path be read only once: standard input, a pipe, a device? input_stream() reads all of
 * it. */
bool input_is_stream(const char *path);
tnf_status input_stream(tnf_source **out, const char *path, tnf_access access, tnf_error *error);
/* Restores the old bytes if a change of the file was interrupted, and reports it. Returns an exit
 * code; `undone` may be NULL. */
int input_undo(const cli_state *cli, const char *path, bool *undone);

/* Does the name match one of the patterns? An empty list matches everything. */
bool glob_any(const opt_list *globs, tnf_str name);
/* Is the name selected, and not excluded? */
bool glob_chosen(const opt_list *select, const opt_list *exclude, tnf_str name);
/* Reports that the patterns of --select and --exclude leave no tensor; returns the exit code. */
int nothing_selected(const char *name, size_t nselect, size_t nexclude);
/* --select and --exclude for a command whose struct has lists of these names. */
#define CHOICE_OPTIONS(type, select_help)                                                          \
    { "select", 0, OPT_LIST, offsetof(type, select), "GLOB", NULL, select_help },                  \
    {                                                                                              \
        "exclude", 0, OPT_LIST, offsetof(type, exclude), "GLOB", NULL,                             \
            "Leave out the tensors whose name matches. May be repeated."                           \
    }

#endif
