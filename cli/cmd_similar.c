/* SPDX-License-Identifier: MIT */
/* tenfold similar: finds the nearest words or points. */
#include "emb.h"
#include "jobs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    emb_options emb;
    const char *k, *among;
    int metric;
    opt_list vectors, skip, positive, negative;
    bool json, include;
    part_options part;
} options;

typedef struct job {
    const options *options;
    emb_input in;
    emb_asking asking;
    uint64_t *skip;
    int code;
} job;

static const char no_vector[] = "there is no vector for";

static int query_failed(job *j, const tnf_error *error)
{
    return j->code = file_error(j->in.in.name, error);
}

static int no_memory(job *j)
{
    return j->code = memory_error();
}

/* Answers several words at once; returns false to stop. */
static bool ask_words(job *j, const tnf_str *words, size_t n)
{
    size_t k = j->asking.query.k;
    emb_results r;
    tnf_error error;
    bool good = emb_results_begin(&r, n, k, n);
    if (!good) {
        no_memory(j);
    } else if (tnf_emb_similar(r.hits, r.counts, r.found, j->in.emb, words, n, &j->asking.query,
                               &error) != TNF_OK) {
        query_failed(j, &error);
        good = false;
    }
    for (size_t i = 0; good && i < n; i++) {
        emb_question q = { .words = &words[i], .n = 1 };
        if (!r.found[i].found) {
            q.error = no_vector;
            q.missing = words[i];
            j->code = EXIT_DIFFERS;
        }
        emb_answer(&j->in, &j->asking, &q, r.hits + i * k, r.counts[i]);
    }
    emb_results_free(&r);
    return good;
}

/* Parses "[1, 2.5, -3]": exactly n numbers; brackets and commas are optional. */
static bool parse_vector(const char *text, double *out, size_t n)
{
    const char *p = text;
    size_t got = 0;
    for (;;) {
        p += strspn(p, " \t\n[],");
        if (!*p)
            break;
        char *end;
        double number = strtod(p, &end);
        if (end == p)
            return usage_error("similar: '%s' in a vector is not a number", p), false;
        if (got < n)
            out[got] = number;
        got++;
        p = end;
    }
    if (got != n)
        usage_error("similar: expected a vector of %zu numbers, not of %zu", n, got);
    return got == n;
}

static bool ask_vectors(job *j)
{
    size_t n = j->options->vectors.n, d = j->in.info->dims, k = j->asking.query.k;
    double *vectors = calloc(n * d, sizeof *vectors);
    emb_results r;
    tnf_error error;
    bool good = emb_results_begin(&r, n, k, 0) && vectors;
    if (!good)
        no_memory(j);
    for (size_t i = 0; good && i < n; i++)
        if (!parse_vector(j->options->vectors.items[i], vectors + i * d, d)) {
            j->code = EXIT_USAGE;
            good = false;
        }
    if (good && tnf_emb_nearest_f64(r.hits, r.counts, j->in.emb, vectors, n, &j->asking.query,
                                    &error) != TNF_OK) {
        query_failed(j, &error);
        good = false;
    }
    for (size_t i = 0; good && i < n; i++) {
        emb_question q = { .vector = vectors + i * d, .dims = d };
        emb_answer(&j->in, &j->asking, &q, r.hits + i * k, r.counts[i]);
    }
    free(vectors);
    emb_results_free(&r);
    return good;
}

/* Adds the unit vectors of --positive and subtracts those of --negative. Returns NULL after
 * reporting an error. */
static double *mix_vectors(job *j, const tnf_str *words, size_t n, tnf_emb_found *found)
{
    size_t d = j->in.info->dims, plus = j->options->positive.n;
    float *vectors = calloc(n * d, sizeof *vectors);
    double *sum = calloc(d, sizeof *sum);
    tnf_error error;
    bool good = vectors && sum;
    if (!good)
        no_memory(j);
    else if (tnf_emb_vectors(vectors, found, j->in.emb, words, n, &error) != TNF_OK)
        good = (query_failed(j, &error), false);
    for (size_t i = 0; good && i < n; i++) {
        const float *v = vectors + i * d;
        double square = 0;
        for (size_t k = 0; k < d; k++)
            square += (double)v[k] * (double)v[k];
        double weight = square > 0 ? (i < plus ? 1 : -1) / sqrt(square) : 0;
        for (size_t k = 0; k < d; k++)
            sum[k] += weight * (double)v[k];
    }
    free(vectors);
    if (good)
        return sum;
    free(sum);
    return NULL;
}

/* Is the sum of unit vectors zero, except for the rounding of f32? */
static bool is_zero(const double *sum, size_t d)
{
    double square = 0;
    for (size_t k = 0; k < d; k++)
        square += sum[k] * sum[k];
    return square < 1e-12;
}

/* Excludes the queried words from the answers. */
static bool skip_asked(job *j, const tnf_emb_found *found, size_t n)
{
    size_t had = j->asking.query.nskip;
    uint64_t *more = realloc(j->skip, (had + n + 1) * sizeof *more);
    if (!more)
        return no_memory(j), false;
    j->skip = more;
    for (size_t i = 0; i < n && !j->options->include; i++)
        if (found[i].known)
            more[had++] = found[i].row;
    j->asking.query.skip = more;
    j->asking.query.nskip = had;
    return true;
}

/* --positive and --negative: one query of several words, as in gensim. */
static void ask_mix(job *j)
{
    const options *o = j->options;
    size_t plus = o->positive.n, n = plus + o->negative.n, k = j->asking.query.k, count = 0;
    tnf_str *words = calloc(n, sizeof *words);
    tnf_emb_found *found = calloc(n, sizeof *found);
    tnf_emb_hit *hits = calloc(k, sizeof *hits);
    tnf_error error;
    for (size_t i = 0; words && i < n; i++) {
        const char *text = i < plus ? o->positive.items[i] : o->negative.items[i - plus];
        words[i] = (tnf_str) { text, strlen(text) };
    }
    double *sum = NULL;
    if (!words || !found || !hits)
        no_memory(j);
    else
        sum = mix_vectors(j, words, n, found);
    emb_question q = { .words = words, .n = n };
    for (size_t i = 0; sum && i < n && !q.error; i++)
        if (!found[i].found) {
            q.error = no_vector;
            q.missing = words[i];
            j->code = EXIT_DIFFERS;
        }
    if (sum && !q.error && is_zero(sum, j->in.info->dims)) {
        q.error = "the vectors cancel each other out, so their sum has no direction";
        j->code = EXIT_DIFFERS;
    }
    if (sum && !q.error && skip_asked(j, found, n) &&
        tnf_emb_nearest_f64(hits, &count, j->in.emb, sum, 1, &j->asking.query, &error) != TNF_OK)
        query_failed(j, &error);
    if (sum)
        emb_answer(&j->in, &j->asking, &q, hits, count);
    free(words);
    free(found);
    free(hits);
    free(sum);
}

static bool ask_batch(void *ctx, const emb_lines *lines)
{
    return ask_words(ctx, lines->lines, lines->nlines);
}

/* --skip: excludes words from the answers. */
static bool set_skip(job *j)
{
    const opt_list *list = &j->options->skip;
    j->skip = calloc(list->n + 1, sizeof *j->skip);
    if (!j->skip)
        return no_memory(j), false;
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        tnf_str word = { list->items[i], strlen(list->items[i]) };
        uint64_t row = tnf_emb_find(j->in.emb, word);
        if (row != TNF_NO_ROW)
            j->skip[n++] = row;
    }
    j->asking.query.skip = j->skip;
    j->asking.query.nskip = n;
    return true;
}

static void ask_arguments(job *j, int argc, char **argv)
{
    j->asking.query.keep_asked = j->options->include;
    j->asking.several = argc + (int)j->options->vectors.n > 1;
    if (!set_skip(j))
        return;
    if (j->options->vectors.n > 0 && !ask_vectors(j))
        return;
    if (j->options->positive.n + j->options->negative.n > 0) {
        ask_mix(j);
        return;
    }
    tnf_str *words = calloc((size_t)argc + 1, sizeof *words);
    for (int i = 0; words && i < argc; i++)
        words[i] = (tnf_str) { argv[i], strlen(argv[i]) };
    if (!words)
        no_memory(j);
    else if (argc > 0)
        ask_words(j, words, (size_t)argc);
    else if (j->options->vectors.n == 0)
        emb_ask_lines(ask_batch, j, &j->asking.several, &j->code);
    free(words);
}

static int run_similar(const cli_state *cli, const void *opts, int argc, char **argv)
{
    job j = { .options = opts };
    if (j.options->positive.n + j.options->negative.n > 0 && (argc > 1 || j.options->vectors.n))
        return usage_error("similar: --positive and --negative cannot be combined with WORD or "
                           "--vector");
    j.code = emb_open(&j.in, cli, &j.options->emb, argv[0]);
    bool only_vectors = argc == 1 && j.options->vectors.n > 0;
    if (j.code == EXIT_DONE && !only_vectors && !emb_has_words(&j.in, true))
        j.code = EXIT_BAD;
    if (j.code == EXIT_DONE) {
        uint64_t among;
        if (!emb_number(&among, j.options->among, "among", 1, 0) ||
            !emb_query(&j.asking, &j.in, j.options->k, j.options->metric)) {
            j.code = EXIT_USAGE;
        } else {
            j.asking.json = j.options->json;
            j.asking.query.among = among;
            ask_arguments(&j, argc - 1, argv + 1);
        }
    }
    free(j.skip);
    emb_close(&j.in);
    return j.code;
}

static const opt table[] = {
    { "count", 'k', OPT_TEXT, offsetof(options, k), "N", NULL,
      "Print the N nearest words or points [10]." },
    { "metric", 'm', OPT_CHOICE, offsetof(options, metric), "METRIC", "cosine|angular|dot|l2",
      "How vectors are compared: the cosine, 1 - angle / pi, the dot product, or the Euclidean "
      "distance [cosine]." },
    { "vector", 0, OPT_LIST, offsetof(options, vectors), "NUMBERS", NULL,
      "Query this vector, such as \"[0.5, -1, 2]\". May be repeated." },
    { "positive", 'p', OPT_LIST, offsetof(options, positive), "WORD", NULL,
      "Find words near all of these: their vectors, scaled to length 1, are added. May be "
      "repeated." },
    { "negative", 0, OPT_LIST, offsetof(options, negative), "WORD", NULL,
      "Find words far from these: their vectors are subtracted. May be repeated." },
    { "among", 0, OPT_TEXT, offsetof(options, among), "N", NULL,
      "Only the first N words may be answers. Most files have the most frequent words first." },
    { "skip", 0, OPT_LIST, offsetof(options, skip), "WORD", NULL,
      "This word is not an answer. May be repeated." },
    { "include", 0, OPT_FLAG, offsetof(options, include), NULL, NULL,
      "The queried word may be an answer." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON object per query, each on its own line." },
    EMB_OPTIONS(options, emb),
    PART_OPTIONS(options, part),
    ALSO_IN_OPTION(options, emb.in),
    { 0 },
};

static const example examples[] = {
    { "tenfold similar vectors.fifu Berlin -k 5", "the five nearest words" },
    { "tenfold similar vectors.fifu --positive king --positive woman --negative man --among 50000",
      "several words at once, without rare answers" },
    { "tenfold similar vectors.fifu < words.txt", "one word on each line" },
    { "tenfold similar space.vs --vector '[1, 0, 2]' -m l2", "the nearest points" },
    { 0 },
};

const command cmd_similar = {
    .name = "similar",
    .args = "FILE [WORD...]",
    .summary = "find the nearest words or points",
    .about = "Finds the words whose vectors are nearest to that of each WORD. It compares all "
             "vectors, so the answer is exact. A word that is not in the vocabulary gets its "
             "vector from its subwords, if the file has them. Without words and vectors, words are "
             "read from standard input, one per line.\n\nFILE needs a matrix, and strings for its "
             "rows: embeddings in any format, also quantized ones, or VS points with their "
             "application data. Equal scores are ordered by word; NaN comes last. A word without a "
             "vector is reported on stderr (in JSON as \"error\"), and the exit code is 1.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .part = offsetof(options, part) + 1,
    .run = run_similar,
};
