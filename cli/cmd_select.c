/* SPDX-License-Identifier: MIT */
/* tenfold select: writes some words of a file, with their vectors, to a new file. */
#include "emb.h"
#include "grow.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    emb_options emb;
    saving_options save;
    bool ignore;
} options;

/* The selected words. They are copied, since the buffer of lines is reused. */
typedef struct chosen {
    tnf_str *words;
    size_t n, room;
} chosen;

static bool add_word(chosen *c, tnf_str word)
{
    tnf_str *more = grow_array(c->words, c->n, &c->room, sizeof *more, 256);
    if (!more)
        return false;
    c->words = more;
    char *copy = malloc(word.n + 1);
    if (!copy)
        return false;
    memcpy(copy, word.p, word.n);
    c->words[c->n++] = (tnf_str) { copy, word.n };
    return true;
}

static int read_words(chosen *c, const char *path)
{
    emb_lines lines;
    int code = EXIT_DONE;
    if (!emb_lines_open(&lines, path))
        return EXIT_IO;
    while (code == EXIT_DONE && emb_lines_next(&lines))
        for (size_t i = 0; code == EXIT_DONE && i < lines.nlines; i++)
            if (!add_word(c, lines.lines[i]))
                code = memory_error();
    if (lines.fd < 0)
        code = EXIT_IO;
    emb_lines_close(&lines);
    return code;
}

static void note_unknown(const cli_state *cli, const char *path, size_t n)
{
    char text[80];
    if (n == 0 || cli->quiet)
        return;
    snprintf(text, sizeof text,
             n == 1 ? "%zu word has no vector and was left out"
                    : "%zu words have no vector and were left out",
             n);
    file_message(path, "", TNF_NO_OFFSET, text);
}

static int run_select(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    chosen c = { 0 };
    saving s = { .how.step = TNF_EMB_SELECT };
    int code = read_words(&c, argc > 2 ? argv[2] : NULL);
    s.how.words = c.words;
    s.how.nwords = c.n;
    s.how.skip_unknown = o->ignore;
    if (code == EXIT_DONE)
        code = emb_rewrite(&s, cli, &o->emb, &o->save, argv);
    if (code == EXIT_DONE)
        note_unknown(cli, argv[0], s.report->unknown_words);
    saving_free(&s);
    for (size_t i = 0; i < c.n; i++)
        free((void *)(uintptr_t)c.words[i].p);
    free(c.words);
    return code;
}

static const opt table[] = {
    { "ignore-unknown", 'i', OPT_FLAG, offsetof(options, ignore), NULL, NULL,
      "Skip words without a vector instead of stopping." },
    EMB_SAVE_OPTIONS(options, save),
    PLAN_JSON_OPTION(options, save),
    AS_IS_OPTION(options, save),
    EMB_INPUT_OPTIONS(options, emb),
    IN_OPTION(options, emb.in, "IN"),
    EMB_OLD_OPTION(options, emb),
    { 0 },
};

static const example examples[] = {
    { "tenfold select vectors.fifu few.fifu words.txt", "the words of a list, in its order" },
    { "tenfold vocab a.fifu | tenfold select -i b.fifu both.fifu",
      "the words that two vocabularies share" },
    { 0 },
};

const command cmd_select = {
    .name = "select",
    .args = "FILE OUT [WORDS]",
    .summary = "write some words with their vectors",
    .about =
        "Writes the words listed in WORDS, or on standard input, with their vectors to OUT. There "
        "is one word on each line. The result is dense, has no subwords, and keeps the order of "
        "the list; a repeated word is written once. If FILE has norms, they are written, too. A "
        "word that is not in the vocabulary gets the vector of its subwords, and the norm of their "
        "sum. Metadata of FILE is not kept, because it describes the whole file.\n\nThe first word "
        "without a vector ends the command with exit code 1, unless -i is given.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 3,
    .run = run_select,
};
