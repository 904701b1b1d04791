/* SPDX-License-Identifier: MIT */
/* tenfold explicit: converts buckets of subwords to a list of n-grams. */
#include "emb.h"

static int run_explicit(const cli_state *cli, const void *opts, int argc, char **argv)
{
    (void)argc;
    return emb_rewrite_step(TNF_EMB_EXPLICIT, cli, opts, argv);
}

static const opt table[] = {
    EMB_SAVE_OPTIONS(emb_rewrite_options, save),
    PLAN_JSON_OPTION(emb_rewrite_options, save),
    AS_IS_OPTION(emb_rewrite_options, save),
    EMB_INPUT_OPTIONS(emb_rewrite_options, emb),
    IN_OPTION(emb_rewrite_options, emb.in, "IN"),
    EMB_OLD_OPTION(emb_rewrite_options, emb),
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
             "list, with only the rows that they use. N-grams that are in no word lose their "
             "vectors; all words and all other n-grams keep their vectors. N-grams that shared a "
             "bucket share a row. Quantized rows stay quantized. Norms are kept. Metadata is not "
             "kept, because it describes the old vocabulary.",
    .examples = examples,
    .table = table,
    .size = sizeof(emb_rewrite_options),
    .min_args = 2,
    .max_args = 2,
    .run = run_explicit,
};
