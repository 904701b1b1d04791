/* SPDX-License-Identifier: MIT */
/* tenfold reconstruct: quantized rows made dense. */
#include "emb.h"

typedef struct options {
    emb_options emb;
    saving_options save; /* with as_is, which is for the rows, too */
} options;

static int run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    saving s = { .how.step = TNF_EMB_RECONSTRUCT };
    (void)argc;
    int code = emb_rewrite(&s, cli, &o->emb, &o->save, argv);
    saving_free(&s);
    return code;
}

static const opt table[] = {
    { "as-is", 0, OPT_FLAG, offsetof(options, save.as_is), NULL, NULL,
      "Do not normalise the rows of words, even if the file has no norms." },
    EMB_SAVE_OPTIONS(options, save),
    EMB_OPTIONS(options, emb),
    { 0 },
};

static const example examples[] = {
    { "tenfold reconstruct small.fifu large.fifu", "the vectors of the codes" },
    { 0 },
};

const command cmd_reconstruct = {
    .name = "reconstruct",
    .args = "FILE OUT",
    .summary = "turn quantized rows into dense ones",
    .about = "Writes FILE with a dense matrix instead of a quantized one; everything else does not "
             "change. Precision that quantizing lost does not come back.\n\nA file with norms "
             "keeps them. If it has none, the rows of words are normalised and their lengths "
             "become the norms, as in finalfusion; --as-is keeps the rows.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
