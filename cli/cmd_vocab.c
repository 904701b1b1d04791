/* SPDX-License-Identifier: MIT */
/* tenfold vocab: prints the words of a file. */
#include "emb.h"
#include <inttypes.h>
#include <string.h>

typedef struct options {
    emb_options emb;
    const char *ngrams;
    bool json, number;
} options;

static const char *const schemes[] = { "none", "bucket", "fasttext", "explicit", "floret" };

/* ------------------------------------------------------------------- n-grams */

typedef struct printing {
    json j;
    bool json;
} printing;

static tnf_status print_ngram(void *ctx, tnf_str ngram, uint64_t row, tnf_error *error)
{
    printing *p = ctx;
    (void)error;
    if (p->json) {
        json_open(&p->j, '{');
        json_key(&p->j, "ngram");
        json_str(&p->j, ngram);
        json_key(&p->j, "row");
        if (row == TNF_NO_ROW)
            json_null(&p->j);
        else
            json_uint(&p->j, row);
        json_close(&p->j, '}');
        return TNF_OK;
    }
    put_name(stdout, ngram);
    if (row == TNF_NO_ROW)
        puts("\t-");
    else
        printf("\t%" PRIu64 "\n", row);
    return TNF_OK;
}

static int show_ngrams(const emb_input *e, const options *o)
{
    printing p = { { stdout, false }, o->json };
    tnf_str word = { o->ngrams, strlen(o->ngrams) };
    tnf_error error;
    if (e->info->subwords == TNF_SUBWORDS_NONE) {
        file_message(e->in.name, "", TNF_NO_OFFSET, "the file has no subwords");
        return EXIT_DIFFERS;
    }
    if (o->json) {
        json_open(&p.j, '{');
        json_key(&p.j, "word");
        json_str(&p.j, word);
        json_key(&p.j, "ngrams");
        json_open(&p.j, '[');
    }
    if (tnf_emb_ngrams(e->emb, word, print_ngram, &p, &error) != TNF_OK)
        return file_error(e->in.name, &error);
    if (o->json) {
        json_close(&p.j, ']');
        json_close(&p.j, '}');
        putchar('\n');
    }
    return EXIT_DONE;
}

/* --------------------------------------------------------------------- words */

static void number_member(json *j, const char *key, uint64_t number)
{
    json_key(j, key);
    json_uint(j, number);
}

static void show_json(const emb_input *e)
{
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, e->in.path);
    number_member(&j, "words", e->info->words);
    number_member(&j, "rows", e->info->rows);
    number_member(&j, "dims", e->info->dims);
    json_key(&j, "subwords");
    json_text(&j, schemes[e->info->subwords]);
    if (e->info->subwords != TNF_SUBWORDS_NONE) {
        number_member(&j, "min_n", e->info->min_n);
        number_member(&j, "max_n", e->info->max_n);
        number_member(&j, "buckets", e->info->buckets);
    }
    json_key(&j, "quantized");
    json_bool(&j, e->info->quantized);
    json_key(&j, "norms");
    json_bool(&j, e->info->has_norms);
    number_member(&j, "duplicates", e->info->duplicates);
    json_key(&j, "vocab");
    json_open(&j, '[');
    for (uint64_t i = 0; i < e->info->words; i++) {
        if (e->app)
            emb_json_app(&j, tnf_emb_word(e->emb, i));
        else
            json_str(&j, tnf_emb_word(e->emb, i));
    }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

static void show_text(const emb_input *e, const options *o)
{
    for (uint64_t i = 0; i < e->info->words; i++) {
        if (o->number)
            printf("%" PRIu64 "\t", i);
        if (e->app) {
            json j = { stdout, false };
            emb_json_app(&j, tnf_emb_word(e->emb, i));
        } else {
            put_name(stdout, tnf_emb_word(e->emb, i));
        }
        putchar('\n');
    }
}

static int run_vocab(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    emb_input e;
    (void)argc;
    int code = emb_open(&e, cli, &o->emb, argv[0]);
    if (code == EXIT_DONE) {
        if (o->ngrams)
            code = show_ngrams(&e, o);
        else if (o->json)
            show_json(&e);
        else if (emb_has_words(&e, false))
            show_text(&e, o);
        else
            code = EXIT_BAD;
    }
    emb_close(&e);
    return code;
}

static const opt table[] = {
    { "number", 0, OPT_FLAG, offsetof(options, number), NULL, NULL,
      "Print the number of its row before each word." },
    { "ngrams", 0, OPT_TEXT, offsetof(options, ngrams), "WORD", NULL,
      "Print the n-grams of this word instead, with their rows." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON document: the numbers of words, rows and dimensions, the subword scheme, and "
      "the words." },
    EMB_OPTIONS(options, emb),
    { "number", 'n', OPT_FLAG, offsetof(options, number), NULL, NULL, NULL },
    ALSO_IN_OPTION(options, emb.in),
    { 0 },
};

static const example examples[] = {
    { "tenfold vocab vectors.fifu | head", "the first words" },
    { "tenfold vocab vectors.fifu --ngrams Tübingen", "the n-grams of an unknown word" },
    { 0 },
};

const command cmd_vocab = {
    .name = "vocab",
    .args = "FILE",
    .summary = "print the words of a file",
    .about =
        "Prints the vocabulary, one word per line, in the order of the rows. Control characters "
        "are escaped as in the other commands. Application data of VS points is printed as JSON.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .run = run_vocab,
};
