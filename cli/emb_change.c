/* SPDX-License-Identifier: MIT */
/* Vectors that convert changes on the way, and what it says of that. */
#include "emb_change.h"
#include "out.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FOLD_AUTO, FOLD_NONE, FOLD_FASTTEXT, FOLD_FINALFUSION }; /* in the order of the option */

#define MAX_METADATA ((size_t)64 << 20)

static const tnf_value *attr(const input *in, const char *key)
{
    return tnf_value_get(in->info->attrs, key);
}

static bool is_text(const tnf_value *v, const char *text)
{
    return v && v->kind == TNF_STRING && v->n == strlen(text) && memcmp(v->as.s, text, v->n) == 0;
}

static bool is_format(const char *target, const char *name)
{
    return target && strcmp(target, name) == 0;
}

/* Formats of vectors of words, without rows for parts of them. */
static bool is_of_words(const char *target)
{
    return is_format(target, "word2vec") || is_format(target, "text") ||
           is_format(target, "textdims");
}

/* A fastText model with rows as they were trained. */
static bool is_model(const input *in)
{
    bool arguments = false;
    for (size_t i = 0; i < in->info->attrs->n; i++)
        arguments |= !strncmp(in->info->attrs->as.members[i].key.p, "fasttext.", 9);
    return arguments && tnf_find(in->file, "embeddings") &&
           (!attr(in, "finalfusion.vocab") || is_text(attr(in, "fasttext.rows"), "raw"));
}

bool emb_change_wanted(const emb_change_options *o, const input *in, const char *target)
{
    bool vectors = tnf_find(in->file, "embeddings") != NULL;
    if (o->normalize || o->unnormalize || (o->fold && is_model(in)))
        return true;
    if (is_format(target, "fasttext"))
        return vectors && tnf_find(in->file, "vocab") &&
               (!is_model(in) || attr(in, "finalfusion.vocab"));
    return is_model(in) && (is_format(target, "finalfusion") || is_of_words(target));
}

static tnf_fold fold_of(const emb_change_options *o, const char *target)
{
    switch (o->fold) {
    case FOLD_NONE:
        return TNF_FOLD_NONE;
    case FOLD_FASTTEXT:
        return TNF_FOLD_FASTTEXT;
    case FOLD_FINALFUSION:
        return TNF_FOLD_FINALFUSION;
    default:
        return is_of_words(target) ? TNF_FOLD_FASTTEXT : TNF_FOLD_FINALFUSION;
    }
}

/* ------------------------------------------------------------------------- plan */

static const char *why_changed(const tnf_emb_info *info, const tnf_emb_change *how)
{
    if (info->apart && how->fold != TNF_FOLD_NONE)
        return how->normalize ? "rows of words become vectors, with their n-grams, of length 1"
                              : "rows of words become vectors, with their n-grams; --fold=none "
                                "keeps them as they are";
    if (!info->apart && how->unfold != TNF_FOLD_NONE &&
        (info->subwords == TNF_SUBWORDS_FASTTEXT || info->has_norms))
        return "norms are multiplied in, n-grams are taken out of the rows of words, as fastText "
               "has them";
    if (how->normalize)
        return "vectors of words are divided by their lengths, which are kept as norms";
    return how->unnormalize && info->has_norms ? "vectors of words are multiplied by their norms"
                                               : NULL;
}

/* What was asked for, or keeps every vector, is told and not refused. */
static void tell(const emb_changing *c, const input *in, plan *p, const tnf_emb_change *how)
{
    const char *why = why_changed(tnf_emb_describe(c->emb), how);
    bool asked = how->unnormalize || (how->normalize && !is_model(in));
    if (!why)
        return;
    p->told = "embeddings";
    plan_item(p, &(tnf_plan_item) {
                     TNF_TRANSFORMED, "tensor", { p->told, strlen(p->told) }, why, !asked });
}

/* -------------------------------------------------------------------------- all */

int emb_change_add(emb_changing *c, const emb_change_options *o, const input *in,
                   const char *target, tnf_builder *builder, plan *p)
{
    tnf_error error;
    tnf_emb_options view = { .size = sizeof view };
    tnf_emb_change how = { .size = sizeof how };
    view.no_index = true;
    how.normalize = o->normalize;
    how.unnormalize = o->unnormalize;
    if (is_format(target, "fasttext"))
        how.unfold = o->fold == FOLD_AUTO ? TNF_FOLD_FINALFUSION : fold_of(o, target);
    else
        how.fold = fold_of(o, target);
    if (tnf_emb_open(&c->emb, in->file, &view, &error) != TNF_OK ||
        tnf_emb_convert(builder, c->emb, &how, &error) != TNF_OK)
        return file_error(in->name, &error);
    tell(c, in, p, &how);
    return EXIT_DONE;
}

static bool read_text(emb_changing *c, const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    c->text = f ? malloc(MAX_METADATA + 1) : NULL;
    bool ok = c->text != NULL;
    if (ok) {
        *n = fread(c->text, 1, MAX_METADATA + 1, f);
        ok = !ferror(f);
    }
    if (!ok)
        file_message(path, "", TNF_NO_OFFSET, strerror(errno));
    if (f)
        fclose(f);
    return ok;
}

int emb_change_metadata(emb_changing *c, const emb_change_options *o, const char *target,
                        tnf_builder *builder)
{
    tnf_error error;
    size_t n = 0;
    if (!o->metadata)
        return EXIT_DONE;
    if (!is_format(target, "finalfusion"))
        return usage_error("convert: --metadata is for finalfusion files; 'tenfold meta --set' "
                           "sets metadata of others");
    if (!read_text(c, o->metadata, &n))
        return EXIT_IO;
    if (n > MAX_METADATA || !tnf_utf8_valid(c->text, n, NULL)) {
        file_message(o->metadata, "", TNF_NO_OFFSET, "no text in UTF-8, or more than 64 MiB of it");
        return EXIT_BAD;
    }
    tnf_value v = { .kind = TNF_STRING, .n = n, .as.s = c->text };
    if (tnf_builder_set(builder, NULL, "finalfusion.metadata", &v, &error) == TNF_OK)
        return EXIT_DONE;
    return file_error(o->metadata, &error);
}

void emb_change_end(emb_changing *c)
{
    tnf_emb_close(c->emb);
    free(c->text);
}
