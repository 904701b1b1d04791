/* SPDX-License-Identifier: MIT */
/* The description of a command, and helpers for all commands. Each cmd_*.c ends with its
 * description. */
#ifndef TENFOLD_CLI_CMD_H
#define TENFOLD_CLI_CMD_H

#include "opt.h"
#include <stdio.h>
#include <tenfold/tenfold.h>

/* Exit codes; scripts rely on them. */
enum {
    EXIT_DONE = 0,
    EXIT_DIFFERS = 1, /* files differ, or a file does not verify */
    EXIT_USAGE = 2,
    EXIT_IO = 3,      /* file system, network, memory */
    EXIT_BAD = 4,     /* bad or unsupported file */
    EXIT_LOSSY = 5,   /* refused because data would be lost */
    EXIT_UNSYNCED = 6 /* done, but it might not survive a power cut */
};

enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Options that every command takes. */
typedef struct cli_state {
    const char *command; /* its name, for messages */
    bool quiet, verbose, trace, help, version;
    int color;
    const char *threads; /* as typed, or NULL */
} cli_state;

typedef struct example {
    const char *command, *what;
} example;

/* --plan and --part of commands that can run a part of a plan. */
typedef struct part_options {
    const char *plan, *part;
    bool trust_content;
} part_options;

typedef struct command {
    const char *name, *alias; /* alias: or NULL */
    const char *args;         /* "FILE [GLOB...]" */
    const char *summary;      /* one line */
    const char *about;        /* paragraphs, separated by "\n\n" */
    const example *examples;  /* ends with a NULL command */
    const opt *table;         /* or NULL */
    size_t size;              /* of the struct that the table fills */
    int min_args, max_args;   /* max_args -1: any number */
    size_t part; /* 1 + the offset of part_options in that struct; 0: runs no parts of plans */
    int (*run)(const cli_state *cli, const void *options, int argc, char **argv);
} command;

extern const command cmd_info, cmd_ls, cmd_cat, cmd_convert, cmd_append, cmd_verify, cmd_repair,
    cmd_stat, cmd_hash, cmd_diff, cmd_merge, cmd_split, cmd_fetch, cmd_meta, cmd_vocab, cmd_vector,
    cmd_similar, cmd_analogy, cmd_accuracy, cmd_select, cmd_explicit, cmd_quantize, cmd_reconstruct,
    cmd_points, cmd_plan, cmd_finish, cmd_run, cmd_formats, cmd_help, cmd_version;

/* main.c: the tables from which help, man pages and completions are made. */
extern const command *const commands[]; /* ends with NULL */
extern const opt global_options[];
const command *find_command(const char *name);
/* Reports an unknown command and suggests the most similar one. */
int unknown_command(const char *name);

#define INPUTS_HELP                                                                                \
    "An input FILE may be a URL (http, https, s3, gs, az, hf), the directory of a model, or - "    \
    "for "                                                                                         \
    "standard input."

/* help.c */
void help_overview(FILE *to);
void help_command(FILE *to, const command *c);
/* The help of an option, with the words that it takes if the text does not name all of them. */
#define OPTION_HELP 800
const char *option_help(char out[OPTION_HELP], const opt *o);

/* man.c and complete.c: the build calls this as `tenfold --generate KIND DIR`. */
int generate_files(int argc, char **argv);
bool man_pages(const char *dir);
bool write_completions(const char *kind, const char *dir);
FILE *generated_file(const char *dir, const char *name);

/* complete_names.c: completions call this as `tenfold --complete tensors|keys FILE`. */
int complete_names(int argc, char **argv);

/* report.c: messages, each one line on stderr. */
int exit_code(tnf_status status);
/* Sets the command for messages of usage_error(). */
void usage_of(const char *name);
/* Prints "tenfold: COMMAND: …"; returns EXIT_USAGE. The text may already begin with the command. A
 * wrong value has the form "--option takes WHAT, not 'VALUE'". */
int usage_error(const char *format, ...) TNF_PRINTF(1, 2);
/* Prints "tenfold: out of memory"; returns EXIT_IO. */
int memory_error(void);
/* Is it done, though maybe not synced? Then the command reports its result; after TNF_EUNSYNCED it
 * ends with the message and the exit code of the error. */
bool was_done(tnf_status status);
/* Prints "tenfold: FILE: MESSAGE (at byte N)"; returns the exit code of the error. */
int file_error(const char *path, const tnf_error *error);
/* The same for TNF_ELOSSY: names the options of the command that help. */
int loss_error(const char *path, const tnf_error *error);
/* The same for a file that the command opens itself; `why` is an errno. */
int cannot_open(const char *path, int why);
int cannot_read(const char *path, int why);
void file_message(const char *path, const char *kind, uint64_t offset, const char *message);
/* Flushes standard output. Returns the errno of the first failure, or 0. */
int flush_out(void);
/* Notes that output was lost before it came to standard output. */
void lose_out(int why);
/* The name of a path in messages: "-" is standard input. */
const char *shown_path(const char *path);

#endif
