/* SPDX-License-Identifier: MIT */
/* Generates man pages from the option tables: tenfold.1 and tenfold-COMMAND.1, in man(7) macros. */
#include "out.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>

#define MAN_DATE "2026-11-18" /* of the last change of the text */

static const struct {
    const char *code, *meaning;
} exits[] = {
    { "0", "Done." },
    { "1", "Something differs, or a check failed." },
    { "2", "The command line is wrong." },
    { "3", "A file could not be read or written, the network failed, or memory was short." },
    { "4", "A file is damaged or not supported." },
    { "5", "Refused, because data would be lost." },
    { "6", "Done, but a power cut may undo it." },
};

FILE *generated_file(const char *dir, const char *name)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "w") : NULL;
    if (!f)
        fprintf(stderr, "tenfold: %s/%s: %s\n", dir, name, strerror(errno));
    return f;
}

/* Escapes text for roff: an input line that begins with a dot or a quote would be a request. */
static void put_roff(FILE *to, const char *text)
{
    bool first = true;
    for (; *text; text++) {
        if (first && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        first = *text == '\n';
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\'')
            fputs("\\(aq", to);
        else
            putc(*text, to);
    }
}

/* The end of the first sentence, or NULL. "..." does not end a sentence. */
static const char *sentence_end(const char *text)
{
    const char *stop = strstr(text, ". ");
    while (stop && stop > text && stop[-1] == '.')
        stop = strstr(stop + 1, ". ");
    return stop;
}

/* Writes paragraphs, about one sentence per line. */
static void put_paragraphs(FILE *to, const char *text)
{
    while (*text) {
        char line[1024];
        const char *end = strstr(text, "\n\n");
        const char *stop = sentence_end(text);
        size_t n = end ? (size_t)(end - text) : strlen(text);
        if (stop && (size_t)(stop - text) < n)
            n = (size_t)(stop - text) + 1;
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        put_roff(to, line);
        putc('\n', to);
        text += n;
        if (!strncmp(text, "\n\n", 2))
            fputs(".PP\n", to);
        text += strspn(text, " \n");
    }
}

/* Writes words such as FILE and GLOB in italics. */
static void put_arguments(FILE *to, const char *args)
{
    bool italic = false;
    for (; *args; args++) {
        bool upper = isupper((unsigned char)*args) || (italic && *args == '_');
        if (upper != italic)
            fputs(upper ? "\\fI" : "\\fR", to);
        italic = upper;
        putc(*args, to);
    }
    if (italic)
        fputs("\\fR", to);
}

static void put_option(FILE *to, const opt *o)
{
    char text[OPTION_HELP];
    fputs(".TP\n", to);
    if (o->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", to);
    put_roff(to, o->name);
    fputs("\\fR", to);
    if (o->kind != OPT_FLAG) {
        fputs(o->kind == OPT_MAYBE ? "[=" : "=", to);
        put_arguments(to, o->arg);
        fputs(o->kind == OPT_MAYBE ? "]" : "", to);
    }
    putc('\n', to);
    put_roff(to, option_help(text, o));
    putc('\n', to);
}

static void put_options(FILE *to, const char *title, const opt *table)
{
    fprintf(to, ".SH %s\n", title);
    for (const opt *o = table; o->name && o->help; o++)
        put_option(to, o);
}

static void put_head(FILE *to, const char *title, const char *name, const char *summary)
{
    fprintf(to, ".TH %s 1 \"%s\" \"tenfold %s\" \"Tenfold manual\"\n.SH NAME\n", title, MAN_DATE,
            tnf_version());
    put_roff(to, name);
    fputs(" \\- ", to);
    put_roff(to, summary);
    fputs("\n.SH SYNOPSIS\n", to);
}

static void exit_status(FILE *to)
{
    fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++)
        fprintf(to, ".TP\n.B %s\n%s\n", exits[i].code, exits[i].meaning);
}

static void page_examples(FILE *to, const example *x)
{
    if (!x || !x->command)
        return;
    fputs(".SH EXAMPLES\n", to);
    for (; x->command; x++) {
        fputs(".TP\n\\fB", to);
        put_roff(to, x->command);
        fputs("\\fR\n", to);
        put_roff(to, x->what);
        putc('\n', to);
    }
}

static bool command_page(const char *dir, const command *c)
{
    char file[64], title[64], name[64];
    snprintf(file, sizeof file, "tenfold-%s.1", c->name);
    snprintf(name, sizeof name, "tenfold-%s", c->name);
    snprintf(title, sizeof title, "TENFOLD\\-%s", c->name);
    for (char *p = title; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    FILE *to = generated_file(dir, file);
    if (!to)
        return false;
    put_head(to, title, name, c->summary);
    fprintf(to, "\\fBtenfold %s\\fR [\\fIOPTIONS\\fR] ", c->name);
    put_arguments(to, c->args);
    fputs("\n.SH DESCRIPTION\n", to);
    put_paragraphs(to, c->about);
    if (c->alias)
        fprintf(to, ".PP\n\\fBtenfold %s\\fR is the same.\n", c->alias);
    if (c->table)
        put_options(to, "OPTIONS", c->table);
    put_options(to, "OPTIONS OF EVERY COMMAND", global_options);
    exit_status(to);
    page_examples(to, c->examples);
    fputs(".SH SEE ALSO\n.BR tenfold (1)\n", to);
    return fclose(to) == 0;
}

static void put_environment(FILE *to)
{
    static const struct {
        const char *name, *meaning;
    } all[] = {
        { "COLUMNS", "The width of the terminal, instead of its own." },
        { "NO_COLOR", "If set and not empty, output is not coloured unless --color=always is "
                      "given." },
        { "TENFOLD_CUDA", "The library of the GPU's driver [libcuda.so.1]." },
        { "TENFOLD_THREADS", "The largest number of threads, 1 to 256, as with --threads; without "
                             "both, one for each core." },
        { "TMPDIR", "The directory for what is unpacked or comes from a pipe [/tmp]." },
        { "TENFOLD_HTTP_HEADER_FILE, TENFOLD_INSECURE_TLS, NETRC, AWS_*, AZURE_*, HF_*, "
          "STORAGE_EMULATOR_HOST, CURL_CA_BUNDLE, SSL_CERT_FILE",
          "Access to the network; docs/remote.md of the documentation explains them." },
    };
    fputs(".SH ENVIRONMENT\n", to);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fputs(".TP\n.B ", to);
        put_roff(to, all[i].name);
        putc('\n', to);
        put_roff(to, all[i].meaning);
        putc('\n', to);
    }
}

static bool main_page(const char *dir)
{
    FILE *to = generated_file(dir, "tenfold.1");
    if (!to)
        return false;
    put_head(to, "TENFOLD", "tenfold",
             "read, write, convert and verify tensor, checkpoint and embedding files");
    fputs("\\fBtenfold\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] \\fIFILE\\fR...\n.SH DESCRIPTION\n",
          to);
    put_paragraphs(
        to, "tenfold lists the tensors of files, prints their values, converts files to "
            "other formats and checks them. Formats are detected by "
            "content. " INPUTS_HELP " As an output, - is standard output.\n\nData goes to standard "
            "output; messages, warnings and progress to standard error. Files are replaced "
            "only with --force, and appear under their name only when they are complete.");
    fputs(".SH COMMANDS\n", to);
    for (const command *const *c = commands; *c; c++) {
        fprintf(to, ".TP\n.BR tenfold\\-%s (1)\n", (*c)->name);
        put_roff(to, (*c)->summary);
        putc('\n', to);
    }
    put_options(to, "OPTIONS OF EVERY COMMAND", global_options);
    exit_status(to);
    put_environment(to);
    fputs(".SH SEE ALSO\n", to);
    for (const command *const *c = commands; *c; c++)
        fprintf(to, ".BR tenfold\\-%s (1)%s\n", (*c)->name, c[1] ? "," : "");
    return fclose(to) == 0;
}

bool man_pages(const char *dir)
{
    bool ok = main_page(dir);
    for (const command *const *c = commands; *c; c++)
        ok = command_page(dir, *c) && ok;
    return ok;
}

int generate_files(int argc, char **argv)
{
    if (argc != 2 || opt_position("man|bash|zsh|fish", argv[0], strlen(argv[0])) < 0)
        return usage_error("--generate takes man, bash, zsh or fish, and a directory");
    bool ok = !strcmp(argv[0], "man") ? man_pages(argv[1]) : write_completions(argv[0], argv[1]);
    return ok ? EXIT_DONE : EXIT_IO;
}
