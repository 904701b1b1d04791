/* SPDX-License-Identifier: MIT */
/* Changes embeddings during a conversion.
 *
 *   requested                     select, explicit, reconstruct, quantize, normalize, unnormalize
 *   required by the target        fastText model ─ fold ─> vectors of words
 *                                 fastText model <─ unfold ─ vectors of words
 *
 * The formats of input and output declare whether their rows are vectors or only parts of them. No
 * format is known here by its name.
 */
#include "job/vectors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "base/str.h"
#include "ext/emb/convert.h"

#include <stdlib.h>
#include <string.h>

/* In the order of TNF_FOLD_RULES. Those from FOLD_NONE on are the values of tnf_fold. */
enum { FOLD_UNKNOWN = -1, FOLD_AUTO, FOLD_NONE };

static int fold_asked(const tnf_convert_options *o)
{
    return o->fold ? tnf_str_position(TNF_FOLD_RULES, o->fold) : FOLD_AUTO;
}

static tnf_fold asked_rule(int asked)
{
    return asked < FOLD_NONE ? TNF_FOLD_NONE : (tnf_fold)(asked - FOLD_NONE);
}

tnf_status tnf_vectors_check(const tnf_convert_options *o, tnf_error *e)
{
    bool changes = o->normalize || o->unnormalize || fold_asked(o) != FOLD_AUTO;
    if (fold_asked(o) == FOLD_UNKNOWN)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the fold rule must be one of " TNF_FOLD_RULES ", not '%s'", o->fold);
    if (o->normalize && o->unnormalize)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "vectors cannot both be divided and multiplied by their lengths");
    if (o->step != TNF_EMB_KEEP && changes)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "this step cannot be combined with folding or normalising");
    return tnf_check_choice((unsigned)o->step, TNF_EMB_QUANTIZE, "step", e);
}

/* --------------------------------------------------------------------- required */

static bool has_words(const tnf_file *file)
{
    return tnf_find(file, "embeddings") && tnf_find(file, "vocab");
}

/* A fastText model, whose rows are those of the training. */
static bool is_model(const tnf_file *file)
{
    return has_words(file) && tnf_emb_is_model(file);
}

/* Decides how vectors change; returns false if they do not change. */
static bool find_change(tnf_emb_change *how, const tnf_file *file, const tnf_convert_options *o,
                        const tnf_format_info *target)
{
    int asked = fold_asked(o);
    unsigned threads = 0;
    tnf_emb_options emb;
    if (TNF_TAKE_OPTIONS(tnf_emb_options, &emb, o->emb, NULL) == TNF_OK)
        threads = emb.threads;
    *how = (tnf_emb_change) { .size = sizeof *how,
                              .normalize = o->normalize,
                              .unnormalize = o->unnormalize,
                              .threads = threads };
    if (target->unfolds != TNF_FOLD_NONE) {
        how->unfold = asked == FOLD_AUTO ? target->unfolds : asked_rule(asked);
        return o->normalize || o->unnormalize || (has_words(file) && tnf_emb_has_vectors(file));
    }
    if (!is_model(file))
        return o->normalize || o->unnormalize;
    tnf_fold otherwise = o->normalize && target->folds == TNF_FOLD_NONE ? TNF_FOLD_FINALFUSION
                                                                        : target->folds;
    how->fold = asked == FOLD_AUTO ? otherwise : asked_rule(asked);
    return o->normalize || o->unnormalize || asked != FOLD_AUTO || target->folds != TNF_FOLD_NONE;
}

/* Attributes that describe the new vectors were added for the target. If the target has no place
 * for them, that is not a loss. */
static tnf_status drop_invented(const tnf_vectors_step *s, tnf_error *e)
{
    tnf_file *made;
    tnf_status status = tnf_open_builder(&made, s->made, NULL, e);
    const tnf_value *attrs = status == TNF_OK ? tnf_file_info(made)->attrs : NULL;
    for (size_t i = 0; status == TNF_OK && i < attrs->n; i++) {
        const tnf_str key = attrs->as.members[i].key;
        if (!tnf_value_get_n(tnf_file_info(s->from)->attrs, key.p, key.n))
            status = tnf_builder_set_n(s->made, NULL, key, NULL, e);
    }
    tnf_close(made);
    return status;
}

static tnf_status change_vectors(tnf_vectors_step *s, const tnf_emb_change *how, bool asked,
                                 const tnf_format_info *target, tnf_error *e)
{
    const tnf_emb_info *info = tnf_emb_describe(s->emb);
    s->why = tnf_emb_convert_reason(info, how);
    s->changed = info->embeddings->name;
    s->unasked = !asked;
    TNF_TRY(tnf_emb_convert(s->made, s->emb, how, e));
    bool words_only = target->folds != TNF_FOLD_NONE && strcmp(target->metadata, "none") == 0;
    return words_only ? drop_invented(s, e) : TNF_OK;
}

/* -------------------------------------------------------------------- requested */

/* A word is unknown if it has no vector, but not if its vector cannot be computed. */
static tnf_status find_vector(bool *out, const tnf_emb *emb, tnf_str word, float *room,
                              tnf_error *e)
{
    tnf_emb_found found;
    *out = tnf_emb_find(emb, word) != TNF_NO_ROW;
    if (*out)
        return TNF_OK;
    TNF_TRY(tnf_emb_vectors(room, &found, emb, &word, 1, e));
    *out = found.found;
    return TNF_OK;
}

static tnf_status select_known(tnf_vectors_step *s, const tnf_convert_options *o,
                               struct tnf_report_room *report, tnf_error *e)
{
    TNF_TRY(tnf_emb_need_words(o->words, o->nwords, e));
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    size_t n = 0, words = (o->nwords + 1) * sizeof(tnf_str);
    size_t row = (tnf_emb_describe(s->emb)->dims + 1) * sizeof(float);
    tnf_str *known = tnf_alloc(&alloc, words);
    float *room = tnf_alloc(&alloc, row);
    tnf_status status = known && room ? TNF_OK : tnf_no_memory("words", e);
    for (size_t i = 0; status == TNF_OK && i < o->nwords; i++) {
        bool found = false;
        status = find_vector(&found, s->emb, o->words[i], room, e);
        if (found)
            known[n++] = o->words[i];
        else if (status == TNF_OK)
            report->report.unknown_words++;
    }
    if (status == TNF_OK)
        status = tnf_emb_select(s->made, s->emb, known, n, e);
    tnf_free(&alloc, known, words);
    tnf_free(&alloc, room, row);
    return status;
}

static tnf_status reconstruct_rows(tnf_vectors_step *s, const tnf_convert_options *o,
                                   const tnf_format_info *target, tnf_error *e)
{
    const tnf_emb_change how = { .size = sizeof how, .fold = target->folds };
    /* A quantized fastText model becomes dense when it is folded. */
    if (is_model(s->from) && target->folds != TNF_FOLD_NONE)
        return change_vectors(s, &how, false, target, e);
    return tnf_emb_reconstruct(s->made, s->emb, o->save && o->save->as_is, e);
}

/* A dry run does not need good centroids, since any centroids give the same layout. */
static tnf_status quantize_rows(tnf_vectors_step *s, const tnf_convert_options *o,
                                struct tnf_report_room *report, tnf_error *e)
{
    tnf_quantize_options how;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_quantize_options, &how, o->quantize, e));
    if (o->save && o->save->dry_run)
        how.iterations = how.attempts = 1;
    return tnf_emb_quantize(&report->quantized, s->made, s->emb, &how, e);
}

static tnf_status run_step(tnf_vectors_step *s, const tnf_convert_options *o,
                           const tnf_format_info *target, struct tnf_report_room *report,
                           tnf_error *e)
{
    switch (o->step) {
    case TNF_EMB_SELECT:
        if (o->skip_unknown)
            return select_known(s, o, report, e);
        return tnf_emb_select(s->made, s->emb, o->words, o->nwords, e);
    case TNF_EMB_EXPLICIT:
        return tnf_emb_explicit(s->made, s->emb, e);
    case TNF_EMB_RECONSTRUCT:
        return reconstruct_rows(s, o, target, e);
    default:
        return quantize_rows(s, o, report, e);
    }
}

/* ------------------------------------------------------------------------ steps */

static tnf_status open_view(tnf_vectors_step *s, const tnf_builder *selected,
                            const tnf_file *const *files, size_t n, tnf_error *e)
{
    tnf_open_options how = TNF_OPEN_INIT;
    for (size_t i = 0; i < n; i++) {
        uint64_t memory = tnf_file_info(files[i])->memory;
        how.limits.memory = memory > how.limits.memory ? memory : how.limits.memory;
    }
    TNF_TRY(tnf_open_builder(&s->view, selected, &how, e));
    s->from = s->view;
    return TNF_OK;
}

/* If the options name the matrix of a later group, only this group is converted. */
static tnf_status take_group(tnf_vectors_step *s, tnf_emb_options *emb, tnf_error *e)
{
    tnf_open_options how = TNF_OPEN_INIT;
    if (!emb->embeddings || emb->vocab)
        return TNF_OK;
    const tnf_str name = { emb->embeddings, emb->embeddings_bytes ? emb->embeddings_bytes
                                                                  : strlen(emb->embeddings) };
    how.limits.memory = tnf_file_info(s->view)->memory;
    TNF_TRY(tnf_group_open(&s->group, s->view, name, &how, e));
    if (!s->group.file)
        return TNF_OK;
    s->from = s->group.file;
    emb->embeddings = NULL;
    return TNF_OK;
}

static tnf_status new_builder(tnf_vectors_step *s, const tnf_file *const *files, size_t n,
                              tnf_error *e)
{
    TNF_TRY(tnf_builder_new(&s->made, NULL, e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_builder_uses(s->made, files[i], e));
    return TNF_OK;
}

static tnf_status open_embeddings(tnf_vectors_step *s, const tnf_file *const *files, size_t n,
                                  const tnf_convert_options *o, const tnf_emb_options *options,
                                  tnf_error *e)
{
    tnf_emb_options how = *options;
    how.no_index = o->step == TNF_EMB_KEEP; /* no word is looked up */
    TNF_TRY(tnf_emb_open(&s->emb, s->from, &how, e));
    return new_builder(s, files, n, e);
}

tnf_status tnf_vectors_make(tnf_vectors_step *s, const tnf_builder *selected,
                            const tnf_file *const *files, size_t n, const tnf_convert_options *o,
                            const tnf_format_info *target, struct tnf_report_room *report,
                            tnf_error *e)
{
    tnf_emb_change how;
    tnf_emb_options emb;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_emb_options, &emb, o->emb, e));
    TNF_TRY(open_view(s, selected, files, n, e));
    TNF_TRY(take_group(s, &emb, e));
    bool changes = o->step == TNF_EMB_KEEP && find_change(&how, s->from, o, target);
    bool keeps = o->step == TNF_EMB_KEEP && !changes;
    if (keeps && emb.embeddings)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                        "there is no group of tensors with the matrix '%s'", emb.embeddings);
    if (keeps && !s->group.file)
        return TNF_OK;
    if (keeps) {
        TNF_TRY(new_builder(s, files, n, e));
        return tnf_builder_add_file(s->made, s->from, e);
    }
    bool asked = o->unnormalize || (o->normalize && !is_model(s->from));
    TNF_TRY(open_embeddings(s, files, n, o, &emb, e));
    report->report.step = TNF_STEP_VECTORS;
    return changes ? change_vectors(s, &how, asked, target, e) : run_step(s, o, target, report, e);
}

void tnf_vectors_free(tnf_vectors_step *s)
{
    tnf_builder_free(s->made);
    tnf_emb_close(s->emb);
    tnf_group_close(&s->group);
    tnf_close(s->view);
}
