/* SPDX-License-Identifier: MIT */
/* A safetensors model in several files, by its index (model.safetensors.index.json):
 *
 *   {"metadata":{"total_size":123,…},
 *    "weight_map":{"tensor":"model-00001-of-00002.safetensors",…}}
 *
 * The index decides which tensors the model has and where they are. Every shard is opened, but only
 * its header is read. Every disagreement between index and shards is reported: if the index sends a
 * reader to the wrong file, as an error; otherwise as a warning.
 */
#include "formats/safetensors_index/index.h"
#include "base/named.h"
#include "wire/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define METADATA "safetensors.metadata"
#define CALLS    "pytorch.calls"
/* Attributes of a single file, which differ between shards. */
#define OF_EACH  "pytorch.root pytorch.serialization_id pytorch.views"

typedef tnf_index_kind kind;

/* A line of the weight_map. */
typedef struct place {
    tnf_str name;
    uint64_t at; /* in the index */
    uint32_t shard;
} place;

typedef struct shard {
    tnf_str name;
    uint64_t at; /* of its first mention in the index */
    const tnf_file *file;
    const struct missing_file *missing; /* set: the shard is missing, which is allowed */
    uint32_t same; /* the first shard that is the same file; mostly this one itself */
} shard;

/* A tensor by its name in a shard, or a shard by the pointer to its handle. */
typedef struct owner {
    tnf_str name;
    uint32_t shard;
} owner;

/* A pair of the __metadata__ of a shard. */
typedef struct pair {
    tnf_str key, value;
    uint32_t shard;
} pair;

/* A disagreement between index and shards: a warning on opening, a problem for verify(). */
typedef struct mismatch {
    struct mismatch *next;
    tnf_error error;
    tnf_str tensor; /* empty: it concerns no single tensor */
} mismatch;

typedef struct model {
    tnf_reader *r;
    const kind *kind;
    mismatch *mismatches, **last;
    tnf_named places, shards, pairs;
    tnf_named files;  /* owners: the shards that are open, each file once */
    tnf_named owners; /* owners: all tensors of all shards, filled on first use */
    bool weight_map, incomplete, owners_known;
    tnf_value *calls; /* made by the pickles of all shards */
    size_t ncalls, calls_capacity;
    tnf_str metadata; /* the text of "metadata"; n is 0 if there is none */
    uint64_t metadata_at;
} model;

/* ------------------------------------------------------------------ lists */

static place *place_at(const model *m, uint32_t i)
{
    return tnf_named_at(&m->places, i);
}

static shard *shard_at(const model *m, uint32_t i)
{
    return tnf_named_at(&m->shards, i);
}

static const owner *owner_at(const tnf_named *list, uint32_t i)
{
    return tnf_named_at(list, i);
}

/* ---------------------------------------------------------------- parsing */

static tnf_status add_place(model *m, tnf_str name, uint64_t at, tnf_str file, uint64_t file_at,
                            tnf_error *e)
{
    uint32_t known, twice;
    TNF_TRY(tnf_named_add(&m->shards, &(shard) { .name = file, .at = file_at }, &known, e));
    uint32_t where = known == TNF_HASH_NONE ? tnf_named_count(&m->shards) - 1 : known;
    TNF_TRY(tnf_named_add(&m->places, &(place) { name, at, where }, &twice, e));
    if (twice != TNF_HASH_NONE)
        return tnf_fail(e, TNF_EFORMAT, at, "the index has the tensor %s twice", TNF_QUOTED(name));
    return TNF_OK;
}

static tnf_status read_weight_map(model *m, tnf_json *j, tnf_error *e)
{
    tnf_str name, file;
    if (!tnf_json_enter(j, '{'))
        return j->status;
    for (uint64_t at; at = tnf_json_next_key_at(j), tnf_json_key(j, &name);) {
        (void)tnf_json_peek(j);
        uint64_t file_at = tnf_json_where(j);
        if (!tnf_json_string(j, &file))
            return j->status;
        TNF_TRY(add_place(m, name, at, file, file_at, e));
    }
    return j->status;
}

static tnf_status read_member(model *m, tnf_json *j, tnf_str key, uint64_t at, tnf_error *e)
{
    bool metadata = tnf_str_is(key, "metadata");
    if (tnf_str_is(key, "weight_map")) {
        if (m->weight_map)
            return tnf_fail(e, TNF_EFORMAT, at, "the index has two weight_maps");
        m->weight_map = true;
        return read_weight_map(m, j, e);
    }
    if (metadata && m->metadata.n)
        return tnf_fail(e, TNF_EFORMAT, at, "the index has metadata twice");
    if (!metadata)
        tnf_warn(m->r, at, "the index has the unknown entry %s", TNF_QUOTED(key));
    (void)tnf_json_peek(j);
    m->metadata_at = metadata ? tnf_json_where(j) : m->metadata_at;
    tnf_json_skip(j, metadata ? &m->metadata : NULL);
    return j->status;
}

static tnf_status parse_index(model *m, tnf_error *e)
{
    tnf_reader *r = m->r;
    tnf_cur c;
    tnf_json j;
    tnf_str key;
    TNF_TRY(tnf_read_range(r, "index", 0, r->source->size, UINT64_MAX, &c, e));
    tnf_json_init(&j, c.p, tnf_left(&c), 0, r->scratch, r->limits.depth, e);
    tnf_json_enter(&j, '{');
    for (uint64_t at; at = tnf_json_next_key_at(&j), tnf_json_key(&j, &key);)
        TNF_TRY(read_member(m, &j, key, at, e));
    TNF_TRY(tnf_json_end(&j));
    if (!m->weight_map)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the JSON text has no weight_map: it is not the index of a model");
    return TNF_OK;
}

tnf_status tnf_index_names(tnf_str text, uint32_t depth, tnf_arena *arena,
                           void (*take)(void *ctx, tnf_str name), void *ctx, tnf_error *e)
{
    tnf_json j;
    tnf_str key, tensor, file;
    tnf_json_init(&j, text.p, text.n, 0, arena, depth, e);
    tnf_json_enter(&j, '{');
    while (tnf_json_key(&j, &key))
        if (!tnf_str_is(key, "weight_map"))
            tnf_json_skip(&j, NULL);
        else if (tnf_json_enter(&j, '{'))
            while (tnf_json_key(&j, &tensor) && tnf_json_string(&j, &file))
                take(ctx, file);
    return j.status == TNF_ENOMEM ? j.status : TNF_OK;
}

/* ---------------------------------------------------------------- opening */

static void report_mismatch(model *m, tnf_str tensor, uint64_t at, const char *format, ...)
    TNF_PRINTF(4, 5);

static const tnf_str no_tensor = { NULL, 0 };

/* If memory for the record runs out, the warning remains. */
static void report_mismatch(model *m, tnf_str tensor, uint64_t at, const char *format, ...)
{
    mismatch *o = tnf_arena_alloc(m->r->arena, sizeof *o);
    const char *name = o && tensor.n ? tnf_arena_str(m->r->arena, tensor.p, tensor.n) : NULL;
    char text[sizeof o->error.message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tnf_warn(m->r, at, "%s", text);
    if (!o)
        return;
    o->tensor = (tnf_str) { name, name ? tensor.n : 0 };
    o->error.status = TNF_EFORMAT;
    o->error.offset = at;
    memcpy(o->error.message, text, sizeof text);
    *m->last = o;
    m->last = &o->next;
}

/* Also counts the other missing shards, so that one error reports them all. */
static tnf_status fail_missing(model *m, const shard *first, tnf_error *e)
{
    const shard *last = shard_at(m, tnf_named_count(&m->shards) - 1);
    char more[64] = "";
    unsigned long n = 0;
    for (const shard *s = first + 1; s <= last && !m->r->salvage && !m->r->incomplete; s++) {
        const tnf_file *file;
        n += tnf_open_sibling(m->r, &file, s->name, m->kind->format, NULL) == TNF_ENOTFOUND;
    }
    if (n > 0)
        snprintf(more, sizeof more, " (%lu of %lu shards are)", n + 1,
                 (unsigned long)tnf_named_count(&m->shards));
    return tnf_fail(e, TNF_ENOTFOUND, first->at,
                    "the shard %s, which the index names, is missing%s", TNF_QUOTED(first->name),
                    more);
}

/* A shard that is not of the expected format is opened again in its own format, for a better error
 * message: often all shards are git-LFS pointers. */
static tnf_status open_shard(model *m, shard *s, tnf_error *e)
{
    if (s->name.n >= 5 && memcmp(s->name.p + s->name.n - 5, ".json", 5) == 0)
        return tnf_fail(e, TNF_EFORMAT, s->at, "the index names %s as a shard, which is an index",
                        TNF_QUOTED(s->name));
    tnf_status status = tnf_open_sibling(m->r, &s->file, s->name, m->kind->format, e);
    if (status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_ELIMIT)
        status = tnf_open_sibling(m->r, &s->file, s->name, NULL, e);
    else if (status == TNF_ENOTFOUND)
        return fail_missing(m, s, e);
    if (status == TNF_EINVAL) /* a directory, a device: the index is wrong, not the caller */
        return tnf_fail(e, TNF_EFORMAT, s->at, "the index names %s as a shard, which is not a file",
                        TNF_QUOTED(s->name));
    if (status != TNF_OK && e && e->offset == TNF_NO_OFFSET)
        e->offset = s->at;
    TNF_TRY(status);
    const char *format = tnf_file_info(s->file)->format;
    if (strcmp(format, m->kind->format) != 0)
        return tnf_fail(e, TNF_EFORMAT, s->at,
                        "the shard %s has another format than its index: it is a %s file",
                        TNF_QUOTED(s->name), format);
    tnf_trace(m->r, s->at, "shard %s", TNF_QUOTED(s->name));
    return TNF_OK;
}

/* A file that is listed under two names counts once: its tensors belong to the first shard. */
static tnf_status join_same(model *m, uint32_t i, tnf_error *e)
{
    shard *s = shard_at(m, i);
    uint32_t known = TNF_HASH_NONE;
    owner o = { { (const char *)&s->file, sizeof s->file }, i };
    s->same = i;
    if (s->file)
        TNF_TRY(tnf_named_add(&m->files, &o, &known, e));
    if (known == TNF_HASH_NONE)
        return TNF_OK;
    s->same = owner_at(&m->files, known)->shard;
    tnf_warn(m->r, s->at, "the shard %s is the same file as %s", TNF_QUOTED(s->name),
             TNF_QUOTED(shard_at(m, s->same)->name));
    return TNF_OK;
}

/* Announces the shards, so that they are fetched concurrently over the network. If there is no
 * memory for this, each is fetched when it is opened. */
static void expect_shards(model *m)
{
    uint32_t n = tnf_named_count(&m->shards);
    tnf_str *names = tnf_arena_array(m->r->scratch, n, sizeof *names);
    for (uint32_t i = 0; names && i < n; i++)
        names[i] = shard_at(m, i)->name;
    if (names)
        tnf_expect_siblings(m->r, names, n);
}

static tnf_status open_shards(model *m, tnf_error *e)
{
    expect_shards(m);
    for (uint32_t i = 0; i < tnf_named_count(&m->shards); i++) {
        shard *s = shard_at(m, i);
        tnf_status status = open_shard(m, s, e);
        bool gone = status == TNF_ENOTFOUND;
        if (gone && m->r->incomplete)
            status = tnf_miss(m->r, &s->missing, s->name, s->at, e);
        if (status != TNF_OK && !tnf_lose(m->r, gone ? TNF_ETRUNCATED : status, e))
            return status;
        if (status != TNF_OK)
            shard_at(m, i)->file = NULL; /* salvage: the other shards may be intact */
        TNF_TRY(join_same(m, i, e));
    }
    for (uint32_t i = 0; i < tnf_named_count(&m->places); i++)
        place_at(m, i)->shard = shard_at(m, place_at(m, i)->shard)->same;
    return TNF_OK;
}

#define ELSEWHERE "the index places %s in %s, but it is in %s"

/* Finds the shard of each tensor, independently of the index. If several have it, the first
 * counts. */
static tnf_status find_owners(model *m, tnf_error *e)
{
    uint32_t known;
    for (uint32_t i = 0; i < tnf_named_count(&m->shards) && !m->owners_known; i++) {
        const shard *s = shard_at(m, i);
        const tnf_object *o;
        for (size_t k = 0; s->file && s->same == i && (o = tnf_at(s->file, k)) != NULL; k++)
            TNF_TRY(tnf_named_add(&m->owners, &(owner) { o->name, i }, &known, e));
    }
    m->owners_known = true;
    return TNF_OK;
}

/* A tensor that is not where the index says. In lenient mode it is taken from another shard, or
 * skipped. */
static tnf_status find_elsewhere(const tnf_object **out, model *m, place *p, tnf_error *e)
{
    const shard *said = shard_at(m, p->shard);
    char why[240];
    TNF_TRY(find_owners(m, e));
    uint32_t at = tnf_named_find(&m->owners, p->name);
    if (at != TNF_HASH_NONE) {
        p->shard = owner_at(&m->owners, at)->shard;
        const shard *s = shard_at(m, p->shard);
        *out = tnf_find_n(s->file, p->name.p, p->name.n);
        if (!m->r->salvage)
            return tnf_stricter(m->r, e, TNF_EFORMAT, p->at, ELSEWHERE, TNF_QUOTED(p->name),
                                TNF_QUOTED(said->name), TNF_QUOTED(s->name));
        report_mismatch(m, p->name, p->at, ELSEWHERE, TNF_QUOTED(p->name), TNF_QUOTED(said->name),
                        TNF_QUOTED(s->name));
        return TNF_OK;
    }
    snprintf(why, sizeof why, "the index places %s in %s, but no shard has it", TNF_QUOTED(p->name),
             TNF_QUOTED(said->name));
    if (tnf_lose_tensor(m->r, p->name, p->at, !said->file, why))
        return TNF_OK;
    return tnf_stricter(m->r, e, TNF_EFORMAT, p->at, "%s", why);
}

/* Was the object already added, through the name of another of its pieces? */
static bool is_added(const model *m, const tnf_object *o)
{
    const tnf_object *known = tnf_catalog_find(m->r->catalog, o->name.p, o->name.n);
    return known && known->nparts > 0 && known->nparts == o->nparts &&
           known->parts->origin == o->parts->origin && known->parts->offset == o->parts->offset;
}

static tnf_status add_tensors(model *m, uint64_t *total, tnf_error *e)
{
    *total = 0;
    TNF_TRY(tnf_catalog_reserve(m->r->catalog, tnf_named_count(&m->places), e));
    for (uint32_t i = 0; i < tnf_named_count(&m->places); i++) {
        place *p = place_at(m, i);
        const tnf_file *file = shard_at(m, p->shard)->file;
        const struct missing_file *missing = shard_at(m, p->shard)->missing;
        m->incomplete = m->incomplete || missing;
        if (missing) {
            TNF_TRY(tnf_add_missing(m->r, p->name, missing, p->at, e));
            continue;
        }
        const tnf_object *o = file ? tnf_find_piece(file, p->name.p, p->name.n) : NULL;
        if (o && is_added(m, o))
            continue;
        if (!o && file)
            o = tnf_find_n(file, p->name.p, p->name.n);
        if (!o)
            TNF_TRY(find_elsewhere(&o, m, p, e));
        m->incomplete = m->incomplete || !o;
        if (!o)
            continue;
        TNF_TRY(tnf_add_object(m->r, o, p->at, e));
        for (uint16_t k = 0; k < o->nparts; k++)
            if (!tnf_ckd_add(total, *total, o->parts[k].nbytes))
                *total = UINT64_MAX;
    }
    return TNF_OK;
}

/* --------------------------------------------------------------- agreeing */

/* Reports tensors that a shard holds and the index does not take from it. */
static void check_shard(model *m, uint32_t i)
{
    const shard *s = shard_at(m, i);
    const tnf_object *first = NULL;
    size_t unnamed = 0;
    for (size_t k = 0; s->file && s->same == i && tnf_at(s->file, k); k++) {
        const tnf_object *o = tnf_at(s->file, k);
        uint32_t at = tnf_named_find(&m->places, o->name);
        if (at == TNF_HASH_NONE) {
            if (is_added(m, o))
                continue;
            first = first ? first : o;
            unnamed++;
        } else if (place_at(m, at)->shard != i) {
            const shard *other = shard_at(m, place_at(m, at)->shard);
            report_mismatch(m, o->name, place_at(m, at)->at,
                            "%s is in %s too; the index takes it from %s", TNF_QUOTED(o->name),
                            TNF_QUOTED(s->name), TNF_QUOTED(other->name));
        }
    }
    if (unnamed)
        report_mismatch(m, unnamed > 1 ? no_tensor : first->name, s->at,
                        "%s holds %zu tensor%s that the index does not name (%s%s)",
                        TNF_QUOTED(s->name), unnamed, unnamed > 1 ? "s" : "",
                        TNF_QUOTED(first->name), unnamed > 1 ? ", …" : "");
}

static tnf_status merge_text(model *m, uint32_t i, const tnf_value *map, tnf_error *e)
{
    for (size_t k = 0; k < map->n; k++) {
        const tnf_member *from = &map->as.members[k];
        pair p = { from->key, { from->value.as.s, from->value.n }, i };
        uint32_t known;
        if (from->value.kind != TNF_STRING)
            continue;
        TNF_TRY(tnf_named_add(&m->pairs, &p, &known, e));
        if (known == TNF_HASH_NONE) {
            TNF_TRY(tnf_set_text(m->r, p.key, p.value, e));
            continue;
        }
        const pair *first = tnf_named_at(&m->pairs, known);
        if (first->value.n != p.value.n || memcmp(first->value.p, p.value.p, p.value.n) != 0)
            tnf_warn(m->r, TNF_NO_OFFSET,
                     "the metadata entry %s of %s differs from that of %s, which is used",
                     TNF_QUOTED(p.key), TNF_QUOTED(shard_at(m, i)->name),
                     TNF_QUOTED(shard_at(m, first->shard)->name));
    }
    return TNF_OK;
}

/* Attributes that the core restored from a shard's metadata belong to the model, too. */
static tnf_status merge_attr(model *m, uint32_t i, const tnf_member *from, tnf_error *e)
{
    tnf_attrs *all = &m->r->catalog->attrs;
    tnf_value map = tnf_attrs_value(all);
    const tnf_value *first = tnf_value_get_n(&map, from->key.p, from->key.n);
    if (!first)
        return tnf_attrs_set(all, from->key.p, from->key.n, from->value, e);
    if (!tnf_value_equal(first, &from->value) && !tnf_str_listed(from->key, OF_EACH))
        tnf_warn(m->r, TNF_NO_OFFSET, "the attribute %s of %s differs from that of another shard",
                 TNF_QUOTED(from->key), TNF_QUOTED(shard_at(m, i)->name));
    return TNF_OK;
}

/* Adds the calls that the shard's pickles would make, each with the shard's name first. */
static tnf_status merge_calls(model *m, uint32_t i, const tnf_value *calls, tnf_error *e)
{
    tnf_arena *a = m->r->arena;
    tnf_str of = shard_at(m, i)->name;
    const char *name = tnf_arena_str(a, of.p, of.n);
    const tnf_value file = tnf_value_str(TNF_STRING, name, of.n);
    for (size_t k = 0; k < calls->n; k++) {
        const tnf_value *call = &calls->as.items[k];
        tnf_attrs all = { .arena = a };
        tnf_value *more = tnf_arena_grow(a, m->calls, m->ncalls, &m->calls_capacity, sizeof *more,
                                         8);
        if (!name || !more)
            return tnf_arena_fail(a, "calls", e);
        m->calls = more;
        TNF_TRY(tnf_attrs_push(&all, "file", file, e));
        for (size_t n = 0; n < call->n; n++)
            TNF_TRY(tnf_attrs_push(&all, call->as.members[n].key.p, call->as.members[n].value, e));
        m->calls[m->ncalls++] = tnf_attrs_value(&all);
    }
    return TNF_OK;
}

static tnf_status merge_metadata(model *m, tnf_error *e)
{
    for (uint32_t i = 0; i < tnf_named_count(&m->shards); i++) {
        const tnf_file *file = shard_at(m, i)->same == i ? shard_at(m, i)->file : NULL;
        const tnf_value *attrs = file ? tnf_file_info(file)->attrs : NULL;
        for (size_t k = 0; attrs && k < attrs->n; k++) {
            const tnf_member *a = &attrs->as.members[k];
            if (tnf_str_is(a->key, METADATA) && a->value.kind == TNF_MAP)
                TNF_TRY(merge_text(m, i, &a->value, e));
            else if (tnf_str_is(a->key, CALLS) && a->value.kind == TNF_ARRAY)
                TNF_TRY(merge_calls(m, i, &a->value, e));
            else
                TNF_TRY(merge_attr(m, i, a, e));
        }
    }
    tnf_value calls = { .kind = TNF_ARRAY, .n = m->ncalls, .as.items = m->calls };
    return m->ncalls ? tnf_set_attr(m->r, CALLS, calls, e) : TNF_OK;
}

/* The metadata are kept as they are written; only total_size can be checked. If they hold nothing
 * but a correct total_size, they say no more than the tensors do. */
static tnf_status keep_index_metadata(model *m, uint64_t total, tnf_error *e)
{
    tnf_reader *r = m->r;
    tnf_json j;
    tnf_value v;
    if (m->metadata.n == 0)
        return TNF_OK;
    tnf_json_init(&j, m->metadata.p, m->metadata.n, m->metadata_at, r->scratch, r->limits.depth, e);
    if (!tnf_json_value(&j, &v))
        return j.status;
    const char *text = tnf_arena_str(r->arena, m->metadata.p, m->metadata.n);
    if (!text)
        return tnf_arena_fail(r->arena, "metadata", e);
    const tnf_value *size = tnf_value_get(&v, "total_size");
    uint64_t said = total;
    bool whole = tnf_value_whole(&said, size);
    bool old = size && size->kind == TNF_FLOAT && size->as.f64 >= 0 && size->as.f64 < 0x1p63;
    if (old)
        said = (uint64_t)size->as.f64;
    if (said != total && !(m->incomplete && (r->salvage || r->incomplete)))
        report_mismatch(m, no_tensor, m->metadata_at,
                        "the total_size of the index is %llu, but its tensors have %llu bytes",
                        (unsigned long long)said, (unsigned long long)total);
    if (whole && said == total && v.n == 1)
        return tnf_set_attr(r, m->kind->total_size, tnf_value_uint(total), e);
    return tnf_set_attr(r, m->kind->metadata, tnf_value_str(TNF_JSON, text, m->metadata.n), e);
}

/* Missing shards count, too. */
static uint32_t count_files(const model *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < tnf_named_count(&m->shards); i++)
        n += shard_at(m, i)->same == i;
    return n;
}

static tnf_status index_model(model *m, tnf_error *e)
{
    uint64_t total;
    TNF_TRY(parse_index(m, e));
    TNF_TRY(open_shards(m, e));
    TNF_TRY(add_tensors(m, &total, e));
    for (uint32_t i = 0; i < tnf_named_count(&m->shards); i++)
        check_shard(m, i);
    TNF_TRY(tnf_set_attr(m->r, m->kind->shards, tnf_value_uint(count_files(m)), e));
    TNF_TRY(keep_index_metadata(m, total, e));
    return merge_metadata(m, e);
}

tnf_status tnf_index_shards(tnf_reader *r, const tnf_index_kind *k, tnf_error *e)
{
    model m = { .r = r, .kind = k };
    m.last = &m.mismatches;
    tnf_named_init(&m.places, sizeof(place), &r->scratch->alloc, r->limits.memory);
    tnf_named_init(&m.shards, sizeof(shard), &r->scratch->alloc, r->limits.memory);
    tnf_named_init(&m.pairs, sizeof(pair), &r->scratch->alloc, r->limits.memory);
    tnf_named_init(&m.files, sizeof(owner), &r->scratch->alloc, r->limits.memory);
    tnf_named_init(&m.owners, sizeof(owner), &r->scratch->alloc, r->limits.memory);
    tnf_status status = index_model(&m, e);
    r->state = m.mismatches;
    tnf_named_free(&m.owners);
    tnf_named_free(&m.files);
    tnf_named_free(&m.pairs);
    tnf_named_free(&m.shards);
    tnf_named_free(&m.places);
    return status;
}

tnf_status tnf_verify_shards(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e)
{
    (void)arena;
    (void)e;
    for (const mismatch *o = r->state; o; o = o->next)
        tell(ctx, &o->error, o->tensor);
    return TNF_OK;
}
