/* SPDX-License-Identifier: MIT */
/* tenfold analogy: A is to B as C is to what? */
#include "emb.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    emb_options emb;
    const char *k, *include;
    int metric;
    bool json, raw;
} options;

typedef struct job {
    const options *options;
    emb_input in;
    emb_asking asking;
    int code;
} job;

/* Prints the answer, or the first of the three words that has no vector. */
static void print_answer(job *j, const tnf_str *words, const tnf_emb_found *found,
                         const tnf_emb_hit *hits, size_t n)
{
    emb_question q = { .words = words, .n = 3 };
    for (size_t w = 0; w < 3 && !q.error; w++)
        if (!found[w].found) {
            q.error = "there is no vector for";
            q.missing = words[w];
            j->code = EXIT_DIFFERS;
        }
    emb_answer(&j->in, &j->asking, &q, hits, n);
}

/* Answers n questions of three words each; returns false to stop. */
static bool ask_words(job *j, const tnf_str *words, size_t n)
{
    size_t k = j->asking.query.k;
    emb_results r;
    tnf_error error;
    bool good = false;
    if (!emb_results_begin(&r, n, k, 3 * n))
        j->code = memory_error();
    else if (tnf_emb_analogy(r.hits, r.counts, r.found, j->in.emb, words, n, &j->asking.query,
                             &error) != TNF_OK)
        j->code = file_error(j->in.in.name, &error);
    else
        good = true;
    for (size_t i = 0; good && i < n; i++)
        print_answer(j, words + 3 * i, r.found + 3 * i, r.hits + i * k, r.counts[i]);
    emb_results_free(&r);
    return good;
}

/* Each line has three words. A line without three words is reported; the others are answered. */
static bool ask_batch(void *ctx, const emb_lines *lines)
{
    job *j = ctx;
    tnf_str *words = calloc(lines->nlines, 3 * sizeof *words);
    size_t n = 0;
    if (!words) {
        j->code = memory_error();
        return false;
    }
    for (size_t i = 0; i < lines->nlines; i++) {
        if (emb_tokens(lines->lines[i], words + 3 * n, 3) == 3) {
            n++;
            continue;
        }
        usage_error("analogy: %s: a line must have three words, not '%.*s'",
                    shown_path(lines->path),
                    (int)shown_bytes(lines->lines[i].p, lines->lines[i].n, 100), lines->lines[i].p);
        j->code = EXIT_USAGE;
    }
    bool good = n == 0 || ask_words(j, words, n);
    free(words);
    return good;
}

/* Parses --include a,c: which of the three words may be answers. */
static bool set_include(job *j, const char *list)
{
    for (const char *p = list; p && *p; p += *p == ',') {
        if (*p < 'a' || *p > 'c' || (p[1] && p[1] != ',')) {
            j->code = usage_error("analogy: --include takes one or more of a,b,c, not '%s'", list);
            return false;
        }
        j->asking.query.keep[*p++ - 'a'] = true;
    }
    return true;
}

static int run_analogy(const cli_state *cli, const void *opts, int argc, char **argv)
{
    job j = { .options = opts };
    if (argc != 1 && argc != 4)
        return usage_error("analogy: give all of A, B and C, or none of them");
    j.code = emb_open(&j.in, cli, &j.options->emb, argv[0]);
    if (j.code == EXIT_DONE && !emb_has_words(&j.in, true))
        j.code = EXIT_BAD;
    if (j.code == EXIT_DONE && !emb_query(&j.asking, &j.in, j.options->k, j.options->metric))
        j.code = EXIT_USAGE;
    j.asking.json = j.options->json;
    j.asking.query.raw = j.options->raw;
    if (j.code == EXIT_DONE && set_include(&j, j.options->include)) {
        tnf_str words[3] = { { 0 } };
        for (int i = 1; i < argc; i++)
            words[i - 1] = (tnf_str) { argv[i], strlen(argv[i]) };
        if (argc == 4)
            ask_words(&j, words, 1);
        else
            emb_ask_lines(ask_batch, &j, &j.asking.several, &j.code);
    }
    emb_close(&j.in);
    return j.code;
}

static const opt table[] = {
    { "count", 'k', OPT_TEXT, offsetof(options, k), "N", NULL, "Print the N best answers [10]." },
    { "metric", 'm', OPT_CHOICE, offsetof(options, metric), "METRIC", "cosine|angular|dot|l2",
      "How vectors are compared, as in 'tenfold similar' [cosine]." },
    { "include", 0, OPT_TEXT, offsetof(options, include), "LIST", NULL,
      "Which of the three words may be answers: one or more of a,b,c." },
    EMB_RAW_OPTION(options),
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON object per question, each on its own line." },
    EMB_OPTIONS(options, emb),
    ALSO_IN_OPTION(options, emb.in),
    { 0 },
};

static const example examples[] = {
    { "tenfold analogy vectors.fifu Paris Frankreich Berlin", "Paris is to Frankreich as Berlin is "
                                                              "to what?" },
    { "tenfold analogy vectors.fifu < questions.txt", "three words on each line" },
    { 0 },
};

const command cmd_analogy = {
    .name = "analogy",
    .args = "FILE [A B C]",
    .summary = "solve \"A is to B as C is to what?\"",
    .about =
        "Answers \"A is to B as C is to what?\" with the words nearest to B - A + C, as gensim, "
        "fastText and finalfusion do. The three vectors are divided by their lengths first. The "
        "three words are not answers. Without words, questions are read from standard input: three "
        "words on each line, with TABs between them, or white space if there is no TAB.\n\nA word "
        "without a vector is reported on stderr (in JSON as \"error\"), and the exit code is 1.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 4,
    .run = run_analogy,
};
