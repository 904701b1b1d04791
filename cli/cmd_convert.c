/* SPDX-License-Identifier: MIT */
/* tenfold convert: a file in another format, with nothing lost unasked. */
#include "emb_change.h"
#include "input.h"
#include "out.h"
#include "rename.h"
#include "saving.h"
#include <string.h>
#include <tenfold/build.h>

#define CASTS "f64|f32|f16|bf16|f8_e4m3fn|f8_e5m2|f8_e4m3fnuz|f8_e5m2fnuz"

typedef struct options {
    input_options in;
    saving_options save;
    const char *dtype, *order, *map;
    opt_list select, rename;
    emb_change_options change;
} options;

/* One conversion under way. */
typedef struct job {
    const cli_state *cli;
    const options *options;
    const char *out;
    input in;
    tnf_builder *builder;
    saving saving;
    const char *format; /* of OUT; NULL if the library has to say that it is not known */
    emb_changing changing;
    renaming *renaming; /* NULL: names stay */
} job;

/* ----------------------------------------------------------------- adding */

static tnf_status add_attributes(job *j, tnf_error *error)
{
    const tnf_value *attrs = j->in.info->attrs;
    for (size_t i = 0; i < attrs->n; i++) {
        tnf_status status = tnf_builder_set(j->builder, NULL, attrs->as.members[i].key.p,
                                            &attrs->as.members[i].value, error);
        if (status != TNF_OK)
            return status;
    }
    return TNF_OK;
}

/* Only some tensors, or under other names: each by itself, with the file's attributes. */
static tnf_status add_selected(job *j, size_t *n, tnf_error *error)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(j->in.file, i)); i++) {
        tnf_str name;
        if (j->options->select.n && !glob_any(&j->options->select, o->name))
            continue;
        tnf_status status = renaming_apply(j->renaming, &name, o->name, error);
        if (status == TNF_OK)
            status = tnf_builder_add_object(j->builder, o, name.p == o->name.p ? NULL : name.p,
                                            error);
        if (status != TNF_OK)
            return status;
        ++*n;
    }
    for (size_t i = 0; i < j->in.info->nextras; i++) {
        tnf_status status = tnf_builder_add_extra(j->builder, &j->in.info->extras[i], error);
        if (status != TNF_OK)
            return status;
    }
    return add_attributes(j, error);
}

/* Fills the builder; gives an exit code. */
static int add_input(job *j)
{
    tnf_error error;
    size_t n = 0;
    bool whole = j->options->select.n == 0 && !j->renaming;
    if (whole && emb_change_wanted(&j->options->change, &j->in, j->format)) {
        saving_watch(&j->saving, &j->in);
        return emb_change_add(&j->changing, &j->options->change, &j->in, j->format, j->builder,
                              &j->saving.plan);
    }
    if (whole) {
        if (tnf_builder_add_file(j->builder, j->in.file, &error) != TNF_OK)
            return file_error(j->in.name, &error);
        return EXIT_DONE;
    }
    tnf_status status = add_selected(j, &n, &error);
    if (status == TNF_EEXISTS && j->renaming) {
        file_message(j->in.name, "by its new name ", TNF_NO_OFFSET, error.message);
        return EXIT_LOSSY;
    }
    if (status != TNF_OK)
        return file_error(j->in.name, &error);
    return n == 0 && j->options->select.n ? nothing_selected(j->in.name) : EXIT_DONE;
}

/* ----------------------------------------------------------------- saving */

static int save(job *j)
{
    const options *o = j->options;
    tnf_save_options how = { .size = sizeof how, .dtype = o->dtype, .order = o->order };
    saving_options as = o->save;
    as.as_is = as.as_is || o->change.unnormalize; /* what was asked for stays */
    saving_job to = { j->cli, j->builder, j->in.name, j->out, &as, false };
    return saving_run(&j->saving, &to, &how);
}

/* ---------------------------------------------------------------- command */

static int check_usage(const cli_state *cli, const options *o, const char *out)
{
    if (o->dtype && opt_position(CASTS, o->dtype, strlen(o->dtype)) < 0)
        return usage_error("convert: --dtype takes one of " CASTS ", not '%s'", o->dtype);
    if (o->order && strcmp(o->order, "C") != 0 && strcmp(o->order, "F") != 0)
        return usage_error("convert: --order takes C or F, not '%s'", o->order);
    if ((o->select.n || o->rename.n || o->map) &&
        (o->change.normalize || o->change.unnormalize || o->change.fold))
        return usage_error(
            "convert: --select, --rename and --map take tensors as they are, without "
            "--normalize, --unnormalize and --fold");
    if (o->change.normalize && o->change.unnormalize)
        return usage_error("convert: --normalize and --unnormalize exclude each other");
    if (o->save.json && !o->save.dry_run)
        return usage_error("convert: --json prints the plan of a --dry-run");
    return saving_check(cli, &o->save, out);
}

static int convert(job *j)
{
    tnf_error error;
    if (tnf_builder_new(&j->builder, NULL, &error) != TNF_OK)
        return file_error(j->in.name, &error);
    j->format = saving_format(&j->options->save, j->out);
    plan_style style = saving_style(j->cli, &j->options->save);
    plan_begin(&j->saving.plan, style, j->cli, j->in.path, j->out, j->format);
    int code = add_input(j);
    if (code == EXIT_DONE)
        code = emb_change_metadata(&j->changing, &j->options->change, j->format, j->builder);
    if (code == EXIT_DONE)
        code = save(j);
    plan_end(&j->saving.plan);
    plan_free(&j->saving.plan);
    tnf_builder_free(j->builder);
    emb_change_end(&j->changing);
    return code;
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    (void)argc;
    int code = check_usage(cli, o, argv[1]);
    if (code != EXIT_DONE)
        return code;
    job j = { .cli = cli, .options = o, .out = argv[1] };
    code = renaming_open(&j.renaming, o->map, &o->rename);
    if (code != EXIT_DONE)
        return code;
    code = input_open(&j.in, cli, &o->in, argv[0]);
    if (code == EXIT_DONE)
        code = convert(&j);
    input_close(&j.in);
    if (code == EXIT_DONE)
        renaming_notes(j.renaming, cli);
    renaming_free(j.renaming);
    return code;
}

static const opt table[] = {
    TO_OPTION(options, save, "the extension of OUT decides."),
    WRITER_OPTION(options, save, "option", 'o'),
    RESERVE_OPTION(options, save),
    { "select", 0, OPT_LIST, offsetof(options, select), "GLOB", NULL,
      "Convert only the tensors whose name matches; as in 'tenfold ls'. May be repeated." },
    RENAME_OPTIONS(options, map, rename, "the tensors"),
    { "dtype", 0, OPT_TEXT, offsetof(options, dtype), "DTYPE", CASTS,
      "Write tensors of floats as this type. Each value becomes the nearest one; of two equally "
      "near, the even one. A value that is too large becomes infinite, or the largest value if the "
      "type has no infinity. NaN stays NaN. Other tensors do not change." },
    { "order", 0, OPT_TEXT, offsetof(options, order), "ORDER", "C|F",
      "Write dense tensors row by row (C) or column by column (F), where the format has both." },
    LOSS_OPTION(options, save),
    AS_IS_OPTION(options, save),
    EMB_CHANGE_OPTIONS(options, change),
    PLAN_OPTIONS(options, save),
    FORCE_OPTION(options, save, "Replace OUT if it exists. It may be IN itself."),
    NO_SYNC_OPTION(options, save),
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "IN"),
    { 0 },
};

static const example examples[] = {
    { "tenfold convert model.safetensors model.gptrs", "the format by the extension" },
    { "tenfold convert --dry-run checkpoint.bin out.safetensors",
      "what would happen to each thing?" },
    { "tenfold convert -t safetensors --select 'wte.*' in.gptrs - > wte.safetensors",
      "a few tensors, to standard output" },
    { "tenfold convert --rename 's/^module\\.//' ddp.safetensors plain.safetensors",
      "other names" },
    { "tenfold convert GoogleNews.w2v news.fifu",
      "unit vectors with norms, as finalfusion's own tool would import them" },
    { "tenfold convert --allow-loss=tensor cc.de.300.bin cc.de.fifu",
      "a fastText model, without the counts and the matrix that only training needs" },
    { 0 },
};

const command cmd_convert = {
    .name = "convert",
    .args = "IN OUT",
    .summary = "write a file in another format",
    .about = "Writes the tensors and the metadata of IN to OUT, in another format or in the same "
             "one. First, convert makes a plan. For each thing it says: native (kept in the "
             "format's own way), stashed (kept in a metadata entry that tenfold reads back), "
             "transformed (its values or its name change) or dropped. If anything would be dropped "
             "or transformed, convert writes nothing, prints the plan and exits with 5, unless "
             "--allow-loss permits it. One change needs no permission and is only reported: if the "
             "readers of a format require unit vectors (finalfusion), word vectors are divided by "
             "their lengths, which are kept as norms. --as-is prevents it.\n\nOUT appears under "
             "its name when it is complete, and not at all if anything fails. Memory does not grow "
             "with the size of the file. - stands for standard input or output.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
