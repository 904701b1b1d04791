/* SPDX-License-Identifier: MIT */
/* Prints help, from the same tables as the man pages. */
#include "cmd.h"
#include "out.h"
#include "table.h"
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#define WIDTH  79u
#define WIDEST 100u /* longer lines are hard to read */
#define NARROW 60u

/* The width of text, and the column where the explanation of an option begins. */
static size_t fill_width(FILE *to)
{
    size_t n = terminal_width(to == stderr ? STDERR_FILENO : STDOUT_FILENO);
    return !n ? WIDTH : n < WIDEST ? n : WIDEST;
}

static size_t help_from(FILE *to)
{
    return fill_width(to) < NARROW ? 6 : 26;
}

void put_filled(FILE *to, const char *text, size_t indent, size_t column)
{
    size_t width = fill_width(to);
    while (*text) {
        if (*text == '\n') {
            fputs("\n\n", to);
            put_spaces(to, indent);
            column = indent;
            text += strspn(text, "\n");
            continue;
        }
        size_t n = strcspn(text, " \n");
        if (column > indent && column + 1 + n > width) {
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

/* Is each word of the option in its help? */
static bool mentions_words(const opt *o)
{
    const char *word;
    size_t n;
    for (size_t i = 0; (n = opt_word(o->words, i, &word)) > 0; i++) {
        const char *at = o->help;
        while (*at && (strncmp(at, word, n) != 0 || isalnum((unsigned char)at[n]) ||
                       (at > o->help && isalnum((unsigned char)at[-1]))))
            at++;
        if (!*at)
            return false;
    }
    return true;
}

const char *option_help(char out[OPTION_HELP], const opt *o)
{
    const char *word, *next;
    size_t at, n;
    if (o->kind != OPT_CHOICE || mentions_words(o))
        return o->help;
    at = (size_t)snprintf(out, OPTION_HELP, "%s %s is ", o->help, o->arg);
    for (size_t i = 0; at < OPTION_HELP && (n = opt_word(o->words, i, &word)) > 0; i++) {
        const char *before = i == 0 ? "" : opt_word(o->words, i + 1, &next) > 0 ? ", " : " or ";
        at += (size_t)snprintf(out + at, OPTION_HELP - at, "%s%.*s", before, (int)n, word);
    }
    if (at < OPTION_HELP)
        snprintf(out + at, OPTION_HELP - at, ".");
    return out;
}

static void help_option(FILE *to, const opt *o)
{
    char text[OPTION_HELP];
    char left[80], letter[8] = "    ";
    size_t from = help_from(to);
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    int n = snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, o->name,
                     o->kind == OPT_FLAG    ? ""
                     : o->kind == OPT_MAYBE ? "[="
                                            : "=",
                     o->arg ? o->arg : "", o->kind == OPT_MAYBE ? "]" : "");
    size_t column = (size_t)n;
    fputs(left, to);
    if (column + 2 > from) {
        putc('\n', to);
        column = 0;
    }
    put_spaces(to, from - column);
    put_filled(to, option_help(text, o), from, from);
}

static void help_options(FILE *to, const char *title, const opt *table)
{
    fprintf(to, "\n%s:\n", title);
    for (const opt *o = table; o->name && o->help; o++)
        help_option(to, o);
}

/* The end of a word of a command line: blanks in quotes do not end it. */
static size_t word_length(const char *p)
{
    size_t n = 0;
    for (char quote = 0; p[n] && (quote || p[n] != ' '); n++) {
        if (quote ? p[n] == quote : p[n] == '\'' || p[n] == '"')
            quote = quote ? 0 : p[n];
    }
    return n;
}

/* Prints a command that can be copied from the screen, even if it takes several lines. */
static void put_example(FILE *to, const char *text)
{
    size_t width = fill_width(to), column = 2;
    fputs("  ", to);
    for (const char *p = text; *p; p += *p == ' ') {
        size_t n = word_length(p);
        if (p > text && column + 1 + n + (p[n] ? 2 : 0) > width) {
            fputs(" \\\n     ", to);
            column = 5;
        }
        if (p > text)
            putc(' ', to);
        fwrite(p, 1, n, to);
        column += n + (p > text);
        p += n;
    }
    putc('\n', to);
}

void help_command(FILE *to, const command *c)
{
    char usage[300];
    snprintf(usage, sizeof usage, "tenfold %s: %s", c->name, c->summary);
    put_filled(to, usage, 0, 0);
    putc('\n', to);
    snprintf(usage, sizeof usage, "usage: tenfold %s [OPTIONS]%s%s", c->name, *c->args ? " " : "",
             c->args);
    put_filled(to, usage, 0, 0);
    if (c->alias)
        fprintf(to, "       tenfold %s is the same\n", c->alias);
    putc('\n', to);
    put_filled(to, c->about, 0, 0);
    if (c->table)
        help_options(to, "options", c->table);
    help_options(to, "options of every command", global_options);
    if (c->examples && c->examples->command) {
        fputs("\nexamples:\n", to);
        for (const example *x = c->examples; x->command; x++) {
            put_example(to, x->command);
            put_spaces(to, 6);
            put_filled(to, x->what, 6, 6);
        }
    }
}

void help_overview(FILE *to)
{
    put_filled(to, "usage: tenfold COMMAND [OPTIONS] FILE...", 0, 0);
    putc('\n', to);
    put_filled(to, "Reads, writes, converts and verifies tensor, checkpoint and embedding files.",
               0, 0);
    putc('\n', to);
    put_filled(to, INPUTS_HELP, 0, 0);
    fputs("\ncommands:\n", to);
    for (const command *const *c = commands; *c; c++) {
        fprintf(to, "  %-11s ", (*c)->name);
        put_filled(to, (*c)->summary, 14, 14);
    }
    help_options(to, "options of every command", global_options);
    putc('\n', to);
    put_filled(to, "'tenfold help COMMAND' explains a command.", 0, 0);
}

static int run_help(const cli_state *cli, const void *options, int argc, char **argv)
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
    .run = run_help,
};
