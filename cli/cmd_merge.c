/* SPDX-License-Identifier: MIT */
/* tenfold merge: writes several files as one. */
#include "input.h"
#include "saving.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/shards.h>

#define CLASHES      "refuse|same|first|last|rename" /* as tnf_clash has them */
#define ATTR_CLASHES "refuse|first|last"

typedef struct options {
    input_options in;
    saving_options save;
    choosing choosing;
    const char *out;
    int duplicates, attrs;
} options;

static int merge_inputs(const cli_state *cli, const options *o, input *inputs, char **paths,
                        size_t npaths)
{
    static const tnf_clash attrs[] = { TNF_CLASH_REFUSE, TNF_CLASH_FIRST, TNF_CLASH_LAST };
    saving s = { .cli = cli, .options = &o->save, .inputs = inputs, .out = o->out, .list = true };
    int code = saving_open(inputs, &s.n, cli, &o->in, paths, npaths);
    s.choosing = &o->choosing;
    s.how.keep_files = true;
    s.how.tensors = (tnf_clash)o->duplicates;
    s.how.attrs = attrs[o->attrs];
    if (code == EXIT_DONE)
        code = saving_run(&s);
    saving_free(&s);
    for (size_t i = 0; i < s.n; i++)
        input_close(&inputs[i]);
    return code;
}

static int check_usage(const cli_state *cli, const options *o)
{
    if (!o->out)
        return usage_error("merge: the output is missing; give -o OUT");
    return saving_check_plan(cli, &o->save, o->out, false);
}

static int run_merge(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    int code = check_usage(cli, o);
    if (code != EXIT_DONE)
        return code;
    input *inputs = calloc((size_t)argc, sizeof *inputs);
    code = inputs ? merge_inputs(cli, o, inputs, argv, (size_t)argc) : memory_error();
    free(inputs);
    return code;
}

static const opt table[] = {
    { "output", 'o', OPT_TEXT, offsetof(options, out), "OUT", NULL,
      "The file to write. It must not be one of the inputs." },
    TO_OPTION(options, save, "the extension of OUT decides."),
    { "duplicates", 0, OPT_CHOICE, offsetof(options, duplicates), "RULE", CLASHES,
      "What to do if two files have tensors of the same name: refuse, keep one if both are equal "
      "(same), keep the first or the last, or rename the second to NAME.2 (rename)." },
    { "attrs", 0, OPT_CHOICE, offsetof(options, attrs), "RULE", ATTR_CLASHES,
      "What to do if an attribute has different values in two files: refuse, or keep the first or "
      "the last." },
    CHOOSING_OPTIONS(options, choosing),
    CAST_OPTIONS(options, save),
    WRITER_OPTION(options, save, "option", 0),
    RESERVE_OPTION(options, save),
    LOSS_OPTION(options, save),
    AS_IS_OPTION(options, save),
    PLAN_OPTIONS(options, save),
    FORCE_OPTION(options, save, "Replace OUT if it exists."),
    NO_SYNC_OPTION(options, save),
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "each IN"),
    ALSO_OUT_OPTION(options, save),
    { 0 },
};

static const example examples[] = {
    { "tenfold merge -o model.safetensors model-*.safetensors", "shards without their index" },
    { "tenfold merge -o model.zt model/", "the shards of a directory, by their index" },
    { "tenfold merge -o all.zt --duplicates=same base.safetensors lora.safetensors",
      "tensors that both have must be equal" },
    { "tenfold merge -o plain.safetensors --rename 's/^module\\.//' ddp.safetensors",
      "the same data under other names" },
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
             "written once. Data that OUT's format cannot hold is refused, as by 'tenfold "
             "convert'. "
             "Memory does not grow with the size of the files. OUT appears when it is complete.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run_merge,
};
