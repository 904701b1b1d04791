/* SPDX-License-Identifier: MIT */
/* tenfold reconstruct: quantized rows made dense. */
#include "emb.h"

typedef struct options {
    emb_options emb;
    emb_saving save;
    bool as_is;
} options;

static int convert(const emb_input *e, const options *o, const char *out)
{
    tnf_error error;
    tnf_builder *builder;
    int code;
    if (tnf_builder_new(&builder, NULL, &error) != TNF_OK)
        return file_error(out, &error);
    if (tnf_emb_reconstruct(builder, e->emb, o->as_is, &error) == TNF_OK)
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
    { "as-is", 0, OPT_FLAG, offsetof(options, as_is), NULL, NULL,
      "Do not normalise the rows of words, even if the file has no norms." },
    EMB_SAVE_OPTIONS(options, save),
    EMB_OPTIONS(options, emb),
    { 0 },
};

static const example examples[] = {
    { "tenfold reconstruct small.fifu large.fifu", "the vectors that the codes stand for" },
    { 0 },
};

const command cmd_reconstruct = {
    .name = "reconstruct",
    .args = "FILE OUT",
    .summary = "turn quantized rows into dense ones",
    .about = "Writes FILE with its quantized matrix made dense; everything else stays as it is. "
             "What quantizing lost does not come back.\n\nA file with norms keeps them. If it has "
             "none, the rows of words are normalised and their lengths become the norms, as "
             "finalfusion does it; --as-is leaves them.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
