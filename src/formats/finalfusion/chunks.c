/* SPDX-License-Identifier: MIT */
/* The chunks of a file: the file's header, the chunks' frames, and their dialect.
 *
 *   "FiFu"  u32 version 0  u32 n  u32 ids[n]        ("R2V" before the first release)
 *   chunk   u32 id  u64 length  length bytes        one after the other, to the end of the file
 *
 *   [metadata 5]  vocabulary 1 3 7 8 9  storage 2 4  [norms 6]
 *   [metadata 5]  vocabulary 0 3        storage 1                  as the document numbers them
 *
 * After the matrix there may be more of them, with or without a vocabulary (groups.c).
 *
 * The reader follows the frames, not the list: tools of 2019 wrote norms without listing them. A
 * chunk with an id above 9 is kept as an extra, under a key that says where it was. The Python tool
 * saves single chunks as files, so a single chunk without a header can be opened, too.
 */
#include "formats/finalfusion/ff.h"

#include <stdio.h>
#include <string.h>

const char *const tnf_ff_places[FF_KIND_UNKNOWN] = {
    "first", "after_metadata", "after_vocab", "after_storage", "after_norms",
};

static const char *const kind_names[] = { "", "metadata", "vocabulary", "matrix", "norms" };

/* The chunks that the header lists, and those that the file has. */
struct walk {
    ff_reading f;
    uint64_t at;
    const uint8_t *listed; /* ids, little-endian */
    uint32_t nlisted;
    bool bare; /* the file has no header */
    uint8_t *met;
    uint32_t nmet;
};

/* ----------------------------------------------------------------- header */

static tnf_status read_ids(struct walk *k, uint64_t at, tnf_error *e)
{
    tnf_reader *r = k->f.r;
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "header", at, 8, 8, &c, e));
    uint32_t version = tnf_u32(&c);
    k->nlisted = tnf_u32(&c);
    if (version != 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, at, "unknown version %u; only 0 is supported",
                        version);
    if (k->nlisted == 0)
        return tnf_fail(e, TNF_EFORMAT, at + 4, "the file has no chunks");
    if (k->nlisted > FF_MAX_CHUNKS)
        return tnf_fail(e, TNF_ELIMIT, at + 4, "the file has %u chunks; at most %u are allowed",
                        k->nlisted, FF_MAX_CHUNKS);
    TNF_TRY(tnf_read_range(r, "list of chunks", at + 8, 4 * (uint64_t)k->nlisted,
                           4 * (uint64_t)FF_MAX_CHUNKS, &c, e));
    k->listed = c.p;
    k->at = at + 8 + 4 * (uint64_t)k->nlisted;
    return TNF_OK;
}

static tnf_status read_header(struct walk *k, tnf_error *e)
{
    tnf_reader *r = k->f.r;
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "header", 0, 4, 4, &c, e));
    if (memcmp(c.p, FF_MAGIC, 4) == 0)
        return read_ids(k, 4, e);
    if (memcmp(c.p, FF_R2V_MAGIC, 3) == 0) {
        k->f.dialect = FF_R2V;
        return read_ids(k, 3, e);
    }
    uint32_t id = tnf_u32(&c);
    if (id < FF_SIMPLE || id > FF_LAST)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the file begins neither with '" FF_MAGIC "' nor with a chunk");
    k->bare = true;
    return TNF_OK;
}

/* ------------------------------------------------------------------ frames */

tnf_status tnf_ff_frame_read(tnf_reader *r, uint64_t at, ff_frame *out, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "chunk's header", at, FF_FRAME, FF_FRAME, &c, e));
    *out = (ff_frame) { .at = at, .body = at + FF_FRAME };
    out->id = tnf_u32(&c);
    out->length = tnf_u64(&c);
    if (!tnf_ckd_add(&out->end, out->body, out->length))
        out->end = UINT64_MAX; /* beyond any file */
    return TNF_OK;
}

/* The id of the next chunk after this one with a known id; 0xffffffff if there is none. */
static tnf_status next_known(tnf_reader *r, const ff_frame *c, uint32_t *out, tnf_error *e)
{
    uint64_t at = c->end, size = r->source->size;
    *out = UINT32_MAX;
    for (unsigned i = 0; i < FF_MAX_CHUNKS && at <= size && size - at >= FF_FRAME; i++) {
        uint8_t frame[FF_FRAME];
        TNF_TRY(tnf_source_read(r->source, at, frame, sizeof frame, e));
        if (tnf_le32(frame) <= FF_LAST) {
            *out = tnf_le32(frame);
            break;
        }
        if (!tnf_ckd_add(&at, at + FF_FRAME, tnf_le64(frame + 4)))
            break;
    }
    return TNF_OK;
}

/* Guesses the dialect of a subword vocabulary without a matrix. The tools write the number of words
 * first; a number that does not fit into the chunk means the document's order. */
static tnf_status looks_like_seed(tnf_reader *r, const ff_frame *c, bool *out, tnf_error *e)
{
    uint8_t words[8];
    *out = false;
    if (c->length < 20 || c->end > r->source->size)
        return TNF_OK;
    TNF_TRY(tnf_source_read(r->source, c->body, words, sizeof words, e));
    *out = tnf_le64(words) > (c->length - 20) / 4;
    return TNF_OK;
}

/* Ids 0 and 3 in the place of a vocabulary: are they numbered as in the document? */
static tnf_status find_dialect(struct walk *k, const ff_frame *c, tnf_error *e)
{
    bool seed = c->id == FF_SEED_SIMPLE;
    uint32_t next;
    if (k->f.dialect != FF_REAL || k->f.group > 1)
        return TNF_OK;
    if (c->id == FF_BUCKET) {
        TNF_TRY(next_known(k->f.r, c, &next, e));
        seed = next == FF_SEED_STORAGE;
        if (next == UINT32_MAX)
            TNF_TRY(looks_like_seed(k->f.r, c, &seed, e));
    }
    if (seed)
        k->f.dialect = FF_SEED;
    return TNF_OK;
}

/* The kind of a chunk, by its id and its position. */
static ff_kind kind_of(const struct walk *k, uint32_t id)
{
    const ff_reading *f = &k->f;
    bool vocab_before = f->words_known && f->vocab != FF_SIMPLE;
    switch (id) {
    case FF_SEED_SIMPLE:
        return FF_KIND_VOCAB;
    case FF_SIMPLE:                    /* or a matrix, as the document numbers it */
        if (f->matrix || f->group > 1) /* the first matrix has decided */
            return f->dialect == FF_SEED ? FF_KIND_STORAGE : FF_KIND_VOCAB;
        return vocab_before ? FF_KIND_STORAGE : FF_KIND_VOCAB;
    case FF_BUCKET:
    case FF_FASTTEXT:
    case FF_EXPLICIT:
    case FF_FLORET:
        return FF_KIND_VOCAB;
    case FF_DENSE:
    case FF_QUANTIZED:
        return FF_KIND_STORAGE;
    case FF_METADATA:
        return FF_KIND_METADATA;
    case FF_NORMS:
        return FF_KIND_NORMS;
    default:
        return FF_KIND_UNKNOWN;
    }
}

/* Does the chunk begin another group? Only if the first one has a vocabulary and a matrix. R2V did
 * not foresee others. */
static bool begins_group(const struct walk *k, ff_kind kind)
{
    const ff_reading *f = &k->f;
    return f->words_known && f->matrix && f->dialect != FF_R2V && kind < FF_KIND_NORMS;
}

static tnf_status check_order(const struct walk *k, const ff_frame *c, ff_kind kind, tnf_error *e)
{
    const ff_reading *f = &k->f;
    bool seed = f->dialect == FF_SEED;
    if (kind == f->last)
        return tnf_fail(e, TNF_EFORMAT, c->at,
                        "the file has a second %s (chunk %u) where only one is allowed",
                        kind_names[kind], c->id);
    if (kind < f->last)
        return tnf_fail(e, TNF_EFORMAT, c->at, "the %s (chunk %u) comes after the %s",
                        kind_names[kind], c->id, kind_names[f->last]);
    if (f->group > 1 && f->dialect == FF_REAL && c->id == FF_SEED_SIMPLE)
        return tnf_fail(e, TNF_EFORMAT, c->at,
                        "chunk %u has an id of the seed dialect, but the chunks before have ids of "
                        "the real dialect",
                        c->id);
    if (kind == FF_KIND_STORAGE && seed && c->id != FF_SEED_STORAGE)
        return tnf_fail(
            e, TNF_EFORMAT, c->at,
            "the vocabulary has a chunk id of the seed dialect, but the matrix (chunk %u) has "
            "one of the real dialect",
            c->id);
    if (f->dialect == FF_R2V &&
        (c->id == FF_SEED_SIMPLE || (kind == FF_KIND_STORAGE && c->id == FF_SEED_STORAGE)))
        return tnf_fail(e, TNF_EFORMAT, c->at, "an R2V file cannot contain chunk %u", c->id);
    return TNF_OK;
}

/* ------------------------------------------------------------------- chunks */

static tnf_status cut_short(const tnf_reader *r, const ff_frame *c, tnf_error *e)
{
    if (c->end == UINT64_MAX)
        return tnf_fail(e, TNF_EFORMAT, c->at + 4, "chunk %u ends beyond 2^64", c->id);
    return tnf_fail(e, TNF_ETRUNCATED, r->source->size,
                    "the file ends inside chunk %u: %s missing (cut short?)", c->id,
                    TNF_BYTES_ARE(c->end - r->source->size));
}

/* Adds an extra under a key that says where the chunk was. */
static tnf_status add_chunk(struct walk *k, const ff_frame *c, tnf_error *e)
{
    char key[48];
    const char *place = tnf_ff_places[k->f.last];
    int n = k->f.group > 1 ? snprintf(key, sizeof key, FF_CHUNK "%u.%s", k->f.group, place)
                           : snprintf(key, sizeof key, FF_CHUNK "%s", place);
    const char *kept = tnf_arena_str(k->f.r->arena, key, (size_t)n);
    if (!kept)
        return tnf_arena_fail(k->f.r->arena, "a chunk", e);
    return tnf_add_extra(k->f.r, kept, c->at, c->end - c->at, e);
}

/* Keeps a chunk of an unknown, perhaps future, kind. Lengths that do not fit were refused
 * earlier. */
static tnf_status keep_unknown(struct walk *k, ff_frame *c, tnf_error *e)
{
    tnf_reader *r = k->f.r;
    uint64_t size = r->source->size;
    if (c->end <= size) {
        tnf_warn(r, c->at, "chunk %u has an unknown id and is kept unchanged", c->id);
        return add_chunk(k, c, e);
    }
    if (k->f.last < FF_KIND_STORAGE || k->nmet <= k->nlisted)
        return cut_short(r, c, e);
    k->nmet--;
    c->end = size;
    TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, c->at,
                         "the %llu bytes after the last chunk are not a chunk",
                         (unsigned long long)(size - c->at)));
    return tnf_add_extra(r, FF_TRAILING, c->at, size - c->at, e);
}

/* Fails unless the chunk is where the header lists it. Readers hardly use the list, but it should
 * be correct. */
static tnf_status check_listed(struct walk *k, const ff_frame *c, tnf_error *e)
{
    tnf_reader *r = k->f.r;
    uint32_t i = k->nmet - 1;
    if (k->bare)
        return TNF_OK;
    if (i < k->nlisted) {
        uint32_t listed = tnf_le32(k->listed + 4 * (size_t)i);
        if (listed == c->id)
            return TNF_OK;
        return tnf_stricter(r, e, TNF_EFORMAT, c->at,
                            "the file has chunk %u where the header lists chunk %u", c->id, listed);
    }
    if (c->id == FF_NORMS)
        tnf_warn(r, c->at, "the header does not list the norms, as in files of 2019");
    else if (c->id <= FF_LAST)
        return tnf_stricter(r, e, TNF_EFORMAT, c->at, "the header does not list chunk %u", c->id);
    return TNF_OK;
}

static tnf_status read_known(struct walk *k, ff_frame *c, ff_kind kind, tnf_error *e)
{
    ff_reading *f = &k->f;
    if (begins_group(k, kind)) {
        f->group++;
        f->last = FF_KIND_NONE;
        f->matrix = false;
    }
    TNF_TRY(check_order(k, c, kind, e));
    if (kind == FF_KIND_VOCAB)
        TNF_TRY(find_dialect(k, c, e));
    if (kind == FF_KIND_STORAGE && c->id == FF_SEED_STORAGE)
        f->dialect = FF_SEED;
    if (kind <= FF_KIND_VOCAB && c->end > f->r->source->size)
        return cut_short(f->r, c, e);
    tnf_trace(f->r, c->at, "chunk %u, %llu bytes", c->id, (unsigned long long)c->length);
    f->last = kind;
    f->matrix = f->matrix || kind == FF_KIND_STORAGE;
    switch (kind) {
    case FF_KIND_METADATA:
        return tnf_ff_read_metadata(f, c, e);
    case FF_KIND_VOCAB:
        return tnf_ff_read_vocab(f, c, e);
    case FF_KIND_STORAGE:
        return tnf_ff_read_storage(f, c, e);
    default:
        return tnf_ff_read_norms(f, c, e);
    }
}

static tnf_status read_chunk(struct walk *k, tnf_error *e)
{
    tnf_reader *r = k->f.r;
    ff_frame c;
    if (k->nmet == FF_MAX_CHUNKS)
        return tnf_fail(e, TNF_ELIMIT, k->at, "the file has more than %u chunks", FF_MAX_CHUNKS);
    TNF_TRY(tnf_ff_frame_read(r, k->at, &c, e));
    tnf_put_le32(k->met + 4 * (size_t)k->nmet++, c.id);
    ff_kind kind = kind_of(k, c.id);
    if (kind != FF_KIND_UNKNOWN)
        TNF_TRY(check_listed(k, &c, e));
    TNF_TRY(kind == FF_KIND_UNKNOWN ? keep_unknown(k, &c, e) : read_known(k, &c, kind, e));
    k->at = c.end;
    return TNF_OK;
}

/* Keeps the rest of a file that is too short for a frame: a truncated chunk, or other bytes. */
static tnf_status keep_rest(struct walk *k, tnf_error *e)
{
    tnf_reader *r = k->f.r;
    uint64_t left = r->source->size - k->at;
    TNF_TRY(tnf_stricter(r, e, TNF_ETRUNCATED, r->source->size,
                         "the file ends inside a chunk's header: %s missing (cut short?)",
                         TNF_BYTES_ARE(FF_FRAME - left)));
    return tnf_add_extra(r, FF_TRAILING, k->at, left, e);
}

/* --------------------------------------------------------------------- all */

static tnf_status set_ids(const struct walk *k, tnf_error *e)
{
    tnf_arena *a = k->f.r->arena;
    tnf_value *items = tnf_arena_array(a, k->nmet, sizeof *items);
    if (k->nmet && !items)
        return tnf_arena_fail(a, "a list of chunks", e);
    for (uint32_t i = 0; i < k->nmet; i++)
        items[i] = tnf_value_uint(tnf_le32(k->met + 4 * (size_t)i));
    tnf_value all = { .kind = TNF_ARRAY, .n = k->nmet, .as.items = items };
    return tnf_set_attr(k->f.r, FF_ATTR("chunks"), all, e);
}

/* Marks vectors that come without norms: they were stored so on purpose. When they are written
 * again, in any way, they are not divided by their lengths (tnf_ff_unit_rows()). */
static tnf_status mark_bare(tnf_reader *r, tnf_error *e)
{
    const tnf_object *m = tnf_catalog_find(r->catalog, FF_EMBEDDINGS, strlen(FF_EMBEDDINGS));
    bool bare = m && m->layout == &tnf_layout_dense &&
                tnf_catalog_find(r->catalog, FF_VOCAB, strlen(FF_VOCAB)) &&
                !tnf_catalog_find(r->catalog, FF_NORMS_NAME, strlen(FF_NORMS_NAME));
    return bare ? tnf_set_attr(r, FF_BARE, (tnf_value) { .kind = TNF_BOOL }, e) : TNF_OK;
}

/* Every group needs a matrix. The document's current version allows only one group. */
static tnf_status check_groups(struct walk *k, tnf_error *e)
{
    const ff_reading *f = &k->f;
    uint32_t complete = f->matrix ? f->group : f->group - 1;
    if (f->group == 1)
        return TNF_OK;
    if (f->last == FF_KIND_METADATA)
        return tnf_fail(
            e, TNF_EFORMAT, k->at,
            "the metadata (chunk %u) comes after the matrix, and no other matrix follows",
            FF_METADATA);
    if (!f->matrix)
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, k->at,
                             "no matrix follows vocabulary %u of the file", f->group));
    if (complete > 1)
        tnf_warn(
            f->r, TNF_NO_OFFSET,
            "the file has %u matrices, as a later version of the format may have; finalfusion's "
            "tools read at most the first one",
            complete);
    return TNF_OK;
}

/* Reports missing chunks and sets the attributes of the file. */
static tnf_status finish_walk(struct walk *k, tnf_error *e)
{
    static const char *const names[] = { "real", "seed", "r2v" };
    tnf_reader *r = k->f.r;
    const char *name = names[k->f.dialect];
    bool matrix = tnf_catalog_find(r->catalog, FF_EMBEDDINGS, strlen(FF_EMBEDDINGS)) != NULL;
    if (!k->bare && k->nmet < k->nlisted && k->at <= r->source->size)
        TNF_TRY(tnf_stricter(r, e, TNF_ETRUNCATED, r->source->size,
                             "the header lists %u chunks, but the file ends after %u (cut short?)",
                             k->nlisted, k->nmet));
    if (k->nmet > 1 && !(matrix && k->f.words_known))
        tnf_warn(r, TNF_NO_OFFSET, "there is no %s", matrix ? "vocabulary" : "matrix");
    TNF_TRY(check_groups(k, e));
    TNF_TRY(tnf_ff_take_tensors(&k->f, e));
    TNF_TRY(mark_bare(r, e));
    TNF_TRY(tnf_set_attr(r, FF_ATTR("dialect"), tnf_value_str(TNF_STRING, name, strlen(name)), e));
    return set_ids(k, e);
}

tnf_status tnf_ff_index(tnf_reader *r, tnf_error *e)
{
    uint64_t size = r->source->size, most = size / FF_FRAME + 1;
    struct walk k = { .f.r = r, .f.group = 1, .f.attrs.arena = r->arena };
    TNF_TRY(read_header(&k, e));
    k.met = tnf_arena_array(r->scratch, most < FF_MAX_CHUNKS ? most : FF_MAX_CHUNKS, 4);
    if (!k.met)
        return tnf_arena_fail(r->scratch, "a list of chunks", e);
    k.f.state = tnf_arena_alloc(r->arena, sizeof *k.f.state);
    if (!k.f.state)
        return tnf_arena_fail(r->arena, "the reader's state", e);
    r->state = k.f.state;
    r->version = "0";
    tnf_status status = TNF_OK;
    while (status == TNF_OK && k.at < size && size - k.at >= FF_FRAME)
        status = read_chunk(&k, e);
    if (status != TNF_OK && !tnf_lose(r, status, e))
        return status;
    if (status == TNF_OK && k.at < size)
        TNF_TRY(keep_rest(&k, e));
    return finish_walk(&k, e);
}
