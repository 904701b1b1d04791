/* SPDX-License-Identifier: MIT */
/* Decides what can be written of a catalog: `embeddings`, a matrix of f32, and `vocab`, a word for
 * each of its rows. Both or neither. */
#include "formats/wordvec/wordvec.h"

static const char *why_no_matrix(const tnf_object *o)
{
    if (o->layout != &tnf_layout_dense || o->rank != 2)
        return "vectors must be a dense matrix";
    if (o->parts[0].type == tnf_type_of(TNF_F32))
        return NULL;
    return o->parts[0].type->number == TNF_NUMBER_FLOAT
               ? "numbers must be f32: --dtype f32 casts them"
               : "numbers must be f32";
}

static const char *why_not(const tnf_object *o)
{
    if (tnf_str_is(o->name, WV_EMBEDDINGS))
        return why_no_matrix(o);
    if (tnf_str_is(o->name, WV_VOCAB))
        return o->layout != &tnf_layout_dense && o->rank == 1 ? NULL
                                                              : "words must be a list of strings";
    if (tnf_str_is(o->name, "norms"))
        return "the format has no place for norms: 'tenfold convert --unnormalize' multiplies "
               "them into the vectors";
    return "the format can store only `embeddings` and their `vocab`";
}

void tnf_wv_plan_make(wv_plan *plan, const tnf_catalog *c, const tnf_verdict *objects)
{
    *plan = (wv_plan) { 0 };
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (objects && objects[i].fate == TNF_DROPPED)
            continue;
        if (tnf_str_is(o->name, WV_EMBEDDINGS))
            plan->embeddings = o;
        else if (tnf_str_is(o->name, WV_VOCAB))
            plan->vocab = o;
    }
    if (!plan->embeddings || !plan->vocab)
        return;
    plan->rows = plan->vocab->shape[0];
    plan->dims = plan->embeddings->shape[1];
}

/* -------------------------------------------------------------------- words */

static tnf_status load_part(const uint8_t **out, const tnf_part *part, tnf_arena *arena,
                            tnf_error *e)
{
    size_t n;
    uint8_t *p = tnf_to_size(&n, part->nbytes) ? tnf_arena_raw(arena, part->nbytes + 1) : NULL;
    if (!p)
        return tnf_arena_fail(arena, "words", e);
    *out = p;
    return tnf_read_part(p, n, part, 0, e);
}

tnf_status tnf_wv_list_load(wv_list *out, const tnf_object *vocab, tnf_arena *arena,
                            const char **why, tnf_error *e)
{
    const tnf_part *bytes = tnf_object_part(vocab, "bytes");
    const uint8_t *text = NULL;
    uint64_t before = 0;
    *out = (wv_list) { .count = vocab->shape[0] };
    *why = "its offsets do not ascend from 0 to the end of its bytes";
    TNF_TRY(load_part(&out->offsets, tnf_object_part(vocab, "offsets"), arena, e));
    TNF_TRY(load_part(&text, bytes, arena, e));
    out->bytes = (const char *)text;
    for (uint64_t i = 0; i <= out->count; i++) {
        uint64_t offset = tnf_le64(out->offsets + 8 * i);
        if (i == 0 ? offset != 0 : offset < before)
            return TNF_OK;
        before = offset;
    }
    if (before == bytes->nbytes)
        *why = NULL;
    return TNF_OK;
}

/* ------------------------------------------------------------------ together */

static void drop_object(tnf_fit *fit, const tnf_object *o, const char *why)
{
    if (o && fit->objects[o - fit->catalog->objects].fate != TNF_DROPPED)
        fit->objects[o - fit->catalog->objects] = (tnf_verdict) { TNF_DROPPED, why };
}

static tnf_status check_words(const wv_plan *plan, tnf_arena *arena, wv_word_rule rule,
                              const void *ctx, const char **why, tnf_error *e)
{
    wv_list words;
    TNF_TRY(tnf_wv_list_load(&words, plan->vocab, arena, why, e));
    for (uint64_t i = 0; !*why && i < words.count; i++)
        *why = rule(wv_list_at(&words, i), ctx);
    return TNF_OK;
}

tnf_status tnf_wv_fits(tnf_fit *fit, wv_word_rule rule, const void *ctx, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    const char *why = NULL;
    wv_plan plan;
    for (size_t i = 0; i < c->n; i++)
        if ((why = why_not(&c->objects[i])))
            drop_object(fit, &c->objects[i], why);
    tnf_wv_plan_make(&plan, c, fit->objects);
    why = !plan.vocab                             ? "its rows have no words"
          : !plan.embeddings                      ? "there are no vectors for its words"
          : plan.embeddings->shape[0] < plan.rows ? "there are more words than rows"
                                                  : NULL;
    if (!why)
        TNF_TRY(check_words(&plan, fit->scratch, rule, ctx, &why, e));
    if (why) {
        drop_object(fit, plan.embeddings, why);
        drop_object(fit, plan.vocab, why);
    } else if (plan.embeddings->shape[0] > plan.rows) {
        fit->objects[plan.embeddings - c->objects] = (tnf_verdict) {
            TNF_TRANSFORMED, "only the rows of words are written, not those of subwords"
        };
    }
    return TNF_OK;
}
