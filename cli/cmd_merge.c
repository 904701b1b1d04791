/* SPDX-License-Identifier: MIT */
/* tenfold merge: many files as one. */
#include "input.h"
#include "rename.h"
#include "saving.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/shards.h>

#define CLASHES      "refuse|same|first|last|rename" /* as tnf_clash has them */
#define ATTR_CLASHES "refuse|first|last"

typedef struct options {
    input_options in;
    saving_options save;
    const char *out, *map;
    opt_list select, rename;
    int duplicates, attrs;
} options;

typedef struct job {
    const cli_state *cli;
    const options *options;
    input *inputs;
    const tnf_file **files;
    const char **names;
    size_t n;
    renaming *renaming;
    tnf_builder *builder;
    saving saving;
    bool selected; /* anything that --select asks for */
} job;

static bool on_select(void *ctx, tnf_str name)
{
    job *j = ctx;
    bool wanted = glob_any(&j->options->select, name);
    j->selected = j->selected || wanted;
    return wanted;
}

static tnf_status on_rename(void *ctx, tnf_str *out, tnf_str name, tnf_error *error)
{
    return renaming_apply(((const job *)ctx)->renaming, out, name, error);
}

/* ----------------------------------------------------------------- adding */

static int open_inputs(job *j, int n, char **paths)
{
    bool stdin_taken = false;
    for (int i = 0; i < n; i++) {
        input *in = &j->inputs[i];
        if (!strcmp(paths[i], "-") && stdin_taken)
            return usage_error("merge: standard input can be read only once");
        stdin_taken = stdin_taken || !strcmp(paths[i], "-");
        int code = input_open(in, j->cli, &j->options->in, paths[i]);
        if (code != EXIT_DONE)
            return code;
        j->files[j->n] = in->file;
        j->names[j->n++] = in->name;
        if (tnf_file_reads(in->file, j->options->out))
            return usage_error("merge: %s is one of the files that are read: it would be lost",
                               j->options->out);
    }
    return EXIT_DONE;
}

static int add_inputs(job *j)
{
    tnf_error error;
    tnf_merge_options how = { .size = sizeof how };
    static const tnf_clash attrs[] = { TNF_CLASH_REFUSE, TNF_CLASH_FIRST, TNF_CLASH_LAST };
    how.tensors = (tnf_clash)j->options->duplicates;
    how.attrs = attrs[j->options->attrs];
    how.select = j->options->select.n ? on_select : NULL;
    how.rename = j->renaming ? on_rename : NULL;
    how.ctx = j;
    tnf_status status = tnf_builder_merge(j->builder, j->files, j->names, j->n, &how, &error);
    if (status == TNF_OK)
        return how.select && !j->selected ? nothing_selected(j->n == 1 ? j->names[0] : "all files")
                                          : EXIT_DONE;
    if (status != TNF_EEXISTS)
        return file_error(j->options->out, &error);
    usage_error("merge: %s; %s", error.message,
                strncmp(error.message, "the tensor", 10) != 0
                    ? "--attrs=RULE says which to take"
                    : "--duplicates=RULE says what to do");
    return EXIT_LOSSY;
}

/* ----------------------------------------------------------------- saving */

static int merge(job *j, int n, char **paths)
{
    tnf_error error;
    if (tnf_builder_new(&j->builder, NULL, &error) != TNF_OK)
        return file_error(j->options->out, &error);
    int code = open_inputs(j, n, paths);
    if (code == EXIT_DONE)
        code = add_inputs(j);
    if (code != EXIT_DONE)
        return code;
    const options *o = j->options;
    tnf_save_options how = { .size = sizeof how };
    saving_job to = { j->cli, j->builder, NULL, o->out, &o->save, false };
    plan_begin_many(&j->saving.plan, saving_style(j->cli, &o->save), j->cli, paths, (size_t)n,
                    o->out, saving_format(&o->save, o->out));
    code = saving_run(&j->saving, &to, &how);
    plan_end(&j->saving.plan);
    plan_free(&j->saving.plan);
    return code;
}

/* ---------------------------------------------------------------- command */

static int check_usage(const cli_state *cli, const options *o)
{
    if (!o->out)
        return usage_error("merge: where to? give -o OUT");
    if (o->save.json && !o->save.dry_run)
        return usage_error("merge: --json prints the plan of a --dry-run");
    return saving_check(cli, &o->save, o->out);
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    job j = { .cli = cli, .options = o };
    int code = check_usage(cli, o);
    if (code == EXIT_DONE)
        code = renaming_open(&j.renaming, o->map, &o->rename);
    if (code != EXIT_DONE)
        return code;
    j.inputs = calloc((size_t)argc, sizeof *j.inputs);
    j.files = calloc((size_t)argc, sizeof *j.files);
    j.names = calloc((size_t)argc, sizeof *j.names);
    code = j.inputs && j.files && j.names ? merge(&j, argc, argv) : usage_error("out of memory");
    tnf_builder_free(j.builder);
    for (size_t i = 0; i < j.n; i++)
        input_close(&j.inputs[i]);
    free(j.inputs);
    free((void *)(uintptr_t)j.files);
    free((void *)(uintptr_t)j.names);
    if (code == EXIT_DONE)
        renaming_notes(j.renaming, cli);
    renaming_free(j.renaming);
    return code;
}

static const opt table[] = {
    { "output", 'o', OPT_TEXT, offsetof(options, out), "OUT", NULL,
      "The file to write. It must not be one of the inputs." },
    TO_OPTION(options, save, "the extension of OUT decides."),
    { "duplicates", 0, OPT_CHOICE, offsetof(options, duplicates), "RULE", CLASHES,
      "What to do if two files have a tensor of the same name: refuse, keep one if both are equal "
      "(same), keep the first or the last, or rename the second to NAME.2 (rename)." },
    { "attrs", 0, OPT_CHOICE, offsetof(options, attrs), "RULE", ATTR_CLASHES,
      "What to do if an attribute has different values in two files: refuse, or keep the first or "
      "the last." },
    { "select", 0, OPT_LIST, offsetof(options, select), "GLOB", NULL,
      "Take only the tensors whose name matches; as in 'tenfold ls'. May be repeated." },
    RENAME_OPTIONS(options, map, rename, "tensors"),
    WRITER_OPTION(options, save, "option", 0),
    RESERVE_OPTION(options, save),
    LOSS_OPTION(options, save),
    AS_IS_OPTION(options, save),
    PLAN_OPTIONS(options, save),
    FORCE_OPTION(options, save, "Replace OUT if it exists."),
    NO_SYNC_OPTION(options, save),
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "each IN"),
    { 0 },
};

static const example examples[] = {
    { "tenfold merge -o model.safetensors model-*.safetensors", "shards without their index" },
    { "tenfold merge -o model.zt model/", "the shards of a directory, by their index" },
    { "tenfold merge -o all.zt --duplicates=same base.safetensors lora.safetensors",
      "tensors that both have must be equal" },
    { "tenfold merge -o plain.safetensors --rename 's/^module\\.//' ddp.safetensors",
      "other names, the same data" },
    { 0 },
};

const command cmd_merge = {
    .name = "merge",
    .args = "-o OUT IN...",
    .summary = "write several files as one",
    .about = "Writes the tensors and the metadata of all files IN, of any formats, to OUT. The "
             "directory or the index of a model stands for all its files. OUT must not exist, "
             "unless --force is given, and it must not be one of the inputs under any name.\n\nIf "
             "two files have a tensor of the same name, or different values for an attribute, "
             "merge refuses, unless --duplicates and --attrs say what to do. Equal attributes are "
             "written once. What OUT's format cannot hold is refused as by 'tenfold convert'. "
             "Memory does not grow with the size of the files. OUT appears when it is complete.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
