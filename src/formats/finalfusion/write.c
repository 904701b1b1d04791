/* SPDX-License-Identifier: MIT */
/* The writer. It writes chunks, each with its length before it, as the tools write them, or with
 * the ids, the order of fields and the padding of the document.
 *
 *   header │ metadata │ vocabulary │ matrix │ norms │ …       unknown chunks where they were
 *
 * The same chunks follow for each later group (groups.c).
 */
#include "formats/finalfusion/ff.h"

#define MAX_METADATA ((uint64_t)128 << 20)

struct laying {
    tnf_writer *w;
    ff_plan plan; /* of the current group */
    ff_groups groups;
    ff_words words, ngrams;
    tnf_buf metadata;
    bool has_metadata;
};

/* ------------------------------------------------------------------ frames */

static tnf_status put_frame(tnf_writer *w, uint32_t id, uint64_t length, tnf_error *e)
{
    TNF_TRY(tnf_put_u32(w, id, e));
    return tnf_put_u64(w, length, e);
}

/* Padding between the fields and the data of a chunk that begins here. */
static uint64_t padding_of(const struct laying *l, uint64_t fields, uint64_t align, bool literal)
{
    uint64_t padding = align - (l->w->sink->written + FF_FRAME + fields) % align;
    return literal ? padding % align : padding;
}

static tnf_status put_extras(const struct laying *l, uint32_t group, ff_kind place, tnf_error *e)
{
    const tnf_catalog *c = l->w->catalog;
    for (uint32_t i = tnf_ff_first_extra(&l->groups, group, place); i; i = l->groups.next[i - 1])
        TNF_TRY(tnf_put_data(l->w, &c->extras[i - 1].bytes, e));
    return TNF_OK;
}

static tnf_status put_trailing(const struct laying *l, tnf_error *e)
{
    const tnf_catalog *c = l->w->catalog;
    for (size_t i = 0; i < c->nextras; i++)
        if (tnf_str_is(c->extras[i].key, FF_TRAILING))
            TNF_TRY(tnf_put_data(l->w, &c->extras[i].bytes, e));
    return TNF_OK;
}

/* The text of a later group's own metadata, or NULL. */
static const tnf_value *group_metadata(const ff_plan *p)
{
    const tnf_value *text = tnf_value_get(p->embeddings->attrs, FF_ATTR("metadata"));
    return text && (text->kind == TNF_STRING || text->kind == TNF_BYTES) ? text : NULL;
}

/* ------------------------------------------------------------------ header */

struct ids {
    uint32_t list[FF_MAX_CHUNKS];
    uint32_t n;
};

static tnf_status add_id(struct ids *ids, uint32_t id, tnf_error *e)
{
    if (ids->n == FF_MAX_CHUNKS)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would have more than %u chunks",
                        FF_MAX_CHUNKS);
    ids->list[ids->n++] = id;
    return TNF_OK;
}

static tnf_status add_extra_ids(struct ids *ids, const struct laying *l, uint32_t group,
                                ff_kind place, tnf_error *e)
{
    const tnf_catalog *c = l->w->catalog;
    for (uint32_t n = tnf_ff_first_extra(&l->groups, group, place); n; n = l->groups.next[n - 1]) {
        const uint32_t i = n - 1;
        uint8_t frame[FF_FRAME];
        const tnf_part *bytes = &c->extras[i].bytes;
        if (bytes->nbytes < sizeof frame)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the extra %s is not a chunk",
                            TNF_QUOTED(c->extras[i].key));
        TNF_TRY(tnf_read_part(frame, sizeof frame, bytes, 0, e));
        if (tnf_le32(frame) <= FF_LAST || tnf_le64(frame + 4) != bytes->nbytes - FF_FRAME)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the extra %s is not a chunk",
                            TNF_QUOTED(c->extras[i].key));
        TNF_TRY(add_id(ids, tnf_le32(frame), e));
    }
    return TNF_OK;
}

static uint32_t vocab_id(const ff_plan *p)
{
    return p->kind == FF_SIMPLE && p->dialect == FF_SEED ? FF_SEED_SIMPLE : p->kind;
}

static bool is_quantized(const tnf_object *o)
{
    return o->layout != &tnf_layout_dense;
}

static uint32_t storage_id(const ff_plan *p)
{
    return p->dialect == FF_SEED         ? FF_SEED_STORAGE
           : is_quantized(p->embeddings) ? FF_QUANTIZED
                                         : FF_DENSE;
}

static tnf_status add_group_ids(struct ids *ids, const struct laying *l, uint32_t group,
                                tnf_error *e)
{
    const ff_plan *p = group > 1 ? &l->groups.plans[group - 2] : &l->plan;
    bool metadata = group > 1 ? group_metadata(p) != NULL : l->has_metadata;
    for (ff_kind kind = FF_KIND_NONE; kind < FF_KIND_UNKNOWN; kind++) {
        if (kind == FF_KIND_METADATA && metadata)
            TNF_TRY(add_id(ids, FF_METADATA, e));
        if (kind == FF_KIND_VOCAB && p->kind)
            TNF_TRY(add_id(ids, vocab_id(p), e));
        if (kind == FF_KIND_STORAGE && p->embeddings)
            TNF_TRY(add_id(ids, storage_id(p), e));
        if (kind == FF_KIND_NORMS && p->norms)
            TNF_TRY(add_id(ids, FF_NORMS, e));
        TNF_TRY(add_extra_ids(ids, l, group, kind, e));
    }
    return TNF_OK;
}

static tnf_status put_header(const struct laying *l, tnf_error *e)
{
    struct ids *ids = tnf_arena_alloc(l->w->scratch, sizeof *ids);
    if (!ids)
        return tnf_arena_fail(l->w->scratch, "the header", e);
    for (uint32_t group = 1; group <= l->groups.n + 1; group++)
        TNF_TRY(add_group_ids(ids, l, group, e));
    TNF_TRY(tnf_put(l->w, FF_MAGIC, 4, e));
    TNF_TRY(tnf_put_u32(l->w, 0, e));
    TNF_TRY(tnf_put_u32(l->w, ids->n, e));
    for (uint32_t i = 0; i < ids->n; i++)
        TNF_TRY(tnf_put_u32(l->w, ids->list[i], e));
    return TNF_OK;
}

/* -------------------------------------------------------------- vocabulary */

static uint32_t exponent_of(uint64_t buckets)
{
    uint32_t e = 0;
    while (buckets >> e > 1)
        e++;
    return e;
}

static tnf_status put_floret(const struct laying *l, tnf_error *e)
{
    const ff_plan *p = &l->plan;
    TNF_TRY(put_frame(l->w, FF_FLORET, 32 + (uint64_t)p->bow.n + p->eow.n, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->min_n, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->max_n, e));
    TNF_TRY(tnf_put_u64(l->w, p->buckets, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->hashes, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->seed, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->bow.n, e));
    TNF_TRY(tnf_put(l->w, p->bow.p, p->bow.n, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->eow.n, e));
    return tnf_put(l->w, p->eow.p, p->eow.n, e);
}

static tnf_status put_subword_fields(const struct laying *l, tnf_error *e)
{
    const ff_plan *p = &l->plan;
    bool seed = p->dialect == FF_SEED && p->kind == FF_BUCKET;
    uint32_t buckets = p->kind == FF_BUCKET ? exponent_of(p->buckets) : (uint32_t)p->buckets;
    if (!seed)
        TNF_TRY(tnf_put_u64(l->w, p->words, e));
    if (p->kind == FF_EXPLICIT)
        TNF_TRY(tnf_put_u64(l->w, l->ngrams.count, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->min_n, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)p->max_n, e));
    if (p->kind != FF_EXPLICIT)
        TNF_TRY(tnf_put_u32(l->w, buckets, e));
    return seed ? tnf_put_u64(l->w, p->words, e) : TNF_OK;
}

static tnf_status put_vocab(const struct laying *l, tnf_error *e)
{
    const ff_plan *p = &l->plan;
    uint64_t length = p->kind == FF_SIMPLE ? 8 : p->kind == FF_EXPLICIT ? 24 : 20;
    if (p->kind == FF_FLORET)
        return put_floret(l, e);
    length += tnf_ff_words_bytes(&l->words);
    if (p->kind == FF_EXPLICIT)
        length += tnf_ff_words_bytes(&l->ngrams);
    TNF_TRY(put_frame(l->w, vocab_id(p), length, e));
    TNF_TRY(p->kind == FF_SIMPLE ? tnf_put_u64(l->w, p->words, e) : put_subword_fields(l, e));
    TNF_TRY(tnf_ff_words_put(l->w, &l->words, e));
    return p->kind == FF_EXPLICIT ? tnf_ff_words_put(l->w, &l->ngrams, e) : TNF_OK;
}

/* ----------------------------------------------------------------- storage */

static tnf_status put_dense(const struct laying *l, tnf_error *e)
{
    const tnf_object *o = l->plan.embeddings;
    bool seed = l->plan.dialect == FF_SEED;
    uint32_t type = FF_TYPE_F32;
    if (!tnf_ff_type_id(&type, o->parts[0].type))
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "a type without an id");
    uint64_t padding = padding_of(l, 16, seed ? tnf_ff_type_of(type)->bits / 8 : 4, seed);
    TNF_TRY(put_frame(l->w, storage_id(&l->plan), 16 + padding + o->parts[0].nbytes, e));
    TNF_TRY(tnf_put_u64(l->w, o->shape[0], e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)o->shape[1], e));
    TNF_TRY(tnf_put_u32(l->w, type, e));
    TNF_TRY(tnf_put_fill(l->w, 0, padding, e));
    return tnf_put_data(l->w, &o->parts[0], e);
}

static tnf_status put_quantized(const struct laying *l, tnf_error *e)
{
    static const char *const roles[] = { "projection", "codebooks", "norms", "codes" };
    const tnf_object *o = l->plan.embeddings;
    uint64_t padding = padding_of(l, 36, 4, l->plan.dialect == FF_SEED), bytes = 0;
    uint64_t centroids = tnf_object_part(o, "codebooks")->nbytes / 4 / o->shape[1];
    for (size_t i = 0; i < 4; i++)
        bytes += tnf_object_part(o, roles[i]) ? tnf_object_part(o, roles[i])->nbytes : 0;
    TNF_TRY(put_frame(l->w, storage_id(&l->plan), 36 + padding + bytes, e));
    TNF_TRY(tnf_put_u32(l->w, tnf_object_part(o, "projection") != NULL, e));
    TNF_TRY(tnf_put_u32(l->w, tnf_object_part(o, "norms") != NULL, e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)tnf_ff_pieces(o), e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)o->shape[1], e));
    TNF_TRY(tnf_put_u32(l->w, (uint32_t)centroids, e));
    TNF_TRY(tnf_put_u64(l->w, o->shape[0], e));
    TNF_TRY(tnf_put_u32(l->w, FF_TYPE_U8, e));
    TNF_TRY(tnf_put_u32(l->w, FF_TYPE_F32, e));
    TNF_TRY(tnf_put_fill(l->w, 0, padding, e));
    for (size_t i = 0; i < 4; i++)
        if (tnf_object_part(o, roles[i]))
            TNF_TRY(tnf_put_data(l->w, tnf_object_part(o, roles[i]), e));
    return TNF_OK;
}

static tnf_status put_norms(const struct laying *l, tnf_error *e)
{
    const tnf_object *o = l->plan.norms;
    uint64_t padding = padding_of(l, 12, 4, l->plan.dialect == FF_SEED);
    TNF_TRY(put_frame(l->w, FF_NORMS, 12 + padding + o->parts[0].nbytes, e));
    TNF_TRY(tnf_put_u64(l->w, o->shape[0], e));
    TNF_TRY(tnf_put_u32(l->w, FF_TYPE_F32, e));
    TNF_TRY(tnf_put_fill(l->w, 0, padding, e));
    return tnf_put_data(l->w, &o->parts[0], e);
}

/* --------------------------------------------------------------------- all */

static tnf_status load_words(ff_words *out, const tnf_object *o, const tnf_object *numbers,
                             const struct laying *l, tnf_error *e)
{
    const char *why = NULL;
    TNF_TRY(tnf_ff_words_load(out, o, numbers, l->w->scratch, &why, e));
    return why ? tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s: %s", TNF_QUOTED(o->name), why)
               : TNF_OK;
}

static tnf_status load_lists(struct laying *l, tnf_error *e)
{
    const ff_plan *p = &l->plan;
    l->words = l->ngrams = (ff_words) { 0 };
    if (p->kind && p->vocab)
        TNF_TRY(load_words(&l->words, p->vocab, NULL, l, e));
    if (p->kind == FF_EXPLICIT)
        TNF_TRY(load_words(&l->ngrams, p->ngrams, p->index, l, e));
    l->ngrams.suffix = 8;
    return TNF_OK;
}

static tnf_status put_metadata(const struct laying *l, const void *p, size_t n, tnf_error *e)
{
    TNF_TRY(put_frame(l->w, FF_METADATA, n, e));
    return tnf_put(l->w, p, n, e);
}

/* Writes the chunks of the current group after its metadata. */
static tnf_status put_group(const struct laying *l, uint32_t group, tnf_error *e)
{
    const ff_plan *p = &l->plan;
    TNF_TRY(put_extras(l, group, FF_KIND_METADATA, e));
    if (p->kind)
        TNF_TRY(put_vocab(l, e));
    TNF_TRY(put_extras(l, group, FF_KIND_VOCAB, e));
    if (p->embeddings)
        TNF_TRY(is_quantized(p->embeddings) ? put_quantized(l, e) : put_dense(l, e));
    TNF_TRY(put_extras(l, group, FF_KIND_STORAGE, e));
    if (p->norms)
        TNF_TRY(put_norms(l, e));
    return put_extras(l, group, FF_KIND_NORMS, e);
}

static tnf_status put_later_group(struct laying *l, uint32_t group, tnf_error *e)
{
    l->plan = l->groups.plans[group - 2];
    const tnf_value *text = group_metadata(&l->plan);
    TNF_TRY(load_lists(l, e));
    TNF_TRY(put_extras(l, group, FF_KIND_NONE, e));
    if (text)
        TNF_TRY(put_metadata(l, text->as.s, text->n, e));
    return put_group(l, group, e);
}

static tnf_status put_all(struct laying *l, tnf_error *e)
{
    tnf_arena *scratch = l->w->scratch;
    TNF_TRY(tnf_ff_groups_make(&l->groups, &l->plan, l->w->catalog, NULL, scratch, e));
    TNF_TRY(tnf_ff_groups_extras(&l->groups, l->w->catalog, scratch, e));
    TNF_TRY(load_lists(l, e));
    TNF_TRY(tnf_ff_compose_metadata(&l->metadata, &l->has_metadata, &l->plan, &l->groups, l->w, e));
    TNF_TRY(put_header(l, e));
    TNF_TRY(put_extras(l, 1, FF_KIND_NONE, e));
    if (l->has_metadata)
        TNF_TRY(put_metadata(l, l->metadata.p, l->metadata.n, e));
    TNF_TRY(put_group(l, 1, e));
    for (uint32_t group = 2; group <= l->groups.n + 1; group++)
        TNF_TRY(put_later_group(l, group, e));
    return put_trailing(l, e);
}

tnf_status tnf_ff_write(tnf_writer *w, tnf_error *e)
{
    struct laying l = { .w = w };
    tnf_ff_plan_make(&l.plan, w->catalog, w->options, NULL);
    tnf_buf_init(&l.metadata, &w->scratch->alloc, MAX_METADATA);
    tnf_status status = put_all(&l, e);
    tnf_buf_free(&l.metadata);
    return status;
}
