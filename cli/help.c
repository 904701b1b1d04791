/* SPDX-License-Identifier: MIT */
/* Help, from the same tables as the man pages. */
#include "cmd.h"
#include "out.h"
#include <string.h>

#define WIDTH     79u
#define HELP_FROM 26u

void put_filled(FILE *to, const char *text, size_t indent, size_t column)
{
    while (*text) {
        if (*text == '\n') {
            fputs("\n\n", to);
            put_spaces(to, indent);
            column = indent;
            text += strspn(text, "\n");
            continue;
        }
        size_t n = strcspn(text, " \n");
        if (column > indent && column + 1 + n > WIDTH) {
            putc('\n', to);
            put_spaces(to, indent);
            column = indent;
        } else if (column > indent) {
            putc(' ', to);
            column++;
        }
        fwrite(text, 1, n, to);
        column += n;
        text += n;
        text += *text == ' ';
    }
    putc('\n', to);
}

static void help_option(FILE *to, const opt *o)
{
    char left[80], letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    int n = snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, o->name,
                     o->kind == OPT_FLAG    ? ""
                     : o->kind == OPT_MAYBE ? "[="
                                            : "=",
                     o->arg ? o->arg : "", o->kind == OPT_MAYBE ? "]" : "");
    size_t column = (size_t)n;
    fputs(left, to);
    if (column + 2 > HELP_FROM) {
        putc('\n', to);
        column = 0;
    }
    put_spaces(to, HELP_FROM - column);
    put_filled(to, o->help, HELP_FROM, HELP_FROM);
}

static void help_options(FILE *to, const char *title, const opt *table)
{
    fprintf(to, "\n%s:\n", title);
    for (const opt *o = table; o->name; o++)
        help_option(to, o);
}

void help_command(FILE *to, const command *c)
{
    fprintf(to, "tenfold %s: %s\n\n", c->name, c->summary);
    fprintf(to, "usage: tenfold %s [OPTIONS]%s%s\n", c->name, *c->args ? " " : "", c->args);
    if (c->alias)
        fprintf(to, "       tenfold %s is the same\n", c->alias);
    putc('\n', to);
    put_filled(to, c->about, 0, 0);
    if (c->table)
        help_options(to, "options", c->table);
    help_options(to, "options of every command", global_options);
    if (c->examples && c->examples->command) {
        fputs("\nexamples:\n", to);
        for (const example *x = c->examples; x->command; x++)
            fprintf(to, "  %s\n      %s\n", x->command, x->what);
    }
}

void help_overview(FILE *to)
{
    fputs("usage: tenfold COMMAND [OPTIONS] FILE...\n\n"
          "Reads, writes, converts and verifies tensor, checkpoint and embedding files.\n\n"
          "commands:\n",
          to);
    for (const command *const *c = commands; *c; c++)
        fprintf(to, "  %-11s %s\n", (*c)->name, (*c)->summary);
    help_options(to, "options of every command", global_options);
    fputs("\n'tenfold help COMMAND' explains a command.\n", to);
}

static int run(const cli_state *cli, const void *options, int argc, char **argv)
{
    (void)cli;
    (void)options;
    if (argc == 0) {
        help_overview(stdout);
        return EXIT_DONE;
    }
    const command *c = find_command(argv[0]);
    if (!c)
        return unknown_command(argv[0]);
    help_command(stdout, c);
    return EXIT_DONE;
}

static const example examples[] = {
    { "tenfold help convert", "what convert does, and its options" }, { 0 }
};

const command cmd_help = {
    .name = "help",
    .args = "[COMMAND]",
    .summary = "explain a command",
    .about = "Lists the commands, or explains one of them: what it does, its options, examples.",
    .examples = examples,
    .max_args = 1,
    .run = run,
};
