/* SPDX-License-Identifier: MIT */
/* Derives new files: reconstructs quantized rows, selects some words. The data for a builder is in
 * the view's arena. Matrices are not built in memory: saving makes a few rows at a time. */
#include "ext/emb/change.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/ieee.h"
#include "base/made_rows.h"
#include "base/str.h"

#include <string.h>

/* ------------------------------------------------------------------------- helpers */

tnf_status tnf_emb_add_strings(tnf_builder *builder, const char *name, const uint64_t *offsets,
                               uint64_t n, const void *bytes, tnf_error *e)
{
    uint64_t end = tnf_le64(&offsets[n]);
    tnf_part parts[] = {
        { .role = "offsets",
          .type = tnf_type_of(TNF_U64),
          .payload = TNF_MEMORY,
          .memory = offsets,
          .stored = 8 * (n + 1),
          .nbytes = 8 * (n + 1) },
        { .role = "bytes",
          .type = tnf_type_of(TNF_U8),
          .payload = TNF_MEMORY,
          .memory = end ? bytes : "",
          .stored = end,
          .nbytes = end },
    };
    tnf_object o = { .name = { name, strlen(name) },
                     .shape = &n,
                     .rank = 1,
                     .layout = tnf_layout_by_id("strings/1"),
                     .parts = parts,
                     .nparts = 2 };
    return tnf_builder_add_object(builder, &o, NULL, e);
}

tnf_status tnf_emb_set_text(tnf_builder *builder, const char *key, const char *text, tnf_error *e)
{
    tnf_value v = tnf_value_string(text);
    return tnf_builder_set(builder, NULL, key, &v, e);
}

/* A finalfusion file without norms has its final rows. The derived file keeps the attribute that
 * says so; otherwise saving would normalise the rows. */
tnf_status tnf_emb_keep_bare(tnf_builder *builder, const tnf_emb *emb, tnf_error *e)
{
    static const char key[] = "finalfusion.norms";
    const tnf_value *bare = tnf_file_attr(emb->file, key);
    return bare ? tnf_builder_set(builder, NULL, key, bare, e) : TNF_OK;
}

/* ---------------------------------------------------------------------- reconstruct */

#define AT_ONCE 64u /* rows that are rotated together, so each row of the projection is reused */

typedef struct unpacking {
    const tnf_emb *emb;
    bool normalise;     /* the rows of words */
    float *padded;      /* AT_ONCE padded rows, aligned */
    tnf_made_rows made; /* at most AT_ONCE rows */
} unpacking;

static tnf_status unpack_rows(void *ctx, uint64_t first, tnf_error *e)
{
    unpacking *u = ctx;
    const tnf_rows *r = &u->emb->rows;
    size_t d = r->d, pitch = TNF_PADDED(d);
    u->made.n = 0;
    size_t n = r->n - first < AT_ONCE ? (size_t)(r->n - first) : AT_ONCE;
    memset(u->padded, 0, n * pitch * sizeof *u->padded);
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_pq_add(r, first + i, u->padded + i * pitch, e));
    if (r->projection.p)
        r->kernels->dot(r->projection.p, d, d, u->padded, n, u->made.rows, d);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(u->made.rows + i * d, u->padded + i * pitch, d * sizeof *u->made.rows);
    for (size_t i = 0; u->normalise && i < n && first + i < u->emb->info.words; i++)
        tnf_emb_normalise(u->emb, u->made.rows + i * d);
    u->made.first = first;
    u->made.n = n;
    return TNF_OK;
}

/* A tnf_fetch_fn for bytes of the dense matrix. */
static tnf_status fetch_rows(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    unpacking *u = ctx;
    return tnf_made_rows_fetch(&u->made, u->emb->rows.d, unpack_rows, u, offset, dst, n, e);
}

static tnf_status new_unpacking(unpacking **out, tnf_emb *emb, bool normalise, tnf_error *e)
{
    size_t d = emb->rows.d;
    unpacking *u = tnf_arena_alloc(&emb->arena, sizeof *u);
    float *padded = tnf_arena_raw(&emb->arena, AT_ONCE * TNF_PADDED(d) * sizeof(float) + 64);
    float *rows = tnf_arena_raw(&emb->arena, AT_ONCE * d * sizeof(float));
    if (!u || !padded || !rows)
        return tnf_arena_fail(&emb->arena, "rows", e);
    *u = (unpacking) { .emb = emb, .normalise = normalise, .made.rows = rows };
    u->padded = (float *)(((uintptr_t)padded + 63) & ~(uintptr_t)63);
    *out = u;
    return TNF_OK;
}

/* The rows are computed by IEEE 754, as when they are saved (tnf_made_rows_fetch()). */
static tnf_status measure_rows(float *norms, unpacking *u, tnf_error *e)
{
    const tnf_emb *emb = u->emb;
    const uint64_t words = emb->info.words;
    const uint32_t mode = tnf_enter_ieee();
    tnf_status status = TNF_OK;
    for (uint64_t first = 0; first < words && status == TNF_OK; first += AT_ONCE) {
        status = unpack_rows(u, first, e);
        for (size_t i = 0; i < u->made.n && first + i < words; i++)
            norms[first + i] = tnf_emb_normalise(emb, u->made.rows + i * emb->rows.d);
    }
    tnf_leave_ieee(mode);
    return status;
}

/* Computes the lengths of the words' vectors, for a file without norms. */
static tnf_status make_norms(float **out, tnf_emb *emb, tnf_error *e)
{
    unpacking *u;
    uint64_t words = emb->info.words;
    float *norms = tnf_arena_array(&emb->arena, words + 1, sizeof *norms);
    if (!norms)
        return tnf_arena_fail(&emb->arena, "norms", e);
    TNF_TRY(new_unpacking(&u, emb, false, e));
    TNF_TRY(measure_rows(norms, u, e));
    tnf_swap_le(norms, words, sizeof *norms); /* a builder needs little-endian data */
    *out = norms;
    return TNF_OK;
}

static tnf_status add_attributes(tnf_builder *builder, const tnf_emb *emb, tnf_error *e)
{
    const tnf_value *attrs = tnf_file_info(emb->file)->attrs;
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *m = &attrs->as.members[i];
        if (!tnf_str_is(m->key, "finalfusion.chunks")) /* it describes the old file */
            TNF_TRY(tnf_builder_set_n(builder, NULL, m->key, &m->value, e));
    }
    return TNF_OK;
}

/* Adds the tensors in the order of the file. */
tnf_status tnf_emb_add_others(tnf_builder *builder, const tnf_emb *emb, tnf_error *e)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(emb->file, i)); i++)
        if (o != emb->info.embeddings && !(emb->model && tnf_str_begins(o->name, "embeddings.")))
            TNF_TRY(tnf_builder_add_object(builder, o, NULL, e));
    return add_attributes(builder, emb, e);
}

tnf_status tnf_emb_reconstruct(tnf_builder *builder, tnf_emb *emb, bool as_is, tnf_error *e)
{
    TNF_TRY(tnf_need(builder, "builder", e));
    TNF_TRY(tnf_need(emb, "emb", e));
    const tnf_object *matrix = emb->info.embeddings;
    unpacking *u;
    float *norms = NULL;
    if (!emb->info.quantized)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s is not quantized",
                        TNF_QUOTED(matrix->name));
    bool normalise = !as_is && !emb->info.has_norms && !emb->model && emb->info.words > 0;
    if (normalise)
        TNF_TRY(make_norms(&norms, emb, e));
    TNF_TRY(new_unpacking(&u, emb, normalise, e));
    TNF_TRY(tnf_builder_add_stream_n(builder, matrix->name, tnf_type_of(TNF_F32), 2, matrix->shape,
                                     fetch_rows, u, e));
    TNF_TRY(tnf_emb_add_others(builder, emb, e));
    if (!norms)
        return TNF_OK;
    return tnf_builder_add(builder, "norms", tnf_type_of(TNF_F32), 1, &emb->info.words, norms, e);
}

/* --------------------------------------------------------------------------- select */

typedef struct selection {
    uint64_t n;
    uint64_t *offsets;
    char *bytes;
    float *vectors, *norms;
} selection;

static tnf_status selection_room(selection *s, tnf_emb *emb, const tnf_str *words, size_t n,
                                 tnf_error *e)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        if (!tnf_ckd_add(&bytes, bytes, words[i].n))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the words are too large");
    s->offsets = tnf_arena_array(&emb->arena, (uint64_t)n + 1, sizeof *s->offsets);
    s->bytes = tnf_arena_raw(&emb->arena, bytes + 1);
    s->vectors = tnf_arena_array(&emb->arena, (uint64_t)n + 1, emb->info.dims * sizeof(float));
    s->norms = tnf_arena_array(&emb->arena, (uint64_t)n + 1, sizeof(float));
    if (!s->offsets || !s->bytes || !s->vectors || !s->norms)
        return tnf_arena_fail(&emb->arena, "selected words", e);
    return TNF_OK;
}

typedef struct chosen {
    const tnf_str *words;
} chosen;

static tnf_str chosen_word(const void *ctx, uint32_t i)
{
    return ((const chosen *)ctx)->words[i];
}

/* Takes a word; repeated words are taken once. */
static tnf_status take_word(selection *s, tnf_emb *emb, tnf_hash *seen, const tnf_str *words,
                            size_t i, tnf_error *e)
{
    uint32_t previous;
    tnf_emb_found found;
    tnf_str word = words[i];
    if (!tnf_hash_add(seen, (uint32_t)i, false, &previous))
        return tnf_no_memory("a table of words", e);
    if (previous != TNF_HASH_NONE)
        return TNF_OK;
    TNF_TRY(tnf_emb_vectors(s->vectors + s->n * emb->info.dims, &found, emb, &word, 1, e));
    if (!found.found)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no vector for %s",
                        TNF_QUOTED(word));
    s->norms[s->n] = found.norm;
    if (word.n > 0)
        memcpy(s->bytes + s->offsets[s->n], word.p, word.n);
    s->offsets[s->n + 1] = s->offsets[s->n] + word.n;
    s->n++;
    return TNF_OK;
}

tnf_status tnf_emb_select(tnf_builder *builder, tnf_emb *emb, const tnf_str *words, size_t n,
                          tnf_error *e)
{
    TNF_TRY(tnf_need(builder, "builder", e));
    TNF_TRY(tnf_need(emb, "emb", e));
    TNF_TRY(tnf_emb_need_words(words, n, e));
    selection s = { 0 };
    tnf_hash seen;
    chosen c = { words };
    if (n > UINT32_MAX / 2)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "%zu words are too many: at most %u can be selected", n, UINT32_MAX / 2);
    TNF_TRY(selection_room(&s, emb, words, n, e));
    tnf_hash_init(&seen, &emb->alloc, chosen_word, &c);
    tnf_status status = TNF_OK;
    for (size_t i = 0; status == TNF_OK && i < n; i++)
        status = take_word(&s, emb, &seen, words, i, e);
    tnf_hash_free(&seen);
    TNF_TRY(status);
    uint64_t shape[] = { s.n, emb->info.dims };
    tnf_swap_le(s.offsets, s.n + 1, sizeof *s.offsets);
    tnf_swap_le(s.vectors, s.n * emb->info.dims, sizeof *s.vectors);
    tnf_swap_le(s.norms, s.n, sizeof *s.norms);
    TNF_TRY(tnf_emb_add_strings(builder, "vocab", s.offsets, s.n, s.bytes, e));
    TNF_TRY(tnf_builder_add(builder, "embeddings", tnf_type_of(TNF_F32), 2, shape, s.vectors, e));
    if (emb->norms) /* else the file has no norms */
        TNF_TRY(tnf_builder_add(builder, "norms", tnf_type_of(TNF_F32), 1, shape, s.norms, e));
    TNF_TRY(tnf_emb_keep_bare(builder, emb, e));
    return tnf_emb_set_text(builder, "finalfusion.vocab", "simple", e);
}
