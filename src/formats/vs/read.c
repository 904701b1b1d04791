/* SPDX-License-Identifier: MIT */
/* Lists a VS file: one walk over its blocks checks everything except the vectors' bytes. */
#include "formats/vs/note.h"
#include "formats/vs/vs.h"
#include "io/lock.h"
#include "wire/msgpack.h"

#include <stdio.h>
#include <string.h>

#define LOCK_WAIT 30000u /* milliseconds */

struct walk {
    tnf_reader *r;
    vs_state *s;
    tnf_vs_chain chain;
    bool has_meta;
    bool listed;     /* the points become tensors */
    uint64_t odd_at; /* not listed: the first vector that is not made of texts, or 0 */
    uint64_t blanks, stored, app_stored;
    tnf_buf options[2]; /* of vectors and of application data; empty while all are 0 */
    tnf_buf spare;      /* for decompressing */
};

tnf_status tnf_vs_column_push(vs_column *c, uint64_t v, tnf_arena *arena, tnf_error *e)
{
    if (c->n == (uint64_t)c->npieces * VS_PIECE) {
        uint64_t **pieces = tnf_arena_grow(arena, c->pieces, c->npieces, &c->capacity,
                                           sizeof *pieces, 8);
        if (!pieces)
            return tnf_arena_fail(arena, "the list of points", e);
        c->pieces = pieces;
        c->pieces[c->npieces] = tnf_arena_raw(arena, VS_PIECE * sizeof(uint64_t));
        if (!c->pieces[c->npieces])
            return tnf_arena_fail(arena, "the list of points", e);
        c->npieces++;
    }
    c->pieces[c->n / VS_PIECE][c->n % VS_PIECE] = v;
    c->n++;
    return TNF_OK;
}

/* ------------------------------------------------------------------ blocks */

static tnf_status too_large(const struct walk *w, const char *what, uint64_t at, uint64_t n,
                            tnf_error *e)
{
    if (n <= w->r->limits.header_bytes)
        return TNF_OK;
    return tnf_fail(e, TNF_ELIMIT, at,
                    "%s of %llu bytes; at most %llu are allowed: raise the limit 'header_bytes' if "
                    "you trust the file",
                    what, (unsigned long long)n, (unsigned long long)w->r->limits.header_bytes);
}

/* Extras are decoded by this format, so that they are read under its lock, too. */
static tnf_status keep_extra(tnf_reader *r, const char *key, uint64_t offset, uint64_t n,
                             tnf_error *e)
{
    uint64_t size;
    const tnf_part part = { .origin = tnf_file_origin(r->file, &size),
                            .offset = offset,
                            .stored = n,
                            .nbytes = n,
                            .payload = TNF_OPAQUE };
    return tnf_add_extra_part(r, (tnf_str) { key, strlen(key) }, &part, e);
}

static tnf_status take_meta(struct walk *w, tnf_error *e)
{
    tnf_vs_chain *c = &w->chain;
    if (w->has_meta)
        return tnf_fail(e, TNF_EFORMAT, c->at,
                        "format error: second meta block, but only one is allowed");
    TNF_TRY(too_large(w, "a meta block", c->at, c->length, e));
    TNF_TRY(tnf_vs_chain_meta(c, &w->s->meta, w->r->arena, e));
    w->has_meta = true;
    w->listed = w->s->meta.type || tnf_vs_has_texts(&w->s->meta);
    tnf_trace(w->r, c->at, "meta block: rank %u of %s", w->s->meta.rank, w->s->meta.type_name);
    size_t extra = w->s->meta.extra_n;
    return extra && w->listed ? keep_extra(w->r, VS_META, c->next - extra, extra, e) : TNF_OK;
}

/* Keeps the option of a row. Zeros need no memory. */
static tnf_status keep_option(tnf_buf *b, uint64_t row, uint8_t option, tnf_error *e)
{
    if (option == 0 && b->n == 0)
        return TNF_OK;
    while (b->n < row && b->status == TNF_OK)
        tnf_buf_u8(b, 0);
    tnf_buf_u8(b, option);
    return tnf_buf_status(b, "the options", e);
}

static tnf_status keep_app(struct walk *w, const tnf_vs_point *p, tnf_error *e)
{
    vs_state *s = w->s;
    tnf_str app = { NULL, p->app_n };
    if (p->app_n && p->option & TNF_VS_CODE) {
        TNF_TRY(tnf_vs_app(&w->chain, p, w->r->limits.header_bytes, &w->spare, &app, e));
        TNF_TRY(tnf_vs_check_app(app.p, app.n, p->app_at, e));
    }
    if (app.n && s->app.n == 0) /* the first point with application data */
        for (uint64_t i = 0; i <= s->n; i++)
            TNF_TRY(tnf_vs_column_push(&s->app, 0, w->r->arena, e));
    s->app_bytes += app.n;
    w->app_stored += p->app_n;
    return s->app.n ? tnf_vs_column_push(&s->app, s->app_bytes, w->r->arena, e) : TNF_OK;
}

/* Keeps the ends of the texts of a vector. If it is not made of texts, nothing is listed. */
static tnf_status keep_texts(struct walk *w, const tnf_vs_point *p, tnf_error *e)
{
    tnf_cur c;
    tnf_str text;
    vs_state *s = w->s;
    uint64_t end = s->texts.n ? vs_column_at(&s->texts, s->texts.n - 1) : 0, i = 0;
    bool small = p->vector_n <= w->r->limits.header_bytes &&
                 tnf_vs_texts_fit(p->vector_n, 0, s->meta.elements); /* each takes memory */
    tnf_status status = small ? tnf_vs_texts(&w->chain, p, &w->spare, &c, e) : TNF_EFORMAT;
    if (status != TNF_OK && !tnf_is_file_fault(status))
        return status;
    if (s->texts.n == 0)
        TNF_TRY(tnf_vs_column_push(&s->texts, 0, w->r->arena, e));
    for (; status == TNF_OK && i < s->meta.elements; i++) {
        if (tnf_vs_text_next(&c, &s->meta, s->msb, &text, NULL) != TNF_OK)
            break;
        end += text.n;
        TNF_TRY(tnf_vs_column_push(&s->texts, end, w->r->arena, e));
    }
    w->listed = status == TNF_OK && i == s->meta.elements && tnf_left(&c) == 0;
    w->odd_at = w->listed ? 0 : p->at;
    return TNF_OK;
}

static tnf_status extra_of_point(struct walk *w, const tnf_vs_point *p, tnf_error *e)
{
    char key[48];
    snprintf(key, sizeof key, VS_POINT "%llu.extra", (unsigned long long)w->s->n);
    return keep_extra(w->r, key, p->vector_at + p->vector_n, p->extra_n, e);
}

static tnf_status take_point(struct walk *w, tnf_error *e)
{
    tnf_vs_point p;
    vs_state *s = w->s;
    if (!w->has_meta)
        return tnf_fail(e, TNF_EFORMAT, w->chain.at, "a point comes before the meta block");
    if (w->chain.length > w->r->limits.header_bytes) { /* checked before any of it is read */
        TNF_TRY(tnf_vs_chain_point(&w->chain, &p, e));
        TNF_TRY(too_large(w, "application data", p.app_at, p.app_n, e));
    }
    TNF_TRY(tnf_vs_chain_checked(&w->chain, &s->meta, &p, e));
    if (s->meta.type && w->r->salvage) {
        const uint8_t *vector;
        TNF_TRY(tnf_vs_vector(&w->chain, &s->meta, &p, &w->spare, &vector, e));
    }
    if (w->listed && !s->meta.type)
        TNF_TRY(keep_texts(w, &p, e));
    if (w->listed) { /* checks of the file come before allocations */
        TNF_TRY(keep_app(w, &p, e));
        TNF_TRY(keep_option(&w->options[0], s->n, p.vector_option, e));
        TNF_TRY(keep_option(&w->options[1], s->n, p.option, e));
        TNF_TRY(tnf_vs_column_push(&s->blocks, p.at, w->r->arena, e));
        if (p.extra_n)
            TNF_TRY(extra_of_point(w, &p, e));
    }
    w->stored += p.vector_n;
    s->n++;
    return TNF_OK;
}

static tnf_status take_unknown(struct walk *w, tnf_error *e)
{
    char key[48];
    const tnf_vs_chain *c = &w->chain;
    if (c->type == 0)
        tnf_warn(w->r, c->at, "a block has the unknown type 0, so the file may be damaged");
    if (w->has_meta && !w->listed)
        return TNF_OK;
    if (w->has_meta)
        snprintf(key, sizeof key, VS_BLOCK "%llu", (unsigned long long)w->s->n);
    else
        snprintf(key, sizeof key, VS_BEFORE);
    return keep_extra(w->r, key, c->at, TNF_VS_HEAD + (uint64_t)c->length, e);
}

static tnf_status take_block(struct walk *w, tnf_error *e)
{
    switch (w->chain.type) {
    case TNF_VS_POINT:
        return take_point(w, e);
    case TNF_VS_META:
        return take_meta(w, e);
    case TNF_VS_BLANK:
        w->blanks++;
        return TNF_OK;
    default:
        return take_unknown(w, e);
    }
}

static tnf_status walk_blocks(struct walk *w, tnf_error *e)
{
    tnf_vs_chain *c = &w->chain;
    TNF_TRY(tnf_vs_chain_header(c, e));
    TNF_TRY(tnf_vs_note_read(c, w->r->limits.header_bytes, e));
    for (;;) {
        tnf_status status = tnf_vs_chain_next(c, e);
        if (status != TNF_OK) /* the position of the next block is unknown */
            return w->has_meta && tnf_lose(w->r, status, e) ? TNF_OK : status;
        if (c->type == TNF_VS_END)
            break;
        status = take_block(w, e);
        if (status != TNF_OK && !(w->has_meta && tnf_lose(w->r, status, e)))
            return status;
    }
    if (!c->terminal)
        tnf_warn(w->r, c->at, "the terminal '$' is missing; the end of the file is used instead");
    else if (c->note.n)
        tnf_warn(w->r, c->at + 1,
                 "the deletion of %llu points was interrupted: they count as deleted, and the next "
                 "change of the file by 'tenfold points' finishes it",
                 (unsigned long long)c->note.n);
    else if (c->at + 1 < c->size)
        tnf_warn(w->r, c->at + 1, "the file goes on after the terminal '$': %s ignored",
                 TNF_BYTES_ARE(c->size - c->at - 1));
    return TNF_OK;
}

/* ----------------------------------------------------------------- listing */

static tnf_value u8_value(uint8_t v)
{
    return (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = v };
}

static tnf_status set_dims(struct walk *w, tnf_error *e)
{
    const tnf_vs_meta *m = &w->s->meta;
    tnf_value *items = tnf_arena_array(w->r->arena, m->rank, sizeof *items);
    if (!items)
        return tnf_arena_fail(w->r->arena, "attributes", e);
    for (uint32_t i = 0; i < m->rank; i++)
        items[i] = (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U32, .as.u = m->dims[i] };
    tnf_value dims = { .kind = TNF_ARRAY, .n = m->rank, .as.items = items };
    return tnf_set_attr(w->r, "vs.dims", dims, e);
}

static tnf_status set_attributes(struct walk *w, tnf_error *e)
{
    const tnf_vs_meta *m = &w->s->meta;
    tnf_value tree;
    tnf_msgpack p;
    if (m->attributes.n == 0)
        return tnf_set_attr(w->r, "vs.bare", (tnf_value) { .kind = TNF_BOOL, .as.b = true }, e);
    tnf_msgpack_init(&p, m->attributes.p, m->attributes.n, m->attributes_at, w->r->arena,
                     w->r->limits.depth, e);
    p.no_widths = true;
    if (!tnf_msgpack_value(&p, &tree))
        return p.status;
    return tnf_set_attr(w->r, "vs.attributes", tree, e);
}

static tnf_status set_attrs(struct walk *w, tnf_error *e)
{
    const tnf_vs_meta *m = &w->s->meta;
    if (w->has_meta) {
        TNF_TRY(set_dims(w, e));
        TNF_TRY(tnf_set_attr(w->r, "vs.resolution", tnf_value_string(m->type_name), e));
        TNF_TRY(tnf_set_attr(w->r, "vs.pack", u8_value(m->pack), e));
        TNF_TRY(tnf_set_attr(w->r, "vs.paging", u8_value(m->paging), e));
        TNF_TRY(set_attributes(w, e));
    }
    TNF_TRY(tnf_set_attr(w->r, "vs.points", tnf_value_uint(w->s->n), e));
    return tnf_set_attr(w->r, "vs.blanks", tnf_value_uint(w->blanks), e);
}

static bool all_equal(const tnf_buf *b)
{
    return b->n > 0 && memcmp(b->p, b->p + 1, b->n - 1) == 0;
}

/* {"vs.options": bytes, "tenfold.messagepack": true}: a number of options if all are the same, none
 * if all are 0; the second if requested. Without members *out is NULL. */
static tnf_status attrs_of_tensor(struct walk *w, const tnf_buf *b, bool json,
                                  const tnf_value **out, tnf_error *e)
{
    tnf_arena *a = w->r->arena;
    size_t n = (b->n > 0) + (size_t)json;
    *out = NULL;
    if (n == 0)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(a, sizeof *map + n * sizeof(tnf_member));
    const char *copy = map && b->n && !all_equal(b) ? tnf_arena_str(a, b->p, b->n) : "";
    if (!map || !copy)
        return tnf_arena_fail(a, "options", e);
    tnf_member *m = (tnf_member *)(map + 1);
    *map = (tnf_value) { .kind = TNF_MAP, .n = n, .as.members = m };
    *out = map;
    if (b->n)
        *m++ = (tnf_member) { { VS_OPTIONS, sizeof VS_OPTIONS - 1 },
                              all_equal(b) ? u8_value(b->p[0])
                                           : tnf_value_str(TNF_BYTES, copy, b->n) };
    if (json)
        *m = (tnf_member) { { VS_JSON, sizeof VS_JSON - 1 }, { .kind = TNF_BOOL, .as.b = true } };
    return TNF_OK;
}

/* The parts of a tensor of strings: n + 1 offsets, and the strings. */
static void strings_parts(tnf_part parts[2], uint64_t n, uint64_t bytes, uint64_t stored,
                          uint64_t key)
{
    parts[0] = (tnf_part) { .role = "offsets",
                            .type = tnf_type_of(TNF_U64),
                            .offset = key,
                            .nbytes = (n + 1) * sizeof(uint64_t),
                            .payload = TNF_OPAQUE };
    parts[1] = (tnf_part) { .role = "bytes",
                            .type = tnf_type_of(TNF_U8),
                            .offset = key + 1,
                            .stored = stored,
                            .nbytes = bytes,
                            .payload = TNF_OPAQUE };
}

static tnf_status list_points(struct walk *w, tnf_error *e)
{
    const vs_state *s = w->s;
    uint64_t elements, bytes;
    uint64_t *shape = tnf_arena_array(w->r->scratch, (uint64_t)s->meta.rank + 1, sizeof *shape);
    if (!shape)
        return tnf_arena_fail(w->r->scratch, "the shape", e);
    shape[0] = s->n;
    if (s->meta.rank)
        memcpy(shape + 1, s->meta.dims, s->meta.rank * sizeof *shape);
    tnf_part parts[2];
    if (s->meta.type) {
        if (!tnf_ckd_mul(&elements, s->n, s->meta.elements) ||
            !tnf_type_bytes(&bytes, s->meta.type, elements))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "all points together exceed 2^64 bytes");
        parts[0] = (tnf_part) { .role = "data",
                                .type = s->meta.type,
                                .offset = VS_KEY_POINTS,
                                .stored = w->stored,
                                .nbytes = bytes,
                                .payload = TNF_OPAQUE };
    } else { /* each of its offsets is in memory, so their number does not overflow */
        elements = s->texts.n ? s->texts.n - 1 : 0;
        bytes = elements ? vs_column_at(&s->texts, elements) : 0;
        strings_parts(parts, elements, bytes, w->stored, VS_KEY_STARTS);
    }
    tnf_object o = { .name = { VS_POINTS, sizeof VS_POINTS - 1 },
                     .shape = shape,
                     .layout = s->meta.type ? &tnf_layout_dense : tnf_layout_named("strings/1", 9),
                     .parts = parts,
                     .rank = s->meta.rank + 1,
                     .nparts = s->meta.type ? 1 : 2 };
    bool json = s->meta.resolution == TNF_VS_JSON;
    TNF_TRY(attrs_of_tensor(w, &w->options[0], json, &o.attrs, e));
    return tnf_add_object(w->r, &o, TNF_VS_HEADER, e);
}

static tnf_status list_appdata(struct walk *w, tnf_error *e)
{
    const vs_state *s = w->s;
    tnf_part parts[2];
    strings_parts(parts, s->n, s->app_bytes, w->app_stored, VS_KEY_OFFSETS);
    tnf_object o = { .name = { VS_APPDATA, sizeof VS_APPDATA - 1 },
                     .shape = &s->n,
                     .layout = tnf_layout_named("strings/1", 9),
                     .parts = parts,
                     .rank = 1,
                     .nparts = 2 };
    TNF_TRY(attrs_of_tensor(w, &w->options[1], false, &o.attrs, e));
    if (s->app_bytes == 0 && !o.attrs)
        o.attrs = &tnf_filler;
    return tnf_add_object(w->r, &o, TNF_VS_HEADER, e);
}

static tnf_status list_tensors(struct walk *w, tnf_error *e)
{
    w->r->version = "0";
    if (w->r->salvage && w->s->n == 0 && !w->s->meta.type) /* lost points need not be texts */
        w->listed = false;
    TNF_TRY(set_attrs(w, e));
    if (!w->has_meta)
        return TNF_OK;
    if (!w->listed) {
        if (w->chain.note.n) /* their bytes would become points again */
            return tnf_fail(e, TNF_EUNSUPPORTED, w->chain.note.end,
                            "the deletion of points was interrupted and must be finished first, "
                            "with 'tenfold points compact'");
        if (w->odd_at)
            tnf_warn(w->r, w->odd_at,
                     "a vector of the resolution %s is not %llu texts with their lengths, or too "
                     "large: the points are counted and kept unchanged",
                     w->s->meta.type_name, (unsigned long long)w->s->meta.elements);
        else
            tnf_warn(w->r, TNF_NO_OFFSET,
                     "unsupported resolution %d (%s): its points are counted and kept unchanged",
                     w->s->meta.resolution, w->s->meta.type_name);
        w->r->catalog->nextras = 0; /* they include those before the meta block */
        return keep_extra(w->r, VS_BLOCKS, TNF_VS_HEADER, w->chain.at - TNF_VS_HEADER, e);
    }
    TNF_TRY(list_points(w, e));
    return list_appdata(w, e);
}

/* ----------------------------------------------------------------- locking */

static bool has_locks(const tnf_reader *r)
{
    return r->options[VS_READ_LOCK].u && r->source->fd >= 0;
}

tnf_status tnf_vs_lock(const tnf_reader *r, tnf_error *e)
{
    vs_state *s = r->state;
    return has_locks(r) ? tnf_share_enter(&s->share, r->source->fd, tnf_is_claimed(r), LOCK_WAIT, e)
                        : TNF_OK;
}

void tnf_vs_unlock(const tnf_reader *r)
{
    vs_state *s = r->state;
    if (has_locks(r))
        tnf_share_leave(&s->share, r->source->fd);
}

void tnf_vs_close(tnf_reader *r)
{
    vs_state *s = r->state;
    if (s)
        tnf_share_free(&s->share);
}

/* Locks the file, since other processes may be appending to it. */
static tnf_status lock_file(tnf_reader *r, bool *locked, tnf_error *e)
{
    int fd = r->source->fd;
    *locked = has_locks(r) && tnf_is_claimed(r) && tnf_lock_beside(fd);
    if (*locked || !has_locks(r))
        return TNF_OK;
    tnf_status status = tnf_lock_take(fd, false, LOCK_WAIT, e);
    if (status == TNF_EUNSUPPORTED) {
        tnf_warn(r, TNF_NO_OFFSET, "read without a lock: this file system does not support locks");
        return TNF_OK;
    }
    *locked = status == TNF_OK;
    return status;
}

tnf_status tnf_vs_index(tnf_reader *r, tnf_error *e)
{
    bool locked;
    struct walk w = { .r = r };
    w.s = tnf_arena_alloc(r->arena, sizeof *w.s);
    if (!w.s)
        return tnf_arena_fail(r->arena, "the file", e);
    w.s->msb = r->options[VS_READ_VARINT].u != 0;
    TNF_TRY(too_large(&w, "a header", 0, TNF_VS_HEADER, e));
    TNF_TRY(lock_file(r, &locked, e));
    if (locked)
        tnf_source_measure(r->source);
    tnf_share_init(&w.s->share);
    r->state = w.s;
    const tnf_allocator *a = &r->arena->alloc;
    tnf_vs_chain_init(&w.chain, tnf_source_fetch, (void *)(uintptr_t)r->source, r->source->size,
                      TNF_VS_HEADER, a);
    w.chain.msb = w.s->msb;
    for (int i = 0; i < 2; i++)
        tnf_buf_init(&w.options[i], a, r->limits.memory);
    tnf_buf_init(&w.spare, a, r->limits.header_bytes);
    tnf_status status = walk_blocks(&w, e);
    if (status == TNF_OK)
        status = list_tensors(&w, e);
    if (locked)
        tnf_lock_drop(r->source->fd);
    tnf_buf_free(&w.spare);
    for (int i = 0; i < 2; i++)
        tnf_buf_free(&w.options[i]);
    tnf_vs_chain_free(&w.chain);
    return status;
}
