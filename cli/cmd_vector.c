/* SPDX-License-Identifier: MIT */
/* tenfold vector: prints the vectors of words. */
#include "emb.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    emb_options emb;
    bool json, unnormalize;
} options;

typedef struct job {
    const options *options;
    emb_input in;
    float *vector;
    int code;
} job;

static void as_json(const job *j, tnf_str word, const tnf_emb_found *found)
{
    json out = { stdout, false };
    json_open(&out, '{');
    json_key(&out, "word");
    json_str(&out, word);
    json_key(&out, "known");
    json_bool(&out, found->known);
    if (found->found) {
        json_key(&out, "norm");
        json_f32(&out, found->norm);
        json_key(&out, "vector");
        json_open(&out, '[');
        for (size_t i = 0; i < j->in.info->dims; i++)
            json_f32(&out, j->vector[i]);
        json_close(&out, ']');
    } else {
        json_key(&out, "error");
        json_text(&out, "the word has no vector");
    }
    json_close(&out, '}');
    putchar('\n');
}

static void as_text(const job *j, tnf_str word, const tnf_emb_found *found)
{
    if (!found->found) {
        char text[200];
        snprintf(text, sizeof text, "there is no vector for '%.*s'",
                 word.n < 150 ? (int)word.n : 150, word.p);
        file_message(j->in.in.name, "", TNF_NO_OFFSET, text);
        return;
    }
    put_name(stdout, word);
    for (size_t i = 0; i < j->in.info->dims; i++) {
        char number[NUMBER_TEXT];
        number_f32(number, j->vector[i]);
        printf(" %s", number);
    }
    putchar('\n');
}

static bool show_word(job *j, tnf_str word)
{
    tnf_error error;
    tnf_emb_found found;
    if (tnf_emb_vectors(j->vector, &found, j->in.emb, &word, 1, &error) != TNF_OK) {
        j->code = file_error(j->in.in.name, &error);
        return false;
    }
    for (size_t i = 0; j->options->unnormalize && i < j->in.info->dims; i++)
        j->vector[i] *= found.norm;
    if (!found.found)
        j->code = EXIT_DIFFERS;
    if (j->options->json)
        as_json(j, word, &found);
    else
        as_text(j, word, &found);
    return true;
}

static void show_lines(job *j)
{
    emb_lines lines;
    bool good = emb_lines_open(&lines, NULL);
    while (good && emb_lines_next(&lines)) {
        for (size_t i = 0; good && i < lines.nlines; i++)
            good = show_word(j, lines.lines[i]);
        flush_out();
    }
    if (lines.fd < 0 && j->code == EXIT_DONE)
        j->code = EXIT_IO;
    emb_lines_close(&lines);
}

static int run_vector(const cli_state *cli, const void *opts, int argc, char **argv)
{
    job j = { .options = opts };
    j.code = emb_open(&j.in, cli, &j.options->emb, argv[0]);
    if (j.code == EXIT_DONE && !emb_has_words(&j.in, true))
        j.code = EXIT_BAD;
    if (j.code == EXIT_DONE) {
        j.vector = calloc(j.in.info->dims + 1, sizeof *j.vector);
        if (!j.vector)
            j.code = memory_error();
        for (int i = 1; j.vector && i < argc; i++)
            if (!show_word(&j, (tnf_str) { argv[i], strlen(argv[i]) }))
                break;
        if (j.vector && argc == 1)
            show_lines(&j);
    }
    free(j.vector);
    emb_close(&j.in);
    return j.code;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON object per word, each on its own line: word, known, norm, vector." },
    { "unnormalize", 'u', OPT_FLAG, offsetof(options, unnormalize), NULL, NULL,
      "Multiply by the norm, which gives the vector before it was normalised." },
    EMB_OPTIONS(options, emb),
    ALSO_IN_OPTION(options, emb.in),
    { 0 },
};

static const example examples[] = {
    { "tenfold vector vectors.fifu Berlin Potsdam", "one line per word, with its numbers" },
    { "tenfold vector --json vectors.fifu überspringen", "known or not, and its norm" },
    { 0 },
};

const command cmd_vector = {
    .name = "vector",
    .args = "FILE [WORD...]",
    .summary = "print the vectors of words",
    .about =
        "Prints the vector of each WORD, or of each line of standard input. The vector of a word "
        "in the vocabulary is its row in the file; its norm is the one in the file, or 1. Any "
        "other word gets the normalised sum of the rows of its subwords, if the file has subwords. "
        "Its norm is the length of that sum, which cannot be compared with the norms of words in "
        "the vocabulary.\n\nRows of a quantized matrix are reconstructed. A word without a vector "
        "is reported on stderr (in JSON as \"error\"), and the exit code is 1.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run_vector,
};
