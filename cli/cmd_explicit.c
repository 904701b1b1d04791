/* SPDX-License-Identifier: MIT */
/* tenfold explicit: subwords in buckets to a list of n-grams. */
#include "emb.h"

typedef struct options {
    emb_options emb;
    emb_saving save;
} options;

static int convert(const emb_input *e, const options *o, const char *out)
{
    tnf_error error;
    tnf_builder *builder;
    int code;
    if (tnf_builder_new(&builder, NULL, &error) != TNF_OK)
        return file_error(out, &error);
    if (tnf_emb_explicit(builder, e->emb, &error) == TNF_OK)
        code = emb_save(builder, e, &o->save, out);
    else
        code = file_error(e->in.name, &error);
    tnf_builder_free(builder);
    return code;
}

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    emb_input e;
    (void)argc;
    int code = emb_open(&e, cli, &o->emb, argv[0]);
    if (code == EXIT_DONE)
        code = convert(&e, o, argv[1]);
    emb_close(&e);
    return code;
}

static const opt table[] = {
    EMB_SAVE_OPTIONS(options, save),
    EMB_OPTIONS(options, emb),
    { 0 },
};

static const example examples[] = {
    { "tenfold explicit vectors.fifu small.fifu", "only the buckets that words use remain" },
    { 0 },
};

const command cmd_explicit = {
    .name = "explicit",
    .args = "FILE OUT",
    .summary = "turn buckets of subwords into a list of n-grams",
    .about = "Writes the n-grams of all words of a bucket or fastText vocabulary as an explicit "
             "list, with only the rows that they use: n-grams that no word has lose their vectors, "
             "all others keep theirs, and so do the words. Quantized rows stay quantized. N-grams "
             "that shared a bucket share a row. Norms are kept; metadata, which describes the old "
             "vocabulary, is not.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
