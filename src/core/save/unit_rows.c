/* SPDX-License-Identifier: MIT */
/* Word vectors for a format whose own readers expect vectors of length 1. The rows are divided by
 * their lengths while they are saved, and the lengths are saved, too, which undoes the change.
 *
 *   embeddings   row of a word     ─>   row / length             norms   length of each, in a new
 *                row of a subword  ─>   unchanged                        tensor
 *
 * The format decides which catalogs need this. Lengths are stored when the rows are made; if they
 * are needed before that, they are computed.
 */
#include "base/bytes.h"
#include "base/made_rows.h"
#include "base/pool.h"
#include "base/unit.h"
#include "core/read/stream.h"
#include "core/save/save.h"

#include <string.h>

#define BLOCK      ((size_t)4 << 20) /* bytes of rows that are made at once */
#define TASK       128u              /* rows per task of a thread */
#define EMBEDDINGS "embeddings"
#define NORMS      "norms"

struct unit_rows {
    struct tnf_origin rows_origin, norms_origin;
    tnf_object matrix; /* the original one, row by row */
    tnf_part before;   /* its only part */
    const char *why;
    uint64_t words, all; /* number of rows: of words, and including subwords */
    size_t dims, room;   /* room: rows in a block */
    tnf_stream stream;
    bool open;
    tnf_allocator alloc;
    tnf_made_rows made; /* its rows and norms are NULL until they are needed */
};

/* ------------------------------------------------------------------- rows */

static tnf_status open_stream(struct unit_rows *u, tnf_error *e)
{
    if (!u->open)
        TNF_TRY(tnf_stream_open(&u->stream, &u->before, e));
    u->open = true;
    if (!u->made.rows)
        u->made.rows = tnf_alloc(&u->alloc, u->room * u->dims * sizeof(float));
    if (!u->made.norms)
        u->made.norms = tnf_alloc(&u->alloc, (size_t)u->words * sizeof(float));
    return u->made.rows && u->made.norms ? TNF_OK : tnf_no_memory("rows", e);
}

static tnf_status make_some(void *ctx, size_t task, tnf_error *e)
{
    struct unit_rows *u = ctx;
    size_t from = task * TASK, to = u->made.n - from < TASK ? u->made.n : from + TASK;
    (void)e;
    for (size_t i = from; i < to && u->made.first + i < u->words; i++)
        u->made.norms[u->made.first + i] = tnf_unit_row(u->made.rows + i * u->dims, u->dims);
    return TNF_OK;
}

static tnf_status make_block(void *ctx, uint64_t first, tnf_error *e)
{
    struct unit_rows *u = ctx;
    size_t row = u->dims * sizeof(float);
    size_t n = u->all - first < u->room ? (size_t)(u->all - first) : u->room;
    TNF_TRY(open_stream(u, e));
    u->made.n = 0; /* until the block is complete */
    TNF_TRY(tnf_stream_read(&u->stream, first * row, u->made.rows, n * row, e));
    tnf_swap_le(u->made.rows, (uint64_t)n * u->dims, sizeof(float));
    u->made.first = first;
    u->made.n = n;
    TNF_TRY(tnf_pool_run(tnf_pool_threads(0), (n + TASK - 1) / TASK, make_some, u, e));
    tnf_made_rows_done(&u->made);
    return TNF_OK;
}

static tnf_status fetch_rows(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct unit_rows *u = ctx;
    return tnf_made_rows_fetch(&u->made, u->dims, make_block, u, offset, dst, n, e);
}

static tnf_status fetch_norms(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct unit_rows *u = ctx;
    return tnf_made_norms_fetch(&u->made, make_block, u, offset, dst, n, e);
}

/* ---------------------------------------------------------------- catalog */

/* Only catalogs with rows of floats, with words for them, and without lengths. */
static bool has_rows(const tnf_catalog *c, const tnf_object **matrix, uint64_t *words)
{
    const tnf_object *m = tnf_catalog_find(c, EMBEDDINGS, sizeof EMBEDDINGS - 1);
    const tnf_object *vocab = tnf_catalog_find(c, "vocab", sizeof "vocab" - 1);
    *matrix = m;
    *words = vocab && vocab->rank == 1 ? vocab->shape[0] : 0;
    return m && m->layout == &tnf_layout_dense && m->rank == 2 && m->nparts == 1 &&
           m->parts->type == tnf_type_of(TNF_F32) && !(m->parts->flags & TNF_PART_UNREADABLE) &&
           m->shape[1] > 0 && *words > 0 && *words <= m->shape[0] &&
           !tnf_catalog_find(c, NORMS, sizeof NORMS - 1);
}

static tnf_status new_unit_rows(struct unit_rows **out, struct tnf_save *save,
                                const tnf_object *matrix, uint64_t words, tnf_error *e)
{
    size_t row, all;
    struct unit_rows *u = tnf_arena_alloc(&save->arena, sizeof *u);
    if (!u)
        return tnf_arena_fail(&save->arena, "unit rows", e);
    if (!tnf_to_size(&row, matrix->shape[1] * sizeof(float)) ||
        !tnf_to_size(&all, words * sizeof(float)))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the rows are too large");
    *u = (struct unit_rows) { .matrix = *matrix,
                              .before = *matrix->parts,
                              .words = words,
                              .all = matrix->shape[0],
                              .dims = (size_t)matrix->shape[1],
                              .room = BLOCK / row ? BLOCK / row : 1,
                              .alloc = save->arena.alloc };
    if (u->room > u->all)
        u->room = (size_t)u->all;
    u->rows_origin.fetch = fetch_rows;
    u->norms_origin.fetch = fetch_norms;
    u->rows_origin.ctx = u->norms_origin.ctx = u;
    *out = u;
    return matrix->order == TNF_ORDER_F ? tnf_reorder(&u->before, matrix, save, e) : TNF_OK;
}

static tnf_status add_floats(struct tnf_save *save, const tnf_object *object, unsigned policy,
                             const struct tnf_origin *origin, uint64_t bytes, tnf_error *e)
{
    tnf_object o = *object;
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_F32),
                      .origin = origin,
                      .stored = bytes,
                      .nbytes = bytes,
                      .payload = TNF_MEMORY };
    o.parts = &part;
    o.nparts = 1;
    o.order = TNF_ORDER_C;
    return tnf_catalog_add(&save->unit, &o, policy, e);
}

static tnf_status fill_catalog(struct tnf_save *save, const tnf_catalog *from,
                               const tnf_object *matrix, tnf_error *e)
{
    struct unit_rows *u = save->unit_rows;
    tnf_catalog_init(&save->unit, &save->arena);
    for (size_t i = 0; i < from->n; i++) {
        const tnf_object *o = &from->objects[i];
        bool found = tnf_catalog_find(from, o->name.p, o->name.n) == o;
        unsigned policy = found ? TNF_NAMES_LATER_FOUND : TNF_NAMES_FIRST_FOUND;
        TNF_TRY(o == matrix ? add_floats(save, o, policy, &u->rows_origin, o->parts->nbytes, e)
                            : tnf_catalog_add(&save->unit, o, policy | TNF_BORROWED, e));
    }
    const tnf_object norms = { .name = { NORMS, sizeof NORMS - 1 },
                               .shape = &u->words,
                               .rank = 1,
                               .layout = &tnf_layout_dense };
    TNF_TRY(
        add_floats(save, &norms, TNF_NAMES_ONCE, &u->norms_origin, u->words * sizeof(float), e));
    save->unit.attrs = from->attrs;
    return TNF_OK;
}

tnf_status tnf_unit_rows(struct tnf_save *save, const tnf_catalog *from, const tnf_catalog **out,
                         tnf_error *e)
{
    const tnf_object *matrix;
    uint64_t words;
    const char *why = NULL;
    const tnf_file *like = save->options.like;
    *out = from;
    if (save->options.as_is || !save->format->can.unit_rows ||
        (like && like->format == save->format) || !has_rows(from, &matrix, &words) ||
        !(why = save->format->can.unit_rows(from)))
        return TNF_OK;
    TNF_TRY(new_unit_rows(&save->unit_rows, save, matrix, words, e));
    save->unit_rows->why = why;
    TNF_TRY(fill_catalog(save, from, matrix, e));
    *out = &save->unit;
    return TNF_OK;
}

const char *tnf_why_unit(const struct tnf_save *save, const tnf_object *object)
{
    const struct unit_rows *u = save->unit_rows;
    bool is = u && object->nparts == 1 && object->parts->origin == &u->rows_origin;
    return is ? u->why : NULL;
}

void tnf_unit_rows_end(struct tnf_save *save)
{
    struct unit_rows *u = save->unit_rows;
    if (!u)
        return;
    if (u->open)
        tnf_stream_close(&u->stream);
    tnf_free(&u->alloc, u->made.rows, u->room * u->dims * sizeof(float));
    tnf_free(&u->alloc, u->made.norms, (size_t)u->words * sizeof(float));
    if (save->unit.arena)
        tnf_catalog_free(&save->unit);
}
