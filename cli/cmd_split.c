/* SPDX-License-Identifier: MIT */
/* tenfold split: writes one model as several files. */
#include "input.h"
#include "saving.h"
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
    choosing choosing;
} options;

typedef struct job {
    const cli_state *cli;
    const options *options;
    input in;
    json files; /* written to memory: lines, or JSON */
    char *text;
    size_t n;
    size_t files_n; /* files written, without the index */
} job;

/* -------------------------------------------------------------- reporting */

static void on_file(void *ctx, const tnf_split_file *f)
{
    job *j = ctx;
    json *to = &j->files;
    char size[SIZE_TEXT];
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
        snprintf(text, sizeof text, "could not be restored; rename it to %s", belongs);
    else if (what == TNF_STRAY_KEPT)
        snprintf(
            text, sizeof text,
            "this is the old %s, which is kept because a power cut may still destroy the new one",
            belongs);
    else
        snprintf(text, sizeof text, "could not be removed; it is not needed");
    file_message(path, "", TNF_NO_OFFSET, text);
}

static void print_files(job *j, const char *format)
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
    json_text(&out, format);
    json_key(&out, "files");
    json_open(&out, '[');
    fwrite(j->text, 1, j->n, stdout);
    json_close(&out, ']');
    json_close(&out, '}');
    putchar('\n');
}

/* Does the file belong to a model of another number of files? "model-00001-of-00002.zt" */
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

/* Warns of files that --force has left of an older model. */
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
             "%s%s from an older model; a program that loads all files of the directory would load "
             "%s, too",
             first, n > 1 ? " and others remain" : " remains", n > 1 ? "them" : "it");
    file_message(j->options->out, "", TNF_NO_OFFSET, text);
}

/* ----------------------------------------------------------------- command */

static int split_input(job *j, uint64_t max)
{
    const options *o = j->options;
    tnf_split_options how = { .size = sizeof how, .max_bytes = max, .stem = o->name };
    saving s = { .cli = j->cli, .options = &o->save, .inputs = &j->in, .n = 1, .out = o->out };
    how.file = on_file;
    how.stray = on_stray;
    how.ctx = j;
    s.how.mode = TNF_CONVERT_SPLIT;
    s.how.split = &how;
    s.choosing = &o->choosing;
    s.quiet_plan = o->save.json;
    int code = saving_run(&s);
    if (was_done(s.status)) {
        print_files(j, s.report ? s.report->format : NULL);
        note_older(j);
    }
    saving_free(&s);
    return code;
}

static int run_split(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    const char *size = o->max_size ? o->max_size : DEFAULT_SIZE;
    uint64_t max;
    job j = { .cli = cli, .options = o };
    (void)argc;
    if (!o->out || !strcmp(o->out, "-"))
        return usage_error("split: the output is missing; give -o DIR");
    if (!size_parse(&max, size))
        return usage_error("split: --max-size takes a size such as 5GB, 2GiB or 500M, not '%s'",
                           size);
    if (saving_check(cli, &o->save, NULL, false) != EXIT_DONE)
        return EXIT_USAGE;
    int code = input_open(&j.in, cli, &o->in, argv[0]);
    if (code != EXIT_DONE)
        return code;
    j.files.to = open_memstream(&j.text, &j.n);
    code = j.files.to ? split_input(&j, max) : memory_error();
    if (j.files.to)
        fclose(j.files.to);
    free(j.text);
    input_close(&j.in);
    return code;
}

static const opt table[] = {
    { "output", 'o', OPT_TEXT, offsetof(options, out), "DIR", NULL,
      "The directory to write to; it is created if it does not exist." },
    { "max-size", 0, OPT_TEXT, offsetof(options, max_size), "SIZE", NULL,
      "The largest size of the tensors in one file: 5GB, 500M, 2GiB, or a number of bytes. A "
      "larger tensor gets its own file. The default is " DEFAULT_SIZE "." },
    TO_OPTION(options, save, "the format of IN is used."),
    { "name", 0, OPT_TEXT, offsetof(options, name), "NAME", NULL,
      "The beginning of the names of the files [model]." },
    CHOOSING_OPTIONS(options, choosing),
    CAST_OPTIONS(options, save),
    WRITER_OPTION(options, save, "option", 0),
    LOSS_OPTION(options, save),
    { "dry-run", 'n', OPT_FLAG, offsetof(options, save.dry_run), NULL, NULL,
      "Print the plan and the files, and write nothing." },
    { "json", 0, OPT_FLAG, offsetof(options, save.json), NULL, NULL,
      "Print the files as one JSON document." },
    FORCE_OPTION(options, save, "Replace existing files of these names."),
    NO_SYNC_OPTION(options, save),
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "IN"),
    ALSO_OUT_OPTION(options, save),
    { 0 },
};

static const example examples[] = {
    { "tenfold split model.safetensors -o model --max-size 5GB",
      "model-00001-of-0000N.safetensors …, with an index" },
    { "tenfold split -n model.zt -o parts --max-size 500M", "which files would be written?" },
    { "tenfold split sharded/ -o again --max-size 2GB -t ztensor", "other shards" },
    { 0 },
};

const command cmd_split = {
    .name = "split",
    .args = "IN -o DIR",
    .summary = "write a model as several files",
    .about =
        "Writes the tensors of IN to several files in DIR. Tensors keep their order. Each file is "
        "filled until the next tensor does not fit; tensors that share bytes stay in one file. "
        "safetensors files get an index, model.safetensors.index.json, in Hugging Face's form. "
        "zTensor 2 files get an index that is a zTensor file itself, model.zt. Opening the index, "
        "or DIR, opens the whole model, with the same hash. Files of other formats are only "
        "numbered. If everything fits into one file, there is no index.\n\nThe files appear under "
        "their names when all of them are complete, and the index comes last. If anything fails, "
        "no file is left. 'tenfold merge' joins the files again.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .run = run_split,
};
