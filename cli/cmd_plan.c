/* SPDX-License-Identifier: MIT */
/* tenfold plan: cuts work into parts for any scheduler. */
#include "input.h"
#include "jobs.h"
#include "out.h"
#include "saving.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/remote.h>

#define JOBS "hash|verify|convert|stat|diff|similar"

typedef struct options {
    const char *job, *out, *parts, *max_size, *queries, *k, *rtol, *atol;
    saving_options save; /* to, writer, dtype, allow_loss, force */
    opt_list select, exclude;
    const char *format;
    bool lenient, json;
} options;

/* The lines of a text, one word each. */
typedef struct words {
    const char **items;
    size_t n;
} words;

static int read_words(words *w, const char *path)
{
    FILE *f = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    if (!f)
        return cannot_open(path, errno);
    while ((n = getline(&line, &room, f)) > 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            line[--n] = 0;
        const char **more = n ? realloc(w->items, (w->n + 1) * sizeof *more) : NULL;
        char *copy = more ? strdup(line) : NULL;
        if (more)
            w->items = more;
        if (copy)
            w->items[w->n++] = copy;
    }
    free(line);
    fclose(f);
    return EXIT_DONE;
}

static void free_words(words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free((char *)(uintptr_t)w->items[i]);
    free(w->items);
}

static bool take_number(uint64_t *out, const char *text, const char *name)
{
    char *end;
    if (!text || (number_parse(out, text, &end) && !*end && *out > 0))
        return true;
    usage_error("plan: --%s takes a number above 0, not '%s'", name, text);
    return false;
}

static bool take_size(uint64_t *out, const char *text)
{
    if (!text || size_parse(out, text))
        return true;
    usage_error("plan: --max-size takes a size such as 5GB, 2GiB or 500M, not '%s'", text);
    return false;
}

static void put_summary(const tnf_job_info *info)
{
    char bytes[SIZE_TEXT], most[SIZE_TEXT], least[SIZE_TEXT], atom[SIZE_TEXT];
    size_text(bytes, info->bytes);
    size_text(most, info->largest_part);
    size_text(least, info->smallest_part);
    size_text(atom, info->largest_atom);
    printf("%s in %" PRIu64 " part%s, %s to read", info->job, info->parts,
           info->parts == 1 ? "" : "s", bytes);
    if (info->format)
        printf(", %s (%s)", info->format, info->mode);
    printf("\nparts of %s to %s", least, most);
    if (info->largest_atom)
        printf("; the largest indivisible piece has %s", atom);
    printf("\nid %s\n", info->id);
}

/* Workers need complete URLs, so a plan contains their queries, which messages never show. */
static void warn_of_queries(const cli_state *cli, const tnf_job_options *what)
{
    for (size_t i = 0; i < what->ninputs && !cli->quiet; i++) {
        if (!tnf_is_url(what->inputs[i]) || !strchr(what->inputs[i], '?'))
            continue;
        file_message("plan", "warning: ", TNF_NO_OFFSET,
                     "the plan contains the query of a URL; if the query is a signature, keep the "
                     "plan secret");
        return;
    }
}

static int make_plan(const cli_state *cli, const options *o, tnf_job_options *what)
{
    tnf_job *job;
    tnf_error error;
    tnf_status status = tnf_job_plan(&job, what, &error);
    if (status != TNF_OK)
        return status == TNF_ELOSSY ? loss_error("plan", &error) : file_error("plan", &error);
    tnf_str text = tnf_job_text(job);
    if (o->json) {
        fwrite(text.p, 1, text.n, stdout);
        warn_of_queries(cli, what);
    } else {
        put_summary(tnf_job_describe(job));
    }
    tnf_job_free(job);
    return EXIT_DONE;
}

static int fill_options(const options *o, tnf_job_options *what, format_options *writer)
{
    what->job = o->job;
    what->read_format = o->format;
    what->lenient = o->lenient;
    what->out = o->out;
    what->format = o->save.to;
    what->select = o->select.items;
    what->nselect = o->select.n;
    what->exclude = o->exclude.items;
    what->nexclude = o->exclude.n;
    what->dtype = o->save.dtype;
    what->allow_loss = o->save.allow_loss.given;
    what->replace = o->save.force;
    what->numeric = o->rtol || o->atol;
    if (!o->job)
        return usage_error("plan: the job is missing; give --for " JOBS);
    if (opt_position(JOBS, o->job, strlen(o->job)) < 0)
        return usage_error("plan: --for takes one of " JOBS ", not '%s'", o->job);
    if (strcmp(o->job, "convert") == 0 && !o->out)
        return usage_error("plan: the output is missing; give --out PATH");
    if (o->max_size && !o->save.to)
        return usage_error("plan: --max-size needs the format of the files; give -t FORMAT");
    if (strcmp(o->job, "similar") == 0 && !o->queries)
        return usage_error("plan: the words are missing; give --queries FILE");
    if (!o->parts)
        return usage_error("plan: the number of parts is missing; give --parts N");
    if (o->save.to && !(what->format = saving_format(o->save.to)))
        return usage_error("plan: unknown format '%s'", o->save.to);
    if (!take_number(&what->parts, o->parts, "parts") ||
        !take_size(&what->max_bytes, o->max_size) || !take_number(&what->k, o->k, "count") ||
        !opt_tolerance(&what->rtol, "plan", "rtol", o->rtol) ||
        !opt_tolerance(&what->atol, "plan", "atol", o->atol) ||
        !format_options_parse(writer, &o->save.writer, "--option"))
        return EXIT_USAGE;
    what->options = writer->items;
    what->noptions = writer->n;
    return EXIT_DONE;
}

static int run_plan(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    tnf_job_options what = TNF_JOB_INIT;
    format_options writer = { 0 };
    words queries = { 0 };
    int code = fill_options(o, &what, &writer);
    if (code == EXIT_DONE && o->queries)
        code = read_words(&queries, o->queries);
    what.inputs = (const char *const *)argv;
    what.ninputs = (size_t)argc;
    what.queries = queries.items;
    what.nqueries = queries.n;
    if (code == EXIT_DONE)
        code = make_plan(cli, o, &what);
    format_options_free(&writer);
    free_words(&queries);
    return code;
}

static const opt table[] = {
    { "for", 0, OPT_TEXT, offsetof(options, job), "JOB", JOBS,
      "The job: hash, verify, convert, stat, diff (of two files) or similar." },
    { "parts", 0, OPT_TEXT, offsetof(options, parts), "N", NULL,
      "Cut the work into N parts of nearly the same size." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print the plan itself instead of a summary." },
    { "out", 0, OPT_TEXT, offsetof(options, out), "PATH", NULL,
      "convert: the file to write, an object (s3://BUCKET/KEY), or with --max-size the directory. "
      "Other jobs: receipts are stored next to this path; without it, next to the plan." },
    TO_OPTION(options, save, "the extension of --out decides."),
    WRITER_OPTION(options, save, "option", 'o'),
    { "max-size", 0, OPT_TEXT, offsetof(options, max_size), "SIZE", NULL,
      "convert: write several files with at most SIZE bytes of tensors each, and an index, as "
      "'tenfold split' does: 5GB, 2GiB, 500M." },
    { "select", 0, OPT_LIST, offsetof(options, select), "GLOB", NULL,
      "convert: take only the tensors whose names match. May be repeated." },
    { "exclude", 0, OPT_LIST, offsetof(options, exclude), "GLOB", NULL,
      "convert: leave out the tensors whose names match. May be repeated." },
    { "dtype", 0, OPT_TEXT, offsetof(options, save.dtype), "DTYPE", NULL,
      "convert: save dense tensors of floats as this type." },
    { "allow-loss", 0, OPT_MAYBE, offsetof(options, save.allow_loss), "KIND", LOSS_KINDS,
      "convert: drop what the format cannot hold instead of refusing." },
    { "force", 0, OPT_FLAG, offsetof(options, save.force), NULL, NULL,
      "convert: finish may replace --out if it exists." },
    { "queries", 0, OPT_TEXT, offsetof(options, queries), "FILE", NULL,
      "similar: the words to look for, one per line." },
    { "count", 'k', OPT_TEXT, offsetof(options, k), "N", NULL,
      "similar: report the N nearest words or points [10]." },
    { "rtol", 0, OPT_TEXT, offsetof(options, rtol), "R", NULL,
      "diff: numbers are equal if |a - b| <= ATOL + R * |b|." },
    { "atol", 0, OPT_TEXT, offsetof(options, atol), "A", NULL,
      "diff: numbers are equal if |a - b| <= A + RTOL * |b|." },
    { "format", 'f', OPT_TEXT, offsetof(options, format), "FORMAT", "@formats",
      "Read the inputs as this format instead of detecting it." },
    { "lenient", 0, OPT_FLAG, offsetof(options, lenient), NULL, NULL,
      "Warn instead of refusing if a file breaks a rule that its format's usual readers do not "
      "check." },
    ALSO_OUT_OPTION(options, save),
    { 0 },
};

static const example examples[] = {
    { "tenfold plan model.safetensors --for hash --parts 64 --json > plan.json", "the plan" },
    { "seq 0 63 | xargs -P4 -I{} tenfold hash --plan plan.json --part {}/64",
      "its parts, in any order, on any machines" },
    { "tenfold finish plan.json", "the result: what 'tenfold hash model.safetensors' prints" },
    { "tenfold plan in.zt --for convert --out out.safetensors --parts 8 --json > plan.json",
      "a file that eight workers write" },
    { "tenfold run plan.json -j 4", "all of it on one machine" },
    { 0 },
};

const command cmd_plan = {
    .name = "plan",
    .args = "FILE...",
    .summary = "cut work on large files into parts for any scheduler",
    .about =
        "Cuts a job into parts that xargs, Slurm, Spark, torchrun or anything else can run: "
        "'tenfold JOB --plan PLAN --part I/N' runs a part, in any order, on any machine that sees "
        "the files, any number of times; 'tenfold finish PLAN' combines the results. The result "
        "has the same bytes and the same hash as that of the plain command, for any N.\n\nThe same "
        "files, options and N give the same plan. Large tensors are cut inside, at the leaves of "
        "the content hash (4 MiB). A worker refuses an input that has changed since planning (exit "
        "3). Planning reads only headers.\n\nIf the layout of a file depends on its content "
        "(compressed or digested tensors, text), the file cannot be written in parts. Then one "
        "part does all the work; the summary then says (whole).",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run_plan,
};
