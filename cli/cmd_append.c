/* SPDX-License-Identifier: MIT */
/* tenfold append: more tensors into a file, in place. */
#include "input.h"
#include "out.h"
#include "saving.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/build.h>

typedef struct options {
    input_options in;
    saving_options save;
    opt_list select;
    bool tensors_only;
} options;

typedef struct job {
    const cli_state *cli;
    const options *options;
    const char *out;
    input *inputs;
    size_t n;
    tnf_builder *builder;
    saving saving;
    bool selected; /* anything that --select asks for */
} job;

/* ----------------------------------------------------------------- adding */

static tnf_status add_selected(job *j, const input *in, tnf_error *error)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(in->file, i)); i++) {
        if (!glob_any(&j->options->select, o->name))
            continue;
        j->selected = true;
        tnf_status status = tnf_builder_add_object(j->builder, o, NULL, error);
        if (status != TNF_OK)
            return status;
    }
    for (size_t i = 0; !j->options->tensors_only && i < in->info->attrs->n; i++) {
        const tnf_member *m = &in->info->attrs->as.members[i];
        tnf_status status = tnf_builder_set(j->builder, NULL, m->key.p, &m->value, error);
        if (status != TNF_OK)
            return status;
    }
    return TNF_OK;
}

static int add_input(job *j, const char *path)
{
    tnf_error error;
    input *in = &j->inputs[j->n];
    int code = input_open(in, j->cli, &j->options->in, path);
    if (code != EXIT_DONE)
        return code;
    j->n++;
    bool whole = j->options->select.n == 0 && !j->options->tensors_only;
    tnf_status status = whole ? tnf_builder_add_file(j->builder, in->file, &error)
                              : add_selected(j, in, &error);
    return status == TNF_OK ? EXIT_DONE : file_error(in->name, &error);
}

/* ----------------------------------------------------------------- saving */

static int append(job *j)
{
    tnf_save_options how = { .size = sizeof how };
    saving_job to = { j->cli, j->builder, NULL, j->out, &j->options->save, true };
    return saving_run(&j->saving, &to, &how);
}

/* What the file is that is appended to, for the plan; NULL if it is nothing, which the library will
 * say. */
static const char *own_format(tnf_format_info *f, const char *path)
{
    tnf_error error;
    tnf_file *file;
    if (tnf_open(&file, path, NULL, &error) != TNF_OK)
        return NULL;
    bool known = tnf_format_named(f, tnf_file_info(file)->format);
    tnf_close(file);
    return known ? f->name : NULL;
}

static int run_all(job *j, int n, char **paths)
{
    int code = EXIT_DONE;
    for (int i = 0; i < n && code == EXIT_DONE; i++)
        code = add_input(j, paths[i]);
    if (code == EXIT_DONE && j->options->select.n && !j->selected)
        return nothing_selected(n == 1 ? paths[0] : "all files");
    return code == EXIT_DONE ? append(j) : code;
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    tnf_error error;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    job j = { .cli = cli, .options = o, .out = argv[0] };
    if (saving_check(cli, &o->save, NULL) != EXIT_DONE)
        return EXIT_USAGE;
    if (o->save.json && !o->save.dry_run)
        return usage_error("append: --json prints the plan of a --dry-run");
    j.inputs = calloc((size_t)argc, sizeof *j.inputs);
    if (!j.inputs)
        return usage_error("out of memory");
    int code = EXIT_IO;
    plan_style style = saving_style(cli, &o->save);
    if (tnf_builder_new(&j.builder, NULL, &error) != TNF_OK) {
        code = file_error(j.out, &error);
    } else {
        const char *format = own_format(&f, j.out);
        plan_begin_many(&j.saving.plan, style, cli, argv + 1, (size_t)argc - 1, j.out, format);
        code = run_all(&j, argc - 1, argv + 1);
        plan_end(&j.saving.plan);
        plan_free(&j.saving.plan);
    }
    tnf_builder_free(j.builder);
    for (size_t i = 0; i < j.n; i++)
        input_close(&j.inputs[i]);
    free(j.inputs);
    return code;
}

static const opt table[] = {
    WRITER_OPTION(options, save, "option", 'o'),
    { "select", 0, OPT_LIST, offsetof(options, select), "GLOB", NULL,
      "Append only the tensors whose name matches; as in 'tenfold ls'. May be repeated." },
    { "tensors-only", 0, OPT_FLAG, offsetof(options, tensors_only), NULL, NULL,
      "Leave the attributes of the files IN behind." },
    LOSS_OPTION(options, save),
    PLAN_OPTIONS(options, save),
    { "no-sync", 0, OPT_FLAG, offsetof(options, save.no_sync), NULL, NULL,
      "Do not wait until the file is on the disk: faster, but a power cut may spoil what is "
      "new." },
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "each IN"),
    { 0 },
};

static const example examples[] = {
    { "tenfold append model.zt lora.safetensors", "its tensors, and its attributes" },
    { "tenfold append model.zt --select 'head.*' other.zt", "a few tensors" },
    { "tenfold append model.zt",
      "nothing, but one that another program did not finish is put right" },
    { 0 },
};

const command cmd_append = {
    .name = "append",
    .args = "FILE [IN...]",
    .summary = "add tensors to a file, in place",
    .about =
        "Adds the tensors and the metadata of each IN to FILE, without moving a byte of what "
        "is there: new bytes are written behind it. FILE keeps its format, which must be one "
        "that can grow ('tenfold formats' says which). A tensor whose name FILE has already "
        "is refused, and so is an attribute with another value. Bytes that FILE holds already "
        "are not written again.\n\nIf anything fails or a signal comes, FILE is as it was. If "
        "it is killed in between, FILE holds what it held before, and the next append uses the "
        "room of what was written. A FILE that another program did not finish, which opens "
        "only with --lenient, is put right.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
