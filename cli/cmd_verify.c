/* SPDX-License-Identifier: MIT */
/* tenfold verify: checks that files are complete and sound. */
#include "input.h"
#include "jobs.h"
#include "out.h"
#include "progress.h"
#include "table.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUCH ((uint64_t)64 << 20) /* bytes over the network */

typedef struct options {
    input_options in;
    bool json, values, canonical;
    const char *program;
    opt_list select, exclude;
    part_options part;
} options;

/* Collects the reports of the library until the result is known. */
typedef struct found {
    const input *in;
    const options *options;
    progress progress;
    json problems, values, warnings, notes; /* JSON fragments, written to memory */
    char *problems_text, *values_text, *warnings_text, *notes_text;
    size_t problems_n, values_n, warnings_n, notes_n;
    bool verbose;
    bool opened;
    bool reported; /* a mistake in the call, which was reported already */
    bool amount_reported;
    size_t chosen; /* tensors shown by --values */
} found;

static void json_problem(json *j, const tnf_problem *p)
{
    json_open(j, '{');
    json_key(j, "code");
    json_text(j, p->rule ? p->rule : tnf_status_name(p->code));
    json_key(j, "offset");
    if (p->offset == TNF_NO_OFFSET)
        json_null(j);
    else
        json_uint(j, p->offset);
    json_key(j, "tensor");
    if (p->tensor.n)
        json_str(j, p->tensor);
    else
        json_null(j);
    json_key(j, "message");
    json_text(j, p->message);
    json_close(j, '}');
}

/* Prints a problem as text, with the tensor's name unless the message contains it. */
static void problem_line(const char *path, const tnf_problem *p)
{
    char text[512];
    if (p->tensor.n && !strstr(p->message, p->tensor.p))
        snprintf(text, sizeof text, "'%.200s': %s", p->tensor.p, p->message);
    else
        snprintf(text, sizeof text, "%s", p->message);
    file_message(path, "", p->offset, text);
}

static void on_problem(void *ctx, const tnf_problem *p)
{
    found *f = ctx;
    progress_end(&f->progress);
    json_problem(&f->problems, p);
    if (!f->options->json)
        problem_line(f->in->name, p);
}

static void on_warning(void *ctx, const tnf_warning *w)
{
    found *f = ctx;
    progress_end(&f->progress);
    json_text(&f->warnings, w->message);
    if (f->verbose && !f->options->json)
        file_message(f->in->name, "warning: ", w->offset, w->message);
}

static void values_line(FILE *to, const tnf_object *object, const tnf_value_counts *c)
{
    put_name(to, object->name);
    fprintf(to, ": %" PRIu64 " value%s, %" PRIu64 " NaN, %" PRIu64 " infinite, %" PRIu64 " zero",
            c->elements, c->elements == 1 ? "" : "s", c->nan, c->inf, c->zero);
    if (c->subnormal)
        fprintf(to, ", %" PRIu64 " subnormal", c->subnormal);
    if (c->nan + c->inf < c->elements) {
        char min[TNF_INTEGER_TEXT], max[TNF_INTEGER_TEXT], mean[NUMBER_TEXT];
        number_range(min, max, object, c);
        number_f64(mean, c->mean);
        fprintf(to, ", from %s to %s, mean %s", min, max, mean);
    }
    putc_unlocked('\n', to);
}

static void on_values(void *ctx, const tnf_object *object, const tnf_value_counts *c)
{
    found *f = ctx;
    json *j = &f->values;
    if (!glob_chosen(&f->options->select, &f->options->exclude, object->name))
        return;
    f->chosen++;
    if (!f->options->json) {
        values_line(j->to, object, c);
        return;
    }
    json_open(j, '{');
    json_key(j, "name");
    json_str(j, object->name);
    json_counts(j, object, c);
    json_close(j, '}');
}

/* Text output shows only texts, JSON shows all values. */
static void on_note(void *ctx, const char *key, const tnf_value *value)
{
    found *f = ctx;
    if (f->options->json) {
        fputc(',', f->notes.to);
        json_text(&(json) { f->notes.to, false }, key);
        fputc(':', f->notes.to);
        json_value(&(json) { f->notes.to, false }, value);
    } else if (value->kind == TNF_STRING) {
        put_safe(f->notes.to, value->as.s, value->n, false);
        fputc('\n', f->notes.to);
    }
}

/* Announces large downloads before they begin, since they take long and may cost money. */
static void tell_amount(found *f, uint64_t total)
{
    char size[SIZE_TEXT], text[SIZE_TEXT + 40];
    if (f->amount_reported || total < MUCH || f->in->cli->quiet || !tnf_is_url(f->in->path))
        return;
    f->amount_reported = true;
    size_text(size, total);
    snprintf(text, sizeof text, "%s will be read over the network", size);
    file_message(f->in->name, "", TNF_NO_OFFSET, text);
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    found *f = ctx;
    tell_amount(f, total);
    progress_step(&f->progress, done, total);
    return true;
}

/* ----------------------------------------------------------------- report */

static void put_json(const found *f, bool ok, const tnf_verify_result *result)
{
    const tnf_info *info = f->in->info;
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, f->in->path);
    json_key(&j, "ok");
    json_bool(&j, ok);
    json_key(&j, "opened");
    json_bool(&j, f->opened);
    json_key(&j, "format");
    json_text(&j, info ? info->format : NULL);
    json_key(&j, "checked");
    json_uint(&j, result->checked);
    json_key(&j, "undigested");
    json_uint(&j, result->undigested);
    json_key(&j, "problems");
    json_open(&j, '[');
    fwrite(f->problems_text, 1, f->problems_n, stdout);
    json_close(&j, ']');
    json_key(&j, "warnings");
    json_open(&j, '[');
    for (size_t i = 0; info && i < info->nwarnings; i++)
        json_text(&j, info->warnings[i].message);
    if (f->warnings_n && info && info->nwarnings)
        putchar(',');
    fwrite(f->warnings_text, 1, f->warnings_n, stdout);
    json_close(&j, ']');
    fwrite(f->notes_text, 1, f->notes_n, stdout);
    if (f->options->values) {
        json_key(&j, "values");
        json_open(&j, '[');
        fwrite(f->values_text, 1, f->values_n, stdout);
        json_close(&j, ']');
    }
    json_close(&j, '}');
    putchar('\n');
}

/* States how much was checked by digests, since "ok" alone would claim too much. */
static void put_digests(FILE *to, const tnf_verify_result *result)
{
    if (result->checked == 0)
        return;
    if (result->undigested == result->checked)
        fputs("; no digests in the file", to);
    else if (result->undigested)
        fprintf(to, "; %" PRIu64 " of %" PRIu64 " parts have no digest", result->undigested,
                result->checked);
    else
        fputs("; all digests match", to);
}

static void put_indented(FILE *to, const char *p, size_t n)
{
    for (const char *end = p + n; p < end;) {
        const char *next = memchr(p, '\n', (size_t)(end - p));
        fprintf(to, "  %.*s\n", (int)(next - p), p);
        p = next + 1;
    }
}

static void put_lines(const cli_state *cli, const found *f, bool ok,
                      const tnf_verify_result *result)
{
    const tnf_info *info = f->in->info;
    wrapped_text lines;
    if (cli->quiet && !f->values_n)
        return;
    FILE *to = wrap_begin(&lines, stdout);
    put_safe(to, f->in->name, strlen(f->in->name), false);
    fprintf(to, ": %s%s%s", paint_code(cli, ok ? PAINT_GREEN : PAINT_RED), ok ? "ok" : "FAILED",
            paint_code(cli, PAINT_OFF));
    if (info)
        fprintf(to, " (%s, %zu tensor%s", info->format, info->objects,
                info->objects == 1 ? "" : "s");
    if (info && ok)
        put_digests(to, result);
    fputs(info ? ")\n" : "\n", to);
    if (cli->verbose)
        fprintf(to,
                "  %" PRIu64 " part%s checked, %" PRIu64 " without a digest, %" PRIu64
                " problem%s\n",
                result->checked, result->checked == 1 ? "" : "s", result->undigested,
                result->problems, result->problems == 1 ? "" : "s");
    put_indented(to, f->notes_text, f->notes_n);
    put_indented(to, f->values_text, f->values_n);
    wrap_end(&lines, 4);
}

static tnf_status look_at_file(const cli_state *cli, found *f, input *in, const char *path,
                               const tnf_open_options *open, tnf_verify_result *result,
                               tnf_error *error)
{
    tnf_source *source;
    tnf_status status;
    tnf_verify_options how = { .size = sizeof how };
    how.problem = on_problem;
    how.warn = on_warning;
    how.note = on_note;
    how.values = f->options->values ? on_values : NULL;
    how.progress = on_progress;
    how.ctx = f;
    how.canonical = f->options->canonical;
    how.program = f->options->program;
    progress_begin(&f->progress, cli);
    if (input_is_stream(path)) {
        status = input_stream(&source, path, open->access, error);
        result->opening = status;
        if (status == TNF_OK)
            status = tnf_verify_source(result, &in->file, source, open, &how, error);
    } else {
        status = tnf_verify_path(result, &in->file, path, open, &how, error);
    }
    progress_end(&f->progress);
    return status;
}

/* Checks a file and returns the exit code. In JSON, an error that is not the file's fault is listed
 * among the problems. */
static int check_file(const cli_state *cli, found *f, input *in, const char *path,
                      tnf_verify_result *result)
{
    tnf_error error;
    input_how made;
    bool patterns = f->options->select.n + f->options->exclude.n > 0;
    const tnf_open_options *open = input_how_begin(&made, in, cli, &f->options->in, path);
    f->reported = !open;
    if (!open)
        return EXIT_USAGE;
    tnf_status status = look_at_file(cli, f, in, path, open, result, &error);
    input_how_end(&made);
    in->info = in->file ? tnf_file_info(in->file) : NULL;
    f->opened = result->opening == TNF_OK;
    if (status == TNF_OK && f->opened && patterns && f->chosen == 0 && !result->problems) {
        f->reported = true;
        return nothing_selected(in->name, f->options->select.n, f->options->exclude.n);
    }
    if (status == TNF_OK)
        return !f->opened ? EXIT_BAD : result->problems > 0 ? EXIT_DIFFERS : EXIT_DONE;
    bool no_form = f->options->canonical && status == TNF_EUNSUPPORTED &&
                   strstr(error.message, "has no canonical form");
    if ((status == TNF_EINVAL || no_form) && f->opened) { /* a mistake in the call */
        f->reported = true;
        file_error(in->name, &error);
        return EXIT_USAGE;
    }
    result->problems++;
    json_problem(&f->problems, &(tnf_problem) { .code = status,
                                                .offset = error.offset,
                                                .message = error.message,
                                                .rule = error.rule });
    if (!f->options->json)
        file_error(in->name, &error);
    return exit_code(status);
}

static bool begin_texts(found *f)
{
    f->problems.to = open_memstream(&f->problems_text, &f->problems_n);
    f->values.to = open_memstream(&f->values_text, &f->values_n);
    f->warnings.to = open_memstream(&f->warnings_text, &f->warnings_n);
    f->notes.to = open_memstream(&f->notes_text, &f->notes_n);
    return f->problems.to && f->values.to && f->warnings.to && f->notes.to;
}

static void end_texts(found *f)
{
    FILE *const all[] = { f->problems.to, f->values.to, f->warnings.to, f->notes.to };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            fclose(all[i]);
}

static int verify_input(const cli_state *cli, const options *o, const char *path)
{
    input in = { 0 };
    found f = { .in = &in, .options = o, .verbose = cli->verbose && !cli->quiet };
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    int code = EXIT_IO;
    bool ready = begin_texts(&f);
    if (ready)
        code = check_file(cli, &f, &in, path, &result);
    else
        memory_error();
    end_texts(&f);
    bool known = !f.reported && ready;
    if (known && o->json)
        put_json(&f, code == EXIT_DONE, &result);
    else if (known)
        put_lines(cli, &f, code == EXIT_DONE, &result);
    flush_out();
    free(f.problems_text);
    free(f.values_text);
    free(f.warnings_text);
    free(f.notes_text);
    input_close(&in);
    return code;
}

static int run_verify(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    int worst = EXIT_DONE;
    if (o->select.n + o->exclude.n && !o->values)
        return usage_error("verify: --select and --exclude need --values, since they choose among "
                           "its lines");
    for (int i = 0; i < argc; i++) {
        int code = verify_input(cli, o, argv[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print a JSON object for each FILE, each on its own line." },
    { "values", 0, OPT_FLAG, offsetof(options, values), NULL, NULL,
      "Also read every number: count NaN, infinities, zeros and subnormals of each tensor, and "
      "print its smallest and largest value and its mean." },
    { "canonical", 0, OPT_FLAG, offsetof(options, canonical), NULL, NULL,
      "Also check that each file has the canonical form of its format. Every difference is "
      "reported as a problem." },
    { "for", 0, OPT_TEXT, offsetof(options, program), "PROGRAM", NULL,
      "Also check whether PROGRAM (llama.cpp or gguf-py) would load each file. Every reason why it "
      "would not is reported as a problem. Files are opened as with --lenient: if a file breaks a "
      "rule of its format that the program does not check, this is only a warning." },
    CHOICE_OPTIONS(options, "With --values, show only the tensors whose name matches, as in "
                            "'tenfold ls'. May be repeated."),
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    PART_OPTIONS(options, part),
    ALSO_IN_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold verify model.safetensors", "is it complete and sound?" },
    { "tenfold verify model/", "is a model in several files complete, and does its index agree?" },
    { "tenfold verify --json *.safetensors | jq .ok", "many files, for a script" },
    { "tenfold verify --values model.gptrs", "are there NaNs in it?" },
    { "tenfold verify --canonical model.zt", "does it have the canonical form?" },
    { "tenfold verify --for llama.cpp model.gguf", "will llama.cpp load it, and if not, why?" },
    { 0 },
};

const command cmd_verify = {
    .name = "verify",
    .args = "FILE...",
    .summary = "check that files are complete and sound",
    .about = "Checks the structure of each file, the place and size of all tensors, the stored "
             "digests, and the rules that the data must follow. For a model in several files, "
             "given by its directory or index, it also checks the following: all shards exist; the "
             "index and the shards name the same tensors, each in one place; an index names each "
             "shard in the directory; the total size is right. A URL is read completely; if the "
             "file has no digests of its own, it is compared with the digest that the server "
             "gives, if any.\n\nExits with 0 if everything is right, 1 if there is a problem, and "
             "4 if a file cannot be opened because it is damaged or not supported.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .part = offsetof(options, part) + 1,
    .run = run_verify,
};
