/* SPDX-License-Identifier: MIT */
/* tenfold split: one model in several files. */
#include "input.h"
#include "saving.h"
#include "stop.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/shards.h>

#define DEFAULT_SIZE "5GB" /* Hugging Face's */

typedef struct options {
    input_options in;
    saving_options save;
    const char *out, *max_size, *name;
} options;

typedef struct job {
    const cli_state *cli;
    const options *options;
    input in;
    tnf_builder *builder;
    saving saving;
    json files; /* to memory: lines, or JSON */
    char *text;
    size_t n;
    const char *format;
    char *clash;    /* a file to write that is one of those that are read */
    size_t files_n; /* that are written, less the index */
} job;

/* ------------------------------------------------------------------- size */

/* "5GB", "2GiB", "500M", "1000": K, M, G, T are powers of 1000, with "i" of 1024. */
static bool parse_size(uint64_t *out, const char *text)
{
    static const char letters[] = "KMGT";
    char *end;
    errno = 0;
    uint64_t n = strtoull(text, &end, 10), base = 1000;
    if (text[0] < '0' || text[0] > '9' || errno)
        return false;
    const char *letter = *end ? strchr(letters, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    if (letter) {
        end++;
        base = *end == 'i' ? 1024 : 1000;
        end += *end == 'i';
    }
    end += *end == 'B' || *end == 'b';
    for (const char *p = letters; letter && p <= letter; p++) {
        if (n > UINT64_MAX / base)
            return false;
        n *= base;
    }
    *out = n;
    return *end == 0 && n > 0;
}

/* ---------------------------------------------------------------- telling */

static void note_clash(job *j, const char *name)
{
    size_t n = strlen(j->options->out) + strlen(name) + 2;
    char *path = malloc(n);
    if (!path)
        return;
    snprintf(path, n, "%s/%s", j->options->out, name);
    if (!j->clash && tnf_file_reads(j->in.file, path))
        j->clash = path;
    else
        free(path);
}

static void on_file(void *ctx, const tnf_split_file *f)
{
    job *j = ctx;
    json *to = &j->files;
    char size[SIZE_TEXT];
    note_clash(j, f->name);
    j->files_n += !f->index;
    if (!j->options->save.json) {
        size_text(size, f->bytes);
        put_safe(to->to, f->name, strlen(f->name), true);
        fprintf(to->to, "  %zu tensor%s, %s%s\n", f->tensors, f->tensors == 1 ? "" : "s", size,
                f->index ? " in all" : "");
        return;
    }
    json_line(to);
    json_open(to, '{');
    json_key(to, "name");
    json_text(to, f->name);
    json_key(to, "tensors");
    json_uint(to, f->tensors);
    json_key(to, "bytes");
    json_uint(to, f->bytes);
    json_key(to, "index");
    json_bool(to, f->index);
    json_close(to, '}');
}

static void on_stray(void *ctx, tnf_stray what, const char *path, const char *belongs)
{
    char text[600];
    (void)ctx;
    if (what == TNF_STRAY_NOT_BACK)
        snprintf(text, sizeof text, "could not be put back: rename it to %s", belongs);
    else if (what == TNF_STRAY_KEPT)
        snprintf(text, sizeof text,
                 "is kept: it was %s, and what is there now may not survive a power cut", belongs);
    else
        snprintf(text, sizeof text, "could not be removed, and is of no use");
    file_message(path, "", TNF_NO_OFFSET, text);
}

static void print_files(job *j)
{
    fflush(j->files.to);
    if (!j->options->save.json) {
        if (!j->cli->quiet)
            fwrite(j->text, 1, j->n, stdout);
        return;
    }
    json out = { stdout, false };
    json_open(&out, '{');
    json_key(&out, "in");
    json_text(&out, j->in.path);
    json_key(&out, "out");
    json_text(&out, j->options->out);
    json_key(&out, "format");
    json_text(&out, j->format);
    json_key(&out, "files");
    json_open(&out, '[');
    fwrite(j->text, 1, j->n, stdout);
    json_close(&out, ']');
    json_close(&out, '}');
    putchar('\n');
}

/* Is it a file of a model in another number of files? "model-00001-of-00002.zt" */
static bool is_older(const job *j, const char *name)
{
    static const char like[] = "-ddddd-of-ddddd.";
    const char *stem = j->options->name ? j->options->name : "model";
    size_t n = strlen(stem);
    if (strncmp(name, stem, n) != 0)
        return false;
    for (size_t i = 0; like[i]; i++)
        if (like[i] == 'd' ? name[n + i] < '0' || name[n + i] > '9' : name[n + i] != like[i])
            return false;
    return strtoul(name + n + strlen("-ddddd-of-"), NULL, 10) != j->files_n;
}

/* What --force has left of an older model. */
static void note_older(const job *j)
{
    char first[256] = "", text[512];
    size_t n = 0;
    DIR *dir = j->options->save.force && !j->options->save.dry_run && !j->cli->quiet
                   ? opendir(j->options->out)
                   : NULL;
    for (const struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
        if (!is_older(j, d->d_name))
            continue;
        if (n++ == 0 || strcmp(d->d_name, first) < 0)
            snprintf(first, sizeof first, "%s", d->d_name);
    }
    if (dir)
        closedir(dir);
    if (n == 0)
        return;
    snprintf(text, sizeof text,
             "%s%s of an older model: programs that take every file would load "
             "%s, too",
             first, n > 1 ? " and others are left" : " is left", n > 1 ? "them" : "it");
    file_message(j->options->out, "", TNF_NO_OFFSET, text);
}

/* ----------------------------------------------------------------- saving */

static int split_error(const job *j, tnf_status status, const tnf_error *error)
{
    tnf_error more = *error;
    if (status == TNF_EEXISTS)
        snprintf(more.message, sizeof more.message, "%.200s; --force replaces it", error->message);
    if (status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_EDIGEST)
        return file_error(j->in.name, error);
    return file_error(j->options->out, &more);
}

/* First dry, to see whether all is well, then in earnest. */
static tnf_status split_twice(job *j, tnf_split_options *how, tnf_save_options *each,
                              tnf_error *error)
{
    bool earnest = !each->dry_run;
    each->dry_run = true;
    tnf_status status = tnf_split(j->builder, j->options->out, how, error);
    if (status != TNF_OK || !earnest || j->clash)
        return status;
    each->dry_run = false;
    each->plan = NULL;
    how->file = NULL;
    return tnf_split(j->builder, j->options->out, how, error);
}

static int save(job *j, tnf_split_options *how, tnf_save_options *each)
{
    tnf_error error;
    stop_state before;
    saving_listen(&j->saving, each);
    how->save = each;
    how->file = on_file;
    how->stray = on_stray;
    how->ctx = j;
    progress_begin(&j->saving.progress, j->cli);
    stop_catch(&before);
    tnf_status status = split_twice(j, how, each, &error);
    progress_end(&j->saving.progress);
    stop_release(&before, status == TNF_ECANCELLED);
    plan_end(&j->saving.plan);
    if (j->clash)
        return usage_error("split: %s is one of the files that are read: it would be lost",
                           j->clash);
    if (status == TNF_OK || status == TNF_EUNSYNCED) {
        print_files(j);
        note_older(j);
        return status == TNF_OK ? EXIT_DONE : file_error(j->options->out, &error);
    }
    if (status == TNF_ELOSSY)
        plan_refused(&j->saving.plan);
    return split_error(j, status, &error);
}

static int split(job *j, uint64_t max)
{
    const options *o = j->options;
    tnf_error error;
    format_options writer;
    tnf_split_options how = { .size = sizeof how, .max_bytes = max, .stem = o->name };
    tnf_save_options each = { .size = sizeof each };
    how.format = j->format;
    saving_fill(&each, &o->save);
    if (!format_options_parse(&writer, &o->save.writer))
        return EXIT_USAGE;
    each.options = writer.items;
    each.noptions = writer.n;
    plan_style style = j->cli->verbose ? PLAN_VERBOSE : PLAN_KEEP;
    if (o->save.dry_run && !o->save.json)
        style = PLAN_TEXT;
    plan_begin(&j->saving.plan, style, j->cli, j->in.path, o->out, j->format);
    int code = tnf_builder_add_file(j->builder, j->in.file, &error) == TNF_OK
                   ? save(j, &how, &each)
                   : file_error(j->in.name, &error);
    plan_end(&j->saving.plan);
    plan_free(&j->saving.plan);
    format_options_free(&writer);
    return code;
}

/* ---------------------------------------------------------------- command */

/* The format to write: what was asked for, or the input's own. */
static int choose_format(job *j, tnf_format_info *f)
{
    if (!tnf_format_named(f, j->options->save.to ? j->options->save.to : j->in.info->format))
        return EXIT_USAGE;
    if (!(f->caps & TNF_CAN_WRITE))
        return usage_error("split: %s can be read but not written: give another format with -t",
                           f->name);
    j->format = f->name;
    return EXIT_DONE;
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    const char *size = o->max_size ? o->max_size : DEFAULT_SIZE;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    tnf_error error;
    uint64_t max;
    job j = { .cli = cli, .options = o };
    (void)argc;
    if (!o->out || !strcmp(o->out, "-"))
        return usage_error("split: where to? give -o DIR");
    if (!parse_size(&max, size))
        return usage_error("split: --max-size takes a size as 5GB, 2GiB or 500M, not '%s'", size);
    if (saving_check(cli, &o->save, NULL) != EXIT_DONE)
        return EXIT_USAGE;
    int code = input_open(&j.in, cli, &o->in, argv[0]);
    if (code != EXIT_DONE)
        return code;
    j.files.to = open_memstream(&j.text, &j.n);
    code = j.files.to ? choose_format(&j, &f) : usage_error("out of memory");
    if (code == EXIT_DONE && tnf_builder_new(&j.builder, NULL, &error) != TNF_OK)
        code = file_error(j.in.name, &error);
    if (code == EXIT_DONE)
        code = split(&j, max);
    if (j.files.to)
        fclose(j.files.to);
    free(j.text);
    free(j.clash);
    tnf_builder_free(j.builder);
    input_close(&j.in);
    return code;
}

static const opt table[] = {
    { "output", 'o', OPT_TEXT, offsetof(options, out), "DIR", NULL,
      "The directory to write to; it is made if it is not there." },
    { "max-size", 0, OPT_TEXT, offsetof(options, max_size), "SIZE", NULL,
      "How large the tensors of one file may be together: 5GB, 500M, 2GiB, a number of bytes. A "
      "larger tensor has a file to itself. The default is " DEFAULT_SIZE "." },
    TO_OPTION(options, save, "that of IN."),
    { "name", 0, OPT_TEXT, offsetof(options, name), "NAME", NULL,
      "What the names of the files begin with; model, if it is not given." },
    WRITER_OPTION(options, save, "option", 0),
    LOSS_OPTION(options, save),
    { "dry-run", 'n', OPT_FLAG, offsetof(options, save.dry_run), NULL, NULL,
      "Print what would become of each thing, and the files, and write nothing." },
    { "json", 0, OPT_FLAG, offsetof(options, save.json), NULL, NULL,
      "Print the files as one JSON document." },
    FORCE_OPTION(options, save, "Replace files of these names."),
    NO_SYNC_OPTION(options, save),
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "IN"),
    { 0 },
};

static const example examples[] = {
    { "tenfold split model.safetensors -o model --max-size 5GB",
      "model-00001-of-0000N.safetensors …, with an index" },
    { "tenfold split -n model.zt -o parts --max-size 500M", "which files would it be?" },
    { "tenfold split sharded/ -o again --max-size 2GB -t ztensor", "other shards" },
    { 0 },
};

const command cmd_split = {
    .name = "split",
    .args = "IN -o DIR",
    .summary = "write a model as several files",
    .about =
        "Writes the tensors of IN to several files in DIR, in their order, each filled until the "
        "next tensor does not fit; tensors that share their bytes stay in one file. safetensors "
        "files get an index, model.safetensors.index.json, as Hugging Face has it; zTensor 2 "
        "files one that is a zTensor file itself, model.zt. Open the index, or DIR, and it is "
        "the whole model, with the same hash. Files of other formats are only numbered. If "
        "everything fits into one file, there is one file and no index.\n\nAll files are "
        "written before the first appears under its name, and the index comes last; if anything "
        "fails, none is left. 'tenfold merge' makes one file of them again.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
