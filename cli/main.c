/* SPDX-License-Identifier: MIT */
/* tenfold: the table of commands, their common options, and main(). */
#include "cmd.h"
#include "jobs.h"
#include "out.h"
#include "stop.h"
#include "suggest.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST_FILES 10240 /* more than a model has; some systems allow no more */

const command *const commands[] = {
    &cmd_info,     &cmd_ls,     &cmd_cat,      &cmd_convert,  &cmd_append,      &cmd_verify,
    &cmd_repair,   &cmd_stat,   &cmd_hash,     &cmd_diff,     &cmd_merge,       &cmd_split,
    &cmd_fetch,    &cmd_meta,   &cmd_vocab,    &cmd_vector,   &cmd_similar,     &cmd_analogy,
    &cmd_accuracy, &cmd_select, &cmd_explicit, &cmd_quantize, &cmd_reconstruct,
#ifdef TENFOLD_POINTS
    &cmd_points,
#endif
    &cmd_plan,     &cmd_finish, &cmd_run,      &cmd_formats,  &cmd_help,        &cmd_version,
    NULL,
};

const opt global_options[] = {
    { "quiet", 'q', OPT_FLAG, offsetof(cli_state, quiet), NULL, NULL,
      "Print errors only: no progress, no notes." },
    { "verbose", 'v', OPT_FLAG, offsetof(cli_state, verbose), NULL, NULL,
      "Print more: warnings about input that is unusual but legal." },
    { "trace", 0, OPT_FLAG, offsetof(cli_state, trace), NULL, NULL,
      "Print the steps of the reader, with byte offsets, to stderr." },
    { "color", 0, OPT_CHOICE, offsetof(cli_state, color), "WHEN", "auto|always|never",
      "Colour the output on a terminal (auto), always or never. With auto, the variable NO_COLOR "
      "turns colours off." },
    { "threads", 0, OPT_TEXT, offsetof(cli_state, threads), "N", NULL,
      "Use at most N threads [TENFOLD_THREADS, else one per core]. The result does not depend on "
      "N." },
    { "help", 'h', OPT_FLAG, offsetof(cli_state, help), NULL, NULL, "Explain the command." },
    { "version", 'V', OPT_FLAG, offsetof(cli_state, version), NULL, NULL, "Print the version." },
    { 0 },
};

const command *find_command(const char *name)
{
    for (const command *const *c = commands; *c; c++)
        if (!strcmp((*c)->name, name) || ((*c)->alias && !strcmp((*c)->alias, name)))
            return *c;
    return NULL;
}

int unknown_command(const char *name)
{
    suggestion best;
    suggest_begin(&best, name, strlen(name));
    for (const command *const *c = commands; *c; c++) {
        suggest_offer(&best, (*c)->name, strlen((*c)->name));
        if ((*c)->alias)
            suggest_offer(&best, (*c)->alias, strlen((*c)->alias));
    }
    if (best.n > 0)
        return usage_error("unknown command '%s'; did you mean '%s'?", name, best.near[0].p);
    return usage_error("unknown command '%s'; 'tenfold help' lists them", name);
}

static int run_version(const cli_state *cli, const void *options, int argc, char **argv)
{
    (void)cli;
    (void)options;
    (void)argc;
    (void)argv;
    printf("tenfold %s\n", tnf_version());
    return EXIT_DONE;
}

const command cmd_version = {
    .name = "version",
    .args = "",
    .summary = "print the version",
    .about = "Prints the version of the library.",
    .run = run_version,
};

/* Whether a text is a number of threads; the library starts at most 256. */
static bool valid_threads(const char *text)
{
    unsigned n;
    return opt_count(&n, text) && n <= 256;
}

/* Limits the threads of the library, which reads TENFOLD_THREADS. --threads overrides it. */
static bool limit_threads(const cli_state *cli)
{
    const char *said = getenv("TENFOLD_THREADS");
    if (cli->threads && !valid_threads(cli->threads))
        return usage_error("--threads takes a number from 1 to 256, not '%s'", cli->threads), false;
    if (!cli->threads && said && *said && !valid_threads(said))
        return usage_error("TENFOLD_THREADS must be a number from 1 to 256, not '%s'", said), false;
    if (cli->threads && setenv("TENFOLD_THREADS", cli->threads, 1) != 0)
        exit(memory_error());
    return true;
}

static int check_and_run(const cli_state *cli, const command *c, const void *options, int n,
                         char **args)
{
    if (cli->help) {
        help_command(stdout, c);
        return EXIT_DONE;
    }
    if (cli->version)
        return cmd_version.run(cli, NULL, 0, NULL);
    if (!limit_threads(cli))
        return EXIT_USAGE;
    if (c->part) {
        const void *at = (const char *)options + c->part - 1;
        const part_options *part = at;
        if (part->plan || part->part || part->trust_content)
            return part_run(cli, c->name, part, n);
    }
    if (n < c->min_args)
        return usage_error("%s: too few arguments; usage: tenfold %s [OPTIONS] %s", c->name,
                           c->name, c->args);
    if (c->max_args >= 0 && n > c->max_args)
        return usage_error("%s: unexpected argument '%s'; usage: tenfold %s [OPTIONS] %s", c->name,
                           args[c->max_args], c->name, c->args);
    return c->run(cli, options, n, args);
}

static int run_command(cli_state *cli, const command *c, int argc, char **argv)
{
    void *options = calloc(1, c->size + 1);
    if (!options)
        return memory_error();
    opt_set sets[] = { { c->table, options }, { global_options, cli } };
    int n, code = EXIT_USAGE;
    cli->command = c->name;
    usage_of(c->name);
    if (opt_parse(sets, 2, argc, argv, false, &n))
        code = check_and_run(cli, c, options, n, argv);
    opt_release(&sets[0]);
    free(options);
    return code;
}

static int run_line(int argc, char **argv)
{
    cli_state cli = { 0 };
    opt_set set = { global_options, &cli };
    int n;
    if (argc > 0 && !strcmp(argv[0], "--generate"))
        return generate_files(argc - 1, argv + 1);
    if (argc > 0 && !strcmp(argv[0], "--complete"))
        return complete_names(argc - 1, argv + 1);
    if (!opt_parse(&set, 1, argc, argv, true, &n))
        return EXIT_USAGE;
    if (n == 0 && cli.version)
        return cmd_version.run(&cli, NULL, 0, NULL);
    if (n == 0) {
        help_overview(cli.help ? stdout : stderr);
        return cli.help ? EXIT_DONE : EXIT_USAGE;
    }
    const command *c = find_command(argv[0]);
    return c ? run_command(&cli, c, n - 1, argv + 1) : unknown_command(argv[0]);
}

/* If output could not be written, the command fails even if the rest succeeded. */
static int flush_output(int code)
{
    int why = flush_out();
    if (!why && !ferror(stdout))
        return code;
    fprintf(stderr, "tenfold: standard output: %s\n", why ? strerror(why) : "write error");
    return code == EXIT_DONE || code == EXIT_DIFFERS ? EXIT_IO : code;
}

/* A model keeps one descriptor open per shard, but some systems allow only 256 by default. */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= MOST_FILES)
        return;
    files.rlim_cur = files.rlim_max < MOST_FILES ? files.rlim_max : MOST_FILES;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

/* If the caller closed a standard stream, a file must not get its descriptor, since output would be
 * written to that file. /dev/null takes its place, opened in the wrong direction, so that using it
 * is still an error. */
static bool hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    static char buffer[1 << 16];
    if (!hold_standard_streams())
        return EXIT_IO;
    allow_files();
    (void)signal(SIGXFSZ, SIG_IGN); /* a file size limit gives an error, like a full disk */
    stop_on_cut_files();
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    setvbuf(stderr, NULL, _IOLBF, 0);
    return flush_output(run_line(argc > 0 ? argc - 1 : 0, argv + 1));
}
