/* SPDX-License-Identifier: MIT */
/* Appends points. A single byte commits the batch.
 *
 *   … block │ $                               the old file; t is the position of '$'
 *   … block │ $ ength payload block … block $ everything except the first byte, then fsync
 *   … block │ P length payload block … block $  that byte at t, then fsync
 *
 * Bytes after '$' are ignored, so readers see the old file until the byte is written, even after a
 * crash. From then on they see the complete batch.
 */
#include "base/sized.h"
#include "codec/blocks.h"
#include "ext/points/points.h"

#define BLOCK ((size_t)1 << 20) /* bytes per write */

struct append {
    tnf_points *p;
    uint64_t start; /* t */
    uint64_t next;  /* file position of the first byte of b */
    tnf_point_id last;
    tnf_buf b; /* bytes that are not written yet */
    tnf_buf app, packed, vector, words;
    tnf_points_pack pack;
};

static tnf_status flush_blocks(struct append *a, tnf_error *e)
{
    /* The first byte of the batch is left out, since it commits the batch. */
    size_t skip = a->next == a->start ? 1 : 0;
    TNF_TRY(tnf_buf_status(&a->b, "the batch", e));
    TNF_TRY(tnf_points_go_on(a->p, e));
    TNF_TRY(tnf_disk_write(a->p, a->p->fd, a->next + skip, a->b.p + skip, a->b.n - skip, e));
    a->next += a->b.n;
    a->b.n = 0;
    return TNF_OK;
}

/* Makes the stored form of application data. */
static tnf_status app_of(struct append *a, const tnf_point *point, tnf_str *out, tnf_error *e)
{
    a->app.n = a->packed.n = 0;
    TNF_TRY(tnf_need_str(point->app, "app", e));
    *out = point->app;
    if (point->value) {
        TNF_TRY(tnf_points_pack_value(a->p, &a->app, point->value, e));
        *out = (tnf_str) { (const char *)a->app.p, a->app.n };
    } else if (out->n) {
        tnf_status status = tnf_vs_check_app(out->p, out->n, 0, e);
        if (status != TNF_OK && e)
            *e = (tnf_error) { .status = TNF_EINVAL, .offset = TNF_NO_OFFSET };
        if (status != TNF_OK)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "application data of a new point is not one MessagePack value");
    }
    if (out->n == 0 || !a->p->options.pack_app)
        return TNF_OK;
    TNF_TRY(tnf_snappy_encode(&a->packed, out->p, out->n, e));
    *out = (tnf_str) { (const char *)a->packed.p, a->packed.n };
    return TNF_OK;
}

/* Encodes or checks coordinates that are not numbers. */
static tnf_status words_of(struct append *a, const tnf_point *point, tnf_str *out, tnf_error *e)
{
    tnf_error why;
    if (!point->values) {
        TNF_TRY(tnf_need_array(point->vector, point->vector_n, "vector", e));
        if (tnf_points_check_words(a->p, out->p, out->n, 0, &why) == TNF_OK)
            return TNF_OK;
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the vector does not fit the space: %.150s",
                        why.message);
    }
    a->words.n = 0;
    TNF_TRY(tnf_points_put_words(a->p, &a->words, point->values, e));
    *out = (tnf_str) { (const char *)a->words.p, a->words.n };
    return TNF_OK;
}

static tnf_status numbers_of(const struct append *a, const tnf_point *point, tnf_error *e)
{
    if (point->values)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "a point has `values`, but the coordinates of the space are numbers");
    if (point->vector_n == a->p->meta.vector_bytes && point->vector)
        return TNF_OK;
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                    "the vector has %zu bytes, but vectors of the space have %llu", point->vector_n,
                    (unsigned long long)a->p->meta.vector_bytes);
}

/* The stored form of the coordinates, and how they are compressed. */
static tnf_status vector_of(struct append *a, const tnf_point *point, tnf_str *out, uint8_t *code,
                            tnf_error *e)
{
    static const uint8_t codes[] = { TNF_VS_RAW, TNF_VS_RAW, TNF_VS_GZIP, TNF_VS_SNAPPY };
    const tnf_vs_meta *m = &a->p->meta;
    a->vector.n = 0;
    *code = TNF_VS_RAW;
    *out = (tnf_str) { point->vector, point->vector_n };
    TNF_TRY(m->type ? numbers_of(a, point, e) : words_of(a, point, out, e));
    if (!m->type && out->n > TNF_VS_TEXTS_MOST)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the coordinates of a point have more than 16 MiB");
    if (a->pack == TNF_POINTS_RAW)
        return TNF_OK;
    TNF_TRY(a->pack == TNF_POINTS_GZIP ? tnf_gzip_encode(&a->vector, out->p, out->n, e)
                                       : tnf_snappy_encode(&a->vector, out->p, out->n, e));
    if (!m->type && !tnf_vs_texts_fit(a->vector.n, out->n, m->elements))
        return TNF_OK;
    *code = codes[a->pack];
    *out = (tnf_str) { (const char *)a->vector.p, a->vector.n };
    return TNF_OK;
}

/* Sets unused bits to 0. */
static void clear_spare_bits(struct append *a)
{
    uint64_t used = a->p->meta.elements % 8;
    if (a->p->meta.type && a->p->meta.type->bits == 1 && used && a->pack == TNF_POINTS_RAW &&
        a->b.n)
        a->b.p[a->b.n - 1] &= (uint8_t)((1u << used) - 1);
}

static tnf_status put_point(struct append *a, const tnf_point *point, tnf_error *e)
{
    tnf_str app, vector;
    uint8_t code;
    size_t start = a->b.n;
    TNF_TRY(app_of(a, point, &app, e));
    TNF_TRY(vector_of(a, point, &vector, &code, e));
    uint8_t option = app.n && a->p->options.pack_app ? TNF_VS_APP_SNAPPY : TNF_VS_RAW;
    TNF_TRY(tnf_vs_put_point(&a->b, option, app, code, vector.n, 0, a->p->options.varint_msb, e));
    tnf_buf_put(&a->b, vector.p, vector.n);
    TNF_TRY(tnf_buf_status(&a->b, "the batch", e));
    clear_spare_bits(a);
    a->last = (tnf_point_id) { a->next + start, tnf_points_hash(a->b.p + start, a->b.n - start) };
    return a->b.n >= BLOCK ? flush_blocks(a, e) : TNF_OK;
}

static tnf_status put_batch(struct append *a, const tnf_point *batch, size_t n, tnf_point_id *ids,
                            tnf_error *e)
{
    for (size_t i = 0; i < n; i++) {
        TNF_TRY(put_point(a, &batch[i], e));
        if (ids)
            ids[i] = a->last;
    }
    tnf_buf_u8(&a->b, TNF_VS_END);
    TNF_TRY(flush_blocks(a, e));
    return tnf_disk_sync(a->p, a->p->fd, e);
}

/* Writes the byte that commits the batch. */
static tnf_status commit_blocks(struct append *a, tnf_error *e)
{
    static const uint8_t type = TNF_VS_POINT;
    tnf_points *p = a->p;
    TNF_TRY(tnf_disk_write(p, p->fd, a->start, &type, 1, e));
    p->tail = a->next - 1;
    p->last = a->last.offset;
    tnf_status status = tnf_disk_sync_done(p, p->fd, e);
    if (status == TNF_OK && p->chain.size > a->next) /* old junk reaches beyond the new blocks */
        (void)tnf_disk_cut(p, p->fd, a->next, NULL);
    return status;
}

static tnf_status prepare_append(struct append *a, tnf_error *e)
{
    tnf_points *p = a->p;
    if (!p->has_meta)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the file describes no vector space, so it cannot hold points");
    if (!p->meta.type && !tnf_vs_has_texts(&p->meta))
        return tnf_fail(e, TNF_EUNSUPPORTED, p->meta_at, "the resolution %d (%s) is not supported",
                        p->meta.resolution, p->meta.type_name);
    TNF_TRY(tnf_points_find_tail(p, e));
    a->start = a->next = p->tail;
    a->pack = p->options.pack;
    if (a->pack == TNF_POINTS_AUTO)
        a->pack = p->meta.pack == TNF_VS_APP_SNAPPY ? TNF_POINTS_SNAPPY : TNF_POINTS_RAW;
    return TNF_OK;
}

static tnf_status append_batch(struct append *a, const tnf_point *batch, size_t n,
                               tnf_point_id *ids, tnf_error *e)
{
    TNF_TRY(prepare_append(a, e));
    tnf_status status = put_batch(a, batch, n, ids, e);
    if (status == TNF_OK)
        return commit_blocks(a, e);
    (void)tnf_disk_cut(a->p, a->p->fd, a->start + 1, NULL); /* frees the space, if possible */
    return status;
}

tnf_status tnf_points_append(tnf_point_id *ids, tnf_points *p, const tnf_point *batch, size_t n,
                             tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_need_array(batch, n, "batch", e));
    struct append a = { .p = p };
    if (n == 0)
        return TNF_OK;
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_check_reserved(batch[i].reserved, sizeof batch[i].reserved, e));
    TNF_TRY(tnf_points_enter(p, true, e));
    tnf_buf *all[] = { &a.b, &a.app, &a.packed, &a.vector, &a.words };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tnf_buf_init(all[i], &p->alloc, UINT64_MAX);
    tnf_status status = append_batch(&a, batch, n, ids, e);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tnf_buf_free(all[i]);
    tnf_points_leave(p);
    p->used = p->used || ids;
    tnf_arena_free(&p->batch);
    tnf_arena_init(&p->batch, &p->alloc, UINT64_MAX);
    return status;
}

tnf_status tnf_points_add(tnf_point_id *id, tnf_points *p, const tnf_value *app, const void *vector,
                          size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need_array(vector, n, "vector", e));
    const tnf_point point = { .value = app, .vector = vector, .vector_n = n };
    return tnf_points_append(id, p, &point, 1, e);
}
