/* SPDX-License-Identifier: MIT */
/* Finds the points whose application data equals a value, as JSON compares: a tree is written in a
 * form that is the same for all equal values, and the bytes of these forms are compared.
 *
 *   null n    bool t f    string s n:u64 bytes    bytes b n:u64 bytes
 *   array a n:u64 items    map m n:u64 (key as string, value), by key
 *   number i sign:u8 u64 if it is whole and has at most 64 bits, else d f64
 */
#include "base/decimal.h"
#include "ext/points/points.h"
#include "model/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_bytes(tnf_buf *b, char kind, const void *bytes, size_t n)
{
    tnf_buf_u8(b, (uint8_t)kind);
    tnf_buf_u64(b, n);
    if (n)
        tnf_buf_put(b, bytes, n);
}

static void put_whole(tnf_buf *b, bool negative, uint64_t magnitude)
{
    tnf_buf_u8(b, 'i');
    tnf_buf_u8(b, negative && magnitude);
    tnf_buf_u64(b, magnitude);
}

static void put_float(tnf_buf *b, double v)
{
    uint64_t bits;
    double size = fabs(v);
    if (size < 18446744073709551616.0 && size == floor(size)) {
        put_whole(b, v < 0, (uint64_t)size);
        return;
    }
    v = isnan(v) ? (double)NAN : v;
    memcpy(&bits, &v, sizeof bits);
    tnf_buf_u8(b, 'd');
    tnf_buf_u64(b, bits);
}

/* A float of 32 bits is the number that its shortest text says, which is what listings show. */
static double widened(float v)
{
    char text[TNF_F32_TEXT];
    double wide = (double)v;
    size_t n = isfinite(v) ? tnf_f32_repr(text, v) : 0;
    return n && tnf_f64_parse(&wide, text, n) ? wide : (double)v;
}

static int by_key(const void *a, const void *b)
{
    const tnf_member *x = *(const tnf_member *const *)a, *y = *(const tnf_member *const *)b;
    int order = tnf_member_compare(x, y);
    return order ? order : (x > y) - (x < y);
}

static tnf_status put_form(tnf_buf *b, const tnf_value *v, tnf_error *e);

static tnf_status put_members(tnf_buf *b, const tnf_value *map, tnf_error *e)
{
    const tnf_member **sorted = tnf_alloc(&b->alloc, map->n * sizeof(void *));
    if (!sorted)
        return tnf_no_memory("comparing", e);
    for (size_t i = 0; i < map->n; i++)
        sorted[i] = &map->as.members[i];
    qsort((void *)sorted, map->n, sizeof(void *), by_key);
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < map->n && status == TNF_OK; i++) {
        put_bytes(b, 's', sorted[i]->key.p, sorted[i]->key.n);
        status = put_form(b, &sorted[i]->value, e);
    }
    tnf_free(&b->alloc, (void *)sorted, map->n * sizeof(void *));
    return status;
}

static tnf_status put_number_form(tnf_buf *b, const tnf_value *v, tnf_error *e)
{
    if (v->kind == TNF_FLOAT)
        put_float(b, v->dtype == TNF_F32 ? widened(v->as.f32) : v->as.f64);
    else if (v->kind == TNF_INT && v->as.i < 0)
        put_whole(b, true, 0 - (uint64_t)v->as.i);
    else
        put_whole(b, false, v->as.u);
    return tnf_buf_status(b, "comparing", e);
}

/* Trees were read from MessagePack, so they are not deeper than TNF_VS_DEPTH. */
static tnf_status put_form(tnf_buf *b, const tnf_value *v, tnf_error *e)
{
    switch (v->kind) {
    case TNF_NULL:
        tnf_buf_u8(b, 'n');
        break;
    case TNF_BOOL:
        tnf_buf_u8(b, v->as.b ? 't' : 'f');
        break;
    case TNF_INT:
    case TNF_UINT:
    case TNF_FLOAT:
        return put_number_form(b, v, e);
    case TNF_ARRAY:
        put_bytes(b, 'a', NULL, 0);
        tnf_buf_u64(b, v->n);
        for (size_t i = 0; i < v->n; i++)
            TNF_TRY(put_form(b, &v->as.items[i], e));
        break;
    case TNF_MAP:
        put_bytes(b, 'm', NULL, 0);
        tnf_buf_u64(b, v->n);
        return v->n ? put_members(b, v, e) : tnf_buf_status(b, "comparing", e);
    default:
        put_bytes(b, v->kind == TNF_STRING ? 's' : 'b', v->as.s, v->n);
    }
    return tnf_buf_status(b, "comparing", e);
}

/* Replaces the content of b by the form of application data; none is the same as null. */
static tnf_status form_of(tnf_points *p, tnf_buf *b, tnf_str app, tnf_error *e)
{
    static const tnf_value null = { .kind = TNF_NULL };
    const tnf_point point = { .app = app };
    const tnf_value *tree;
    b->n = 0;
    TNF_TRY(tnf_points_value(&tree, p, &point, e));
    return put_form(b, tree ? tree : &null, e);
}

struct matching {
    tnf_points *p;
    tnf_buf wanted, form;
    tnf_buf offsets; /* u64 */
};

static tnf_status want_app(struct matching *m, const tnf_value *app, tnf_error *e)
{
    tnf_buf packed;
    tnf_buf_init(&packed, &m->p->alloc, UINT32_MAX);
    tnf_status status = app ? tnf_points_pack_value(m->p, &packed, app, e) : TNF_OK;
    if (status == TNF_OK)
        status = form_of(m->p, &m->wanted, (tnf_str) { (const char *)packed.p, packed.n }, e);
    tnf_buf_free(&packed);
    return status;
}

static tnf_status match_point(struct matching *m, tnf_error *e)
{
    tnf_point point;
    TNF_TRY(tnf_points_decode(m->p, &point, e));
    TNF_TRY(form_of(m->p, &m->form, point.app, e));
    if (m->form.n == m->wanted.n && memcmp(m->form.p, m->wanted.p, m->form.n) == 0)
        tnf_buf_put(&m->offsets, &point.id.offset, sizeof point.id.offset);
    return tnf_buf_status(&m->offsets, "the list of points", e);
}

static tnf_status delete_matches(struct matching *m, uint64_t *n, bool shred, tnf_error *e)
{
    tnf_vs_chain *c = &m->p->chain;
    tnf_points_rewind(m->p, TNF_VS_HEADER);
    do {
        TNF_TRY(tnf_points_next(m->p, e));
        if (c->type == TNF_VS_POINT)
            TNF_TRY(match_point(m, e));
    } while (c->type != TNF_VS_END);
    *n = m->offsets.n / sizeof(uint64_t);
    if (*n == 0)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "no point has this application data");
    return tnf_points_delete_sorted(m->p, (const uint64_t *)(const void *)m->offsets.p, (size_t)*n,
                                    shred, e);
}

tnf_status tnf_points_delete_app(uint64_t *deleted, tnf_points *p, const tnf_value *app,
                                 unsigned flags, tnf_error *e)
{
    uint64_t n = 0;
    if (deleted)
        *deleted = 0;
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_points_check_flags(flags, TNF_POINTS_SHRED, e));
    struct matching m = { .p = p };
    tnf_buf *all[] = { &m.wanted, &m.form, &m.offsets };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tnf_buf_init(all[i], &p->alloc, UINT64_MAX);
    tnf_status status = want_app(&m, app, e);
    if (status == TNF_OK)
        status = tnf_points_enter(p, true, e);
    if (status == TNF_OK) {
        status = delete_matches(&m, &n, flags & TNF_POINTS_SHRED, e);
        tnf_points_leave(p);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tnf_buf_free(all[i]);
    if (deleted && (status == TNF_OK || status == TNF_EUNSYNCED))
        *deleted = n;
    return status;
}
