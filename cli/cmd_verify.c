/* SPDX-License-Identifier: MIT */
/* tenfold verify: is a file what it says it is? */
#include "input.h"
#include "out.h"
#include "progress.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    input_options in;
    bool json, values, canonical;
} options;

/* What the library tells while it looks, kept until all is known. */
typedef struct found {
    const input *in;
    const options *options;
    progress progress;
    json problems, values, warnings; /* JSON fragments, written to memory */
    char *problems_text, *values_text, *warnings_text;
    size_t problems_n, values_n, warnings_n;
    bool verbose;
    bool opened;
    bool told; /* a mistake in the call, which was said already */
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

/* A problem for people, with the tensor's name unless the message has it already. */
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
        char min[NUMBER_TEXT], max[NUMBER_TEXT], mean[NUMBER_TEXT];
        number_bound(min, object, c->min, c->min_integer);
        number_bound(max, object, c->max, c->max_integer);
        number_f64(mean, c->mean);
        fprintf(to, ", from %s to %s, mean %s", min, max, mean);
    }
    putc_unlocked('\n', to);
}

static void on_values(void *ctx, const tnf_object *object, const tnf_value_counts *c)
{
    found *f = ctx;
    json *j = &f->values;
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

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    found *f = ctx;
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
    if (f->options->values) {
        json_key(&j, "values");
        json_open(&j, '[');
        fwrite(f->values_text, 1, f->values_n, stdout);
        json_close(&j, ']');
    }
    json_close(&j, '}');
    putchar('\n');
}

static void put_lines(const cli_state *cli, const found *f, bool ok,
                      const tnf_verify_result *result)
{
    const tnf_info *info = f->in->info;
    if (cli->quiet && !f->values_n)
        return;
    put_safe(stdout, f->in->name, strlen(f->in->name), false);
    printf(": %s%s%s", painted(cli, ok ? PAINT_GREEN : PAINT_RED), ok ? "ok" : "FAILED",
           painted(cli, PAINT_OFF));
    if (info)
        printf(" (%s, %zu tensor%s)", info->format, info->objects, info->objects == 1 ? "" : "s");
    putchar('\n');
    if (cli->verbose)
        printf("  %" PRIu64 " part%s checked, %" PRIu64 " without a digest, %" PRIu64
               " problem%s\n",
               result->checked, result->checked == 1 ? "" : "s", result->undigested,
               result->problems, result->problems == 1 ? "" : "s");
    for (const char *p = f->values_text, *end = p + f->values_n; p < end;) {
        const char *next = memchr(p, '\n', (size_t)(end - p));
        printf("  %.*s\n", (int)(next - p), p);
        p = next + 1;
    }
}

static tnf_status look(const cli_state *cli, found *f, bool canonical, tnf_verify_result *result,
                       tnf_error *error)
{
    tnf_verify_options how = { .size = sizeof how };
    how.problem = on_problem;
    how.warn = on_warning;
    how.values = f->options->values ? on_values : NULL;
    how.progress = on_progress;
    how.ctx = f;
    how.canonical = canonical;
    progress_begin(&f->progress, cli);
    tnf_status status = tnf_verify(result, f->in->file, &how, error);
    progress_end(&f->progress);
    return status;
}

/* A model in several files does not open, which tells only the first of its faults: all that are
 * found when it is opened for salvage are told in its place. False: there are none, or it is one
 * file. */
static bool look_further(const cli_state *cli, found *f, input *in, const char *path,
                         tnf_verify_result *result)
{
    cli_state silent = *cli; /* warnings were told */
    input_options salvage = f->options->in;
    tnf_error error;
    int code;
    silent.verbose = silent.trace = false;
    salvage.salvage = true;
    if (strcmp(path, "-") == 0 || input_try(in, &silent, &salvage, path, &code, &error) != TNF_OK ||
        code != EXIT_DONE)
        return false;
    if (in->info->shards == 0) {
        input_close(in);
        in->info = NULL;
        return false;
    }
    return look(cli, f, false, result, &error) == TNF_OK && result->problems > 0;
}

/* Opens and checks; gives the exit code. Faults of the file are problems like any other. */
static int check(const cli_state *cli, found *f, input *in, const char *path,
                 tnf_verify_result *result)
{
    tnf_error error;
    int code;
    tnf_status status = input_try(in, cli, &f->options->in, path, &code, &error);
    if (code != EXIT_DONE) {
        f->told = true;
        return code;
    }
    f->opened = status == TNF_OK;
    if (f->opened)
        status = look(cli, f, f->options->canonical, result, &error);
    if (status == TNF_OK)
        return result->problems > 0 ? EXIT_DIFFERS : EXIT_DONE;
    /* a shard that is gone is a fault of the model, not of the system */
    bool gone = status == TNF_ENOTFOUND && error.offset != TNF_NO_OFFSET;
    code = gone ? EXIT_BAD : exit_code(status);
    if (!f->opened && code == EXIT_BAD && look_further(cli, f, in, path, result))
        return code;
    result->problems++;
    json_problem(&f->problems, &(tnf_problem) { .code = status,
                                                .offset = error.offset,
                                                .message = error.message,
                                                .rule = error.rule });
    if (!f->options->json)
        file_error(in->name, &error);
    return code;
}

static bool begin_texts(found *f)
{
    f->problems.to = open_memstream(&f->problems_text, &f->problems_n);
    f->values.to = open_memstream(&f->values_text, &f->values_n);
    f->warnings.to = open_memstream(&f->warnings_text, &f->warnings_n);
    return f->problems.to && f->values.to && f->warnings.to;
}

static void end_texts(found *f)
{
    FILE *const all[] = { f->problems.to, f->values.to, f->warnings.to };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            fclose(all[i]);
}

static int verify(const cli_state *cli, const options *o, const char *path)
{
    input in = { 0 };
    found f = { .in = &in, .options = o, .verbose = cli->verbose && !cli->quiet };
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    int code = EXIT_IO;
    bool ready = begin_texts(&f);
    if (ready)
        code = check(cli, &f, &in, path, &result);
    else
        usage_error("out of memory");
    end_texts(&f);
    bool known = !f.told && ready;
    if (known && o->json)
        put_json(&f, code == EXIT_DONE, &result);
    else if (known)
        put_lines(cli, &f, code == EXIT_DONE, &result);
    flush_out();
    free(f.problems_text);
    free(f.values_text);
    free(f.warnings_text);
    input_close(&in);
    return code;
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    int worst = EXIT_DONE;
    for (int i = 0; i < argc; i++) {
        int code = verify(cli, opts, argv[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print a JSON object for each FILE, each on a line of its own." },
    { "values", 0, OPT_FLAG, offsetof(options, values), NULL, NULL,
      "Read every number, too: count NaN, infinities, zeros and subnormals of each tensor and tell "
      "its smallest and largest value and its mean." },
    { "canonical", 0, OPT_FLAG, offsetof(options, canonical), NULL, NULL,
      "Is each file also in the canonical form of its format, the one way to write its content? "
      "Every departure is a problem." },
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold verify model.safetensors", "is it complete and sound?" },
    { "tenfold verify model/", "is a model in several files complete, and does its index agree?" },
    { "tenfold verify --json *.safetensors | jq .ok", "the same of many, for a script" },
    { "tenfold verify --values model.gptrs", "are there NaNs in it?" },
    { "tenfold verify --canonical model.zt", "is it to the byte what its content asks for?" },
    { 0 },
};

const command cmd_verify = {
    .name = "verify",
    .args = "FILE...",
    .summary = "check that files are complete and sound",
    .about =
        "Checks the structure of each file, that all of its tensors lie within it and have "
        "the size that their shape asks for, the digests that it stores, and the rules that "
        "its data must keep. A directory or an index stands for a model in several files: then "
        "also that all shards are there, that the index and the shards name the same tensors, "
        "each in one place, that no shard lies beside them that no index names, and "
        "that the total size is right. Exits with 0 if all is well, 1 if something does not "
        "verify, 4 "
        "if a file cannot be opened because it is damaged or not supported.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
