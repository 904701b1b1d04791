/* SPDX-License-Identifier: MIT */
/* tenfold accuracy: counts analogies with the right answer. */
#include "emb.h"
#include "grow.h"
#include <stdlib.h>
#include <string.h>

typedef struct options {
    emb_options emb;
    bool json, raw;
} options;

/* One section of the questions, or all of them. */
typedef struct score {
    char *name;
    uint64_t correct, asked, skipped;
    double cosines;
} score;

typedef struct job {
    emb_input in;
    emb_asking asking;
    score *sections;
    size_t n, room;
    int code;
} job;

static score *add_section(job *j, tnf_str name)
{
    score *more = grow_array(j->sections, j->n, &j->room, sizeof *more, 16);
    if (!more)
        return NULL;
    j->sections = more;
    char *copy = strndup(name.p, name.n);
    if (!copy)
        return NULL;
    j->sections[j->n] = (score) { .name = copy };
    return &j->sections[j->n++];
}

static bool same_word(tnf_str a, tnf_str b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Asks n questions of a section: three words each, and the expected answer. */
static bool ask_section(job *j, size_t section, const tnf_str *words, const tnf_str *answers,
                        size_t n)
{
    tnf_emb_hit *hits = calloc(n, sizeof *hits);
    size_t *counts = calloc(n, sizeof *counts);
    tnf_error error;
    score *s = &j->sections[section];
    bool good = hits && counts;
    if (!good)
        j->code = memory_error();
    else if (tnf_emb_analogy(hits, counts, NULL, j->in.emb, words, n, &j->asking.query, &error) !=
             TNF_OK) {
        j->code = file_error(j->in.in.name, &error);
        good = false;
    }
    for (size_t i = 0; good && i < n; i++) {
        s->asked++; /* if a word has no vector, the answer counts as wrong */
        if (counts[i] == 0)
            continue;
        s->cosines += hits[i].score;
        s->correct += same_word(hits[i].word, answers[i]);
    }
    free(hits);
    free(counts);
    return good;
}

/* Asks the questions of a batch of lines, one section at a time. */
static bool ask_batch(job *j, const emb_lines *lines)
{
    tnf_str *words = calloc(lines->nlines, 4 * sizeof *words), *answers, four[4];
    bool good = words != NULL;
    size_t n = 0;
    answers = good ? words + 3 * lines->nlines : NULL;
    for (size_t i = 0; good && i < lines->nlines; i++) {
        tnf_str line = lines->lines[i];
        if (line.p[0] == ':') {
            good = n == 0 || ask_section(j, j->n - 1, words, answers, n);
            n = 0;
            size_t skip = 1 + strspn(line.p + 1, " \t");
            skip = skip < line.n ? skip : line.n;
            good = good && add_section(j, (tnf_str) { line.p + skip, line.n - skip });
        } else if (emb_tokens(line, four, 4) != 4) {
            usage_error("accuracy: %s: a line must have four words, the last is the answer, not "
                        "'%.*s'",
                        shown_path(lines->path), (int)shown_bytes(line.p, line.n, 100), line.p);
            j->code = EXIT_USAGE;
            good = false;
        } else if (tnf_emb_find(j->in.emb, four[3]) == TNF_NO_ROW) {
            j->sections[j->n - 1].skipped++;
        } else {
            memcpy(words + 3 * n, four, 3 * sizeof *four);
            answers[n++] = four[3];
        }
    }
    good = good && (n == 0 || ask_section(j, j->n - 1, words, answers, n));
    free(words);
    return good;
}

static void ask_all(job *j, const char *path)
{
    emb_lines lines;
    if (!emb_lines_open(&lines, path)) {
        j->code = EXIT_IO;
        return;
    }
    if (!add_section(j, (tnf_str) { "", 0 }))
        j->code = memory_error();
    while (j->code == EXIT_DONE && emb_lines_next(&lines))
        if (!ask_batch(j, &lines) && j->code == EXIT_DONE)
            j->code = memory_error();
    if (lines.fd < 0 && j->code == EXIT_DONE)
        j->code = EXIT_IO;
    emb_lines_close(&lines);
}

/* -------------------------------------------------------------------- result */

static double share_of(double part, uint64_t of)
{
    return of ? part / (double)of : 0;
}

static void put_score(const score *s)
{
    const char *name = s->name ? s->name : "Total";
    if (*name) {
        put_safe(stdout, name, strlen(name), true);
        fputs(": ", stdout);
    }
    printf("%llu/%llu correct, accuracy: %.2f, avg cos: %.2f, skipped: %llu\n",
           (unsigned long long)s->correct, (unsigned long long)s->asked,
           100 * share_of((double)s->correct, s->asked), share_of(s->cosines, s->asked),
           (unsigned long long)s->skipped);
}

static void json_score(json *j, const score *s)
{
    json_open(j, '{');
    if (s->name) {
        json_key(j, "name");
        json_text(j, s->name);
    }
    json_key(j, "correct");
    json_uint(j, s->correct);
    json_key(j, "asked");
    json_uint(j, s->asked);
    json_key(j, "skipped");
    json_uint(j, s->skipped);
    json_key(j, "accuracy");
    json_f64(j, share_of((double)s->correct, s->asked));
    json_key(j, "cosine");
    json_f64(j, share_of(s->cosines, s->asked));
    json_close(j, '}');
}

static bool is_empty(const score *s)
{
    return !*s->name && s->asked == 0 && s->skipped == 0; /* nothing before the first section */
}

static void show_result(const job *j, bool as_json)
{
    score total = { 0 };
    json out = { stdout, false };
    if (as_json) {
        json_open(&out, '{');
        json_key(&out, "file");
        json_text(&out, j->in.in.path);
        json_key(&out, "sections");
        json_open(&out, '[');
    }
    for (size_t i = 0; i < j->n; i++) {
        const score *s = &j->sections[i];
        total.correct += s->correct;
        total.asked += s->asked;
        total.skipped += s->skipped;
        total.cosines += s->cosines;
        if (is_empty(s))
            continue;
        if (as_json)
            json_score(&out, s);
        else if (*s->name)
            put_score(s);
    }
    if (!as_json) {
        put_score(&total);
        return;
    }
    json_close(&out, ']');
    json_key(&out, "total");
    json_score(&out, &total);
    json_close(&out, '}');
    putchar('\n');
}

static int run_accuracy(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    job j = { 0 };
    j.code = emb_open(&j.in, cli, &o->emb, argv[0]);
    if (j.code == EXIT_DONE && emb_query(&j.asking, &j.in, "1", 0)) {
        j.asking.query.raw = o->raw;
        ask_all(&j, argc > 1 ? argv[1] : NULL);
        if (j.code == EXIT_DONE)
            show_result(&j, o->json);
    }
    for (size_t i = 0; i < j.n; i++)
        free(j.sections[i].name);
    free(j.sections);
    emb_close(&j.in);
    return j.code;
}

static const opt table[] = {
    EMB_RAW_OPTION(options),
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON document: the sections, and the total." },
    EMB_OPTIONS(options, emb),
    ALSO_IN_OPTION(options, emb.in),
    { 0 },
};

static const example examples[] = {
    { "tenfold accuracy vectors.fifu questions-words.txt", "per section and in total" },
    { 0 },
};

const command cmd_accuracy = {
    .name = "accuracy",
    .args = "FILE [QUESTIONS]",
    .summary = "count correct analogies",
    .about =
        "Reads questions with their answers from QUESTIONS or standard input, four words on each "
        "line. Asks each question as 'tenfold analogy' does, and counts how often the first answer "
        "is the fourth word. A line \": NAME\" begins a section.\n\nA question is skipped if its "
        "answer is not in the vocabulary. It counts as wrong, with a cosine of 0, if one of its "
        "words has no vector. The average cosine is that of the first answers.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 2,
    .run = run_accuracy,
};
