/* SPDX-License-Identifier: MIT */
/* tenfold select: some words of a file, with their vectors, as a file of their own. */
#include "emb.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    emb_options emb;
    saving_options save;
    bool ignore;
} options;

/* Words that stay, copied: lines come and go. */
typedef struct chosen {
    tnf_str *words;
    size_t n, room, ignored;
} chosen;

static bool add_word(chosen *c, tnf_str word)
{
    if (c->n == c->room) {
        size_t room = 2 * c->room + 256;
        tnf_str *more = realloc(c->words, room * sizeof *more);
        if (!more)
            return false;
        c->words = more;
        c->room = room;
    }
    char *copy = malloc(word.n + 1);
    if (!copy)
        return false;
    memcpy(copy, word.p, word.n);
    c->words[c->n++] = (tnf_str) { copy, word.n };
    return true;
}

/* Has it a vector? With -i those that have none are left out. */
static bool has_vector(const emb_input *e, tnf_str word, float *room)
{
    tnf_emb_found found;
    tnf_error error;
    if (tnf_emb_find(e->emb, word) != TNF_NO_ROW)
        return true;
    return tnf_emb_vectors(e->emb, &word, 1, room, &found, &error) == TNF_OK && found.found;
}

static int read_words(chosen *c, const emb_input *e, const char *path, bool ignore)
{
    emb_lines lines;
    int code = EXIT_DONE;
    float *room = calloc(e->info->dims + 1, sizeof *room);
    if (!emb_lines_open(&lines, path)) {
        free(room);
        return EXIT_IO;
    }
    while (room && code == EXIT_DONE && emb_lines_next(&lines))
        for (size_t i = 0; code == EXIT_DONE && i < lines.nlines; i++) {
            if (ignore && !has_vector(e, lines.lines[i], room))
                c->ignored++;
            else if (!add_word(c, lines.lines[i]))
                code = usage_error("out of memory");
        }
    if (!room)
        code = usage_error("out of memory");
    else if (lines.fd < 0)
        code = EXIT_IO;
    emb_lines_close(&lines);
    free(room);
    return code;
}

static int save_words(const emb_input *e, const options *o, const chosen *c, const char *out)
{
    tnf_error error;
    tnf_builder *builder;
    int code;
    if (tnf_builder_new(&builder, NULL, &error) != TNF_OK)
        return file_error(out, &error);
    if (tnf_emb_select(builder, e->emb, c->words, c->n, &error) == TNF_OK) {
        code = emb_save(builder, e, &o->save, out);
    } else {
        code = file_error(e->in.name, &error);
        if (error.status == TNF_ENOTFOUND)
            code = EXIT_DIFFERS;
    }
    tnf_builder_free(builder);
    if (code == EXIT_DONE && c->ignored > 0 && !e->in.cli->quiet) {
        char text[80];
        snprintf(text, sizeof text,
                 c->ignored == 1 ? "%zu word has no vector and was left out"
                                 : "%zu words have no vector and were left out",
                 c->ignored);
        file_message(e->in.name, "", TNF_NO_OFFSET, text);
    }
    return code;
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    emb_input e;
    chosen c = { 0 };
    int code = emb_open_to_write(&e, cli, &o->emb, argv[0]);
    if (code == EXIT_DONE)
        code = read_words(&c, &e, argc > 2 ? argv[2] : NULL, o->ignore);
    if (code == EXIT_DONE)
        code = save_words(&e, o, &c, argv[1]);
    for (size_t i = 0; i < c.n; i++)
        free((void *)(uintptr_t)c.words[i].p);
    free(c.words);
    emb_close(&e);
    return code;
}

static const opt table[] = {
    { "ignore-unknown", 'i', OPT_FLAG, offsetof(options, ignore), NULL, NULL,
      "Skip words without a vector instead of stopping." },
    EMB_SAVE_OPTIONS(options, save),
    AS_IS_OPTION(options, save),
    EMB_OPTIONS(options, emb),
    { 0 },
};

static const example examples[] = {
    { "tenfold select vectors.fifu few.fifu words.txt", "the words of a list, in its order" },
    { "tenfold vocab a.fifu | tenfold select -i b.fifu both.fifu", "what two vocabularies share" },
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
    .run = run,
};
