/* SPDX-License-Identifier: MIT */
/* Decides what a file can hold of a catalog: five tensors by their names, if they fit together.
 *
 *   embeddings    the matrix, a row for each word and then one for each bucket or group of n-grams
 *   vocab         the words
 *   ngrams        the n-grams of an explicit vocabulary
 *   ngrams.index  the row of each, counted after the last word's; without it each has its own
 *   norms         one per word
 *
 * finalfusion.vocab names the kind of vocabulary. Without this attribute, a catalog with n-grams
 * has an explicit vocabulary and one with only words a simple one.
 *
 * More groups of them, with numbers before the names, follow if the first one is complete
 * (groups.c).
 */
#include "formats/finalfusion/ff.h"

#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------- plan */

static bool get_uint(const tnf_value *attrs, const char *key, uint64_t most, uint64_t *out)
{
    const tnf_value *v = tnf_value_get(attrs, key);
    *out = 0;
    return tnf_value_whole(out, v) && *out <= most;
}

static bool get_text(const tnf_value *attrs, const char *key, tnf_str *out)
{
    const tnf_value *v = tnf_value_get(attrs, key);
    bool text = v && v->kind == TNF_STRING && v->n <= UINT32_MAX;
    *out = text ? (tnf_str) { v->as.s, v->n } : (tnf_str) { "", 0 };
    return text;
}

static bool get_lengths(ff_plan *p, const tnf_value *attrs)
{
    return get_uint(attrs, FF_ATTR("min_n"), UINT32_MAX, &p->min_n) &&
           get_uint(attrs, FF_ATTR("max_n"), UINT32_MAX, &p->max_n) && p->min_n >= 1 &&
           p->min_n <= p->max_n;
}

static bool get_floret(ff_plan *p, const tnf_value *attrs)
{
    return get_uint(attrs, FF_ATTR("hashes"), 4, &p->hashes) && p->hashes >= 1 &&
           get_uint(attrs, FF_ATTR("seed"), UINT32_MAX, &p->seed) &&
           get_text(attrs, FF_ATTR("bow"), &p->bow) && get_text(attrs, FF_ATTR("eow"), &p->eow);
}

/* Does the catalog have everything for this kind of vocabulary? */
static bool is_possible(ff_plan *p, const tnf_value *attrs, uint32_t kind)
{
    bool lengths = get_lengths(p, attrs);
    bool buckets = get_uint(attrs, FF_ATTR("buckets"), UINT64_MAX, &p->buckets) && p->buckets > 0;
    switch (kind) {
    case FF_SIMPLE:
        return p->vocab;
    case FF_BUCKET:
        return p->vocab && lengths && buckets && (p->buckets & (p->buckets - 1)) == 0;
    case FF_FASTTEXT:
        return p->vocab && lengths && buckets && p->buckets <= UINT32_MAX;
    case FF_EXPLICIT:
        return p->vocab && p->ngrams && lengths;
    default:
        return !p->vocab && lengths && buckets && get_floret(p, attrs);
    }
}

static uint32_t kind_named(tnf_str name)
{
    for (uint32_t id = 1; id <= FF_LAST; id++)
        if (tnf_ff_vocab_names[id] && strlen(tnf_ff_vocab_names[id]) == name.n &&
            memcmp(tnf_ff_vocab_names[id], name.p, name.n) == 0)
            return id;
    return 0;
}

void tnf_ff_choose_kind(ff_plan *p, const tnf_value *attrs)
{
    tnf_str name;
    uint32_t said = get_text(attrs, FF_ATTR("vocab"), &name) ? kind_named(name) : 0;
    p->kind = p->vocab ? FF_SIMPLE : 0;
    if (said && is_possible(p, attrs, said))
        p->kind = said;
    else if (said && p->vocab)
        p->why = "the vocabulary is saved as simple: its other attributes, or its n-grams, are "
                 "missing or invalid";
    else if (!said && is_possible(p, attrs, FF_EXPLICIT))
        p->kind = FF_EXPLICIT;
    p->words = p->kind && p->vocab ? p->vocab->shape[0] : 0;
    p->subwords = p->kind <= FF_SIMPLE || p->kind == FF_EXPLICIT ? 0 : p->buckets;
}

const tnf_object **tnf_ff_plan_place(ff_plan *p, tnf_str name)
{
    return tnf_str_is(name, FF_EMBEDDINGS)   ? &p->embeddings
           : tnf_str_is(name, FF_VOCAB)      ? &p->vocab
           : tnf_str_is(name, FF_NGRAMS)     ? &p->ngrams
           : tnf_str_is(name, FF_INDEX)      ? &p->index
           : tnf_str_is(name, FF_NORMS_NAME) ? &p->norms
                                             : NULL;
}

void tnf_ff_plan_make(ff_plan *p, const tnf_catalog *c, const tnf_option_value *options,
                      const tnf_verdict *objects)
{
    *p = (ff_plan) { .dialect = options[FF_OPTION_DIALECT].u ? FF_SEED : FF_REAL };
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        const tnf_object **place = tnf_ff_plan_place(p, o->name);
        if (place && !(objects && objects[i].fate == TNF_DROPPED))
            *place = o;
    }
    const tnf_value attrs = tnf_attrs_value(&c->attrs);
    tnf_ff_choose_kind(p, &attrs);
}

bool tnf_ff_is_native(const ff_plan *p, const tnf_member *m)
{
    static const struct {
        const char *key;
        uint32_t kinds; /* a bit for each kind of vocabulary that stores the attribute */
    } says[] = {
#define KIND(id) (1u << (id))
#define SUBWORD  (KIND(FF_BUCKET) | KIND(FF_FASTTEXT) | KIND(FF_EXPLICIT) | KIND(FF_FLORET))
        { FF_ATTR("vocab"), SUBWORD | KIND(FF_SIMPLE) },
        { FF_ATTR("min_n"), SUBWORD },
        { FF_ATTR("max_n"), SUBWORD },
        { FF_ATTR("buckets"), SUBWORD },
        { FF_ATTR("hashes"), KIND(FF_FLORET) },
        { FF_ATTR("seed"), KIND(FF_FLORET) },
        { FF_ATTR("bow"), KIND(FF_FLORET) },
        { FF_ATTR("eow"), KIND(FF_FLORET) },
    };
    if (tnf_str_is(m->key, FF_ATTR("metadata")))
        return m->value.kind == TNF_STRING || m->value.kind == TNF_BYTES;
    if (tnf_str_is(m->key, FF_BARE))
        return true; /* implied by a file without norms */
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (tnf_str_is(m->key, says[i].key))
            return says[i].kinds >> p->kind & 1;
    return false;
}

/* ---------------------------------------------------------------- unit rows */

/* Are these rows of a fastText model, which become vectors when those of their n-grams are
 * added? */
static bool is_raw(const tnf_catalog *c)
{
    const tnf_object *matrix = tnf_catalog_find(c, FF_EMBEDDINGS, strlen(FF_EMBEDDINGS));
    const tnf_object *words = tnf_catalog_find(c, FF_VOCAB, strlen(FF_VOCAB));
    bool arguments = false;
    tnf_str text;
    for (size_t i = 0; i < c->attrs.n; i++)
        arguments = arguments || tnf_str_begins(c->attrs.members[i].key, "fasttext.");
    if (!arguments || !matrix || !words || matrix->shape[0] == words->shape[0])
        return false;
    const tnf_value attrs = tnf_attrs_value(&c->attrs);
    return !get_text(&attrs, FF_ATTR("vocab"), &text) ||
           (get_text(&attrs, "fasttext.rows", &text) && tnf_str_is(text, "raw"));
}

const char *tnf_ff_unit_rows(const tnf_catalog *c)
{
    const tnf_value attrs = tnf_attrs_value(&c->attrs);
    const tnf_value *norms = tnf_value_get(&attrs, FF_BARE);
    if ((norms && norms->kind == TNF_BOOL && !norms->as.b) || is_raw(c))
        return NULL; /* they come from such a file or are raw rows */
    return "vectors are divided by their lengths, which are kept as norms, as finalfusion's tools "
           "expect; --as-is leaves them unchanged";
}

/* ------------------------------------------------------------- single objects */

uint64_t tnf_ff_pieces(const tnf_object *o)
{
    uint64_t rows = o->shape[0];
    const tnf_value *said = tnf_value_get(o->attrs, FF_PIECES);
    if (rows)
        return tnf_object_part(o, "codes")->nbytes / rows;
    bool divides = said && said->kind == TNF_UINT && said->as.u && o->shape[1] % said->as.u == 0;
    return divides ? said->as.u : 1;
}

/* Why the tools' dialect has no integers, by the number of their type. */
#define NO_INTEGER(type) "finalfusion's tools read only f32, not " type ": -o dialect=seed keeps it"
static const char *const tools_why[FF_TYPE_F32] = {
    NO_INTEGER("i8"),  NO_INTEGER("u8"),  NO_INTEGER("i16"), NO_INTEGER("u16"),  NO_INTEGER("i32"),
    NO_INTEGER("u32"), NO_INTEGER("i64"), NO_INTEGER("u64"), NO_INTEGER("i128"), NO_INTEGER("u128")
};

static const char *why_no_matrix(const tnf_object *o, bool seed)
{
    bool quantized = strcmp(o->layout->id, "pq/1") == 0;
    uint32_t id;
    if ((!quantized && o->layout != &tnf_layout_dense) || o->rank != 2)
        return "finalfusion's embeddings must be a matrix, dense or quantized";
    if (o->shape[1] > UINT32_MAX)
        return "a row has more than 2^32 elements";
    if (quantized)
        return NULL; /* the layout has checked the rest */
    if (!tnf_ff_type_id(&id, o->parts[0].type))
        return "the format has no such type";
    if (id == FF_TYPE_F32 || seed)
        return NULL;
    return o->parts[0].type->number == TNF_NUMBER_FLOAT
               ? "finalfusion's tools read only f32: -o dialect=seed keeps it, --dtype f32 casts it"
               : tools_why[id];
}

static const char *why_not(const tnf_object *o, bool seed)
{
    bool strings = strcmp(o->layout->id, "strings/1") == 0 && o->rank == 1;
    bool vector = o->layout == &tnf_layout_dense && o->rank == 1;
    tnf_str name = o->name;
    (void)tnf_ff_group_of(&name);
    if (tnf_str_is(name, FF_EMBEDDINGS))
        return why_no_matrix(o, seed);
    if (tnf_str_is(name, FF_VOCAB) || tnf_str_is(name, FF_NGRAMS))
        return strings ? NULL : "finalfusion's words must be a list of strings";
    if (tnf_str_is(name, FF_INDEX))
        return vector && o->parts[0].type == tnf_type_of(TNF_U64)
                   ? NULL
                   : "indices of n-grams must be u64";
    if (tnf_str_is(name, FF_NORMS_NAME))
        return vector && o->parts[0].type == tnf_type_of(TNF_F32) ? NULL
                                                                  : "norms must be a vector of f32";
    return "a finalfusion file holds only embeddings, vocab, norms and ngrams";
}

/* -------------------------------------------------------- objects in relation */

const char tnf_ff_wrong_rows[] =
    "the number of rows is not the number of words plus the number of rows for subwords";
const char tnf_ff_wrong_norms[] = "the number of norms differs from that of the words";

struct judging {
    tnf_fit *fit;
    ff_plan plan;
};

/* Drops the object (NULL: no-op) and plans again. */
static void drop_object(struct judging *j, const tnf_object *o, const char *why)
{
    const tnf_catalog *c = j->fit->catalog;
    if (!o)
        return;
    j->fit->objects[o - c->objects] = (tnf_verdict) { TNF_DROPPED, why };
    tnf_ff_plan_make(&j->plan, c, j->fit->options, j->fit->objects);
}

static tnf_status judge_strings(struct judging *j, const tnf_object *o, tnf_error *e)
{
    ff_words words;
    const char *why = NULL;
    if (!o)
        return TNF_OK;
    TNF_TRY(tnf_ff_words_load(&words, o, NULL, j->fit->scratch, &why, e));
    if (!why)
        TNF_TRY(tnf_ff_words_check(&words, &why, e));
    if (why)
        drop_object(j, o, why);
    return TNF_OK;
}

/* Counts the rows of n-grams. There must be as many indices as n-grams, without gaps. */
static tnf_status judge_ngrams(struct judging *j, tnf_error *e)
{
    ff_plan *p = &j->plan;
    ff_words words;
    const char *why = NULL;
    if (p->kind == FF_EXPLICIT && p->index && p->index->shape[0] != p->ngrams->shape[0])
        drop_object(j, p->index, "the number of indices differs from that of the n-grams");
    if (p->kind != FF_EXPLICIT) {
        why = "only an explicit vocabulary has n-grams, with finalfusion.min_n and .max_n";
        drop_object(j, p->index, why);
        drop_object(j, p->ngrams, why);
        return TNF_OK;
    }
    TNF_TRY(tnf_ff_words_load(&words, p->ngrams, p->index, j->fit->scratch, &why, e));
    if (!why)
        TNF_TRY(tnf_ff_words_rows(&words, &p->subwords, j->fit->scratch, &why, e));
    if (!why)
        return TNF_OK;
    drop_object(j, p->index, why);
    drop_object(j, p->ngrams, why);
    return TNF_OK;
}

static void judge_rows(struct judging *j)
{
    const ff_plan *p = &j->plan;
    uint64_t rows;
    if (!p->embeddings || !p->kind)
        return;
    if (tnf_ckd_add(&rows, p->words, p->subwords) && rows == p->embeddings->shape[0])
        return;
    drop_object(j, p->index, tnf_ff_wrong_rows);
    drop_object(j, p->ngrams, tnf_ff_wrong_rows);
    drop_object(j, p->vocab ? p->vocab : p->embeddings, tnf_ff_wrong_rows);
}

static void judge_attrs(struct judging *j)
{
    const tnf_attrs *attrs = &j->fit->catalog->attrs;
    for (size_t i = 0; j->plan.why && i < attrs->n; i++)
        if (tnf_str_is(attrs->members[i].key, FF_ATTR("vocab")))
            j->fit->attrs[i] = (tnf_verdict) { TNF_TRANSFORMED, j->plan.why };
}

tnf_status tnf_ff_fits(tnf_fit *fit, tnf_error *e)
{
    struct judging j = { .fit = fit };
    bool seed = fit->options[FF_OPTION_DIALECT].u != 0;
    for (size_t i = 0; i < fit->catalog->n; i++) {
        const char *why = why_not(&fit->catalog->objects[i], seed);
        if (why && fit->objects[i].fate != TNF_DROPPED)
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, why };
    }
    tnf_ff_plan_make(&j.plan, fit->catalog, fit->options, fit->objects);
    TNF_TRY(judge_strings(&j, j.plan.vocab, e));
    TNF_TRY(judge_strings(&j, j.plan.ngrams, e));
    TNF_TRY(judge_ngrams(&j, e));
    judge_rows(&j);
    if (seed && !j.plan.kind) /* a matrix alone looks like a vocabulary of the tools */
        drop_object(&j, j.plan.embeddings,
                    "files of the document's dialect need a vocabulary before the matrix");
    if (j.plan.kind && j.plan.norms && j.plan.norms->shape[0] != j.plan.words)
        drop_object(&j, j.plan.norms, tnf_ff_wrong_norms);
    judge_attrs(&j);
    return tnf_ff_groups_judge(fit, &j.plan, e);
}
