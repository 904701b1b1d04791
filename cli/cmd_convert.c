/* SPDX-License-Identifier: MIT */
/* tenfold convert: writes a file in another format, and loses nothing without permission. */
#include "download.h"
#include "input.h"
#include "jobs.h"
#include "out.h"
#include "rename.h"
#include "saving.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/emb.h>
#include <tenfold/value.h>

typedef struct options {
    input_options in;
    saving_options save;
    choosing choosing;
    const char *fold, *metadata, *into, *scales, *embeddings;
    bool normalize, unnormalize, download, keep_rest;
    part_options part;
} options;

/* ------------------------------------------------------------------ metadata */

#define MAX_METADATA ((size_t)64 << 20)

static int read_text(char **text, size_t *n, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return cannot_open(path, errno);
    int code = EXIT_DONE;
    *text = malloc(MAX_METADATA + 1);
    *n = *text ? fread(*text, 1, MAX_METADATA + 1, f) : 0;
    if (!*text)
        code = memory_error();
    else if (ferror(f))
        code = cannot_read(path, errno);
    fclose(f);
    return code;
}

/* --metadata: for formats whose metadata is one text. */
static int take_metadata(tnf_member *out, char **text, const options *o, const char *path)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    tnf_error error;
    size_t n = 0;
    bool known = o->save.to
                     ? saving_format(o->save.to) && tnf_format_named(&f, saving_format(o->save.to))
                     : tnf_format_for_path(&f, path, &error) == TNF_OK;
    if (!known || !f.document)
        return usage_error("convert: --metadata is for formats whose metadata is one text, such as "
                           "finalfusion; for other formats use 'tenfold meta --set'");
    int code = read_text(text, &n, o->metadata);
    if (code != EXIT_DONE)
        return code;
    if (n > MAX_METADATA || !tnf_utf8_valid(NULL, *text, n)) {
        file_message(o->metadata, "", TNF_NO_OFFSET, "it is not UTF-8 text, or larger than 64 MiB");
        return EXIT_BAD;
    }
    *out = tnf_member_of(f.document, tnf_value_text(*text, n));
    return EXIT_DONE;
}

/* ------------------------------------------------------------------- command */

static int check_usage(const cli_state *cli, const options *o, const char *out)
{
    if (o->fold && opt_position(TNF_FOLD_RULES, o->fold, strlen(o->fold)) < 0)
        return usage_error("convert: --fold takes one of " TNF_FOLD_RULES ", not '%s'", o->fold);
    if (o->normalize && o->unnormalize)
        return usage_error("convert: --normalize and --unnormalize cannot be combined");
    if (o->keep_rest && !o->into)
        return usage_error("convert: --keep-rest needs --into, whose tensors it keeps");
    return saving_check_plan(cli, &o->save, out, false);
}

static int convert_inputs(saving *s, const options *o)
{
    tnf_member metadata;
    tnf_emb_options emb = TNF_EMB_INIT;
    char *text = NULL;
    int code = o->metadata ? take_metadata(&metadata, &text, o, s->out) : EXIT_DONE;
    s->choosing = &o->choosing;
    emb.embeddings = o->embeddings;
    s->how.emb = &emb;
    s->how.fold = o->fold;
    s->how.scales = o->scales;
    s->how.normalize = o->normalize;
    s->how.unnormalize = o->unnormalize;
    s->how.set = &metadata;
    s->how.nset = o->metadata ? 1 : 0;
    if (code == EXIT_DONE)
        code = saving_run(s);
    saving_free(s);
    s->how.emb = NULL;
    free(text);
    return code;
}

/* --into: also opens the model, without the options for the input. */
static int convert_into(saving *s, const options *o)
{
    input model;
    const input_options how = { .lenient = o->in.lenient };
    int code = input_open(&model, s->cli, &how, o->into);
    s->how.into = model.file;
    s->how.keep_rest = o->keep_rest;
    if (code == EXIT_DONE)
        code = convert_inputs(s, o);
    input_close(&model);
    return code;
}

static int convert_path(const cli_state *cli, const options *o, const char *path, const char *out)
{
    input in;
    saving s = { .cli = cli, .options = &o->save, .inputs = &in, .n = 1, .out = out };
    int code = input_open(&in, cli, &o->in, path);
    if (code == EXIT_DONE)
        code = o->into ? convert_into(&s, o) : convert_inputs(&s, o);
    input_close(&in);
    return code;
}

static int run_convert(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    download d;
    (void)argc;
    int code = check_usage(cli, o, argv[1]);
    if (code != EXIT_DONE)
        return code;
    if (!o->download || o->save.dry_run || !tnf_is_url(argv[0]))
        return convert_path(cli, o, argv[0], argv[1]);
    code = download_begin(&d, cli, argv[0], argv[1]);
    if (code == EXIT_DONE)
        code = convert_path(cli, o, d.path, argv[1]);
    download_end(&d, code == EXIT_DONE);
    return code;
}

static const opt table[] = {
    TO_OPTION(options, save, "the extension of OUT decides."),
    WRITER_OPTION(options, save, "option", 'o'),
    RESERVE_OPTION(options, save),
    CHOOSING_OPTIONS(options, choosing),
    CAST_OPTIONS(options, save),
    LOSS_OPTION(options, save),
    AS_IS_OPTION(options, save),
    { "normalize", 0, OPT_FLAG, offsetof(options, normalize), NULL, NULL,
      "Divide word vectors by their lengths and keep the lengths as norms, in any format that has "
      "a "
      "place for norms." },
    { "unnormalize", 0, OPT_FLAG, offsetof(options, unnormalize), NULL, NULL,
      "Multiply word vectors by their norms, and remove the norms." },
    { "fold", 0, OPT_TEXT, offsetof(options, fold), "RULE", TNF_FOLD_RULES,
      "How the rows of words change if IN or OUT is a fastText model. fasttext and finalfusion "
      "combine the row of a word with the rows of its n-grams, by the rules of fastText or of "
      "finalfusion's tools. none keeps the rows. auto uses finalfusion for finalfusion files, "
      "fasttext for formats with words only, and none for all others. If OUT is a fastText model, "
      "the same rules apply in reverse." },
    { "embeddings", 0, OPT_TEXT, offsetof(options, embeddings), "NAME", NULL,
      "Write only one group of a file with several, under the names of an ordinary file. NAME is "
      "that of its matrix, such as 2/embeddings; 1/embeddings is the first group." },
    { "into", 0, OPT_TEXT, offsetof(options, into), "MODEL", NULL,
      "Write a copy of MODEL with the data of IN. Each tensor of MODEL gets the data of the tensor "
      "of IN with the same name, after --rename. Everything else, such as the graph of an ONNX "
      "model, is that of MODEL. Names, shapes and types must be the same. Missing and additional "
      "tensors are listed, and nothing is written." },
    { "scales", 0, OPT_TEXT, offsetof(options, scales), "ENDING", NULL,
      "Multiply tensors of floats by their scales. The scales of a tensor NAME are in the tensor "
      "NAME followed by ENDING, which is _scale_inv for most models in fp8. The products are f32, "
      "unless --dtype says otherwise, and the scales are left out. There may be one scale for all, "
      "for each row or column, or for each block (128 x 128)." },
    { "keep-rest", 0, OPT_FLAG, offsetof(options, keep_rest), NULL, NULL,
      "With --into: tensors that IN does not have keep the data of MODEL, and are listed." },
    { "metadata", 0, OPT_TEXT, offsetof(options, metadata), "FILE", NULL,
      "Replace the metadata of a finalfusion file by the text of FILE (TOML)." },
    { "download", 0, OPT_FLAG, offsetof(options, download), NULL, NULL,
      "If IN is a URL, first download it completely to OUT.download, as 'tenfold fetch' does. The "
      "download is compared with the server's digest. After an interruption, the same command "
      "continues it. OUT.download is removed when OUT is complete." },
    PLAN_OPTIONS(options, save),
    FORCE_OPTION(options, save, "Replace OUT if it exists. OUT may be IN itself."),
    NO_SYNC_OPTION(options, save),
    INPUT_OPTIONS(options, in),
    IN_OPTION(options, in, "IN"),
    PART_OPTIONS(options, part),
    ALSO_OUT_OPTION(options, save),
    { 0 },
};

static const example examples[] = {
    { "tenfold convert model.safetensors model.gptrs", "the format by the extension" },
    { "tenfold convert --dry-run checkpoint.bin out.safetensors",
      "what would happen to each item?" },
    { "tenfold convert -t safetensors --select 'wte.*' in.gptrs - > wte.safetensors",
      "a few tensors, to standard output" },
    { "tenfold convert --rename 's/^module\\.//' ddp.safetensors plain.safetensors",
      "other names" },
    { "tenfold convert GoogleNews.w2v news.fifu",
      "unit vectors with norms, as finalfusion's own tool would import them" },
    { "tenfold convert --allow-loss=tensor cc.de.300.bin cc.de.fifu",
      "a fastText model, without the counts and the matrix that only training needs" },
    { "tenfold convert --into model.onnx tuned.safetensors tuned.onnx",
      "an ONNX model with other weights" },
    { "tenfold convert --scales _scale_inv --dtype bf16 fp8/ bf16.safetensors",
      "a model in fp8 as one in bf16" },
    { "tenfold convert --download hf://org/model/model.safetensors model.zt",
      "a download that is verified, and resumed after an interruption" },
    { 0 },
};

const command cmd_convert = {
    .name = "convert",
    .args = "IN OUT",
    .summary = "write a file in another format",
    .about = "Writes the tensors and the metadata of IN to OUT, in another format or in the same "
             "one. First, convert makes a plan. For each item it says: native (kept in the "
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
    .part = offsetof(options, part) + 1,
    .run = run_convert,
};
