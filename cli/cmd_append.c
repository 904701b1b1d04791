/* SPDX-License-Identifier: MIT */
/* tenfold append: adds tensors to a file, in place. */
#include "input.h"
#include "saving.h"
#include <stdlib.h>

typedef struct options {
    input_options in;
    saving_options save;
    choosing choosing;
    bool tensors_only;
} options;

static int append_inputs(const cli_state *cli, const options *o, input *inputs, const char *out,
                         char **paths, size_t npaths)
{
    saving s = { .cli = cli, .options = &o->save, .inputs = inputs, .out = out, .list = true };
    int code = saving_open(inputs, &s.n, cli, &o->in, paths, npaths);
    s.how.mode = TNF_CONVERT_APPEND;
    s.choosing = &o->choosing;
    s.how.tensors_only = o->tensors_only;
    if (code == EXIT_DONE)
        code = saving_run(&s);
    saving_free(&s);
    for (size_t i = 0; i < s.n; i++)
        input_close(&inputs[i]);
    return code;
}

static int run_append(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    if (saving_check_plan(cli, &o->save, NULL, false) != EXIT_DONE)
        return EXIT_USAGE;
    input *inputs = calloc((size_t)argc, sizeof *inputs);
    int code = inputs ? append_inputs(cli, o, inputs, argv[0], argv + 1, (size_t)argc - 1)
                      : memory_error();
    free(inputs);
    return code;
}

static const opt table[] = {
    WRITER_OPTION(options, save, "option", 'o'),
    CHOOSING_OPTIONS(options, choosing),
    CAST_OPTIONS(options, save),
    { "tensors-only", 0, OPT_FLAG, offsetof(options, tensors_only), NULL, NULL,
      "Do not append the attributes of IN." },
    LOSS_OPTION(options, save),
    PLAN_OPTIONS(options, save),
    { "no-sync", 0, OPT_FLAG, offsetof(options, save.no_sync), NULL, NULL,
      "Do not wait until the file is on the disk: faster, but a power cut may damage the new "
      "part." },
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "each IN"),
    ALSO_OUT_OPTION(options, save),
    { 0 },
};

static const example examples[] = {
    { "tenfold append model.zt lora.safetensors", "its tensors, and its attributes" },
    { "tenfold append model.zt --select 'head.*' other.zt", "a few tensors" },
    { "tenfold append model.zt", "finish a file that another program left unfinished" },
    { 0 },
};

const command cmd_append = {
    .name = "append",
    .args = "FILE [IN...]",
    .summary = "add tensors to a file, in place",
    .about =
        "Adds the tensors and the metadata of each IN to FILE. No byte of FILE is moved: new bytes "
        "are written after the old ones. FILE keeps its format, which must be able to grow "
        "('tenfold formats' shows which ones are). append refuses a tensor whose name FILE already "
        "has, and an attribute that has another value in FILE. Bytes that FILE already has are not "
        "written again.\n\nAfter a failure or a signal, FILE is unchanged. After a kill, FILE "
        "still holds its old content, and the next append reuses the space. A FILE that another "
        "program left unfinished, so that it opens only with --lenient, is completed.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run_append,
};
