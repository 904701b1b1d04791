/* SPDX-License-Identifier: MIT */
/* tenfold reconstruct: converts quantized rows to dense ones. */
#include "emb.h"

static int run_reconstruct(const cli_state *cli, const void *opts, int argc, char **argv)
{
    (void)argc;
    return emb_rewrite_step(TNF_EMB_RECONSTRUCT, cli, opts, argv);
}

static const opt table[] = {
    { "as-is", 0, OPT_FLAG, offsetof(emb_rewrite_options, save.as_is), NULL, NULL,
      "Do not normalise the rows of words, even if the file has no norms." },
    EMB_SAVE_OPTIONS(emb_rewrite_options, save),
    PLAN_JSON_OPTION(emb_rewrite_options, save),
    EMB_INPUT_OPTIONS(emb_rewrite_options, emb),
    IN_OPTION(emb_rewrite_options, emb.in, "IN"),
    EMB_OLD_OPTION(emb_rewrite_options, emb),
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
             "change. The precision lost by quantizing is not restored.\n\nA file with norms "
             "keeps them. If it has none, the rows of words are normalised and their lengths "
             "become the norms, as in finalfusion; --as-is keeps the rows.",
    .examples = examples,
    .table = table,
    .size = sizeof(emb_rewrite_options),
    .min_args = 2,
    .max_args = 2,
    .run = run_reconstruct,
};
