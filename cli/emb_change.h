/* SPDX-License-Identifier: MIT */
/* What convert does to embeddings on the way: fastText models become vectors and the other way
 * round, norms are taken out or multiplied in. */
#ifndef TENFOLD_CLI_EMB_CHANGE_H
#define TENFOLD_CLI_EMB_CHANGE_H

#include "input.h"
#include "plan.h"
#include <tenfold/emb.h>

typedef struct emb_change_options {
    int fold; /* 0: as the target wants it */
    bool normalize, unnormalize;
    const char *metadata;
} emb_change_options;

#define EMB_CHANGE_OPTIONS(type, field)                                                            \
    { "normalize",                                                                                 \
      0,                                                                                           \
      OPT_FLAG,                                                                                    \
      offsetof(type, field.normalize),                                                             \
      NULL,                                                                                        \
      NULL,                                                                                        \
      "Divide word vectors by their lengths, and keep the lengths as norms, in any format that "   \
      "has a place for norms." },                                                                  \
        { "unnormalize",                                                                           \
          0,                                                                                       \
          OPT_FLAG,                                                                                \
          offsetof(type, field.unnormalize),                                                       \
          NULL,                                                                                    \
          NULL,                                                                                    \
          "Multiply word vectors by their norms, and remove the norms." },                         \
        { "fold",                                                                                  \
          0,                                                                                       \
          OPT_CHOICE,                                                                              \
          offsetof(type, field.fold),                                                              \
          "RULE",                                                                                  \
          "auto|none|fasttext|finalfusion",                                                        \
          "How a fastText model is converted: the row of a word is combined with the rows of its " \
          "n-grams by the rules of fastText or of finalfusion's tools, or kept (none). auto uses " \
          "finalfusion for finalfusion files, fasttext for formats with words only, and none for " \
          "all others. The same rules apply on the way to a fastText model." },                    \
    {                                                                                              \
        "metadata", 0, OPT_TEXT, offsetof(type, field.metadata), "FILE", NULL,                     \
            "Replace the metadata of a finalfusion file by the text of FILE (TOML)."               \
    }

/* A change under way; zero-initialise. It must stay until the builder has been saved. */
typedef struct emb_changing {
    tnf_emb *emb;
    char *text;
} emb_changing;

/* Do the options, or the two formats, ask for a change of the vectors? */
bool emb_change_wanted(const emb_change_options *o, const input *in, const char *target);
/* Fills the builder, tells the plan; says what is wrong and gives an exit code. */
int emb_change_add(emb_changing *c, const emb_change_options *o, const input *in,
                   const char *target, tnf_builder *builder, plan *p);
/* --metadata, if it is given. */
int emb_change_metadata(emb_changing *c, const emb_change_options *o, const char *target,
                        tnf_builder *builder);
void emb_change_end(emb_changing *c);

#endif
