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
      "Divide the vectors of words by their lengths and keep those as norms, in any format that "  \
      "has a place for norms." },                                                                  \
        { "unnormalize",                                                                           \
          0,                                                                                       \
          OPT_FLAG,                                                                                \
          offsetof(type, field.unnormalize),                                                       \
          NULL,                                                                                    \
          NULL,                                                                                    \
          "Multiply the vectors of words by their norms, which are then not needed any more." },   \
        { "fold",                                                                                  \
          0,                                                                                       \
          OPT_CHOICE,                                                                              \
          offsetof(type, field.fold),                                                              \
          "RULE",                                                                                  \
          "auto|none|fasttext|finalfusion",                                                        \
          "Of a fastText model: put rows of words together with those of their n-grams by the "    \
          "rules of fastText or of finalfusion's tools, or keep them as they are (none). auto "    \
          "takes finalfusion for finalfusion files, fasttext for vectors of words only, and "      \
          "none for all others. The same on the way to a fastText model." },                       \
    {                                                                                              \
        "metadata", 0, OPT_TEXT, offsetof(type, field.metadata), "FILE", NULL,                     \
            "Put the text of FILE (TOML) in the place of the metadata of a finalfusion file."      \
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
