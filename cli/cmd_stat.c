/* SPDX-License-Identifier: MIT */
/* tenfold stat: shows types, sizes and statistics of values, as text or as a page. */
#include "jobs.h"
#include "progress.h"
#include "stat.h"
#include "stop.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
    input_options in;
    opt_list select, exclude;
    const char *html, *depth, *heat;
    bool json, ascii, sizes, force;
    part_options part;
} options;

typedef struct job {
    progress progress; /* first, for progress_watch() */
    const cli_state *cli;
    const options *options;
    input in;
    stat_sums sums;
    const stat_view *view;
    void *shown;
    int code;
} job;

/* ----------------------------------------------------------------- reading */

static bool on_wanted(void *ctx, const tnf_object *object)
{
    const options *o = ((job *)ctx)->options;
    return glob_chosen(&o->select, &o->exclude, object->name);
}

static void on_tensor(void *ctx, const tnf_stat *stat)
{
    job *j = ctx;
    progress_end(&j->progress);
    j->view->tensor(j->shown, stat);
}

static void on_problem(void *ctx, const tnf_object *object, const tnf_error *problem)
{
    job *j = ctx;
    char text[512];
    progress_end(&j->progress);
    snprintf(text, sizeof text, "'%.200s': %s", object->name.p, problem->message);
    file_message(j->in.name, "", problem->offset, text);
    j->code = exit_code(problem->status);
}

static int read_values(job *j)
{
    tnf_error error;
    stop_state before;
    tnf_stat_options how = { .size = sizeof how };
    how.wanted = on_wanted;
    how.tensor = on_tensor;
    how.problem = on_problem;
    how.progress = progress_watch;
    how.ctx = j;
    how.bins = j->view->bins;
    stop_catch(&before);
    progress_begin(&j->progress, j->cli);
    tnf_status status = tnf_stat_file(j->in.file, &how, &error);
    progress_end(&j->progress);
    stop_release(&before, status == TNF_ECANCELLED);
    return status == TNF_OK ? j->code : file_error(j->in.name, &error);
}

static int show_stats(job *j, const stat_view *view, void *shown)
{
    j->view = view;
    j->shown = shown;
    view->begin(shown, &j->sums);
    int code = j->options->sizes ? EXIT_DONE : read_values(j);
    view->end(shown);
    return code;
}

/* -------------------------------------------------------------------- page */

/* The file appears under its name only when it is complete. */
static int save_page(const options *o, const char *text, size_t n)
{
    tnf_sink *sink;
    tnf_error error;
    tnf_status status = tnf_sink_file(&sink, o->html, o->force ? TNF_SINK_REPLACE : 0, &error);
    if (status == TNF_OK)
        status = tnf_sink_write(sink, text, n, &error);
    if (status == TNF_OK)
        status = tnf_sink_commit(sink, &error);
    tnf_sink_close(sink);
    return status == TNF_OK ? EXIT_DONE : file_error(o->html, &error);
}

static int as_page(job *j)
{
    char *text = NULL;
    size_t n = 0;
    const options *o = j->options;
    bool out = !strcmp(o->html, "-");
    if (!out && !o->force && access(o->html, F_OK) == 0) {
        file_message(o->html, "", TNF_NO_OFFSET, "already exists; use --force to replace it");
        return EXIT_IO;
    }
    stat_html h = { .in = &j->in,
                    .values = !o->sizes,
                    .select = &o->select,
                    .exclude = &o->exclude,
                    .depth = o->depth ? (unsigned)strtoul(o->depth, NULL, 10) : 0,
                    .heat = o->heat };
    if (o->heat && !tnf_find(j->in.file, o->heat)) {
        char why[300];
        snprintf(why, sizeof why, "no tensor '%.250s' for --heat", o->heat);
        file_message(j->in.name, "", TNF_NO_OFFSET, why);
        return EXIT_USAGE;
    }
    h.to = open_memstream(&text, &n);
    if (!h.to)
        return memory_error();
    int code = show_stats(j, &stat_view_html, &h);
    bool good = fclose(h.to) == 0 && text;
    if (!good)
        code = memory_error();
    else if (code == EXIT_DONE || code == EXIT_BAD) {
        stop_state before; /* a signal waits until the temporary file is gone */
        stop_catch(&before);
        int saved = out ? EXIT_DONE : save_page(o, text, n);
        stop_release(&before, false);
        if (out)
            fwrite(text, 1, n, stdout);
        code = saved == EXIT_DONE ? code : saved;
    }
    free(text);
    return code;
}

/* ----------------------------------------------------------------- command */

/* Can the terminal show block characters? */
static bool has_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *value = NULL;
    for (size_t i = 0; i < 3 && !(value && *value); i++)
        value = getenv(names[i]);
    return value && (strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") ||
                     strstr(value, "utf-8"));
}

static int stat_input(job *j)
{
    const options *o = j->options;
    unsigned depth = o->depth ? (unsigned)strtoul(o->depth, NULL, 10) : 0;
    if (!stat_sums_make(&j->sums, &j->in, &o->select, &o->exclude, depth))
        return memory_error();
    if (o->select.n + o->exclude.n && j->sums.tensors == 0)
        return nothing_selected(j->in.name, o->select.n, o->exclude.n);
    if (o->html)
        return as_page(j);
    if (o->json) {
        stat_json s = { .in = &j->in, .values = !o->sizes, .json = { stdout, false } };
        return show_stats(j, &stat_view_json, &s);
    }
    stat_text t = {
        .cli = j->cli, .in = &j->in, .ascii = o->ascii || !has_utf8(), .values = !o->sizes
    };
    return show_stats(j, &stat_view_text, &t);
}

static int run_stat(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    (void)argc;
    if (o->json && o->html)
        return usage_error("stat: --json and --html cannot be combined");
    if (o->heat && !o->html)
        return usage_error("stat: --heat needs --html");
    if (o->depth &&
        (strspn(o->depth, "0123456789") != strlen(o->depth) || strlen(o->depth) > 3 || !*o->depth))
        return usage_error("stat: --depth takes a number, not '%s'", o->depth);
    job j = { .cli = cli, .options = o };
    int code = input_open(&j.in, cli, &o->in, argv[0]);
    if (code == EXIT_DONE)
        code = stat_input(&j);
    stat_sums_free(&j.sums);
    input_close(&j.in);
    return code;
}

static const opt table[] = {
    { "select", 0, OPT_LIST, offsetof(options, select), "GLOB", NULL,
      "Show only the tensors whose name matches, as in 'tenfold ls'. May be repeated." },
    { "exclude", 0, OPT_LIST, offsetof(options, exclude), "GLOB", NULL,
      "Leave out the tensors whose name matches. May be repeated." },
    { "sizes", 's', OPT_FLAG, offsetof(options, sizes), NULL, NULL,
      "Show types and sizes only, and read no tensor." },
    { "depth", 0, OPT_TEXT, offsetof(options, depth), "N", NULL,
      "Group tensors whose names begin with the same N pieces; dots and slashes separate pieces. "
      "Without it, names are cut after their first number ('layers.0'), or before their last "
      "piece." },
    { "html", 0, OPT_TEXT, offsetof(options, html), "FILE", NULL,
      "Write a page for a browser to FILE instead. It needs no other files." },
    { "heat", 0, OPT_TEXT, offsetof(options, heat), "NAME", NULL,
      "Draw the values of this tensor on the page of --html, as colours." },
    { "force", 0, OPT_FLAG, offsetof(options, force), NULL, NULL, "Replace FILE if it exists." },
    { "ascii", 0, OPT_FLAG, offsetof(options, ascii), NULL, NULL,
      "Draw with ASCII characters. This is the default if the locale is not UTF-8." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL, "Print one JSON document." },
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    PART_OPTIONS(options, part),
    ALSO_IN_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold stat model.safetensors", "types, sizes by layer, values of each tensor" },
    { "tenfold stat model.zt --select '*.weight' --html model.html", "a page of some of them" },
    { "tenfold stat --sizes model/", "what takes the space, without reading a tensor" },
    { "tenfold stat model.zt --json | jq '.tensors[] | select(.nan > 0) | .name'",
      "which have NaNs?" },
    { 0 },
};

const command cmd_stat = {
    .name = "stat",
    .args = "FILE",
    .summary = "show types, sizes and statistics of values",
    .about =
        "Shows how many bytes of a file belong to each type and layer. For each dense tensor it "
        "shows the smallest and largest value, mean, standard deviation, zeros, a histogram, and "
        "how many values are NaN, infinite or subnormal. The other figures ignore NaN and "
        "infinities. Each tensor is read once, by several threads, with little memory.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .part = offsetof(options, part) + 1,
    .run = run_stat,
};
