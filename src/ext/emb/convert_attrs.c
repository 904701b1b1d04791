/* SPDX-License-Identifier: MIT */
/* Attributes of changed vectors: a fastText model becomes a finalfusion vocabulary, or the other
 * way round. The arguments of fastText are kept, for the conversion back. They are also written as
 * metadata in the form of finalfusion's tools. */
#include "ext/emb/convert.h"

#include "base/buf.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/str.h"
#include "ext/emb/change.h"

#include <string.h>

#define MAX_TOML 4096u

static tnf_status set_number(tnf_builder *b, const char *key, uint64_t number, tnf_error *e)
{
    tnf_value v = tnf_value_uint(number);
    return tnf_builder_set(b, NULL, key, &v, e);
}

/* -------------------------------------------------------------------------- TOML */

static void put_name(tnf_buf *b, const char *key, const tnf_value *v, const char *const *names)
{
    if (!v) /* the first name is the default */
        tnf_buf_printf(b, "%s = \"%s\"\n", key, names[1]);
    for (size_t i = 0; names[i]; i += 2)
        if (tnf_value_is(v, names[i]))
            tnf_buf_printf(b, "%s = \"%s\"\n", key, names[i + 1]);
}

static void put_number(tnf_buf *b, const tnf_emb *emb, const char *key, const char *from,
                       uint64_t otherwise)
{
    const tnf_value *v = tnf_file_attr(emb->file, from);
    bool negative = v && v->kind == TNF_INT && v->as.i < 0;
    tnf_buf_printf(b, "%s = %s%llu\n", key, negative ? "-" : "",
                   (unsigned long long)(!v || (v->kind != TNF_UINT && v->kind != TNF_INT)
                                            ? otherwise
                                        : negative ? 0 - v->as.u
                                                   : v->as.u));
}

/* Writes keys in alphabetical order, like finalfusion's tool in Rust. */
static void put_toml(tnf_buf *b, const tnf_emb *emb)
{
    static const char *const losses[] = { "hs",      "HierarchicalSoftmax",
                                          "ns",      "NegativeSampling",
                                          "softmax", "Softmax",
                                          "ova",     "OneVsAll",
                                          NULL };
    static const char *const models[] = { "cbow",       "Cbow",       "skipgram", "SkipGram",
                                          "supervised", "Supervised", NULL };
    const tnf_value *t = tnf_file_attr(emb->file, "fasttext.t");
    put_number(b, emb, "bucket", "fasttext.bucket", 0);
    tnf_buf_printf(b, "dims = %zu\n", emb->info.dims);
    put_number(b, emb, "epoch", "fasttext.epoch", 0);
    put_name(b, "loss", tnf_file_attr(emb->file, "fasttext.loss"), losses);
    put_number(b, emb, "lr_update_rate", "fasttext.lr_update_rate", 0);
    put_number(b, emb, "max_n", "fasttext.maxn", 0);
    put_number(b, emb, "min_count", "fasttext.min_count", 0);
    put_number(b, emb, "min_n", "fasttext.minn", 0);
    put_name(b, "model", tnf_file_attr(emb->file, "fasttext.model"), models);
    put_number(b, emb, "neg", "fasttext.neg", 0);
    if (t && t->kind == TNF_FLOAT && t->dtype == TNF_F64)
        tnf_buf_printf(b, "sampling_threshold = %s\n",
                       tnf_f64_text((char[TNF_F64_TEXT]) { 0 }, t->as.f64));
    put_number(b, emb, "window_size", "fasttext.ws", 0);
    put_number(b, emb, "word_ngrams", "fasttext.word_ngrams", 1);
}

static tnf_status set_toml(tnf_builder *builder, const tnf_emb *emb, tnf_error *e)
{
    tnf_buf b;
    if (tnf_file_attr(emb->file, "finalfusion.metadata"))
        return TNF_OK;
    tnf_buf_init(&b, &emb->alloc, MAX_TOML);
    put_toml(&b, emb);
    tnf_buf_u8(&b, 0);
    tnf_status status = tnf_buf_status(&b, "the metadata", e);
    if (status == TNF_OK)
        status = tnf_emb_set_text(builder, "finalfusion.metadata", (const char *)b.p, e);
    tnf_buf_free(&b);
    return status;
}

/* Is it the text that set_toml() makes from the file's own arguments? */
static bool is_our_toml(const tnf_emb *emb, const tnf_value *v)
{
    tnf_buf b;
    tnf_buf_init(&b, &emb->alloc, MAX_TOML);
    put_toml(&b, emb);
    bool same = b.status == TNF_OK && v->kind == TNF_STRING && v->n == b.n &&
                memcmp(v->as.s, b.p, b.n) == 0;
    tnf_buf_free(&b);
    return same;
}

/* -------------------------------------------------------------------- attributes */

/* Does the attribute describe the vocabulary, whose kind changes? */
static bool is_of_vocab(const tnf_member *m)
{
    return tnf_str_is(m->key, "finalfusion.vocab") || tnf_str_is(m->key, "finalfusion.min_n") ||
           tnf_str_is(m->key, "finalfusion.max_n") || tnf_str_is(m->key, "finalfusion.buckets") ||
           tnf_str_is(m->key, "finalfusion.chunks") || tnf_str_is(m->key, "fasttext.rows");
}

bool tnf_becomes_model(const tnf_emb *emb, const tnf_emb_change *how)
{
    return how->unfold != TNF_FOLD_NONE &&
           (emb->info.subwords == TNF_SUBWORDS_NONE || emb->info.subwords == TNF_SUBWORDS_FASTTEXT);
}

static tnf_status set_vocab(tnf_builder *b, const tnf_emb *emb, const tnf_emb_change *how,
                            tnf_error *e)
{
    const tnf_emb_info *i = &emb->info;
    if (how->fold == TNF_FOLD_NONE)
        TNF_TRY(tnf_emb_set_text(b, "fasttext.rows", "raw", e));
    else
        TNF_TRY(set_toml(b, emb, e));
    if (emb->pruned.there || i->subwords == TNF_SUBWORDS_NONE)
        return tnf_emb_set_text(b, "finalfusion.vocab", "simple", e);
    TNF_TRY(tnf_emb_set_text(b, "finalfusion.vocab", "fasttext", e));
    TNF_TRY(set_number(b, "finalfusion.min_n", i->min_n, e));
    TNF_TRY(set_number(b, "finalfusion.max_n", i->max_n, e));
    return set_number(b, "finalfusion.buckets", i->buckets, e);
}

static tnf_status set_arguments(tnf_builder *b, const tnf_emb *emb, tnf_error *e)
{
    const tnf_emb_info *i = &emb->info;
    if (i->subwords == TNF_SUBWORDS_NONE || i->composed)
        return TNF_OK;
    TNF_TRY(set_number(b, "fasttext.bucket", i->buckets, e));
    TNF_TRY(set_number(b, "fasttext.minn", i->min_n, e));
    return set_number(b, "fasttext.maxn", i->max_n, e);
}

tnf_status tnf_emb_convert_attrs(tnf_builder *builder, const tnf_emb *emb,
                                 const tnf_emb_change *how, tnf_error *e)
{
    const tnf_value *attrs = tnf_file_info(emb->file)->attrs;
    bool to_model = tnf_becomes_model(emb, how);
    bool to_vocab = !to_model && (emb->info.composed || (emb->model && how->fold != TNF_FOLD_NONE));
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *m = &attrs->as.members[i];
        if ((to_model || to_vocab) && is_of_vocab(m))
            continue;
        if ((to_model || to_vocab || how->normalize) && tnf_str_is(m->key, "finalfusion.norms"))
            continue;
        if (to_model && tnf_str_is(m->key, "finalfusion.metadata") && is_our_toml(emb, &m->value))
            continue;
        TNF_TRY(tnf_builder_set_n(builder, NULL, m->key, &m->value, e));
    }
    if (to_vocab)
        return set_vocab(builder, emb, how, e);
    return to_model ? set_arguments(builder, emb, e) : TNF_OK;
}
