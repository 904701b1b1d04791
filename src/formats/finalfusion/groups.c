/* SPDX-License-Identifier: MIT */
/* Several matrices in a file, which the document foresees for a later version.
 *
 *   metadata  vocabulary  matrix  norms │ matrix  norms │ metadata  vocabulary  matrix │ …
 *   group 1                             │ group 2       │ group 3
 *
 * Each matrix has a group. The first group has the names of an ordinary file, so it is what the
 * tools would see of this file. The tensors of a later group have its number before their names:
 * "2/embeddings". A group without a vocabulary of its own has that of the group before it. The
 * attributes of a later group's vocabulary, and the text of its metadata, are attributes of its
 * matrix.
 */
#include "formats/finalfusion/ff.h"

#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------- names */

tnf_str tnf_ff_name(char room[FF_NAME_BYTES], uint32_t group, const char *name)
{
    int n = group > 1 ? snprintf(room, FF_NAME_BYTES, "%u/%s", group, name)
                      : snprintf(room, FF_NAME_BYTES, "%s", name);
    return (tnf_str) { room, (size_t)n };
}

#define FF_MAX_GROUP 999999999u /* more than a file can have */

/* Parses a number of 2 and more at the beginning, which `end` follows. Returns 1 if there is none:
 * then the text does not change. */
static uint32_t take_number(tnf_str *text, char end)
{
    const char *p = text->p, *stop = p + text->n;
    uint64_t number = text->n ? tnf_take_digits(&p, stop) : 0;
    if (p == stop || *p != end || text->p[0] == '0' || number < 2 || number > FF_MAX_GROUP)
        return 1;
    *text = (tnf_str) { p + 1, (size_t)(stop - p) - 1 };
    return (uint32_t)number;
}

uint32_t tnf_ff_group_of(tnf_str *name)
{
    return take_number(name, '/');
}

/* -------------------------------------------------------------------- plans */

/* Counts the groups 2, 3 … that have a matrix, up to the first one without. */
static tnf_status count_groups(uint32_t *out, const tnf_catalog *c, const tnf_verdict *objects,
                               tnf_arena *arena, tnf_error *e)
{
    uint32_t most = c->n < FF_MAX_CHUNKS ? (uint32_t)c->n : FF_MAX_CHUNKS;
    *out = 0;
    uint8_t *has = tnf_arena_array(arena, (uint64_t)most + 3, 1);
    if (!has)
        return tnf_arena_fail(arena, "groups", e);
    for (size_t i = 0; i < c->n; i++) {
        tnf_str name = c->objects[i].name;
        uint32_t group = tnf_ff_group_of(&name);
        bool dropped = objects && objects[i].fate == TNF_DROPPED;
        if (group > 1 && group <= most + 1 && !dropped && tnf_str_is(name, FF_EMBEDDINGS))
            has[group] = 1;
    }
    while (has[*out + 2])
        ++*out;
    return TNF_OK;
}

tnf_status tnf_ff_groups_make(ff_groups *g, const ff_plan *first, const tnf_catalog *c,
                              const tnf_verdict *objects, tnf_arena *arena, tnf_error *e)
{
    *g = (ff_groups) { 0 };
    if (!first->kind || !first->embeddings)
        return TNF_OK;
    TNF_TRY(count_groups(&g->n, c, objects, arena, e));
    g->plans = tnf_arena_array(arena, g->n, sizeof *g->plans);
    if (g->n && !g->plans)
        return tnf_arena_fail(arena, "groups", e);
    for (size_t i = 0; i < c->n; i++) {
        tnf_str name = c->objects[i].name;
        uint32_t group = tnf_ff_group_of(&name);
        if (group < 2 || group - 2 >= g->n || (objects && objects[i].fate == TNF_DROPPED))
            continue;
        const tnf_object **place = tnf_ff_plan_place(&g->plans[group - 2], name);
        if (place)
            *place = &c->objects[i];
    }
    const ff_plan *before = first;
    for (uint32_t i = 0; i < g->n; before = &g->plans[i++]) {
        ff_plan *p = &g->plans[i];
        p->dialect = first->dialect;
        tnf_ff_choose_kind(p, p->embeddings->attrs);
        if (!p->kind) {
            p->words = before->words;
            p->subwords = before->subwords;
        }
    }
    return TNF_OK;
}

bool tnf_ff_in_group(const ff_groups *g, const tnf_object *o, const tnf_member *m)
{
    tnf_str name = o->name;
    uint32_t group = tnf_ff_group_of(&name);
    if (group < 2 || group - 2 >= g->n || g->plans[group - 2].embeddings != o)
        return false;
    return !tnf_str_is(m->key, FF_BARE) && tnf_ff_is_native(&g->plans[group - 2], m);
}

/* ----------------------------------------------------------------- verdicts */

/* Why this group cannot be written, or NULL. */
static tnf_status judge_group(const char **why, ff_plan *p, const tnf_fit *fit, tnf_error *e)
{
    ff_words words;
    uint64_t rows;
    *why = p->why;
    if (!*why && !p->kind && tnf_value_get(p->embeddings->attrs, FF_ATTR("vocab")))
        *why = "the vocabulary that finalfusion.vocab names is missing or incomplete";
    if (!*why && (p->ngrams || p->index) && p->kind != FF_EXPLICIT)
        *why = "only an explicit vocabulary has n-grams, with finalfusion.min_n and .max_n";
    if (!*why && p->index && (!p->ngrams || p->index->shape[0] != p->ngrams->shape[0]))
        *why = "the number of indices differs from that of the n-grams";
    const tnf_object *lists[] = { p->vocab, p->ngrams };
    for (unsigned i = 0; i < 2 && !*why; i++) {
        if (!lists[i])
            continue;
        TNF_TRY(tnf_ff_words_load(&words, lists[i], i ? p->index : NULL, fit->scratch, why, e));
        if (!*why)
            TNF_TRY(tnf_ff_words_check(&words, why, e));
        if (!*why && i)
            TNF_TRY(tnf_ff_words_rows(&words, &p->subwords, fit->scratch, why, e));
    }
    if (!*why && (!tnf_ckd_add(&rows, p->words, p->subwords) || rows != p->embeddings->shape[0]))
        *why = tnf_ff_wrong_rows;
    if (!*why && p->norms && p->norms->shape[0] != p->words)
        *why = tnf_ff_wrong_norms;
    return TNF_OK;
}

static const char no_group[] =
    "it belongs to no group of a finalfusion file: the first group is not "
    "complete, or there is a gap in the numbers";

/* If a group cannot be written, the later ones are not written either, since groups are numbered
 * without gaps. */
tnf_status tnf_ff_groups_judge(tnf_fit *fit, const ff_plan *first, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    ff_groups g;
    const char *why = no_group;
    uint32_t good = 0;
    TNF_TRY(tnf_ff_groups_make(&g, first, c, fit->objects, fit->scratch, e));
    for (const ff_plan *before = first; good < g.n; before = &g.plans[good++]) {
        ff_plan *p = &g.plans[good];
        if (!p->kind) /* the group before has passed, so this difference is not negative */
            p->subwords = before->embeddings->shape[0] - before->words;
        TNF_TRY(judge_group(&why, p, fit, e));
        if (why)
            break;
    }
    for (size_t i = 0; i < c->n; i++) {
        tnf_str name = c->objects[i].name;
        uint32_t group = tnf_ff_group_of(&name);
        bool known = group < g.n + 2;
        if (group > good + 1 && fit->objects[i].fate != TNF_DROPPED)
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, known ? why : no_group };
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------- extras */

/* The place that the key of an extra names; false if it names none. */
static bool parse_place(tnf_str key, uint32_t *group, ff_kind *place)
{
    if (!tnf_str_begins(key, FF_CHUNK))
        return false;
    key = (tnf_str) { key.p + strlen(FF_CHUNK), key.n - strlen(FF_CHUNK) };
    *group = take_number(&key, '.');
    for (*place = FF_KIND_NONE; *place < FF_KIND_UNKNOWN; ++*place)
        if (tnf_str_is(key, tnf_ff_places[*place]))
            return true;
    return false;
}

tnf_status tnf_ff_groups_extras(ff_groups *g, const tnf_catalog *c, tnf_arena *arena, tnf_error *e)
{
    uint64_t places = ((uint64_t)g->n + 1) * FF_KIND_UNKNOWN;
    g->first = tnf_arena_array(arena, places, sizeof *g->first);
    g->next = tnf_arena_array(arena, c->nextras, sizeof *g->next);
    if (!g->first || (c->nextras && !g->next))
        return tnf_arena_fail(arena, "chunks", e);
    for (size_t i = c->nextras; i-- > 0;) {
        uint32_t group;
        ff_kind place;
        if (!parse_place(c->extras[i].key, &group, &place))
            continue;
        if (group > g->n + 1) { /* its group was dropped */
            group = g->n + 1;
            place = FF_KIND_NORMS;
        }
        uint32_t *at = &g->first[(size_t)(group - 1) * FF_KIND_UNKNOWN + place];
        g->next[i] = *at;
        *at = (uint32_t)i + 1;
    }
    return TNF_OK;
}

uint32_t tnf_ff_first_extra(const ff_groups *g, uint32_t group, ff_kind place)
{
    return g->first[(size_t)(group - 1) * FF_KIND_UNKNOWN + place];
}
